//! Batches that are written.

use super::code::Code;
use super::fetch::{by_topic, throttle};
use super::read::{Malformed, Reader};
use super::write::Writer;
use super::{Api, Request};
use crate::record::TopicPartition;
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;

/// Writes one batch to each of some partitions; every replica in sync has to have it.
pub struct Produce<'a> {
    /// How long the broker may wait for the replicas.
    pub patience: Duration,
    /// One batch for each partition, those of a topic side by side.
    pub batches: &'a [Parcel<'a>],
}

/// A batch for a partition.
pub struct Parcel<'a> {
    /// The partition.
    pub partition: TopicPartition,
    /// The batch as it stands on the wire; its bytes are lent, whoever sends them.
    pub batch: &'a Bytes,
}

/// What became of the batches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Produced {
    /// How long the broker wants to be left alone.
    pub throttle: Duration,
    /// Each partition.
    pub partitions: Vec<Receipt>,
}

/// What became of one batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The partition.
    pub partition: TopicPartition,
    /// Where it is, or why it was not taken.
    pub taken: Result<Place, Refusal>,
}

/// Where a batch is that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The offset of its first record. -1: the broker has it from before, and does not know any more where.
    pub base: i64,
    /// A time, where the answer names one: that of the append in a topic with LogAppendTime, and the largest timestamp of
    /// the records where the broker had the batch from before (Kafka from 0.11 on). So there is none if, and only if, the
    /// batch was appended for this request, to a topic with CreateTime; one whose records have no timestamps excepted.
    pub time: Option<i64>,
}

/// Why a batch was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The code.
    pub code: Code,
    /// The records that are to blame, by their number in the batch, each with the broker's words (KIP-467); none where it
    /// does not say.
    pub records: Vec<(i32, Option<String>)>,
    /// Its words for the whole batch.
    pub words: Option<String>,
}

/// Every replica in sync.
const ACKS_ALL: i16 = -1;
/// No time is named.
const NO_TIME: i64 = -1;

impl Request for Produce<'_> {
    const API: Api = Api::Produce;
    type Answer = Produced;

    fn size(&self) -> usize {
        let parcels = self.batches.iter();
        let sizes = parcels.map(|p| p.partition.topic.len() + 16);
        32 + sizes.sum::<usize>()
    }

    fn write(&self, _: i16, into: &mut Writer) {
        // No transaction.
        into.null_string();
        into.int16(ACKS_ALL);
        into.int32(i32::try_from(self.patience.as_millis()).unwrap_or(i32::MAX));
        let topics = by_topic(self.batches, |parcel| &parcel.partition.topic);
        into.list(topics.iter(), |into, (topic, parcels)| {
            into.string(topic);
            into.list(parcels.iter(), |into, parcel| {
                into.int32(parcel.partition.partition);
                into.lend(parcel.batch);
            });
        });
    }

    fn read(version: i16, from: &mut Reader<'_>) -> Result<Produced, Malformed> {
        let topics = from.list(|from| {
            let topic: Arc<str> = from.string()?.into();
            from.list(|from| receipt(version, &topic, from))
        })?;
        Ok(Produced {
            partitions: topics.into_iter().flatten().collect(),
            throttle: throttle(from)?,
        })
    }
}

fn receipt(version: i16, topic: &Arc<str>, from: &mut Reader<'_>) -> Result<Receipt, Malformed> {
    let partition = TopicPartition::new(topic.clone(), from.int32()?);
    let code = from.int16()?;
    let base = from.int64()?;
    let time = from.int64()?;
    let _log_start = from.int64()?;
    let (records, words) = match version {
        ..8 => (Vec::new(), None),
        _ => (
            from.list(|from| Ok((from.int32()?, from.nullable_string()?)))?,
            from.nullable_string()?,
        ),
    };
    let refused = |code| Refusal {
        code,
        records,
        words,
    };
    let place = Place {
        base,
        time: (time != NO_TIME).then_some(time),
    };
    Ok(Receipt {
        partition,
        taken: Code::check(code).map(|()| place).map_err(refused),
    })
}
