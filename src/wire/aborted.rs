//! Which batches of a partition were written by transactions that were aborted (KIP-98): `read_committed` is decided by the
//! reader.

use super::Malformed;
use super::codec::Decompressor;
use super::cut::RawBatch;
use std::collections::{BTreeMap, BTreeSet};

/// One entry of a fetch answer's list: this producer's batches from this offset on, up to its next marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aborted {
    /// The producer.
    pub producer_id: i64,
    /// The first offset of the transaction.
    pub first_offset: i64,
}

/// What becomes of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Its records are read.
    Committed,
    /// They are left out: their transaction was aborted.
    Aborted,
    /// It holds no records, only a marker.
    Marker,
}

/// The aborted transactions of one answer, while its batches are gone through in order.
#[derive(Debug, Default)]
pub struct Transactions {
    /// By first offset: those that did not begin yet.
    ahead: BTreeMap<i64, Vec<i64>>,
    /// Producers whose batches are left out here.
    aborting: BTreeSet<i64>,
}

/// Larger than any marker.
const MARKER: usize = 1024;
/// The marker's type that says so.
const ABORT: i16 = 0;

impl Transactions {
    /// Those of an answer's list, in whatever order it is.
    pub fn of(list: &[Aborted]) -> Self {
        let mut ahead: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
        for entry in list {
            let here = ahead.entry(entry.first_offset).or_default();
            here.push(entry.producer_id);
        }
        Self {
            ahead,
            aborting: BTreeSet::new(),
        }
    }

    /// What becomes of the next batch.
    ///
    /// # Errors
    /// A marker that cannot be read.
    pub fn fate(&mut self, batch: &RawBatch<'_>) -> Result<Fate, Malformed> {
        let header = batch.header();
        while let Some(entry) = self.ahead.first_entry()
            && *entry.key() <= header.last_offset()
        {
            self.aborting.extend(entry.remove());
        }
        let producer = header.stamp.producer_id;
        if header.is_control() {
            if marker(batch)? == Some(ABORT) {
                self.aborting.remove(&producer);
            }
            return Ok(Fate::Marker);
        }
        let is_aborted = header.is_transactional() && self.aborting.contains(&producer);
        Ok(match is_aborted {
            true => Fate::Aborted,
            false => Fate::Committed,
        })
    }
}

/// The type of a marker: its key is a version and a type, of 16 bits each. `None` where compaction has taken it.
fn marker(batch: &RawBatch<'_>) -> Result<Option<i16>, Malformed> {
    let mut buffer = Vec::new();
    let mut records = batch.open(&mut Decompressor::default(), MARKER, &mut buffer)?;
    let Some(record) = records.next() else {
        return Ok(None);
    };
    let key = record?.key.unwrap_or_default();
    let mut from = super::cursor::Cursor(key);
    let _version: [u8; 2] = from.array()?;
    Ok(Some(i16::from_be_bytes(from.array()?)))
}
