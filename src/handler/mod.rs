//! Handlers: what becomes of a record between fetch and produce (`handlers.md` is the grammar).
//!
//! A [`Chain`] is compiled once from the file's steps, bound to each source topic when that topic
//! is discovered ([`Chain::bind`] resolves static topic templates and captures there, never per
//! record), and applied to each record by the thread that owns the record's partition.

use crate::config::pattern::Pattern;
use crate::config::spec::OnError;
use crate::record::Record;
use regex::Regex;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

mod analysis;
pub(crate) mod broken_regex;
mod cel;
mod chain;
mod clock;
mod compare;
mod dedupe;
mod fault;
mod fields;
mod filter;
mod json;
mod limit;
mod moment;
mod naming;
mod observer;
mod operator;
pub mod outline;
mod path;
mod predicate;
mod reformat;
mod rename;
#[cfg(test)]
mod sample;
mod schema;
mod shelf;
pub mod spec;
mod step;
mod template;
#[cfg(test)]
mod tests;

pub use analysis::{Analysis, Misplaced, Part};
pub use chain::{BoundChain, Chain, Cost};
pub use clock::Clock;
pub use json::Segment;
pub(crate) use json::number::compare as compare_numbers;
pub(crate) use naming::NAME_HELP as TOPIC_NAMES;
pub use observer::{Observer, StepView, Way};
pub(crate) use path::Field;
pub use path::{Path, PathFault};
pub(crate) use schema::{is_for_paths, not_written};
pub use shelf::Shelf;
pub use spec::StepSpec;

/// What a handler or a chain reads of a record. Ordered: each includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reads {
    /// Nothing, or only coordinates and the topic's name.
    Nothing,
    /// Headers.
    Headers,
    /// The key, and named fields of the value.
    Fields,
    /// The whole value.
    Value,
}

/// Why a step failed. The same closed set in logs, metrics, dead letters and tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureCode {
    /// A step on `value.x` met bytes that are not JSON.
    NotJson,
    /// A path that must be there is not.
    Absent,
    /// A field has a type that the step cannot use.
    WrongType,
    /// JSON nested deeper than the limit.
    TooDeep,
    /// More outputs than the limit.
    TooMany,
    /// An output larger than the limit.
    TooLarge,
    /// A template could not be filled.
    Template,
    /// An expression failed.
    Expression,
    /// A content-named topic that `allow` does not contain.
    DeniedTopic,
    /// A codec refused the bytes.
    Codec,
    /// Two fields would get the same name.
    Collision,
    /// The step panicked.
    Panic,
    /// The target refuses this record: larger than the topic takes.
    RecordTooLarge,
    /// The target refuses this record: invalid (a null key on a compacted topic, for instance).
    InvalidRecord,
    /// A timestamp that no record can have, or that the target refuses: it is out of the topic's
    /// range.
    InvalidTimestamp,
}

impl FailureCode {
    /// The code's stable name.
    pub fn as_str(self) -> &'static str {
        match self {
            FailureCode::NotJson => "not_json",
            FailureCode::Absent => "absent",
            FailureCode::WrongType => "wrong_type",
            FailureCode::TooDeep => "too_deep",
            FailureCode::TooMany => "too_many",
            FailureCode::TooLarge => "too_large",
            FailureCode::Template => "template",
            FailureCode::Expression => "expression",
            FailureCode::DeniedTopic => "denied_topic",
            FailureCode::Codec => "codec",
            FailureCode::Collision => "collision",
            FailureCode::Panic => "panic",
            FailureCode::RecordTooLarge => "record_too_large",
            FailureCode::InvalidRecord => "invalid_record",
            FailureCode::InvalidTimestamp => "invalid_timestamp",
        }
    }
}

impl fmt::Display for FailureCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A record's failure inside a handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The closed code.
    pub code: FailureCode,
    /// What happened, in words without payload bytes.
    pub detail: String,
}

impl Failure {
    /// A failure of that code. `detail` tells what happened without bytes of the payload.
    pub fn new(code: FailureCode, detail: impl Into<String>) -> Self {
        Self {
            code,
            detail: detail.into(),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.detail)
    }
}

/// A step's failure, with the step and its own `on_error` if it has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepFailure {
    /// Index of the step in the chain.
    pub step: usize,
    /// The failure.
    pub failure: Failure,
    /// The step's own `on_error`; `None`: the route's.
    pub on_error: Option<OnError>,
}

/// One step of a chain: a borrowed record in, 0..n records out.
///
/// The three primitives implement it; a program that embeds the library may register its own in a
/// [`Registry`] and name it in the file with `use:`. It must not block, must not read a clock,
/// and its output must depend on the record and its coordinates alone. A panic is that record's
/// failure ([`FailureCode::Panic`]).
pub trait Handler: Send + Sync {
    /// What it reads of a record; decides the chain's cost class.
    fn reads(&self) -> Reads;

    /// Pushes what becomes of `record` to `out`: nothing drops it, several split it.
    ///
    /// # Errors
    /// A [`Failure`] settles the whole input record by `on_error`: none of its outputs is
    /// produced.
    fn handle<'a>(&'a self, record: Record<'a>, out: &mut Vec<Record<'a>>) -> Result<(), Failure>;
}

/// Handlers that an embedding program brings, by the name used in the file (`use: NAME`).
#[derive(Clone, Default)]
pub struct Registry {
    handlers: BTreeMap<String, Arc<dyn Handler>>,
}

impl Registry {
    /// Registers `handler` under `name`, replacing an earlier one of that name.
    pub fn register(&mut self, name: impl Into<String>, handler: Arc<dyn Handler>) -> &mut Self {
        self.handlers.insert(name.into(), handler);
        self
    }

    /// The handler registered under `name`.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Handler>> {
        self.handlers.get(name)
    }

    /// The registered names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.handlers.keys().map(String::as_str)
    }
}

/// A mistake in a chain, found while compiling it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainFault {
    /// JSON pointer inside the list of steps, such as `/1/filter/keep`.
    pub pointer: String,
    /// Whether the key there is meant, or the value.
    pub side: Side,
    /// Where in the text that stands there, if the mistake is in a part of it.
    pub inside: Option<Inside>,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub help: Option<String>,
}

/// Which side of a `key: value` a mistake is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The key.
    Key,
    /// The value.
    Value,
}

/// A part of a text of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inside {
    /// The whole text.
    pub text: String,
    /// The bytes of the part.
    pub bytes: Range<usize>,
}

/// What a chain is bound to: everything that is constant for all records of one source topic.
#[derive(Clone, Debug)]
pub struct Binding<'a> {
    /// The route's name (`{route}`).
    pub route: &'a str,
    /// The source cluster's name (`{source}`).
    pub source: &'a str,
    /// The target cluster's name (`{target}`).
    pub target: &'a str,
    /// The source topic (`{source_topic}`, and `{topic}` until a rename).
    pub topic: &'a str,
    /// The include regex that selected the topic; its named captures feed templates.
    pub selected_by: &'a Pattern,
    /// What tells the time, where a step asks.
    pub clock: Clock,
    /// `limits.record`: what a step makes of a record may not take more.
    pub record_bytes: Option<u64>,
}

/// The target topics that a bound chain can write.
#[derive(Clone, Debug, Default)]
pub struct Targets {
    /// Known when the topic is bound: static templates, and `allow:` entries that are legal names.
    pub known: Vec<String>,
    /// Whole-name regexes of content-named topics.
    pub by_content: Vec<Regex>,
}

/// What became of a record in a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The outputs go on.
    Forward,
    /// The step of this index dropped it on purpose.
    Dropped {
        /// Index of the step in the chain.
        step: usize,
    },
}
