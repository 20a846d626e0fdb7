//! Partitions of the source and their records, and what became of each.

use super::settings::Shape;
use crate::flow::position::CommitMetadata;
use crate::plane::{CommitEntry, FetchedRecord, Offset};
use crate::record::HeaderSource;
use std::collections::{BTreeMap, BTreeSet};

/// One record, wherever and however often it is copied.
#[derive(Default)]
pub(super) struct Entry {
    /// The creation of the topic that it was written to.
    pub(super) creation: u32,
    pub(super) offset: i64,
    /// The target refuses it for good.
    pub(super) is_bad: bool,
    /// Its outputs at the target, each with the chain that made it.
    pub(super) arrived: BTreeSet<(u32, usize)>,
    /// The flow that something of it arrived by last, and its life there.
    pub(super) arrived_by: Option<(u32, u32)>,
    /// Whether it is in the dead-letter topic.
    pub(super) is_letter: bool,
    /// Somebody else saw to it.
    pub(super) is_done_elsewhere: bool,
    /// It was named as missing, or lies where `on_gap` says to go on behind it.
    pub(super) is_named: bool,
    /// Whether it was enqueued once.
    pub(super) entered: bool,
    /// The settings that held when it was fetched last.
    pub(super) fetched_under: Option<usize>,
}

/// What the group says of a partition.
#[derive(Clone, Debug)]
pub(super) struct Committed {
    pub(super) offset: i64,
    /// The creation of the topic that it speaks of.
    pub(super) of: u32,
    pub(super) metadata: String,
}

/// One source partition.
#[derive(Default)]
pub(super) struct Log {
    /// What lies before it is deleted.
    pub(super) start: i64,
    pub(super) end: i64,
    /// The furthest that its end ever was.
    pub(super) furthest: i64,
    /// The records that were written, those that are deleted by now among them. Between them are holes, behind them control
    /// records up to `end`.
    pub(super) at: BTreeMap<i64, usize>,
    pub(super) committed: Option<Committed>,
    /// Where it was before a commit landed late.
    pub(super) before_late: Option<i64>,
    /// Whether its last offsets were ever lost with a leader.
    pub(super) was_cut: bool,
    /// Where the flow began: what lies before is none of its business.
    pub(super) begun: Option<i64>,
    /// Where the scout said to begin, if that is not what is committed.
    pub(super) resume_at: Option<i64>,
    /// Nothing before it may be enqueued until a rewind.
    pub(super) next: i64,
    /// How often the group took it back.
    pub(super) life: u32,
    /// The chain that its records were enqueued by last.
    pub(super) chain: u32,
}

/// How many records a record becomes when it is split.
fn parts(offset: i64) -> usize {
    match offset % 4 {
        1 => 2,
        3 => 0,
        _ => 1,
    }
}

/// How many records a record becomes.
pub(super) fn outputs(offset: i64, shape: Shape) -> usize {
    match shape {
        Shape::Split => parts(offset),
        Shape::Whole => 1,
    }
}

impl Log {
    pub(super) fn add(&mut self, hole: i64, number: usize) -> i64 {
        let offset = self.end + hole;
        self.at.insert(offset, number);
        self.end = offset + 1;
        self.furthest = self.furthest.max(self.end);
        offset
    }

    /// How far it is committed. A commit of a former life that landed late may have set it back, which nobody hears of
    /// before the next one: records are repeated if everything ends in between.
    pub(super) fn reached(&self) -> i64 {
        let committed = self.committed.as_ref().map_or(i64::MIN, |c| c.offset);
        let before_late = self.before_late.filter(|before| *before <= self.end);
        committed.max(before_late.unwrap_or(committed))
    }

    pub(super) fn is_within(&self, position: i64) -> bool {
        (self.start..=self.end).contains(&position)
    }

    /// The first record that is there at or behind `offset`.
    pub(super) fn first_from(&self, offset: i64) -> Option<usize> {
        let mut from = self.at.range(offset.max(self.start)..);
        from.next().map(|(_, number)| *number)
    }
}

/// The id of a creation of the topic.
pub(super) fn topic_id(creation: u32) -> String {
    format!("id{creation}")
}

/// Whether a commit is of the flow's start: nothing was copied under any settings yet.
pub(super) fn is_start(entry: &CommitEntry) -> bool {
    let metadata = CommitMetadata::decode(entry.metadata.as_bytes());
    metadata.settings.is_none()
}

pub(super) fn committed(entry: &CommitEntry) -> Committed {
    let metadata = CommitMetadata::decode(entry.metadata.as_bytes());
    let id = metadata.topic_id.unwrap_or_default();
    Committed {
        offset: entry.offset.0,
        of: id.trim_start_matches("id").parse().unwrap_or(u32::MAX),
        metadata: entry.metadata.clone(),
    }
}

/// A record as it is fetched.
pub(super) struct Played {
    pub(super) offset: i64,
    /// Its number in the world, which it carries as its timestamp.
    pub(super) number: usize,
    value: &'static [u8],
}

impl Played {
    pub(super) fn new(offset: i64, number: usize) -> Self {
        let value: &[u8] = match parts(offset) {
            0 => b"[]",
            1 => b"[0]",
            _ => b"[0,1]",
        };
        Self {
            offset,
            number,
            value,
        }
    }
}

impl HeaderSource for Played {
    fn get(&self, _: usize) -> Option<(&[u8], Option<&[u8]>)> {
        None
    }
}

impl FetchedRecord for Played {
    fn offset(&self) -> Offset {
        Offset(self.offset)
    }
    fn key(&self) -> Option<&[u8]> {
        None
    }
    fn value(&self) -> Option<&[u8]> {
        Some(self.value)
    }
    fn timestamp(&self) -> Option<i64> {
        i64::try_from(self.number).ok()
    }
    fn bytes(&self) -> u64 {
        self.value.len() as u64
    }
    fn leader_epoch(&self) -> i32 {
        0
    }
    fn headers(&self) -> &dyn HeaderSource {
        self
    }
}
