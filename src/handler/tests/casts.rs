//! `cast`: what becomes what, and what fails rather than loses something.

use super::chains::compile;
use super::reformats::{key_after, outcome, value_after};
use crate::handler::FailureCode;
use crate::handler::sample::record;
use serde_json::json;

/// `spelled` as a field, cast to `to`; `Err` is `wrong_type` unless another code is named.
fn cast(spelled: &str, to: &str) -> Result<String, FailureCode> {
    let value = format!(r#"{{ "n":1.0, "a" : {spelled} }}"#);
    let cast = value_after(json!({"cast": {"value.a": to}}), &value)?;
    let field = cast.strip_prefix(r#"{ "n":1.0, "a" : "#);
    Ok(field
        .and_then(|f| f.strip_suffix(" }"))
        .expect("the rest as spelled")
        .to_owned())
}

#[test]
fn each_type_from_each_type() {
    const WRONG: Result<&str, FailureCode> = Err(FailureCode::WrongType);
    let rows = [
        // to a text: numbers as they are spelled
        ("1.50", "string", Ok("\"1.50\"")),
        (
            "123456789012345678901234567890",
            "string",
            Ok("\"123456789012345678901234567890\""),
        ),
        ("-1e+2", "string", Ok("\"-1e+2\"")),
        ("true", "string", Ok("\"true\"")),
        ("\"\\u0061\"", "string", Ok("\"\\u0061\"")),
        ("\"\\ud800\"", "string", Ok("\"\\ud800\"")),
        ("{}", "string", WRONG),
        ("[1]", "string", WRONG),
        // to a whole number: none is rounded, none is cut
        ("12", "int", Ok("12")),
        ("-0", "int", Ok("-0")),
        ("1.0", "int", Ok("1")),
        ("1e2", "int", Ok("100")),
        ("12.50e1", "int", Ok("125")),
        ("1.5", "int", WRONG),
        ("1e-1", "int", WRONG),
        ("9007199254740993.0", "int", Ok("9007199254740993")),
        ("1e1000", "int", Err(FailureCode::TooLarge)),
        ("\"12\"", "int", Ok("12")),
        ("\"1e2\"", "int", Ok("100")),
        ("\"-1.0\"", "int", Ok("-1")),
        (
            "\"123456789012345678901234567890\"",
            "int",
            Ok("123456789012345678901234567890"),
        ),
        ("\"007\"", "int", WRONG),
        ("\" 7\"", "int", WRONG),
        ("\"+7\"", "int", WRONG),
        ("\"1.5\"", "int", WRONG),
        ("\"\"", "int", WRONG),
        ("true", "int", Ok("1")),
        ("false", "int", Ok("0")),
        ("[]", "int", WRONG),
        // to a number with a point: every digit stays
        ("12", "float", Ok("12.0")),
        ("12.50", "float", Ok("12.50")),
        ("1e2", "float", Ok("1e2")),
        (
            "0.1234567890123456789012345678901",
            "float",
            Ok("0.1234567890123456789012345678901"),
        ),
        ("\"12\"", "float", Ok("12.0")),
        ("\"12.50\"", "float", Ok("12.50")),
        ("\"NaN\"", "float", WRONG),
        ("\"1,5\"", "float", WRONG),
        ("true", "float", Ok("1.0")),
        ("{}", "float", WRONG),
        // to a truth: only what says so
        ("true", "bool", Ok("true")),
        ("1", "bool", Ok("true")),
        ("0.0", "bool", Ok("false")),
        ("1.5", "bool", WRONG),
        ("2", "bool", WRONG),
        ("\"TRUE\"", "bool", Ok("true")),
        ("\"false\"", "bool", Ok("false")),
        ("\"1\"", "bool", WRONG),
        ("\"yes\"", "bool", WRONG),
        // null stays null
        ("null", "string", Ok("null")),
        ("null", "int", Ok("null")),
        ("null", "float", Ok("null")),
        ("null", "bool", Ok("null")),
    ];
    for (spelled, to, expected) in rows {
        let got = cast(spelled, to);
        assert_eq!(
            got.as_deref().map_err(|c| *c),
            expected,
            "{spelled} to {to}"
        );
    }
}

#[test]
fn everything_that_a_path_matches_is_cast() {
    let value = r#"{"i":[{"q":"1"},{"q":2.0,"q":"3"},{}],"k":1}"#;
    let cast = json!({"cast": {"value.i[*].q": "int", "value.k": "string", "value.none": "int"}});
    assert_eq!(
        value_after(cast, value).as_deref(),
        Ok(r#"{"i":[{"q":1},{"q":2,"q":3},{}],"k":"1"}"#)
    );
}

#[test]
fn keys_and_values_as_a_whole_are_documents() {
    assert_eq!(
        value_after(json!({"cast": {"value": "string"}}), " 1.50 ").as_deref(),
        Ok(" \"1.50\" ")
    );
    assert_eq!(
        key_after(json!({"cast": {"key": "string"}}), "{}"),
        Err(FailureCode::NotJson)
    );
    let null = value_after(json!({"cast": {"value": "int"}}), "null");
    assert_eq!(null.as_deref(), Ok("null"));
    let failed = value_after(json!({"cast": {"value.a": "int"}}), "{\"a\":1");
    assert_eq!(failed, Err(FailureCode::NotJson));
    let passed = outcome(
        &json!({"cast": {"value.a": "int", "value": "int"}}),
        record(None, None),
    );
    assert_eq!(passed, Ok(vec![(None, None)]));
}

#[test]
fn mistakes_are_found_at_load() {
    let rows = [
        (json!({}), ""),
        (json!({"value.a": "decimal"}), "/value.a"),
        (json!({"header.a": "int"}), "/header.a"),
        (json!({"offset": "int"}), "/offset"),
    ];
    for (entries, pointer) in rows {
        let faults = compile(&json!([{"reformat": {"cast": entries}}])).expect_err("a fault");
        assert_eq!(faults[0].pointer, format!("/0/reformat/cast{pointer}"));
    }
}
