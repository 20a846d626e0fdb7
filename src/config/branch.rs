//! Alternatives of the schema: what each branch says of a value that none of them takes.

use crate::config::schema;
use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use serde_json::Value;

/// The keys of which there must be exactly one: each branch requires one of them.
pub fn alternatives(error: &ValidationError<'_>) -> Vec<String> {
    let path = error.schema_path().to_string();
    let branches = schema::schema().pointer(&path).and_then(Value::as_array);
    let required = |branch: &Value| branch.pointer("/required/0")?.as_str().map(str::to_owned);
    branches
        .into_iter()
        .flatten()
        .filter_map(required)
        .collect()
}

/// The key that a branch misses at `at`, if it misses nothing else.
pub fn missing_of(branch: &[ValidationError<'static>], at: &str) -> Option<String> {
    match branch {
        [only] if only.instance_path().to_string() == at => match only.kind() {
            Kind::Required { property } => property.as_str().map(str::to_owned),
            _ => None,
        },
        _ => None,
    }
}

/// The words that a branch takes at `at`, if it is a set of words.
pub fn words_of(branch: &[ValidationError<'static>], at: &str) -> Option<Vec<Value>> {
    branch.iter().find_map(|error| match error.kind() {
        _ if error.instance_path().to_string() != at => None,
        Kind::Constant { expected_value } => Some(vec![Value::clone(expected_value)]),
        Kind::Enum { options } => options.as_array().cloned(),
        _ => None,
    })
}

/// The types that a branch takes at `at`, if the value is of another.
pub fn types_of(branch: &[ValidationError<'static>], at: &str) -> Option<Vec<String>> {
    branch.iter().find_map(|error| match error.kind() {
        Kind::Type { kind } if error.instance_path().to_string() == at => Some(types(kind)),
        _ => None,
    })
}

/// How far a branch is from what was meant: another type, another word, a missing or an unknown
/// key weigh more than something wrong further inside.
pub fn distance(branch: &[ValidationError<'static>], at: &str) -> usize {
    let weight = |error: &ValidationError<'_>| {
        let here = error.instance_path().to_string() == at;
        match error.kind() {
            Kind::Type { .. } if here => 10_000,
            Kind::Constant { .. } | Kind::Enum { .. } if here => 1000,
            Kind::Required { .. } if here => 100,
            Kind::AdditionalProperties { unexpected } if here => 20 * unexpected.len(),
            Kind::Constant { .. } => 50,
            Kind::AnyOf { context } | Kind::OneOfNotValid { context } if here => {
                context.iter().map(|b| distance(b, at)).min().unwrap_or(1)
            }
            _ => 1,
        }
    };
    branch.iter().map(weight).sum()
}

/// The types that a schema takes.
pub fn types(kind: &TypeKind) -> Vec<String> {
    match kind {
        TypeKind::Single(one) => vec![one.to_string()],
        TypeKind::Multiple(set) => set.iter().map(|t| t.to_string()).collect(),
    }
}
