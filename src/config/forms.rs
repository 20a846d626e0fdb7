//! Values that may be written in two ways: a word, or a list or map.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, de};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// A name, or a list of names.
#[derive(Clone, Debug)]
pub struct OneOrMany {
    /// The names.
    pub names: Vec<String>,
    /// How they were written, for places.
    pub form: OneOrManyForm,
}

/// How names were written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OneOrManyForm {
    /// `source: lisbon`.
    One,
    /// `source: [lisbon, virginia]`.
    Many,
}

impl<'de> Deserialize<'de> for OneOrMany {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match Value::deserialize(from)? {
            Value::String(name) => Ok(Self {
                names: vec![name],
                form: OneOrManyForm::One,
            }),
            list @ Value::Array(_) => Ok(Self {
                names: serde_json::from_value(list).map_err(de::Error::custom)?,
                form: OneOrManyForm::Many,
            }),
            _ => Err(de::Error::custom("a name or a list of names")),
        }
    }
}

impl JsonSchema for OneOrMany {
    fn schema_name() -> Cow<'static, str> {
        "OneOrMany".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A name, or a list of names.",
            "oneOf": [
                { "type": "string" },
                { "type": "array", "items": { "type": "string" }, "minItems": 1 },
            ],
        })
    }
}

/// A list that stays in the document and is read from there.
#[derive(Clone, Copy, Debug)]
pub struct AsWritten;

impl<'de> Deserialize<'de> for AsWritten {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Vec::<de::IgnoredAny>::deserialize(from).map(|_| Self)
    }
}

/// A client property's value: text, number or boolean; clients take texts.
#[derive(Clone)]
pub struct Scalar(pub String);

impl std::fmt::Debug for Scalar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match Value::deserialize(from)? {
            Value::String(text) => Ok(Self(text)),
            value @ (Value::Number(_) | Value::Bool(_)) => Ok(Self(value.to_string())),
            _ => Err(de::Error::custom("a text, number or boolean")),
        }
    }
}

impl JsonSchema for Scalar {
    fn schema_name() -> Cow<'static, str> {
        "Property".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Value of a client property.",
            "type": ["string", "number", "boolean"],
        })
    }
}

/// A partition policy as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Partitions {
    /// A policy by its name.
    Policy {
        /// Which.
        policy: Policy,
        /// What `match` does when the target has fewer partitions.
        on_fewer: Option<Fewer>,
    },
    /// `{ fixed: N }`.
    Fixed(i32),
    /// `{ by: PATH }`.
    By(String),
}

/// Policies that have a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// Source partition p to target partition p.
    Match,
    /// murmur2 of the key.
    KeyHash,
    /// Source partition modulo the target's count.
    Modulo,
    /// One after the other.
    RoundRobin,
}

/// What `match` does when the target has fewer partitions and may not grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fewer {
    /// The surplus partitions halt.
    Stop,
    /// Modulo the target's count.
    Modulo,
}

impl<'de> Deserialize<'de> for Partitions {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match Value::deserialize(from)? {
            name @ Value::String(_) => Ok(Self::Policy {
                policy: read(name)?,
                on_fewer: None,
            }),
            Value::Object(mut map) => partitions(&mut map),
            _ => Err(de::Error::custom("the name of a policy, or a map")),
        }
    }
}

fn partitions<E: de::Error>(map: &mut Map<String, Value>) -> Result<Partitions, E> {
    let mut take = |name: &str| map.shift_remove(name);
    match (take("policy"), take("fixed"), take("by"), take("on_fewer")) {
        (Some(policy), None, None, on_fewer) => Ok(Partitions::Policy {
            policy: read(policy)?,
            on_fewer: on_fewer.map(read).transpose()?,
        }),
        (None, Some(fixed), None, None) => Ok(Partitions::Fixed(read(fixed)?)),
        (None, None, Some(by), None) => Ok(Partitions::By(read(by)?)),
        _ => Err(E::custom("exactly one of `policy`, `fixed` and `by`")),
    }
}

fn read<T: de::DeserializeOwned, E: de::Error>(value: Value) -> Result<T, E> {
    serde_json::from_value(value).map_err(E::custom)
}

impl JsonSchema for Partitions {
    fn schema_name() -> Cow<'static, str> {
        "Partitions".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let names = ["match", "key_hash", "modulo", "round_robin"];
        json_schema!({
            "description": "How the target partition is picked.",
            "oneOf": [
                { "type": "string", "enum": names },
                {
                    "type": "object",
                    "properties": {
                        "policy": { "type": "string", "enum": names, "description": "The policy." },
                        "on_fewer": {
                            "type": "string",
                            "enum": ["stop", "modulo"],
                            "default": "stop",
                            "description": "What `match` does when the target has fewer partitions and may not grow.",
                        },
                    },
                    "required": ["policy"],
                    "additionalProperties": false,
                },
                {
                    "type": "object",
                    "properties": {
                        "fixed": {
                            "type": "integer", "minimum": 0, "maximum": i32::MAX,
                            "description": "Always this partition.",
                        },
                    },
                    "required": ["fixed"],
                    "additionalProperties": false,
                },
                {
                    "type": "object",
                    "properties": {
                        "by": { "type": "string", "description": "Hash of this path or header." },
                    },
                    "required": ["by"],
                    "additionalProperties": false,
                },
            ],
        })
    }
}

/// A rebalance listener as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listener {
    /// `log`, or one that an embedding program registered.
    Named(String),
    /// `{ exec: [command, args…] }`.
    Exec(Vec<String>),
}

impl<'de> Deserialize<'de> for Listener {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match Value::deserialize(from)? {
            Value::String(name) => Ok(Self::Named(name)),
            Value::Object(mut map) => match map.shift_remove("exec") {
                Some(command) => Ok(Self::Exec(read(command)?)),
                None => Err(de::Error::custom("a map with `exec`")),
            },
            _ => Err(de::Error::custom("a name, or a map with `exec`")),
        }
    }
}

impl JsonSchema for Listener {
    fn schema_name() -> Cow<'static, str> {
        "RebalanceListener".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Who is told about rebalances.",
            "oneOf": [
                { "type": "string" },
                {
                    "type": "object",
                    "properties": {
                        "exec": {
                            "type": "array", "items": { "type": "string" }, "minItems": 1,
                            "description": "The program and its arguments; the event comes as JSON on its standard input.",
                        },
                    },
                    "required": ["exec"],
                    "additionalProperties": false,
                },
            ],
        })
    }
}
