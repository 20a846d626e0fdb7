//! `envelope` and `flatten`, as steps.

use super::chains::{bind, compile};
use super::reformats::{outcome, value_after};
use crate::handler::FailureCode;
use crate::handler::sample::{record, value_of, with_headers};
use serde_json::json;

#[test]
fn an_envelope_says_where_the_record_came_from_and_what_it_was() {
    let headers = vec![
        (b"a".to_vec(), Some(b"1".to_vec())),
        (b"a".to_vec(), None),
        (b"q\"".to_vec(), Some(b"".to_vec())),
    ];
    let bound = bind(&json!([
        {"rename": {"topic": "elsewhere"}},
        {"reformat": {"timestamp": "now"}},
        {"reformat": {"envelope": true}},
    ]));
    let mut out = Vec::new();
    let of = with_headers(record(Some("{\"k\":1}"), Some(" {\"n\": 1.00} ")), &headers);
    bound.apply(of, &mut out).expect("an envelope");
    let expected = concat!(
        r#"{"source":{"cluster":"eu","topic":"t","partition":3,"offset":42,"timestamp":1234},"#,
        r#""key":"{\"k\":1}","headers":[["a","1"],["a",null],["q\"",""]],"value":{"n": 1.00}}"#
    );
    assert_eq!(value_of(&out[0]), Some(expected));
    assert_eq!(out[0].key.as_deref(), Some(&b"{\"k\":1}"[..]));
}

#[test]
fn what_an_envelope_cannot_say_fails() {
    let envelope = json!({"envelope": true});
    let nulls = outcome(&envelope, record(None, Some("null"))).expect("an envelope");
    let value = nulls[0].1.as_deref().expect("a value");
    assert!(
        value.ends_with(r#""key":null,"headers":[],"value":null}"#),
        "{value}"
    );
    assert_eq!(
        outcome(&envelope, record(None, None)),
        Ok(vec![(None, None)])
    );
    assert_eq!(
        value_after(envelope.clone(), "text"),
        Err(FailureCode::NotJson)
    );
    let bound = bind(&json!([{"reformat": envelope}]));
    let mut no_text = record(None, Some("{}"));
    no_text.key = Some(b"\xff"[..].into());
    let failure = bound.apply(no_text, &mut Vec::new()).expect_err("no text");
    assert_eq!(failure.failure.code, FailureCode::WrongType);
    let deep = format!("{}{}", "[".repeat(128), "]".repeat(128));
    assert_eq!(value_after(envelope, &deep), Err(FailureCode::TooDeep));
    assert!(compile(&json!([{"reformat": {"envelope": false}}])).is_err());
}

#[test]
fn what_is_put_deeper_may_not_pass_the_limit() {
    let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let rows = [
        json!({"hoist": "a"}),
        json!({"set": {"value[0]": {"from": "value"}}}),
        json!({"split": {"array": "value", "into": "value.a.b"}}),
    ];
    for reformat in rows {
        assert!(
            value_after(reformat.clone(), &deep(127)).is_ok(),
            "{reformat}"
        );
        assert_eq!(
            value_after(reformat.clone(), &deep(128)),
            Err(FailureCode::TooDeep),
            "{reformat}"
        );
    }
}

#[test]
fn flatten_has_a_separator() {
    let value = r#"{"a":{"b":1}}"#;
    let rows = [
        (json!({"flatten": {}}), Ok(r#"{"a.b":1}"#)),
        (json!({"flatten": {"separator": "_"}}), Ok(r#"{"a_b":1}"#)),
        (json!({"flatten": {"separator": "\""}}), Ok(r#"{"a\"b":1}"#)),
    ];
    for (reformat, expected) in rows {
        assert_eq!(value_after(reformat, value).as_deref(), expected);
    }
    assert!(compile(&json!([{"reformat": {"flatten": {"separator": ""}}}])).is_err());
    let passed = outcome(&json!({"flatten": {}}), record(None, None));
    assert_eq!(passed, Ok(vec![(None, None)]));
}
