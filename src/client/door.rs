//! The way into a producer, which is shut when its records are thrown out. Its interleavings are tried in
//! `tests/threads/main.rs`.
//!
//! A record that slips in behind those that are being thrown out would arrive before them. So whoever throws out shuts the
//! door first, waits for those who are passing it (enqueueing never blocks), and then throws out everybody.

use super::sync::{AtomicBool, Ordering, PoisonError, RwLock};

/// Open at first, and never again once it is shut.
#[derive(Debug)]
pub(crate) struct Door {
    open: AtomicBool,
    /// Read by who passes.
    passage: RwLock<()>,
}

impl Door {
    pub(crate) fn new() -> Self {
        Self {
            open: AtomicBool::new(true),
            passage: RwLock::new(()),
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.open.load(Ordering::Acquire)
    }

    /// Shuts it, for a producer that takes nothing any more whoever comes; whether it was open.
    pub(crate) fn shut(&self) -> bool {
        self.open.swap(false, Ordering::AcqRel)
    }

    /// Shuts it; when nobody is in it any more, everybody inside is thrown out.
    pub(crate) fn shut_and(&self, throw_out: impl FnOnce()) {
        self.shut();
        let _nobody_passes = self.passage.write().unwrap_or_else(PoisonError::into_inner);
        throw_out();
    }

    /// Lets one in; `None` when it is shut.
    pub(crate) fn pass<T>(&self, enter: impl FnOnce() -> T) -> Option<T> {
        let _passing = self.passage.read().unwrap_or_else(PoisonError::into_inner);
        self.is_open().then(enter)
    }
}
