//! What is seen from outside of a worker's partitions, once a second; and the watchdog, which looks
//! at progress, not at life (`engine.md` rule 10).

use super::Worker;
use super::owned::{Owned, Phase, RetryHow};
use crate::observe::{Reason, Stage, State};
use crate::plane::{Sink, Source};
use std::time::{Duration, SystemTime};

/// Behind, and no progress for so long: stalled.
const STALL: Duration = Duration::from_secs(30);
/// A lag above this is catching up.
const LAGGING: i64 = 1000;

impl<S: Source, K: Sink> Worker<S, K> {
    /// Writes every partition's condition.
    pub(super) fn report(&self) {
        let views = self.view.partitions();
        for owned in self.owned.values() {
            let lag = views.get(&owned.id).and_then(|v| {
                let end = v.end?;
                Some((end - owned.tracker.watermark().0).max(0))
            });
            let held_back = views.get(&owned.id).is_some_and(|v| v.held_back.is_some());
            let (state, reason) = match self.condition(owned, lag) {
                (State::Running, None) if held_back && lag == Some(0) => {
                    let offset = owned.tracker.watermark().0;
                    (State::Running, Some(Reason::OpenTransaction { offset }))
                }
                seen => seen,
            };
            let resolved = owned.is_resolved();
            let next_try = match &owned.phase {
                Phase::Halted { retry, .. } if retry.how != RetryHow::Never => {
                    let wait = retry
                        .at
                        .saturating_duration_since(std::time::Instant::now());
                    Some(SystemTime::now() + wait)
                }
                _ => None,
            };
            self.view.partition(&owned.id, |view| {
                view.condition.become_(state, reason);
                view.condition.next_try = next_try;
                if resolved {
                    view.watermark = Some(owned.tracker.watermark().0);
                }
                view.committed = owned.committed.map(|o| o.0);
            });
        }
    }

    fn condition(&self, owned: &Owned<S::Record, K>, lag: Option<i64>) -> (State, Option<Reason>) {
        match &owned.phase {
            // Between two halts nothing has changed yet.
            Phase::Resolving => match owned.halted_for() {
                Some(reason) => (State::Failed, Some(reason.clone())),
                None => (State::Starting, Some(owned.waits_for())),
            },
            Phase::ResolveLater { reason, .. } => (State::Starting, Some(reason.clone())),
            Phase::AwaitingTopic => self.awaiting(owned),
            Phase::Barrier(_) | Phase::Isolating(_) => match self.stalled(owned, lag) {
                Some(stalled) => stalled,
                None => (State::Running, Some(Reason::Rewinding)),
            },
            Phase::Halted {
                reason: reason @ Reason::AwaitingWriter,
                ..
            } => (State::Starting, Some(reason.clone())),
            Phase::Halted { reason, .. } => (State::Failed, Some(reason.clone())),
            Phase::Releasing => (State::Draining, None),
            Phase::Flowing => self.flowing(owned, lag),
        }
    }

    fn awaiting(&self, owned: &Owned<S::Record, K>) -> (State, Option<Reason>) {
        let reason = self.unready(owned);
        match reason {
            Some(
                Reason::TargetTopicMissing { .. }
                | Reason::TargetTooFewPartitions { .. }
                | Reason::TargetRefuses { .. }
                | Reason::Client { .. },
            ) => (State::Failed, reason),
            _ => (State::Starting, reason),
        }
    }

    fn flowing(&self, owned: &Owned<S::Record, K>, lag: Option<i64>) -> (State, Option<Reason>) {
        if let Some(fault) = &owned.source_fault {
            return (State::Failed, Some(fault.clone()));
        }
        if let Some(stalled) = self.stalled(owned, lag) {
            return stalled;
        }
        if lag.unwrap_or(0) > LAGGING {
            return (State::Lagging, None);
        }
        (State::Running, None)
    }

    fn stalled(
        &self,
        owned: &Owned<S::Record, K>,
        lag: Option<i64>,
    ) -> Option<(State, Option<Reason>)> {
        let stalled = lag.unwrap_or(0) > 0 && owned.last_progress.elapsed() > STALL;
        stalled.then(|| {
            let stage = self.blame(owned);
            (State::Stalled, Some(Reason::NoProgress { stage }))
        })
    }

    /// The stage that holds a partition up.
    fn blame(&self, owned: &Owned<S::Record, K>) -> Stage {
        match self.tickets.lane_word(&owned.id) {
            Some(super::ticket::LaneWord::Awaited) => Stage::Handler,
            Some(super::ticket::LaneWord::Given) => Stage::Produce,
            None if owned.committed != Some(owned.tracker.watermark()) => Stage::Commit,
            None => Stage::Fetch,
        }
    }
}
