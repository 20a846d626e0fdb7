//! Operators: what is asked of the field at a path.

use super::Failure;
use super::broken_regex::BrokenRegex;
use super::compare::{equals, order, text_bytes};
use super::fault::{Place, suggest};
use super::json::scan;
use super::path::{Field, Path};
use regex::bytes::Regex;
use serde_json::Value;
use std::borrow::Cow;
use std::cmp::Ordering;

/// The operators' names.
pub(crate) const NAMES: [&str; 9] = [
    "in", "not", "gt", "gte", "lt", "lte", "matches", "contains", "exists",
];

/// One compiled operator with its operand.
#[derive(Clone, Debug)]
pub(crate) enum Operator {
    /// Equal to one of these.
    In(Vec<Field<'static>>),
    /// Equal to none of these.
    NotIn(Vec<Field<'static>>),
    /// Ordered so towards this.
    Order(Relation, Field<'static>),
    /// The whole text matches.
    Matches(Regex),
    /// The text has this part, or the array this element.
    Contains(Field<'static>),
    /// The text begins with this. CEL's alone, as the next one.
    StartsWith(String),
    /// The text ends with this.
    EndsWith(String),
    /// It is there.
    Exists,
    /// It is not there.
    Missing,
}

/// An order between a field and a literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    /// `gt`
    Greater,
    /// `gte`
    GreaterOrEqual,
    /// `lt`
    Less,
    /// `lte`
    LessOrEqual,
}

impl Operator {
    /// Compiles what stands behind a path: a literal, a list of them, or a map of operators.
    pub(crate) fn compile(value: &Value, place: &Place<'_>) -> Option<Vec<Self>> {
        let Value::Object(entries) = value else {
            return Some(vec![Self::In(literals(value, place)?)]);
        };
        if entries.is_empty() {
            return place.fault("an empty map says nothing");
        }
        let compiled: Vec<Option<Self>> = entries
            .iter()
            .map(|(name, operand)| Self::named(name, operand, &place.child(name)))
            .collect();
        compiled.into_iter().collect()
    }

    fn named(name: &str, operand: &Value, place: &Place<'_>) -> Option<Self> {
        match name {
            "in" => match operand {
                Value::Array(_) => Some(Self::In(literals(operand, place)?)),
                _ => place.fault("`in` takes a list"),
            },
            "not" => Some(Self::NotIn(literals(operand, place)?)),
            "gt" => Self::order(Relation::Greater, operand, place),
            "gte" => Self::order(Relation::GreaterOrEqual, operand, place),
            "lt" => Self::order(Relation::Less, operand, place),
            "lte" => Self::order(Relation::LessOrEqual, operand, place),
            "matches" => match operand {
                Value::String(pattern) => match whole_text(pattern) {
                    Ok(regex) => Some(Self::Matches(regex)),
                    Err(broken) => place.fault_regex(pattern, broken),
                },
                _ => place.fault("`matches` takes a regular expression as text"),
            },
            "contains" => Some(Self::Contains(literal(operand, place)?)),
            "exists" => match operand {
                Value::Bool(true) => Some(Self::Exists),
                Value::Bool(false) => Some(Self::Missing),
                _ => place.fault("`exists` takes true or false"),
            },
            _ => place.fault_with_help(format!("`{name}` is no operator"), suggest(name, NAMES)),
        }
    }

    fn order(relation: Relation, operand: &Value, place: &Place<'_>) -> Option<Self> {
        match literal(operand, place)? {
            Field::Null | Field::Bool(_) => place.fault("an order takes a number or a text"),
            literal => Some(Self::Order(relation, literal)),
        }
    }

    /// Whether `field`, read from `path`, passes.
    ///
    /// # Errors
    /// An element of an array that is no text.
    pub(crate) fn holds(&self, path: &Path, field: &Field<'_>) -> Result<bool, Failure> {
        Ok(match self {
            Self::In(literals) => return is_one_of(field, literals),
            Self::NotIn(literals) => !is_one_of(field, literals)?,
            Self::Order(relation, literal) => {
                order(field, literal).is_some_and(|o| relation.allows(o))
            }
            Self::Matches(regex) => matches(field, regex),
            Self::Contains(literal) => return contains(field, literal),
            Self::StartsWith(part) => starts_with(field, part.as_bytes()),
            Self::EndsWith(part) => ends_with(field, part.as_bytes()),
            Self::Exists => exists(path, field),
            Self::Missing => !exists(path, field),
        })
    }
}

/// A null key or value is not there; a null header or JSON null is.
fn exists(path: &Path, field: &Field<'_>) -> bool {
    match field {
        Field::Absent => false,
        Field::Null => matches!(path, Path::Header(_)) || !path.segments().is_empty(),
        _ => true,
    }
}

#[inline]
fn is_one_of(field: &Field<'_>, literals: &[Field<'static>]) -> Result<bool, Failure> {
    for literal in literals {
        if equals(field, literal)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A regular expression for the whole text.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn whole_text(pattern: &str) -> Result<Regex, BrokenRegex> {
    // By itself first: a parenthesis too many must not end the group around it.
    let compiled = Regex::new(pattern).and_then(|_| Regex::new(&format!(r"\A(?:{pattern})\z")));
    compiled.map_err(|error| BrokenRegex::of(pattern, &error))
}

/// Whether the text of `field` matches; objects and arrays have none.
pub(crate) fn matches(field: &Field<'_>, regex: &Regex) -> bool {
    match field {
        Field::Bool(_) | Field::Composite(_) => false,
        Field::Integer(_) => field.bytes().is_some_and(|bytes| regex.is_match(&bytes)),
        Field::Number(spelled) => regex.is_match(spelled.as_bytes()),
        _ => text_bytes(field).is_some_and(|bytes| regex.is_match(bytes)),
    }
}

/// Whether the text of `field` begins with `part`.
pub(crate) fn starts_with(field: &Field<'_>, part: &[u8]) -> bool {
    text_bytes(field).is_some_and(|text| text.starts_with(part))
}

/// Whether the text of `field` ends with `part`.
pub(crate) fn ends_with(field: &Field<'_>, part: &[u8]) -> bool {
    text_bytes(field).is_some_and(|text| text.ends_with(part))
}

/// Whether the text of `field` has the part `wanted`, or the array the element.
///
/// # Errors
/// An element that escapes half of a surrogate pair.
pub(crate) fn contains(field: &Field<'_>, wanted: &Field<'_>) -> Result<bool, Failure> {
    if let Field::Composite(document) = field {
        return has_element(document, wanted);
    }
    let part = match wanted {
        Field::Number(spelled) => Some(spelled.as_bytes()),
        Field::Integer(_) => return Ok(contains_number(field, wanted)),
        _ => text_bytes(wanted),
    };
    let (Some(text), Some(part)) = (text_bytes(field), part) else {
        return Ok(false);
    };
    Ok(has_part(text, part))
}

fn contains_number(field: &Field<'_>, number: &Field<'_>) -> bool {
    let digits = number.bytes().unwrap_or_default();
    text_bytes(field).is_some_and(|text| has_part(text, &digits))
}

fn has_part(text: &[u8], part: &[u8]) -> bool {
    part.is_empty() || text.windows(part.len()).any(|window| window == part)
}

/// Whether the array `document` has an element that equals `wanted`; an object has none.
///
/// # Errors
/// As [`contains`].
pub(crate) fn has_element(document: &[u8], wanted: &Field<'_>) -> Result<bool, Failure> {
    let mut found = false;
    if document.first() != Some(&b'[') {
        return Ok(false);
    }
    scan::each_element(document, &(0..document.len()), &mut |element| {
        found = found || equals(&Field::of_token(&document[element])?, wanted)?;
        Ok(())
    })?;
    Ok(found)
}

impl Relation {
    /// Whether `ordering`, of the left side towards the right, is so.
    pub(crate) fn allows(self, ordering: Ordering) -> bool {
        match self {
            Self::Greater => ordering.is_gt(),
            Self::GreaterOrEqual => ordering.is_ge(),
            Self::Less => ordering.is_lt(),
            Self::LessOrEqual => ordering.is_le(),
        }
    }

    /// The same relation with its sides exchanged.
    pub(crate) fn mirrored(self) -> Self {
        match self {
            Self::Greater => Self::Less,
            Self::GreaterOrEqual => Self::LessOrEqual,
            Self::Less => Self::Greater,
            Self::LessOrEqual => Self::GreaterOrEqual,
        }
    }
}

/// Compiles a single literal.
fn literal(value: &Value, place: &Place<'_>) -> Option<Field<'static>> {
    match value {
        Value::Null => Some(Field::Null),
        Value::Bool(b) => Some(Field::Bool(*b)),
        Value::Number(n) => Some(match n.as_i64() {
            Some(integer) => Field::Integer(integer),
            None => Field::Number(Cow::Owned(n.to_string())),
        }),
        Value::String(text) => Some(Field::Text(Cow::Owned(text.clone()))),
        Value::Array(_) | Value::Object(_) => {
            place.fault("a single value is expected: a text, a number, true, false or null")
        }
    }
}

fn literals(value: &Value, place: &Place<'_>) -> Option<Vec<Field<'static>>> {
    let Value::Array(list) = value else {
        return Some(vec![literal(value, place)?]);
    };
    if list.is_empty() {
        return place.fault("an empty list says nothing");
    }
    let compiled: Vec<Option<Field<'static>>> = list
        .iter()
        .enumerate()
        .map(|(index, value)| literal(value, &place.child(index)))
        .collect();
    compiled.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::cell::RefCell;

    fn passes(operator: &Value, token: &str) -> bool {
        let faults = RefCell::new(Vec::new());
        let operators = Operator::compile(operator, &Place::root(&faults)).expect("operators");
        let path = Path::parse("value.x").expect("a path");
        let field = Field::of_token(token.as_bytes()).expect("a token");
        operators.iter().all(|o| o.holds(&path, &field) == Ok(true))
    }

    #[test]
    fn equality_is_by_type_and_value() {
        let yes = [
            (json!(1), "1.0"),
            (json!(0.5), "5e-1"),
            (json!("a"), "\"\\u0061\""),
            (json!(null), "null"),
            (json!(true), "true"),
            (json!(["a", 2]), "2"),
            (json!({"in": [1, 2]}), "2"),
            (json!({"not": 1}), "2"),
            (json!({"not": [1, 2]}), "3"),
            (json!({"not": "1"}), "1"),
        ];
        for (operator, token) in yes {
            assert!(passes(&operator, token), "{operator} {token}");
        }
        let no = [
            (json!(1), "\"1\""),
            (json!("1"), "1"),
            (json!(null), "0"),
            (json!(true), "\"true\""),
            (json!({"not": [1, 2]}), "2.0"),
            (json!("a"), "[\"a\"]"),
        ];
        for (operator, token) in no {
            assert!(!passes(&operator, token), "{operator} {token}");
        }
    }

    #[test]
    fn orders_are_exact_and_need_one_type() {
        let yes = [
            (json!({"gt": 100}), "100.01"),
            (json!({"gte": 100}), "1e2"),
            (json!({"lt": 0}), "-0.1"),
            (json!({"lte": 2, "gt": 1}), "2"),
            (json!({"gt": "a"}), "\"b\""),
            (json!({"gt": 9007199254740992i64}), "9007199254740993"),
        ];
        for (operator, token) in yes {
            assert!(passes(&operator, token), "{operator} {token}");
        }
        let no = [
            (json!({"gt": 100}), "100"),
            (json!({"gt": 100}), "\"200\""),
            (json!({"lt": "b"}), "1"),
            (json!({"gt": 1}), "null"),
            (json!({"gt": 1}), "true"),
            (json!({"gt": 1}), "[2]"),
        ];
        for (operator, token) in no {
            assert!(!passes(&operator, token), "{operator} {token}");
        }
    }

    #[test]
    fn matches_the_whole_text() {
        assert!(passes(&json!({"matches": "ab?"}), "\"a\""));
        assert!(!passes(&json!({"matches": "a|b"}), "\"ab\""));
        assert!(passes(&json!({"matches": "[0-9.]+"}), "1.50"));
        assert!(!passes(&json!({"matches": ".*"}), "{}"));
    }

    #[test]
    fn contains_a_part_or_an_element() {
        assert!(passes(&json!({"contains": "b"}), "\"abc\""));
        assert!(!passes(&json!({"contains": "x"}), "\"abc\""));
        assert!(passes(&json!({"contains": 1}), "[2, 1.0]"));
        assert!(passes(&json!({"contains": null}), "[null]"));
        assert!(!passes(&json!({"contains": "b"}), "[\"abc\"]"));
        assert!(!passes(&json!({"contains": "a"}), "{\"a\":1}"));
    }

    #[test]
    fn json_null_exists() {
        assert!(passes(&json!({"exists": true}), "null"));
        assert!(!passes(&json!({"exists": false}), "null"));
    }
}
