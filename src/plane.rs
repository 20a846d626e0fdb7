//! The seam between the engine and a data plane: what fetch hands over, what produce takes.
//!
//! Nothing above this seam knows a client type. Fetch hands over [`Batch`]es (one source partition,
//! in offset order), produce takes records one by one and answers with one [`Outcome`] for each. Where nobody looks at the
//! records and both planes can, fetch hands over [`Run`]s of whole batches, and produce takes them as they came.
//! The `librdkafka` plane (`client`) is the reference; a native one has to give the same target.

pub(crate) mod known;
pub mod outcomes;
mod run;

pub use run::{Form, Run};

use crate::record::{HeaderSource, Headers, Origin, Record, TopicPartition};
use crate::wire::pass::Whole;
use std::borrow::Cow;
use std::time::Duration;

/// An offset of a source partition. Never computed with, except here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Offset(pub i64);

impl Offset {
    /// The next offset to be read after the record at this one: the only `+ 1` there is (B005).
    pub fn next(self) -> Offset {
        Offset(self.0 + 1)
    }

    /// How far this offset lies behind `first`, for a token; `None` if it does not fit.
    pub fn distance(self, first: Offset) -> Option<u32> {
        u32::try_from(self.0.checked_sub(first.0)?).ok()
    }

    /// The offset that lies `distance` behind this one: the inverse of [`Offset::distance`].
    pub fn at_distance(self, distance: u32) -> Offset {
        Offset(self.0 + i64::from(distance))
    }
}

impl std::fmt::Display for Offset {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// A fetched record, as the engine sees it: bytes that stay the plane's.
pub trait FetchedRecord: HeaderSource + Send + Sync + 'static {
    /// Its offset.
    fn offset(&self) -> Offset;
    /// Its key.
    fn key(&self) -> Option<&[u8]>;
    /// Its value.
    fn value(&self) -> Option<&[u8]>;
    /// Its timestamp in milliseconds.
    fn timestamp(&self) -> Option<i64>;
    /// Its key and value bytes.
    fn bytes(&self) -> u64;
    /// The leader epoch it was read in, −1 if unknown.
    fn leader_epoch(&self) -> i32;
    /// Itself, for handlers that ask for headers.
    fn headers(&self) -> &dyn HeaderSource;
}

/// Records of one source partition, fetched together, in offset order: the unit that is registered,
/// handled, produced and resolved.
#[derive(Debug)]
pub struct Batch<R> {
    /// The source partition.
    pub partition: TopicPartition,
    /// The records.
    pub records: Vec<R>,
    /// Their key and value bytes, added up once.
    bytes: u64,
}

/// What a record in flight costs beside its bytes: the clients' own structures for it.
pub const RECORD_OVERHEAD: u64 = 200;

impl<R: FetchedRecord> Batch<R> {
    /// A batch of `records` of one partition, in offset order.
    pub fn new(partition: TopicPartition, records: Vec<R>) -> Self {
        let bytes = records.iter().map(FetchedRecord::bytes).sum();
        Self {
            partition,
            records,
            bytes,
        }
    }

    /// Key and value bytes of its records.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The first record's offset.
    pub fn first(&self) -> Option<Offset> {
        self.records.first().map(FetchedRecord::offset)
    }

    /// The last record's offset.
    pub fn last(&self) -> Option<Offset> {
        self.records.last().map(FetchedRecord::offset)
    }

    /// Memory that the batch takes while it is in flight.
    pub fn cost(&self) -> u64 {
        self.bytes + self.records.len() as u64 * RECORD_OVERHEAD
    }

    /// Takes the first `count` records off, leaving the rest.
    pub fn split_front(&mut self, count: usize) -> Batch<R> {
        let rest = self.records.split_off(count.min(self.records.len()));
        let front = Batch::new(
            self.partition.clone(),
            std::mem::replace(&mut self.records, rest),
        );
        self.bytes -= front.bytes;
        front
    }

    /// The record at `index`, borrowed for the handlers.
    pub fn record<'a>(&'a self, index: usize, source: &'a str) -> Option<Record<'a>> {
        let fetched = self.records.get(index)?;
        Some(borrow(fetched, &self.partition, source))
    }
}

/// A fetched record of `partition`, borrowed for the handlers.
pub fn borrow<'a, R: FetchedRecord>(
    fetched: &'a R,
    partition: &'a TopicPartition,
    source: &'a str,
) -> Record<'a> {
    Record {
        origin: Origin {
            source,
            topic: &partition.topic,
            partition: partition.partition,
            offset: fetched.offset().0,
            timestamp: fetched.timestamp(),
        },
        topic: Cow::Borrowed(&partition.topic),
        key: fetched.key().map(Cow::Borrowed),
        value: fetched.value().map(Cow::Borrowed),
        headers: Headers::Untouched(fetched.headers()),
        timestamp: fetched.timestamp(),
    }
}

/// What a source says while it is polled.
#[derive(Debug)]
pub enum FetchEvent<R> {
    /// Records.
    Batch(Batch<R>),
    /// Whole batches, of a partition that [`Source::hand_over`] named.
    Run(Run),
    /// The group gives us partitions. They are fetched from only after [`Source::place`].
    Assigned(Vec<TopicPartition>),
    /// The group takes partitions back and waits for [`Source::release`].
    Revoked(Vec<TopicPartition>),
    /// Partitions are gone already: somebody else may own them. Answered by [`Source::release`].
    Lost(Vec<TopicPartition>),
    /// A partition's end: nothing is left below this offset, control records included.
    End(TopicPartition, Offset),
    /// A commit was answered.
    Committed(CommitAnswer),
    /// The position is out of the log's range, or could not be kept.
    OutOfRange(TopicPartition),
    /// Records of a partition could not be read (a checksum that is wrong, for instance). The client goes on behind them:
    /// whoever wants all records has to go back.
    Unreadable {
        /// The partition.
        partition: TopicPartition,
        /// The client's words.
        detail: String,
    },
    /// An error of one partition or topic that the client retries by itself.
    PartitionError {
        /// The partition.
        partition: TopicPartition,
        /// The error in words.
        detail: String,
        /// What kind it is.
        kind: SourceFault,
    },
    /// The member is dead and has to be built again.
    Fatal(String),
    /// Nothing for now.
    Idle,
}

/// Kinds of source errors that are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceFault {
    /// The topic does not exist (any more).
    Gone,
    /// The source refuses to let us read.
    Refused,
    /// Anything else.
    Other,
}

/// The answer to one commit.
#[derive(Clone, Debug)]
pub struct CommitAnswer {
    /// The number of the commit.
    pub id: u64,
    /// Each partition with the committed offset, or the error in words.
    pub results: Vec<(TopicPartition, Result<Offset, String>)>,
    /// An error of the whole request.
    pub error: Option<String>,
}

/// One entry of a commit.
#[derive(Clone, Debug)]
pub struct CommitEntry {
    /// The partition.
    pub partition: TopicPartition,
    /// The watermark: the next offset to be read.
    pub offset: Offset,
    /// The leader epoch of the record before it, −1 if unknown.
    pub leader_epoch: i32,
    /// What is written beside the offset.
    pub metadata: String,
}

/// The source side of one worker: a member of the flow's group that fetches. Owned by one thread,
/// which polls it all the time.
pub trait Source: Send {
    /// What it fetches.
    type Record: FetchedRecord;

    /// Waits up to `timeout` for the next event.
    fn poll(&mut self, timeout: Duration) -> FetchEvent<Self::Record>;
    /// Subscribes to exactly these topics.
    ///
    /// # Errors
    /// The client's words.
    fn subscribe(&mut self, topics: &[String]) -> Result<(), String>;
    /// Begins to fetch partitions that were assigned, each from its position.
    ///
    /// # Errors
    /// The client's words.
    fn place(&mut self, at: &[(TopicPartition, Offset)]) -> Result<(), String>;
    /// Moves a placed partition to another position; nothing fetched before comes after this.
    ///
    /// # Errors
    /// The client's words.
    fn rewind(&mut self, partition: &TopicPartition, to: Offset) -> Result<(), String>;
    /// Holds fetching of placed partitions.
    fn pause(&mut self, partitions: &[TopicPartition]);
    /// Lets fetching of paused partitions go on where it stopped.
    fn resume(&mut self, partitions: &[TopicPartition]);
    /// Says in what form the records of a partition are wanted from the next event on, until it is said otherwise. A plane
    /// that has records only hands over records whatever is said.
    fn hand_over(&mut self, _: &TopicPartition, _: Form) {}
    /// Answers a revoke or a loss: these partitions are not ours any more.
    ///
    /// # Errors
    /// The client's words.
    fn release(&mut self, partitions: &[TopicPartition]) -> Result<(), String>;
    /// Sends a commit; [`FetchEvent::Committed`] with `id` follows.
    ///
    /// # Errors
    /// The client's words.
    fn commit(&mut self, entries: &[CommitEntry], id: u64) -> Result<(), String>;
    /// Leaves the group, within `deadline`. No record that it fetched may be held any more.
    fn leave(&mut self, deadline: Duration);
    /// Makes the member anew, for one that does not find back to its group. Nothing may be owned and
    /// no record of it may be held; it joins with the next subscription.
    ///
    /// # Errors
    /// The client's words; the member is the old one then.
    fn renew(&mut self) -> Result<(), String>;
    /// Ends without leaving.
    fn abandon(&mut self, why: Abandon);
}

/// Why a source is ended without leaving its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Abandon {
    /// Somebody still holds records of it: it must live as long as they do.
    RecordsHeld,
    /// Its cluster does not answer: there is nobody to tell.
    ClusterAway,
}

/// Names one enqueued record in its outcome: which worker, which batch in flight, which record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// The worker, below 256.
    pub worker: u8,
    /// The worker's ticket of the batch, below 2²⁴.
    pub ticket: u32,
    /// How far the record's offset lies behind its batch's first.
    pub distance: u32,
}

impl Token {
    /// As one number, for clients that carry one.
    pub fn pack(self) -> u64 {
        (u64::from(self.worker) << 56)
            | (u64::from(self.ticket & 0x00ff_ffff) << 32)
            | u64::from(self.distance)
    }

    /// From that number.
    pub fn unpack(packed: u64) -> Self {
        Self {
            worker: (packed >> 56) as u8,
            ticket: (packed >> 32) as u32 & 0x00ff_ffff,
            distance: packed as u32,
        }
    }
}

/// Who writes a record, in the eyes of a target partition (KIP-98): whoever writes there with a higher epoch of the same id
/// shuts out those with lower ones. Each source partition has a writer of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Writer {
    /// The producer id.
    pub id: i64,
    /// Its epoch.
    pub epoch: i16,
    /// Who else may write with both.
    pub claim: Claim,
}

impl Writer {
    /// Nobody in particular: the plane numbers by itself.
    pub const ANYBODY: Writer = Writer {
        id: -1,
        epoch: -1,
        claim: Claim::Sole,
    };
}

/// Whether an id and an epoch are somebody's alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// Nobody else ever has them.
    Sole,
    /// Somebody else may have taken the same: what the target says of the first batch decides.
    Shared,
}

/// Whose business the numbers are that make a target recognise repeats and refuse zombies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbers {
    /// The plane's: every producer has one id for whatever it writes, and shuts nobody out.
    OfPlane,
    /// The flow's: each record comes with its [`Writer`].
    OfWriters,
}

/// Why the target did not take a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProduceFault {
    /// What kind of fault it is.
    pub kind: FaultKind,
    /// The error's name and words.
    pub detail: String,
}

/// Kinds of delivery faults (`engine.md` rule 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// A property of the record: it will be refused again.
    Record(crate::handler::FailureCode),
    /// A state of the world: retried for ever.
    World,
    /// The target topic or partition is not there.
    Missing,
    /// The record went down with another's failure; nothing is known against it.
    Collateral,
    /// Somebody else has written in the place of its writer, who is not to write any more.
    Fenced,
    /// Somebody else may have written under the same numbers: whether the record is there is not known, and its writer
    /// needs another id.
    Doubtful,
}

/// Outcomes of records of one ticket, grouped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// So many records of the ticket were acknowledged.
    Acked {
        /// The ticket.
        ticket: u32,
        /// How many.
        count: u32,
        /// How far the offset of the last of them lies behind its batch's first.
        furthest: u32,
    },
    /// One record of the ticket failed.
    Failed {
        /// The ticket.
        ticket: u32,
        /// How far the record's offset lies behind its batch's first.
        distance: u32,
        /// Why.
        fault: ProduceFault,
    },
    /// A batch that was to pass was not taken.
    Refused {
        /// The ticket.
        ticket: u32,
        /// How far the offset of its first record lies behind that of its run.
        distance: u32,
        /// How many records it has.
        count: u32,
        /// Why.
        fault: ProduceFault,
    },
}

/// The target side: an idempotent producer. Shared by the threads of a flow; a source partition
/// stays on one while it has records in flight.
pub trait Sink: Send + Sync + 'static {
    /// A topic looked up once, for many records.
    type Topic: Send;

    /// Looks a topic up.
    ///
    /// # Errors
    /// A name that cannot be a topic's.
    fn topic(&self, name: &str) -> Result<Self::Topic, ProduceFault>;
    /// Enqueues one record of this writer; a plane that numbers by itself does not look at who it is. Its outcome follows
    /// exactly once, if and only if this is `Ok`.
    ///
    /// # Errors
    /// Why it was not taken.
    fn enqueue(
        &self,
        topic: &Self::Topic,
        partition: i32,
        record: &Record<'_>,
        writer: Writer,
        token: Token,
    ) -> Result<(), ProduceFault>;
    /// Enqueues a batch as it came, behind the records that were enqueued before. Its outcome follows exactly once, for all
    /// of its records, if and only if this is `Ok`; `first` names the first of them.
    ///
    /// # Errors
    /// Why it was not taken. A plane that writes records only is given none, and takes none.
    fn pass(
        &self,
        _: &Self::Topic,
        _: i32,
        _: &Whole,
        _: Writer,
        _first: Token,
    ) -> Result<(), ProduceFault> {
        Err(ProduceFault {
            kind: FaultKind::World,
            detail: "no batches pass on this data plane".to_owned(),
        })
    }
    /// Up to so many producer ids that nobody has had before; what is lacking is asked for, and there later. A plane that
    /// numbers by itself has none.
    ///
    /// # Errors
    /// Why the target gives none, said once each time that it was asked.
    fn fresh_ids(&self, _count: usize) -> Result<Vec<i64>, ProduceFault> {
        Ok(Vec::new())
    }
    /// Nothing more is enqueued under this id and its epochs so far; what is not on its way is thrown away.
    fn retire(&self, _id: i64) {}
    /// Whether it takes records; a dead one is replaced.
    fn is_usable(&self) -> bool;
    /// Throws away all that is queued and in flight; outcomes follow.
    fn purge(&self);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_survives_packing() {
        let token = Token {
            worker: 255,
            ticket: 0x00ab_cdef,
            distance: u32::MAX,
        };
        assert_eq!(Token::unpack(token.pack()), token);
    }
}
