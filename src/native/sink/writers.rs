//! All writers of a sink, with their strands.

use super::ids::Ids;
use super::queue::{Pushed, Queue};
use super::strand::{Pen, Strand};
use super::target::{Target, Told};
use super::verdict::collateral;
use crate::plane::outcomes::{Deliver, Outcomes, Tokens};
use crate::plane::{ProduceFault, Token, Writer};
use crate::record::{Record, TopicPartition};
use crate::wire::pass::Whole;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// All writers of a sink, and all target partitions.
pub(super) struct Writers {
    all: Mutex<All>,
    /// Targets that the sender has to take in hand.
    fresh: Mutex<Vec<Arc<Target>>>,
    /// Takes records; looked at as a pen is.
    open: AtomicBool,
    /// Wakes the sender.
    pub(super) wake: Notify,
    /// Whether what is on its way matters no more.
    purged: AtomicBool,
    pub(super) ids: Ids,
    batch_bytes: usize,
    deliver: Deliver,
}

#[derive(Default)]
struct All {
    targets: HashMap<TopicPartition, Arc<Target>>,
    /// By producer id.
    writers: HashMap<i64, Known>,
}

/// A writer with its strands.
struct Known {
    pen: Arc<Pen>,
    strands: HashMap<TopicPartition, Arc<Strand>>,
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

impl Writers {
    pub(super) fn new(batch_bytes: usize, deliver: Deliver) -> Self {
        Self {
            all: Mutex::default(),
            fresh: Mutex::default(),
            open: AtomicBool::new(true),
            wake: Notify::new(),
            purged: AtomicBool::new(false),
            ids: Ids::default(),
            batch_bytes,
            deliver,
        }
    }

    /// The strand of a writer to a partition. `None` where that writer has been followed by a higher epoch.
    pub(super) fn strand(&self, partition: &TopicPartition, writer: Writer) -> Option<Arc<Strand>> {
        let mut all = lock(&self.all);
        let former = match all.writers.get(&writer.id).map(|known| known.pen.writer) {
            Some(known) if known == writer => None,
            Some(known) if known.epoch >= writer.epoch => return None,
            _ => {
                let fresh = Known {
                    pen: Arc::new(Pen::of(writer)),
                    strands: HashMap::new(),
                };
                all.writers.insert(writer.id, fresh)
            }
        };
        let target = all.targets.entry(partition.clone());
        let target = target.or_insert_with(|| Arc::new(Target::of(partition.clone())));
        let target = target.clone();
        let known = all.writers.get_mut(&writer.id)?;
        let fresh = || Arc::new(Strand::new(target, known.pen.clone()));
        let strand = known.strands.entry(partition.clone()).or_insert_with(fresh);
        let strand = strand.clone();
        drop(all);
        // Its records were settled before a higher epoch was taken; if not, they are now.
        if let Some(former) = former {
            self.let_go(&former);
        }
        Some(strand)
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
        strand: &Arc<Strand>,
        record: &Record<'_>,
        token: Token,
    ) -> Option<()> {
        self.enqueue(strand, |queue| queue.push(record, token, self.batch_bytes))
    }

    /// Takes a batch as it came; `None` where nothing is taken any more.
    pub(super) fn pass(&self, strand: &Arc<Strand>, batch: &Whole, first: Token) -> Option<()> {
        self.enqueue(strand, |queue| queue.pass(batch.clone(), first))
    }

    fn enqueue(&self, strand: &Arc<Strand>, push: impl FnOnce(&mut Queue) -> Pushed) -> Option<()> {
        let mut state = strand.state();
        if !self.is_open() || !strand.pen.is_open() {
            return None;
        }
        let pushed = push(&mut state.queue);
        let is_fresh = !std::mem::replace(&mut state.in_hand, true);
        drop(state);
        if is_fresh && strand.target.line_up(strand) == Told::Fresh {
            lock(&self.fresh).push(strand.target.clone());
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

    /// Takes nothing any more, and throws away what is there.
    pub(super) fn end(&self, loss: Loss) {
        self.open.store(false, Ordering::Release);
        if loss == Loss::All {
            self.purged.store(true, Ordering::Release);
        }
        let (known, targets): (Vec<_>, Vec<_>) = {
            let all = lock(&self.all);
            let known = all.writers.values().flat_map(|k| k.strands.values());
            let targets = all.targets.values();
            (known.cloned().collect(), targets.cloned().collect())
        };
        self.throw_away(&known, loss);
        // Those of writers that are known no more, with something on its way.
        for target in targets {
            let strands: Vec<_> = target.turns().strands.iter().cloned().collect();
            self.throw_away(&strands, loss);
        }
        self.wake.notify_one();
    }

    /// A writer writes nothing more; whether it did until now.
    pub(super) fn close(&self, pen: &Arc<Pen>) -> bool {
        let was_open = pen.close();
        let strands: Vec<Arc<Strand>> = {
            let all = lock(&self.all);
            let known = all.writers.get(&pen.writer.id);
            let known = known.filter(|known| Arc::ptr_eq(&known.pen, pen));
            let strands = known.into_iter().flat_map(|k| k.strands.values());
            strands.cloned().collect()
        };
        self.throw_away(&strands, Loss::Unsent);
        was_open
    }

    /// Nobody writes under this id any more, with any epoch so far.
    pub(super) fn retire(&self, id: i64) {
        let known = lock(&self.all).writers.remove(&id);
        if let Some(known) = known {
            self.let_go(&known);
        }
    }

    fn let_go(&self, known: &Known) {
        known.pen.close();
        let strands: Vec<Arc<Strand>> = known.strands.values().cloned().collect();
        self.throw_away(&strands, Loss::Unsent);
    }

    fn throw_away(&self, strands: &[Arc<Strand>], loss: Loss) {
        let mut outcomes = Outcomes::default();
        for strand in strands {
            let queue = &mut strand.state().queue;
            let tokens = match loss {
                Loss::Unsent => queue.drop_unsent(),
                Loss::All => queue.drop_all(),
            };
            fail(&mut outcomes, &tokens, &collateral());
        }
        self.tell(outcomes);
    }

    /// Tells what became of records.
    pub(super) fn tell(&self, outcomes: Outcomes) {
        outcomes.send(&self.deliver);
    }

    /// What is not on its way of a strand has failed of this, and its writer writes nothing more; whether it did until now.
    pub(super) fn fail(&self, strand: &Strand, fault: &ProduceFault) -> bool {
        let tokens = {
            let mut state = strand.state();
            // Under its lock: nothing comes in behind what has failed.
            strand.pen.close().then(|| state.queue.drop_unsent())
        };
        let was_open = tokens.is_some();
        let mut outcomes = Outcomes::default();
        fail(&mut outcomes, &tokens.unwrap_or_default(), fault);
        self.tell(outcomes);
        self.close(&strand.pen);
        was_open
    }
}

fn fail(outcomes: &mut Outcomes, tokens: &[Tokens], fault: &ProduceFault) {
    for tokens in tokens {
        outcomes.fail(tokens, fault);
    }
}
