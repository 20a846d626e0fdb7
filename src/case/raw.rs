//! `tests:` as written.

use crate::config::raw::{raw, without_null};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, de};
use serde_json::{Value, json};
use std::borrow::Cow;

/// Bytes: a text is its bytes, `null` is null, anything else is compact JSON.
#[derive(Clone, Debug, PartialEq)]
pub struct Payload(pub Value);

/// `null` is a payload, and not the same as none.
fn written<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Payload>, D::Error> {
    Value::deserialize(from).map(|value| Some(Payload(value)))
}

impl JsonSchema for Payload {
    fn schema_name() -> Cow<'static, str> {
        "Payload".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!(true)
    }
}

/// Headers: a map by name, or a list of `[name, value]` where order and repeats matter.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(transparent)]
pub struct RawHeaders(pub Value);

impl JsonSchema for RawHeaders {
    fn schema_name() -> Cow<'static, str> {
        "Headers".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Headers: a map by name, or a list of `[name, value]` where order and repeats matter.",
            "anyOf": [
                { "type": "object" },
                {
                    "type": "array",
                    "items": { "type": "array", "minItems": 2, "maxItems": 2 },
                },
            ],
        })
    }
}

/// What must come out: the records, or how many there are.
#[derive(Clone, Debug)]
pub enum RawOutputs {
    /// `out: 3`.
    Count(usize),
    /// `out: [{ topic: orders }]`.
    Records(Vec<RawOutput>),
}

impl<'de> Deserialize<'de> for RawOutputs {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match Value::deserialize(from)? {
            list @ Value::Array(_) => serde_json::from_value(list).map(Self::Records),
            count => serde_json::from_value(count).map(Self::Count),
        }
        .map_err(de::Error::custom)
    }
}

impl JsonSchema for RawOutputs {
    fn schema_name() -> Cow<'static, str> {
        "Outputs".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let output = generator.subschema_for::<RawOutput>();
        json_schema!({
            "description": "The records, in order, or how many there are.",
            "anyOf": [
                { "type": "integer", "minimum": 0 },
                { "type": "array", "items": output },
            ],
        })
    }
}

/// A failure code.
#[derive(Clone, Debug, Deserialize)]
#[serde(transparent)]
pub struct RawFailure(pub String);

impl JsonSchema for RawFailure {
    fn schema_name() -> Cow<'static, str> {
        "Failure".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let codes = super::spec::FAILURES.map(|code| json!(code.as_str()));
        json_schema!({ "type": "string", "enum": codes })
    }
}

raw! {
    /// A test: records that go into a route, and what must come out.
    pub struct RawTest {
        /// Its name, for reports and `--only`; its number where absent.
        pub name: Option<String>,
        /// The route.
        #[schemars(required)]
        pub route: Option<String>,
        /// The target cluster; the route's first where absent.
        pub target: Option<String>,
        /// How many partitions the target topics have; 12, or as many as `match` and `fixed` need,
        /// where absent.
        #[schemars(range(min = 1))]
        pub target_partitions: Option<i32>,
        /// The records, in the order in which they are fetched.
        #[serde(rename = "in")]
        #[schemars(required, length(min = 1))]
        pub input: Option<Vec<RawInput>>,
        /// What must come out of them.
        pub out: Option<RawOutputs>,
        /// What must drop the last record: the action (`filter`, `reformat`, `use`) or the `name`
        /// of a step; `topics` if the route does not copy its topic.
        pub dropped: Option<String>,
        /// The code that the last record must fail with.
        pub failed: Option<RawFailure>,
    }

    /// A record that goes into a route.
    pub struct RawInput {
        /// The source cluster; the route's first where absent.
        pub source: Option<String>,
        /// The source topic.
        pub topic: Option<String>,
        /// The key; null where absent. A text is its bytes, anything else compact JSON.
        #[serde(default, deserialize_with = "written")]
        #[schemars(with = "Payload")]
        pub key: Option<Payload>,
        /// The key's bytes in hexadecimal.
        pub key_hex: Option<String>,
        /// The value; null where absent. A text is its bytes, anything else compact JSON.
        #[serde(default, deserialize_with = "written")]
        #[schemars(with = "Payload")]
        pub value: Option<Payload>,
        /// The value's bytes in hexadecimal.
        pub value_hex: Option<String>,
        /// The value's bytes in base64.
        pub value_base64: Option<String>,
        /// A file with the value's bytes, relative to this file.
        pub value_file: Option<String>,
        /// The headers.
        pub headers: Option<RawHeaders>,
        /// The timestamp in milliseconds; 2024-01-01T00:00:00Z where absent.
        pub timestamp: Option<i64>,
        /// Where it stands; partition 0, and an offset after the last one's, where absent.
        pub at: Option<RawAt>,
        /// Lines of `kcat -J` in place of all that.
        pub kcat: Option<String>,
        /// A file of such lines, relative to this file.
        pub kcat_file: Option<String>,
    }

    /// Where a record stands at the source.
    pub struct RawAt {
        /// The partition; 0 where absent.
        #[schemars(range(min = 0))]
        pub partition: Option<i32>,
        /// The offset.
        #[schemars(range(min = 0))]
        pub offset: Option<i64>,
    }

    /// A record that must come out. Only what is written is compared.
    pub struct RawOutput {
        /// The target topic.
        pub topic: Option<String>,
        /// The target partition.
        #[schemars(range(min = 0))]
        pub target_partition: Option<i32>,
        /// The key: a text by its bytes, anything else as JSON, numbers by value.
        #[serde(default, deserialize_with = "written")]
        #[schemars(with = "Payload")]
        pub key: Option<Payload>,
        /// The key's bytes in hexadecimal.
        pub key_hex: Option<String>,
        /// The value: a text by its bytes, anything else as JSON, numbers by value.
        #[serde(default, deserialize_with = "written")]
        #[schemars(with = "Payload")]
        pub value: Option<Payload>,
        /// The value's bytes in hexadecimal.
        pub value_hex: Option<String>,
        /// The value's bytes in base64.
        pub value_base64: Option<String>,
        /// A file with the value's bytes, relative to this file.
        pub value_file: Option<String>,
        /// Headers that must be there; others may be.
        pub headers: Option<RawHeaders>,
        /// All headers.
        pub headers_exactly: Option<RawHeaders>,
        /// The timestamp in milliseconds.
        pub timestamp: Option<i64>,
    }
}
