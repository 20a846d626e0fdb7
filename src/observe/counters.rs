//! Counters of a flow.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of a flow. Plain atomics: written once a batch, read by whoever asks.
///
/// I7: `fetched` = delivered inputs + dropped + dead_lettered + skipped + discarded + in flight.
#[derive(Debug, Default)]
pub struct Counters {
    /// Records fetched from the source.
    pub fetched_records: AtomicU64,
    /// Their key and value bytes; of batches that pass, all bytes as they came.
    pub fetched_bytes: AtomicU64,
    /// Source records of which every output was acknowledged (with at least one output).
    pub delivered_records: AtomicU64,
    /// Of these, the ones whose batches passed as they came.
    pub passed_records: AtomicU64,
    /// Target records acknowledged.
    pub produced_records: AtomicU64,
    /// Their key and value bytes; of batches that pass, all bytes as they came.
    pub produced_bytes: AtomicU64,
    /// Source records that a handler dropped on purpose.
    pub dropped_records: AtomicU64,
    /// Source records settled by `on_error: skip`.
    pub skipped_records: AtomicU64,
    /// Source records settled by a dead letter.
    pub dead_lettered_records: AtomicU64,
    /// Failures of single records seen (each try counts).
    pub failed_records: AtomicU64,
    /// Batches that were to pass and that the target did not take: their records go one by one.
    pub refused_batches: AtomicU64,
    /// Times that the target refused a partition's records since somebody else writes in its place.
    pub fenced_partitions: AtomicU64,
    /// Fetched, then discarded by a rewind or a revoke; they are fetched again by somebody.
    pub discarded_records: AtomicU64,
    /// Registered and not resolved: records now.
    pub in_flight_records: AtomicU64,
    /// Registered and not resolved: bytes now.
    pub in_flight_bytes: AtomicU64,
    /// Commits that the broker acknowledged.
    pub commits: AtomicU64,
    /// Commits that failed (they are repeated).
    pub commit_failures: AtomicU64,
    /// Rebalance events handled (assign, revoke, lost).
    pub rebalances: AtomicU64,
    /// Partitions sent back to their watermark.
    pub rewinds: AtomicU64,
    /// Times that a partition was paused for want of budget.
    pub pauses: AtomicU64,
    /// Milliseconds that fetching was held back for want of budget.
    pub blocked_ms: AtomicU64,
    /// Records missing for good at the source (retention gaps reported).
    pub gap_records: AtomicU64,
    /// Acknowledgements that came after their epoch ended.
    pub stale_acks: AtomicU64,
    /// Sum of fetch → ack times in microseconds, per batch.
    pub delay_us_sum: AtomicU64,
    /// Number of batches in `delay_us_sum`.
    pub delay_count: AtomicU64,
}

impl Counters {
    /// Adds to one counter.
    pub fn add(counter: &AtomicU64, n: u64) {
        counter.fetch_add(n, Ordering::Relaxed);
    }

    /// Sets one gauge.
    pub fn set(gauge: &AtomicU64, n: u64) {
        gauge.store(n, Ordering::Relaxed);
    }

    /// Reads one counter.
    pub fn get(counter: &AtomicU64) -> u64 {
        counter.load(Ordering::Relaxed)
    }
}
