//! The scanner, on documents right and wrong.

use super::*;
use crate::handler::FailureCode;

fn name(text: &str) -> Segment {
    Segment::Name(text.to_owned())
}

fn found<'d>(document: &'d str, path: &[Segment]) -> Option<&'d str> {
    find(document.as_bytes(), path)
        .expect("valid JSON")
        .map(|span| &document[span])
}

#[test]
fn finds_by_name_and_index() {
    let document = r#" {"a": {"b": [1, {"c": "x"}]}, "d": 2.50} "#;
    assert_eq!(found(document, &[name("d")]), Some("2.50"));
    let path = [name("a"), name("b"), Segment::Index(1), name("c")];
    assert_eq!(found(document, &path), Some(r#""x""#));
    assert_eq!(found(document, &[name("a"), Segment::Index(0)]), None);
    assert_eq!(found(document, &[name("d"), name("x")]), None);
}

#[test]
fn the_last_of_a_repeated_name_wins_at_every_level() {
    assert_eq!(found(r#"{"a":1,"a":2}"#, &[name("a")]), Some("2"));
    let document = r#"{"a":{"b":1},"a":{"c":2}}"#;
    assert_eq!(found(document, &[name("a"), name("b")]), None);
}

#[test]
fn escaped_names_are_the_name() {
    assert_eq!(found(r#"{"\u0061\n":1}"#, &[name("a\n")]), Some("1"));
}

#[test]
fn the_whole_document_is_checked() {
    let failure = find(br#"{"a":1} x"#, &[name("a")]).expect_err("trailing text");
    assert_eq!(failure.code, FailureCode::NotJson);
    assert_eq!(failure.detail, "not JSON at byte 8: expected the end");
    let failure = find(b"{\"a\":\"\xff\"}", &[name("b")]).expect_err("not UTF-8");
    assert_eq!(
        failure.detail,
        "not JSON at byte 6: bytes that are not UTF-8"
    );
    for wrong in [
        "",
        " ",
        "{",
        "[1,]",
        "{\"a\":}",
        "01",
        "1.",
        "-",
        "1e",
        "\"\\x\"",
        "nul",
        "{a:1}",
        "\"\u{1}\"",
    ] {
        assert_eq!(
            root(wrong.as_bytes()).map_err(|f| f.code),
            Err(FailureCode::NotJson),
            "{wrong:?}"
        );
    }
}

#[test]
fn depth_is_limited() {
    let nested = |depth: usize| [vec![b'['; depth], vec![b']'; depth]].concat();
    assert!(root(&nested(MAX_DEPTH)).is_ok());
    let failure = root(&nested(MAX_DEPTH + 1)).expect_err("too deep");
    assert_eq!(failure.code, FailureCode::TooDeep);
}
