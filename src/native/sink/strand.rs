//! What one writer has on its way to one target partition, as the threads that enqueue and the one that sends share it.

use super::queue::Queue;
use super::target::Target;
use crate::plane::Writer;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A writer, for as long as it writes. One that a batch of was refused to writes nothing more anywhere: what was behind that
/// batch has to come again, and must not be overtaken.
#[derive(Debug)]
pub(super) struct Pen {
    pub(super) writer: Writer,
    /// Looked at under the lock of each of its strands: whoever closes it and then goes through all of them finds every
    /// record that came in before, and none comes in behind him.
    open: AtomicBool,
}

/// Records of one writer for one target partition.
#[derive(Debug)]
pub(super) struct Strand {
    pub(super) target: Arc<Target>,
    pub(super) pen: Arc<Pen>,
    state: Mutex<State>,
}

/// Its queue, and whether it has its turns at its target.
#[derive(Debug)]
pub(super) struct State {
    pub(super) queue: Queue,
    pub(super) in_hand: bool,
}

impl Pen {
    pub(super) fn of(writer: Writer) -> Self {
        Self {
            writer,
            open: AtomicBool::new(true),
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.open.load(Ordering::Acquire)
    }

    /// Whether it was open.
    pub(super) fn close(&self) -> bool {
        self.open.swap(false, Ordering::AcqRel)
    }
}

impl Strand {
    pub(super) fn new(target: Arc<Target>, pen: Arc<Pen>) -> Self {
        let queue = Queue::new(pen.writer.claim);
        Self {
            target,
            pen,
            state: Mutex::new(State {
                queue,
                in_hand: false,
            }),
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets go of it, if nothing is in it; whether it did.
    pub(super) fn let_go(&self) -> bool {
        let mut state = self.state();
        state.in_hand = !state.queue.is_idle();
        !state.in_hand
    }
}
