//! `reformat`, word by word.

use super::chains::{bind, compile};
use crate::handler::FailureCode;
use crate::handler::sample::{headers_of, record, value_of, with_headers};
use crate::record::Record;
use serde_json::{Value, json};

/// Key and value of each output, as text.
pub(super) type Outputs = Vec<(Option<String>, Option<String>)>;

/// What one reformat makes of `record`.
pub(super) fn outcome(reformat: &Value, record: Record<'_>) -> Result<Outputs, FailureCode> {
    let bound = bind(&json!([{"reformat": reformat}]));
    let mut out = Vec::new();
    bound.apply(record, &mut out).map_err(|f| f.failure.code)?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let pair = |r: &Record<'_>| (r.key.as_deref().map(text), r.value.as_deref().map(text));
    Ok(out.iter().map(pair).collect())
}

/// The value that one reformat makes of `value`.
pub(super) fn value_after(reformat: Value, value: &str) -> Result<String, FailureCode> {
    let mut outputs = outcome(&reformat, record(Some("k"), Some(value)))?;
    Ok(outputs.remove(0).1.expect("a value"))
}

/// The key that one reformat makes beside `value`; it was `k`.
pub(super) fn key_after(reformat: Value, value: &str) -> Result<Option<String>, FailureCode> {
    let mut outputs = outcome(&reformat, record(Some("k"), Some(value)))?;
    Ok(outputs.remove(0).0)
}

/// The headers that one reformat makes of `headers`.
pub(super) fn headers_after(
    reformat: Value,
    headers: &[(&str, Option<&str>)],
) -> Vec<(String, Option<String>)> {
    let bytes = |text: &str| text.as_bytes().to_vec();
    let source: Vec<(Vec<u8>, Option<Vec<u8>>)> = headers
        .iter()
        .map(|(n, v)| (bytes(n), v.map(bytes)))
        .collect();
    let bound = bind(&json!([{"reformat": reformat}]));
    let mut out = Vec::new();
    let record = with_headers(
        record(Some("k"), Some(r#"{"a":1.50,"o":{"x":"y"},"n":null}"#)),
        &source,
    );
    bound.apply(record, &mut out).expect("headers");
    headers_of(&out[0])
}

/// Headers as texts.
pub(super) fn pairs(list: &[(&str, Option<&str>)]) -> Vec<(String, Option<String>)> {
    list.iter()
        .map(|(n, v)| ((*n).to_owned(), v.map(str::to_owned)))
        .collect()
}

#[test]
fn set_writes_fields_and_leaves_the_rest_as_spelled() {
    let value = r#"{ "n":1.00, "a":{"b":1} }"#;
    let rows = [
        (
            json!({"value.a.b": "x{key}\"{partition}"}),
            r#"{ "n":1.00, "a":{"b":"xk\"3"} }"#,
        ),
        (
            json!({"value.seen": true}),
            r#"{ "n":1.00, "a":{"b":1} ,"seen":true}"#,
        ),
        (
            json!({"value.x.y": null}),
            r#"{ "n":1.00, "a":{"b":1} ,"x":{"y":null}}"#,
        ),
        (
            json!({"value.l": [1, "a"]}),
            r#"{ "n":1.00, "a":{"b":1} ,"l":[1,"a"]}"#,
        ),
        (
            json!({"value.a": {"from": "value.n"}}),
            r#"{ "n":1.00, "a":1.00 }"#,
        ),
        (
            json!({"value.n": {"from": "value.a"}}),
            r#"{ "n":{"b":1}, "a":{"b":1} }"#,
        ),
        (
            json!({"value.n": {"from": "key"}}),
            r#"{ "n":"k", "a":{"b":1} }"#,
        ),
        (
            json!({"value.n": {"from": "offset"}}),
            r#"{ "n":42, "a":{"b":1} }"#,
        ),
        (json!({"value": {"from": "value.a"}}), r#"{"b":1}"#),
        (json!({"value": "{topic}"}), "t"),
        (
            json!({"value.n": 1, "value.a": {"from": "value.n"}}),
            r#"{ "n":1, "a":1 }"#,
        ),
    ];
    for (set, expected) in rows {
        assert_eq!(
            value_after(json!({"set": set}), value).as_deref(),
            Ok(expected),
            "{set}"
        );
    }
}

#[test]
fn set_writes_keys() {
    let value = r#"{"id":1.50,"s":"x","n":null}"#;
    let rows = [
        (json!({"from": "value.id"}), Ok(Some("1.50".to_owned()))),
        (json!({"from": "value.s"}), Ok(Some("x".to_owned()))),
        (json!({"from": "value.n"}), Ok(None)),
        (json!({"from": "value.none"}), Err(FailureCode::Absent)),
        (json!(null), Ok(None)),
        (json!(""), Ok(Some(String::new()))),
        (json!("{value.s}-{value.n}"), Err(FailureCode::Absent)),
    ];
    for (source, expected) in rows {
        assert_eq!(
            key_after(json!({"set": {"key": source}}), value),
            expected,
            "{source}"
        );
    }
    let field = json!({"set": {"key.b": 2}});
    assert_eq!(
        outcome(&field, record(Some(r#"{"a":1}"#), None)).expect("a key")[0]
            .0
            .as_deref(),
        Some(r#"{"a":1,"b":2}"#)
    );
    assert_eq!(
        outcome(&field, record(None, None)).expect("a null key")[0].0,
        None
    );
    assert_eq!(
        outcome(&field, record(Some("k"), None)),
        Err(FailureCode::NotJson)
    );
}

#[test]
fn set_replaces_all_headers_of_a_name_by_one() {
    let before = [
        ("a", Some("1")),
        ("b", None),
        ("a", Some("2")),
        ("c", Some("")),
    ];
    let after = |source: Value| headers_after(json!({"set": {"header.a": source}}), &before);
    let expected = |value: Option<&str>| pairs(&[("a", value), ("b", None), ("c", Some(""))]);
    assert_eq!(after(json!("{source}")), expected(Some("eu")));
    assert_eq!(after(json!({"from": "header.a"})), expected(Some("2")));
    assert_eq!(after(json!({"from": "header.b"})), expected(None));
    assert_eq!(after(json!({"from": "value.a"})), expected(Some("1.50")));
    assert_eq!(
        after(json!({"from": "value.o"})),
        expected(Some(r#"{"x":"y"}"#))
    );
    assert_eq!(after(json!({"from": "value.n"})), expected(None));
    assert_eq!(after(json!(null)), expected(None));
    assert_eq!(after(json!(7)), expected(Some("7")));
    let added = headers_after(json!({"set": {"header.x.y": ""}}), &[("a", None)]);
    assert_eq!(added, pairs(&[("a", None), ("x.y", Some(""))]));
}

#[test]
fn unset_comes_before_set() {
    let before = [("x-1", Some("1")), ("a", None), ("x-2", None)];
    let reformat = json!({"set": {"header.x-1": "new"}, "unset": ["header.x-*"]});
    assert_eq!(
        headers_after(reformat, &before),
        pairs(&[("a", None), ("x-1", Some("new"))])
    );
    let none = headers_after(json!({"unset": ["header.*"]}), &before);
    assert!(none.is_empty());
}

#[test]
fn unset_removes_fields_and_ignores_what_is_not_there() {
    let value = r#"{"user":{"phone":1,"x": 2},"i":[{"s":1},{}],"user":{"phone":3}}"#;
    let reformat = json!({"unset": ["value.user.phone", "value.i[*].s", "value.none.x"]});
    assert_eq!(
        value_after(reformat, value).as_deref(),
        Ok(r#"{"user":{"x": 2},"i":[{},{}],"user":{}}"#)
    );
    assert!(compile(&json!([{"reformat": {"unset": ["value"]}}])).is_err());
    assert!(compile(&json!([{"reformat": {"unset": ["topic"]}}])).is_err());
}

#[test]
fn steps_on_the_value_let_null_pass_and_refuse_what_is_not_json() {
    let reformats = [
        json!({"set": {"value.a": 1}}),
        json!({"set": {"key": {"from": "value.a"}}}),
        json!({"set": {"header.x": "{value.a}"}}),
        json!({"unset": ["value.a"]}),
        json!({"split": {"array": "value.a"}}),
        json!({"rekey": {"from": "value.a"}}),
        json!({"rekey": {"from": ["value.a", "topic"]}}),
        json!({"hoist": "payload"}),
        json!({"extract": "value.a"}),
    ];
    for reformat in reformats {
        let null = outcome(&reformat, record(Some("k"), None));
        assert_eq!(null, Ok(vec![(Some("k".to_owned()), None)]), "{reformat}");
        for value in ["", "x", "{\"a\":1"] {
            let failed = outcome(&reformat, record(Some("k"), Some(value)));
            assert_eq!(failed, Err(FailureCode::NotJson), "{reformat} {value:?}");
        }
    }
}

#[test]
fn set_fails_where_a_parent_is_no_object() {
    let set = |path: &str| value_after(json!({"set": {path: 1}}), r#"{"a":[1],"s":"x"}"#);
    assert_eq!(set("value.a[0]").as_deref(), Ok(r#"{"a":[1],"s":"x"}"#));
    assert_eq!(set("value.a[1]"), Err(FailureCode::Absent));
    assert_eq!(set("value.s.x"), Err(FailureCode::WrongType));
    assert_eq!(set("value.a.x"), Err(FailureCode::WrongType));
}

#[test]
fn bytes_that_are_no_text_cannot_become_json() {
    let bound = bind(&json!([{"reformat": {"set": {"value.k": {"from": "key"}}}}]));
    let mut record = record(None, Some("{}"));
    record.key = Some(b"\xff"[..].into());
    let failure = bound.apply(record, &mut Vec::new()).expect_err("no text");
    assert_eq!(failure.failure.code, FailureCode::WrongType);
}

#[test]
fn split_makes_one_record_per_element() {
    let value = r#"{"order_id":1.0,"c":{"n":"x"},"items":[{"s": 1},2],"e":[]}"#;
    let split = |split: Value| {
        let outputs = outcome(&json!({"split": split}), record(Some("k"), Some(value)))?;
        Ok::<_, FailureCode>(
            outputs
                .into_iter()
                .filter_map(|(_, v)| v)
                .collect::<Vec<_>>(),
        )
    };
    let rows = [
        (
            json!({"array": "value.items"}),
            Ok(vec![r#"{"s": 1}"#, "2"]),
        ),
        (
            json!({"array": "value.items", "into": "value.item", "carry": ["value.order_id", "value.c.n"]}),
            Ok(vec![
                r#"{"order_id":1.0,"c":{"n":"x"},"item":{"s": 1}}"#,
                r#"{"order_id":1.0,"c":{"n":"x"},"item":2}"#,
            ]),
        ),
        (json!({"array": "value.e"}), Ok(vec![])),
        (
            json!({"array": "value.e", "when_empty": "keep"}),
            Ok(vec![value]),
        ),
        (
            json!({"array": "value.e", "when_empty": "fail"}),
            Err(FailureCode::Absent),
        ),
        (json!({"array": "value.none"}), Err(FailureCode::Absent)),
        (json!({"array": "value.c"}), Err(FailureCode::WrongType)),
        (
            json!({"array": "value.items", "into": "value.i", "carry": ["value.none"]}),
            Err(FailureCode::Absent),
        ),
    ];
    for (spec, expected) in rows {
        let expected = expected.map(|v| v.into_iter().map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(split(spec.clone()), expected, "{spec}");
    }
}

#[test]
fn split_numbers_its_outputs_and_keeps_the_rest_of_the_record() {
    let headers = vec![(b"a".to_vec(), Some(b"1".to_vec()))];
    let bound =
        bind(&json!([{"reformat": {"split": {"array": "value", "index_header": "item-index"}}}]));
    let mut out = Vec::new();
    let record = with_headers(record(Some("k"), Some("[5,6]")), &headers);
    bound.apply(record, &mut out).expect("outputs");
    for (index, record) in out.iter().enumerate() {
        let number = index.to_string();
        assert_eq!(
            headers_of(record),
            pairs(&[("a", Some("1")), ("item-index", Some(&number))])
        );
        assert_eq!(
            (record.key.as_deref(), record.timestamp),
            (Some(&b"k"[..]), Some(1234))
        );
    }
    assert_eq!(value_of(&out[1]), Some("6"));
}

#[test]
fn rekey_makes_the_key() {
    let value = r#"{"id":"a\"b","n":1.0,"o":{"x":1},"z":null}"#;
    let rows = [
        (json!({"from": "value.id"}), Ok(Some("a\"b"))),
        (
            json!({"from": "value.id", "as": "json"}),
            Ok(Some(r#""a\"b""#)),
        ),
        (json!({"from": "value.o"}), Ok(Some(r#"{"x":1}"#))),
        (json!({"from": "value.z"}), Ok(None)),
        (json!({"from": "value.z", "as": "json"}), Ok(Some("null"))),
        (
            json!({"from": ["value.id", "value.n", "topic", "key"]}),
            Ok(Some(r#"["a\"b",1.0,"t","k"]"#)),
        ),
        (json!({"from": "value.none"}), Err(FailureCode::Absent)),
        (
            json!({"from": ["value.id", "header.none"]}),
            Err(FailureCode::Absent),
        ),
    ];
    for (spec, expected) in rows {
        let expected = expected.map(|v| v.map(str::to_owned));
        assert_eq!(key_after(json!({"rekey": spec}), value), expected, "{spec}");
    }
}

#[test]
fn hoist_and_extract_undo_each_other() {
    let value = r#" {"a": 1.00} "#;
    let hoisted = value_after(json!({"hoist": "pay\"load"}), value).expect("hoisted");
    assert_eq!(hoisted, r#"{"pay\"load":{"a": 1.00}}"#);
    let extract = json!({"extract": r#"value["pay\"load"]"#});
    assert_eq!(
        value_after(extract, &hoisted).as_deref(),
        Ok(r#"{"a": 1.00}"#)
    );
    assert_eq!(
        value_after(json!({"extract": "value.b"}), value),
        Err(FailureCode::Absent)
    );
    assert_eq!(
        value_after(json!({"extract": "value.b"}), r#"{"b":null}"#).as_deref(),
        Ok("null")
    );
    assert!(compile(&json!([{"reformat": {"extract": "value"}}])).is_err());
}
