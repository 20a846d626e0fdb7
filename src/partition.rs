//! The partition policy: which target partition a record goes to. Pure.

use crate::record::Record;

/// A policy as written and validated.
#[derive(Clone, Debug, PartialEq)]
pub enum PolicySpec {
    /// Source partition p → target partition p; the target is created and grown to match (KIP-3).
    Match {
        /// What if the target has fewer and may not grow.
        on_fewer: OnFewer,
    },
    /// murmur2 of the key, equal to Java producers; null keys in sticky batches.
    KeyHash,
    /// Source partition modulo the target's count.
    Modulo,
    /// One after the other.
    RoundRobin,
    /// Always this one.
    Fixed(i32),
    /// Hash of a path's or header's value.
    By(String),
}

/// What `match` does when the target has fewer partitions and may not grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFewer {
    /// The surplus partitions halt with a reason.
    Stop,
    /// Source partition modulo the target's count.
    Modulo,
}

/// What a policy says of one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// This target partition.
    Partition(i32),
    /// None that exists: the partition needs more target partitions than there are.
    TooFew {
        /// The count that is needed.
        needs: i32,
    },
}

/// (stub until merged)
pub struct Policy;
impl Policy {
    /// s
    pub fn new(_: &PolicySpec) -> Self {
        Policy
    }
    /// c
    pub fn choose(&mut self, _r: &Record<'_>, source: i32, count: i32) -> Choice {
        if source < count {
            Choice::Partition(source)
        } else {
            Choice::TooFew { needs: source + 1 }
        }
    }
}
