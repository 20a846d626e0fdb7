//! The producers of a flow: `producers` of them, shared by its threads, each source partition on
//! one while it has records in flight; and one quarantine producer a worker, so that the retries of
//! a bad record never take the flow's own handle down with them (`engine.md` rule 4).

use crate::plane::{Numbers, Sink};
use crate::record::TopicPartition;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

/// Makes a producer.
pub(crate) type MakeSink<K> = Box<dyn Fn(Purpose) -> Result<K, String> + Send + Sync>;

/// What a producer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Records in large batches.
    Flow,
    /// Suspects, each in a batch of its own: a refusal names no record, and what another partition sends to the same place
    /// at the same time would be blamed as well.
    Quarantine,
}

/// The producers of a flow.
pub(crate) struct Sinks<K> {
    numbers: Numbers,
    make: MakeSink<K>,
    slots: Vec<Mutex<Option<Arc<K>>>>,
}

impl<K: Sink> Sinks<K> {
    pub(crate) fn new(count: usize, numbers: Numbers, make: MakeSink<K>) -> Self {
        Self {
            numbers,
            make,
            slots: (0..count.max(1)).map(|_| Mutex::new(None)).collect(),
        }
    }

    /// Whose business the numbers of what they write are.
    pub(crate) fn numbers(&self) -> Numbers {
        self.numbers
    }

    /// The producer for a partition that has nothing in flight; made when there is none, or when
    /// the last one is dead. A partition with records in flight stays on the handle it is on: what
    /// it sent there must not be overtaken on another.
    pub(crate) fn of(&self, partition: &TopicPartition) -> Result<Arc<K>, String> {
        let slot = &self.slots[spread(partition, self.slots.len())];
        let mut sink = slot.lock().unwrap_or_else(PoisonError::into_inner);
        self.usable(&mut sink, Purpose::Flow)
    }

    /// The same for a producer that a worker keeps for itself.
    pub(crate) fn quarantine(&self, sink: &mut Option<Arc<K>>) -> Result<Arc<K>, String> {
        self.usable(sink, Purpose::Quarantine)
    }

    fn usable(&self, sink: &mut Option<Arc<K>>, purpose: Purpose) -> Result<Arc<K>, String> {
        match sink {
            Some(sink) if sink.is_usable() => Ok(sink.clone()),
            _ => {
                let made = Arc::new((self.make)(purpose)?);
                *sink = Some(made.clone());
                Ok(made)
            }
        }
    }
}

/// Spreads partitions evenly and the same way in every process: topic by hash, partitions of one
/// topic one after the other.
pub(crate) fn spread(partition: &TopicPartition, over: usize) -> usize {
    let mut hasher = std::hash::DefaultHasher::new();
    partition.topic.hash(&mut hasher);
    let index = hasher.finish().wrapping_add(partition.partition as u64);
    (index % over.max(1) as u64) as usize
}
