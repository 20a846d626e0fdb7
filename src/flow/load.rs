//! What waits for one handler thread. The channel itself is unbounded; this is its bound: the worker
//! takes no batch while a lane is full, so a queue exceeds it by one batch at most.

use super::sync::{AtomicU64, Ordering};

/// Records and bytes that wait.
#[derive(Debug, Default)]
pub(crate) struct Load {
    records: AtomicU64,
    bytes: AtomicU64,
}

impl Load {
    /// A batch is handed over.
    pub(crate) fn enter(&self, records: u64, bytes: u64) {
        self.records.fetch_add(records, Ordering::AcqRel);
        self.bytes.fetch_add(bytes, Ordering::AcqRel);
    }

    /// A batch was handled.
    pub(crate) fn leave(&self, records: u64, bytes: u64) {
        self.records.fetch_sub(records, Ordering::AcqRel);
        self.bytes.fetch_sub(bytes, Ordering::AcqRel);
    }

    /// Whether as much waits as may.
    pub(crate) fn is_full(&self, max_records: u64, max_bytes: u64) -> bool {
        self.records.load(Ordering::Acquire) >= max_records
            || self.bytes.load(Ordering::Acquire) >= max_bytes
    }
}
