//! A setting explained from the schema, as `mirror explain routes.*.partitions` prints it.

use crate::config::schema;
use crate::config::settings::{self, ReloadClass};
use crate::config::suggest;
use crate::config::units::Unit;
use serde_json::{Map, Value, json};

/// What there is to say about a setting.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// Its path; `*` is any name or item.
    pub path: String,
    /// What it is for.
    pub about: String,
    /// What may be written there, in words.
    pub takes: String,
    /// The words that it takes, each with its meaning.
    pub words: Vec<(String, String)>,
    /// Whether its map must have it.
    pub presence: Presence,
    /// What holds where it is absent.
    pub default: Option<Value>,
    /// What a change of it means for a process that runs.
    pub class: ReloadClass,
    /// The keys below it, each with what it is for.
    pub keys: Vec<(String, String)>,
    /// What may be written there, as YAML.
    pub examples: &'static [&'static str],
}

/// Whether a setting must be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It must.
    Required,
    /// It may be left out.
    Optional,
}

/// The answer to a question about a setting.
#[derive(Clone, Debug)]
pub enum Answer {
    /// It is this one.
    One(Box<Explanation>),
    /// Several settings have that name: their paths.
    Several(Vec<String>),
    /// There is none; with what may have been meant.
    None(Option<String>),
}

/// Explains the setting that `asked` names: by its path (`routes.*.partitions`,
/// `routes.orders.partitions`) or by the end of it (`partitions`).
pub fn explain(asked: &str) -> Answer {
    let asked = asked.trim_matches('.').replace(['[', ']'], ".");
    let steps: Vec<&str> = asked.split('.').filter(|step| !step.is_empty()).collect();
    let walked = at(&steps);
    // `routes.workers` is a route of that name, and more probably the setting of a route.
    let named = |e: &Explanation| !e.path.ends_with('*') || steps.last() == Some(&"*");
    if let Some(explanation) = walked.clone().filter(named) {
        return Answer::One(Box::new(explanation));
    }
    let all = paths();
    let mut ending: Vec<String> = all
        .iter()
        .filter(|p| ends_with(p, &steps))
        .cloned()
        .collect();
    ending.dedup();
    match (ending.as_slice(), walked) {
        ([], Some(explanation)) => Answer::One(Box::new(explanation)),
        ([], None) => {
            let last = steps.last().copied().unwrap_or_default();
            let names = all.iter().filter_map(|path| path.rsplit('.').next());
            Answer::None(suggest::nearest(last, names).map(str::to_owned))
        }
        ([one], _) => match at(&one.split('.').collect::<Vec<_>>()) {
            Some(explanation) => Answer::One(Box::new(explanation)),
            None => Answer::None(None),
        },
        (_, _) => Answer::Several(ending),
    }
}

/// Every setting that can be asked for, in the order of the schema; those of `defaults:` are told
/// at the route.
pub fn paths() -> Vec<String> {
    let mut paths: Vec<String> = Vec::new();
    for property in schema::properties(schema::schema()) {
        let path = match property.path.strip_prefix("defaults.") {
            Some(rest) => format!("routes.*.{rest}"),
            None => property.path,
        };
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    paths
}

/// Whether `path` ends in `steps`; list items and names between them may be left out.
fn ends_with(path: &str, steps: &[&str]) -> bool {
    let named = |step: &&str| *step != "*" && step.parse::<usize>().is_err();
    let own: Vec<&str> = path.split('.').filter(named).collect();
    let wanted: Vec<&str> = steps.iter().copied().filter(named).collect();
    !wanted.is_empty() && own.ends_with(&wanted)
}

/// The setting at a path, found by walking the schema.
fn at(steps: &[&str]) -> Option<Explanation> {
    let mut nodes = schema::alternatives(schema::schema());
    let mut path = String::new();
    let mut found = None;
    for step in steps {
        let (step, node, presence) = descend(&nodes, step)?;
        path = match path.as_str() {
            "" => step,
            _ => format!("{path}.{step}"),
        };
        nodes = schema::alternatives(node);
        found = Some((node, presence));
    }
    let (node, presence) = found?;
    Some(told(path, node, &nodes, presence))
}

/// One step down: a key, any name of a map, or an item of a list. A list may be stepped over.
fn descend(nodes: &[&'static Value], step: &str) -> Option<(String, &'static Value, Presence)> {
    for node in nodes {
        if let Some(member) = node.pointer("/properties").and_then(|p| p.get(step)) {
            let required = node.get("required").and_then(Value::as_array);
            let required = required.is_some_and(|names| names.iter().any(|n| n == step));
            let presence = match required {
                true => Presence::Required,
                false => Presence::Optional,
            };
            return Some((step.to_owned(), member, presence));
        }
    }
    let any = |node: &&'static Value| {
        let named = node.get("additionalProperties").filter(|a| a.is_object());
        let patterns = node.get("patternProperties").and_then(Value::as_object);
        named.or_else(|| patterns?.values().next())
    };
    if let Some(member) = nodes.iter().find_map(any) {
        return Some(("*".to_owned(), member, Presence::Optional));
    }
    let items = nodes.iter().find_map(|node| node.get("items"))?;
    if step == "*" || step.parse::<usize>().is_ok() {
        return Some(("*".to_owned(), items, Presence::Optional));
    }
    let (step, member, presence) = descend(&schema::alternatives(items), step)?;
    Some((format!("*.{step}"), member, presence))
}

fn told(
    path: String,
    node: &'static Value,
    nodes: &[&'static Value],
    presence: Presence,
) -> Explanation {
    let own = |keyword: &str| nodes.iter().find_map(|node| node.get(keyword));
    let about = own("description").and_then(Value::as_str);
    Explanation {
        about: about.unwrap_or_default().replace('\n', " "),
        takes: takes(node).join(" or "),
        words: words(nodes),
        presence,
        default: own("default")
            .filter(|_| presence == Presence::Optional)
            .cloned(),
        class: settings::class_of(&path),
        keys: keys(nodes),
        examples: settings::setting(&path).map_or(&[], |setting| setting.examples),
        path,
    }
}

/// The forms that a value may have, in words.
fn takes(node: &'static Value) -> Vec<String> {
    let mut forms = Vec::new();
    for node in schema::alternatives(node) {
        let unit = node.get("x-mirror-unit").and_then(Value::as_str);
        if let Some(unit) = unit.and_then(Unit::named) {
            forms.push(unit.in_words().to_owned());
            continue;
        }
        if node.get("enum").is_some() || node.get("const").is_some() {
            forms.push("one of the words below".to_owned());
            continue;
        }
        let types = match node.get("type") {
            Some(Value::String(one)) => vec![one.as_str()],
            Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
            _ => continue,
        };
        forms.extend(types.into_iter().map(|one| form(one, node)));
    }
    let mut seen = Vec::new();
    forms.retain(|form| {
        let new = !seen.contains(form);
        seen.push(form.clone());
        new
    });
    forms
}

fn form(json_type: &str, node: &'static Value) -> String {
    match json_type {
        "array" => match node.get("items").map(|items| takes(items).join(" or ")) {
            Some(items) if !items.is_empty() && items.len() < 60 => format!("a list, each {items}"),
            _ => "a list".to_owned(),
        },
        "integer" => match (node.get("minimum"), node.get("maximum")) {
            (Some(low), Some(high)) if low == high => format!("the number {low}"),
            (Some(low), Some(high)) => format!("a whole number from {low} to {high}"),
            (Some(low), None) => format!("a whole number from {low}"),
            _ => "a whole number".to_owned(),
        },
        "object" => "a map".to_owned(),
        "boolean" => "`true` or `false`".to_owned(),
        "string" => "a text".to_owned(),
        "number" => "a number".to_owned(),
        other => other.to_owned(),
    }
}

fn words(nodes: &[&'static Value]) -> Vec<(String, String)> {
    let mut words = Vec::new();
    for node in nodes {
        let meaning = node.get("description").and_then(Value::as_str);
        if let Some(word) = node.get("const").and_then(Value::as_str) {
            words.push((
                word.to_owned(),
                meaning.unwrap_or_default().replace('\n', " "),
            ));
        }
        for word in node
            .get("enum")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            words.extend(word.as_str().map(|word| (word.to_owned(), String::new())));
        }
    }
    words
}

fn keys(nodes: &[&'static Value]) -> Vec<(String, String)> {
    let members = nodes
        .iter()
        .filter_map(|node| node.get("properties")?.as_object());
    let about = |member: &'static Value| {
        let nodes = schema::alternatives(member);
        let about = nodes.iter().find_map(|n| n.get("description")?.as_str());
        about.unwrap_or_default().replace('\n', " ")
    };
    members
        .flat_map(Map::iter)
        .map(|(name, member)| (name.clone(), about(member)))
        .collect()
}

impl Explanation {
    /// As JSON, for `--format json`.
    pub fn to_json(&self) -> Value {
        let pairs = |pairs: &[(String, String)]| {
            let pairs = pairs
                .iter()
                .map(|(name, about)| (name.clone(), about.as_str().into()));
            Value::Object(pairs.collect())
        };
        json!({
            "path": self.path,
            "about": self.about,
            "takes": self.takes,
            "words": pairs(&self.words),
            "required": self.presence == Presence::Required,
            "default": self.default,
            "reload": self.class.as_str(),
            "keys": pairs(&self.keys),
            "examples": self.examples,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(asked: &str) -> Explanation {
        match explain(asked) {
            Answer::One(explanation) => *explanation,
            other => panic!("{asked}: {other:?}"),
        }
    }

    #[test]
    fn every_path_explains_itself() {
        for path in paths() {
            let explanation = one(&path);
            assert_eq!(explanation.path, path);
            assert!(!explanation.about.is_empty(), "{path} is not described");
            assert!(!explanation.examples.is_empty(), "{path} has no example");
        }
    }

    #[test]
    fn a_setting_is_found_by_any_spelling() {
        for asked in [
            "routes.*.partitions",
            "routes.orders-in.partitions",
            "routes.partitions",
            "partitions",
        ] {
            assert_eq!(one(asked).path, "routes.*.partitions", "{asked}");
        }
        assert_eq!(one("defaults.partitions").path, "defaults.partitions");
        assert_eq!(
            one("handlers.filter.keep").path,
            "routes.*.handlers.*.filter.keep"
        );
        assert_eq!(one("sasl.password").path, "clusters.*.sasl.password");
        assert!(matches!(explain("limits.in_flight"), Answer::One(_)));
        assert!(matches!(explain("when"), Answer::Several(paths) if paths.len() > 1));
        let Answer::None(Some(near)) = explain("partitons") else {
            panic!("nothing near");
        };
        assert_eq!(near, "partitions");
    }

    #[test]
    fn what_a_setting_takes_is_said() {
        let workers = one("workers");
        assert_eq!(workers.takes, "a whole number from 1 to 1024");
        assert_eq!(workers.default, Some(json!(1)));
        assert_eq!(workers.class, ReloadClass::Restart);
        let on_error = one("routes.*.on_error");
        assert_eq!(on_error.words[0].0, "stop");
        assert!(on_error.words[0].1.contains("halts"));
        assert_eq!(one("commit_interval").takes, Unit::Duration.in_words());
        assert_eq!(one("routes.*.source").presence, Presence::Required);
        assert!(
            one("partitions")
                .keys
                .iter()
                .any(|(name, _)| name == "fixed")
        );
    }
}
