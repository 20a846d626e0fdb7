//! A record's way through a chain, step by step.

use super::sample::{Bytes, Headers};
use crate::handler::{Failure, Observer, StepView, Way};
use crate::record::Record;
use std::time::{Duration, Instant};

/// A record between two steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The topic as named so far.
    pub topic: String,
    /// The key.
    pub key: Bytes,
    /// The value.
    pub value: Bytes,
    /// The headers.
    pub headers: Headers,
    /// The timestamp in milliseconds.
    pub timestamp: Option<i64>,
}

impl Snapshot {
    /// Copies `record`.
    pub fn of(record: &Record<'_>) -> Self {
        let mut headers = Headers::new();
        while let Some((name, value)) = record.headers.get(headers.len()) {
            headers.push((name.to_vec(), value.map(<[u8]>::to_vec)));
        }
        Self {
            topic: record.topic.to_string(),
            key: record.key.as_deref().map(<[u8]>::to_vec),
            value: record.value.as_deref().map(<[u8]>::to_vec),
            headers,
            timestamp: record.timestamp,
        }
    }
}

/// One record through one step.
#[derive(Clone, Debug)]
pub struct Passage {
    /// Index of the step in the chain.
    pub step: usize,
    /// Which way it took.
    pub way: Way,
    /// The record before.
    pub before: Snapshot,
    /// What came out.
    pub after: Vec<Snapshot>,
    /// The step's failure, also one that `on_error: pass` passed over.
    pub failure: Option<Failure>,
    /// How long the step took.
    pub took: Duration,
}

/// Writes down every passage of one record and of what it becomes.
#[derive(Debug)]
pub struct Trace {
    since: Instant,
    /// The passages so far.
    pub passages: Vec<Passage>,
}

impl Default for Trace {
    fn default() -> Self {
        Self {
            since: Instant::now(),
            passages: Vec::new(),
        }
    }
}

impl Observer for Trace {
    fn enters(&mut self, step: StepView<'_>, record: &Record<'_>) {
        self.passages.push(Passage {
            step: step.index,
            way: step.way(record),
            before: Snapshot::of(record),
            after: Vec::new(),
            failure: None,
            took: Duration::ZERO,
        });
        self.since = Instant::now();
    }

    fn leaves(&mut self, _step: usize, out: &[Record<'_>], failure: Option<&Failure>) {
        let took = self.since.elapsed();
        if let Some(passage) = self.passages.last_mut() {
            passage.took = took;
            passage.after = out.iter().map(Snapshot::of).collect();
            passage.failure = failure.cloned();
        }
    }
}
