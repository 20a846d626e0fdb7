//! A failed delivery is a barrier (`engine.md` rule 4): intake of the partition stops, everything in
//! flight gets an outcome, then the partition goes back to its watermark with a new epoch.
//!
//! What follows depends on the cause:
//! - another record's failure took it down: it flows on from the watermark;
//! - a property of a record: it is isolated, one record or a short run at a time on the quarantine
//!   handle, until it stands alone; then `on_error` decides;
//! - a state of the world: halted with a reason, tried again for ever with growing pauses, first
//!   with a single record. `skip` never discards for this (B076).

use super::Worker;
use super::owned::{Isolation, Phase, Retry, RetryHow, Trouble};
use crate::flow::lane::{Stop, StopCause};
use crate::flow::scout::Inquiry;
use crate::handler::Failure;
use crate::observe::{Counters, Reason};
use crate::plane::{FaultKind, Offset, ProduceFault, Sink, Source};
use crate::record::TopicPartition;
use std::time::{Duration, Instant};

/// How often retries are looked for.
pub(super) const RETRY_LOOK: Duration = Duration::from_millis(50);
/// Positions that could not be moved in a row before the worker joins its group anew.
const SEEKS: u8 = 2;
/// How soon a halted partition whose topic is not ready is looked at again.
const NOT_READY: Duration = Duration::from_millis(500);

impl<S: Source, K: Sink> Worker<S, K> {
    /// The lane stopped within a batch.
    pub(super) fn lane_stopped(&mut self, tp: &TopicPartition, life: u64, stop: Stop) {
        let offset = stop.offset;
        match stop.cause {
            StopCause::Stale => self.barrier(tp, life, |_| {}),
            StopCause::Poison(failure) => {
                self.barrier(tp, life, |t| keep_lowest(&mut t.poison, offset, failure))
            }
            StopCause::Abort(failure) => {
                self.barrier(tp, life, |t| keep_lowest(&mut t.abort, offset, failure))
            }
            StopCause::Oversize => self.barrier(tp, life, |t| t.suspect(offset)),
            StopCause::Refused(fault) => self.delivery_failed(tp, life, offset, fault),
            StopCause::Missing(topic) => {
                let detail = "it is not there, or not known yet".to_owned();
                self.barrier(tp, life, |t| {
                    t.world = Some(Reason::TargetTopicMissing { topic, detail });
                });
            }
            StopCause::TooFew { topic, has, needs } => self.barrier(tp, life, |t| {
                t.world = Some(Reason::TargetTooFewPartitions { topic, has, needs });
            }),
        }
    }

    /// The target did not take a record.
    pub(super) fn delivery_failed(
        &mut self,
        tp: &TopicPartition,
        life: u64,
        offset: Offset,
        fault: ProduceFault,
    ) {
        if let Some(owned) = self.owned.get_mut(tp).filter(|o| o.life == life) {
            owned.fence.spoil();
        }
        let alone = self
            .owned
            .get(tp)
            .is_some_and(|o| matches!(o.phase, Phase::Isolating(_)) && o.lone.is_some());
        match fault.kind {
            // It stands alone as the culprit, or an output of it took another one down: that is decided
            // when all of it has settled.
            FaultKind::Record(_) | FaultKind::Collateral if alone => {}
            FaultKind::Record(_) => self.barrier(tp, life, |t| t.suspect(offset)),
            FaultKind::Collateral => self.barrier(tp, life, |_| {}),
            FaultKind::Fenced => self.fenced(tp, life, fault.detail),
            FaultKind::Doubtful => self.barrier(tp, life, |t| t.doubt = Some(fault.detail)),
            FaultKind::World => self.barrier(tp, life, |t| {
                t.world = Some(Reason::TargetRefuses {
                    detail: fault.detail,
                });
            }),
            FaultKind::Missing => {
                let topic = self.first_target(tp);
                self.barrier(tp, life, |t| {
                    t.world = Some(Reason::TargetTopicMissing {
                        topic,
                        detail: fault.detail,
                    });
                });
            }
        }
    }

    fn first_target(&self, tp: &TopicPartition) -> String {
        self.owned
            .get(tp)
            .and_then(|o| o.chain.as_ref()?.targets().known.first().cloned())
            .unwrap_or_else(|| tp.topic.to_string())
    }

    /// Begins a barrier, or adds to one.
    pub(super) fn barrier(
        &mut self,
        tp: &TopicPartition,
        life: u64,
        note: impl FnOnce(&mut Trouble),
    ) {
        let Some(owned) = self.owned.get_mut(tp).filter(|o| o.life == life) else {
            return;
        };
        let mut trouble = Trouble::default();
        match &mut owned.phase {
            Phase::Barrier(trouble) => return note(trouble),
            Phase::Isolating(isolation) => trouble.suspect(isolation.until),
            Phase::Flowing => {}
            _ => return,
        }
        note(&mut trouble);
        self.stop_intake(tp);
        if let Some(owned) = self.owned.get_mut(tp) {
            owned.phase = Phase::Barrier(trouble);
        }
    }

    /// Nothing more of this partition is taken: what lanes have queued is stale, what is fetched is
    /// dropped, fetching is held. All of it is fetched again from the watermark.
    fn stop_intake(&mut self, tp: &TopicPartition) {
        let Some(owned) = self.owned.get_mut(tp) else {
            return;
        };
        owned.gate.close();
        owned.backlog.clear();
        owned.lone = None;
        if owned.placed {
            self.source.pause(std::slice::from_ref(tp));
        }
    }

    /// Everything in flight has an outcome: back to the watermark, and on as the trouble demands.
    pub(super) fn after_barrier(&mut self, tp: &TopicPartition) {
        let now = Instant::now();
        let Some(owned) = self.owned.get_mut(tp) else {
            return;
        };
        // Looked at before it is replaced: any other phase goes on as it is.
        if !matches!(owned.phase, Phase::Barrier(_)) {
            return;
        }
        let Phase::Barrier(trouble) = std::mem::replace(&mut owned.phase, Phase::Flowing) else {
            return;
        };
        debug_assert_eq!(owned.in_flight, 0);
        owned.tracker.rewind();
        owned.sink = None;
        owned.fence.settle();
        Counters::add(&self.view.counters.rewinds, 1);
        if let Some(detail) = trouble.fenced {
            return self.be_fenced(tp, detail);
        }
        if let Some(detail) = trouble.doubt {
            tracing::warn!(event = "writer_replaced", subject = %self.subject, topic = %tp.topic,
                partition = tp.partition, detail, "another producer id is taken");
            owned.fence.doubt();
        }
        self.want_writer(tp);
        if let Some((offset, failure)) = trouble.abort {
            return self.abort_route(tp, offset, &describe(&failure));
        }
        if trouble.out_of_range {
            return self.recheck(tp);
        }
        if let Some((offset, failure)) = trouble.poison {
            return self.halt(tp, poison(offset, &failure), now);
        }
        if let Some(reason) = trouble.world {
            return self.halt(tp, reason, now);
        }
        // New settings may have come meanwhile, and their topics may not be there yet.
        if let Some(reason) = self.owned.get(tp).and_then(|o| self.unready(o)) {
            return self.halt(tp, reason, now);
        }
        let Some(owned) = self.owned.get_mut(tp) else {
            return;
        };
        if let Some(until) = trouble.suspect_until {
            owned.phase = Phase::Isolating(Isolation { until, run: 1 });
        }
        self.fetch_from_watermark(tp);
    }

    /// Halts a partition that has nothing in flight.
    pub(super) fn halt(&mut self, tp: &TopicPartition, reason: Reason, now: Instant) {
        self.stop_intake(tp);
        let Some(owned) = self.owned.get_mut(tp) else {
            return;
        };
        owned.tracker.rewind();
        owned.fence.settle();
        let awaits_writer = matches!(reason, Reason::AwaitingWriter);
        let awaits = matches!(reason, Reason::AwaitingTopic { .. });
        if awaits || awaits_writer {
            tracing::info!(event = "partition_waits", subject = %self.subject, topic = %tp.topic,
                partition = tp.partition, offset = owned.tracker.watermark().0, "{reason}");
        } else if owned.halted_for() != Some(&reason) {
            tracing::error!(event = "partition_halted", subject = %self.subject, topic = %tp.topic,
                partition = tp.partition, offset = owned.tracker.watermark().0, reason = reason.code(), "{reason}");
        }
        let how = match reason {
            // There is no record to send alone.
            Reason::SourceUnreadable { .. } | Reason::AwaitingWriter => RetryHow::Fetch,
            _ => RetryHow::Isolate,
        };
        let missing = awaits || matches!(reason, Reason::TargetTopicMissing { .. });
        owned.halt(reason, how, now);
        if missing {
            // The keeper looks at once, and makes the topic again if that is its business.
            self.say_needs();
        }
    }

    /// Halts a partition whatever it has in flight.
    pub(super) fn halt_now(&mut self, tp: &TopicPartition, reason: Reason) {
        let Some(owned) = self.owned.get(tp) else {
            return;
        };
        if owned.in_flight == 0 {
            self.halt(tp, reason, Instant::now());
        } else {
            let life = owned.life;
            self.barrier(tp, life, |t| t.world = Some(reason));
        }
    }

    fn fetch_from_watermark(&mut self, tp: &TopicPartition) {
        let Some(owned) = self.owned.get_mut(tp) else {
            return;
        };
        let watermark = owned.tracker.watermark();
        owned.last_progress = Instant::now();
        owned.paused_alone = false;
        let flowing = matches!(owned.phase, Phase::Flowing);
        self.say_form(tp);
        if let Err(detail) = self.source.rewind(tp, watermark) {
            tracing::debug!(event = "rewind_failed", subject = %self.subject, topic = %tp.topic,
                partition = tp.partition, detail);
            return self.rewind_failed(tp, detail);
        }
        if let Some(owned) = self.owned.get_mut(tp) {
            owned.seek_failures = 0;
        }
        if self.paused_all && flowing {
            self.source.pause(std::slice::from_ref(tp));
        }
    }

    /// The client does not move the position. Once may be a passing state; a partition whose fetching
    /// the client has ended for good (after an offset out of range) only begins anew with a new
    /// assignment.
    fn rewind_failed(&mut self, tp: &TopicPartition, detail: String) {
        let Some(owned) = self.owned.get_mut(tp) else {
            return;
        };
        owned.seek_failures = owned.seek_failures.saturating_add(1);
        let again = owned.seek_failures >= SEEKS;
        self.halt(tp, Reason::Client { detail }, Instant::now());
        if again {
            self.rejoin();
        }
    }

    /// Asks whether the watermark of a placed partition is still in the log of the same topic.
    pub(super) fn recheck(&mut self, tp: &TopicPartition) {
        self.questions += 1;
        let Some(owned) = self.owned.get_mut(tp) else {
            return;
        };
        owned.ask(self.questions);
        let _ = self.scout.send(Inquiry::Recheck {
            worker: self.index,
            id: self.questions,
            partition: tp.clone(),
            position: owned.tracker.watermark(),
            topic_id: owned.topic_id.clone(),
        });
    }

    /// Position refused: is it still in the log? Waits for what is in flight first.
    pub(super) fn out_of_range(&mut self, tp: &TopicPartition) {
        let Some(owned) = self.owned.get(tp) else {
            return;
        };
        let (life, idle) = (owned.life, owned.in_flight == 0);
        // In any phase but those that take records nothing is fetched now; the retry will find out.
        self.barrier(tp, life, |t| t.out_of_range = true);
        if idle {
            self.after_barrier(tp);
        }
    }

    /// Records could not be read, and the client goes on behind them; we go back. A damage on the way is over with the
    /// next answer; one in the log holds the partition.
    pub(super) fn unreadable(&mut self, tp: &TopicPartition, detail: String) {
        let Some(owned) = self.owned.get_mut(tp) else {
            return;
        };
        let reason = Reason::SourceUnreadable { detail };
        // Said also between two looks, until data flows again.
        owned.source_fault = Some(reason.clone());
        let (life, idle) = (owned.life, owned.in_flight == 0);
        self.barrier(tp, life, |t| t.world = Some(reason));
        if idle {
            self.after_barrier(tp);
        }
    }

    // --- retries -----------------------------------------------------------------------------

    /// Halted partitions whose pause is over, and positions to ask for again.
    pub(super) fn retry_due(&mut self, now: Instant) {
        if now < self.next_retry_look || self.draining.is_some() {
            return;
        }
        self.next_retry_look = now + RETRY_LOOK;
        let mut resolve = Vec::new();
        let (mut isolate, mut fetch) = (Vec::new(), Vec::new());
        let mut rejoin = false;
        for owned in self.owned.values() {
            match &owned.phase {
                Phase::ResolveLater { at, .. } if *at <= now => resolve.push(owned.id.clone()),
                Phase::Halted { retry, .. } if retry.at <= now => match retry.how {
                    RetryHow::Resolve => resolve.push(owned.id.clone()),
                    RetryHow::Isolate => isolate.push(owned.id.clone()),
                    RetryHow::Fetch => fetch.push(owned.id.clone()),
                    RetryHow::Rejoin => rejoin = true,
                    RetryHow::Never => {}
                },
                _ => {}
            }
        }
        if rejoin {
            self.rejoin();
        }
        // A placed partition has a watermark of its own, which may be ahead of the last commit.
        let (placed, fresh): (Vec<_>, Vec<_>) = resolve
            .into_iter()
            .partition(|tp| self.owned.get(tp).is_some_and(|o| o.placed));
        self.resolve(fresh);
        for tp in placed {
            self.recheck(&tp);
        }
        let retries = isolate.iter().map(|tp| (tp, RetryHow::Isolate));
        for (tp, how) in retries.chain(fetch.iter().map(|tp| (tp, RetryHow::Fetch))) {
            self.retry(tp, how, now);
        }
    }

    /// Fetches on from the watermark: the record there is sent alone, and if it arrives, the partition flows; or it flows at
    /// once, where no record is to blame.
    fn retry(&mut self, tp: &TopicPartition, how: RetryHow, now: Instant) {
        let unready = match self.owned.get(tp) {
            Some(owned) => self.unready(owned),
            None => return,
        };
        let Some(owned) = self.owned.get_mut(tp) else {
            return;
        };
        if let Some(reason) = unready {
            let how = match reason {
                Reason::Fenced { .. } => RetryHow::Rejoin,
                _ => how,
            };
            owned.phase = Phase::Halted {
                reason,
                retry: Retry {
                    at: now + NOT_READY,
                    how,
                },
            };
            return;
        }
        owned.phase = match how {
            RetryHow::Fetch => Phase::Flowing,
            _ => Phase::Isolating(Isolation {
                until: owned.tracker.watermark(),
                run: 1,
            }),
        };
        self.fetch_from_watermark(tp);
    }

    /// The target's topics changed: what waits for one is tried now.
    pub(super) fn retry_missing(&mut self) {
        let now = Instant::now();
        for owned in self.owned.values_mut() {
            if let Phase::Halted { reason, retry } = &mut owned.phase
                && matches!(
                    reason,
                    Reason::TargetTopicMissing { .. }
                        | Reason::TargetTooFewPartitions { .. }
                        | Reason::AwaitingTopic { .. }
                )
            {
                retry.at = now;
            }
        }
    }
}

impl Trouble {
    fn suspect(&mut self, offset: Offset) {
        let until = self.suspect_until.get_or_insert(offset);
        *until = (*until).max(offset);
    }
}

fn keep_lowest(slot: &mut Option<(Offset, Failure)>, offset: Offset, failure: Failure) {
    if slot.as_ref().is_none_or(|(lowest, _)| offset < *lowest) {
        *slot = Some((offset, failure));
    }
}

pub(super) fn poison(offset: Offset, failure: &Failure) -> Reason {
    Reason::PoisonRecord {
        offset: offset.0,
        failure: failure.code.as_str().to_owned(),
        detail: failure.detail.clone(),
    }
}

pub(super) fn describe(failure: &Failure) -> String {
    format!("{}: {}", failure.code, failure.detail)
}
