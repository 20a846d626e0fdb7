//! `timestamp`, word by word.

use super::chains::{NOW, bind, compile};
use crate::handler::FailureCode;
use crate::handler::sample::{record, with_headers};
use crate::record::Record;
use serde_json::{Value, json};

fn timestamp_after(written: &Value, record: Record<'_>) -> Result<Option<i64>, FailureCode> {
    let bound = bind(&json!([{"reformat": {"timestamp": written}}]));
    let mut out = Vec::new();
    bound.apply(record, &mut out).map_err(|f| f.failure.code)?;
    Ok(out[0].timestamp)
}

#[test]
fn now_is_what_the_given_clock_says() {
    assert_eq!(
        timestamp_after(&json!("now"), record(None, None)),
        Ok(Some(NOW))
    );
}

#[test]
fn a_shift_moves_it() {
    let rows = [
        ("1h30m", Ok(Some(5_401_234))),
        ("+1ms", Ok(Some(1235))),
        ("-1s", Ok(Some(234))),
        ("-1234ms", Ok(Some(0))),
        ("-1235ms", Err(FailureCode::InvalidTimestamp)),
    ];
    for (shift, expected) in rows {
        let moved = timestamp_after(&json!({"shift": shift}), record(None, None));
        assert_eq!(moved, expected, "{shift}");
    }
    let mut without = record(None, None);
    without.timestamp = None;
    assert_eq!(timestamp_after(&json!({"shift": "1h"}), without), Ok(None));
}

#[test]
fn each_unit_is_read_exactly() {
    let value = r#"{"s":1700000000,"sf":1700000000.1239,"ms":1700000000123,"us":1700000000123456,
        "ns":1700000000123456789,"t":"1700000000123","e":1.7e12,"r":"2023-11-14T23:13:20.5+01:00",
        "d":"14/11/2023","n":null,"b":true,"o":{},"x":"soon","neg":-1,"big":99999999999999999999}"#;
    let rows = [
        ("s", "s", Ok(1_700_000_000_000)),
        ("sf", "s", Ok(1_700_000_000_123)),
        ("ms", "ms", Ok(1_700_000_000_123)),
        ("us", "us", Ok(1_700_000_000_123)),
        ("ns", "ns", Ok(1_700_000_000_123)),
        ("t", "ms", Ok(1_700_000_000_123)),
        ("e", "ms", Ok(1_700_000_000_000)),
        ("r", "rfc3339", Ok(1_700_000_000_500)),
        ("d", "%d/%m/%Y", Ok(1_699_920_000_000)),
        ("d", "rfc3339", Err(FailureCode::WrongType)),
        ("r", "ms", Err(FailureCode::WrongType)),
        ("n", "ms", Err(FailureCode::Absent)),
        ("none", "ms", Err(FailureCode::Absent)),
        ("b", "ms", Err(FailureCode::WrongType)),
        ("o", "ms", Err(FailureCode::WrongType)),
        ("x", "%Y", Err(FailureCode::WrongType)),
        ("neg", "ms", Err(FailureCode::InvalidTimestamp)),
        ("big", "ms", Err(FailureCode::WrongType)),
    ];
    for (field, unit, expected) in rows {
        let written = json!({"from": format!("value.{field}"), "unit": unit});
        let read = timestamp_after(&written, record(None, Some(value)));
        assert_eq!(read, expected.map(Some), "{field} {unit}");
    }
}

#[test]
fn what_is_absent_fails_or_keeps() {
    let keep = |path: &str| json!({"from": path, "if_absent": "keep"});
    let value = Some(r#"{"n":null,"x":"soon"}"#);
    for path in ["value.none", "value.n", "header.t", "key.a"] {
        let key = Some("{}");
        assert_eq!(
            timestamp_after(&keep(path), record(key, value)),
            Ok(Some(1234)),
            "{path}"
        );
        let fail = json!({"from": path});
        assert_eq!(
            timestamp_after(&fail, record(key, value)),
            Err(FailureCode::Absent),
            "{path}"
        );
    }
    assert_eq!(
        timestamp_after(&keep("value.x"), record(None, value)),
        Err(FailureCode::WrongType)
    );
    assert_eq!(
        timestamp_after(&keep("value.x"), record(None, Some("x"))),
        Err(FailureCode::NotJson)
    );
}

#[test]
fn it_is_read_from_anywhere_and_a_tombstone_keeps_its_own() {
    let headers = vec![(b"t".to_vec(), Some(b"5000".to_vec()))];
    let of = |path: &str| {
        let record = with_headers(record(Some("6000"), None), &headers);
        timestamp_after(&json!({"from": path}), record)
    };
    assert_eq!(of("header.t"), Ok(Some(5000)));
    assert_eq!(of("key"), Ok(Some(6000)));
    assert_eq!(of("offset"), Ok(Some(42)));
    assert_eq!(of("value.t"), Ok(Some(1234)));
}

#[test]
fn mistakes_are_found_at_load() {
    let rows = [
        (json!("later"), ""),
        (json!({}), ""),
        (json!({"shift": "1h", "unit": "s"}), "/unit"),
        (json!({"shift": "an hour"}), "/shift"),
        (json!({"shift": "60"}), "/shift"),
        (json!({"form": "value.t"}), "/form"),
        (json!({"from": "value.t[*]"}), "/from"),
        (json!({"from": "value.t", "unit": "h"}), "/unit"),
        (json!({"from": "value.t", "unit": "%J"}), "/unit"),
        (json!({"from": "value.t", "if_absent": "now"}), "/if_absent"),
    ];
    for (written, pointer) in rows {
        let faults = compile(&json!([{"reformat": {"timestamp": written}}])).expect_err("a fault");
        let expected = format!("/0/reformat/timestamp{pointer}");
        assert_eq!(faults[0].pointer, expected, "{written}");
    }
}
