//! The steps of a chain as written in the file: serde's mirror of the grammar, no logic.
//!
//! Where the grammar takes a word, a literal or a map, the value is kept as it was written and
//! compiled later: the compiler knows the place of every mistake, serde would only know that no
//! variant fitted.

pub use super::reformat::spec::*;
use super::schema;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// One step of a chain: exactly one of `filter`, `rename`, `reformat` and `use`, and modifiers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = schema::without_null, transform = schema::one_action)]
pub struct StepSpec {
    /// A name for logs, metrics and dead letters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The step works on records for which this holds; others pass it as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<PredicateSpec>,
    /// What a failure of this step does, instead of the route's `on_error`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_error: Option<StepOnError>,
    // Boxed, as the next two: what a step is not would take more memory than what it is.
    /// Keeps or drops records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<Box<FilterSpec>>,
    /// Renames the topic, headers or fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rename: Option<Box<RenameSpec>>,
    /// Changes what a record contains.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reformat: Option<Box<ReformatSpec>>,
    /// A chain of the file, or a handler that the embedding program registered.
    #[serde(default, rename = "use", skip_serializing_if = "Option::is_none")]
    pub use_: Option<String>,
}

/// What a step's failure does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepOnError {
    /// The partition halts with a reason, and is retried.
    Stop,
    /// The record is left out, counted.
    Skip,
    /// The record goes to the dead-letter topic.
    DeadLetter,
    /// The record goes on as it was before the step.
    Pass,
}

/// A predicate: a word, an expression, or a map of which all entries must hold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PredicateSpec(pub Value);

impl JsonSchema for PredicateSpec {
    fn schema_name() -> Cow<'static, str> {
        "Predicate".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        schema::predicate(&generator.subschema_for::<Self>())
    }
}

/// A map whose order counts: entries work in the order in which they are written.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Entries(pub Map<String, Value>);

impl PartialEq for Entries {
    fn eq(&self, other: &Self) -> bool {
        self.0.iter().eq(&other.0)
    }
}

/// Keeps or drops records: exactly one of `keep`, `drop`, `sample` and `dedupe`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = schema::without_null, transform = schema::one_filter)]
pub struct FilterSpec {
    /// Keeps the records for which this holds, drops the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep: Option<PredicateSpec>,
    /// Drops the records for which this holds, keeps the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drop: Option<PredicateSpec>,
    /// Keeps this part of the records, such as `1%`: the same ones on every instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::ratio")]
    pub sample: Option<Value>,
    /// What decides about a record in `sample`: `key`, `record` (its coordinates; the default) or
    /// a path. Records without it are decided by their coordinates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Samples with different seeds are independent of each other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<String>,
    /// Drops a record if one with the same id at this path was let through before, from a smaller
    /// offset of the same source partition. What has no id, or null, passes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dedupe: Option<String>,
    /// How far the timestamps of the two records in `dedupe` may be apart, such as `10m` (the
    /// default). A record without a timestamp is within any window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::duration")]
    pub window: Option<String>,
    /// How many ids `dedupe` holds for a source partition; the oldest makes way. 100000 if not
    /// given, about 100 bytes each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::held_ids")]
    pub max: Option<u32>,
}

/// Renames: exactly one of `topic`, `to`, `header` and `field`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = schema::without_null, transform = schema::one_rename)]
pub struct RenameSpec {
    /// The target topic as a template: `{source} {target} {route} {topic} {source_topic}`, named
    /// captures of the include regex, or paths such as `{value.region}` (these need `allow`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// Topics that a name made from a record may have: whole-name regular expressions. One that
    /// is itself a topic's name is created at start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow: Option<Vec<String>>,
    /// Topics by condition: the first whose `when` holds; if none does, the step fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Vec<ToSpec>>,
    /// Headers by their old name, with the new one. Order, repeats and values stay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::header_names")]
    pub header: Option<Entries>,
    /// Fields by their old path, with the new path in the same object. A field stays at its place; one
    /// that has the new name already fails the step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::field_names")]
    pub field: Option<Entries>,
}

/// One topic of a conditional rename.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = schema::without_null)]
pub struct ToSpec {
    /// The target topic as a template.
    pub topic: String,
    /// Taken if this holds; without it, always.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<PredicateSpec>,
    /// Topics that a name made from a record may have: whole-name regular expressions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow: Option<Vec<String>>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parse(value: &Value) -> Result<StepSpec, String> {
        StepSpec::deserialize(value).map_err(|e| e.to_string())
    }

    #[test]
    fn steps_are_written_back_as_they_were() {
        let steps = [
            json!({"filter": {"drop": "tombstone"}, "name": "no-deletes", "on_error": "dead_letter"}),
            json!({"filter": {"sample": "1%", "by": "key", "seed": "clicks"}}),
            json!({"filter": {"dedupe": "value.id", "window": "10m", "max": 1000}}),
            json!({"rename": {"to": [{"topic": "a", "when": {"value.x": [1, null]}}, {"topic": "b"}]}}),
            json!({"reformat": {"set": {"value.seen": null, "key": {"from": "value.id"}}, "unset": ["header.x-*"]}}),
            json!({"use": "masking", "when": {"not": "null_key"}}),
        ];
        for step in steps {
            let parsed = parse(&step).expect("a step");
            assert_eq!(serde_json::to_value(&parsed).expect("JSON"), step);
        }
    }

    #[test]
    fn unknown_keys_are_refused_at_every_level() {
        for step in [
            json!({"filtre": {}}),
            json!({"filter": {"keeep": "empty"}}),
            json!({"rename": {"topics": "x"}}),
            json!({"reformat": {"sett": {}}}),
            json!({"reformat": {"split": {"array": "value.a", "inot": "value"}}}),
            json!({"filter": {"drop": "empty"}, "on_error": "abort_route"}),
        ] {
            assert!(parse(&step).is_err(), "{step}");
        }
    }

    #[test]
    fn the_order_of_assignments_counts() {
        let a = parse(&json!({"reformat": {"set": {"key": "a", "header.b": "c"}}}));
        let b = parse(&json!({"reformat": {"set": {"header.b": "c", "key": "a"}}}));
        assert_ne!(a, b);
    }
}
