//! What was written to the sources, and what has to become of each record.

use std::collections::{BTreeMap, BTreeSet};

/// A label and a partition.
pub type Lane = (String, i32);

/// What has to become of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It arrives with this fingerprint: its own, or that of what the handlers make of it.
    Arrives(u64),
    /// It arrives with one of these: the handlers changed while it was on its way.
    Either(u64, u64),
    /// It does not arrive: a filter drops it.
    LeftOut,
    /// It does not arrive, since the target does not take it; the mirror names it.
    Refused,
}

impl Fate {
    /// Whether a record with this fingerprint is what it should be; `None` if none should be there.
    pub fn allows(self, fingerprint: u64) -> Option<bool> {
        match self {
            Self::Arrives(wanted) => Some(fingerprint == wanted),
            Self::Either(one, other) => Some(fingerprint == one || fingerprint == other),
            Self::LeftOut | Self::Refused => None,
        }
    }
}

/// One partition of a source.
#[derive(Clone, Debug, Default)]
struct Written {
    fates: Vec<Fate>,
    /// Where the source put them, as far as it said so.
    offsets: Vec<i64>,
    /// Below this offset the source has deleted what it had.
    log_start: i64,
}

/// The records of every partition, in the order of their numbers.
#[derive(Clone, Debug, Default)]
pub struct Expected {
    lanes: BTreeMap<Lane, Written>,
    left_out: u64,
}

impl Expected {
    /// Notes the next record of a partition, which has to arrive as it is.
    pub fn push(&mut self, lane: &Lane, fingerprint: u64) {
        self.note(lane, Fate::Arrives(fingerprint));
    }

    /// Notes the next record of a partition.
    pub fn note(&mut self, lane: &Lane, fate: Fate) {
        self.left_out += u64::from(fate == Fate::LeftOut);
        match self.lanes.get_mut(lane) {
            Some(written) => written.fates.push(fate),
            None => {
                let written = self.lanes.entry(lane.clone()).or_default();
                written.fates.push(fate);
            }
        }
    }

    /// Notes where the source put the next record of a partition, in the order in which they were noted.
    pub fn placed(&mut self, lane: &Lane, offset: i64) {
        let written = self.lanes.entry(lane.clone()).or_default();
        written.offsets.push(offset);
    }

    /// Notes that the source has deleted everything below an offset.
    pub fn deleted(&mut self, lane: &Lane, log_start: i64) {
        let written = self.lanes.entry(lane.clone()).or_default();
        written.log_start = written.log_start.max(log_start);
    }

    /// How many records a partition has, which is the next record's number.
    pub fn len_of(&self, lane: &Lane) -> u64 {
        self.lanes.get(lane).map_or(0, |w| w.fates.len() as u64)
    }

    /// Says that a record must not arrive.
    pub fn leave_out(&mut self, lane: Lane, sequence: u64) {
        let fate = index(sequence).and_then(|i| self.lanes.get_mut(&lane)?.fates.get_mut(i));
        if let Some(fate) = fate {
            self.left_out += u64::from(*fate != Fate::LeftOut);
            *fate = Fate::LeftOut;
        }
    }

    /// Takes in what another workload wrote.
    ///
    /// # Panics
    /// If both wrote to one partition.
    pub fn join(&mut self, other: Self) {
        self.left_out += other.left_out;
        for (lane, written) in other.lanes {
            let before = self.lanes.insert(lane.clone(), written);
            assert!(before.is_none(), "two workloads wrote to {lane:?}");
        }
    }

    /// Only the partitions of these labels.
    pub fn of(&self, labels: &[&str]) -> Self {
        let mut part = self.clone();
        part.lanes
            .retain(|(label, _), _| labels.contains(&label.as_str()));
        let fates = part.lanes.values().flat_map(|w| &w.fates);
        part.left_out = fates.filter(|f| **f == Fate::LeftOut).count() as u64;
        part
    }

    /// All partitions, and how many records each has.
    pub fn lanes(&self) -> impl Iterator<Item = (&Lane, usize)> {
        self.lanes
            .iter()
            .map(|(lane, written)| (lane, written.fates.len()))
    }

    /// What has to become of a record; `None` if it was never written.
    pub fn fate(&self, lane: &Lane, sequence: u64) -> Option<Fate> {
        self.lanes.get(lane)?.fates.get(index(sequence)?).copied()
    }

    /// Where the source put a record, if it said so.
    pub fn offset(&self, lane: &Lane, sequence: u64) -> Option<i64> {
        self.lanes.get(lane)?.offsets.get(index(sequence)?).copied()
    }

    /// Whether the source has deleted a record.
    pub fn is_deleted(&self, lane: &Lane, sequence: u64) -> bool {
        let offset = self.offset(lane, sequence);
        let written = self.lanes.get(lane);
        matches!((offset, written), (Some(at), Some(written)) if at < written.log_start)
    }

    /// How many records have to arrive.
    pub fn total(&self) -> u64 {
        let all: u64 = self.lanes.values().map(|w| w.fates.len() as u64).sum();
        all - self.left_out
    }

    /// The topics, by label.
    pub fn labels(&self) -> BTreeSet<String> {
        self.lanes.keys().map(|(label, _)| label.clone()).collect()
    }
}

fn index(sequence: u64) -> Option<usize> {
    usize::try_from(sequence).ok()
}
