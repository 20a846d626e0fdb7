//! Plain scalars by the core schema of YAML 1.2: `no` is a text, `012` is twelve.

use crate::handler::compare_numbers;
use serde_json::{Number, Value};
use std::cmp::Ordering;

/// What a plain scalar means.
pub fn resolve(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ => number(text).map_or_else(|| Value::String(text.to_owned()), Value::Number),
    }
}

/// Whether `text` is spelled as a number that a JSON value cannot hold as it is: one with 30 digits
/// would be rounded, or be a text.
pub fn is_beyond(text: &str) -> bool {
    let held = resolve(text);
    if let Some(digits) = text.strip_prefix("0x").or(text.strip_prefix("0o")) {
        let radix = if text.starts_with("0x") { 16 } else { 8 };
        let is_number = !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix));
        return is_number && !held.is_number();
    }
    let spelled = as_json(text);
    match held {
        Value::Number(held) => {
            let held = as_json(&held.to_string());
            compare_numbers(&spelled, &held).is_some_and(Ordering::is_ne)
        }
        Value::String(_) => {
            let has_digits = text.contains(|c: char| c.is_ascii_digit());
            has_digits && compare_numbers(&spelled, &spelled).is_some()
        }
        _ => false,
    }
}

/// A number as JSON spells it: without `+`, without zeros in front, with a digit on both sides of
/// the point. What is no number stays none.
fn as_json(text: &str) -> String {
    let (sign, unsigned) = match text.strip_prefix('-') {
        Some(unsigned) => ("-", unsigned),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let digits = unsigned.strip_prefix('.').unwrap_or(unsigned);
    if !digits.starts_with(|c: char| c.is_ascii_digit()) {
        return text.to_owned();
    }
    let whole = unsigned.find(|c: char| !c.is_ascii_digit());
    let (whole, rest) = unsigned.split_at(whole.unwrap_or(unsigned.len()));
    let whole = whole.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    let rest = match rest.strip_prefix('.') {
        Some(fraction) if !fraction.starts_with(|c: char| c.is_ascii_digit()) => {
            format!(".0{fraction}")
        }
        _ => rest.to_owned(),
    };
    format!("{sign}{whole}{rest}")
}

/// `text` as a number; what JSON cannot hold (`.inf`, 30 digits) stays a text.
fn number(text: &str) -> Option<Number> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if let Some(octal) = text.strip_prefix("0o") {
        return radix(octal, 8);
    }
    if let Some(hex) = text.strip_prefix("0x") {
        return radix(hex, 16);
    }
    if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) {
        return integer(text);
    }
    let float_like = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && digits.contains(|c: char| c.is_ascii_digit())
        && digits
            .bytes()
            .all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b));
    float_like
        .then(|| text.parse().ok().and_then(Number::from_f64))
        .flatten()
}

fn radix(digits: &str, radix: u32) -> Option<Number> {
    let plain = !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix));
    plain
        .then(|| u64::from_str_radix(digits, radix).ok().map(Number::from))
        .flatten()
}

fn integer(text: &str) -> Option<Number> {
    let text = text.strip_prefix('+').unwrap_or(text);
    text.parse::<u64>()
        .map(Number::from)
        .or_else(|_| text.parse::<i64>().map(Number::from))
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn words_and_numbers_mean_what_they_say() {
        for (text, value) in [
            ("no", json!("no")),
            ("on", json!("on")),
            ("true", json!(true)),
            ("", json!(null)),
            ("012", json!(12)),
            ("0x1f", json!(31)),
            ("0o17", json!(15)),
            ("-7", json!(-7)),
            ("+7", json!(7)),
            ("1.5", json!(1.5)),
            ("1e3", json!(1000.0)),
            ("1_000", json!("1_000")),
            (".inf", json!(".inf")),
            ("1.2.3", json!("1.2.3")),
            ("127.0.0.1:80", json!("127.0.0.1:80")),
            ("10s", json!("10s")),
            ("99999999999999999999999", json!("99999999999999999999999")),
        ] {
            assert_eq!(resolve(text), value, "{text}");
        }
    }

    #[test]
    fn numbers_that_a_json_value_cannot_hold_are_told() {
        for text in [
            "123456789012345678901234567890",
            "-9223372036854775809",
            "18446744073709551616",
            "012345678901234567890123",
            "0.123456789012345678901234567890",
            ".123456789012345678901234567890",
            "+1.123456789012345678901",
            "1e400",
            "9007199254740993.0",
            "0xffffffffffffffffff",
            "0o7777777777777777777777777",
        ] {
            assert!(is_beyond(text), "{text}");
        }
        for text in [
            "18446744073709551615",
            "-9223372036854775808",
            "012",
            "+7",
            "0x1f",
            "0.1",
            ".5",
            "5.",
            "-.25",
            "1.50",
            "1e3",
            "1E-7",
            "123456789.125",
            "no",
            "",
            ".",
            "-",
            "+.e",
            "e5",
            "-E10",
            ".e5",
            "1.2.3",
            "10s",
            "0x",
            "0xyz",
            "2024-01-01",
        ] {
            assert!(!is_beyond(text), "{text}");
        }
    }
}
