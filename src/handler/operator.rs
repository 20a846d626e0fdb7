//! Operators: what is asked of the field at a path.

use super::Failure;
use super::fault::{Place, suggest};
use super::json::{number, scan};
use super::path::{Field, Path};
use regex::bytes::Regex;
use serde_json::Value;
use std::cmp::Ordering;

/// The operators' names.
pub(crate) const NAMES: [&str; 9] = [
    "in", "not", "gt", "gte", "lt", "lte", "matches", "contains", "exists",
];

/// One compiled operator with its operand.
#[derive(Clone, Debug)]
pub(crate) enum Operator {
    /// Equal to one of these.
    In(Vec<Literal>),
    /// Equal to none of these.
    NotIn(Vec<Literal>),
    /// Ordered so towards this.
    Order(Relation, Literal),
    /// The whole text matches.
    Matches(Regex),
    /// The text has this part, or the array this element.
    Contains(Literal),
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

/// A value as written in the file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Literal {
    /// null
    Null,
    /// true or false
    Bool(bool),
    /// A number, and the integer that it is if it is one.
    Number(String, Option<i64>),
    /// A text.
    Text(String),
}

impl Operator {
    /// Compiles what stands behind a path: a literal, a list of them, or a map of operators.
    pub(crate) fn compile(value: &Value, place: &Place<'_>) -> Option<Vec<Self>> {
        let Value::Object(entries) = value else {
            return Some(vec![Self::In(Literal::one_or_more(value, place)?)]);
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
                Value::Array(_) => Some(Self::In(Literal::one_or_more(operand, place)?)),
                _ => place.fault("`in` takes a list"),
            },
            "not" => Some(Self::NotIn(Literal::one_or_more(operand, place)?)),
            "gt" => Self::order(Relation::Greater, operand, place),
            "gte" => Self::order(Relation::GreaterOrEqual, operand, place),
            "lt" => Self::order(Relation::Less, operand, place),
            "lte" => Self::order(Relation::LessOrEqual, operand, place),
            "matches" => match operand {
                Value::String(pattern) => match Regex::new(&format!(r"\A(?:{pattern})\z")) {
                    Ok(regex) => Some(Self::Matches(regex)),
                    Err(error) => place.fault(format!("no regular expression: {error}")),
                },
                _ => place.fault("`matches` takes a regular expression as text"),
            },
            "contains" => Some(Self::Contains(Literal::compile(operand, place)?)),
            "exists" => match operand {
                Value::Bool(true) => Some(Self::Exists),
                Value::Bool(false) => Some(Self::Missing),
                _ => place.fault("`exists` takes true or false"),
            },
            _ => place.fault_with_help(format!("`{name}` is no operator"), suggest(name, NAMES)),
        }
    }

    fn order(relation: Relation, operand: &Value, place: &Place<'_>) -> Option<Self> {
        match Literal::compile(operand, place)? {
            literal @ (Literal::Number(..) | Literal::Text(_)) => {
                Some(Self::Order(relation, literal))
            }
            Literal::Null | Literal::Bool(_) => place.fault("an order takes a number or a text"),
        }
    }

    /// Whether `field`, read from `path`, passes.
    ///
    /// # Errors
    /// An element of an array that is no text.
    pub(crate) fn holds(&self, path: &Path, field: &Field<'_>) -> Result<bool, Failure> {
        Ok(match self {
            Self::In(literals) => literals.iter().any(|l| l.equals(field)),
            Self::NotIn(literals) => !literals.iter().any(|l| l.equals(field)),
            Self::Order(relation, literal) => {
                literal.order(field).is_some_and(|o| relation.allows(o))
            }
            Self::Matches(regex) => match field {
                Field::Bool(_) | Field::Composite(_) => false,
                _ => field.bytes().is_some_and(|bytes| regex.is_match(&bytes)),
            },
            Self::Contains(literal) => return contains(field, literal),
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

fn contains(field: &Field<'_>, literal: &Literal) -> Result<bool, Failure> {
    let text = match field {
        Field::Text(text) => text.as_bytes(),
        Field::Bytes(bytes) => bytes,
        Field::Composite(document) => {
            let span = 0..document.len();
            for element in scan::elements(document, &span)?.unwrap_or_default() {
                if literal.equals(&Field::of_token(&document[element])?) {
                    return Ok(true);
                }
            }
            return Ok(false);
        }
        _ => return Ok(false),
    };
    let part = match literal {
        Literal::Text(part) | Literal::Number(part, _) => part.as_bytes(),
        Literal::Null | Literal::Bool(_) => return Ok(false),
    };
    Ok(part.is_empty() || text.windows(part.len()).any(|window| window == part))
}

impl Relation {
    fn allows(self, field_to_literal: Ordering) -> bool {
        match self {
            Self::Greater => field_to_literal.is_gt(),
            Self::GreaterOrEqual => field_to_literal.is_ge(),
            Self::Less => field_to_literal.is_lt(),
            Self::LessOrEqual => field_to_literal.is_le(),
        }
    }
}

impl Literal {
    /// Compiles a single literal.
    pub(crate) fn compile(value: &Value, place: &Place<'_>) -> Option<Self> {
        match value {
            Value::Null => Some(Self::Null),
            Value::Bool(b) => Some(Self::Bool(*b)),
            Value::Number(n) => Some(Self::Number(n.to_string(), n.as_i64())),
            Value::String(text) => Some(Self::Text(text.clone())),
            Value::Array(_) | Value::Object(_) => {
                place.fault("a single value is expected: a text, a number, true, false or null")
            }
        }
    }

    fn one_or_more(value: &Value, place: &Place<'_>) -> Option<Vec<Self>> {
        let Value::Array(list) = value else {
            return Some(vec![Self::compile(value, place)?]);
        };
        if list.is_empty() {
            return place.fault("an empty list says nothing");
        }
        let compiled: Vec<Option<Self>> = list
            .iter()
            .enumerate()
            .map(|(index, value)| Self::compile(value, &place.child(index)))
            .collect();
        compiled.into_iter().collect()
    }

    /// Whether `field` is this. Bytes without a type (headers, keys, topics) are compared as what
    /// the literal is: `header.version: 2` is the text `2`.
    fn equals(&self, field: &Field<'_>) -> bool {
        match (self, field) {
            (Self::Null, Field::Null) => true,
            (Self::Bool(wanted), Field::Bool(found)) => wanted == found,
            (Self::Bool(wanted), Field::Bytes(found)) => {
                *found == if *wanted { "true" } else { "false" }.as_bytes()
            }
            (Self::Text(wanted), Field::Text(found)) => wanted == found,
            (Self::Text(wanted), Field::Bytes(found)) => wanted.as_bytes() == *found,
            (Self::Number(..), _) => self.order(field) == Some(Ordering::Equal),
            _ => false,
        }
    }

    /// How `field` is ordered towards this; `None` where they cannot be compared.
    fn order(&self, field: &Field<'_>) -> Option<Ordering> {
        match (self, field) {
            (Self::Number(_, Some(literal)), Field::Integer(found)) => Some(found.cmp(literal)),
            (Self::Number(literal, _), Field::Integer(found)) => {
                number::compare(&found.to_string(), literal)
            }
            (Self::Number(literal, _), Field::Number(found)) => number::compare(found, literal),
            (Self::Number(literal, _), Field::Bytes(found)) => {
                number::compare(std::str::from_utf8(found).ok()?, literal)
            }
            (Self::Text(literal), Field::Text(found)) => Some(found.as_ref().cmp(literal)),
            (Self::Text(literal), Field::Bytes(found)) => Some((*found).cmp(literal.as_bytes())),
            _ => None,
        }
    }
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
