//! A producer is introduced to each partition: its first record goes alone, and the others follow when that one has arrived.
//!
//! A broker recognises gaps and repeats by the numbers of a producer's batches (KIP-98), but takes whatever number comes first
//! of a producer that it does not know. If it refuses the first batch and takes the second one, which is on its way already, then
//! the records of the second stand before those of the first, which are sent again. Seen on Apache Kafka: a first record that is
//! too large, and one behind it that is not. librdkafka sends the second one whatever it knows of the first by then
//! (a request that is queued goes out), also with one request in flight.

use super::sync::{AtomicBool, AtomicUsize, Mutex, MutexGuard, Ordering, PoisonError};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// What the partitions know of one producer. `R` is a record that waits.
#[derive(Debug)]
pub(crate) struct Introductions<R> {
    all: Mutex<Partitions<R>>,
    /// Partitions whose first record is on its way: while there are none, nobody has to look for them.
    pending: AtomicUsize,
}

type Partitions<R> = HashMap<Arc<str>, HashMap<i32, Arc<Introduction<R>>>>;

/// What one partition knows.
#[derive(Debug)]
pub(crate) struct Introduction<R> {
    /// Read without the lock by whoever writes; true once nobody waits any more.
    is_known: AtomicBool,
    state: Mutex<State<R>>,
}

#[derive(Debug)]
enum State<R> {
    Unknown,
    /// The first record is on its way; these wait.
    First(VecDeque<R>),
    Known,
    /// The first record did not arrive: what comes behind it on this producer would overtake it.
    Broken,
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<R> Default for Introductions<R> {
    fn default() -> Self {
        Self {
            all: Mutex::new(HashMap::new()),
            pending: AtomicUsize::new(0),
        }
    }
}

impl<R> Introductions<R> {
    /// The one of a partition, for whoever writes to it.
    pub(crate) fn of(&self, topic: &str, partition: i32) -> Arc<Introduction<R>> {
        let mut all = lock(&self.all);
        if let Some(known) = all.get_mut(topic) {
            return known.entry(partition).or_default().clone();
        }
        let fresh = Arc::<Introduction<R>>::default();
        let of_topic = HashMap::from([(partition, fresh.clone())]);
        all.insert(topic.into(), of_topic);
        fresh
    }

    /// The one of a partition whose first record may be on its way.
    pub(crate) fn pending(&self, topic: &str, partition: i32) -> Option<Arc<Introduction<R>>> {
        let all = lock(&self.all);
        let found = all.get(topic)?.get(&partition)?;
        (!found.is_known()).then(|| found.clone())
    }

    /// Whether the first record of some partition is on its way.
    pub(crate) fn are_pending(&self) -> bool {
        self.pending.load(Ordering::Acquire) > 0
    }

    /// Sends a record now with `send`, or keeps it with `keep` until the one before it has arrived. `None` if that one never
    /// will.
    pub(crate) fn enter<E>(
        &self,
        at: &Introduction<R>,
        send: impl FnOnce() -> Result<(), E>,
        keep: impl FnOnce() -> R,
    ) -> Option<Result<(), E>> {
        if at.is_known() {
            return Some(send());
        }
        let mut state = lock(&at.state);
        match &mut *state {
            State::Broken => None,
            State::Known => Some(send()),
            State::First(waiting) => {
                waiting.push_back(keep());
                Some(Ok(()))
            }
            State::Unknown => {
                // Counted before it is sent: its report may come before the call returns, and waits for the lock.
                self.pending.fetch_add(1, Ordering::AcqRel);
                let sent = send();
                match sent {
                    Ok(()) => *state = State::First(VecDeque::new()),
                    Err(_) => drop(self.pending.fetch_sub(1, Ordering::AcqRel)),
                }
                Some(sent)
            }
        }
    }

    /// The first record has arrived: those that wait are sent in their order. From then on everybody sends at once.
    ///
    /// # Errors
    /// What `send` says of one of them; that one and those behind it still wait.
    pub(crate) fn arrived<E>(
        &self,
        at: &Introduction<R>,
        mut send: impl FnMut(&R) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut state = lock(&at.state);
        let State::First(waiting) = &mut *state else {
            return Ok(());
        };
        while let Some(next) = waiting.front() {
            send(next)?;
            waiting.pop_front();
        }
        *state = State::Known;
        at.is_known.store(true, Ordering::Release);
        self.pending.fetch_sub(1, Ordering::AcqRel);
        Ok(())
    }

    /// The first record has not arrived: those that wait go no further, and nothing follows them.
    pub(crate) fn failed(&self, at: &Introduction<R>) -> VecDeque<R> {
        let mut state = lock(&at.state);
        let State::First(waiting) = &mut *state else {
            return VecDeque::new();
        };
        let waiting = std::mem::take(waiting);
        *state = State::Broken;
        self.pending.fetch_sub(1, Ordering::AcqRel);
        waiting
    }

    /// Nothing of anybody arrives any more: all that wait.
    pub(crate) fn all_failed(&self) -> Vec<R> {
        let all: Vec<_> = {
            let all = lock(&self.all);
            all.values().flat_map(HashMap::values).cloned().collect()
        };
        all.iter().flat_map(|at| self.failed(at)).collect()
    }
}

impl<R> Introduction<R> {
    fn is_known(&self) -> bool {
        self.is_known.load(Ordering::Acquire)
    }
}

impl<R> Default for Introduction<R> {
    fn default() -> Self {
        Self {
            is_known: AtomicBool::new(false),
            state: Mutex::new(State::Unknown),
        }
    }
}
