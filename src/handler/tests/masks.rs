//! `mask`, method by method.

use super::chains::{bind, compile};
use super::reformats::{headers_after, key_after, outcome, pairs, value_after};
use crate::handler::sample::{record, value_of, with_headers};
use crate::handler::{FailureCode, StepSpec};
use serde_json::{Value, json};

fn mask(fields: &[&str], with: &str) -> Value {
    match with {
        "hash" => json!({"mask": {"fields": fields, "with": with, "key": "secret"}}),
        _ => json!({"mask": {"fields": fields, "with": with}}),
    }
}

const VALUE: &str = r#"{ "n":-12.50, "s":"J\u00f6 12345" ,"b":true,"z":null,"o":{"x":1},"e":"" }"#;

#[test]
fn each_method_hides_one_field_and_leaves_the_rest_as_spelled() {
    let rows = [
        (
            "last4",
            "value.s",
            r#"{ "n":-12.50, "s":"****2345" ,"b":true,"z":null,"o":{"x":1},"e":"" }"#,
        ),
        (
            "redact",
            "value.o",
            r#"{ "n":-12.50, "s":"J\u00f6 12345" ,"b":true,"z":null,"o":"***","e":"" }"#,
        ),
        (
            "erase",
            "value.n",
            r#"{ "n":null, "s":"J\u00f6 12345" ,"b":true,"z":null,"o":{"x":1},"e":"" }"#,
        ),
        (
            "keep_format",
            "value.s",
            r#"{ "n":-12.50, "s":"Xx 99999" ,"b":true,"z":null,"o":{"x":1},"e":"" }"#,
        ),
        (
            "keep_format",
            "value.n",
            r#"{ "n":-99.99, "s":"J\u00f6 12345" ,"b":true,"z":null,"o":{"x":1},"e":"" }"#,
        ),
        (
            "last4",
            "value.n",
            r#"{ "n":"**2.50", "s":"J\u00f6 12345" ,"b":true,"z":null,"o":{"x":1},"e":"" }"#,
        ),
        ("redact", "value.z", VALUE),
        ("hash", "value.none.x", VALUE),
        ("last4", "value.e", VALUE),
    ];
    for (with, field, expected) in rows {
        let masked = value_after(mask(&[field], with), VALUE);
        assert_eq!(masked.as_deref(), Ok(expected), "{with} {field}");
    }
}

#[test]
fn a_hash_is_that_of_the_text_under_the_key() {
    // `printf 'jo@example.com' | openssl dgst -sha256 -hmac secret`
    let hashed = "5f738b92bf6348c409462c83ccb31b1ec0d912de35ca675de6759f19543a1361";
    let masked = value_after(mask(&["value.e"], "hash"), r#"{"e":"jo@example.com"}"#);
    assert_eq!(masked, Ok(format!(r#"{{"e":"{hashed}"}}"#)));
    let of = |value: &str| value_after(mask(&["value.a"], "hash"), value).expect("a hash");
    assert_eq!(of(r#"{"a":"1.0"}"#), of(r#"{"a":1.0}"#));
    assert_eq!(of(r#"{"a":"\u0061"}"#), of(r#"{"a":"a"}"#));
    assert_ne!(of(r#"{"a":1.0}"#), of(r#"{"a":1}"#));
    let other = json!({"mask": {"fields": ["value.a"], "with": "hash", "key": "other"}});
    assert_ne!(Ok(of(r#"{"a":1}"#)), value_after(other, r#"{"a":1}"#));
}

#[test]
fn every_match_is_masked_repeated_names_too() {
    let value = r#"{"i":[{"s":"a1"},{"s":null},3,{"s":"b","s":"c"}],"i":[{"s":"d"}]}"#;
    let masked = value_after(mask(&["value.i[*].s"], "redact"), value);
    let expected = r#"{"i":[{"s":"***"},{"s":null},3,{"s":"***","s":"***"}],"i":[{"s":"***"}]}"#;
    assert_eq!(masked.as_deref(), Ok(expected));
    let masked = value_after(mask(&["value.l[1]"], "keep_format"), r#"{"l":["a","b2"]}"#);
    assert_eq!(masked.as_deref(), Ok(r#"{"l":["a","x9"]}"#));
}

#[test]
fn keys_values_and_headers_are_masked_as_bytes() {
    assert_eq!(
        key_after(mask(&["key"], "redact"), "{}"),
        Ok(Some("***".to_owned()))
    );
    let key = key_after(mask(&["key"], "hash"), "{}").expect("a key");
    assert_eq!(key.map(|k| k.len()), Some(64));
    assert_eq!(
        value_after(mask(&["value"], "last4"), "secret text").as_deref(),
        Ok("*******text")
    );
    let headers = [
        ("a", Some("Jo 1")),
        ("b", Some("x")),
        ("a", None),
        ("a", Some("2")),
    ];
    assert_eq!(
        headers_after(mask(&["header.a", "header.none"], "keep_format"), &headers),
        pairs(&[
            ("a", Some("Xx 9")),
            ("b", Some("x")),
            ("a", None),
            ("a", Some("9"))
        ])
    );
    assert_eq!(
        headers_after(mask(&["header.b"], "erase"), &headers)[1],
        ("b".to_owned(), None)
    );
}

#[test]
fn what_has_no_text_fails_rather_than_shows() {
    let failed = |field: &str, with: &str| value_after(mask(&[field], with), VALUE);
    for with in ["last4", "keep_format"] {
        assert_eq!(failed("value.b", with), Err(FailureCode::WrongType));
        assert_eq!(failed("value.o", with), Err(FailureCode::WrongType));
        assert_eq!(
            value_after(mask(&["value.a"], with), r#"{"a":"\ud800"}"#),
            Err(FailureCode::WrongType)
        );
    }
    for value in ["", "x", "{\"a\":1"] {
        for with in ["hash", "last4", "redact", "erase", "keep_format"] {
            let failed = value_after(mask(&["value.a"], with), value);
            assert_eq!(failed, Err(FailureCode::NotJson), "{with} {value:?}");
        }
    }
    let headers = vec![(b"a".to_vec(), Some(b"\xff".to_vec()))];
    let bound = bind(&json!([{"reformat": mask(&["header.a"], "last4")}]));
    let record = with_headers(record(None, None), &headers);
    let failure = bound.apply(record, &mut Vec::new()).expect_err("no text");
    assert_eq!(failure.failure.code, FailureCode::WrongType);
}

#[test]
fn tombstones_pass() {
    for with in ["hash", "last4", "redact", "erase", "keep_format"] {
        let passed = outcome(&mask(&["value.a", "key.x"], with), record(None, None));
        assert_eq!(passed, Ok(vec![(None, None)]), "{with}");
    }
}

#[test]
fn mistakes_are_found_at_load() {
    let rows = [
        (mask(&[], "redact"), "/0/reformat/mask/fields"),
        (mask(&["offset"], "redact"), "/0/reformat/mask/fields/0"),
        (mask(&["header.x-*"], "redact"), "/0/reformat/mask/fields/0"),
        (
            mask(&["key", "value"], "erase"),
            "/0/reformat/mask/fields/0",
        ),
        (
            json!({"mask": {"fields": ["value.a"], "with": "hash"}}),
            "/0/reformat/mask",
        ),
        (
            json!({"mask": {"fields": ["value.a"], "with": "hash", "key": ""}}),
            "/0/reformat/mask/key",
        ),
        (
            json!({"mask": {"fields": ["value.a"], "with": "redact", "key": "k"}}),
            "/0/reformat/mask/key",
        ),
    ];
    for (reformat, pointer) in rows {
        let faults = compile(&json!([{"reformat": reformat}])).expect_err("a fault");
        assert_eq!(faults[0].pointer, pointer, "{reformat}");
    }
}

#[test]
fn the_key_is_never_shown() {
    let steps =
        json!([{"reformat": {"mask": {"fields": ["value.a"], "with": "hash", "key": "canary"}}}]);
    let chain = compile(&steps).expect("a chain");
    assert!(!format!("{chain:?} {:?}", bind(&steps)).contains("canary"));
    let specs: Vec<&StepSpec> = chain.specs().collect();
    assert!(
        !serde_json::to_string(&specs)
            .expect("JSON")
            .contains("canary")
    );
    let other =
        json!([{"reformat": {"mask": {"fields": ["value.a"], "with": "hash", "key": "other"}}}]);
    assert_ne!(chain, compile(&other).expect("a chain"));
    let mut out = Vec::new();
    let bound = bind(&steps);
    bound
        .apply(record(None, Some(r#"{"a":"x"}"#)), &mut out)
        .expect("masked");
    assert_ne!(value_of(&out[0]), Some(r#"{"a":"x"}"#));
}
