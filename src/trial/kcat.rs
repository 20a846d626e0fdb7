//! Lines of `kcat -J` as records.

use super::sample::{Bytes, Headers, Sample};
use crate::config::spec::Name;
use serde::Deserialize;
use serde_json::Value;

/// One line, as kcat writes it. What it says beside (`tstype`, `broker`) does not matter here.
#[derive(Deserialize)]
struct Line {
    topic: String,
    #[serde(default)]
    partition: i32,
    #[serde(default)]
    offset: i64,
    #[serde(default)]
    ts: Option<i64>,
    #[serde(default)]
    headers: Vec<Option<String>>,
    #[serde(default)]
    key: Value,
    #[serde(default)]
    payload: Value,
}

/// A line that is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a line of `kcat -J`: {0}")]
pub struct KcatError(String);

/// A line of `kcat -J` as a record of `source`.
///
/// # Errors
/// What is wrong with the line.
pub fn parse_line(line: &str, source: &Name) -> Result<Sample, KcatError> {
    let line: Line = serde_json::from_str(line).map_err(|e| KcatError(e.to_string()))?;
    Ok(Sample {
        source: source.clone(),
        topic: line.topic,
        partition: line.partition,
        offset: line.offset,
        timestamp: line.ts.filter(|ts| *ts >= 0),
        key: bytes(line.key),
        value: bytes(line.payload),
        headers: headers(line.headers)?,
    })
}

/// kcat writes a text, or with `-s` the unpacked number.
fn bytes(value: Value) -> Bytes {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.into_bytes()),
        other => Some(other.to_string().into_bytes()),
    }
}

/// kcat writes names and values in turn.
fn headers(list: Vec<Option<String>>) -> Result<Headers, KcatError> {
    let mut headers = Headers::new();
    let mut list = list.into_iter();
    while let Some(name) = list.next() {
        let (Some(name), Some(value)) = (name, list.next()) else {
            return Err(KcatError("`headers` has a name without a value".to_owned()));
        };
        headers.push((name.into_bytes(), value.map(String::into_bytes)));
    }
    Ok(headers)
}
