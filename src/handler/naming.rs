//! Target topics: templates that become names, once per topic or once per record.

use super::broken_regex::BrokenRegex;
use super::fault::{Place, Unbound, Words};
use super::outline::{Certainty, FlowNames, Outline, OutlineName};
use super::template::{Template, Varies};
use super::{Binding, Failure, FailureCode, Reads, Targets};
use crate::record::Record;
use regex::Regex;
use std::borrow::Cow;

/// Whether the topic's name so far is known when the topic is bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum TopicSoFar {
    /// It is one of a few that are known then.
    Known,
    /// An earlier step makes it from the record.
    ByContent,
}

/// A topic template with what it may become.
#[derive(Clone, Debug)]
pub(crate) struct Naming {
    template: Template,
    allow: Vec<Allowed>,
    name: Name,
}

/// How the name is found for a record.
#[derive(Clone, Debug)]
enum Name {
    /// One name for all records of the topic; empty until bound.
    Static(String),
    /// One name for each topic so far; empty until bound.
    ByTopic(Vec<(String, String)>),
    /// Filled per record.
    ByContent,
}

/// An entry of `allow`.
#[derive(Clone, Debug)]
struct Allowed {
    text: String,
    whole_name: Regex,
}

/// What topics may be called.
pub(crate) const NAME_HELP: &str =
    "names of topics have letters, digits, `.`, `_` and `-`, 249 characters at most";

impl Naming {
    /// Compiles `text` with its `allow`; `owner` is the map that has both.
    pub(crate) fn compile(
        text: &str,
        allow: Option<&[String]>,
        so_far: TopicSoFar,
        owner: &Place<'_>,
    ) -> Option<Self> {
        let place = owner.child("topic");
        let template = Template::compile(text, &place);
        let allow = compile_allow(allow.unwrap_or_default(), &owner.child("allow"));
        let (template, allow) = (template?, allow?);
        if let Some(text) = never_legal(&template) {
            let inside = template.part(text);
            let words = Words {
                message: format!("no topic can be called `{text}`"),
                help: Some(NAME_HELP.to_owned()),
            };
            return place.fault_inside(inside, words);
        }
        let name = match (template.varies(), so_far) {
            (Varies::Never, _) => Name::Static(String::new()),
            (Varies::ByTopic, TopicSoFar::Known) => Name::ByTopic(Vec::new()),
            (Varies::ByTopic, TopicSoFar::ByContent) | (Varies::ByRecord, _) => Name::ByContent,
        };
        if matches!(name, Name::ByContent) && allow.is_empty() {
            return place.fault_with_help(
                "a topic named from the record needs `allow`",
                "list the names that it may have as regular expressions, such as `allow: ['orders-.+']`",
            );
        }
        Some(Self {
            template,
            allow,
            name,
        })
    }

    /// Whether the name is known when the topic is bound.
    pub(crate) fn so_far(&self) -> TopicSoFar {
        match self.name {
            Name::ByContent => TopicSoFar::ByContent,
            Name::Static(_) | Name::ByTopic(_) => TopicSoFar::Known,
        }
    }

    /// The names that it may give, in symbols; `before` are those so far.
    pub(crate) fn outline(&self, before: &[Outline], names: &FlowNames<'_>) -> Vec<Outline> {
        let by_content = || Outline {
            name: OutlineName::ByContent(self.allow.iter().map(|a| a.text.clone()).collect()),
            certainty: Certainty::ByRecord,
        };
        if let Name::ByContent = self.name {
            return vec![by_content()];
        }
        let mut after: Vec<Outline> = Vec::new();
        for so_far in before {
            let parts = match &so_far.name {
                OutlineName::Parts(parts) => self.template.outline(parts, names),
                // Only a name without `{topic}` may follow one that is made from the record.
                OutlineName::ByContent(_) => self.template.outline(&[], names),
            };
            let outline = parts.map_or_else(by_content, |parts| Outline {
                name: OutlineName::Parts(parts),
                certainty: so_far.certainty,
            });
            match after.iter_mut().find(|o| o.name == outline.name) {
                Some(same) => same.certainty = same.certainty.min(outline.certainty),
                None => after.push(outline),
            }
        }
        after
    }

    /// What the name is made of.
    pub(crate) fn template(&self) -> &Template {
        &self.template
    }

    /// What naming reads of a record.
    pub(crate) fn reads(&self) -> Reads {
        self.template.reads()
    }

    /// Resolves what is constant for the bound topic. `before` are the names so far, `after`
    /// receives the names that this may give.
    ///
    /// # Errors
    /// A template that cannot be filled, or an illegal name.
    pub(crate) fn bind(
        &self,
        binding: &Binding<'_>,
        before: &Targets,
        after: &mut Targets,
    ) -> Result<Self, Unbound> {
        let template = self.template.bind(binding)?;
        let name = match self.name {
            Name::Static(_) => {
                let name = legal(template.with_topic(""))?;
                add(&mut after.known, &name);
                Name::Static(name)
            }
            Name::ByTopic(_) => {
                let mut table = Vec::with_capacity(before.known.len());
                for topic in &before.known {
                    let name = legal(template.with_topic(topic))?;
                    add(&mut after.known, &name);
                    table.push((topic.clone(), name));
                }
                Name::ByTopic(table)
            }
            Name::ByContent => {
                self.allow.iter().for_each(|a| a.add_to(after));
                Name::ByContent
            }
        };
        Ok(Self {
            template,
            allow: self.allow.clone(),
            name,
        })
    }

    /// The name for `record`; of a bound naming.
    ///
    /// # Errors
    /// A template that cannot be filled, a name that is not allowed or not legal.
    pub(crate) fn name<'n>(&'n self, record: &Record<'_>) -> Result<Cow<'n, str>, Failure> {
        match &self.name {
            Name::Static(name) => Ok(Cow::Borrowed(name)),
            Name::ByTopic(table) => table
                .iter()
                .find(|(topic, _)| *topic == record.topic)
                .map(|(_, name)| Cow::Borrowed(name.as_str()))
                .ok_or_else(|| denied("the topic so far was not known when the topic was bound")),
            Name::ByContent => self.name_by_content(record),
        }
    }

    fn name_by_content(&self, record: &Record<'_>) -> Result<Cow<'_, str>, Failure> {
        let bytes = self.template.render(record)?.into_owned();
        let name = String::from_utf8(bytes).map_err(|_| {
            let detail = "the topic's name would not be UTF-8".to_owned();
            Failure::new(FailureCode::Template, detail)
        })?;
        if !self.allow.iter().any(|a| a.whole_name.is_match(&name)) {
            return Err(denied(
                "`allow` does not contain the topic that the record names",
            ));
        }
        let name = legal(name).map_err(|_| {
            let detail = "the record names a topic that no topic may be called".to_owned();
            Failure::new(FailureCode::Template, detail)
        })?;
        Ok(Cow::Owned(name))
    }
}

impl Allowed {
    /// A legal name is a topic to create; as a regex it may match others too (a dot does).
    fn add_to(&self, targets: &mut Targets) {
        if is_legal(&self.text) {
            add(&mut targets.known, &self.text);
        }
        let is_plain = is_legal(&self.text) && !self.text.contains('.');
        let pattern = self.whole_name.as_str();
        if !is_plain && !targets.by_content.iter().any(|r| r.as_str() == pattern) {
            targets.by_content.push(self.whole_name.clone());
        }
    }
}

/// Adds `name` if it is not there.
pub(crate) fn add(names: &mut Vec<String>, name: &str) {
    if !names.iter().any(|n| n == name) {
        names.push(name.to_owned());
    }
}

fn compile_allow(list: &[String], place: &Place<'_>) -> Option<Vec<Allowed>> {
    let compiled = list
        .iter()
        .enumerate()
        .map(|(index, text)| match whole_name(text) {
            Ok(whole_name) => Some(Allowed {
                text: text.clone(),
                whole_name,
            }),
            Err(broken) => place.child(index).fault_regex(text, broken),
        });
    let compiled: Vec<Option<Allowed>> = compiled.collect();
    compiled.into_iter().collect()
}

fn whole_name(text: &str) -> Result<Regex, BrokenRegex> {
    // By itself first: a parenthesis too many must not end the group around it.
    let compiled = Regex::new(text).and_then(|_| Regex::new(&format!("^(?:{text})$")));
    compiled.map_err(|error| BrokenRegex::of(text, &error))
}

/// What of a template's own text makes every name illegal, if something does.
fn never_legal(template: &Template) -> Option<&str> {
    if let Some(text) = template.constant() {
        return (!is_legal(text)).then_some(text);
    }
    let legal = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    template
        .texts()
        .find(|text| text.len() > 249 || !text.bytes().all(legal))
}

/// Kafka's rule for the names of topics.
fn is_legal(name: &str) -> bool {
    let legal = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    (1..=249).contains(&name.len()) && name != "." && name != ".." && name.bytes().all(legal)
}

fn legal(name: String) -> Result<String, String> {
    if is_legal(&name) {
        return Ok(name);
    }
    Err(format!(
        "`{name}` is no legal topic name: letters, digits, `.`, `_` and `-`, 249 at most"
    ))
}

fn denied(detail: &str) -> Failure {
    Failure::new(FailureCode::DeniedTopic, detail.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn legal_names_are_kafkas() {
        for name in ["a", "A.b_c-1", &"x".repeat(249)] {
            assert!(is_legal(name), "{name}");
        }
        for name in ["", ".", "..", "a b", "ü", "a/b", &"x".repeat(250)] {
            assert!(!is_legal(name), "{name}");
        }
    }
}
