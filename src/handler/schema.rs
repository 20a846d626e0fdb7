//! The parts of the JSON Schema that types alone do not say.

use super::reformat::cast::TYPES;
use super::reformat::recode::CODECS;
use super::reformat::timestamp::UNITS;
use super::{dedupe, operator, predicate};
use crate::config::units::{DurationText, Unit};
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

/// What a path looks like.
const PATH: &str = r"^(topic|partition|offset|timestamp|header\..+|(key|value)([.\[].+)?)$";

/// What a path looks like that a step can change.
const CHANGED: &str = r"^(header\..+|(key|value)([.\[].+)?)$";

/// What a path of a field looks like.
const FIELD: &str = r"^(key|value)[.\[].+$";

/// What a path looks like that has a type.
const TYPED: &str = r"^(key|value)([.\[].+)?$";

/// Whether texts of that pattern are paths of records.
pub(crate) fn is_for_paths(pattern: &str) -> bool {
    [PATH, CHANGED, FIELD, TYPED].contains(&pattern)
}

/// What to do about a path that is one, and cannot stand where it was written.
pub(crate) fn not_written(path: &str) -> &'static str {
    match path {
        "topic" => "a topic is named by `rename: { topic: … }`",
        "timestamp" => "the timestamp is set by `reformat: { timestamp: … }`",
        "partition" => "the partition is picked by the route's `partitions`",
        _ => "write `value.NAME`, `key.NAME`, or, where headers can stand, `header.NAME`",
    }
}

/// Optional means left out, not null: takes the null from every optional property.
pub(super) fn without_null(schema: &mut Schema) {
    let Some(Value::Object(properties)) = schema.get_mut("properties") else {
        return;
    };
    for property in properties.values_mut().filter_map(Value::as_object_mut) {
        if let Some(Value::Array(types)) = property.get_mut("type") {
            types.retain(|t| t != "null");
            if let [only] = types.as_slice() {
                let only = only.clone();
                property.insert("type".to_owned(), only);
            }
        }
        if let Some(Value::Array(any)) = property.get_mut("anyOf") {
            any.retain(|branch| branch != &json!({"type": "null"}));
            if let [Value::Object(only)] = any.as_slice() {
                let only = only.clone();
                property.remove("anyOf");
                property.extend(only);
            }
        }
    }
}

/// Exactly one action in a step.
pub(super) fn one_action(schema: &mut Schema) {
    one_of(schema, &["filter", "rename", "reformat", "use"]);
}

/// Exactly one way to filter.
pub(super) fn one_filter(schema: &mut Schema) {
    one_of(schema, &["keep", "drop", "sample", "dedupe"]);
}

/// Exactly one thing to rename.
pub(super) fn one_rename(schema: &mut Schema) {
    one_of(schema, &["topic", "to", "header", "field"]);
}

fn one_of(schema: &mut Schema, names: &[&str]) {
    let branches: Vec<Value> = names.iter().map(|n| json!({"required": [n]})).collect();
    schema.insert("oneOf".to_owned(), Value::Array(branches));
}

/// A predicate, `itself` being the reference to it.
pub(super) fn predicate(itself: &Schema) -> Schema {
    let literal = json!({"type": ["string", "number", "boolean", "null"]});
    let literals = json!({"type": "array", "minItems": 1, "items": literal});
    let one_or_more = json!({"anyOf": [literal, literals]});
    let order = json!({"type": ["number", "string"]});
    let operators = json!({
        "type": "object",
        "minProperties": 1,
        "additionalProperties": false,
        "properties": {
            "in": {"description": "Equal to one of these.", "type": "array", "minItems": 1, "items": literal},
            "not": {"description": "Equal to none of these; true if absent.", "anyOf": [literal, literals]},
            "gt": {"description": "Greater than.", "type": order["type"]},
            "gte": {"description": "Greater than or equal to.", "type": order["type"]},
            "lt": {"description": "Less than.", "type": order["type"]},
            "lte": {"description": "Less than or equal to.", "type": order["type"]},
            "matches": {"description": "A regular expression for the whole text.", "type": "string"},
            "contains": {"description": "A part of the text, or an element of the array.", "type": literal["type"]},
            "exists": {"description": "Whether it is there.", "type": "boolean"},
        },
    });
    debug_assert_eq!(
        operators["properties"]
            .as_object()
            .map(serde_json::Map::len),
        Some(operator::NAMES.len())
    );
    json_schema!({
        "description": "A word, an expression, or a map of which all entries must hold: a path with a value, a list of values or operators; `all`, `any`, `not`.",
        "anyOf": [
            {"description": "tombstone: the value is null; null_key: the key is null; empty: the value has zero bytes.", "enum": predicate::WORDS},
            {"description": "A CEL expression over topic, partition, offset, timestamp, key, value and header.", "type": "string", "minLength": 1},
            {"description": "Always, or never.", "type": "boolean"},
            {
                "type": "object",
                "minProperties": 1,
                "properties": {
                    "all": {"description": "All of these hold.", "type": "array", "minItems": 1, "items": itself},
                    "any": {"description": "One of these holds.", "type": "array", "minItems": 1, "items": itself},
                    "not": {"description": "This does not hold.", "allOf": [itself]},
                },
                "patternProperties": {
                    PATH: {"anyOf": [one_or_more, operators]},
                },
                "additionalProperties": false,
            },
        ],
    })
}

/// A part of the whole: a bare number could be meant as a percentage.
pub(super) fn ratio(_: &mut SchemaGenerator) -> Schema {
    Unit::Ratio.schema("A part of the whole, from `0%` to `100%`.", &["1%", "0.5%"])
}

/// A duration, as everywhere in the file.
pub(super) fn duration(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<DurationText>()
}

/// How many ids `dedupe` holds.
pub(super) fn held_ids(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "integer", "minimum": 1, "maximum": dedupe::MOST})
}

/// Old header names with new ones.
pub(super) fn header_names(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "minProperties": 1,
        "additionalProperties": {"type": "string", "minLength": 1},
    })
}

/// Old paths with new ones.
pub(super) fn field_names(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "minProperties": 1,
        "patternProperties": {FIELD: {"type": "string"}},
        "additionalProperties": false,
    })
}

/// What `set` writes, by path.
pub(super) fn assignments(_: &mut SchemaGenerator) -> Schema {
    let source = json!({
        "anyOf": [
            {"description": "A template.", "type": "string"},
            {"description": "A literal.", "type": ["number", "boolean", "null", "array"]},
            {
                "type": "object",
                "properties": {"from": {"description": "The path that is copied.", "type": "string", "pattern": PATH}},
                "required": ["from"],
                "additionalProperties": false,
            },
            {
                "type": "object",
                "properties": {"expr": {"description": "A CEL expression that gives the value.", "type": "string", "minLength": 1}},
                "required": ["expr"],
                "additionalProperties": false,
            },
        ],
    });
    json_schema!({
        "type": "object",
        "minProperties": 1,
        "patternProperties": {CHANGED: source},
        "additionalProperties": false,
    })
}

/// Paths of what a step changes.
pub(super) fn changed_paths(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "minItems": 1,
        "items": {"type": "string", "pattern": CHANGED},
    })
}

/// Paths with a codec each.
pub(super) fn codecs(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "minProperties": 1,
        "patternProperties": {CHANGED: {"enum": CODECS}},
        "additionalProperties": false,
    })
}

/// Paths with a type each.
pub(super) fn types(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "minProperties": 1,
        "patternProperties": {TYPED: {"enum": TYPES}},
        "additionalProperties": false,
    })
}

/// The word that says that a step does its work.
pub(super) fn always(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"const": true})
}

/// `now`, a shift, or where the time stands.
pub(super) fn timestamp(_: &mut SchemaGenerator) -> Schema {
    let shift = Unit::Shift.schema(
        "Later by this, or earlier: `1h30m`, `-1h`.",
        &["-1h", "500ms"],
    );
    json_schema!({
        "anyOf": [
            {"description": "The time at which the record is handled.", "enum": ["now"]},
            {
                "type": "object",
                "properties": {
                    "shift": shift,
                    "from": {"description": "Where the time stands.", "type": "string", "pattern": PATH},
                    "unit": {
                        "description": "How it is written there: seconds, milliseconds (the default), microseconds or nanoseconds since 1970, RFC 3339, or a pattern such as `%d/%m/%Y` (in UTC).",
                        "anyOf": [{"enum": UNITS}, {"type": "string", "pattern": "%"}],
                        "default": "ms",
                    },
                    "if_absent": {
                        "description": "fail (the default): the step fails where there is no time; keep: the timestamp stays as it is.",
                        "enum": ["fail", "keep"],
                        "default": "fail",
                    },
                },
                "additionalProperties": false,
                "minProperties": 1,
            },
        ],
    })
}

/// A path or a list of paths.
pub(super) fn one_or_more_paths(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "anyOf": [
            {"type": "string", "pattern": PATH},
            {"type": "array", "minItems": 1, "items": {"type": "string", "pattern": PATH}},
        ],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handler::StepSpec;

    fn validator() -> jsonschema::Validator {
        let schema = schemars::schema_for!(Vec<StepSpec>);
        jsonschema::draft202012::new(schema.as_value()).expect("a schema")
    }

    #[test]
    fn accepts_the_grammar() {
        let steps = json!([
            {"filter": {"drop": "tombstone"}, "name": "x", "on_error": "pass"},
            {"filter": {"keep": {"header.region": ["pt", "es"], "value.amount": {"gt": 1, "lte": 9}}}},
            {"filter": {"keep": {"any": [{"key": null}, {"not": {"all": ["empty", {"topic": "t"}]}}]}}},
            {"filter": {"keep": "value.status == 'paid' && value.amount > 100"}, "when": false},
            {"filter": {"sample": "1%", "by": "key", "seed": "clicks"}},
            {"filter": {"dedupe": "value.id", "window": "10m", "max": 100}},
            {"rename": {"topic": "orders-{value.region}", "allow": ["orders-.+"]}},
            {"rename": {"to": [{"topic": "a", "when": {"value.c": ["PT"]}}, {"topic": "b"}]}},
            {"rename": {"field": {"value.usr": "value.user"}}, "when": {"value.usr": {"exists": true}}},
            {"reformat": {"set": {"header.x": "{source}", "value.a": true, "key": {"from": "value.id"}, "value.n": {"expr": "value.a + 1"}}, "unset": ["header.y-*"]}},
            {"reformat": {"split": {"array": "value.items", "into": "value.item", "carry": ["value.id"], "when_empty": "keep"}}},
            {"reformat": {"rekey": {"from": ["value.a", "value.b"], "as": "json"}}},
            {"reformat": {"mask": {"fields": ["value.a[*].b", "header.x", "key"], "with": "hash", "key": "k"}}},
            {"reformat": {"timestamp": "now"}},
            {"reformat": {"timestamp": {"shift": "-1h"}}},
            {"reformat": {"timestamp": {"from": "value.t", "unit": "rfc3339", "if_absent": "keep"}}},
            {"reformat": {"timestamp": {"from": "header.t", "unit": "%Y-%m-%d"}}},
            {"reformat": {"decode": {"value": "gzip", "header.x": "hex"}}},
            {"reformat": {"encode": {"value.a[*]": "json", "key": "base64"}}},
            {"reformat": {"cast": {"value.a[*]": "int", "key.b": "string"}}},
            {"reformat": {"flatten": {"separator": "."}}},
            {"reformat": {"flatten": {}}},
            {"reformat": {"envelope": true}},
            {"use": "mine"},
        ]);
        let validator = validator();
        let errors: Vec<String> = validator
            .iter_errors(&steps)
            .map(|e| e.to_string())
            .collect();
        assert_eq!(errors, Vec::<String>::new());
    }

    #[test]
    fn refuses_what_the_grammar_refuses() {
        let validator = validator();
        for step in [
            json!({}),
            json!({"name": "x"}),
            json!({"use": "a", "filter": {"drop": "empty"}}),
            json!({"filter": null}),
            json!({"filter": {}}),
            json!({"filter": {"drop": 7}}),
            json!({"filter": {"drop": {"valu.x": 1}}}),
            json!({"filter": {"drop": {"value.x": {"equals": 1}}}}),
            json!({"filter": {"sample": "1"}}),
            json!({"rename": {"topic": "a", "header": {"a": "b"}}}),
            json!({"reformat": {}}),
            json!({"reformat": {"set": {"topic": "x"}}}),
            json!({"reformat": {"set": {"value.x": {"form": "value.y"}}}}),
            json!({"reformat": {"mask": {"fields": [], "with": "redact"}}}),
            json!({"reformat": {"mask": {"fields": ["offset"], "with": "redact"}}}),
            json!({"reformat": {"mask": {"fields": ["value.x"], "with": "hide"}}}),
            json!({"reformat": {"mask": {"fields": ["value.x"]}}}),
            json!({"reformat": {"timestamp": "later"}}),
            json!({"reformat": {"timestamp": {}}}),
            json!({"reformat": {"timestamp": {"shift": 1}}}),
            json!({"reformat": {"timestamp": {"from": "value.t", "unit": "days"}}}),
            json!({"reformat": {"decode": {}}}),
            json!({"reformat": {"decode": {"value.x": "base46"}}}),
            json!({"reformat": {"encode": {"topic": "hex"}}}),
            json!({"reformat": {"cast": {"value.x": "decimal"}}}),
            json!({"reformat": {"cast": {"header.x": "int"}}}),
            json!({"reformat": {"flatten": {"separator": ""}}}),
            json!({"reformat": {"envelope": false}}),
            json!({"use": "x", "on_error": "abort_route"}),
        ] {
            assert!(!validator.is_valid(&json!([step])), "{step}");
        }
    }
}
