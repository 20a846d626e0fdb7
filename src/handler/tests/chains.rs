//! Compiling, binding and applying chains.

use crate::config::pattern::Pattern;
use crate::config::spec::OnError;
use crate::handler::sample::{headers_of, record, value_of, with_headers};
use crate::handler::{
    Binding, BoundChain, Chain, ChainFault, Clock, Cost, Failure, FailureCode, Handler, Observer,
    Reads, Registry, StepFailure, StepSpec, StepView, Verdict,
};
use crate::record::{Headers, Record};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::sync::Arc;

/// Handlers that an embedding program might bring.
enum Brought {
    Panics,
    Doubles,
    Swells,
}

impl Handler for Brought {
    fn reads(&self) -> Reads {
        Reads::Headers
    }

    fn handle<'a>(
        &'a self,
        mut record: Record<'a>,
        out: &mut Vec<Record<'a>>,
    ) -> Result<(), Failure> {
        if let Brought::Swells = self {
            record.value = Some(Cow::Owned(vec![b'x'; 100]));
        }
        out.push(record.clone());
        match self {
            Brought::Swells => {}
            Brought::Panics => panic!("on purpose"),
            Brought::Doubles => out.push(record),
        }
        Ok(())
    }
}

pub(super) fn compile(steps: &Value) -> Result<Chain, Vec<ChainFault>> {
    let steps: Vec<StepSpec> = serde_json::from_value(steps.clone()).expect("steps");
    let mut registry = Registry::default();
    registry.register("panics", Arc::new(Brought::Panics));
    registry.register("doubles", Arc::new(Brought::Doubles));
    registry.register("swells", Arc::new(Brought::Swells));
    Chain::compile(steps, &registry)
}

/// What the clock of the tests says.
pub(super) const NOW: i64 = 1_700_000_000_000;

pub(super) fn bind_to(steps: &Value, topic: &str, regex: &str) -> Result<BoundChain, ChainFault> {
    let selected_by = Pattern::new(regex).expect("a pattern");
    compile(steps).expect("a chain").bind(&Binding {
        route: "r",
        source: "eu",
        target: "us",
        topic,
        selected_by: &selected_by,
        clock: Clock::Fixed(NOW),
        record_bytes: None,
    })
}

/// Bound with `limits.record`.
pub(super) fn bind_within(steps: &Value, record_bytes: u64) -> BoundChain {
    let selected_by = Pattern::new("t").expect("a pattern");
    let bound = compile(steps).expect("a chain").bind(&Binding {
        route: "r",
        source: "eu",
        target: "us",
        topic: "t",
        selected_by: &selected_by,
        clock: Clock::Fixed(NOW),
        record_bytes: Some(record_bytes),
    });
    bound.expect("bound")
}

pub(super) fn bind(steps: &Value) -> BoundChain {
    bind_to(steps, "t", "^t$").expect("bound")
}

fn code(outcome: Result<Verdict, StepFailure>) -> (usize, FailureCode) {
    let failure = outcome.expect_err("a failure");
    (failure.step, failure.failure.code)
}

#[test]
fn an_empty_chain_passes_through() {
    let chain = compile(&json!([])).expect("a chain");
    assert_eq!(
        (chain.cost(), chain.reads()),
        (Cost::PassThrough, Reads::Nothing)
    );
    let bound = bind(&json!([]));
    assert_eq!(bound.pass_through(), Some("t"));
    assert_eq!(bound.targets().known, ["t"]);
}

#[test]
fn what_no_step_touches_stays_borrowed() {
    let headers = vec![
        (b"\xff\xfe".to_vec(), None),
        (b"a".to_vec(), Some(b"1".to_vec())),
    ];
    let steps = json!([
        {"rename": {"topic": "{source}.{topic}"}},
        {"filter": {"keep": {"value.a": 1}}},
        {"reformat": {"unset": ["header.none", "value.none"]}},
        {"rename": {"header": {"none": "b"}}},
        {"rename": {"field": {"value.none": "value.b"}}},
    ]);
    let bound = bind(&steps);
    let mut out = Vec::new();
    let record = with_headers(record(Some("k"), Some(r#"{"a": 1}"#)), &headers);
    assert_eq!(bound.apply(record, &mut out), Ok(Verdict::Forward));
    assert!(matches!(out[0].topic, Cow::Borrowed("eu.t")));
    assert!(matches!(out[0].key, Some(Cow::Borrowed(_))));
    assert!(matches!(out[0].value, Some(Cow::Borrowed(_))));
    assert!(matches!(out[0].headers, Headers::Untouched(_)));
}

#[test]
fn the_cost_class_is_that_of_the_dearest_step() {
    let rows = [
        (
            json!([{"rename": {"topic": "{source}.{topic}"}}]),
            Cost::PassThrough,
        ),
        (json!([{"filter": {"sample": "50%"}}]), Cost::Headers),
        (
            json!([{"rename": {"topic": "x"}, "when": {"partition": 1}}]),
            Cost::Headers,
        ),
        (
            json!([{"filter": {"drop": {"header.a": "b"}}}]),
            Cost::Headers,
        ),
        (json!([{"use": "doubles"}]), Cost::Headers),
        (
            json!([{"reformat": {"set": {"header.a": "{source}"}}}]),
            Cost::Headers,
        ),
        (json!([{"filter": {"drop": "tombstone"}}]), Cost::Fields),
        (
            json!([{"filter": {"drop": {"value.a": 1}}}, {"filter": {"drop": {"header.a": 1}}}]),
            Cost::Fields,
        ),
        (json!([{"reformat": {"set": {"value.a": 1}}}]), Cost::Value),
        (json!([{"reformat": {"hoist": "payload"}}]), Cost::Value),
    ];
    for (steps, cost) in rows {
        assert_eq!(compile(&steps).expect("a chain").cost(), cost, "{steps}");
    }
}

#[test]
fn every_fault_of_a_chain_is_found_at_its_place() {
    let faults = compile(&json!([
        {},
        {"filter": {"keep": {"value.amount": {"gt": null}}}},
        {"filter": {"drop": "empty"}, "use": "panics"},
        {"use": "pancis"},
        {"reformat": {"mask": {"fields": ["value.a", "topic"], "with": "hash"}}},
        {"reformat": {"set": {"value.a": {"expr": "1 +"}, "topic": "x", "value.b": {"from": "valu"}}}},
        {"rename": {"topic": "a-{value.x}"}, "when": "valeu.a > 1"},
        {"rename": {"topic": "a-{value.x}", "allow": ["("]}},
        {"reformat": {"hoist": "a", "extract": "value.b"}},
        {"rename": {"field": {"value.a": "value.b.c"}}},
        {"reformat": {"split": {"array": "value.a", "carry": ["value.b", "key"]}}},
    ]))
    .expect_err("faults");
    let pointers: Vec<&str> = faults.iter().map(|f| f.pointer.as_str()).collect();
    let expected = [
        "/0",
        "/1/filter/keep/value.amount/gt",
        "/2",
        "/3/use",
        "/4/reformat/mask/fields/1",
        "/4/reformat/mask",
        "/5/reformat/set/value.a/expr",
        "/5/reformat/set/topic",
        "/5/reformat/set/value.b/from",
        "/6/when",
        "/6/rename/topic",
        "/7/rename/allow/0",
        "/8/reformat/extract",
        "/9/rename/field/value.a",
        "/10/reformat/split/carry/1",
    ];
    assert_eq!(pointers, expected);
    assert_eq!(faults[3].help.as_deref(), Some("did you mean `panics`?"));
    assert_eq!(faults[9].message, "unknown name `valeu`");
}

#[test]
fn equal_chains_are_equal_as_written() {
    let one = compile(&json!([{"filter": {"drop": "empty"}}]));
    assert_eq!(one, compile(&json!([{"filter": {"drop": "empty"}}])));
    assert_ne!(one, compile(&json!([{"filter": {"keep": "empty"}}])));
}

#[test]
fn a_drop_names_its_step() {
    let bound =
        bind(&json!([{"filter": {"keep": {"partition": 3}}}, {"filter": {"drop": "null_key"}}]));
    assert_eq!(bound.pass_through(), None);
    let mut out = vec![record(Some("earlier"), None)];
    assert_eq!(
        bound.apply(record(None, None), &mut out),
        Ok(Verdict::Dropped { step: 1 })
    );
    assert_eq!(out.len(), 1);
}

#[test]
fn each_output_goes_on_alone_through_the_rest() {
    let bound = bind(&json!([
        {"reformat": {"split": {"array": "value.items", "into": "value.item"}}},
        {"filter": {"keep": {"value.item": {"gt": 1}}}},
        {"rename": {"to": [{"topic": "two", "when": {"value.item": 2}}, {"topic": "rest"}]}},
    ]));
    let mut out = Vec::new();
    let outcome = bound.apply(record(None, Some(r#"{"items":[1,2,3]}"#)), &mut out);
    assert_eq!(outcome, Ok(Verdict::Forward));
    let got: Vec<(&str, Option<&str>)> = out
        .iter()
        .map(|r| (r.topic.as_ref(), value_of(r)))
        .collect();
    assert_eq!(
        got,
        [
            ("two", Some(r#"{"item":2}"#)),
            ("rest", Some(r#"{"item":3}"#))
        ]
    );
}

#[test]
fn a_failure_of_one_output_fails_the_record() {
    let steps = json!([
        {"reformat": {"split": {"array": "value"}}},
        {"reformat": {"set": {"value.seen": true}}, "on_error": "dead_letter"},
    ]);
    let bound = bind(&steps);
    let mut out = vec![record(Some("earlier"), None)];
    let outcome = bound.apply(record(None, Some("[{},1]")), &mut out);
    assert_eq!(out.len(), 1);
    let failure = outcome.expect_err("1 is no object");
    assert_eq!(failure.on_error, Some(OnError::DeadLetter));
    assert_eq!(
        (failure.step, failure.failure.code),
        (1, FailureCode::WrongType)
    );
}

#[test]
fn when_and_pass_leave_the_record_as_it_was() {
    let bound = bind(&json!([
        {"reformat": {"set": {"header.a": "1", "value.seen": true}}, "on_error": "pass"},
        {"reformat": {"set": {"header.b": "2"}}, "when": {"value.no": 1}, "on_error": "pass"},
        {"use": "panics", "on_error": "pass"},
    ]));
    let mut out = Vec::new();
    assert_eq!(
        bound.apply(record(None, Some("not json")), &mut out),
        Ok(Verdict::Forward)
    );
    assert_eq!(value_of(&out[0]), Some("not json"));
    assert!(headers_of(&out[0]).is_empty());
    assert_eq!(out.len(), 1);
}

#[test]
fn a_panic_is_the_steps_failure() {
    let bound = bind(&json!([{"use": "doubles"}, {"use": "panics", "on_error": "skip"}]));
    let mut out = Vec::new();
    let outcome = bound.apply(record(None, None), &mut out);
    assert!(out.is_empty());
    assert_eq!(
        outcome.as_ref().err().and_then(|f| f.on_error),
        Some(OnError::Skip)
    );
    assert_eq!(code(outcome), (1, FailureCode::Panic));
}

#[test]
fn outputs_are_limited() {
    let mut doubling = vec![json!({"use": "doubles"}); 13];
    let mut out = Vec::new();
    let bound = bind(&json!(doubling));
    assert_eq!(
        bound.apply(record(None, None), &mut out),
        Ok(Verdict::Forward)
    );
    assert_eq!(out.len(), 8192);
    out.clear();
    doubling.push(json!({"use": "doubles"}));
    let bound = bind(&json!(doubling));
    let outcome = bound.apply(record(None, None), &mut out);
    assert_eq!(code(outcome), (13, FailureCode::TooMany));
    assert!(out.is_empty());
    let list = format!("[{}1]", "1,".repeat(10_000));
    let bound = bind(&json!([{"reformat": {"split": {"array": "value"}}}]));
    let outcome = bound.apply(record(None, Some(&list)), &mut Vec::new());
    assert_eq!(code(outcome), (0, FailureCode::TooMany));
}

#[test]
fn what_a_step_makes_is_limited() {
    let rows = [
        json!({"set": {"value.a": "{value}", "value.b": "{value}"}}),
        json!({"set": {"header.a": "{value}{value}"}}),
        json!({"set": {"key": "{value}{value}{value}"}}),
        json!({"mask": {"fields": ["value.l[*]"], "with": "hash", "key": "k"}}),
        json!({"hoist": "a-name-that-does-not-fit-any-more-into-the-record"}),
        json!({"split": {"array": "value.l", "into": "value.x", "carry": ["value.a", "value.l"]}}),
    ];
    let value = r#"{"a":"0123456789","l":["0123456789",2]}"#;
    for reformat in rows {
        let outcome = |bytes: u64| {
            let bound = bind_within(&json!([{"reformat": reformat}]), bytes);
            let outcome = bound.apply(record(Some("k"), Some(value)), &mut Vec::new());
            outcome.map_err(|f| f.failure.code)
        };
        assert_eq!(outcome(50), Err(FailureCode::TooLarge), "{reformat}");
        assert_eq!(outcome(400), Ok(Verdict::Forward), "{reformat}");
    }
}

#[test]
fn the_step_that_makes_too_much_is_the_one_that_fails() {
    let rows = [
        json!({"use": "swells"}),
        json!({"rename": {"field": {"value.a": "value.a-much-longer-name-than-it-had-before"}}}),
        json!({"rename": {"header": {"h": "a-much-longer-name-than-it-had-before"}}}),
    ];
    let headers = vec![(b"h".to_vec(), Some(b"12345678".to_vec()))];
    for row in rows {
        let mut steps = json!([{"use": "doubles"}, row, {"filter": {"drop": "tombstone"}}]);
        let fetched = || with_headers(record(None, Some(r#"{"a":1}"#)), &headers);
        let outcome = bind_within(&steps, 40).apply(fetched(), &mut Vec::new());
        assert_eq!(code(outcome), (1, FailureCode::TooLarge), "{steps}");
        steps[1]["on_error"] = json!("pass");
        let bound = bind_within(&steps, 40);
        let mut out = Vec::new();
        assert_eq!(bound.apply(fetched(), &mut out), Ok(Verdict::Forward));
        assert_eq!(value_of(&out[1]), Some(r#"{"a":1}"#), "as it was");
        let bound = bind_within(&json!([{"use": "doubles"}]), 4);
        let outcome = bound.apply(fetched(), &mut Vec::new());
        assert_eq!(outcome, Ok(Verdict::Forward), "it came so large");
    }
}

#[test]
fn a_chain_that_doubles_does_not_grow_without_bound() {
    let twice = json!({"reformat": {"set": {"value": "{value}{value}"}}});
    let bound = bind_within(&json!(vec![twice; 40]), 1 << 20);
    let outcome = bound.apply(record(None, Some("0123456789")), &mut Vec::new());
    assert_eq!(code(outcome), (16, FailureCode::TooLarge));
    let carried = "x".repeat(1 << 20);
    let value = format!(r#"{{"c":"{carried}","l":[{}1]}}"#, "1,".repeat(999));
    let split = json!({"array": "value.l", "into": "value.x", "carry": ["value.c"]});
    let bound = bind(&json!([{"reformat": {"split": split}}]));
    let outcome = bound.apply(record(None, Some(&value)), &mut Vec::new());
    assert_eq!(code(outcome), (0, FailureCode::TooLarge));
}

#[test]
fn a_changed_chain_remembers_what_the_steps_before_the_change_did() {
    let dedupe = json!({"filter": {"dedupe": "key"}});
    let other = json!({"filter": {"dedupe": "key", "max": 5}});
    let strip = json!({"reformat": {"unset": ["header.x"]}});
    let rows = [
        (json!([dedupe]), json!([dedupe, strip]), true),
        (json!([strip, dedupe]), json!([strip, dedupe, dedupe]), true),
        (json!([dedupe]), json!([other]), false),
        (json!([dedupe]), json!([strip, dedupe]), false),
        (json!([dedupe]), json!([]), false),
    ];
    for (before, after, remembers) in rows {
        let unchanged = compile(&before).expect("a chain");
        let unchanged = unchanged.in_common(&compile(&after).expect("a chain"));
        let (before, next) = (Arc::new(bind(&before)), Arc::new(bind(&after)));
        let before = before.for_partition();
        let verdict = |chain: &BoundChain, offset| {
            let mut record = record(Some("k"), None);
            record.origin.offset = offset;
            chain.apply(record, &mut Vec::new()).expect("no failure")
        };
        assert_eq!(verdict(&before, 1), Verdict::Forward);
        let chain = next.taking_over(&before, unchanged);
        let dropped = matches!(verdict(&chain, 2), Verdict::Dropped { .. });
        assert_eq!(dropped, remembers, "{after}");
        let chain = next.taking_over(&before, 0);
        assert_eq!(verdict(&chain, 2), Verdict::Forward, "anew");
    }
}

#[test]
fn depth_is_limited() {
    let deep = format!("{}{}", "[".repeat(129), "]".repeat(129));
    let bound = bind(&json!([{"filter": {"keep": {"value.a": 1}}}]));
    let outcome = bound.apply(record(None, Some(&deep)), &mut Vec::new());
    assert_eq!(code(outcome), (0, FailureCode::TooDeep));
}

/// What an observer was told, a line each.
#[derive(Default)]
struct Diary(Vec<String>);

impl Observer for Diary {
    fn enters(&mut self, step: StepView<'_>, record: &Record<'_>) {
        let entry = step
            .way(record)
            .entry
            .map_or(String::new(), |e| format!(" to {e}"));
        self.0
            .push(format!("{} < {}{entry}", step.index, record.topic));
    }

    fn leaves(&mut self, step: usize, out: &[Record<'_>], failure: Option<&Failure>) {
        let topics: Vec<&str> = out.iter().map(|r| r.topic.as_ref()).collect();
        let code = failure.map_or("", |f| f.code.as_str());
        self.0.push(
            format!("{step} > {} {code}", topics.join("+"))
                .trim_end()
                .to_owned(),
        );
    }
}

#[test]
fn an_observer_sees_every_step_of_every_record() {
    let bound = bind(&json!([
        {"use": "doubles"},
        {"reformat": {"extract": "value.a"}, "on_error": "pass"},
        {"rename": {"to": [{"topic": "x", "when": "tombstone"}, {"topic": "y"}]}},
        {"filter": {"drop": {"topic": "y"}}},
    ]));
    let (mut diary, mut out) = (Diary::default(), Vec::new());
    let outcome = bound.apply_observed(record(Some("k"), Some("{}")), &mut out, &mut diary);
    assert_eq!(outcome, Ok(Verdict::Dropped { step: 3 }));
    let told = [
        "0 < t",
        "0 > t+t",
        "1 < t",
        "1 > t absent",
        "1 < t",
        "1 > t absent",
        "2 < t to 1",
        "2 > y",
        "2 < t to 1",
        "2 > y",
        "3 < y",
        "3 >",
        "3 < y",
        "3 >",
    ];
    assert_eq!(diary.0, told);
}
