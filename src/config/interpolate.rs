//! `${…}` in scalar values, after parsing: a value can never change the structure.
//!
//! `${NAME}`, `${NAME:-default}`, `${NAME:?why}`, `${file:/path}` (its trailing line end trimmed),
//! and `$${` for a literal `${`. No message ever contains a value that was put in.

use crate::config::diagnostic::{Code, Diagnostic};
use crate::config::place::Sources;
use crate::config::pointer;
use crate::config::tree::Tree;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Where variables come from; a parameter, so that tests need no process environment.
pub type Environment<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// Replaces every `${…}` in the tree's values and marks the nodes that changed. The files that
/// `${file:…}` named are added to `files`.
pub fn interpolate(
    tree: &mut Tree,
    sources: &Sources,
    environment: &Environment<'_>,
    files: &mut Vec<(PathBuf, Vec<u8>)>,
    found: &mut Vec<Diagnostic>,
) {
    let mut value = std::mem::take(&mut tree.value);
    let mut pass = Pass {
        tree,
        sources,
        environment,
        files,
        found,
    };
    pass.walk(&mut value, "");
    tree.value = value;
}

struct Pass<'a> {
    tree: &'a mut Tree,
    sources: &'a Sources,
    environment: &'a Environment<'a>,
    files: &'a mut Vec<(PathBuf, Vec<u8>)>,
    found: &'a mut Vec<Diagnostic>,
}

impl Pass<'_> {
    fn walk(&mut self, value: &mut Value, at: &str) {
        match value {
            Value::Object(map) => {
                for (name, member) in map.iter_mut() {
                    self.walk(member, &pointer::child(at, name));
                }
            }
            Value::Array(items) => {
                for (index, member) in items.iter_mut().enumerate() {
                    self.walk(member, &pointer::item(at, index));
                }
            }
            Value::String(text) if text.contains("${") => *text = self.text(text, at),
            _ => {}
        }
    }

    /// `text` with everything replaced. What fails stays out, and is reported.
    fn text(&mut self, text: &str, at: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(start) = rest.find("${") {
            if rest[..start].ends_with('$') {
                out.push_str(&rest[..start]);
                out.push('{');
                rest = &rest[start + 2..];
                continue;
            }
            out.push_str(&rest[..start]);
            let inside = &rest[start + 2..];
            let Some(end) = inside.find('}') else {
                self.bad(at, &rest[start..], "`${` without its `}`");
                return out;
            };
            let token = &rest[start..start + end + 3];
            self.tree.substituted.insert(at.to_owned());
            out.push_str(&self.value_of(&inside[..end], token, at));
            rest = &inside[end + 1..];
        }
        out.push_str(rest);
        out
    }

    fn value_of(&mut self, expression: &str, token: &str, at: &str) -> String {
        if let Some(path) = expression.strip_prefix("file:") {
            return self.file(path, token, at);
        }
        let (name, fallback) = match expression.find(':') {
            Some(colon) => expression.split_at(colon),
            None => (expression, ""),
        };
        if !is_variable(name) || !(fallback.is_empty() || is_fallback(fallback)) {
            let message = format!("`{token}` is not one of the forms of a substitution");
            self.bad(at, token, &message);
            return String::new();
        }
        // Empty counts as missing where something is given for that case, as in a shell.
        let value = (self.environment)(name).filter(|v| fallback.is_empty() || !v.is_empty());
        match (
            value,
            fallback.strip_prefix(":-"),
            fallback.strip_prefix(":?"),
        ) {
            (Some(value), _, _) => value,
            (None, Some(default), _) => default.to_owned(),
            (None, None, why) => {
                self.missing(name, why.filter(|w| !w.is_empty()), token, at);
                String::new()
            }
        }
    }

    fn missing(&mut self, name: &str, why: Option<&str>, token: &str, at: &str) {
        let message = match why {
            Some(why) => format!("the variable `{name}` is not set: {why}"),
            None => format!("the variable `{name}` is not set"),
        };
        let help = format!("set it, or give a default: `${{{name}:-default}}`");
        self.report(Code::MissingVariable, at, token, message, help);
    }

    fn file(&mut self, path: &str, token: &str, at: &str) -> String {
        let folder = self.spot_folder(at);
        let path = folder.join(path);
        match std::fs::read(&path).map(|bytes| (String::from_utf8(bytes.clone()), bytes)) {
            Ok((Ok(text), bytes)) => {
                self.files.push((path, bytes));
                let text = text.strip_suffix('\n').unwrap_or(&text);
                text.strip_suffix('\r').unwrap_or(text).to_owned()
            }
            Ok((Err(_), _)) => {
                let message = format!("{} is not UTF-8 text", path.display());
                self.report(Code::MissingSecret, at, token, message, String::new());
                String::new()
            }
            Err(error) => {
                let message = format!("{} cannot be read: {error}", path.display());
                self.report(Code::MissingSecret, at, token, message, String::new());
                String::new()
            }
        }
    }

    fn spot_folder(&self, at: &str) -> PathBuf {
        let file = self
            .tree
            .spots
            .get(at)
            .map_or(self.tree.file, |s| s.value.file);
        let folder = self.sources.get(file).map(|s| s.folder());
        folder.unwrap_or(Path::new("")).to_path_buf()
    }

    fn bad(&mut self, at: &str, token: &str, message: &str) {
        let help = "write `${NAME}`, `${NAME:-default}`, `${NAME:?why}` or `${file:/path}`, \
                    and `$${` for a literal `${`";
        self.report(
            Code::BadSubstitution,
            at,
            token,
            message.to_owned(),
            help.to_owned(),
        );
    }

    fn report(&mut self, code: Code, at: &str, token: &str, message: String, help: String) {
        self.tree.substituted.insert(at.to_owned());
        self.tree.unset.insert(at.to_owned());
        let Some(spot) = self.tree.spots.get(at) else {
            return;
        };
        let span = self.sources.narrow(spot.value, token, 0..token.len());
        let diagnostic = Diagnostic::new(code, self.sources.place(span), message);
        let help = (!help.is_empty()).then_some(help);
        self.found.push(diagnostic.help_if(help));
    }
}

fn is_variable(name: &str) -> bool {
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    starts && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

fn is_fallback(text: &str) -> bool {
    text.starts_with(":-") || text.starts_with(":?")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tree;
    use serde_json::json;

    fn run(text: &str) -> (Value, Vec<Diagnostic>) {
        let mut sources = Sources::default();
        let file = sources.add("m.yaml".into(), text.to_owned());
        let mut tree = tree::parse(&sources, file, &mut Vec::new()).unwrap();
        let mut found = Vec::new();
        let environment = |name: &str| match name {
            "HOST" => Some("hub:9092".to_owned()),
            "INJECT" => Some("a, b: {c: d}\n- e".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        };
        interpolate(
            &mut tree,
            &sources,
            &environment,
            &mut Vec::new(),
            &mut found,
        );
        (tree.value, found)
    }

    #[test]
    fn every_form() {
        let (value, found) = run(
            "a: '${HOST}'\nb: ['x-${HOST}-${NO:-d}', '${EMPTY:-e}']\nc: '$${HOST} $5 ${EMPTY}'\n${HOST}: 1\nd: ${INJECT}\n",
        );
        assert!(found.is_empty(), "{found:?}");
        assert_eq!(
            value,
            json!({
                "a": "hub:9092", "b": ["x-hub:9092-d", "e"], "c": "${HOST} $5 ",
                "${HOST}": 1, "d": "a, b: {c: d}\n- e"
            })
        );
    }

    #[test]
    fn failures_have_positions() {
        let (_, found) = run(
            "a: 'x ${NO}'\nb: '${NO:?the listener}'\nc: '${}'\nd: 'a${'\ne: '${file:/no/such}'\nf: '${NO:x}'\n",
        );
        let lines: Vec<_> = found.iter().map(Diagnostic::one_line).collect();
        assert_eq!(
            lines[0],
            "m.yaml:1:7: error[E0202]: the variable `NO` is not set"
        );
        assert_eq!(
            lines[1],
            "m.yaml:2:5: error[E0202]: the variable `NO` is not set: the listener"
        );
        assert!(lines[2].starts_with("m.yaml:3:5: error[E0201]"));
        assert!(lines[3].starts_with("m.yaml:4:6: error[E0201]"));
        assert!(lines[4].starts_with("m.yaml:5:5: error[E0203]"));
        assert!(lines[5].starts_with("m.yaml:6:5: error[E0201]"));
    }
}
