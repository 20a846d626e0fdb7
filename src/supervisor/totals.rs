//! The counters of a flow as one list: what is carried over a restart and what `/metrics` shows.

use crate::observe::Counters;
use std::sync::atomic::AtomicU64;

/// One counter that only grows.
pub struct Counted {
    /// Its name in `/metrics`, without `mirror_` and `_total`.
    pub name: &'static str,
    /// What it counts.
    pub help: &'static str,
    /// How many of it make one base unit.
    pub per_unit: f64,
    raw: &'static str,
    read: fn(&Counters) -> &AtomicU64,
}

impl Counted {
    /// Its name with the unit that it is counted in, as in the status.
    pub fn raw_name(&self) -> &'static str {
        self.raw
    }
}

macro_rules! counted {
    ($($name:literal, $help:literal, $per_unit:literal, $field:ident;)*) => {
        &[$(Counted { name: $name, help: $help, per_unit: $per_unit, raw: stringify!($field), read: |c| &c.$field }),*]
    };
}

/// Every counter that only grows. In-flight gauges are not here: they end with their flow.
pub const COUNTED: &[Counted] = counted! {
    "fetched_records", "Records fetched from the source", 1.0, fetched_records;
    "fetched_bytes", "Key and value bytes fetched from the source", 1.0, fetched_bytes;
    "delivered_records", "Source records of which every output was acknowledged", 1.0, delivered_records;
    "passed_records", "Source records delivered in batches that passed as they came", 1.0, passed_records;
    "produced_records", "Target records acknowledged", 1.0, produced_records;
    "produced_bytes", "Key and value bytes acknowledged by the target", 1.0, produced_bytes;
    "dropped_records", "Source records that a handler dropped on purpose", 1.0, dropped_records;
    "skipped_records", "Source records settled by on_error: skip", 1.0, skipped_records;
    "dead_lettered_records", "Source records settled by a dead letter", 1.0, dead_lettered_records;
    "failed_records", "Failures of single records, each try", 1.0, failed_records;
    "refused_batches", "Batches that were to pass, and whose records went one by one instead", 1.0, refused_batches;
    "fenced_partitions", "Times that the target refused a partition's records since another instance writes in its place", 1.0, fenced_partitions;
    "discarded_records", "Records fetched, then discarded by a rewind or revoke and fetched again", 1.0, discarded_records;
    "commits", "Commits that the broker acknowledged", 1.0, commits;
    "commit_failures", "Commits that failed and were repeated", 1.0, commit_failures;
    "rebalances", "Rebalance events handled", 1.0, rebalances;
    "rewinds", "Partitions sent back to their watermark", 1.0, rewinds;
    "pauses", "Times that a partition was paused for want of budget", 1.0, pauses;
    "blocked_seconds", "Time that fetching was held back for want of budget", 1e3, blocked_ms;
    "gap_records", "Records missing for good at the source", 1.0, gap_records;
    "stale_acks", "Acknowledgements that came after their epoch ended", 1.0, stale_acks;
    "delay_seconds", "Sum of the times from fetch to acknowledgement, per batch", 1e6, delay_us_sum;
    "delay_batches", "Batches in delay_seconds", 1.0, delay_count;
};

const LEN: usize = COUNTED.len();

/// The counters of a place (route, source, target) over every flow that had it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Totals([u64; LEN]);

impl Default for Totals {
    fn default() -> Self {
        Self([0; LEN])
    }
}

impl Totals {
    /// The counters as they stand.
    pub fn of(counters: &Counters) -> Self {
        Self(std::array::from_fn(|i| {
            Counters::get((COUNTED[i].read)(counters))
        }))
    }

    /// These and those together.
    #[must_use]
    pub fn plus(&self, other: &Totals) -> Totals {
        Self(std::array::from_fn(|i| {
            self.0[i].saturating_add(other.0[i])
        }))
    }

    /// Each counter with its value, in the order of [`COUNTED`].
    pub fn iter(&self) -> impl Iterator<Item = (&'static Counted, u64)> {
        COUNTED.iter().zip(self.0)
    }

    /// The value of the counter called `name`, 0 where there is none.
    pub fn get(&self, name: &str) -> u64 {
        self.iter()
            .find(|(counted, _)| counted.name == name)
            .map_or(0, |(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_add_up_over_a_restart() {
        let old = Counters::default();
        Counters::add(&old.fetched_records, 5);
        let new = Counters::default();
        Counters::add(&new.fetched_records, 2);
        let both = Totals::of(&old).plus(&Totals::of(&new));
        assert_eq!(both.get("fetched_records"), 7);
        assert_eq!(both.get("commits"), 0);
    }
}
