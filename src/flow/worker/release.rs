//! Partitions leave, in KIP-3's order: nothing more is taken, what is queued is thrown away, what is
//! in flight settles, the watermark is committed, the user's listener is told, then they are let go.
//!
//! The same steps serve a revoke and the final drain; a loss skips all but the last.

use super::owned::{Owned, Phase};
use super::{Worker, WorkerExit};
use crate::flow::Unconfirmed;
use crate::observe::Counters;
use crate::plane::{Sink, Source};
use crate::record::TopicPartition;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a revoke may wait for records in flight: librdkafka holds *all* partitions from the
/// revoke to its end, so kept ones wait as long.
const DRAIN: Duration = Duration::from_millis(2500);
/// How long a revoke may wait for its commit.
const COMMIT: Duration = Duration::from_secs(3);
/// Without an acknowledgement for so long, a partition will not drain within a revoke.
const HOPELESS: Duration = Duration::from_secs(2);
/// Of the shutdown's budget, what is kept for leaving the group.
const LEAVE: Duration = Duration::from_secs(1);

/// Why partitions leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// The group takes them back.
    Revoke,
    /// The flow ends.
    End,
}

/// A release under way.
#[derive(Debug)]
pub(super) struct Release {
    partitions: Vec<TopicPartition>,
    why: Why,
    since: Instant,
    pub(super) drain_until: Instant,
    pub(super) commit_until: Instant,
    step: Step,
}

#[derive(Debug)]
enum Step {
    Draining,
    Committing,
}

impl Release {
    /// Whether its commit came too late: nothing is committed any more until it has ended.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        now >= self.commit_until
    }
}

impl<S: Source, K: Sink> Worker<S, K> {
    pub(super) fn revoked(&mut self, partitions: Vec<TopicPartition>) {
        Counters::add(&self.view.counters.rebalances, 1);
        tracing::info!(event = "revoked", subject = %self.subject, worker = self.index, partitions = partitions.len());
        let now = Instant::now();
        if let Some(release) = &mut self.release {
            // The group asks for its own while the flow drains: it gets its answer at the end.
            release.partitions.extend(partitions);
            release.why = Why::End;
            return;
        }
        self.begin_release(Release {
            partitions,
            why: Why::Revoke,
            since: now,
            drain_until: now + DRAIN,
            commit_until: now + DRAIN + COMMIT,
            step: Step::Draining,
        });
    }

    /// The flow ends: the same for everything, within one budget.
    pub(super) fn drain(&mut self, deadline: Instant) {
        if self.draining.is_some() {
            return;
        }
        self.draining = Some(deadline);
        let now = Instant::now();
        // A short budget is shared out too: what was acknowledged is worth a commit.
        let budget = deadline.saturating_duration_since(now);
        let (commit, leave) = (COMMIT.min(budget / 4), LEAVE.min(budget / 8));
        let all: Vec<TopicPartition> = self.owned.keys().cloned().collect();
        let pending = self.release.take();
        let placed = self.placed();
        self.source.pause(&placed);
        self.begin_release(Release {
            partitions: all,
            why: Why::End,
            since: pending.map_or(now, |r| r.since),
            drain_until: deadline.checked_sub(commit + leave).unwrap_or(now),
            commit_until: deadline.checked_sub(leave).unwrap_or(now),
            step: Step::Draining,
        });
    }

    fn begin_release(&mut self, release: Release) {
        for tp in &release.partitions {
            if let Some(owned) = self.owned.get_mut(tp) {
                owned.gate.close();
                owned.backlog.clear();
                owned.lone = None;
                // Also one that is not placed yet: an answer that comes now must not place it.
                owned.phase = Phase::Releasing;
            }
        }
        self.release = Some(release);
        self.release_step(Instant::now());
    }

    /// Moves a release on.
    pub(super) fn release_step(&mut self, now: Instant) {
        let Some(release) = self.release.take() else {
            return;
        };
        self.release = match release.step {
            Step::Draining => self.drain_step(release, now),
            Step::Committing => self.commit_step(release, now),
        };
    }

    fn drain_step(&mut self, mut release: Release, now: Instant) -> Option<Release> {
        let left = || {
            let owned = release
                .partitions
                .iter()
                .filter_map(|tp| self.owned.get(tp));
            owned.filter(|o| o.in_flight > 0)
        };
        let in_flight = left().next().is_some();
        // Those that cannot resolve now are past the deadline at once, if nothing else is waited for.
        let hopeless =
            release.why == Why::Revoke && left().all(|o| o.last_progress.elapsed() > HOPELESS);
        if in_flight && now < release.drain_until && !hopeless {
            return Some(release);
        }
        if in_flight {
            self.give_up_in_flight(&release.partitions);
        }
        release.step = Step::Committing;
        self.committer.hurry(now);
        self.commit_due(now);
        self.commit_step(release, now)
    }

    /// Past the deadline: what is in flight is purged, and nothing is committed for it beyond the
    /// watermark that it had. The purge takes the handle down; what was kept goes back to its own
    /// watermark by its barrier.
    fn give_up_in_flight(&mut self, partitions: &[TopicPartition]) {
        for tp in partitions {
            let Some(owned) = self.owned.get_mut(tp).filter(|o| o.in_flight > 0) else {
                continue;
            };
            tracing::warn!(event = "drain_deadline", subject = %self.subject, topic = %tp.topic,
                partition = tp.partition, watermark = owned.tracker.watermark().0,
                "records in flight were not acknowledged in time; they may be copied again");
            if let Some(sink) = owned.sink.take() {
                self.purge(&sink);
            }
        }
    }

    /// Throws away what is in flight on a producer. Nobody knows what of it has arrived: until it is copied again, a stop
    /// says so (found by the simulation).
    pub(super) fn purge(&mut self, sink: &Arc<K>) {
        let is_on_it = |o: &&mut Owned<S::Record, K>| {
            let same = o.sink.as_ref().is_none_or(|of| Arc::ptr_eq(of, sink));
            same && o.in_flight > 0
        };
        for owned in self.owned.values_mut().filter(is_on_it) {
            owned.arrived_to = owned.arrived_to.max(owned.tracker.position());
        }
        sink.purge();
    }

    fn commit_step(&mut self, release: Release, now: Instant) -> Option<Release> {
        if !self.is_committed(&release.partitions) && !release.is_over(now) {
            if !self.committer.is_busy() {
                self.committer.hurry(now);
            }
            return Some(release);
        }
        // I3: a commit that is still under way is waited for, so that none lands after the release.
        if self.committer.is_busy() && !release.is_over(now) {
            return Some(release);
        }
        match release.why {
            Why::Revoke => self.let_go(&release),
            Why::End => self.end_of_drain(&release),
        }
        None
    }

    fn let_go(&mut self, release: &Release) {
        let released: Vec<TopicPartition> = release.partitions.clone();
        self.announcer.revoked(&released);
        self.forget(&released);
        // Whoever gets them copies again what an earlier life left there: it is not ours to tell (found by the simulation).
        self.left_behind.retain(|tp, _| !released.contains(tp));
        if let Err(error) = self.source.release(&released) {
            tracing::warn!(event = "release_failed", subject = %self.subject, error);
        }
        tracing::info!(event = "released", subject = %self.subject, worker = self.index, partitions = released.len(),
            after_ms = release.since.elapsed().as_millis() as u64);
        self.say_needs();
        self.place_ready();
        self.rejoined();
    }

    fn end_of_drain(&mut self, release: &Release) {
        let exit = self.stopped();
        self.announcer.revoked(&release.partitions);
        self.finish(exit);
    }

    /// Gone already: nothing is drained and nothing committed (I3, B014).
    pub(super) fn lost(&mut self, partitions: &[TopicPartition]) {
        Counters::add(&self.view.counters.rebalances, 1);
        tracing::warn!(event = "lost", subject = %self.subject, worker = self.index, partitions = partitions.len(),
            "the group took partitions away without asking: what was in flight may be copied twice");
        let left = self.unconfirmed().into_iter();
        let left = left.filter(|u| partitions.contains(&u.partition));
        self.left_behind
            .extend(left.map(|u| (u.partition.clone(), u)));
        for tp in partitions {
            if let Some(owned) = self.owned.get_mut(tp)
                && owned.in_flight > 0
                && let Some(sink) = owned.sink.take()
            {
                self.purge(&sink);
            }
        }
        self.forget(partitions);
        self.await_group();
        self.announcer.lost(partitions);
        if let Err(error) = self.source.release(partitions) {
            tracing::warn!(event = "release_failed", subject = %self.subject, error);
        }
        self.say_needs();
        self.place_ready();
        self.rejoined();
    }

    fn forget(&mut self, partitions: &[TopicPartition]) {
        self.forget_start();
        for tp in partitions {
            if let Some(mut owned) = self.owned.remove(tp) {
                owned.gate.close();
                owned.fence.let_go();
            }
            self.view.forget(tp);
        }
    }

    /// How it ends if it stops here, gently or at once: where every watermark is committed nothing is repeated, however
    /// long the group takes to let a member go.
    pub(super) fn stopped(&self) -> WorkerExit {
        match self.unconfirmed() {
            left if left.is_empty() => WorkerExit::Drained,
            left => WorkerExit::Unconfirmed(left),
        }
    }

    /// What may be copied again after a restart from here.
    pub(super) fn unconfirmed(&self) -> Vec<Unconfirmed> {
        let left_behind = self.left_behind.values().cloned();
        let owned = self
            .owned
            .values()
            // One that is not placed again yet has what it left behind when it was lost.
            .filter(|o| (o.placed || o.arrived_to > o.tracker.watermark()) && !o.has_vanished())
            .filter(|o| {
                let is_committed = o.committed == Some(o.tracker.watermark());
                o.in_flight > 0 || !is_committed || o.arrived_to > o.tracker.watermark()
            })
            .map(|o| Unconfirmed {
                partition: o.id.clone(),
                committed: o.committed.map(|c| c.0),
                next: o.tracker.position().max(o.arrived_to).0,
            });
        owned.chain(left_behind).collect()
    }
}
