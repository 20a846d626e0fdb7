//! What an answer holds of one partition: looked through when it comes, opened batch by batch when it is taken.

use super::lent::{Body, Lent, Place};
use super::room::{Held, Waiting};
use crate::plane::{FetchedRecord, Offset, Run};
use crate::record::TopicPartition;
use crate::wire::Malformed;
use crate::wire::aborted::{Aborted, Fate, Transactions};
use crate::wire::codec::{Codec, Decompressor};
use crate::wire::cut::{Cut, Cuts, RawBatch};
use crate::wire::pass::Takes;
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
    /// Its batches, which hold the room of the answer as long as anybody has a part of them.
    frame: Bytes,
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
            frame: Bytes::from_owner(Frame {
                bytes: portion.batches.clone(),
                _held: portion.held.clone(),
            }),
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
        let frame = self.frame.clone();
        let Some(batch) = at(&frame, self.at)? else {
            return Ok(More::No);
        };
        if self.transactions.fate(&batch)? == Fate::Committed {
            self.lend(&batch, from, decompressor, into)?;
        }
        // One that cannot be read is met again, and never passed.
        self.at += batch.bytes().len();
        Ok(More::Perhaps)
    }

    /// Takes batches that may pass, up to a cost, from offset `from` on: as many as follow each other without a gap. Those
    /// before them that hold no records are left behind. `None` where the next one has to be opened, or there is none.
    ///
    /// # Errors
    /// The first one cannot be read; it is not taken.
    pub fn run(&mut self, from: Offset, takes: Takes, most: u64) -> Result<Option<Run>, Malformed> {
        let frame = self.frame.clone();
        let mut run: Option<Run> = None;
        while run.as_ref().is_none_or(|run| run.cost() < most) {
            let next = at(&frame, self.at).and_then(|next| self.fated(next));
            let (batch, fate) = match next {
                Ok(Some(next)) => next,
                Ok(None) => break,
                // Met again behind what was taken.
                Err(_) if run.is_some() => break,
                Err(fault) => return Err(fault),
            };
            let is_empty = fate != Fate::Committed || batch.header().count == 0;
            match &mut run {
                None if is_empty => {}
                None if passes(&batch, from, takes) => {
                    let partition = self.portion.partition.clone();
                    run = Some(Run::of(partition, batch.keep(&frame)));
                }
                Some(run) if !is_empty && passes(&batch, from, takes) => {
                    if run.push(batch.keep(&frame)).is_err() {
                        break;
                    }
                }
                _ => break,
            }
            self.at += batch.bytes().len();
        }
        Ok(run)
    }

    /// What becomes of a batch. One that is asked about twice has the same fate.
    fn fated<'a>(
        &mut self,
        batch: Option<RawBatch<'a>>,
    ) -> Result<Option<(RawBatch<'a>, Fate)>, Malformed> {
        let Some(batch) = batch else {
            return Ok(None);
        };
        let fate = self.transactions.fate(&batch)?;
        Ok(Some((batch, fate)))
    }

    /// Whether the next batch looks like one that passes.
    pub fn may_run(&self, from: Offset, takes: Takes) -> bool {
        let next = at(&self.frame, self.at);
        next.is_ok_and(|next| next.is_some_and(|batch| passes(&batch, from, takes)))
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
            true => &self.frame[..],
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
            true => Body::Frame(self.frame.clone()),
            false => Body::Own(buffer),
        };
        let body = Arc::new(body);
        into.extend(places.into_iter().map(|place| place.lend(&body)));
        Ok(())
    }
}

/// Batches with the room that they hold.
struct Frame {
    bytes: Bytes,
    _held: Arc<Held>,
}

impl AsRef<[u8]> for Frame {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The batch at a place, if there is one: what is here was looked through, and has whole batches only.
fn at(frame: &Bytes, at: usize) -> Result<Option<RawBatch<'_>>, Malformed> {
    let left = frame.get(at..).unwrap_or_default();
    Ok(match Cuts::of(left).next().transpose()? {
        Some(Cut::Batch(batch)) => Some(batch),
        _ => None,
    })
}

/// Below both, a batch is sooner opened and gathered with others than sent: a request has one batch of a partition.
const SMALL_BYTES: usize = 4096;
const SMALL_COUNT: i32 = 32;

/// Whether a batch may pass, and is worth it.
fn passes(batch: &RawBatch<'_>, from: Offset, takes: Takes) -> bool {
    let is_small = batch.bytes().len() < SMALL_BYTES && batch.header().count < SMALL_COUNT;
    !is_small && batch.may_pass(from.0, takes).is_ok()
}

/// The cost of a record among those that are handed over together.
pub fn cost(record: &Lent) -> u64 {
    record.bytes() + crate::plane::RECORD_OVERHEAD
}
