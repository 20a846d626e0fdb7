//! `reformat` as written in the file.

use crate::config::secret::Secret;
use crate::handler::schema;
use crate::handler::spec::Entries;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Changes what a record contains: exactly one of these (`set` and `unset` may stand together).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = schema::without_null, extend("minProperties" = 1))]
pub struct ReformatSpec {
    /// Writes the key, the value, headers or fields, in the order written: a template, a literal,
    /// or `{ from: PATH }`. Missing parent objects are created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::assignments")]
    pub set: Option<Entries>,
    /// Removes headers (`header.x-*` for all that begin so) and fields, before `set`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unset: Option<Vec<String>>,
    /// Hides what fields say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mask: Option<MaskSpec>,
    /// One record for each element of an array.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<SplitSpec>,
    /// Makes the key from fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rekey: Option<RekeySpec>,
    /// Changes the timestamp: `now`, `{ shift: -1h }`, or `{ from: PATH }`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::timestamp")]
    pub timestamp: Option<Value>,
    /// Decodes what stands at a path: `base64`, `hex`, `gzip` (in a field: gzip in base64), or
    /// `json`: the JSON inside a JSON text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::codecs")]
    pub decode: Option<Entries>,
    /// The way back from `decode`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::codecs")]
    pub encode: Option<Entries>,
    /// Makes fields values of another type: `string`, `int`, `float` or `bool`. What would lose
    /// something fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::types")]
    pub cast: Option<Entries>,
    /// Makes the nested objects of the value one level; arrays stay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flatten: Option<FlattenSpec>,
    /// Puts the value into an object under this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub hoist: Option<String>,
    /// The field at this path becomes the value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extract: Option<String>,
    /// Makes the value `{"source":{cluster,topic,partition,offset,timestamp},"key":…,
    /// "headers":[[name,value],…],"value":…}`: key and headers as texts, the value as the JSON that
    /// it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::always")]
    pub envelope: Option<bool>,
}

/// Hides what fields say. What is null, or not there, stays as it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = schema::without_null)]
pub struct MaskSpec {
    /// Fields (`[*]` for every element), headers, the key or the value.
    #[schemars(schema_with = "schema::changed_paths")]
    pub fields: Vec<String>,
    /// How they are hidden.
    pub with: MaskWith,
    /// The secret of `hash`; `${file:/run/secrets/…}` keeps it out of this file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Secret>,
}

/// How `mask` hides a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MaskWith {
    /// HMAC-SHA-256 of the text under `key`, in hexadecimal digits: equal texts stay equal.
    Hash,
    /// Stars for all but the last four characters; for all where there are no more than four.
    Last4,
    /// `***`.
    Redact,
    /// Null.
    Erase,
    /// 9 for each digit, x or X for each letter; the rest stays, and a number stays a number.
    KeepFormat,
}

/// One record for each element of an array. Key, headers and timestamp are those of the input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = schema::without_null)]
pub struct SplitSpec {
    /// The array, such as `value.items`.
    pub array: String,
    /// Where an element stands in its record: `value` (it is the value; the default) or a field.
    #[serde(default = "whole_value")]
    pub into: String,
    /// Fields of the input that every output carries at the same path; nothing else is kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub carry: Vec<String>,
    /// A header for the element's index, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index_header: Option<String>,
    /// What an empty array does.
    #[serde(default)]
    pub when_empty: WhenEmpty,
}

fn whole_value() -> String {
    "value".to_owned()
}

/// What an empty array does in `split`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WhenEmpty {
    /// The record is dropped.
    #[default]
    Drop,
    /// The record goes on as it is.
    Keep,
    /// The step fails with `absent`.
    Fail,
}

/// Makes the nested objects of the value one level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlattenSpec {
    /// What joins the names.
    #[serde(default = "dot")]
    #[schemars(length(min = 1))]
    pub separator: String,
}

fn dot() -> String {
    ".".to_owned()
}

/// Makes the key from fields.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RekeySpec {
    /// A path, or a list of paths: the key is then a JSON array of them.
    #[schemars(schema_with = "schema::one_or_more_paths")]
    pub from: Value,
    /// How the key is written. A list of paths is JSON in either case.
    #[serde(default, rename = "as")]
    pub as_: KeyForm,
}

/// How `rekey` writes a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum KeyForm {
    /// A text without quotes, a number as it is spelled.
    #[default]
    String,
    /// As JSON.
    Json,
}
