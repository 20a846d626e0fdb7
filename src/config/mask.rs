//! Literal secrets are starred out of what diagnostics show (B140).

use crate::config::place::Sources;
use crate::config::tree::Tree;
use regex::Regex;
use serde_json::Value;
use std::sync::LazyLock;

/// Whether the value of a key of this name is a secret.
pub fn is_secret(name: &str) -> bool {
    const WORDS: [&str; 7] = [
        "password",
        "secret",
        "token",
        "jaas",
        "passphrase",
        "key.pem",
        "credential",
    ];
    let name = name.as_bytes();
    WORDS.iter().any(|word| {
        let mut windows = name.windows(word.len());
        windows.any(|window| window.eq_ignore_ascii_case(word.as_bytes()))
    })
}

/// Whether a scalar at `pointer` is a secret: its key has a secret's name, or it is a mask's key.
pub fn is_secret_pointer(pointer: &str) -> bool {
    let last = pointer.rfind('/').map_or(pointer, |at| &pointer[at + 1..]);
    pointer.ends_with("/mask/key") || is_secret(last)
}

/// Stars out the literal secrets of a file that was read. A reference (`${…}`) is no secret.
pub fn mask_tree(sources: &mut Sources, tree: &Tree) {
    let Some(source) = sources.get(tree.file) else {
        return;
    };
    let mut secrets = Vec::new();
    let named = tree.spots.named(|name| is_secret(name) || name == "key");
    for (pointer, spot) in named.filter(|(pointer, _)| is_secret_pointer(pointer)) {
        let literal = !sources.slice(spot.value).contains("${");
        let scalar = tree.value.pointer(&pointer).is_some_and(is_scalar);
        if literal && scalar {
            secrets.push(spot.value.start..spot.value.end);
        }
    }
    // Most files have none, and are shown as they are.
    if secrets.is_empty() {
        return;
    }
    let mut shown = source.text.clone();
    secrets
        .into_iter()
        .for_each(|secret| star(&mut shown, secret));
    sources.show(tree.file, shown);
}

/// Adds what stands at the keys of clusters and of the admin interface that have a secret's name, and the
/// keys of masks.
pub fn secrets(document: &Value, secrets: &mut Vec<String>) {
    for section in ["clusters", "admin"] {
        named(
            document.get(section).unwrap_or(&Value::Null),
            &is_secret,
            secrets,
        );
    }
    for section in ["handlers", "routes", "defaults"] {
        masks(document.get(section).unwrap_or(&Value::Null), secrets);
    }
}

/// The scalars below `value` whose key `wanted` takes.
fn named(value: &Value, wanted: &dyn Fn(&str) -> bool, secrets: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match member {
                    Value::String(text) if wanted(name) => secrets.push(text.clone()),
                    Value::Number(number) if wanted(name) => secrets.push(number.to_string()),
                    _ => named(member, wanted, secrets),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| named(item, wanted, secrets)),
        _ => {}
    }
}

/// The keys of `mask: { …, key: … }`.
fn masks(value: &Value, secrets: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match name.as_str() {
                    "mask" => named(member, &|name| name == "key", secrets),
                    _ => masks(member, secrets),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| masks(item, secrets)),
        _ => {}
    }
}

fn is_scalar(value: &Value) -> bool {
    !value.is_object() && !value.is_array()
}

/// Stars out what looks like a secret in a file that could not be read as YAML.
pub fn mask_text(sources: &mut Sources, file: usize) {
    static SECRET: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let words = "password|secret|token|jaas|passphrase|key.pem|credential";
        Regex::new(&format!(
            r#"(?i)(?:{words})[\w.\-]*['"]?[ \t]*:[ \t]*([^\r\n]+)"#
        ))
        .ok()
    });
    let (Some(secret), Some(source)) = (SECRET.as_ref(), sources.get(file)) else {
        return;
    };
    let mut shown = source.text.clone();
    for found in secret.captures_iter(&source.text) {
        if let Some(value) = found.get(1) {
            star(&mut shown, value.range());
        }
    }
    sources.show(file, shown);
}

/// Replaces a range by stars of the same number of bytes; line ends stay.
fn star(text: &mut String, range: std::ops::Range<usize>) {
    let Some(part) = text.get(range.clone()) else {
        return;
    };
    let stars: String = part
        .bytes()
        .map(|b| {
            if b == b'\n' || b == b'\r' {
                char::from(b)
            } else {
                '*'
            }
        })
        .collect();
    text.replace_range(range, &stars);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tree;

    #[test]
    fn literal_secrets_are_starred_and_references_are_not() {
        let mut sources = Sources::default();
        let text = "sasl: { password: 'hünter2', username: me }\nssl.key.password: ${P}\n";
        let file = sources.add("m.yaml".into(), text.to_owned());
        let tree = tree::parse(&sources, file, &mut Vec::new()).unwrap();
        mask_tree(&mut sources, &tree);
        let shown = sources.get(file).unwrap().shown();
        assert_eq!(shown.len(), text.len());
        assert!(!shown.contains("nter2") && shown.contains("username: me"));
        assert!(shown.contains("${P}"));
    }

    #[test]
    fn broken_files_hide_secrets_too() {
        let mut sources = Sources::default();
        let text = "sasl: { password: hunter2, x: [\nsasl.password: 'canary\n";
        let file = sources.add("m.yaml".into(), text.to_owned());
        mask_text(&mut sources, file);
        let shown = sources.get(file).unwrap().shown();
        assert!(!shown.contains("hunter2") && !shown.contains("canary"));
        assert_eq!(shown.len(), text.len());
    }
}
