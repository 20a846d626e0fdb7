//! `rename`, word by word.

use super::chains::{bind, bind_to, compile};
use crate::handler::sample::{headers_of, record, value_of, with_headers};
use crate::handler::{FailureCode, Verdict};
use crate::record::Record;
use serde_json::{Value, json};

fn topic_of(steps: &Value, record: Record<'_>) -> Result<String, FailureCode> {
    let bound = bind(steps);
    let mut out = Vec::new();
    match bound.apply(record, &mut out) {
        Ok(_) => Ok(out[0].topic.to_string()),
        Err(failure) => Err(failure.failure.code),
    }
}

#[test]
fn static_templates_are_resolved_when_bound() {
    let rows = [
        ("{source}.{topic}", "eu.clicks-pay-2"),
        ("{target}_{route}_{source_topic}", "us_r_clicks-pay-2"),
        ("clicks-{team}-{major}", "clicks-pay-2"),
        ("fixed", "fixed"),
    ];
    for (template, expected) in rows {
        let steps = json!([{"rename": {"topic": template}}]);
        let regex = r"^clicks-(?<team>[a-z]+)-(?<major>\d+)$";
        let bound = bind_to(&steps, "clicks-pay-2", regex).expect("bound");
        assert_eq!(bound.pass_through(), Some(expected));
        assert_eq!(bound.targets().known, [expected]);
        assert!(bound.targets().by_content.is_empty());
    }
}

#[test]
fn renames_build_on_each_other() {
    let steps = json!([
        {"rename": {"topic": "a.{topic}"}},
        {"rename": {"topic": "b.{topic}"}},
        {"rename": {"topic": "{topic}.{source_topic}"}},
    ]);
    assert_eq!(bind(&steps).pass_through(), Some("b.a.t.t"));
}

#[test]
fn what_a_topic_cannot_fill_is_a_fault_of_binding() {
    let fault = |steps: Value, topic: &str, regex: &str| {
        let fault = bind_to(&steps, topic, regex).expect_err("a fault");
        (fault.pointer, fault.message)
    };
    let (pointer, message) = fault(json!([{"rename": {"topic": "x-{team}"}}]), "t", "t");
    assert_eq!(pointer, "/0");
    assert!(message.contains("no capture"), "{message}");
    let (_, message) = fault(json!([{"rename": {"topic": "{a}"}}]), "a.", "a(?<a>.)");
    assert!(message.contains("no legal topic name"), "{message}");
    let (_, message) = fault(json!([]), "t", "(?<source>t)");
    assert!(message.contains("called like a placeholder"), "{message}");
    let (_, message) = fault(
        json!([{"reformat": {"set": {"header.a": "{team}"}}}]),
        "t",
        "t",
    );
    assert!(message.contains("no capture"), "{message}");
}

#[test]
fn topics_named_by_content_need_allow() {
    let steps = json!([{"rename": {"topic": "orders-{value.region}", "allow": ["orders-na", "orders-a.+"]}}]);
    let bound = bind(&steps);
    assert_eq!(bound.pass_through(), None);
    assert_eq!(bound.targets().known, ["orders-na"]);
    assert_eq!(bound.targets().by_content.len(), 1);
    let rows = [
        (Some(r#"{"region":"na"}"#), Ok("orders-na".to_owned())),
        (Some(r#"{"region":"asia"}"#), Ok("orders-asia".to_owned())),
        (Some(r#"{"region":"eu"}"#), Err(FailureCode::DeniedTopic)),
        (Some(r#"{"region":"na\nx"}"#), Err(FailureCode::DeniedTopic)),
        (Some(r#"{"region":"a b"}"#), Err(FailureCode::Template)),
        (Some(r#"{"region":null}"#), Err(FailureCode::Absent)),
        (Some("{}"), Err(FailureCode::Absent)),
        (None, Err(FailureCode::Absent)),
        (Some("x"), Err(FailureCode::NotJson)),
    ];
    for (value, expected) in rows {
        assert_eq!(topic_of(&steps, record(None, value)), expected, "{value:?}");
    }
    assert!(compile(&json!([{"rename": {"topic": "x-{partition}"}}])).is_err());
}

#[test]
fn the_topic_so_far_after_a_topic_by_content_needs_allow_too() {
    let by_content = json!({"rename": {"topic": "{key}", "allow": ["[a-z]+"]}});
    let faults =
        compile(&json!([by_content, {"rename": {"topic": "x.{topic}"}}])).expect_err("a fault");
    assert_eq!(faults[0].pointer, "/1/rename/topic");
    let steps = json!([by_content, {"rename": {"topic": "x.{topic}", "allow": ["x[.].+"]}}]);
    assert_eq!(
        topic_of(&steps, record(Some("abc"), None)).as_deref(),
        Ok("x.abc")
    );
    // A fixed name makes the topic known again.
    assert!(
        compile(
            &json!([by_content, {"rename": {"topic": "y"}}, {"rename": {"topic": "x.{topic}"}}])
        )
        .is_ok()
    );
}

#[test]
fn the_first_choice_that_holds_is_taken() {
    let steps = json!([{"rename": {"to": [
        {"topic": "orders-eu", "when": {"value.country": ["PT", "ES"]}},
        {"topic": "big-{topic}", "when": {"value.amount": {"gt": 100}}},
    ]}}]);
    assert_eq!(bind(&steps).targets().known, ["orders-eu", "big-t"]);
    let rows = [
        (
            r#"{"country":"PT","amount":200}"#,
            Ok("orders-eu".to_owned()),
        ),
        (r#"{"country":"FR","amount":200}"#, Ok("big-t".to_owned())),
        (r#"{"country":"FR"}"#, Err(FailureCode::DeniedTopic)),
    ];
    for (value, expected) in rows {
        assert_eq!(topic_of(&steps, record(None, Some(value))), expected);
    }
    assert!(compile(&json!([{"rename": {"to": [{"topic": "a"}, {"topic": "b"}]}}])).is_err());
}

#[test]
fn a_conditional_rename_may_leave_the_name() {
    let steps = json!([
        {"rename": {"topic": "eu.{topic}"}, "when": {"header.region": "eu"}},
        {"rename": {"topic": "all.{topic}"}},
    ]);
    let bound = bind(&steps);
    assert_eq!(bound.targets().known, ["all.eu.t", "all.t"]);
    assert_eq!(bound.pass_through(), None);
    assert_eq!(topic_of(&steps, record(None, None)).as_deref(), Ok("all.t"));
    let headers = vec![(b"region".to_vec(), Some(b"eu".to_vec()))];
    let record = with_headers(record(None, None), &headers);
    assert_eq!(topic_of(&steps, record).as_deref(), Ok("all.eu.t"));
}

#[test]
fn a_header_keeps_place_value_and_repeats() {
    let headers = vec![
        (b"a".to_vec(), Some(b"1".to_vec())),
        (b"\xff".to_vec(), None),
        (b"a".to_vec(), None),
        (b"c".to_vec(), Some(b"".to_vec())),
    ];
    let bound = bind(&json!([{"rename": {"header": {"a": "b"}}}]));
    let mut out = Vec::new();
    let outcome = bound.apply(with_headers(record(None, None), &headers), &mut out);
    assert_eq!(outcome, Ok(Verdict::Forward));
    let text = |name: &str, value: Option<&str>| (name.to_owned(), value.map(str::to_owned));
    let expected = [
        text("b", Some("1")),
        text("\u{fffd}", None),
        text("b", None),
        text("c", Some("")),
    ];
    assert_eq!(headers_of(&out[0]), expected);
    assert_eq!(out[0].headers.get(1), Some((&b"\xff"[..], None)));
    assert!(compile(&json!([{"rename": {"header": {"header.a": "b"}}}])).is_err());
    assert!(compile(&json!([{"rename": {"header": {"a-*": "b-*"}}}])).is_err());
}

#[test]
fn a_field_stays_at_its_place() {
    let bound =
        bind(&json!([{"rename": {"field": {"value.a.usr": "value.a.user", "key.k": "key.id"}}}]));
    let mut out = Vec::new();
    let value = r#"{ "a":{"x":1.0, "usr" :{"n":1}}, "usr":2}"#;
    let outcome = bound.apply(record(Some(r#"{"k":1}"#), Some(value)), &mut out);
    assert_eq!(outcome, Ok(Verdict::Forward));
    assert_eq!(
        value_of(&out[0]),
        Some(r#"{ "a":{"x":1.0, "user" :{"n":1}}, "usr":2}"#)
    );
    assert_eq!(out[0].key.as_deref(), Some(&br#"{"id":1}"#[..]));
    let bound = bind(&json!([{"rename": {"field": {"value.a": "value.b"}}}]));
    let mut out = Vec::new();
    assert_eq!(
        bound.apply(record(None, None), &mut out),
        Ok(Verdict::Forward)
    );
    assert_eq!(value_of(&out[0]), None);
    let failure = bound
        .apply(record(None, Some("{a")), &mut out)
        .expect_err("no JSON");
    assert_eq!(failure.failure.code, FailureCode::NotJson);
}
