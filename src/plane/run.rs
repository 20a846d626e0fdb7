//! Batches that go on as they came.

use super::{Offset, RECORD_OVERHEAD};
use crate::record::TopicPartition;
use crate::wire::pass::{Takes, Whole};

/// In what form the records of a partition are handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// One by one.
    Records,
    /// In whole batches, as far as a target that takes this may have them so; the others one by one.
    Whole(Takes),
}

/// Whole batches of one source partition, each with every offset from its first to its last, and each beginning where the one
/// before ends: offsets in a run are counted like records. Never empty.
#[derive(Debug)]
pub struct Run {
    /// The source partition.
    pub partition: TopicPartition,
    batches: Vec<Whole>,
    first: Offset,
    last: Offset,
    records: u32,
    bytes: u64,
}

impl Run {
    /// A run of one batch.
    pub fn of(partition: TopicPartition, batch: Whole) -> Self {
        Self {
            partition,
            first: first(&batch),
            last: last(&batch),
            records: batch.count(),
            bytes: batch.size() as u64,
            batches: vec![batch],
        }
    }

    /// Takes the next batch in, if it follows without a gap.
    ///
    /// # Errors
    /// It does not: here it is again.
    pub fn push(&mut self, batch: Whole) -> Result<(), Whole> {
        let records = self.records.checked_add(batch.count());
        let follows = first(&batch) == self.last.next();
        let Some(records) = records.filter(|_| follows) else {
            return Err(batch);
        };
        self.records = records;
        self.last = last(&batch);
        self.bytes += batch.size() as u64;
        self.batches.push(batch);
        Ok(())
    }

    /// Its batches, each with the distance of its first record from the run's.
    pub fn batches(&self) -> impl Iterator<Item = (u32, &Whole)> {
        self.batches.iter().scan(0, |at, batch| {
            let distance = *at;
            *at += batch.count();
            Some((distance, batch))
        })
    }

    /// The first record's offset.
    pub fn first(&self) -> Offset {
        self.first
    }

    /// The last record's offset.
    pub fn last(&self) -> Offset {
        self.last
    }

    /// How many records it has.
    pub fn records(&self) -> u32 {
        self.records
    }

    /// Its bytes as they came: compressed, headers and all.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Memory that it takes while it is in flight.
    pub fn cost(&self) -> u64 {
        self.bytes + self.batches.len() as u64 * RECORD_OVERHEAD
    }

    /// The leader epoch that its last record was read in, −1 if unknown.
    pub fn leader_epoch(&self) -> i32 {
        let last = self.batches.last();
        last.map_or(-1, |batch| batch.header().leader_epoch)
    }
}

fn first(batch: &Whole) -> Offset {
    Offset(batch.header().base_offset)
}

fn last(batch: &Whole) -> Offset {
    Offset(batch.header().last_offset())
}
