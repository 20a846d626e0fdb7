//! fetch → register → handlers → produce → ack → resolve, for one batch.

use super::owned::Phase;
use super::ticket::{Counts, LaneWord, Ticket};
use super::{Worker, WorkerExit};
use crate::flow::lane::{Care, Form, Handled, Input, Job, StopCause};
use crate::flow::stage::Submitted;
use crate::observe::{Counters, Reason};
use crate::plane::{Batch, FetchedRecord, Offset, Outcome, Sink, Source, Writer};
use crate::record::TopicPartition;
use std::sync::Arc;
use std::time::Instant;

/// The way to the target.
pub(super) struct Way<K> {
    sink: Arc<K>,
    writer: Writer,
}

impl<S: Source, K: Sink> Worker<S, K> {
    /// A batch arrives.
    pub(super) fn fetched(&mut self, mut batch: Batch<S::Record>) {
        let Some(owned) = self.owned.get_mut(&batch.partition) else {
            return;
        };
        owned.source_fault = None;
        // B033: within one life no offset is taken twice, whatever the client hands out.
        let position = owned.tracker.position().max(backlog_end(&owned.backlog));
        let fresh = batch
            .records
            .iter()
            .position(|r| r.offset() >= position)
            .unwrap_or(batch.records.len());
        if fresh > 0 {
            batch.split_front(fresh);
        }
        if batch.records.is_empty() {
            return;
        }
        match owned.phase {
            Phase::Flowing => self.dispatch(Input::Records(batch)),
            Phase::Isolating(_) => self.isolate_later(batch),
            // Not counted as fetched: it never entered, and is fetched again.
            _ => {}
        }
    }

    /// A partition's end: control records and holes before it are covered.
    pub(super) fn end_reached(&mut self, tp: &TopicPartition, offset: Offset) {
        if let Some(owned) = self.owned.get_mut(tp)
            && owned.is_taking()
        {
            owned.source_fault = None;
            owned.tracker.cover(offset);
        }
    }

    /// register → hand over to the partition's lane.
    pub(super) fn dispatch(&mut self, input: Input<S::Record>) {
        let tp = input.partition().clone();
        let way = match self.way_for(&tp) {
            Ok(way) => way,
            Err(reason) => return self.halt_now(&tp, reason),
        };
        let Some(job) = self.register(input, way, Care::Normal) else {
            return;
        };
        let number = job.ticket;
        match self.stage.submit(job) {
            Submitted::Handled(handled) => self.handled(number, handled),
            Submitted::Queued => {}
        }
        self.pause_if_held(&tp);
    }

    /// A partition with records in flight stays on its producer: what is there must not be overtaken
    /// on another one (a replaced handle still purges).
    fn way_for(&mut self, tp: &TopicPartition) -> Result<Way<K>, Reason> {
        let client = |detail| Reason::Client { detail };
        let owned = self.owned.get_mut(tp);
        let owned = owned.ok_or_else(|| client("not owned".to_owned()))?;
        let sink = match &owned.sink {
            Some(sink) if owned.in_flight > 0 => sink.clone(),
            _ => self.sinks.of(tp).map_err(client)?,
        };
        owned.sink = Some(sink.clone());
        self.way_by(tp, sink)
    }

    /// The way by one producer, if its writer may write.
    pub(super) fn way_by(&mut self, tp: &TopicPartition, sink: Arc<K>) -> Result<Way<K>, Reason> {
        let owned = self.owned.get_mut(tp);
        match owned.and_then(|o| o.fence.writer(&sink)) {
            Some(writer) => Ok(Way { sink, writer }),
            None => {
                self.want_writer(tp);
                Err(Reason::AwaitingWriter)
            }
        }
    }

    /// Enters a batch in the tracker and issues its ticket.
    pub(super) fn register(
        &mut self,
        input: Input<S::Record>,
        way: Way<K>,
        care: Care,
    ) -> Option<Job<S::Record, K>> {
        let owned = self.owned.get_mut(input.partition())?;
        let (first, last) = input.range()?;
        let chain = owned.chain.clone()?;
        let (cost, bytes, records) = (input.cost(), input.bytes(), input.records());
        owned.leader_epoch = input.leader_epoch();
        if owned.in_flight == 0 {
            owned.last_progress = Instant::now();
        }
        owned.in_flight += 1;
        owned.cost += cost;
        owned.sink = Some(way.sink.clone());
        let ticket = self.tickets.issue(Ticket {
            partition: owned.id.clone(),
            life: owned.life,
            batch: owned.tracker.register(first, last),
            first,
            records,
            form: input.form(),
            sparse: input.sparse(),
            cost,
            since: Instant::now(),
            open: 0,
            lane: LaneWord::Awaited,
            failure: None,
            stopped_at: None,
            counts: Counts::default(),
        });
        self.budget.take(cost);
        let counters = &self.view.counters;
        Counters::add(&counters.fetched_records, records);
        Counters::add(&counters.fetched_bytes, bytes);
        Counters::add(&counters.in_flight_records, records);
        Counters::add(&counters.in_flight_bytes, cost);
        Some(Job {
            source: self.source_name.clone(),
            epoch: owned.gate.epoch(),
            gate: owned.gate.clone(),
            input,
            ticket,
            chain,
            rules: self.rules.clone(),
            sink: way.sink,
            writer: way.writer,
            care,
        })
    }

    /// The lane's word on a batch.
    pub(super) fn handled(&mut self, number: u32, handled: Handled) {
        let Some(ticket) = self.tickets.get(number) else {
            return;
        };
        ticket.lane = LaneWord::Given;
        ticket.open += i64::from(handled.outputs);
        ticket.counts.forwarded += u64::from(handled.forwarded);
        ticket.counts.dropped += u64::from(handled.dropped);
        ticket.counts.skipped += u64::from(handled.skipped);
        ticket.counts.dead_lettered += u64::from(handled.dead_lettered);
        let counters = &self.view.counters;
        Counters::add(&counters.failed_records, u64::from(handled.failed));
        Counters::add(&counters.produced_bytes, handled.output_bytes);
        if let Some(stop) = handled.stop {
            ticket.stopped_at = Some(stop.offset);
            // Refused by the client at once is as good as refused by the broker: of a record that
            // stands alone, `on_error` must hear.
            if let StopCause::Refused(fault) = &stop.cause {
                ticket.fail(stop.offset, fault.clone());
            }
            let (tp, life) = (ticket.partition.clone(), ticket.life);
            self.lane_stopped(&tp, life, stop);
        }
        self.settle(number);
    }

    /// One outcome from a producer.
    pub(super) fn outcome(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Acked {
                ticket,
                count,
                furthest,
            } => {
                let Some(entry) = self.tickets.get(ticket) else {
                    return;
                };
                entry.open -= i64::from(count);
                Counters::add(&self.view.counters.produced_records, u64::from(count));
                if let Some(owned) = self.owned.get_mut(&entry.partition)
                    && owned.life == entry.life
                {
                    owned.last_progress = Instant::now();
                    let arrived_to = entry.first.at_distance(furthest).next();
                    owned.arrived_to = owned.arrived_to.max(arrived_to);
                }
                self.settle(ticket);
            }
            Outcome::Failed {
                ticket,
                distance,
                fault,
            } => {
                let Some(entry) = self.tickets.get(ticket) else {
                    return;
                };
                entry.open -= 1;
                let offset = entry.first.at_distance(distance);
                entry.fail(offset, fault.clone());
                let (tp, life) = (entry.partition.clone(), entry.life);
                Counters::add(&self.view.counters.failed_records, 1);
                self.delivery_failed(&tp, life, offset, fault);
                self.settle(ticket);
            }
            Outcome::Refused {
                ticket,
                distance,
                count,
                fault,
            } => {
                let Some(entry) = self.tickets.get(ticket) else {
                    return;
                };
                entry.open -= i64::from(count);
                let first = entry.first.at_distance(distance);
                let last = first.at_distance(count.saturating_sub(1));
                entry.fail(first, fault.clone());
                let (tp, life) = (entry.partition.clone(), entry.life);
                self.batch_refused(&tp, life, last, fault);
                self.settle(ticket);
            }
        }
    }

    /// Ends a batch of which nothing more will be heard: resolve, or cut where it failed.
    fn settle(&mut self, number: u32) {
        if !self.tickets.get(number).is_some_and(|t| t.is_settled()) {
            return;
        }
        let Some(ticket) = self.tickets.retire(number) else {
            return;
        };
        self.budget.give(ticket.cost);
        let counters = &self.view.counters;
        counters
            .in_flight_records
            .fetch_sub(ticket.records, std::sync::atomic::Ordering::Relaxed);
        counters
            .in_flight_bytes
            .fetch_sub(ticket.cost, std::sync::atomic::Ordering::Relaxed);
        let Some(owned) = self
            .owned
            .get_mut(&ticket.partition)
            .filter(|o| o.life == ticket.life)
        else {
            Counters::add(&counters.stale_acks, 1);
            Counters::add(&counters.discarded_records, ticket.records);
            return;
        };
        owned.in_flight -= 1;
        owned.cost = owned.cost.saturating_sub(ticket.cost);
        if self.may_be_settled_alone(&ticket) {
            return;
        }
        self.may_be_taken_down_alone(&ticket);
        self.count(&ticket);
        let Some(owned) = self.owned.get_mut(&ticket.partition) else {
            return;
        };
        match ticket.cut_at() {
            None => {
                owned.tracker.resolve(ticket.batch);
                owned.last_progress = Instant::now();
                owned.halts = 0;
                self.settled_well(&ticket);
            }
            Some(offset) => owned.tracker.cut(ticket.batch, offset),
        }
        self.after_settled(&ticket.partition);
    }

    /// I7: every fetched record ends in exactly one counted outcome.
    fn count(&self, ticket: &Ticket) {
        let counters = &self.view.counters;
        let c = ticket.counts;
        let (delivered, discarded) = match ticket.cut_at() {
            None => (c.forwarded, 0),
            // What lies before the cut is settled; the rest is fetched and counted again. Where a lane
            // dropped some records it is not known on which side they lay: delivered is a lower bound.
            Some(cut) => {
                let otherwise = c.dropped + c.skipped + c.dead_lettered;
                let before = ticket.records_before(cut);
                let delivered = before.saturating_sub(otherwise).min(c.forwarded);
                (delivered, ticket.records - delivered - otherwise)
            }
        };
        Counters::add(&counters.delivered_records, delivered);
        if ticket.form == Form::Whole {
            Counters::add(&counters.passed_records, delivered);
        }
        Counters::add(&counters.discarded_records, discarded);
        Counters::add(&counters.dropped_records, c.dropped);
        Counters::add(&counters.skipped_records, c.skipped);
        Counters::add(&counters.dead_lettered_records, c.dead_lettered);
        let delay = ticket.since.elapsed().as_micros() as u64;
        Counters::add(&counters.delay_us_sum, delay);
        Counters::add(&counters.delay_count, 1);
    }

    /// What follows from a settled batch.
    fn after_settled(&mut self, tp: &TopicPartition) {
        let share = self.budget.partition_share();
        let Some(owned) = self.owned.get_mut(tp) else {
            return;
        };
        if owned.paused_alone && owned.cost < share / 2 {
            owned.paused_alone = false;
            if !self.paused_all && matches!(owned.phase, Phase::Flowing) {
                self.source.resume(std::slice::from_ref(tp));
            }
        }
        match owned.phase {
            Phase::Barrier(_) if owned.in_flight == 0 => self.after_barrier(tp),
            Phase::Isolating(_) if owned.in_flight == 0 => self.isolation_step(tp),
            _ => {}
        }
    }

    pub(super) fn abort_route(&mut self, tp: &TopicPartition, offset: Offset, detail: &str) {
        let detail = format!("{tp} at offset {offset}: {detail}");
        self.finish(WorkerExit::AbortRoute(Reason::Aborted { detail }));
    }
}

fn backlog_end<R: FetchedRecord>(backlog: &std::collections::VecDeque<Batch<R>>) -> Offset {
    backlog
        .back()
        .and_then(Batch::last)
        .map_or(Offset(i64::MIN), Offset::next)
}
