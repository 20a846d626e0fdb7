//! The JSON schema of the file, made from the types and the table of defaults.

use crate::config::defaults;
use crate::config::pointer;
use crate::config::raw::RawFile;
use crate::config::settings;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// Where the schema lives, for editors.
const ID: &str = "mirror.schema.json";

/// The schema, made once.
pub fn schema() -> &'static Value {
    static SCHEMA: LazyLock<Value> = LazyLock::new(generate);
    &SCHEMA
}

/// A schema and all that it refers to: the alternatives that one place has.
pub fn alternatives(node: &'static Value) -> Vec<&'static Value> {
    let mut nodes = vec![node];
    let mut next = 0;
    while let Some(node) = nodes.get(next).copied() {
        next += 1;
        let target = node.get("$ref").and_then(Value::as_str);
        let target = target.and_then(|t| schema().pointer(t.trim_start_matches('#')));
        let branches = ["allOf", "anyOf", "oneOf"].into_iter();
        let branches = branches.filter_map(|keyword| node.get(keyword)?.as_array());
        for more in target.into_iter().chain(branches.flatten()) {
            if !nodes.iter().any(|known| std::ptr::eq(*known, more)) {
                nodes.push(more);
            }
        }
    }
    nodes
}

/// The text of `schemas/mirror.schema.json`.
pub fn text() -> String {
    let mut text = serde_json::to_string_pretty(schema()).unwrap_or_default();
    text.push('\n');
    text
}

/// Draft 7 is the newest that every editor reads.
fn generate() -> Value {
    let generator = SchemaSettings::draft07().into_generator();
    let mut schema = generator.into_root_schema_for::<RawFile>().to_value();
    if let Value::Object(root) = &mut schema {
        root.insert("$id".to_owned(), Value::String(ID.to_owned()));
    }
    insert_defaults(&mut schema, "", &defaults::of_file());
    for name in ["RawRoute", "RawDefaults"] {
        let definition = format!("/definitions/{name}");
        insert_defaults(&mut schema, &definition, &defaults::of_route());
    }
    let cluster = defaults::of_cluster();
    insert_defaults(&mut schema, "/definitions/RawCluster", &cluster);
    insert_defaults(&mut schema, "/definitions/RawTls", &defaults::of_tls());
    for property in properties(&schema) {
        annotate(&mut schema, &property);
    }
    schema
}

/// Writes each default at the property that it is the default of.
fn insert_defaults(schema: &mut Value, object: &str, table: &Value) {
    let Value::Object(table) = table else {
        return;
    };
    for (name, default) in table {
        let at = format!("{object}/properties/{name}");
        let Some(Value::Object(property)) = schema.pointer_mut(&at) else {
            continue;
        };
        let target = reference(property);
        match (default, target) {
            (Value::Object(_), Some(target)) => insert_defaults(schema, &target, default),
            _ => {
                property.insert("default".to_owned(), default.clone());
            }
        }
    }
}

/// The definition that a schema refers to. Beside a `$ref` nothing counts in draft 7, so one with
/// a description is wrapped in `allOf`.
fn reference(schema: &Map<String, Value>) -> Option<String> {
    let wrapped = schema.get("allOf").and_then(|all| all.get(0)?.get("$ref"));
    let target = schema.get("$ref").or(wrapped)?.as_str()?;
    Some(target.trim_start_matches('#').to_owned())
}

/// A property of the schema, and the setting that it is.
pub struct Property {
    /// Where it stands in the schema, as a JSON pointer.
    pub pointer: String,
    /// The path of the setting; `*` is any name or item.
    pub path: String,
}

/// Every property of the schema, each once: a definition that is used in several places is told
/// by the first of them.
pub fn properties(schema: &Value) -> Vec<Property> {
    let mut walk = Walk {
        schema,
        seen: BTreeSet::new(),
        found: Vec::new(),
    };
    walk.visit("", "");
    walk.found
}

struct Walk<'a> {
    schema: &'a Value,
    seen: BTreeSet<String>,
    found: Vec<Property>,
}

impl Walk<'_> {
    fn visit(&mut self, at: &str, path: &str) {
        let Some(Value::Object(schema)) = self.schema.pointer(at) else {
            return;
        };
        for (keyword, value) in schema {
            let below = pointer::child(at, keyword);
            match (keyword.as_str(), value) {
                ("$ref", Value::String(target)) => {
                    let target = target.trim_start_matches('#').to_owned();
                    if self.seen.insert(target.clone()) {
                        self.visit(&target, path);
                    }
                }
                ("allOf" | "anyOf" | "oneOf", Value::Array(branches)) => {
                    for index in 0..branches.len() {
                        self.visit(&pointer::item(&below, index), path);
                    }
                }
                ("properties", Value::Object(members)) => {
                    for name in members.keys() {
                        let pointer = pointer::child(&below, name);
                        let path = join(path, name);
                        self.visit(&pointer, &path);
                        self.found.push(Property { pointer, path });
                    }
                }
                ("patternProperties", Value::Object(patterns)) => {
                    for pattern in patterns.keys() {
                        self.visit(&pointer::child(&below, pattern), &join(path, "*"));
                    }
                }
                ("additionalProperties" | "items", Value::Object(_)) => {
                    self.visit(&below, &join(path, "*"));
                }
                _ => {}
            }
        }
    }
}

fn join(path: &str, step: &str) -> String {
    match path {
        "" => step.to_owned(),
        _ => format!("{path}.{step}"),
    }
}

/// Writes class and examples of a setting at its property.
fn annotate(schema: &mut Value, property: &Property) {
    let Some(Value::Object(at)) = schema.pointer_mut(&property.pointer) else {
        return;
    };
    let class = settings::class_of(&property.path).as_str();
    at.insert("x-mirror-reload".to_owned(), class.into());
    let examples = settings::setting(&property.path).map_or(&[][..], |s| s.examples);
    let examples: Vec<Value> = examples
        .iter()
        .filter_map(|text| serde_yaml::from_str(text).ok())
        .collect();
    if !examples.is_empty() {
        at.insert("examples".to_owned(), Value::Array(examples));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_schema_is_the_generated_one() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/schemas/mirror.schema.json");
        if std::env::var_os("UPDATE_SCHEMA").is_some() {
            std::fs::write(path, text()).unwrap();
        }
        let committed = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            committed == text(),
            "run `mirror schema > schemas/mirror.schema.json`, or this test with UPDATE_SCHEMA=1"
        );
    }

    #[test]
    fn every_default_is_in_the_schema() {
        let schema = schema();
        for (name, default) in defaults::of_route().as_object().unwrap() {
            let at = format!("/definitions/RawRoute/properties/{name}");
            let property = schema.pointer(&at).unwrap_or_else(|| panic!("no {name}"));
            if !default.is_object() {
                assert_eq!(&property["default"], default, "{name}");
            }
        }
        assert_eq!(
            schema["definitions"]["RawQueue"]["properties"]["bytes"]["default"],
            "32MiB"
        );
    }

    #[test]
    fn every_property_is_described_and_none_takes_null() {
        let ours = schema()["definitions"].as_object().unwrap().iter();
        let ours = ours.filter(|(name, _)| name.starts_with("Raw"));
        let root = ("RawFile".to_owned(), schema().clone());
        for (object, value) in ours.chain([(&root.0, &root.1)]) {
            for (name, property) in value["properties"].as_object().into_iter().flatten() {
                let documented = property.get("description").is_some();
                assert!(documented, "{object}.{name} has no description");
                let types = property.get("type").map(Value::to_string);
                let null = types.is_some_and(|t| t.contains("null"));
                assert!(!null, "{object}.{name} takes null");
            }
        }
    }
    #[test]
    fn every_setting_has_its_class_and_every_entry_its_property() {
        let properties = properties(schema());
        for property in &properties {
            let class = &schema().pointer(&property.pointer).unwrap()["x-mirror-reload"];
            assert!(class.is_string(), "{}", property.path);
        }
        let paths: BTreeSet<&str> = properties.iter().map(|p| p.path.as_str()).collect();
        for entry in settings::all() {
            let of_defaults = entry.path.replacen("routes.*", "defaults", 1);
            let known = paths.contains(entry.path) || paths.contains(of_defaults.as_str());
            assert!(known, "{} is no setting", entry.path);
        }
        // A setting of a route, a cluster or the file has an entry of its own: what it inherits
        // would be a guess.
        let definitions = ["RawRoute", "RawDefaults", "RawCluster"];
        let own = properties.iter().filter(|p| {
            let within = |d: &&str| p.pointer.starts_with(&format!("/definitions/{d}/"));
            definitions.iter().any(within) || p.pointer.matches('/').count() == 2
        });
        for property in own {
            let entry = settings::setting(&property.path);
            assert!(entry.is_some(), "{} is not in the table", property.path);
        }
    }

    #[test]
    fn every_example_is_what_the_schema_takes() {
        for property in properties(schema()) {
            let at = schema().pointer(&property.pointer).unwrap();
            let wrapped = serde_json::json!({
                "$schema": schema()["$schema"],
                "definitions": schema()["definitions"],
                "allOf": [at],
            });
            let validator = jsonschema::validator_for(&wrapped).unwrap();
            let entry = settings::setting(&property.path);
            let written = entry.map_or(0, |e| e.examples.len());
            let examples = at["examples"].as_array().map_or(&[][..], Vec::as_slice);
            if written > 0 {
                assert_eq!(written, examples.len(), "{}", property.path);
            }
            for example in examples {
                assert!(validator.is_valid(example), "{}: {example}", property.path);
            }
        }
    }
}
