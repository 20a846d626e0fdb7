//! What holds for every record, tried with many.

use super::chains::{bind, compile};
use crate::handler::json::{Segment, edit, scan, splice::Site};
use crate::handler::sample::record;
use crate::handler::{BoundChain, Chain, Registry, StepSpec, Verdict};
use crate::record::{Headers, Record};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::sync::LazyLock;

/// JSON documents with few names, so that paths find something.
fn documents() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((names(), inner), 0..4)
                .prop_map(|entries| Value::Object(Map::from_iter(entries))),
        ]
    })
}

fn names() -> impl Strategy<Value = String> {
    prop_oneof![4 => "[abc]", 1 => ".{0,3}"]
}

fn paths() -> impl Strategy<Value = Vec<Segment>> {
    let segment = prop_oneof![
        3 => names().prop_map(Segment::Name),
        1 => (0usize..3).prop_map(Segment::Index),
    ];
    prop::collection::vec(segment, 0..4)
}

/// Slowly and obviously: the value at `path` of a parsed document.
fn look_up<'v>(mut value: &'v Value, path: &[Segment]) -> Option<&'v Value> {
    for segment in path {
        value = match segment {
            Segment::Name(name) => value.as_object()?.get(name)?,
            Segment::Index(index) => value.as_array()?.get(*index)?,
            Segment::Each => return None,
        };
    }
    Some(value)
}

/// Slowly and obviously: `path` set in a parsed document, `None` where a parent does not fit.
fn set(value: &mut Value, path: &[Segment], new: Value) -> Option<()> {
    let Some((first, rest)) = path.split_first() else {
        *value = new;
        return Some(());
    };
    let child = match first {
        Segment::Name(name) => {
            let object = value.as_object_mut()?;
            object.entry(name.clone()).or_insert_with(|| json!({}))
        }
        Segment::Index(index) => value.as_array_mut()?.get_mut(*index)?,
        Segment::Each => return None,
    };
    set(child, rest, new)
}

/// Slowly and obviously: `path` removed from a parsed document.
fn unset(value: &mut Value, path: &[Segment]) -> Option<()> {
    let (last, parents) = path.split_last()?;
    let mut parent = value;
    for segment in parents {
        parent = match segment {
            Segment::Name(name) => parent.as_object_mut()?.get_mut(name)?,
            Segment::Index(index) => parent.as_array_mut()?.get_mut(*index)?,
            Segment::Each => return None,
        };
    }
    match last {
        Segment::Name(name) => parent.as_object_mut()?.shift_remove(name).map(drop),
        Segment::Index(index) => {
            let list = parent.as_array_mut()?;
            (*index < list.len()).then(|| drop(list.remove(*index)))
        }
        Segment::Each => None,
    }
}

fn spelled(document: &Value, pretty: bool) -> String {
    match pretty {
        true => format!("{document:#}"),
        false => document.to_string(),
    }
}

/// A bound chain for each step, compiled once for all cases.
static CHAINS: LazyLock<Vec<(Value, BoundChain)>> = LazyLock::new(|| {
    let bound = |step: Value| (step.clone(), bind(&json!([step])));
    every_step().into_iter().map(bound).collect()
});

/// The same with conditions that never hold.
static NEVER: LazyLock<Vec<BoundChain>> = LazyLock::new(|| {
    let never = |mut step: Value| {
        [json!(false), json!({"partition": 99}), json!("offset < 0")].map(|when| {
            step["when"] = when;
            bind(&json!([step]))
        })
    };
    every_step().into_iter().flat_map(never).collect()
});

/// The ways to ask one thing of `value.a`: as a map, as an expression that becomes the same, and
/// as one that has to be evaluated.
fn ways_to_ask(question: &(&str, &str, Value)) -> [Value; 3] {
    let (operator, word, literal) = question;
    let asked = match *word {
        "" => literal.clone(),
        word => json!({word: literal}),
    };
    [
        json!({"value.a": asked}),
        json!(format!("value.a {operator} {literal}")),
        json!(format!("[value.a].exists(x, x {operator} {literal})")),
    ]
}

fn questions() -> impl Strategy<Value = (&'static str, &'static str, Value)> {
    let operator = prop::sample::select(vec![
        ("==", ""),
        (">", "gt"),
        (">=", "gte"),
        ("<", "lt"),
        ("<=", "lte"),
    ]);
    let literal = prop_oneof![
        any::<i64>().prop_map(Value::from),
        (-3i64..3).prop_map(Value::from),
        (-300i64..300).prop_map(|n| json!(n as f64 / 100.0)),
        "[ab]{0,2}".prop_map(Value::from),
    ];
    (operator, literal).prop_map(|((operator, word), literal)| (operator, word, literal))
}

/// What is likely to stand in an expression, in any order.
fn near_expressions() -> impl Strategy<Value = String> {
    let token = prop::sample::select(vec![
        "value", ".", "a", "[", "]", "0", "(", ")", "==", "&&", "||", "!", "-", "1.5", "'x'", "\"",
        "'", "?", ":", ",", "in", "has(", ".size()", ".map(x, ", "header", "{", "}", "é", "\n",
        "%", "e", "u", "=", "`", "\\",
    ]);
    let tokens = prop::collection::vec(token, 0..16).prop_map(|tokens| tokens.concat());
    prop_oneof![3 => tokens, 1 => ".{0,20}"]
}

/// Chains that use every word of the grammar.
fn every_step() -> Vec<Value> {
    vec![
        json!({"filter": {"keep": {"any": [{"value.a": {"gt": 1}}, {"not": {"key.b": "x"}}, "empty"]}}}),
        json!({"filter": {"keep": "value.a > 1 && !(key.b == 'x') || size(value.b) + 1 < 3"}}),
        json!({"filter": {"drop": "value.a.exists(x, x.b == value.c) || value.b in [1, 'a', null]"}}),
        json!({"filter": {"sample": "90%", "by": "value.a.b"}}),
        json!({"filter": {"dedupe": "value.a", "max": 3}}),
        json!({"rename": {"topic": "t-{value.a}", "allow": ["t-.*"]}}),
        json!({"rename": {"to": [{"topic": "x", "when": {"value.a": {"matches": ".*"}}}, {"topic": "y"}]}}),
        json!({"rename": {"header": {"a": "b"}}}),
        json!({"rename": {"field": {"value.a.b": "value.a.c", "key.a": "key.b"}}}),
        json!({"reformat": {"set": {"header.a": "{key}{value.a}", "value.a.b": {"from": "key"}, "key.x": 1}}}),
        json!({"reformat": {"set": {"value": {"from": "key"}, "key": {"from": "value.a"}}}}),
        json!({"reformat": {"set": {"value.d": {"expr": "value.a * 2 - int(value.b) / 3"}, "key": {"expr": "value.a.map(x, string(x) + 'y')"}}}}),
        json!({"reformat": {"unset": ["header.*", "value.a[*].b", "value.a[0]", "key.a"]}}),
        json!({"reformat": {"split": {"array": "value.a", "into": "value.a.b", "carry": ["value.b"]}}}),
        json!({"reformat": {"split": {"array": "value", "index_header": "i", "when_empty": "keep"}}}),
        json!({"reformat": {"rekey": {"from": ["value.a", "key", "header.a"]}}}),
        json!({"reformat": {"rekey": {"from": "value", "as": "json"}}}),
        json!({"reformat": {"hoist": "a"}}),
        json!({"reformat": {"cast": {"value.a": "int", "value.b[*]": "string", "key": "float"}}}),
        json!({"reformat": {"cast": {"value": "bool"}}}),
        json!({"reformat": {"flatten": {"separator": "."}}}),
        json!({"reformat": {"envelope": true}}),
        json!({"reformat": {"decode": {"value.a": "json", "key": "base64"}}}),
        json!({"reformat": {"decode": {"value": "gzip"}}}),
        json!({"reformat": {"decode": {"value.a": "hex", "value.b[*]": "base64", "value.c": "gzip"}}}),
        json!({"reformat": {"encode": {"value.a": "json", "value": "json", "key": "gzip"}}}),
        json!({"reformat": {"encode": {"value.a": "hex", "value.b[*]": "base64", "value.c": "gzip"}}}),
        json!({"reformat": {"timestamp": {"from": "value.a", "unit": "us", "if_absent": "keep"}}}),
        json!({"reformat": {"timestamp": {"from": "key", "unit": "%Y-%m-%d"}}}),
        json!({"reformat": {"timestamp": {"shift": "-1h"}}}),
        json!({"reformat": {"mask": {"fields": ["value.a[*].b", "value.b", "key"], "with": "hash", "key": "secret"}}}),
        json!({"reformat": {"mask": {"fields": ["value.a", "key.a"], "with": "last4"}}}),
        json!({"reformat": {"mask": {"fields": ["value.a[*]", "value.c", "key"], "with": "keep_format"}}}),
        json!({"reformat": {"mask": {"fields": ["value.a", "header.a"], "with": "erase"}}}),
        json!({"reformat": {"extract": "value.a"}}),
    ]
}

fn nullable_bytes() -> impl Strategy<Value = Option<Vec<u8>>> {
    let document = || documents().prop_map(|d| d.to_string().into_bytes());
    let broken = (document(), any::<prop::sample::Index>(), any::<u8>()).prop_map(
        |(mut bytes, at, byte)| {
            let at = at.index(bytes.len());
            bytes[at] = byte;
            bytes
        },
    );
    let arbitrary = prop::collection::vec(any::<u8>(), 0..24);
    prop::option::weighted(0.9, prop_oneof![document(), broken, arbitrary])
}

fn of_bytes<'a>(key: Option<&'a [u8]>, value: Option<&'a [u8]>) -> Record<'a> {
    Record {
        key: key.map(Cow::Borrowed),
        value: value.map(Cow::Borrowed),
        ..record(None, None)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_path_finds_what_a_parser_finds(document in documents(), path in paths(), pretty in any::<bool>()) {
        let text = spelled(&document, pretty);
        let found = scan::find(text.as_bytes(), &path).expect("valid JSON");
        let found = found.map(|span| serde_json::from_str::<Value>(&text[span]).expect("a value"));
        let expected = look_up(&document, &path).map(|v| serde_json::from_str(&v.to_string()).expect("a value"));
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn many_paths_find_what_each_finds(
        document in documents(),
        paths in prop::collection::vec(paths(), 1..6),
        pretty in any::<bool>(),
    ) {
        let text = spelled(&document, pretty);
        let mut wanted = scan::Wanted::default();
        for (slot, path) in paths.iter().enumerate() {
            wanted.add(path, slot);
        }
        let found = wanted.find(text.as_bytes()).expect("valid JSON");
        for (slot, path) in paths.iter().enumerate() {
            let alone = scan::find(text.as_bytes(), path).expect("valid JSON");
            prop_assert_eq!(&found[slot], &alone, "{:?}", path);
        }
    }

    #[test]
    fn a_question_has_one_answer_however_it_is_asked(
        question in questions(),
        value in nullable_bytes(),
    ) {
        let answers = ways_to_ask(&question).map(|predicate| {
            let bound = bind(&json!([{"filter": {"keep": predicate}}]));
            let outcome = bound.apply(of_bytes(None, value.as_deref()), &mut Vec::new());
            outcome.map_err(|f| f.failure.code)
        });
        prop_assert_eq!(&answers[0], &answers[1], "{:?}", question);
        prop_assert_eq!(&answers[0], &answers[2], "{:?}", question);
    }

    #[test]
    fn an_expression_compiles_or_has_its_mistake_inside(text in near_expressions()) {
        let steps = json!([{"filter": {"keep": text}}, {"reformat": {"set": {"key": {"expr": text}}}}]);
        let steps: Vec<StepSpec> = serde_json::from_value(steps).expect("steps");
        for fault in Chain::compile(steps, &Registry::default()).err().into_iter().flatten() {
            let inside = fault.inside.expect("a place");
            prop_assert!(inside.text.get(inside.bytes.clone()).is_some(), "{:?} {:?}", text, inside.bytes);
        }
    }

    #[test]
    fn a_splice_sets_what_a_parser_sets(document in documents(), path in paths(), pretty in any::<bool>()) {
        let text = spelled(&document, pretty);
        let site = Site::find(text.as_bytes(), &path);
        let mut expected: Value = serde_json::from_str(&text).expect("valid JSON");
        match set(&mut expected, &path, json!([7])) {
            None => prop_assert!(site.is_err()),
            Some(()) => {
                let written = site.expect("a place").write(text.as_bytes(), b"[7]");
                let written: Value = serde_json::from_slice(&written).expect("valid JSON");
                prop_assert_eq!(written.to_string(), expected.to_string());
            }
        }
    }

    #[test]
    fn a_removal_removes_what_a_parser_removes(document in documents(), path in paths(), pretty in any::<bool>()) {
        prop_assume!(!path.is_empty());
        let text = spelled(&document, pretty);
        let removed = edit::remove(text.as_bytes(), &path).expect("valid JSON");
        let mut expected: Value = serde_json::from_str(&text).expect("valid JSON");
        match unset(&mut expected, &path) {
            None => prop_assert_eq!(removed, None),
            Some(()) => {
                let removed = removed.expect("something was removed");
                let removed: Value = serde_json::from_slice(&removed).expect("valid JSON");
                prop_assert_eq!(removed.to_string(), expected.to_string());
            }
        }
    }

    #[test]
    fn what_is_json_is_json_to_both(bytes in nullable_bytes()) {
        let bytes = bytes.unwrap_or_default();
        let ours = scan::root(&bytes).is_ok();
        let theirs = serde_json::from_slice::<&serde_json::value::RawValue>(&bytes).is_ok();
        prop_assert_eq!(ours, theirs, "{}", bytes.escape_ascii());
    }

    #[test]
    fn no_chain_panics_and_a_failure_leaves_nothing(key in nullable_bytes(), value in nullable_bytes()) {
        for (step, bound) in CHAINS.iter() {
            let mut out = Vec::new();
            let outcome = bound.apply(of_bytes(key.as_deref(), value.as_deref()), &mut out);
            match outcome {
                Ok(Verdict::Forward) => prop_assert!(!out.is_empty()),
                Ok(Verdict::Dropped { .. }) => prop_assert!(out.is_empty()),
                Err(failure) => {
                    prop_assert_ne!(failure.failure.code.as_str(), "panic", "{}", step);
                    prop_assert!(out.is_empty());
                }
            }
        }
    }

    #[test]
    fn no_chain_of_several_steps_panics(
        chosen in prop::collection::vec(any::<prop::sample::Index>(), 2..6),
        key in nullable_bytes(), value in nullable_bytes(),
    ) {
        let steps = every_step();
        let steps: Vec<&Value> = chosen.iter().map(|index| index.get(&steps)).collect();
        // A topic named by content may stand before a step that needs to know it.
        if compile(&json!(steps)).is_ok() {
            let bound = bind(&json!(steps));
            let outcome = bound.apply(of_bytes(key.as_deref(), value.as_deref()), &mut Vec::new());
            if let Err(failure) = outcome {
                prop_assert_ne!(failure.failure.code.as_str(), "panic", "{:?}", steps);
            }
        }
    }

    #[test]
    fn a_step_whose_when_never_holds_is_the_identity(key in nullable_bytes(), value in nullable_bytes()) {
        for bound in NEVER.iter() {
            let mut out = Vec::new();
            let outcome = bound.apply(of_bytes(key.as_deref(), value.as_deref()), &mut out);
            prop_assert_eq!(outcome, Ok(Verdict::Forward));
            prop_assert!(matches!(out[0].headers, Headers::Untouched(_)));
            prop_assert_eq!((out[0].key.as_deref(), out[0].value.as_deref()), (key.as_deref(), value.as_deref()));
            prop_assert!(!matches!(out[0].value, Some(Cow::Owned(_))));
            prop_assert_eq!(&out[0].topic, "t");
        }
    }

    #[test]
    fn keep_and_drop_of_one_predicate_part_the_records(key in nullable_bytes(), value in nullable_bytes()) {
        let predicates = [
            json!("tombstone"), json!("empty"), json!({"value.a": {"lt": 3}}), json!({"key": {"contains": "a"}}),
            json!({"any": [{"value.a.b": [1, "x", null]}, {"value.b": {"exists": true}}]}),
            json!("value.a * 2 > 3 || key.contains('a')"), json!("value.b"),
        ];
        for predicate in predicates {
            let apply = |word: &str| {
                let bound = bind(&json!([{"filter": {word: predicate}}]));
                let outcome = bound.apply(of_bytes(key.as_deref(), value.as_deref()), &mut Vec::new());
                outcome.map_err(|f| f.failure.code)
            };
            match (apply("keep"), apply("drop")) {
                (Ok(keep), Ok(drop)) => prop_assert_ne!(keep, drop),
                (keep, drop) => prop_assert_eq!(keep, drop),
            }
        }
    }
}
