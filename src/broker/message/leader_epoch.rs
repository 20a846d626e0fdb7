//! Where an epoch of a leader ended: a log that ends before the position was cut off there (KIP-320).

use super::code::Code;
use super::read::{Malformed, Reader};
use super::write::Writer;
use super::{Api, Request};
use crate::record::TopicPartition;

/// Asks about one partition.
pub struct OffsetForLeaderEpoch<'a> {
    /// The partition.
    pub partition: &'a TopicPartition,
    /// The epoch of its leader, as far as we know.
    pub current: i32,
    /// The epoch in which the record before our position was read.
    pub epoch: i32,
}

/// Where it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpochEnd {
    /// The epoch that was asked for, or the last one before it of which there are records; -1 if there is none.
    pub epoch: i32,
    /// The first offset behind it; -1 if that is unknown.
    pub end: i64,
}

impl Request for OffsetForLeaderEpoch<'_> {
    const API: Api = Api::OffsetForLeaderEpoch;
    type Answer = Result<EpochEnd, Code>;

    fn write(&self, version: i16, into: &mut Writer) {
        if version >= 3 {
            // No replica.
            into.int32(-1);
        }
        into.list([self.partition].into_iter(), |into, of| {
            into.string(&of.topic);
            into.list([of.partition].into_iter(), |into, partition| {
                into.int32(partition);
                into.int32(self.current);
                into.int32(self.epoch);
            });
        });
    }

    fn read(_: i16, from: &mut Reader<'_>) -> Result<Self::Answer, Malformed> {
        let _throttle = from.int32()?;
        let mut topics = from.list(|from| {
            let _name = from.string()?;
            from.list(|from| {
                let code = from.int16()?;
                let _partition = from.int32()?;
                let end = EpochEnd {
                    epoch: from.int32()?,
                    end: from.int64()?,
                };
                Ok(Code::check(code).map(|()| end))
            })
        })?;
        let answer = topics.pop().and_then(|mut partitions| partitions.pop());
        answer.ok_or_else(|| Malformed::Strange("no partition".into()))
    }
}
