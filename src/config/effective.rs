//! The file as it is understood: one document, every default written out.
//!
//! Loading what is printed gives the same [`crate::config::spec::Spec`]. A secret is printed as the
//! `${…}` that brought it, and as `***` where it stands in the file itself.

use crate::config::Loaded;
use crate::config::defaults;
use crate::config::document::Document;
use crate::config::mask;
use crate::config::pointer;
use serde_json::{Map, Value};
use std::path::Path;

/// The effective configuration as YAML.
///
/// # Errors
/// It cannot be written as YAML.
pub fn effective(loaded: &Loaded) -> Result<String, serde_yaml::Error> {
    let document = &loaded.document;
    let mut value = printable(document, &document.value, "");
    if let Value::Object(members) = &mut value {
        members.shift_remove("include");
        let written = members.shift_remove("defaults").unwrap_or_default();
        let below = defaults::lay_over(defaults::of_route(), &object(written));
        each(members, "routes", |route| {
            defaults::lay_over(below.clone(), route)
        });
        each(members, "clusters", |cluster| {
            let cluster = defaults::lay_over(defaults::of_cluster(), cluster);
            with_tls(cluster)
        });
    }
    serde_yaml::to_string(&defaults::lay_over(defaults::of_file(), &value))
}

/// `null` as a map without members.
fn object(value: Value) -> Value {
    match value {
        Value::Null => Value::Object(Map::new()),
        other => other,
    }
}

/// Replaces each member of the map at `section`.
fn each(members: &mut Map<String, Value>, section: &str, replace: impl Fn(&Value) -> Value) {
    let entries = members.get_mut(section).and_then(Value::as_object_mut);
    for (_, entry) in entries.into_iter().flatten() {
        *entry = replace(entry);
    }
}

fn with_tls(mut cluster: Value) -> Value {
    if let Some(tls) = cluster.get_mut("tls") {
        *tls = defaults::lay_over(defaults::of_tls(), tls);
    }
    cluster
}

/// The value at `at` as it may be printed.
fn printable(document: &Document, value: &Value, at: &str) -> Value {
    match value {
        Value::Object(members) => {
            let members = members.iter().map(|(name, member)| {
                let member = printable(document, member, &pointer::child(at, name));
                (name.clone(), member)
            });
            Value::Object(members.collect())
        }
        Value::Array(items) => {
            let items = items.iter().enumerate();
            let items = items.map(|(i, item)| printable(document, item, &pointer::item(at, i)));
            Value::Array(items.collect())
        }
        Value::String(text) => Value::String(printable_text(document, text, at)),
        other => other.clone(),
    }
}

fn printable_text(document: &Document, text: &str, at: &str) -> String {
    let secret = mask::is_secret_pointer(at);
    let written = document.written.get(at);
    match written {
        Some(written) if secret || written.contains("${file:") => {
            absolute_references(written, &document.folder(at))
        }
        _ if secret => "***".to_owned(),
        _ if is_path(at) => document.folder(at).join(text).display().to_string(),
        // What is no reference now must be none when it is read again.
        _ => text.replace("${", "$${"),
    }
}

/// Whether the setting at `at` is a path that starts at the folder of its file.
fn is_path(at: &str) -> bool {
    let steps: Vec<&str> = at.split('/').collect();
    matches!(
        steps.as_slice(),
        ["", "clusters", _, "tls", "ca" | "certificate" | "key"]
    )
}

/// `${file:…}` with the path that it means from anywhere.
fn absolute_references(written: &str, folder: &Path) -> String {
    const MARK: &str = "${file:";
    let mut out = String::new();
    let mut rest = written;
    while let Some((before, after)) = rest.split_once(MARK) {
        let (path, behind) = after.split_once('}').unwrap_or((after, ""));
        out += &format!("{before}{MARK}{}}}", folder.join(path).display());
        rest = behind;
    }
    out + rest
}

#[cfg(test)]
#[path = "effective_tests.rs"]
mod tests;
