//! What a worker knows of one partition that is assigned to it.

use super::fence::Fence;
use super::whole::Opened;
use crate::flow::gate::Gate;
use crate::flow::tracker::Tracker;
use crate::handler::{BoundChain, Failure};
use crate::observe::Reason;
use crate::plane::{Batch, Offset};
use crate::record::TopicPartition;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What a partition is doing. Every phase says what happens to its records.
#[derive(Debug)]
pub(super) enum Phase {
    /// Its position is asked for; not placed, or held.
    Resolving,
    /// The scout could not say; asked again at this time.
    ResolveLater { at: Instant, reason: Reason },
    /// Its position is known, its target topic is not ready.
    AwaitingTopic,
    /// Records go through.
    Flowing,
    /// A delivery failed: nothing is taken until everything in flight has an outcome.
    Barrier(Trouble),
    /// Records go one by one, or in short runs, on the quarantine handle.
    Isolating(Isolation),
    /// Held for a reason; tried again.
    Halted { reason: Reason, retry: Retry },
    /// On its way out: nothing is taken, what is in flight settles.
    Releasing,
}

/// What a barrier is about, collected while it waits.
#[derive(Debug, Default)]
pub(super) struct Trouble {
    /// Records up to here are suspects: they go alone until it is past.
    pub(super) suspect_until: Option<Offset>,
    /// A state of the world.
    pub(super) world: Option<Reason>,
    /// A record that `on_error: stop` holds.
    pub(super) poison: Option<(Offset, Failure)>,
    /// A record that `on_error: abort_route` stops the route for.
    pub(super) abort: Option<(Offset, Failure)>,
    /// Somebody else writes in the place of this partition's writer: the target's words.
    pub(super) fenced: Option<String>,
    /// Somebody else may have written under its writer's numbers: the target's words.
    pub(super) doubt: Option<String>,
    /// The position was refused by the source.
    pub(super) out_of_range: bool,
}

/// Isolation: which records are suspects, and how many go at once.
#[derive(Debug)]
pub(super) struct Isolation {
    /// Suspects lie at or before this offset.
    pub(super) until: Offset,
    /// Records of the next run; doubles with each success, one after a failure.
    pub(super) run: usize,
}

/// Whether a partition's topic is there, as far as was heard before commits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Standing {
    /// It is.
    #[default]
    There,
    /// It was called gone once: a broker's metadata may lag (B080).
    Doubtful,
    /// It was called gone again: there is nothing to commit (B023), unless it is found after all.
    Gone,
    /// It is another one, once and for all.
    Replaced,
}

impl Standing {
    /// It is called gone, once more perhaps.
    pub(super) fn call_gone(&mut self) {
        *self = match self {
            Self::There => Self::Doubtful,
            Self::Doubtful | Self::Gone => Self::Gone,
            Self::Replaced => Self::Replaced,
        };
    }
}

/// When and how a halted partition is tried again.
#[derive(Clone, Debug)]
pub(super) struct Retry {
    pub(super) at: Instant,
    pub(super) how: RetryHow,
}

/// What a retry does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RetryHow {
    /// Sends the record at the watermark alone.
    Isolate,
    /// Fetches on from the watermark.
    Fetch,
    /// Asks for the position again.
    Resolve,
    /// Leaves the group and joins it again, to hear whose it is.
    Rejoin,
    /// Nothing: only a new assignment, as after a restart of the route, begins anew.
    Never,
}

/// First and longest pause between retries of a halted partition.
const FIRST_RETRY: Duration = Duration::from_millis(500);
const LONGEST_RETRY: Duration = Duration::from_secs(30);

/// One assigned partition.
pub(super) struct Owned<R, K> {
    pub(super) id: TopicPartition,
    /// Which assignment this is.
    pub(super) life: u64,
    pub(super) gate: Arc<Gate>,
    pub(super) phase: Phase,
    pub(super) tracker: Tracker,
    pub(super) chain: Option<Arc<BoundChain>>,
    /// The topic's id when its position was resolved.
    pub(super) topic_id: Option<String>,
    pub(super) leader_epoch: i32,
    /// Whether the source fetches it.
    pub(super) placed: bool,
    /// The producer it is on while it has records in flight.
    pub(super) sink: Option<Arc<K>>,
    /// Who writes for it at the target.
    pub(super) fence: Fence<K>,
    /// Batches in flight.
    pub(super) in_flight: u32,
    /// Their cost.
    pub(super) cost: u64,
    /// Fetched while in isolation, and not yet sent.
    pub(super) backlog: VecDeque<Batch<R>>,
    /// The single record in flight in isolation, kept for its dead letter.
    pub(super) lone: Option<Batch<R>>,
    pub(super) committed: Option<Offset>,
    /// The question in which its position was last asked for; answers to older ones are stale.
    pub(super) asked: u64,
    /// What the answer before said to wait for.
    waits_for: Option<Reason>,
    /// How long its records go one by one because a batch was refused.
    pub(super) opened: Opened,
    pub(super) topic: Standing,
    /// How often in a row the source could not move its position.
    pub(super) seek_failures: u8,
    pub(super) last_progress: Instant,
    /// Behind the last offset of which something has arrived at the target. That may be beyond the watermark: where a record
    /// is refused, later ones that go to other partitions of the target arrive all the same.
    pub(super) arrived_to: Offset,
    /// Halts in a row without a delivery in between.
    pub(super) halts: u32,
    /// What the last of these was for.
    halted_for: Option<Reason>,
    /// Paused by itself: it holds much and makes no progress.
    pub(super) paused_alone: bool,
    /// An error that the source reported and retries by itself.
    pub(super) source_fault: Option<Reason>,
}

impl<R, K> Owned<R, K> {
    pub(super) fn new(id: TopicPartition, life: u64, now: Instant) -> Self {
        Self {
            id,
            life,
            gate: Arc::default(),
            phase: Phase::Resolving,
            tracker: Tracker::new(Offset(0)),
            chain: None,
            topic_id: None,
            leader_epoch: -1,
            placed: false,
            sink: None,
            fence: Fence::default(),
            in_flight: 0,
            cost: 0,
            backlog: VecDeque::new(),
            lone: None,
            committed: None,
            asked: 0,
            waits_for: None,
            opened: Opened::default(),
            topic: Standing::There,
            seek_failures: 0,
            last_progress: now,
            arrived_to: Offset(0),
            halts: 0,
            halted_for: None,
            paused_alone: false,
            source_fault: None,
        }
    }

    /// Whether fetching may go on once budget allows.
    pub(super) fn wants_records(&self) -> bool {
        self.placed && !self.paused_alone && self.is_taking()
    }

    /// Whether everything fetched before now was registered, so that the position is the tracker's.
    pub(super) fn is_taking(&self) -> bool {
        match self.phase {
            Phase::Flowing => true,
            Phase::Isolating(_) => self.backlog.is_empty(),
            _ => false,
        }
    }

    /// Whether its position is known, so that its watermark means something.
    pub(super) fn is_resolved(&self) -> bool {
        !matches!(self.phase, Phase::Resolving | Phase::ResolveLater { .. }) || self.placed
    }

    /// Whether its watermark is not committed.
    pub(super) fn is_moved(&self) -> bool {
        self.placed && self.committed != Some(self.tracker.watermark())
    }

    /// Whether it may not write before a commit, and is to.
    pub(super) fn awaits_claim(&self) -> bool {
        self.fence.wants_commit() && !matches!(self.phase, Phase::Releasing)
    }

    /// Whether its offsets are worth no commit any more (B023).
    pub(super) fn has_vanished(&self) -> bool {
        matches!(self.topic, Standing::Gone | Standing::Replaced)
    }

    /// Whether a commit asks for its topic. Of one that seems gone a release awaits no answer.
    pub(super) fn is_asked_for(&self) -> bool {
        match self.topic {
            Standing::There | Standing::Doubtful => true,
            Standing::Gone => !matches!(self.phase, Phase::Releasing),
            Standing::Replaced => false,
        }
    }

    /// Its position is asked for, perhaps once more. Until the answer comes, what the one before said
    /// still holds: a status that is written between the two would show a question and never a reason.
    pub(super) fn ask(&mut self, question: u64) {
        self.waits_for = match std::mem::replace(&mut self.phase, Phase::Resolving) {
            Phase::ResolveLater { reason, .. } => Some(reason),
            Phase::Resolving => self.waits_for.take(),
            _ => None,
        };
        self.asked = question;
    }

    /// Its position has to be asked for again, if it was known already: it is not placed yet.
    pub(super) fn resolve_anew(&mut self, now: Instant) {
        if matches!(self.phase, Phase::Resolving | Phase::AwaitingTopic) {
            self.phase = Phase::ResolveLater {
                at: now,
                reason: Reason::ResolvingPositions,
            };
        }
    }

    /// What it waits for while its position is asked for.
    pub(super) fn waits_for(&self) -> Reason {
        self.waits_for.clone().unwrap_or(Reason::ResolvingPositions)
    }

    /// What it was halted for, while nothing has been delivered since.
    pub(super) fn halted_for(&self) -> Option<&Reason> {
        self.halted_for.as_ref().filter(|_| self.halts > 0)
    }

    /// A halt, with a pause that grows with each one in a row.
    pub(super) fn halt(&mut self, reason: Reason, how: RetryHow, now: Instant) {
        let pause = FIRST_RETRY
            .saturating_mul(1 << self.halts.min(10))
            .min(LONGEST_RETRY);
        self.halts = self.halts.saturating_add(1);
        self.halted_for = Some(reason.clone());
        self.phase = Phase::Halted {
            reason,
            retry: Retry {
                at: now + pause,
                how,
            },
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_answer_said_holds_until_the_next_one() {
        let now = Instant::now();
        let mut owned: Owned<(), ()> = Owned::new(TopicPartition::new("t", 0), 1, now);
        owned.ask(1);
        assert_eq!(owned.waits_for(), Reason::ResolvingPositions);
        owned.phase = Phase::ResolveLater {
            at: now,
            reason: Reason::AwaitingStart,
        };
        owned.ask(2);
        assert!(matches!(owned.phase, Phase::Resolving) && owned.asked == 2);
        assert_eq!(owned.waits_for(), Reason::AwaitingStart);
        owned.phase = Phase::AwaitingTopic;
        owned.ask(3);
        assert_eq!(owned.waits_for(), Reason::ResolvingPositions);
    }
}
