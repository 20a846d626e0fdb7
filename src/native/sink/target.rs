//! A target partition as the threads that enqueue and the one that sends share it, and all of a sink's.

use super::queue::{Pushed, Queue};
use super::verdict::collateral;
use crate::backoff::{Backoff, Span, jitter};
use crate::plane::outcomes::{Deliver, Outcomes, Tokens};
use crate::plane::{ProduceFault, Token};
use crate::record::{Record, TopicPartition};
use crate::wire::pass::Whole;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// A target partition.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) partition: TopicPartition,
    state: Mutex<State>,
}

/// Its queue, and how the sender stands with it.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) queue: Queue,
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

/// All target partitions of a sink.
pub(super) struct Targets {
    all: Mutex<HashMap<TopicPartition, Arc<Target>>>,
    /// Those that the sender has to take in hand.
    fresh: Mutex<Vec<Arc<Target>>>,
    /// Takes records. Looked at under each partition's lock: whoever shuts it and then goes through all of them finds
    /// every record that came in before, and none comes in behind him.
    open: AtomicBool,
    /// Wakes the sender.
    pub(super) wake: Notify,
    /// Whether what is on its way matters no more.
    purged: AtomicBool,
    batch_bytes: usize,
    deliver: Deliver,
}

/// What is thrown away when a sink ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    /// What is not on its way: answers to the rest are awaited.
    Unsent,
    /// Everything.
    All,
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Target {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// A batch of it has arrived: whose its records are.
    pub(super) fn arrived(&self, first_sequence: i32) -> Option<Tokens> {
        let mut state = self.state();
        state.failures.reset();
        state.until = None;
        state.queue.acknowledge(first_sequence)
    }

    /// A batch of it has to be sent again, after a while.
    pub(super) fn again(&self, first_sequence: i32) {
        let mut state = self.state();
        state.queue.again(first_sequence);
        let pause = state.failures.next(AGAIN, jitter());
        state.until = Some(Instant::now() + pause);
    }

    /// Lets go of it, if nothing is in it; whether it did.
    pub(super) fn let_go(&self) -> bool {
        let mut state = self.state();
        state.in_hand = !state.queue.is_idle();
        !state.in_hand
    }
}

impl Targets {
    pub(super) fn new(batch_bytes: usize, deliver: Deliver) -> Self {
        Self {
            all: Mutex::default(),
            fresh: Mutex::default(),
            open: AtomicBool::new(true),
            wake: Notify::new(),
            purged: AtomicBool::new(false),
            batch_bytes,
            deliver,
        }
    }

    /// The partition of this name.
    pub(super) fn get(&self, partition: TopicPartition) -> Arc<Target> {
        let mut all = lock(&self.all);
        let target = all.entry(partition.clone()).or_insert_with(|| {
            Arc::new(Target {
                partition,
                state: Mutex::default(),
            })
        });
        target.clone()
    }

    pub(super) fn is_open(&self) -> bool {
        self.open.load(Ordering::Acquire)
    }

    pub(super) fn is_purged(&self) -> bool {
        self.purged.load(Ordering::Acquire)
    }

    /// Takes a record; `None` where nothing is taken any more.
    pub(super) fn push(
        &self,
        target: &Arc<Target>,
        record: &Record<'_>,
        token: Token,
    ) -> Option<()> {
        self.enqueue(target, |queue| queue.push(record, token, self.batch_bytes))
    }

    /// Takes a batch as it came; `None` where nothing is taken any more.
    pub(super) fn pass(&self, target: &Arc<Target>, batch: &Whole, first: Token) -> Option<()> {
        self.enqueue(target, |queue| queue.pass(batch.clone(), first))
    }

    fn enqueue(&self, target: &Arc<Target>, push: impl FnOnce(&mut Queue) -> Pushed) -> Option<()> {
        let mut state = target.state();
        if !self.is_open() {
            return None;
        }
        let pushed = push(&mut state.queue);
        let is_fresh = !std::mem::replace(&mut state.in_hand, true);
        drop(state);
        if is_fresh {
            lock(&self.fresh).push(target.clone());
        }
        if is_fresh || pushed == Pushed::Telling {
            self.wake.notify_one();
        }
        Some(())
    }

    /// Those that the sender has not in hand yet.
    pub(super) fn take_fresh(&self) -> Vec<Arc<Target>> {
        std::mem::take(&mut *lock(&self.fresh))
    }

    /// Takes nothing any more, and throws away what is there; whether it was open.
    pub(super) fn end(&self, loss: Loss) -> bool {
        let was_open = self.open.swap(false, Ordering::AcqRel);
        if loss == Loss::All {
            self.purged.store(true, Ordering::Release);
        }
        let targets: Vec<Arc<Target>> = lock(&self.all).values().cloned().collect();
        let mut outcomes = Outcomes::default();
        for target in targets {
            let mut state = target.state();
            let tokens = match loss {
                Loss::Unsent => state.queue.drop_unsent(),
                Loss::All => state.queue.drop_all(),
            };
            drop(state);
            for tokens in &tokens {
                outcomes.fail(tokens, &collateral());
            }
        }
        outcomes.send(&self.deliver);
        self.wake.notify_one();
        was_open
    }

    /// Tells what became of records.
    pub(super) fn tell(&self, outcomes: Outcomes) {
        outcomes.send(&self.deliver);
    }

    /// All records of a partition that are not on their way have failed of this.
    pub(super) fn fail(&self, target: &Target, fault: &ProduceFault) {
        let tokens = target.state().queue.drop_unsent();
        let mut outcomes = Outcomes::default();
        for tokens in &tokens {
            outcomes.fail(tokens, fault);
        }
        self.tell(outcomes);
    }
}
