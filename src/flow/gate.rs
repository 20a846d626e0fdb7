//! The gate between a worker and the lane that has a partition's batches: what is queued there may be
//! stale by the time it is reached. Its interleavings are tried in `tests/threads/main.rs`.

use super::sync::{AtomicU32, Ordering};

/// Tells the lanes which epoch of a partition is current. A lane looks before each record: what was
/// queued in an older epoch is thrown away there, not produced.
///
/// A lane that stopped within a batch shuts the gate by itself: the worker hears of the stop only
/// later, and what is queued behind must not overtake the record that was stopped at (I2).
#[derive(Debug, Default)]
pub(crate) struct Gate {
    epoch: AtomicU32,
    /// The epoch in which a lane stopped, plus one; 0 at first.
    stopped: AtomicU32,
}

impl Gate {
    /// The epoch that batches are handed out in.
    pub(crate) fn epoch(&self) -> u32 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Whether what was handed out in `epoch` may still be produced.
    pub(crate) fn is_open(&self, epoch: u32) -> bool {
        self.epoch() == epoch && self.stopped.load(Ordering::Acquire) != epoch.wrapping_add(1)
    }

    /// A lane stopped: nothing of this epoch follows.
    pub(crate) fn stop(&self, epoch: u32) {
        self.stopped.store(epoch.wrapping_add(1), Ordering::Release);
    }

    /// Begins a new epoch: everything handed out before is stale from here on.
    pub(crate) fn close(&self) {
        self.epoch.fetch_add(1, Ordering::AcqRel);
    }
}
