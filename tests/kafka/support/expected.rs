//! What was written to the sources, and so has to be at the target.

use std::collections::{BTreeMap, BTreeSet};

/// A label and a partition.
pub type Lane = (String, i32);

/// The fingerprints of every partition's records, in the order of their numbers.
#[derive(Clone, Debug, Default)]
pub struct Expected {
    lanes: BTreeMap<Lane, Vec<u64>>,
    left_out: BTreeSet<(Lane, u64)>,
}

impl Expected {
    /// Notes the next record of a partition.
    pub fn push(&mut self, lane: &Lane, fingerprint: u64) {
        match self.lanes.get_mut(lane) {
            Some(lane) => lane.push(fingerprint),
            None => {
                self.lanes.insert(lane.clone(), vec![fingerprint]);
            }
        }
    }

    /// How many records a partition has, which is the next record's number.
    pub fn len_of(&self, lane: &Lane) -> u64 {
        self.lanes.get(lane).map_or(0, |l| l.len() as u64)
    }

    /// Says that a record must not arrive.
    pub fn leave_out(&mut self, lane: Lane, sequence: u64) {
        self.left_out.insert((lane, sequence));
    }

    /// Takes in what another workload wrote.
    ///
    /// # Panics
    /// If both wrote to one partition.
    pub fn join(&mut self, other: Self) {
        for (lane, prints) in other.lanes {
            let before = self.lanes.insert(lane.clone(), prints);
            assert!(before.is_none(), "two workloads wrote to {lane:?}");
        }
        self.left_out.extend(other.left_out);
    }

    /// Only the partitions of these labels.
    pub fn of(&self, labels: &[&str]) -> Self {
        let mut part = self.clone();
        part.lanes
            .retain(|(label, _), _| labels.contains(&label.as_str()));
        part.left_out
            .retain(|((label, _), _)| labels.contains(&label.as_str()));
        part
    }

    /// All partitions with their fingerprints.
    pub fn lanes(&self) -> impl Iterator<Item = (&Lane, &[u64])> {
        self.lanes
            .iter()
            .map(|(lane, prints)| (lane, prints.as_slice()))
    }

    /// The fingerprint of one record, `None` if it was never written or must not arrive.
    pub fn fingerprint(&self, lane: &Lane, sequence: u64) -> Option<u64> {
        if self.is_left_out(lane, sequence) {
            return None;
        }
        let index = usize::try_from(sequence).ok()?;
        self.lanes.get(lane)?.get(index).copied()
    }

    /// Whether a record must not arrive.
    pub fn is_left_out(&self, lane: &Lane, sequence: u64) -> bool {
        !self.left_out.is_empty() && self.left_out.contains(&(lane.clone(), sequence))
    }

    /// How many records have to arrive.
    pub fn total(&self) -> u64 {
        let all: u64 = self.lanes.values().map(|l| l.len() as u64).sum();
        all - self.left_out.len() as u64
    }

    /// The topics, by label.
    pub fn labels(&self) -> BTreeSet<String> {
        self.lanes.keys().map(|(label, _)| label.clone()).collect()
    }
}
