//! What an answer holds of one partition: looked through when it comes, opened batch by batch when it is taken.

use super::lent::{Body, Lent, Place};
use super::room::{Held, Waiting};
use crate::plane::{FetchedRecord, Offset};
use crate::record::TopicPartition;
use crate::wire::Malformed;
use crate::wire::aborted::{Aborted, Fate, Transactions};
use crate::wire::codec::{Codec, Decompressor};
use crate::wire::cut::{Cut, Cuts, RawBatch};
use bytes::Bytes;
use std::collections::VecDeque;
use std::sync::Arc;

/// The most that a batch may be when it is decompressed: what is larger is damaged, or made to fill memory.
pub const LARGEST_BATCH: usize = 256 << 20;

/// Batches of one partition, whole and with checksums that are right.
#[derive(Debug)]
pub struct Portion {
    /// The partition.
    pub partition: TopicPartition,
    /// Under which turn it was read.
    pub turn: u64,
    /// The batches.
    pub batches: Bytes,
    /// Transactions that were aborted within.
    pub aborted: Vec<Aborted>,
    /// The first offset behind them.
    pub reached: Offset,
    /// The room of the answer that they came in.
    pub held: Arc<Held>,
    /// Its place among those that wait.
    pub waiting: Waiting,
}

/// What there is in an answer, without opening it.
#[derive(Debug, PartialEq, Eq)]
pub struct Measured {
    /// Bytes of the batches that are whole and right.
    pub whole: usize,
    /// The last offset in them, and the epoch in which it was written.
    pub last: Option<(Offset, i32)>,
    /// Bytes of the batch that was cut off, once so much of it is there that it says so.
    pub cut_off: Option<usize>,
    /// What stands behind them and is no batch.
    pub fault: Option<Unfit>,
}

/// Why what was read is not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// It is no batch.
    #[error("behind offset {after}: {fault}", after = after.0)]
    Malformed {
        /// The last offset before it.
        after: Offset,
        /// What is wrong.
        fault: Malformed,
    },
    /// A format that only librdkafka reads.
    #[error(
        "offset {offset} is in the format of before Kafka 0.11, which the native data plane does not read; write data_plane: librdkafka"
    )]
    Old {
        /// The offset.
        offset: i64,
    },
}

/// Looks through what was read from `from` on.
pub fn measure(batches: &Bytes, from: Offset) -> Measured {
    let mut measured = Measured {
        whole: 0,
        last: None,
        cut_off: None,
        fault: None,
    };
    for cut in Cuts::of(batches) {
        let checked = cut.and_then(|cut| match cut {
            Cut::Batch(batch) => batch.check().map(|()| cut),
            _ => Ok(cut),
        });
        match checked {
            Ok(Cut::Batch(batch)) => {
                measured.whole += batch.bytes().len();
                let header = batch.header();
                measured.last = Some((Offset(header.last_offset()), header.leader_epoch));
            }
            Ok(Cut::Partial { whole }) => measured.cut_off = whole,
            Ok(Cut::Old { offset, .. }) => {
                measured.fault = Some(Unfit::Old { offset });
                break;
            }
            Err(fault) => {
                let after = measured.last.map_or(from, |(last, _)| last);
                measured.fault = Some(Unfit::Malformed { after, fault });
                break;
            }
        }
    }
    measured
}

/// A portion that is being opened.
pub struct Opened {
    /// The portion.
    pub portion: Portion,
    at: usize,
    transactions: Transactions,
}

/// Whether there is more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum More {
    /// Another batch may follow.
    Perhaps,
    /// That was all.
    No,
}

impl Opened {
    /// Begins.
    pub fn of(portion: Portion) -> Self {
        Self {
            at: 0,
            transactions: Transactions::of(&portion.aborted),
            portion,
        }
    }

    /// Reads the next batch: its records from offset `from` on, if it is neither aborted nor a marker.
    ///
    /// # Errors
    /// It cannot be read; nothing of it is taken.
    pub fn next(
        &mut self,
        from: Offset,
        decompressor: &mut Decompressor,
        into: &mut VecDeque<Lent>,
    ) -> Result<More, Malformed> {
        let batches = self.portion.batches.clone();
        let left = batches.get(self.at..).unwrap_or_default();
        // What is here was looked through: whole batches only.
        let Some(Cut::Batch(batch)) = Cuts::of(left).next().transpose()? else {
            return Ok(More::No);
        };
        if self.transactions.fate(&batch)? == Fate::Committed {
            self.lend(&batch, from, decompressor, into)?;
        }
        // One that cannot be read is met again, and never passed.
        self.at += batch.bytes().len();
        Ok(More::Perhaps)
    }

    fn lend(
        &self,
        batch: &RawBatch<'_>,
        from: Offset,
        decompressor: &mut Decompressor,
        into: &mut VecDeque<Lent>,
    ) -> Result<(), Malformed> {
        let epoch = batch.header().leader_epoch;
        let mut buffer = Vec::new();
        let is_plain = batch.header().codec()? == Codec::None;
        let records = batch.open(decompressor, LARGEST_BATCH, &mut buffer)?;
        // What is not compressed stays where it is.
        let within = match is_plain {
            true => &self.portion.batches[..],
            false => records.left(),
        };
        let mut places = Vec::new();
        for record in records {
            let record = record?;
            // A batch comes whole also where it is read from its midst.
            if record.offset >= from.0 {
                places.push(Place::of(&record, epoch, within));
            }
        }
        let body = match is_plain {
            true => Body::Frame(self.portion.batches.clone(), self.portion.held.clone()),
            false => Body::Own(buffer),
        };
        let body = Arc::new(body);
        into.extend(places.into_iter().map(|place| place.lend(&body)));
        Ok(())
    }
}

/// The cost of a record among those that are handed over together.
pub fn cost(record: &Lent) -> u64 {
    record.bytes() + crate::plane::RECORD_OVERHEAD
}
