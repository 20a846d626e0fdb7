//! Literal secrets are starred out of what diagnostics show (B140).

use crate::config::place::Sources;
use crate::config::pointer;
use crate::config::tree::Tree;
use regex::Regex;
use serde_json::Value;
use std::sync::LazyLock;

/// Whether the value of a key of this name is a secret.
pub fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    [
        "password",
        "secret",
        "token",
        "jaas",
        "passphrase",
        "key.pem",
        "credential",
    ]
    .iter()
    .any(|word| name.contains(word))
}

/// Whether a scalar at `pointer` is a secret: its key has a secret's name, or it is a mask's key.
pub fn is_secret_pointer(pointer: &str) -> bool {
    pointer.ends_with("/mask/key") || is_secret(&pointer::last(pointer))
}

/// Stars out the literal secrets of a file that was read. A reference (`${…}`) is no secret.
pub fn mask_tree(sources: &mut Sources, tree: &Tree) {
    let Some(source) = sources.get(tree.file) else {
        return;
    };
    let mut shown = source.text.clone();
    for (pointer, spot) in &tree.spots {
        let literal = !sources.slice(spot.value).contains("${");
        let scalar = tree.value.pointer(pointer).is_some_and(is_scalar);
        if is_secret_pointer(pointer) && literal && scalar {
            star(&mut shown, spot.value.start..spot.value.end);
        }
    }
    sources.show(tree.file, shown);
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
        let shown = &sources.get(file).unwrap().shown;
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
        let shown = &sources.get(file).unwrap().shown;
        assert!(!shown.contains("hunter2") && !shown.contains("canary"));
        assert_eq!(shown.len(), text.len());
    }
}
