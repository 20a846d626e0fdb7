//! Isolation: records of a partition one by one, or in short runs, on the quarantine handle, until the
//! one that cannot be delivered stands alone; then `on_error` decides (`engine.md` rule 4).

use super::Worker;
use super::owned::{Owned, Phase};
use super::recover::{describe, poison};
use super::ticket::Ticket;
use crate::config::spec::OnError;
use crate::flow::lane::{Care, Input};
use crate::handler::Failure;
use crate::observe::{Counters, Reason};
use crate::plane::{Batch, FaultKind, Offset, Sink, Source};
use crate::record::TopicPartition;
use std::sync::Arc;
use std::time::Instant;

/// Longest run of records in isolation.
const LONGEST_RUN: usize = 512;

impl<S: Source, K: Sink> Worker<S, K> {
    /// A batch of a partition in isolation: kept, and sent in runs.
    pub(super) fn isolate_later(&mut self, batch: Batch<S::Record>) {
        let tp = batch.partition.clone();
        let Some(owned) = self.owned.get_mut(&tp) else {
            return;
        };
        owned.backlog.push_back(batch);
        // One batch is enough to go on with; the rest stays with the client or the broker.
        self.source.pause(std::slice::from_ref(&tp));
        if self.owned.get(&tp).is_some_and(|o| o.in_flight == 0) {
            self.isolation_step(&tp);
        }
    }

    /// Sends the next run, or ends the isolation when the suspects are behind.
    pub(super) fn isolation_step(&mut self, tp: &TopicPartition) {
        let Some(owned) = self.owned.get_mut(tp) else {
            return;
        };
        let Phase::Isolating(isolation) = &mut owned.phase else {
            return;
        };
        if owned.lone.take().is_some() || owned.tracker.is_idle() && isolation.run > 1 {
            isolation.run = (isolation.run * 2).min(LONGEST_RUN);
        }
        if owned.tracker.position() > isolation.until {
            return self.end_isolation(tp);
        }
        let run = isolation.run;
        let Some(mut batch) = owned.backlog.pop_front() else {
            self.source.resume(std::slice::from_ref(tp));
            return;
        };
        let now = batch.split_front(run);
        if !batch.records.is_empty() {
            owned.backlog.push_front(batch);
        }
        self.send_isolated(tp, now, Care::Isolated);
    }

    fn end_isolation(&mut self, tp: &TopicPartition) {
        let Some(owned) = self.owned.get_mut(tp) else {
            return;
        };
        tracing::info!(event = "partition_recovered", subject = %self.subject, topic = %tp.topic,
            partition = tp.partition, watermark = owned.tracker.watermark().0);
        owned.phase = Phase::Flowing;
        owned.halts = 0;
        owned.sink = None;
        let backlog = std::mem::take(&mut owned.backlog);
        for batch in backlog {
            if !self.is_flowing(tp) {
                // The one before met trouble: this one is fetched again.
                return;
            }
            self.dispatch(Input::Records(batch));
        }
        self.say_form(tp);
        if !self.paused_all && self.is_flowing(tp) {
            self.source.resume(std::slice::from_ref(tp));
        }
    }

    fn is_flowing(&self, tp: &TopicPartition) -> bool {
        self.owned
            .get(tp)
            .is_some_and(|o| matches!(o.phase, Phase::Flowing))
    }

    fn send_isolated(&mut self, tp: &TopicPartition, batch: Batch<S::Record>, care: Care) {
        let sink = self.quarantine_sink();
        let sink = sink.map_err(|detail| Reason::Client { detail });
        let way = match sink.and_then(|sink| self.way_by(tp, sink)) {
            Ok(way) => way,
            Err(reason) => return self.halt(tp, reason, Instant::now()),
        };
        let alone = batch.records.len() == 1;
        let Some(job) = self.register(Input::Records(batch), way, care) else {
            return;
        };
        let handled = self.isolation_lane.run(&job);
        let number = job.ticket;
        if let Input::Records(batch) = job.input
            && alone
            && let Some(owned) = self.owned.get_mut(tp)
        {
            owned.lone = Some(batch);
        }
        self.handled(number, handled);
    }

    fn quarantine_sink(&mut self) -> Result<Arc<K>, String> {
        self.sinks.quarantine(&mut self.quarantine)
    }

    /// If the settled batch was one record that stood alone as the culprit, `on_error` decides here.
    pub(super) fn may_be_settled_alone(&mut self, ticket: &Ticket) -> bool {
        let Some((offset, fault)) = &ticket.failure else {
            return false;
        };
        let FaultKind::Record(code) = fault.kind else {
            return false;
        };
        let alone = self
            .owned
            .get(&ticket.partition)
            .is_some_and(|o| matches!(o.phase, Phase::Isolating(_)) && o.lone.is_some());
        if !alone || ticket.records != 1 {
            return false;
        }
        let failure = Failure {
            code,
            detail: fault.detail.clone(),
        };
        self.settle_alone(ticket, *offset, failure);
        true
    }

    /// One that stood alone and was taken down by something else goes again.
    pub(super) fn may_be_taken_down_alone(&mut self, ticket: &Ticket) {
        let fault = ticket.failure.as_ref().map(|(_, fault)| fault.kind);
        if fault == Some(FaultKind::Collateral) {
            self.barrier(&ticket.partition, ticket.life, |_| {});
        }
    }

    fn settle_alone(&mut self, ticket: &Ticket, offset: Offset, failure: Failure) {
        let tp = &ticket.partition;
        let counters = &self.view.counters;
        let was_letter = ticket.counts.dead_lettered > 0;
        let Some(owned) = self.owned.get_mut(tp) else {
            return;
        };
        tracing::warn!(event = "record_failed", subject = %self.subject, topic = %tp.topic, partition = tp.partition,
            offset = offset.0, failure = failure.code.as_str(), on_error = ?self.spec.route.on_error, "{}", failure.detail);
        match self.spec.route.on_error {
            OnError::Skip => {
                Counters::add(&counters.skipped_records, 1);
                owned.tracker.resolve(ticket.batch);
                one_at_a_time(owned);
                self.isolation_step(tp);
            }
            OnError::DeadLetter if !was_letter => {
                Counters::add(&counters.discarded_records, 1);
                owned.tracker.cut(ticket.batch, offset);
                if let Some(batch) = owned.lone.take() {
                    self.send_isolated(tp, batch, Care::DeadLetter(failure));
                }
            }
            OnError::AbortRoute => self.abort_route(tp, offset, &describe(&failure)),
            OnError::Stop | OnError::DeadLetter => {
                Counters::add(&counters.discarded_records, 1);
                owned.tracker.cut(ticket.batch, offset);
                self.halt(tp, poison(offset, &failure), Instant::now());
            }
        }
    }
}

fn one_at_a_time<R, K>(owned: &mut Owned<R, K>) {
    owned.lone = None;
    if let Phase::Isolating(isolation) = &mut owned.phase {
        isolation.run = 1;
    }
}
