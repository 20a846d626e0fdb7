//! Plain scalars by the core schema of YAML 1.2: `no` is a text, `012` is twelve.

use serde_json::{Number, Value};

/// What a plain scalar means.
pub fn resolve(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ => number(text).map_or_else(|| Value::String(text.to_owned()), Value::Number),
    }
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
}
