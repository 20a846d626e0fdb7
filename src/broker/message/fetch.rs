//! Batches that are read, within a session (KIP-227): after the first request only what changes is named.

use super::code::Code;
use super::read::{Malformed, Reader};
use super::write::Writer;
use super::{Api, Request};
use crate::record::TopicPartition;
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;

/// Asks for batches.
pub struct Fetch<'a> {
    /// How long the broker may wait until there is something.
    pub wait: Duration,
    /// The most bytes of an answer; one batch comes even if it is larger.
    pub most: i32,
    /// The session.
    pub session: Session,
    /// Partitions that are new in the session, or are read from elsewhere.
    pub partitions: &'a [Want],
    /// Partitions that leave the session.
    pub forgotten: &'a [TopicPartition],
    /// The rack that we are in; empty where that is not said (KIP-392).
    pub rack: &'a str,
}

/// What both sides remember of a row of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session {
    /// Its number; 0 before the broker has given one.
    pub id: i32,
    /// How many requests came before in it; 0 begins a new one.
    pub epoch: i32,
}

impl Session {
    /// A new one.
    pub const NEW: Session = Session { id: 0, epoch: 0 };

    /// The next request of the session `id`.
    #[must_use]
    pub fn next(self, id: i32) -> Session {
        match id {
            // The broker keeps none: every request says everything.
            0 => Session::NEW,
            // It goes round, past the two that have a meaning.
            id => Session {
                id,
                epoch: self.epoch.checked_add(1).unwrap_or(1),
            },
        }
    }
}

/// A partition that is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Want {
    /// The partition.
    pub partition: TopicPartition,
    /// The epoch of its leader, as far as we know; -1 if not.
    pub epoch: i32,
    /// The first offset.
    pub from: i64,
    /// The most bytes of it.
    pub most: i32,
}

/// What was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Fetched {
    /// How long the broker wants to be left alone.
    pub throttle: Duration,
    /// The session's number, 0 if it keeps none; or what is wrong with the whole request.
    pub session: Result<i32, Code>,
    /// Partitions of which something is to be said.
    pub partitions: Vec<Portion>,
}

/// What was read of one partition.
#[derive(Clone, Debug, PartialEq)]
pub struct Portion {
    /// The partition.
    pub partition: TopicPartition,
    /// The batches, or why there are none.
    pub read: Result<Read, Code>,
}

/// Batches of one partition.
#[derive(Clone, Debug, PartialEq)]
pub struct Read {
    /// Its end: every replica in sync has what is below.
    pub high_watermark: i64,
    /// Below it every transaction is decided.
    pub last_stable: i64,
    /// Where its log begins; -1 if that is not said.
    pub log_start: i64,
    /// Transactions that were aborted in what was read: producer id and first offset.
    pub aborted: Vec<(i64, i64)>,
    /// A replica that is nearer, from which it should be read (KIP-392).
    pub nearer: Option<i32>,
    /// The batches, the last of them perhaps cut off.
    pub batches: Bytes,
}

/// Only what is committed is read.
const READ_COMMITTED: i8 = 1;

impl Request for Fetch<'_> {
    const API: Api = Api::Fetch;
    type Answer = Fetched;

    fn size(&self) -> usize {
        let wanted = self.partitions.iter().map(|w| w.partition.topic.len() + 40);
        let left = self.forgotten.iter().map(|p| p.topic.len() + 16);
        64 + self.rack.len() + wanted.sum::<usize>() + left.sum::<usize>()
    }

    fn write(&self, version: i16, into: &mut Writer) {
        // No replica.
        into.int32(-1);
        into.int32(i32::try_from(self.wait.as_millis()).unwrap_or(i32::MAX));
        // Bytes for which the broker waits.
        into.int32(1);
        into.int32(self.most);
        into.int8(READ_COMMITTED);
        into.int32(self.session.id);
        into.int32(self.session.epoch);
        let wanted = by_topic(self.partitions, |want| &want.partition.topic);
        into.list(wanted.iter(), |into, (topic, wants)| {
            into.string(topic);
            into.list(wants.iter(), |into, want| {
                into.int32(want.partition.partition);
                into.int32(want.epoch);
                into.int64(want.from);
                // Where a replica's own log begins.
                into.int64(-1);
                into.int32(want.most);
            });
        });
        let forgotten = by_topic(self.forgotten, |partition| &partition.topic);
        into.list(forgotten.iter(), |into, (topic, partitions)| {
            into.string(topic);
            into.list(partitions.iter(), |into, p| into.int32(p.partition));
        });
        if version >= 11 {
            into.string(self.rack);
        }
    }

    fn read(version: i16, from: &mut Reader<'_>) -> Result<Fetched, Malformed> {
        let throttle = throttle(from)?;
        let code = from.int16()?;
        let session = from.int32()?;
        let topics = from.list(|from| {
            let topic: Arc<str> = from.string()?.into();
            from.list(|from| portion(version, &topic, from))
        })?;
        Ok(Fetched {
            throttle,
            session: Code::check(code).map(|()| session),
            partitions: topics.into_iter().flatten().collect(),
        })
    }
}

fn portion(version: i16, topic: &Arc<str>, from: &mut Reader<'_>) -> Result<Portion, Malformed> {
    let partition = TopicPartition::new(topic.clone(), from.int32()?);
    let code = from.int16()?;
    let (high_watermark, last_stable, log_start) = (from.int64()?, from.int64()?, from.int64()?);
    let aborted = from.list(|from| Ok((from.int64()?, from.int64()?)))?;
    let nearer = match version {
        ..11 => -1,
        _ => from.int32()?,
    };
    let read = Read {
        high_watermark,
        last_stable,
        log_start,
        aborted,
        nearer: (nearer >= 0).then_some(nearer),
        batches: from.bytes()?,
    };
    Ok(Portion {
        partition,
        read: Code::check(code).map(|()| read),
    })
}

/// How long the broker wants to be left alone.
pub(super) fn throttle(from: &mut Reader<'_>) -> Result<Duration, Malformed> {
    let millis = from.int32()?;
    Ok(Duration::from_millis(millis.max(0).unsigned_abs().into()))
}

/// Neighbours of one topic together, as the protocol wants them.
pub(super) fn by_topic<'a, T>(
    items: &'a [T],
    topic: impl Fn(&T) -> &Arc<str>,
) -> Vec<(&'a str, &'a [T])>
where
    T: 'a,
{
    let chunks = items.chunk_by(|one, other| topic(one) == topic(other));
    // The name is that of the chunk's first; a chunk has one.
    chunks
        .filter_map(|chunk| Some((chunk.first()?, chunk)))
        .map(|(first, chunk)| (name(first, &topic), chunk))
        .collect()
}

fn name<'a, T>(item: &'a T, topic: &impl Fn(&T) -> &Arc<str>) -> &'a str {
    topic(item)
}
