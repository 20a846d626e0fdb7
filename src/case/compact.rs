//! What a test writes as YAML → bytes. Numbers keep the spelling that they have in the file, so that
//! `1.0` stays `1.0` and thirty digits stay thirty digits.

use super::spec::Content;
use crate::config::document::Document;
use crate::config::pointer;
use crate::config::scalar;
use crate::handler::compare_numbers;
use serde_json::Value;

/// A text is its bytes, `null` is null, anything else compact JSON.
pub(super) fn content(value: &Value, at: &str, document: &Document) -> Content {
    match value {
        Value::Null => Content::Null,
        Value::String(text) if big_number(text, at, document).is_none() => {
            Content::Bytes(text.clone().into_bytes())
        }
        json => Content::Bytes(text(json, at, document).into_bytes()),
    }
}

/// The compact JSON of the value at `at`.
pub(super) fn text(value: &Value, at: &str, document: &Document) -> String {
    let mut out = String::new();
    write(value, at, document, &mut out);
    out
}

fn write(value: &Value, at: &str, document: &Document, out: &mut String) {
    match value {
        Value::Object(map) => {
            out.push('{');
            for (index, (name, member)) in map.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                out.push_str(&Value::String(name.clone()).to_string());
                out.push(':');
                write(member, &pointer::child(at, name), document, out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write(item, &pointer::item(at, index), document, out);
            }
            out.push(']');
        }
        Value::Number(number) => match spelling(at, document) {
            Some(spelling) => out.push_str(spelling),
            None => out.push_str(&number.to_string()),
        },
        Value::String(text) => match big_number(text, at, document) {
            Some(number) => out.push_str(number),
            None => out.push_str(&value.to_string()),
        },
        Value::Null | Value::Bool(_) => out.push_str(&value.to_string()),
    }
}

/// The scalar at `at` as it stands in the file, if that is a number as JSON spells it.
fn spelling<'d>(at: &str, document: &'d Document) -> Option<&'d str> {
    let spot = document.spots.get(at)?;
    let text = document.sources.slice(spot.value);
    compare_numbers(text, text).map(|_| text)
}

/// A plain scalar that is a number, but one that needs more room than a JSON value has here; it was
/// read as a text.
fn big_number<'d>(text: &str, at: &str, document: &'d Document) -> Option<&'d str> {
    let spelling = spelling(at, document).filter(|spelling| *spelling == text)?;
    scalar::resolve(text).is_string().then_some(spelling)
}
