//! What an answer holds of one partition: looked through when it comes, opened batch by batch when it is taken.

use super::lent::{Body, Lent, Place};
use super::room::{Held, Waiting};
use crate::plane::{FetchedRecord, Offset, Run};
use crate::record::TopicPartition;
use crate::wire::Malformed;
use crate::wire::aborted::{Aborted, Fate, Transactions};
use crate::wire::codec::{Codec, Decompressor};
use crate::wire::cut::{Cut, Cuts, RawBatch};
use crate::wire::legacy::RawMessage;
use crate::wire::pass::Takes;
use crate::wire::records::View;
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
#[error("behind offset {after}: {fault}", after = after.0)]
pub struct Unfit {
    /// The last offset before it.
    after: Offset,
    /// What is wrong.
    fault: Malformed,
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
        let (bytes, last) = match cut.and_then(checked) {
            Ok(Cut::Batch(batch)) => {
                let header = batch.header();
                let last = (Offset(header.last_offset()), header.leader_epoch);
                (batch.bytes(), last)
            }
            Ok(Cut::Message(message)) => (message.bytes(), (Offset(message.offset()), NO_EPOCH)),
            Ok(Cut::Partial { whole }) => {
                measured.cut_off = whole;
                break;
            }
            Err(fault) => {
                let after = measured.last.map_or(from, |(last, _)| last);
                measured.fault = Some(Unfit { after, fault });
                break;
            }
        };
        measured.whole += bytes.len();
        measured.last = Some(last);
    }
    measured
}

/// What is older than batches does not say under which leader it was appended.
const NO_EPOCH: i32 = -1;

/// The same, its checksum compared.
fn checked(cut: Cut<'_>) -> Result<Cut<'_>, Malformed> {
    match &cut {
        Cut::Batch(batch) => batch.check()?,
        Cut::Message(message) => message.check()?,
        Cut::Partial { .. } => {}
    }
    Ok(cut)
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

    /// Reads the next batch: its records from offset `from` on, if it is neither aborted nor a marker. What is older than
    /// batches is read as well.
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
        let size = match at(&frame, self.at)? {
            Some(Cut::Batch(batch)) => {
                if self.transactions.fate(&batch)? == Fate::Committed {
                    self.lend(&batch, from, decompressor, into)?;
                }
                batch.bytes().len()
            }
            Some(Cut::Message(message)) => {
                self.lend_old(&message, from, decompressor, into)?;
                message.bytes().len()
            }
            Some(Cut::Partial { .. }) | None => return Ok(More::No),
        };
        // One that cannot be read is met again, and never passed.
        self.at += size;
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
        next: Option<Cut<'a>>,
    ) -> Result<Option<(RawBatch<'a>, Fate)>, Malformed> {
        // What is older than batches has to be opened.
        let Some(Cut::Batch(batch)) = next else {
            return Ok(None);
        };
        let fate = self.transactions.fate(&batch)?;
        Ok(Some((batch, fate)))
    }

    /// Whether the next batch looks like one that passes.
    pub fn may_run(&self, from: Offset, takes: Takes) -> bool {
        let next = at(&self.frame, self.at);
        matches!(next, Ok(Some(Cut::Batch(batch))) if passes(&batch, from, takes))
    }

    fn lend(
        &self,
        batch: &RawBatch<'_>,
        from: Offset,
        decompressor: &mut Decompressor,
        into: &mut VecDeque<Lent>,
    ) -> Result<(), Malformed> {
        let (codec, epoch) = (batch.header().codec()?, batch.header().leader_epoch);
        let mut buffer = Vec::new();
        let records = batch.open(decompressor, LARGEST_BATCH, &mut buffer)?;
        let within = self.within(codec, records.left());
        let places = places(records, from, epoch, within)?;
        into.extend(lent(places, self.body(codec, buffer)));
        Ok(())
    }

    fn lend_old(
        &self,
        message: &RawMessage<'_>,
        from: Offset,
        decompressor: &mut Decompressor,
        into: &mut VecDeque<Lent>,
    ) -> Result<(), Malformed> {
        let codec = message.codec()?;
        let mut buffer = Vec::new();
        let messages = message.open(decompressor, LARGEST_BATCH, &mut buffer)?;
        let within = self.within(codec, messages.left());
        let places = places(messages, from, NO_EPOCH, within)?;
        into.extend(lent(places, self.body(codec, buffer)));
        Ok(())
    }

    /// What is not compressed stays where it is.
    fn within<'b>(&'b self, codec: Codec, opened: &'b [u8]) -> &'b [u8] {
        match codec {
            Codec::None => &self.frame,
            _ => opened,
        }
    }

    fn body(&self, codec: Codec, opened: Vec<u8>) -> Body {
        match codec {
            Codec::None => Body::Frame(self.frame.clone()),
            _ => Body::Own(opened),
        }
    }
}

/// Where the records from offset `from` on stand: a batch comes whole also where it is read from its midst.
fn places<'b>(
    records: impl Iterator<Item = Result<View<'b>, Malformed>>,
    from: Offset,
    epoch: i32,
    within: &[u8],
) -> Result<Vec<Place>, Malformed> {
    let mut places = Vec::new();
    for record in records {
        let record = record?;
        if record.offset >= from.0 {
            places.push(Place::of(&record, epoch, within));
        }
    }
    Ok(places)
}

fn lent(places: Vec<Place>, body: Body) -> impl Iterator<Item = Lent> {
    let body = Arc::new(body);
    places.into_iter().map(move |place| place.lend(&body))
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

/// What stands at a place, if there is something: what is here was looked through, and whole.
fn at(frame: &Bytes, at: usize) -> Result<Option<Cut<'_>>, Malformed> {
    let left = frame.get(at..).unwrap_or_default();
    Cuts::of(left).next().transpose()
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
