//! `${…}` in scalar values, after parsing: a value can never change the structure.
//!
//! `${NAME}`, `${NAME:-default}`, `${NAME:?why}`, `${file:/path}` (its trailing line end trimmed),
//! and `$${` for a literal `${`. No message ever contains a value that was put in.

use crate::config::diagnostic::{Code, Diagnostic};
use crate::config::mask;
use crate::config::place::Sources;
use crate::config::pointer;
use crate::config::tree::Tree;
use regex::Regex;
use serde_json::Value;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Bytes of a file that `${file:…}` names, at most: it holds a value, not a device's endless stream.
const LARGEST_FILE: u64 = 1 << 20;

/// Where variables come from; a parameter, so that tests need no process environment.
pub type Environment<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// Which variables a file may take, and what becomes of one that is not set.
#[derive(Clone, Debug, Default)]
pub struct Variables {
    /// Which it may take.
    pub allowed: Allowed,
    /// What becomes of one without a value and without a default.
    pub unset: Unset,
}

/// Which variables a file may take.
#[derive(Clone, Debug, Default)]
pub enum Allowed {
    /// Every one.
    #[default]
    All,
    /// None (`--no-env`).
    None,
    /// Those whose whole name one of the patterns takes (`--env-allow`).
    Matching(Vec<Regex>),
}

impl Allowed {
    /// Those that match one of `patterns`, in which `*` is any text and `?` any character.
    pub fn matching(patterns: &[String]) -> Self {
        let regex = |pattern: &String| {
            let pattern = regex::escape(pattern);
            let pattern = pattern.replace(r"\*", ".*").replace(r"\?", ".");
            Regex::new(&format!("^(?:{pattern})$")).ok()
        };
        Self::Matching(patterns.iter().filter_map(regex).collect())
    }

    fn takes(&self, name: &str) -> bool {
        match self {
            Allowed::All => true,
            Allowed::None => false,
            Allowed::Matching(patterns) => patterns.iter().any(|p| p.is_match(name)),
        }
    }
}

/// What becomes of a variable without a value and without a default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unset {
    /// The file is refused.
    #[default]
    Refused,
    /// It is an empty text, with a warning (`--allow-unset`).
    Empty,
}

/// What interpolation is done with.
pub struct Outside<'a> {
    /// Where variables come from.
    pub environment: &'a Environment<'a>,
    /// Which of them may be taken.
    pub variables: &'a Variables,
}

/// What interpolation brings beside the values.
#[derive(Debug, Default)]
pub struct Brought {
    /// The files that `${file:…}` named, with their bytes.
    pub files: Vec<(PathBuf, Vec<u8>)>,
    /// Texts that may be shown nowhere: what stands in files, and in variables with a secret's name.
    pub secrets: Vec<String>,
}

/// Replaces every `${…}` in the tree's values and marks the nodes that changed.
pub fn interpolate(
    tree: &mut Tree,
    sources: &Sources,
    outside: &Outside<'_>,
    found: &mut Vec<Diagnostic>,
) -> Brought {
    let text = sources.get(tree.file).map_or("", |s| s.text.as_str());
    if !text.contains('$') {
        return Brought::default();
    }
    let mut value = std::mem::take(&mut tree.value);
    let mut pass = Pass {
        tree,
        sources,
        outside,
        brought: Brought::default(),
        found,
    };
    pass.walk(&mut value, "");
    let brought = pass.brought;
    tree.value = value;
    brought
}

struct Pass<'a> {
    tree: &'a mut Tree,
    sources: &'a Sources,
    outside: &'a Outside<'a>,
    brought: Brought,
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
            Value::String(text) if text.contains("${") => {
                let written = text.clone();
                *text = self.text(text, at);
                self.tree.written.insert(at.to_owned(), written);
            }
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
        let outside = self.outside;
        let taken = outside.variables.allowed.takes(name);
        let value = taken.then(|| (outside.environment)(name)).flatten();
        let value = value.filter(|v| fallback.is_empty() || !v.is_empty());
        if let Some(value) = value.as_ref().filter(|_| mask::is_secret(name)) {
            self.brought.secrets.push(value.clone());
        }
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
        let variables = self.outside.variables;
        let taken = variables.allowed.takes(name);
        let state = match taken {
            true => format!("the variable `{name}` is not set"),
            false => format!("the variable `{name}` is not among those that may be taken"),
        };
        let message = match why {
            Some(why) => format!("{state}: {why}"),
            None => state,
        };
        let default = format!("`${{{name}:-default}}`");
        let help = match taken {
            true => format!("set it, or give a default: {default}"),
            false => format!("allow it with `--env-allow {name}`, or give a default: {default}"),
        };
        match variables.unset {
            Unset::Refused => self.report(Code::MissingVariable, at, token, message, help),
            Unset::Empty => {
                let message = format!("{message}; it is taken as an empty text");
                self.say(Code::UnsetVariable, at, token, message, help);
            }
        }
    }

    fn file(&mut self, path: &str, token: &str, at: &str) -> String {
        let folder = self.spot_folder(at);
        let path = folder.join(path);
        match contents(&path).map(|bytes| (String::from_utf8(bytes.clone()), bytes)) {
            Ok((Ok(text), bytes)) => {
                self.brought.files.push((path, bytes));
                let text = text.strip_suffix('\n').unwrap_or(&text);
                let text = text.strip_suffix('\r').unwrap_or(text).to_owned();
                self.brought.secrets.push(text.clone());
                text
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

    /// Reports a text that could not be had.
    fn report(&mut self, code: Code, at: &str, token: &str, message: String, help: String) {
        self.tree.unset.insert(at.to_owned());
        self.say(code, at, token, message, help);
    }

    fn say(&mut self, code: Code, at: &str, token: &str, message: String, help: String) {
        self.tree.substituted.insert(at.to_owned());
        let Some(spot) = self.tree.spots.get(at) else {
            return;
        };
        let span = self.sources.narrow(spot.value, token, 0..token.len());
        let diagnostic = Diagnostic::new(code, self.sources.place(span), message);
        let help = (!help.is_empty()).then_some(help);
        self.found.push(diagnostic.help_if(help));
    }
}

/// The bytes of a file that holds a value.
fn contents(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path)?;
    file.take(LARGEST_FILE + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > LARGEST_FILE {
        true => Err(std::io::Error::other("it is larger than 1 MiB")),
        false => Ok(bytes),
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
        run_with(text, &Variables::default())
    }

    fn run_with(text: &str, variables: &Variables) -> (Value, Vec<Diagnostic>) {
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
        let outside = Outside {
            environment: &environment,
            variables,
        };
        interpolate(&mut tree, &sources, &outside, &mut found);
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
    fn variables_may_be_kept_out() {
        let text = "a: '${HOST}'\nb: '${HOST:-d}'\n";
        let none = Variables {
            allowed: Allowed::None,
            ..Variables::default()
        };
        let (value, found) = run_with(text, &none);
        assert_eq!(value["b"], "d");
        assert_eq!(found.len(), 1);
        assert!(found[0].message.contains("not among those"));
        let some = Variables {
            allowed: Allowed::matching(&["H?S*".to_owned()]),
            ..Variables::default()
        };
        let (value, found) = run_with(text, &some);
        assert_eq!((&value["a"], found.len()), (&json!("hub:9092"), 0));
        let (_, found) = run_with("a: ${EMPTY}\n", &some);
        assert_eq!(found[0].code, Code::MissingVariable);
    }

    #[test]
    fn what_is_not_set_may_be_empty() {
        let empty = Variables {
            unset: Unset::Empty,
            ..Variables::default()
        };
        let (value, found) = run_with("a: 'x${NO}'\nb: '${NO:?why}'\n", &empty);
        assert_eq!(value, json!({"a": "x", "b": ""}));
        assert!(found.iter().all(|d| d.code == Code::UnsetVariable));
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn a_file_without_an_end_is_not_read_to_its_end() {
        let (_, found) = run("a: '${file:/dev/zero}'\n");
        assert_eq!(found[0].code, Code::MissingSecret);
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
