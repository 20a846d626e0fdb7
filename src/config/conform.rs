//! The document against the schema: every mistake, at the key or value that makes it.

use crate::config::branch::{alternatives, distance, missing_of, types, types_of, words_of};
use crate::config::diagnostic::{Code, Diagnostic};
use crate::config::document::Document;
use crate::config::pointer;
use crate::config::scalar;
use crate::config::schema;
use crate::config::settings;
use crate::config::siblings::Siblings;
use crate::config::suggest;
use crate::config::units::Unit;
use crate::handler::{PathFault, Side, is_for_paths, not_written};
use jsonschema::error::ValidationErrorKind as Kind;
use jsonschema::{ValidationError, Validator};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// Checks the document, and takes out of it what is wrong so that the rest can be checked
/// further. Returns the pointers of what was wrong.
pub fn conform(document: &mut Document, found: &mut Vec<Diagnostic>) -> BTreeSet<String> {
    static VALIDATOR: LazyLock<Option<Validator>> =
        LazyLock::new(|| jsonschema::validator_for(schema::schema()).ok());
    let Some(validator) = VALIDATOR.as_ref() else {
        return BTreeSet::new();
    };
    give_types(document, validator);
    let mut faults = Faults {
        document,
        found,
        wrong: BTreeSet::new(),
        meant: BTreeSet::new(),
        missing: Vec::new(),
    };
    for error in validator.iter_errors(&document.value) {
        faults.report(&error);
    }
    faults.report_missing();
    let mut wrong = faults.wrong;
    wrong.extend(document.unset.iter().cloned());
    for pointer in &wrong {
        pointer::prune(&mut document.value, pointer);
    }
    wrong
}

/// A text that was put in by `${…}` is a number or boolean where the field wants one.
fn give_types(document: &mut Document, validator: &Validator) {
    if document.substituted.is_empty() {
        return;
    }
    let mut pointers = Vec::new();
    for error in validator.iter_errors(&document.value) {
        mistyped(&error, &mut pointers);
    }
    for pointer in pointers {
        if !document.substituted.contains(&pointer) {
            continue;
        }
        if let Some(slot @ Value::String(_)) = document.value.pointer_mut(&pointer) {
            let typed = scalar::resolve(slot.as_str().unwrap_or_default());
            if !typed.is_null() {
                *slot = typed;
            }
        }
    }
}

fn mistyped(error: &ValidationError<'_>, pointers: &mut Vec<String>) {
    match error.kind() {
        Kind::Type { .. } => pointers.push(error.instance_path().to_string()),
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
            for branch in context.iter().flatten() {
                mistyped(branch, pointers);
            }
        }
        _ => {}
    }
}

struct Faults<'a> {
    document: &'a Document,
    found: &'a mut Vec<Diagnostic>,
    wrong: BTreeSet<String>,
    /// The keys that unknown ones were meant to be.
    meant: BTreeSet<String>,
    /// What is missing, with the keys that would fill the gap.
    missing: Vec<(Vec<String>, Diagnostic)>,
}

impl Faults<'_> {
    fn report(&mut self, error: &ValidationError<'_>) {
        let at = error.instance_path().to_string();
        let value = error.instance();
        if self.document.unset.contains(&at) {
            return;
        }
        match error.kind() {
            Kind::AdditionalProperties { unexpected } => {
                self.unknown_keys(&at, unexpected, &Siblings::of(error));
            }
            Kind::Required { property } => self.missing(&at, property.as_str().unwrap_or_default()),
            Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
                if !self.conflict(&at, value, &alternatives(error)) {
                    self.branches(&at, value, context);
                }
            }
            Kind::OneOfMultipleValid { .. } => {
                self.conflict(&at, value, &alternatives(error));
            }
            Kind::Type { kind } => match unit_of(error) {
                Some(unit) if !value.is_null() => self.unit(&at, value, unit),
                _ => self.wrong_type(&at, value, &types(kind)),
            },
            Kind::Enum { options } => {
                let options = options.as_array().map(Vec::as_slice).unwrap_or_default();
                self.wrong_word(&at, value, options);
            }
            Kind::Constant { expected_value } => {
                self.wrong_word(&at, value, &[Value::clone(expected_value)]);
            }
            Kind::Pattern { pattern } => match unit_of(error) {
                Some(unit) => self.unit(&at, value, unit),
                None if is_for_paths(pattern) => {
                    self.wrong_path(&at, value.as_str().unwrap_or_default(), Side::Value);
                }
                None => self.say(
                    &at,
                    Code::WrongValue,
                    self.subject(&at) + " is not of the form it must have",
                    description_of(error).map(str::to_owned),
                ),
            },
            kind => match unit_of(error) {
                // Too short for a unit: the same words as of a pattern, and said once.
                Some(unit) => self.unit(&at, value, unit),
                None => {
                    let message = format!("{} {}", self.subject(&at), bound(kind));
                    self.say(&at, Code::WrongValue, message, example(&at));
                }
            },
        }
    }

    fn unknown_keys(&mut self, at: &str, unexpected: &[String], known: &Siblings) {
        for name in unexpected {
            let key = pointer::child(at, name);
            let near = suggest::nearest(name, known.names.iter().map(String::as_str));
            if near.is_none() && known.paths {
                self.wrong_path(&key, name, Side::Key);
                continue;
            }
            let inside = match near {
                None => self.belongs_inside(at, name, known),
                Some(_) => None,
            };
            let help = match &inside {
                Some(inside) => Some(format!("`{name}` stands inside `{inside}`")),
                None => suggest::help(name, known.names.iter().map(String::as_str)),
            };
            let meant = near.or(inside.as_deref());
            self.meant
                .extend(meant.map(|near| pointer::child(at, near)));
            let place = self.document.place_of_key(&key);
            let message = format!("unknown key `{name}`");
            self.found
                .push(Diagnostic::new(Code::UnknownKey, place, message).help_if(help));
            self.wrong.insert(key);
        }
    }

    /// The neighbour that `name` was meant to stand inside: one that was left without a value, one
    /// that must be there and is not, or the only one that has such a key.
    fn belongs_inside(&self, at: &str, name: &str, known: &Siblings) -> Option<String> {
        let takes = |sibling: &&String| known.inside(sibling).contains(name);
        let takers: Vec<&String> = known.names.iter().filter(takes).collect();
        let value = |sibling: &str| self.document.value.pointer(&pointer::child(at, sibling));
        let empty = takers.iter().find(|s| value(s).is_some_and(Value::is_null));
        let absent = takers
            .iter()
            .find(|s| known.required.contains(**s) && value(s).is_none());
        let only = takers.first().filter(|_| takers.len() == 1);
        empty.or(absent).or(only).map(|s| (*s).clone())
    }

    /// A path of a record that none can be, or that cannot stand here.
    fn wrong_path(&mut self, at: &str, text: &str, side: Side) {
        self.wrong.insert(at.to_owned());
        let code = match side {
            Side::Key => Code::UnknownKey,
            Side::Value => Code::WrongValue,
        };
        let fault = match self.document.may_be_shown(at) {
            true => PathFault::of(text),
            false => None,
        };
        let Some(fault) = fault else {
            let message = match side {
                Side::Key => format!("`{text}` cannot stand here"),
                Side::Value => self.subject(at) + " is not a path that can stand here",
            };
            let place = match side {
                Side::Key => self.document.place_of_key(at),
                Side::Value => self.document.place(at),
            };
            let diagnostic = Diagnostic::new(code, place, message);
            return self.found.push(diagnostic.help(not_written(text)));
        };
        let place = match side {
            Side::Key => self.document.place_inside_key(at, text, fault.bytes),
            Side::Value => self.document.place_inside(at, text, fault.bytes),
        };
        let diagnostic = Diagnostic::new(code, place, fault.message);
        self.found.push(diagnostic.help_if(fault.help));
    }

    /// Nothing is there to be taken out; what needs the key is not looked at further.
    fn missing(&mut self, at: &str, name: &str) {
        let message = format!("{} has no `{name}`", self.subject(at));
        self.lacks(at, &[name], message);
    }

    fn lacks(&mut self, at: &str, names: &[&str], message: String) {
        let place = self.document.place_of_key(at);
        let keys: Vec<String> = names.iter().map(|name| pointer::child(at, name)).collect();
        let example = keys.first().and_then(|key| example(key));
        let diagnostic = Diagnostic::new(Code::MissingKey, place, message).help_if(example);
        self.wrong.extend(keys.iter().cloned());
        self.missing.push((keys, diagnostic));
    }

    /// A misspelt key is one mistake, not also a missing one.
    fn report_missing(&mut self) {
        for (keys, diagnostic) in std::mem::take(&mut self.missing) {
            if !keys.iter().any(|key| self.meant.contains(key)) {
                self.found.push(diagnostic);
            }
        }
    }

    fn wrong_type(&mut self, at: &str, value: &Value, expected: &[String]) {
        let names: Vec<&str> = expected.iter().map(|t| in_words(t)).collect();
        if value.is_null() {
            let message = format!("{} has no value", self.subject(at));
            let help = "give it a value, or take the key away";
            let place = self.document.place(at);
            let diagnostic = Diagnostic::new(Code::WrongType, place, message).help(help);
            self.wrong.insert(at.to_owned());
            return self.missing.push((vec![at.to_owned()], diagnostic));
        }
        let found = match value {
            Value::Number(number) if number.is_f64() => "a decimal",
            other => in_words(type_of(other)),
        };
        let message = format!(
            "{} must be {}, not {found}",
            self.subject(at),
            names.join(" or ")
        );
        // In quotes a lone port is no address either.
        let quotable = (value.is_number() || value.is_boolean()) && !is_address(at);
        let quote = quotable && expected.iter().any(|t| t == "string");
        let help = match quote {
            true => Some(format!("write it in quotes: '{}'", self.shown(at, value))),
            false => self.unquoted(at, value, expected),
        };
        let help = help.or_else(|| example(at));
        self.say(at, Code::WrongType, message, help);
    }

    /// What to write for a text that means a number or a boolean.
    fn unquoted(&self, at: &str, value: &Value, expected: &[String]) -> Option<String> {
        let text = value.as_str().filter(|_| self.document.may_be_shown(at))?;
        let takes = |json_type: &str| expected.iter().any(|t| t == json_type);
        if takes("boolean") {
            let meant = match text.to_ascii_lowercase().as_str() {
                "yes" | "on" | "y" => "true",
                "no" | "off" | "n" => "false",
                "true" | "false" => return Some(format!("write it without quotes: {text}")),
                _ => return None,
            };
            return Some(format!("write `{meant}`: `{text}` is a text in YAML"));
        }
        let number = scalar::resolve(text).is_number();
        let wanted = takes("integer") || takes("number");
        (number && wanted).then(|| format!("write it without quotes: {text}"))
    }

    fn wrong_word(&mut self, at: &str, value: &Value, options: &[Value]) {
        let words: Vec<String> = options.iter().map(as_text).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let message = match value {
            Value::String(_) if self.document.may_be_shown(at) => {
                format!("{} cannot be `{}`", self.subject(at), as_text(value))
            }
            _ => format!("{} takes {}", self.subject(at), suggest::list(&words)),
        };
        let near = suggest::nearest(&as_text(value), words.iter().copied());
        let help = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("it takes {}", suggest::list(&words)),
        };
        self.say(at, Code::WrongValue, message, Some(help));
    }

    fn unit(&mut self, at: &str, value: &Value, unit: Unit) {
        let Err(error) = unit.check(&as_text(value)) else {
            return self.wrong_type(at, value, &["string".to_owned()]);
        };
        let message = format!("{}: {}", self.subject(at), error.message);
        let help = self.document.may_be_shown(at).then_some(error.help);
        self.say(at, Code::WrongUnit, message, help);
    }

    /// No branch fits: a closed set of words, no branch of that type, or the branch that was meant.
    fn branches(&mut self, at: &str, value: &Value, branches: &[Vec<ValidationError<'static>>]) {
        if value.is_null() {
            return self.wrong_type(at, value, &[]);
        }
        // Those that take a value of this type.
        let fitting: Vec<&Vec<ValidationError<'static>>> = branches
            .iter()
            .filter(|b| types_of(b, at).is_none())
            .collect();
        let missing: Option<Vec<String>> = fitting.iter().map(|b| missing_of(b, at)).collect();
        if let Some(missing) = missing.filter(|missing| !missing.is_empty()) {
            return self.one_of(at, &missing);
        }
        let unknown: Option<Vec<(&[String], Siblings)>> =
            fitting.iter().map(|b| unknown_of(b, at)).collect();
        if let Some([(unexpected, first), others @ ..]) = unknown.as_deref() {
            let known = others.iter().fold(first.clone(), |all, (_, s)| all.and(s));
            let unexpected: Vec<String> = unexpected
                .iter()
                .filter(|name| !known.names.contains(*name))
                .cloned()
                .collect();
            if !unexpected.is_empty() {
                self.unknown_keys(at, &unexpected, &known);
                self.wrong.insert(at.to_owned());
                return;
            }
        }
        let words: Option<Vec<Vec<Value>>> = branches.iter().map(|b| words_of(b, at)).collect();
        if let Some(words) = words {
            return self.wrong_word(at, value, &words.concat());
        }
        let wrong: Vec<Option<Vec<String>>> = branches.iter().map(|b| types_of(b, at)).collect();
        if wrong.iter().all(Option::is_some) {
            let mut expected: Vec<String> = wrong.into_iter().flatten().flatten().collect();
            expected.dedup();
            return self.wrong_type(at, value, &expected);
        }
        let meant = branches.iter().min_by_key(|b| distance(b, at));
        for error in meant.into_iter().flatten() {
            self.report(error);
        }
        // Half of one of several forms is none of them: the value goes as a whole.
        self.wrong.insert(at.to_owned());
    }

    /// More than one of the keys of which there must be exactly one: the second is one too many.
    fn conflict(&mut self, at: &str, value: &Value, names: &[String]) -> bool {
        let members = value.as_object().into_iter().flatten();
        let mut present = members.filter(|(name, _)| names.contains(name));
        let (Some((first, _)), Some((second, _))) = (present.next(), present.next()) else {
            return false;
        };
        let place = |name: &str| self.document.place_of_key(&pointer::child(at, name));
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let message = format!("`{second}` cannot stand beside `{first}`");
        let diagnostic = Diagnostic::new(Code::Conflict, place(second), message)
            .related(place(first), "first here")
            .help(format!("exactly one of {}", suggest::list(&names)));
        self.found.push(diagnostic);
        self.wrong.insert(at.to_owned());
        true
    }

    /// None of the keys of which there must be exactly one.
    fn one_of(&mut self, at: &str, names: &[String]) {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let subject = self.subject(at);
        let message = format!(
            "{subject} must have exactly one of {}",
            suggest::list(&names)
        );
        self.lacks(at, &names, message);
        self.wrong.insert(at.to_owned());
    }

    fn say(&mut self, at: &str, code: Code, message: String, help: Option<String>) {
        let place = self.document.place(at);
        self.found
            .push(Diagnostic::new(code, place, message).help_if(help));
        self.wrong.insert(at.to_owned());
    }

    fn subject(&self, at: &str) -> String {
        match pointer::split(at) {
            None => "the file".to_owned(),
            Some((parent, step)) if step.bytes().all(|b| b.is_ascii_digit()) => {
                format!("an item of `{}`", pointer::last(parent))
            }
            Some((_, name)) => format!("`{name}`"),
        }
    }

    fn shown(&self, at: &str, value: &Value) -> String {
        match self.document.may_be_shown(at) {
            true => as_text(value),
            false => "…".to_owned(),
        }
    }
}

/// What a branch finds unknown at `at`, if it misses a key there too: the one was meant to be the other.
fn unknown_of<'e>(
    branch: &'e [ValidationError<'static>],
    at: &str,
) -> Option<(&'e [String], Siblings)> {
    let mut here = branch
        .iter()
        .filter(|e| e.instance_path().to_string() == at);
    let misses = here
        .clone()
        .any(|e| matches!(e.kind(), Kind::Required { .. }));
    here.find_map(|error| match error.kind() {
        Kind::AdditionalProperties { unexpected } if misses => {
            Some((unexpected.as_slice(), Siblings::of(error)))
        }
        _ => None,
    })
}

/// Whether an address stands at `at`.
fn is_address(at: &str) -> bool {
    let of_cluster = || at.starts_with("/clusters/") && at.contains("/bootstrap_servers/");
    at == "/admin/listen" || of_cluster()
}

/// How the setting at `at`, or the one that it is an item of, is written, from the table of settings.
fn example(at: &str) -> Option<String> {
    let (above, name) = pointer::split(at)?;
    let (name, example) = match settings::example(at) {
        Some(example) => (name, example),
        None => (pointer::last(above), settings::example(above)?),
    };
    Some(format!("write it as in `{name}: {example}`"))
}

/// What the schema says of the field.
fn description_of(error: &ValidationError<'_>) -> Option<&'static str> {
    let path = error.schema_path().to_string();
    let mut at = path.as_str();
    while let Some((above, _)) = at.rsplit_once('/') {
        let node = schema::schema().pointer(above);
        if let Some(words) = node.and_then(|node| node.get("description")?.as_str()) {
            return Some(words);
        }
        at = above;
    }
    None
}

/// The unit that the field has, if it has one.
fn unit_of(error: &ValidationError<'_>) -> Option<Unit> {
    let path = error.schema_path().to_string();
    let (field, _) = path.rsplit_once('/')?;
    let unit = schema::schema().pointer(field)?.get("x-mirror-unit")?;
    Unit::named(unit.as_str()?)
}

fn bound(kind: &Kind) -> String {
    match kind {
        Kind::Minimum { limit } => format!("must be at least {limit}"),
        Kind::Maximum { limit } => format!("must be at most {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("must be more than {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("must be less than {limit}"),
        Kind::MinItems { limit: 1 } => "must not be empty".to_owned(),
        Kind::MinItems { limit } => format!("must have at least {limit} item(s)"),
        Kind::MaxItems { limit } => format!("must have at most {limit} item(s)"),
        Kind::MinLength { .. } | Kind::MinProperties { .. } => "must not be empty".to_owned(),
        Kind::MaxProperties { limit } => format!("must have at most {limit} key(s)"),
        // The only thing that a schema of a setting rules out by itself.
        Kind::Not { .. } => "must be more than 0".to_owned(),
        Kind::UniqueItems => "has an item twice".to_owned(),
        kind => format!("is not what it must be ({})", kind.keyword()),
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(n) if n.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn in_words(json_type: &str) -> &str {
    match json_type {
        "boolean" => "`true` or `false`",
        "number" => "a number",
        "integer" => "a whole number",
        "string" => "a text",
        "array" => "a list",
        "object" => "a map",
        "null" => "nothing",
        other => other,
    }
}

fn as_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
