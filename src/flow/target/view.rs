//! What is known of the target's topics: written by the keeper, read by lanes and workers.

use crate::observe::Reason;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError, RwLock};

/// What the target says of one of its topics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TargetTopic {
    /// Its partition count.
    pub(crate) partitions: i32,
    /// The largest record batch it takes, in bytes.
    pub(crate) record_bytes: u64,
    /// Whose times its records have.
    pub(crate) times: Times,
}

/// Whose times a topic's records have (`message.timestamp.type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Times {
    /// Their own.
    OfRecords,
    /// The broker's, or it is not known.
    OfBroker,
}

/// What is known of the target. Written by the keeper, read by lanes and workers.
#[derive(Default)]
pub(crate) struct TargetView {
    topics: RwLock<HashMap<String, TargetTopic>>,
    problems: Mutex<HashMap<String, Reason>>,
    generation: AtomicU64,
    pub(super) cluster_id: OnceLock<Option<String>>,
}

impl TargetView {
    pub(crate) fn get(&self, topic: &str) -> Option<TargetTopic> {
        read(&self.topics).get(topic).copied()
    }

    /// Rises whenever a topic came, went or changed.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// The target cluster's id: `None` until it answered, `Some(None)` if it has none.
    pub(crate) fn cluster_id(&self) -> Option<Option<String>> {
        self.cluster_id.get().cloned()
    }

    /// What stands between a topic and its being ready.
    pub(crate) fn problem(&self, topic: &str) -> Option<Reason> {
        self.problems
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(topic)
            .cloned()
    }

    /// The smallest batch limit of the topics that are known: no producer batch may be larger.
    pub(crate) fn batch_bytes(&self) -> u64 {
        let smallest = read(&self.topics).values().map(|t| t.record_bytes).min();
        smallest.unwrap_or(u64::MAX).clamp(1024, 1_000_000)
    }

    pub(super) fn replace(&self, topics: HashMap<String, TargetTopic>) -> bool {
        let mut now = self.topics.write().unwrap_or_else(PoisonError::into_inner);
        if *now == topics {
            return false;
        }
        *now = topics;
        self.generation.fetch_add(1, Ordering::AcqRel);
        true
    }

    pub(super) fn set_problems(&self, problems: HashMap<String, Reason>) -> bool {
        let mut now = self.problems.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = *now != problems;
        *now = problems;
        changed
    }

    #[cfg(test)]
    pub(crate) fn with(topics: &[(&str, TargetTopic)]) -> Self {
        let view = Self::default();
        view.replace(topics.iter().map(|(n, t)| ((*n).to_owned(), *t)).collect());
        view
    }

    /// One more topic is there.
    #[cfg(test)]
    pub(crate) fn add(&self, name: &str, topic: TargetTopic) {
        let mut topics = read(&self.topics).clone();
        topics.insert(name.to_owned(), topic);
        self.replace(topics);
    }
}

fn read<T>(lock: &RwLock<T>) -> std::sync::RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}
