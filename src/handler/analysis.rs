//! What a chain does, known before there is a record.

use super::chain::{Chain, Cost};
use super::path::Path;
use super::reformat::spec::ReformatSpec;
use super::spec::{RenameSpec, StepSpec};
use std::collections::BTreeSet;
use std::fmt;

/// What a record is made of, as far as handlers read and write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The target topic's name.
    Topic,
    /// The source partition and the offset, which no step writes.
    Coordinates,
    /// The timestamp.
    Timestamp,
    /// Headers.
    Headers,
    /// The key.
    Key,
    /// The value.
    Value,
}

impl Part {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Topic,
        Self::Coordinates,
        Self::Timestamp,
        Self::Headers,
        Self::Key,
        Self::Value,
    ];

    /// Its stable name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Topic => "topic",
            Self::Coordinates => "coordinates",
            Self::Timestamp => "timestamp",
            Self::Headers => "headers",
            Self::Key => "key",
            Self::Value => "value",
        }
    }

    /// The part that `path` is in.
    pub(super) fn of(path: &Path) -> Self {
        match path {
            Path::Topic => Self::Topic,
            Path::Partition | Path::Offset => Self::Coordinates,
            Path::Timestamp => Self::Timestamp,
            Path::Header(_) => Self::Headers,
            Path::Key(_) => Self::Key,
            Path::Value(_) => Self::Value,
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a chain does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Analysis {
    /// What it costs per record.
    pub cost: Cost,
    /// What it may write.
    pub writes: BTreeSet<Part>,
    /// Whether it may drop records on purpose.
    pub drops: bool,
    /// Whether one record may become several.
    pub splits: bool,
    /// Whether the topic's name may depend on the record.
    pub renames_by_content: bool,
    /// Whether it writes the time of its run: another run makes another record.
    pub writes_the_time: bool,
}

/// A cheap filter behind a dear step: what it drops was paid for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Misplaced {
    /// Index of the filter in the chain.
    pub filter: usize,
    /// Index of the first dear step before it.
    pub behind: usize,
}

impl Chain {
    /// What the chain does, known from its steps alone.
    pub fn analysis(&self) -> Analysis {
        let specs = || self.specs();
        let reformats = || specs().filter_map(|s| s.reformat.as_deref());
        let renames = || specs().filter_map(|s| s.rename.as_deref());
        // What an embedding program brings may do anything.
        let any = specs().any(|s| s.use_.is_some());
        Analysis {
            cost: self.cost(),
            writes: specs().flat_map(writes).collect(),
            drops: any
                || specs().any(|s| s.filter.is_some())
                || reformats().any(|r| r.split.is_some()),
            splits: any || reformats().any(|r| r.split.is_some()),
            renames_by_content: any || renames().any(is_by_content),
            writes_the_time: reformats().any(|r| r.timestamp.as_ref().is_some_and(|t| t == "now")),
        }
    }

    /// Filters that look at headers and coordinates alone, and could as well stand before a step
    /// that reads the key or the value: nothing between the two writes what they look at.
    pub fn misplaced(&self) -> Vec<Misplaced> {
        let mut found = Vec::new();
        for (index, step) in self.steps().iter().enumerate() {
            let Some(looks_at) = step.cheap_filter() else {
                continue;
            };
            let before = self.steps()[..index].iter().zip(self.specs()).enumerate();
            let movable = before
                .rev()
                .take_while(|(_, (_, spec))| writes(spec).all(|part| !looks_at.contains(&part)));
            let dear = movable.filter(|(_, (step, _))| step.is_dear());
            if let Some((behind, _)) = dear.last() {
                found.push(Misplaced {
                    filter: index,
                    behind,
                });
            }
        }
        found
    }
}

/// What a step may write.
fn writes(spec: &StepSpec) -> impl Iterator<Item = Part> + use<> {
    let parts: Vec<Part> = match (&spec.rename, &spec.reformat, &spec.use_) {
        (Some(rename), _, _) => renamed(rename),
        (None, Some(reformat), _) => reformatted(reformat),
        (None, None, Some(_)) => Part::ALL.to_vec(),
        (None, None, None) => Vec::new(),
    };
    parts.into_iter()
}

fn renamed(rename: &RenameSpec) -> Vec<Part> {
    let mut parts = Vec::new();
    if rename.topic.is_some() || rename.to.is_some() {
        parts.push(Part::Topic);
    }
    if rename.header.is_some() {
        parts.push(Part::Headers);
    }
    let fields = rename.field.iter().flat_map(|entries| entries.0.keys());
    parts.extend(fields.filter_map(|path| part_of(path)));
    parts
}

fn reformatted(reformat: &ReformatSpec) -> Vec<Part> {
    let by_path = [
        &reformat.set,
        &reformat.decode,
        &reformat.encode,
        &reformat.cast,
    ];
    let entries = by_path.into_iter().flatten().flat_map(|e| e.0.keys());
    let unset = reformat.unset.iter().flatten();
    let masked = reformat.mask.iter().flat_map(|mask| &mask.fields);
    let paths = entries.chain(unset).chain(masked);
    let mut parts: Vec<Part> = paths.filter_map(|path| part_of(path)).collect();
    if reformat.rekey.is_some() {
        parts.push(Part::Key);
    }
    if reformat.timestamp.is_some() {
        parts.push(Part::Timestamp);
    }
    if let Some(split) = &reformat.split {
        parts.push(Part::Value);
        parts.extend(split.index_header.as_ref().map(|_| Part::Headers));
    }
    let makes_the_value = reformat.hoist.is_some()
        || reformat.extract.is_some()
        || reformat.flatten.is_some()
        || reformat.envelope.is_some();
    parts.extend(makes_the_value.then_some(Part::Value));
    parts
}

/// The part of a path as written; `header.x-*` is one in `unset`.
fn part_of(path: &str) -> Option<Part> {
    if path.starts_with("header.") {
        return Some(Part::Headers);
    }
    Path::parse(path).ok().map(|path| Part::of(&path))
}

/// Whether the name depends on the record: by a path in the template, or by a condition.
fn is_by_content(rename: &RenameSpec) -> bool {
    let conditional = rename.to.as_ref().is_some_and(|list| {
        let conditions = list
            .iter()
            .any(|to| to.when.is_some() || to.allow.is_some());
        conditions || list.len() > 1
    });
    rename.allow.is_some() || conditional
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handler::Registry;
    use serde_json::{Value, json};

    fn chain(steps: Value) -> Chain {
        let steps: Vec<StepSpec> = serde_json::from_value(steps).expect("steps");
        Chain::compile(steps, &Registry::default()).expect("a chain")
    }

    #[test]
    fn a_chain_knows_what_it_does() {
        let nothing = chain(json!([])).analysis();
        assert_eq!(nothing.cost, Cost::PassThrough);
        assert!(nothing.writes.is_empty() && !nothing.drops && !nothing.splits);
        let much = chain(json!([
            {"filter": {"drop": "tombstone"}},
            {"rename": {"topic": "t-{value.x}", "allow": ["t-.*"]}},
            {"reformat": {"set": {"key": "a", "value.b": 1}, "unset": ["header.x-*"]}},
            {"reformat": {"split": {"array": "value.items", "into": "value.item"}}},
        ]))
        .analysis();
        assert_eq!(much.cost, Cost::Value);
        let written = [Part::Topic, Part::Headers, Part::Key, Part::Value];
        assert_eq!(much.writes, BTreeSet::from(written));
        assert!(much.drops && much.splits && much.renames_by_content);
        let quiet = chain(json!([{"rename": {"topic": "a.{topic}"}}])).analysis();
        assert!(!quiet.renames_by_content && !quiet.drops && !quiet.writes_the_time);
        let stamped = chain(json!([{"reformat": {"timestamp": "now"}}])).analysis();
        let shifted = chain(json!([{"reformat": {"timestamp": {"shift": "1h"}}}])).analysis();
        assert!(stamped.writes_the_time && !shifted.writes_the_time);
    }

    #[test]
    fn a_cheap_filter_behind_a_dear_step_is_found() {
        let mask = json!({"reformat": {"mask": {"fields": ["value.a"], "with": "redact"}}});
        let cheap = json!({"filter": {"keep": {"header.region": "pt"}}});
        let set = json!({"reformat": {"set": {"header.region": "pt"}}});
        let found = |steps: Value| {
            let found = chain(steps).misplaced();
            let pairs = found.iter().map(|m| (m.filter, m.behind));
            pairs.collect::<Vec<_>>()
        };
        assert_eq!(found(json!([mask, cheap])), [(1, 0)]);
        assert_eq!(found(json!([cheap, mask])), []);
        assert_eq!(found(json!([mask, mask, cheap])), [(2, 0)]);
        assert_eq!(found(json!([mask, set, cheap])), [], "it needs what is set");
        assert_eq!(found(json!([set, mask, cheap])), [(2, 1)]);
        let by_value = json!({"filter": {"keep": {"value.a": 1}}});
        assert_eq!(found(json!([mask, by_value])), []);
        assert_eq!(found(json!([by_value, cheap])), [(1, 0)]);
        assert_eq!(found(json!([{"filter": {"drop": "tombstone"}}, cheap])), []);
        let first = json!({"filter": {"dedupe": "header.id"}});
        assert_eq!(
            found(json!([by_value, first])),
            [],
            "what it remembers would differ"
        );
        let expression = json!({"filter": {"drop": "partition == 3 && header.x == 'y'"}});
        assert_eq!(found(json!([mask, expression])), [(1, 0)]);
    }
}
