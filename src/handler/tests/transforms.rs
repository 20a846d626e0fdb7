//! The table of `docs/transforms.md`: every row is run as it stands there.

use super::chains::bind_to;
use crate::handler::Verdict;
use crate::handler::sample::{headers_of, record, with_headers};
use crate::record::Record;
use serde_json::{Value, json};

const PAGE: &str = include_str!("../../../docs/transforms.md");

/// The transforms that the table must have.
const TRANSFORMS: [&str; 15] = [
    "InsertField",
    "ReplaceField",
    "MaskField",
    "ValueToKey",
    "HoistField",
    "ExtractField",
    "RegexRouter",
    "TimestampRouter",
    "TimestampConverter",
    "Cast",
    "Flatten",
    "HeaderFrom",
    "InsertHeader",
    "DropHeaders",
    "Filter",
];

/// One row: the transform, and its three cells of YAML.
struct Row {
    transform: &'static str,
    steps: Value,
    record: Value,
    becomes: Value,
}

fn rows() -> Vec<Row> {
    let (_, table) = PAGE
        .split_once("## Instead of Connect's transforms")
        .expect("the table");
    let lines = table.lines().filter(|line| line.starts_with('|')).skip(2);
    lines.map(row).collect()
}

fn row(line: &'static str) -> Row {
    let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
    let [transform, steps, record, becomes] = cells.as_slice() else {
        panic!("not four cells: {line}");
    };
    let yaml = |cell: &str| -> Value {
        serde_yaml::from_str(cell.trim_matches('`')).unwrap_or_else(|e| panic!("{cell}: {e}"))
    };
    let steps = match yaml(steps) {
        Value::Array(steps) => Value::Array(steps),
        step => json!([step]),
    };
    Row {
        transform,
        steps,
        record: yaml(record),
        becomes: yaml(becomes),
    }
}

/// A text is its bytes, null is null, the rest is compact JSON.
fn bytes(written: Option<&Value>) -> Option<String> {
    match written {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(text.clone()),
        Some(other) => Some(other.to_string()),
    }
}

fn headers(written: Option<&Value>) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
    let pairs = written.and_then(Value::as_array).into_iter().flatten();
    let text = |value: &Value| bytes(Some(value)).map(String::into_bytes);
    pairs
        .map(|pair| (text(&pair[0]).unwrap_or_default(), text(&pair[1])))
        .collect()
}

/// What of `expected` is written, compared with `output`.
fn compare(output: &Record<'_>, expected: &Value, transform: &str) {
    let text = |bytes: Option<&[u8]>| bytes.map(|b| String::from_utf8_lossy(b).into_owned());
    for (name, wanted) in expected.as_object().expect("a map") {
        let wanted = Some(wanted);
        match name.as_str() {
            "topic" => assert_eq!(Some(output.topic.to_string()), bytes(wanted), "{transform}"),
            "key" => assert_eq!(text(output.key.as_deref()), bytes(wanted), "{transform}"),
            "value" => assert_eq!(text(output.value.as_deref()), bytes(wanted), "{transform}"),
            "timestamp" => {
                let timestamp = output.timestamp.map(|t| t.to_string());
                assert_eq!(timestamp, bytes(wanted), "{transform}");
            }
            "headers" => {
                let wanted = headers(wanted);
                let wanted = headers_of(&with_headers(record(None, None), &wanted));
                assert_eq!(headers_of(output), wanted, "{transform}");
            }
            other => panic!("{transform}: nothing compares `{other}`"),
        }
    }
}

fn run(row: &Row) {
    let topic = row.record["topic"].as_str().unwrap_or("orders");
    let include = row.record["include"].as_str().unwrap_or(".+");
    let bound = bind_to(&row.steps, topic, &format!("^(?:{include})$"));
    let bound = bound.unwrap_or_else(|fault| panic!("{}: {fault:?}", row.transform));
    let (key, value) = (bytes(row.record.get("key")), bytes(row.record.get("value")));
    let headers = headers(row.record.get("headers"));
    let mut record = with_headers(record(key.as_deref(), value.as_deref()), &headers);
    record.topic = topic.into();
    record.origin.topic = topic;
    let timestamp = row.record["timestamp"].as_i64();
    record.timestamp = Some(timestamp.unwrap_or(1_700_000_000_000));
    let mut out = Vec::new();
    match bound.apply(record, &mut out) {
        Ok(Verdict::Forward) => compare(&out[0], &row.becomes, row.transform),
        Ok(Verdict::Dropped { .. }) => {
            assert_eq!(row.becomes, json!({"dropped": true}), "{}", row.transform);
        }
        Err(failure) => panic!("{}: {}", row.transform, failure.failure),
    }
}

#[test]
fn every_row_does_what_it_says() {
    let rows = rows();
    rows.iter().for_each(run);
    for transform in TRANSFORMS {
        let is_there = rows.iter().any(|row| row.transform.starts_with(transform));
        assert!(is_there, "{transform} has no row");
    }
}
