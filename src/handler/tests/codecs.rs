//! `decode` and `encode`, codec by codec.

use super::chains::{bind, bind_within, compile};
use super::reformats::{headers_after, key_after, outcome, pairs, value_after};
use crate::handler::sample::record;
use crate::handler::{FailureCode, Verdict};
use crate::record::Record;
use proptest::prelude::*;
use serde_json::{Value, json};

fn of_value(value: &[u8]) -> Record<'_> {
    let mut record = record(None, None);
    record.value = Some(value.into());
    record
}

/// The value's bytes after one reformat.
fn bytes_after(reformat: &Value, value: &[u8]) -> Result<Vec<u8>, FailureCode> {
    let bound = bind(&json!([{"reformat": reformat}]));
    let mut out = Vec::new();
    let outcome = bound.apply(of_value(value), &mut out);
    outcome.map_err(|f| f.failure.code)?;
    Ok(out[0].value.clone().expect("a value").into_owned())
}

#[test]
fn whole_values_are_bytes() {
    let rows: [(&str, &[u8], &[u8]); 6] = [
        ("base64", b"\xff\x00a", b"/wBh"),
        ("base64", b"a", b"YQ=="),
        ("base64", b"", b""),
        ("hex", b"\xff\x00a", b"ff0061"),
        ("json", br#"{"a": 1.0}"#, br#""{\"a\": 1.0}""#),
        ("json", b"12", b"\"12\""),
    ];
    for (codec, plain, encoded) in rows {
        let encode = bytes_after(&json!({"encode": {"value": codec}}), plain);
        assert_eq!(encode.as_deref(), Ok(encoded), "{codec}");
        let decode = bytes_after(&json!({"decode": {"value": codec}}), encoded);
        assert_eq!(decode.as_deref(), Ok(plain), "{codec}");
    }
    let zipped = bytes_after(&json!({"encode": {"value": "gzip"}}), b"plain").expect("zipped");
    assert_eq!(&zipped[..2], b"\x1f\x8b");
    let again = bytes_after(&json!({"encode": {"value": "gzip"}}), b"plain");
    assert_eq!(again.as_ref(), Ok(&zipped));
    let twice = [zipped.as_slice(), &zipped].concat();
    assert_eq!(
        bytes_after(&json!({"decode": {"value": "gzip"}}), &twice).as_deref(),
        Ok(&b"plainplain"[..])
    );
}

#[test]
fn fields_are_texts_and_the_rest_stays_as_spelled() {
    let value =
        r#"{ "n":1.00, "b":"SGkg8J+Yig", "x":["4869","zz"], "j":"{\"k\": [1.0]}", "z":null }"#;
    let decode = |entries: Value| value_after(json!({"decode": entries}), value);
    assert_eq!(
        decode(json!({"value.b": "base64", "value.x[0]": "hex", "value.j": "json", "value.z": "hex", "value.none": "hex"})).as_deref(),
        Ok(r#"{ "n":1.00, "b":"Hi 😊", "x":["Hi","zz"], "j":{"k": [1.0]}, "z":null }"#)
    );
    assert_eq!(
        value_after(
            json!({"encode": {"value.j": "json"}}),
            r#"{"j":{"k": [1.0]} }"#
        )
        .as_deref(),
        Ok(r#"{"j":"{\"k\": [1.0]}" }"#)
    );
    assert_eq!(
        value_after(
            json!({"encode": {"value.l[*]": "hex"}}),
            r#"{"l":["Hi","","é"]}"#
        )
        .as_deref(),
        Ok(r#"{"l":["4869","","c3a9"]}"#)
    );
    let zipped =
        value_after(json!({"encode": {"value.a": "gzip"}}), r#"{"a":"plain"}"#).expect("zipped");
    assert!(zipped.starts_with(r#"{"a":"H4sI"#), "{zipped}");
    assert_eq!(
        value_after(json!({"decode": {"value.a": "gzip"}}), &zipped).as_deref(),
        Ok(r#"{"a":"plain"}"#)
    );
}

#[test]
fn keys_and_headers_are_bytes() {
    assert_eq!(
        key_after(json!({"encode": {"key": "hex"}}), "{}"),
        Ok(Some("6b".to_owned()))
    );
    let headers = [("a", Some("aGk=")), ("a", None), ("a", Some("aG8"))];
    assert_eq!(
        headers_after(
            json!({"decode": {"header.a": "base64", "header.b": "hex"}}),
            &headers
        ),
        pairs(&[("a", Some("hi")), ("a", None), ("a", Some("ho"))])
    );
}

#[test]
fn what_a_codec_refuses_fails() {
    let rows = [
        ("base64", "a b=", FailureCode::Codec),
        ("base64", "_-8=", FailureCode::Codec),
        ("base64", "YR==", FailureCode::Codec),
        ("hex", "abc", FailureCode::Codec),
        ("hex", "xy", FailureCode::Codec),
        ("gzip", "plain", FailureCode::Codec),
        ("gzip", "", FailureCode::Codec),
        ("json", "{\"a\":1}", FailureCode::WrongType),
        ("json", "text", FailureCode::NotJson),
        ("json", r#""{\"a\":""#, FailureCode::NotJson),
    ];
    for (codec, value, expected) in rows {
        let failed = bytes_after(&json!({"decode": {"value": codec}}), value.as_bytes());
        assert_eq!(failed, Err(expected), "{codec} {value}");
    }
    let rows = [
        ("decode", "hex", r#"{"a":12}"#, FailureCode::WrongType),
        ("decode", "hex", r#"{"a":"ff"}"#, FailureCode::WrongType),
        ("decode", "hex", r#"{"a":"f"}"#, FailureCode::Codec),
        ("decode", "json", r#"{"a":{}}"#, FailureCode::WrongType),
        ("decode", "json", r#"{"a":"x"}"#, FailureCode::NotJson),
        ("encode", "hex", r#"{"a":{}}"#, FailureCode::WrongType),
        ("encode", "json", "x", FailureCode::NotJson),
    ];
    for (direction, codec, value, expected) in rows {
        let reformat = json!({direction: {"value.a": codec}});
        assert_eq!(
            value_after(reformat, value),
            Err(expected),
            "{direction} {value}"
        );
    }
    let failed = bytes_after(&json!({"encode": {"value": "json"}}), b"text");
    assert_eq!(failed, Err(FailureCode::NotJson));
}

#[test]
fn a_bomb_fails_before_it_takes_the_memory() {
    let plain = vec![b'0'; 1 << 20];
    let bomb = bytes_after(&json!({"encode": {"value": "gzip"}}), &plain).expect("zipped");
    assert!(bomb.len() < 2048);
    let decode = json!([{"reformat": {"decode": {"value": "gzip"}}}]);
    let outcome = |limit| {
        let bound = bind_within(&decode, limit);
        let outcome = bound.apply(of_value(&bomb), &mut Vec::new());
        outcome.map_err(|f| f.failure.code)
    };
    assert_eq!(outcome((1 << 20) - 1), Err(FailureCode::TooLarge));
    assert_eq!(outcome(1 << 20), Ok(Verdict::Forward));
}

#[test]
fn what_is_decoded_may_not_be_nested_deeper_than_the_limit() {
    let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let decode = |depth| {
        value_after(
            json!({"decode": {"value.a": "json"}}),
            &format!(r#"{{"a":"{}"}}"#, deep(depth)),
        )
    };
    assert!(decode(127).is_ok());
    assert_eq!(decode(128), Err(FailureCode::TooDeep));
}

#[test]
fn tombstones_pass() {
    for direction in ["decode", "encode"] {
        for codec in ["base64", "hex", "gzip", "json"] {
            let reformat = json!({direction: {"value": codec, "value.a": codec, "key": codec}});
            assert_eq!(
                outcome(&reformat, record(None, None)),
                Ok(vec![(None, None)])
            );
        }
    }
}

#[test]
fn mistakes_are_found_at_load() {
    let rows = [
        (json!({"decode": {}}), "/0/reformat/decode"),
        (
            json!({"decode": {"value.a": "base46"}}),
            "/0/reformat/decode/value.a",
        ),
        (
            json!({"encode": {"timestamp": "hex"}}),
            "/0/reformat/encode/timestamp",
        ),
        (
            json!({"encode": {"header.a*": "hex"}}),
            "/0/reformat/encode/header.a*",
        ),
        (
            json!({"encode": {"key": "hex"}, "decode": {"key": "hex"}}),
            "/0/reformat/encode",
        ),
    ];
    for (reformat, pointer) in rows {
        let faults = compile(&json!([{"reformat": reformat}])).expect_err("a fault");
        assert_eq!(faults[0].pointer, pointer, "{reformat}");
    }
}

proptest! {
    #[test]
    fn what_is_encoded_decodes(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        for codec in ["base64", "hex", "gzip"] {
            let encoded = bytes_after(&json!({"encode": {"value": codec}}), &bytes).expect("encoded");
            let decoded = bytes_after(&json!({"decode": {"value": codec}}), &encoded);
            prop_assert_eq!(decoded.as_deref(), Ok(bytes.as_slice()));
        }
    }
}
