//! A target partition, at which writers take turns: a request has one batch of it, and a batch is of one writer.

use super::strand::Strand;
use crate::backoff::{Backoff, Span, jitter};
use crate::record::TopicPartition;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A target partition.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) partition: TopicPartition,
    turns: Mutex<Turns>,
}

/// Who has something for it, and how the sender stands with it.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// Whoever has sent is behind the others.
    pub(super) strands: VecDeque<Arc<Strand>>,
    in_hand: bool,
    /// How often in a row something had to be sent again.
    failures: Backoff,
    /// It is left alone until then.
    pub(super) until: Option<Instant>,
    /// Since when the cluster says that it is not there.
    pub(super) missing: Option<Instant>,
}

/// Before something is sent again.
pub(super) const AGAIN: Span = Span {
    first: Duration::from_millis(50),
    longest: Duration::from_secs(1),
};

/// Whether the sender knows of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// It has it in hand.
    Already,
    /// It has to be told.
    Fresh,
}

impl Target {
    pub(super) fn of(partition: TopicPartition) -> Self {
        Self {
            partition,
            turns: Mutex::default(),
        }
    }

    pub(super) fn turns(&self) -> MutexGuard<'_, Turns> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A strand has something to send.
    pub(super) fn line_up(&self, strand: &Arc<Strand>) -> Told {
        let mut turns = self.turns();
        turns.strands.push_back(strand.clone());
        match std::mem::replace(&mut turns.in_hand, true) {
            true => Told::Already,
            false => Told::Fresh,
        }
    }

    /// A batch of it has arrived.
    pub(super) fn arrived(&self) {
        let mut turns = self.turns();
        turns.failures.reset();
        turns.until = None;
    }

    /// A batch of it has to be sent again, after a while.
    pub(super) fn again(&self) {
        let mut turns = self.turns();
        let pause = turns.failures.next(AGAIN, jitter());
        turns.until = Some(Instant::now() + pause);
    }

    /// Lets go of the strands that have nothing, and of itself if none is left; whether it did.
    pub(super) fn let_go(&self) -> bool {
        let mut turns = self.turns();
        turns.strands.retain(|strand| !strand.let_go());
        turns.in_hand = !turns.strands.is_empty();
        !turns.in_hand
    }
}
