//! Diagnostics as SARIF 2.1.0, for code scanning and editors.

use crate::config::diagnostic::{Code, Diagnostic, Severity};
use crate::config::place::{Place, Sources};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Component, Path};

/// The whole log: one run, with the rules that were broken and a result for each diagnostic.
pub fn sarif(diagnostics: &[Diagnostic], sources: &Sources) -> Value {
    let codes: BTreeSet<Code> = diagnostics.iter().map(|d| d.code).collect();
    let codes: Vec<Code> = codes.into_iter().collect();
    let results = diagnostics.iter().map(|d| result(d, &codes, sources));
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "mirror",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": codes.iter().map(|code| rule(*code)).collect::<Vec<_>>(),
            } },
            "columnKind": "unicodeCodePoints",
            "results": results.collect::<Vec<_>>(),
        }],
    })
}

fn rule(code: Code) -> Value {
    let story = code.story();
    let text = story
        .paragraphs()
        .map(joined)
        .collect::<Vec<_>>()
        .join("\n\n");
    json!({
        "id": code.as_str(),
        "name": format!("{code:?}"),
        "shortDescription": { "text": story.title },
        "fullDescription": { "text": text },
        "help": { "text": format!("{text}\n{}", story.examples_text()) },
        "defaultConfiguration": { "level": level(code.severity()) },
    })
}

/// A paragraph in one line.
fn joined(paragraph: &str) -> String {
    paragraph.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    }
}

fn result(diagnostic: &Diagnostic, codes: &[Code], sources: &Sources) -> Value {
    let text = match &diagnostic.help {
        Some(help) => format!("{}\nhelp: {help}", diagnostic.message),
        None => diagnostic.message.clone(),
    };
    let related = diagnostic
        .related
        .iter()
        .enumerate()
        .map(|(index, (place, message))| {
            json!({
                "id": index,
                "message": { "text": message },
                "physicalLocation": location(place, sources),
            })
        });
    json!({
        "ruleId": diagnostic.code.as_str(),
        "ruleIndex": codes.iter().position(|code| *code == diagnostic.code),
        "level": level(diagnostic.severity()),
        "message": { "text": text },
        "locations": [{ "physicalLocation": location(&diagnostic.place, sources) }],
        "relatedLocations": related.collect::<Vec<_>>(),
    })
}

fn location(place: &Place, sources: &Sources) -> Value {
    let mut location = json!({ "artifactLocation": { "uri": uri(&place.file) } });
    if let (Some(start), Some(end)) = (&place.position, sources.end(place)) {
        location["region"] = json!({
            "startLine": start.line,
            "startColumn": start.column,
            "endLine": end.line,
            "endColumn": end.column,
            "byteOffset": start.start,
            "byteLength": end.start - start.start,
        });
    }
    location
}

/// A relative path as a relative reference, an absolute one as `file:` URI.
fn uri(path: &Path) -> String {
    let mut out = String::new();
    for component in path.components() {
        match component {
            Component::RootDir => out.push_str("file://"),
            Component::CurDir | Component::Prefix(_) => continue,
            Component::ParentDir => push(&mut out, b".."),
            Component::Normal(name) => push(&mut out, name.as_encoded_bytes()),
        }
    }
    out
}

fn push(uri: &mut String, name: &[u8]) {
    if !uri.is_empty() {
        uri.push('/');
    }
    for byte in name {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                uri.push(char::from(*byte));
            }
            other => uri.push_str(&format!("%{other:02X}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_uris() {
        for (path, expected) in [
            ("mirror.yaml", "mirror.yaml"),
            ("./conf.d/../a b.yaml", "conf.d/../a%20b.yaml"),
            ("/etc/mirror/ü.yaml", "file:///etc/mirror/%C3%BC.yaml"),
        ] {
            assert_eq!(uri(Path::new(path)), expected);
        }
    }
}
