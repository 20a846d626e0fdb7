//! Whole batches: which partitions are read in them, and what follows when one is refused.
//!
//! A partition has its batches whole while it flows, nobody looks at its records ([`Passing`]), its chain leads to one topic, and
//! no batch of it was refused. A refused one is opened: everything goes back to the watermark, and up to that batch records go
//! one by one. Only what a record is refused for is `on_error`'s business.

use super::Worker;
use super::owned::{Owned, Phase};
use super::ticket::Ticket;
use crate::flow::lane::{self, Input};
use crate::flow::passing::Passing;
use crate::observe::Counters;
use crate::plane::{FaultKind, Form, Offset, ProduceFault, Run, Sink, Source};
use crate::record::TopicPartition;
use crate::wire::pass::Takes;

/// Bytes of a batch at most, where the target does not say what it takes: a little less than brokers do by default.
const UNKNOWN_LIMIT: u64 = 1_000_000;
/// Refusals in a row that make a difference.
const REFUSALS: u32 = 10;

/// How long the records of a partition go one by one because a batch of it was refused.
#[derive(Debug, Default)]
pub(super) struct Opened {
    /// The last offset of that batch.
    until: Option<Offset>,
    /// And so many more batches of ours: more with each refusal in a row.
    more: u32,
    refusals: u32,
}

impl Opened {
    fn refuse(&mut self, last: Offset) {
        self.until = self.until.max(Some(last));
        self.more = match self.refusals {
            0 => 0,
            before => 1 << before,
        };
        self.refusals = (self.refusals + 1).min(REFUSALS);
    }

    /// Something was settled well, and everything below `watermark` is.
    fn settle(&mut self, form: lane::Form, watermark: Offset) {
        if self.until.is_some_and(|until| watermark > until) {
            self.until = None;
        }
        match form {
            lane::Form::Records => self.more = self.more.saturating_sub(1),
            lane::Form::Whole => self.refusals = 0,
        }
    }

    fn is_over(&self) -> bool {
        self.until.is_none() && self.more == 0
    }
}

impl<S: Source, K: Sink> Worker<S, K> {
    /// A run arrives.
    pub(super) fn run_fetched(&mut self, run: Run) {
        let Some(owned) = self.owned.get_mut(&run.partition) else {
            return;
        };
        owned.source_fault = None;
        let follows = run.first() >= owned.tracker.position();
        match owned.phase {
            Phase::Flowing if follows => self.dispatch(Input::Whole(run)),
            // A part of it was taken before (B033), or records were wanted: it is read again.
            Phase::Flowing | Phase::Isolating(_) => {
                let (life, idle) = (owned.life, owned.in_flight == 0);
                self.barrier(&run.partition, life, |_| {});
                if idle {
                    self.after_barrier(&run.partition);
                }
            }
            _ => {}
        }
    }

    /// The target did not take a batch that ends with `last`.
    pub(super) fn batch_refused(
        &mut self,
        tp: &TopicPartition,
        life: u64,
        last: Offset,
        fault: ProduceFault,
    ) {
        match fault.kind {
            FaultKind::Collateral
            | FaultKind::Missing
            | FaultKind::Fenced
            | FaultKind::Doubtful => {
                self.delivery_failed(tp, life, last, fault);
            }
            FaultKind::Record(_) | FaultKind::World => {
                Counters::add(&self.view.counters.refused_batches, 1);
                if let Some(owned) = self.owned.get_mut(tp).filter(|o| o.life == life) {
                    owned.fence.spoil();
                    owned.opened.refuse(last);
                    tracing::info!(event = "batch_refused", subject = %self.subject, topic = %tp.topic,
                        partition = tp.partition, last = last.0, detail = fault.detail,
                        "a batch does not pass; its records are sent one by one");
                }
                self.barrier(tp, life, |_| {});
            }
        }
    }

    /// A batch was settled, and its partition may be done with what was refused.
    pub(super) fn settled_well(&mut self, ticket: &Ticket) {
        let Some(owned) = self.owned.get_mut(&ticket.partition) else {
            return;
        };
        let was_over = owned.opened.is_over();
        owned.opened.settle(ticket.form, owned.tracker.watermark());
        if !was_over {
            self.say_form(&ticket.partition);
        }
    }

    /// Tells the source in what form a partition is wanted.
    pub(super) fn say_form(&mut self, tp: &TopicPartition) {
        if let Some(owned) = self.owned.get(tp) {
            let form = self.form(owned);
            self.source.hand_over(tp, form);
        }
    }

    /// The same for all of them: what decides it has changed.
    pub(super) fn say_forms(&mut self) {
        let all: Vec<TopicPartition> = self.owned.keys().cloned().collect();
        for tp in &all {
            self.say_form(tp);
        }
    }

    fn form(&self, owned: &Owned<S::Record, K>) -> Form {
        let Passing::Whole(codecs) = self.passing else {
            return Form::Records;
        };
        if !matches!(owned.phase, Phase::Flowing) || !owned.opened.is_over() {
            return Form::Records;
        }
        let topic = owned.chain.as_ref().and_then(|c| c.pass_through());
        let Some(target) = topic.and_then(|topic| self.targets.get(topic)) else {
            return Form::Records;
        };
        let bytes = match target.record_bytes {
            u64::MAX => UNKNOWN_LIMIT,
            said => said,
        };
        Form::Whole(Takes {
            bytes: usize::try_from(bytes).unwrap_or(usize::MAX),
            codecs,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refusal_in_a_row_opens_twice_as_many_batches() {
        let mut opened = Opened::default();
        assert!(opened.is_over());
        opened.refuse(Offset(9));
        opened.settle(lane::Form::Records, Offset(9));
        assert!(!opened.is_over());
        opened.settle(lane::Form::Records, Offset(10));
        assert!(opened.is_over(), "the batch is behind");
        opened.refuse(Offset(19));
        opened.settle(lane::Form::Records, Offset(20));
        assert!(!opened.is_over());
        opened.settle(lane::Form::Records, Offset(30));
        assert!(opened.is_over());
        opened.settle(lane::Form::Whole, Offset(40));
        opened.refuse(Offset(49));
        opened.settle(lane::Form::Records, Offset(50));
        assert!(opened.is_over(), "one has passed in between");
    }
}
