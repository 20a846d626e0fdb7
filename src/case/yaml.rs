//! Values as YAML on one line, so that the file reads them back as they were.

use crate::config::scalar;
use crate::handler::compare_numbers;
use crate::trial::Bytes;
use crate::trial::json::Json;
use serde_json::Value;

/// A text: plain where that means the same, else in quotes.
pub(super) fn text(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_./@+- ".contains(c);
    let begins = text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_' || c == '/');
    let means_it = scalar::resolve(text) == Value::String(text.to_owned());
    let number = compare_numbers(text, text).is_some();
    if begins && !text.ends_with(' ') && text.chars().all(plain) && means_it && !number {
        return text.to_owned();
    }
    // `${` would be a substitution.
    let text = text.replace("${", "$${");
    match text.chars().any(char::is_control) {
        true => Value::String(text).to_string(),
        false => format!("'{}'", text.replace('\'', "''")),
    }
}

/// Bytes, with what comes behind the name of the key that can hold them.
pub(super) fn bytes(bytes: &Bytes) -> (&'static str, String) {
    match bytes.as_deref().map(std::str::from_utf8) {
        None => ("", "null".to_owned()),
        Some(Ok(plain)) => ("", text(plain)),
        Some(Err(_)) => {
            let bytes = bytes.as_deref().unwrap_or_default();
            // Digits alone would be read as a number.
            ("_hex", format!("'{}'", hex::encode(bytes)))
        }
    }
}

/// JSON in flow style.
pub(super) fn flow(json: &Json) -> String {
    match json {
        Json::Word(word) => word.clone(),
        Json::Text(plain) => text(plain),
        Json::List(items) => {
            let items: Vec<String> = items.iter().map(flow).collect();
            format!("[{}]", items.join(", "))
        }
        Json::Map(members) if members.is_empty() => "{}".to_owned(),
        Json::Map(members) => {
            let members = members.iter();
            let members = members.map(|(name, value)| format!("{}: {}", text(name), flow(value)));
            let members: Vec<String> = members.collect();
            format!("{{ {} }}", members.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_quoted_where_they_would_mean_something_else() {
        for (plain, written) in [
            ("orders.eu-1", "orders.eu-1"),
            ("two words", "two words"),
            ("", "''"),
            ("true", "'true'"),
            ("12", "'12'"),
            (
                "123456789012345678901234567890",
                "'123456789012345678901234567890'",
            ),
            ("it's", "'it''s'"),
            ("a: b", "'a: b'"),
            ("- a", "'- a'"),
            ("${X}", "'$${X}'"),
            ("a\nb", "\"a\\nb\""),
            ("é", "'é'"),
        ] {
            assert_eq!(text(plain), written);
        }
    }

    #[test]
    fn json_keeps_its_numbers() {
        let json = Json::parse(r#"{"a":[1.0,"1",null],"b":{}}"#).unwrap();
        assert_eq!(flow(&json), "{ a: [1.0, '1', null], b: {} }");
    }
}
