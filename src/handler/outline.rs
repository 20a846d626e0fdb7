//! What a chain may call the target topic, told before any topic is known.
//!
//! [`super::Chain::bind`] answers for one topic; this answers for all of them at once, in symbols, so
//! that a configuration can be judged without a cluster.

use super::spec::{FilterSpec, StepSpec};
use serde_json::Value;

/// What is constant for a flow: what `{source}`, `{target}` and `{route}` stand for.
#[derive(Clone, Copy, Debug)]
pub struct FlowNames<'a> {
    /// The route's name.
    pub route: &'a str,
    /// The source cluster's name.
    pub source: &'a str,
    /// The target cluster's name.
    pub target: &'a str,
}

/// A piece of a target topic's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// This text.
    Text(String),
    /// The source topic's name.
    SourceTopic,
    /// A named capture of the include regex.
    Capture(String),
}

/// Whether a name, or a record, is sure to get through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Certainty {
    /// Every record.
    Always,
    /// It depends on the record.
    ByRecord,
}

/// One way in which a chain may name the target topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outline {
    /// The name.
    pub name: OutlineName,
    /// Whether every record takes this way.
    pub certainty: Certainty,
}

/// The name in symbols.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutlineName {
    /// These parts, one after the other.
    Parts(Vec<Part>),
    /// Named from the record: one of these whole-name regexes (`allow`).
    ByContent(Vec<String>),
}

impl Outline {
    /// The name of a chain without a rename.
    pub(super) fn unchanged() -> Self {
        Self {
            name: OutlineName::Parts(vec![Part::SourceTopic]),
            certainty: Certainty::Always,
        }
    }

    /// The same name, taken with `certainty` at most.
    pub(super) fn at_most(mut self, certainty: Certainty) -> Self {
        self.certainty = self.certainty.max(certainty);
        self
    }
}

/// Appends `parts` to `name`, joining texts.
pub(super) fn append(name: &mut Vec<Part>, parts: impl IntoIterator<Item = Part>) {
    for part in parts {
        match (name.last_mut(), part) {
            (_, Part::Text(text)) if text.is_empty() => {}
            (Some(Part::Text(before)), Part::Text(text)) => before.push_str(&text),
            (_, part) => name.push(part),
        }
    }
}

/// Whether a step lets records through, as far as that can be told without them. Records that fail
/// are another matter: there is one that does not.
pub(super) fn lets_through(step: &StepSpec) -> Certainty {
    let drops_few = |filter: &FilterSpec| {
        // These words say nothing about a record that has a key and a value.
        let word = filter.drop.as_ref().map(|p| &p.0).and_then(Value::as_str);
        word.is_some_and(|word| super::predicate::WORDS.contains(&word))
    };
    match (&step.filter, &step.use_) {
        (Some(filter), _) if !drops_few(filter) => Certainty::ByRecord,
        (_, Some(_)) => Certainty::ByRecord,
        _ => Certainty::Always,
    }
}
