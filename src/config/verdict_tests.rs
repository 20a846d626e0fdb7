//! Schema and validator cannot disagree: files made from the schema, valid and not, and both
//! verdicts about each.

use super::config_tests::load_text;
use super::raw::RawFile;
use super::*;
use crate::handler::StepSpec;
use jsonschema::Validator;
use proptest::prelude::*;
use proptest::string::string_regex;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::sync::LazyLock;

/// As an editor reads it: the committed file.
static EDITOR: LazyLock<(Value, Validator)> = LazyLock::new(|| {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/schemas/mirror.schema.json");
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let validator = jsonschema::draft7::new(&schema).unwrap();
    (schema, validator)
});

/// A value that the schema at `node` takes, mostly: where several keywords meet it may miss.
fn from_schema(node: &'static Value, depth: u32) -> BoxedStrategy<Value> {
    let schema = &EDITOR.0;
    if let Some(target) = node.get("$ref").and_then(Value::as_str) {
        let target = schema.pointer(target.trim_start_matches('#')).unwrap();
        return from_schema(target, depth);
    }
    if let Some(options) = node.get("enum").and_then(Value::as_array) {
        return prop::sample::select(options.clone()).boxed();
    }
    if let Some(constant) = node.get("const") {
        return Just(constant.clone()).boxed();
    }
    for keyword in ["allOf", "anyOf", "oneOf"] {
        let branches = node.get(keyword).and_then(Value::as_array);
        let whole = |b: &&'static Value| b.get("required").is_none() || b.get("type").is_some();
        let branches: Vec<_> = branches.into_iter().flatten().filter(whole).collect();
        if !branches.is_empty() {
            let branches = prop::sample::select(branches);
            return branches
                .prop_flat_map(move |branch| from_schema(branch, depth))
                .boxed();
        }
    }
    let types: Vec<&str> = match node.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        _ => vec!["string", "null"],
    };
    let types = prop::sample::select(types);
    types
        .prop_flat_map(move |of| typed(of, node, depth))
        .boxed()
}

fn typed(of: &str, node: &'static Value, depth: u32) -> BoxedStrategy<Value> {
    let number = |keyword: &str, otherwise| {
        node.get(keyword)
            .and_then(Value::as_i64)
            .unwrap_or(otherwise)
    };
    match of {
        "null" => Just(Value::Null).boxed(),
        "boolean" => any::<bool>().prop_map(Value::from).boxed(),
        "integer" | "number" => {
            let low = number("minimum", -5);
            (low..=number("maximum", low + 9).min(low + 9))
                .prop_map(Value::from)
                .boxed()
        }
        "array" if depth == 0 => Just(json!([])).boxed(),
        "array" => {
            let items = node
                .get("items")
                .map_or(Just(Value::Null).boxed(), |i| from_schema(i, depth - 1));
            let least = usize::try_from(number("minItems", 0)).unwrap();
            prop::collection::vec(items, least..least + 3)
                .prop_map(Value::Array)
                .boxed()
        }
        "object" => object(node, depth),
        _ => text(node),
    }
}

fn text(node: &'static Value) -> BoxedStrategy<Value> {
    match node.get("pattern").and_then(Value::as_str) {
        Some(pattern) => {
            let pattern = pattern.trim_start_matches('^').trim_end_matches('$');
            string_regex(&pattern.replace(".+", "[a-z]+"))
                .unwrap()
                .prop_map(Value::from)
                .boxed()
        }
        None => "[a-z][a-z0-9:._-]{0,6}".prop_map(Value::from).boxed(),
    }
}

fn object(node: &'static Value, depth: u32) -> BoxedStrategy<Value> {
    let names = |keyword: &str| {
        let names = node
            .get(keyword)
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        names.filter_map(Value::as_str).collect::<Vec<_>>()
    };
    let required = names("required");
    // Of keys that exclude each other: one.
    let exclusive: Vec<&str> = node
        .get("oneOf")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|branch| branch.pointer("/required/0")?.as_str())
        .collect();
    let mut members: Vec<BoxedStrategy<Option<(String, Value)>>> = Vec::new();
    let properties = node
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten();
    let chosen = exclusive.len().max(1);
    let pick = 0..chosen;
    for (name, property) in properties {
        let is_exclusive = exclusive.contains(&name.as_str());
        if is_exclusive || (depth == 0 && !required.contains(&name.as_str())) {
            continue;
        }
        let value = from_schema(property, depth.saturating_sub(1));
        let value = match required.contains(&name.as_str()) {
            true => value.prop_map(Some).boxed(),
            false => prop::option::weighted(0.3, value).boxed(),
        };
        let member = value.prop_map(move |v| v.map(|v| (name.clone(), v)));
        members.push(member.boxed());
    }
    let others = node.get("additionalProperties").filter(|a| a.is_object());
    let pattern = node
        .get("patternProperties")
        .and_then(|p| p.as_object()?.iter().next());
    let least = if node.get("minProperties").is_some() {
        1
    } else {
        0
    };
    let named: BoxedStrategy<Vec<(Value, Value)>> = match (others, pattern) {
        (_, Some((pattern, member))) if depth > 0 => {
            let node: &'static Value = Box::leak(Box::new(json!({ "pattern": pattern })));
            prop::collection::vec((text(node), from_schema(member, depth - 1)), least..3).boxed()
        }
        (Some(member), None) if depth > 0 => {
            let name = "[a-z]{1,4}".prop_map(Value::from);
            prop::collection::vec((name, from_schema(member, depth - 1)), least..3).boxed()
        }
        _ => Just(Vec::new()).boxed(),
    };
    let one: BoxedStrategy<Option<(String, Value)>> = match exclusive.is_empty() {
        true => Just(None).boxed(),
        false => pick
            .prop_flat_map(move |index| {
                let name = exclusive[index].to_owned();
                let property = &node["properties"][&name];
                from_schema(property, depth.saturating_sub(1))
                    .prop_map(move |v| Some((name.clone(), v)))
            })
            .boxed(),
    };
    (members, named, one)
        .prop_map(|(members, named, one)| {
            let mut map: Map<String, Value> = members.into_iter().flatten().chain(one).collect();
            for (name, value) in named {
                map.insert(name.as_str().unwrap_or_default().to_owned(), value);
            }
            Value::Object(map)
        })
        .boxed()
}

/// One change at a random place.
fn broken(file: Value, at: prop::sample::Index, with: &Value, how: u8) -> Value {
    let mut pointers = Vec::new();
    collect(&file, "", &mut pointers);
    let pointer = at.get(&pointers).clone();
    let mut file = file;
    match (file.pointer_mut(&pointer), how) {
        (Some(Value::Object(map)), 0) => drop(map.insert("unknown_key".to_owned(), with.clone())),
        (Some(Value::Object(map)), 1) if !map.is_empty() => drop(map.shift_remove_index(0)),
        (Some(slot), _) => *slot = with.clone(),
        (None, _) => {}
    }
    file
}

trait RemoveFirst {
    fn shift_remove_index(&mut self, index: usize) -> Option<Value>;
}

impl RemoveFirst for Map<String, Value> {
    fn shift_remove_index(&mut self, index: usize) -> Option<Value> {
        let name = self.keys().nth(index).cloned()?;
        self.shift_remove(&name)
    }
}

fn collect(value: &Value, at: &str, pointers: &mut Vec<String>) {
    pointers.push(at.to_owned());
    match value {
        Value::Object(map) => map
            .iter()
            .for_each(|(name, v)| collect(v, &pointer::child(at, name), pointers)),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .for_each(|(i, v)| collect(v, &pointer::item(at, i), pointers)),
        _ => {}
    }
}

/// Whether the types of the file take it, steps included.
fn types_take(file: &Value) -> Result<(), String> {
    let raw: RawFile = serde_path_to_error::deserialize(file).map_err(|e| e.to_string())?;
    let chains = raw.handlers.into_iter().flatten().map(|(_, steps)| steps);
    let routes = file.get("routes").and_then(Value::as_object);
    let routes = routes.into_iter().flat_map(Map::values);
    let settings = routes.chain(file.get("defaults"));
    let written = settings.filter_map(|s| s.get("handlers")?.as_array().cloned());
    for step in chains.chain(written).flatten() {
        StepSpec::deserialize(&step).map_err(|e| format!("{step}: {e}"))?;
    }
    Ok(())
}

/// What is said about the shape of the file alone.
fn shape(found: &[Diagnostic]) -> Vec<String> {
    let of_shape = |d: &&Diagnostic| {
        let code = d.code;
        let shape = [
            Code::UnknownKey,
            Code::MissingKey,
            Code::WrongType,
            Code::WrongUnit,
        ];
        shape.contains(&code)
    };
    found
        .iter()
        .filter(of_shape)
        .map(Diagnostic::one_line)
        .collect()
}

fn compare(file: &Value) -> Result<(), TestCaseError> {
    let text = serde_yaml::to_string(file).unwrap();
    let found = match load_text(&text) {
        Ok(loaded) => loaded.warnings,
        Err(rejected) => rejected.diagnostics,
    };
    let refused = found.iter().any(|d| d.severity() == Severity::Error);
    if EDITOR.1.is_valid(file) {
        prop_assert_eq!(types_take(file), Ok(()), "{}", text);
        prop_assert_eq!(shape(&found), Vec::<String>::new(), "{}", text);
    } else {
        prop_assert!(
            refused,
            "the schema refuses what the validator takes:\n{}",
            text
        );
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 250, failure_persistence: None, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn files_from_the_schema_are_taken(file in from_schema(&EDITOR.0, 6)) {
        compare(&file)?;
    }

    #[test]
    fn changed_files_get_one_verdict(
        file in from_schema(&EDITOR.0, 6),
        at in any::<prop::sample::Index>(),
        with in prop::sample::select(vec![json!(null), json!(1), json!(-1), json!(1.5), json!(true), json!("x"), json!(""), json!("5"), json!([]), json!({}), json!([1]), json!({"a": 1})]),
        how in 0..4u8,
    ) {
        compare(&broken(file, at, &with, how))?;
    }
}
