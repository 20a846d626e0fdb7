//! The keys that an object of the schema knows, as far as a key that it does not know is measured by them.

use crate::config::schema;
use crate::handler::is_for_paths;
use jsonschema::ValidationError;
use serde_json::Value;
use std::collections::BTreeSet;

/// What an object takes.
#[derive(Clone, Debug, Default)]
pub struct Siblings {
    /// Its keys, in the order of the schema.
    pub names: Vec<String>,
    /// Those that must be there.
    pub required: BTreeSet<String>,
    /// Whether its other keys are paths of records.
    pub paths: bool,
    /// The object.
    node: Option<&'static Value>,
}

impl Siblings {
    /// Those of the object that did not take a key.
    pub fn of(error: &ValidationError<'_>) -> Self {
        let path = error.schema_path().to_string();
        let object = path.rsplit_once('/').map_or("", |(object, _)| object);
        let Some(node) = schema::schema().pointer(object) else {
            return Self::default();
        };
        let patterns = node.get("patternProperties").and_then(Value::as_object);
        let mut patterns = patterns.into_iter().flatten();
        Self {
            names: keys(node).map(str::to_owned).collect(),
            required: required(node).map(str::to_owned).collect(),
            paths: patterns.any(|(pattern, _)| is_for_paths(pattern)),
            node: Some(node),
        }
    }

    /// With those of another form of the same value.
    pub fn and(mut self, other: &Self) -> Self {
        let more = other.names.iter().filter(|n| !self.names.contains(*n));
        let more: Vec<String> = more.cloned().collect();
        self.names.extend(more);
        self
    }

    /// The keys of the object that stands at `name`.
    pub fn inside(&self, name: &str) -> BTreeSet<&'static str> {
        let node = self.node.and_then(|n| n.get("properties")?.get(name));
        node.into_iter()
            .flat_map(schema::alternatives)
            .flat_map(keys)
            .collect()
    }
}

fn keys(node: &'static Value) -> impl Iterator<Item = &'static str> {
    let members = node.get("properties").and_then(Value::as_object);
    members.into_iter().flatten().map(|(name, _)| name.as_str())
}

fn required(node: &'static Value) -> impl Iterator<Item = &'static str> {
    let names = node.get("required").and_then(Value::as_array);
    names.into_iter().flatten().filter_map(Value::as_str)
}
