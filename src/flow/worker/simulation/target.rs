//! The target and the producers to it: what is in flight, what arrives, what fails.

use super::fence::Holder;
use super::log::outputs;
use super::rare::Rare;
use super::settings::{DEAD, chain_of};
use super::world::{Place, Shared, World};
use crate::config::spec::OnError;
use crate::handler::FailureCode;
use crate::plane::*;
use crate::record::Record;
use crossbeam_channel::{Receiver, Sender};
use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};

/// A record at a producer.
#[derive(Clone)]
pub(super) struct Sent {
    pub(super) number: usize,
    pub(super) partition: i32,
    output: usize,
    /// The chain that made it; `None` for a dead letter.
    pub(super) chain: Option<u32>,
    token: Token,
    pub(super) writer: Writer,
    pub(super) holder: Holder,
}

/// What a failed record's fate is at the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// It never came.
    Lost,
    /// It is there, only the word of it got lost.
    There,
}

/// A producer.
#[derive(Default)]
pub(super) struct Handle {
    pub(super) in_flight: Vec<Sent>,
    /// What the worker has not been told yet.
    pub(super) reports: VecDeque<Report>,
    is_dead: bool,
}

/// What became of a record, and of which partition it was, if it failed and that matters still.
pub(super) struct Report {
    pub(super) outcome: Outcome,
    pub(super) partition: i32,
    pub(super) failed: Option<i32>,
}

impl World {
    /// The first record in flight of each partition at each producer.
    fn heads(&self) -> Vec<(usize, usize)> {
        let mut heads = Vec::new();
        for (handle, at) in self.handles.iter().enumerate() {
            let mut seen = BTreeSet::new();
            for (index, sent) in at.in_flight.iter().enumerate() {
                if seen.insert((sent.partition, sent.chain)) {
                    heads.push((handle, index));
                }
            }
        }
        heads
    }

    fn take_head(&mut self, pick: usize) -> Option<(usize, Sent)> {
        let heads = self.heads();
        let (handle, index) = *heads.get(pick % heads.len().max(1))?;
        Some((handle, self.handles[handle].in_flight.remove(index)))
    }

    /// The worker knows, or has reason to think, that it is there.
    fn arrive_known(&mut self, sent: &Sent) {
        if self.is_refused(sent) || self.turn_away(sent).is_some() {
            return;
        }
        let by = (self.flow, self.log(sent.partition).life);
        self.records[sent.number].arrived_by = Some(by);
        self.is_there(sent);
    }

    /// It arrives, and nobody hears of it.
    fn arrive(&mut self, sent: &Sent) {
        if !self.is_refused(sent) && self.turn_away(sent).is_none() {
            self.is_there(sent);
        }
    }

    fn is_there(&mut self, sent: &Sent) {
        let entry = &mut self.records[sent.number];
        match sent.chain {
            None => entry.is_letter = true,
            Some(chain) => drop(entry.arrived.insert((chain, sent.output))),
        }
    }

    /// Whether the target refuses it for what it is.
    fn is_refused(&self, sent: &Sent) -> bool {
        sent.chain.is_some() && self.records[sent.number].is_bad
    }

    /// The target takes one record, unless it is a bad one.
    pub(super) fn ack(&mut self, pick: usize) {
        let Some((handle, sent)) = self.take_head(pick) else {
            return;
        };
        if self.is_refused(&sent) {
            let kind = FaultKind::Record(FailureCode::RecordTooLarge);
            self.report_failure(handle, &sent, kind);
            return self.end(handle, sent.writer, Answer::Lost);
        }
        if let Some(kind) = self.turn_away(&sent) {
            self.report_failure(handle, &sent, kind);
            return self.end(handle, sent.writer, Answer::Lost);
        }
        self.arrive_known(&sent);
        let outcome = Outcome::Acked {
            ticket: sent.token.ticket,
            count: 1,
            furthest: sent.token.distance,
        };
        self.handles[handle].reports.push_back(Report {
            outcome,
            partition: sent.partition,
            failed: None,
        });
    }

    /// One record fails; of a broken producer all do.
    pub(super) fn fail(&mut self, pick: usize, kind: FaultKind, answer: Answer) {
        let Some((handle, sent)) = self.take_head(pick) else {
            return;
        };
        if answer == Answer::There {
            self.arrive(&sent);
        }
        self.report_failure(handle, &sent, kind);
        if kind == FaultKind::Collateral {
            if self.places[sent.partition as usize] == Place::Revoking {
                self.seen.note(Rare::ProducerDiesInRevoke);
            }
            self.end(handle, sent.writer, answer);
        }
    }

    fn report_failure(&mut self, handle: usize, sent: &Sent, kind: FaultKind) {
        self.fences.spoil(sent.writer);
        let outcome = Outcome::Failed {
            ticket: sent.token.ticket,
            distance: sent.token.distance,
            fault: fault(kind),
        };
        self.handles[handle].reports.push_back(Report {
            outcome,
            partition: sent.partition,
            failed: Some(sent.partition),
        });
    }

    /// A batch is not taken: what is behind it goes down with it, of its writer or of its whole producer.
    fn end(&mut self, handle: usize, writer: Writer, answer: Answer) {
        match self.fences.numbers {
            Numbers::OfPlane => self.kill(handle, answer),
            Numbers::OfWriters => {
                let in_flight = std::mem::take(&mut self.handles[handle].in_flight);
                let (of_it, others) = in_flight.into_iter().partition(|s| s.writer == writer);
                self.handles[handle].in_flight = others;
                self.fail_all(handle, of_it, answer);
            }
        }
    }

    /// A producer ends; of what it had in flight nobody knows whether it is there.
    fn kill(&mut self, handle: usize, answer: Answer) {
        self.handles[handle].is_dead = true;
        let in_flight = std::mem::take(&mut self.handles[handle].in_flight);
        self.fail_all(handle, in_flight, answer);
    }

    fn fail_all(&mut self, handle: usize, all: Vec<Sent>, answer: Answer) {
        for sent in all {
            if answer == Answer::There {
                self.arrive(&sent);
            }
            self.report_failure(handle, &sent, FaultKind::Collateral);
        }
    }

    /// The worker gives up what is in flight.
    fn purge(&mut self, handle: usize, answer: Answer) {
        if answer == Answer::There {
            for sent in self.handles[handle].in_flight.clone() {
                self.arrive_known(&sent);
            }
        }
        self.kill(handle, answer);
    }

    /// Producers end with their process, and nobody hears of it.
    pub(super) fn kill_all(&mut self, answer: Answer) {
        for handle in 0..self.handles.len() {
            self.kill(handle, answer);
            self.handles[handle].reports.clear();
        }
    }

    fn enqueue(&mut self, handle: usize, sent: Sent) -> Result<(), ProduceFault> {
        if self.handles[handle].is_dead || self.fences.is_broken(sent.writer) {
            return Err(fault(FaultKind::Collateral));
        }
        self.check_writer(&sent);
        if let Some(kind) = self.refusal.take() {
            return Err(fault(kind));
        }
        self.check_settings(&sent);
        if self.is_stray(sent.number) {
            self.seen.note(Rare::Stray);
        } else {
            self.check_order(handle, &sent);
        }
        self.handles[handle].in_flight.push(sent);
        Ok(())
    }

    /// A next life here does not wait for what the one before left behind.
    pub(super) fn forget_failures(&mut self, partition: i32) {
        let reports = self.handles.iter_mut().flat_map(|at| &mut at.reports);
        let of_reports = reports.map(|report| &mut report.failed);
        let posted = self.posted.iter_mut().map(|(_, failed)| failed);
        for failed in of_reports.chain(posted) {
            if *failed == Some(partition) {
                *failed = None;
            }
        }
    }

    /// A record is handled as the settings say that held when its batch was taken, or newer ones.
    fn check_settings(&mut self, sent: &Sent) {
        let entry = &self.records[sent.number];
        let (offset, from) = (entry.offset, entry.fetched_under.unwrap_or(self.taken));
        let Some(chain) = sent.chain else {
            let is_wanted = self.was_to(sent.number, OnError::DeadLetter);
            return self.holds(is_wanted, || format!("{offset} is a dead letter, unasked"));
        };
        let (oldest, newest) = (self.settings[from].chain, self.settings[self.taken].chain);
        self.holds((oldest..=newest).contains(&chain), || {
            format!(
                "{offset} was handled by chain {chain}, to choose from were {oldest} to {newest}"
            )
        });
        if chain < newest {
            self.seen.note(Rare::FormerChain);
        }
    }

    fn check_order(&mut self, handle: usize, sent: &Sent) {
        let (number, partition) = (sent.number, sent.partition);
        let offset = self.records[number].offset;
        let place = self.places[partition as usize];
        self.holds(place != Place::Elsewhere, || {
            format!("I3: {partition}@{offset} was enqueued after it was let go")
        });
        // What failed and is not heard of comes after this one as well.
        let at_others = self.handles.iter().enumerate().any(|(other, at)| {
            let has = |failed: &Option<i32>| *failed == Some(partition);
            let is_of_it = |s: &Sent| s.partition == partition && !self.is_stray(s.number);
            other != handle
                && (at.in_flight.iter().any(is_of_it)
                    || at.reports.iter().any(|report| has(&report.failed))
                    || self
                        .posted
                        .iter()
                        .any(|(at, failed)| *at == other && has(failed)))
        });
        self.holds(!at_others, || {
            format!("I2: {partition}@{offset} may overtake what is at another producer")
        });
        let log = self.log_mut(partition);
        let next = std::mem::replace(&mut log.next, offset);
        self.holds(next <= offset, || {
            format!("I2: {partition}@{offset} was enqueued, though {next} was or is to be")
        });
        if let Some(chain) = sent.chain {
            let before = std::mem::replace(&mut self.log_mut(partition).chain, chain);
            self.holds(before <= chain, || {
                format!("{partition}@{offset} was handled by chain {chain}, behind {before}")
            });
        }
        if !std::mem::replace(&mut self.records[number].entered, true) {
            self.check_first(partition, offset);
        }
    }

    /// A record is enqueued for the first time: all before it were, but for what is not to be copied.
    fn check_first(&mut self, partition: i32, offset: i64) {
        let log = self.log(partition);
        let begun = log.begun.unwrap_or(0).min(offset);
        let before = log.at.range(begun..offset);
        let is_missing = |number: usize| {
            let entry = &self.records[number];
            !entry.entered && !entry.is_named && !self.is_dropped(number)
        };
        let skipped = before.filter(|(_, n)| is_missing(**n)).map(|(o, _)| *o);
        let skipped = skipped.collect::<Vec<_>>();
        self.holds(skipped.is_empty(), || {
            format!("I2: {partition}@{offset} was enqueued before {skipped:?}")
        });
    }

    /// The record that holds a partition, if its position is at one.
    pub(super) fn is_held_at(&self, partition: i32, position: i64) -> bool {
        let settings = self.settings();
        let first = self.log(partition).first_from(position);
        let entry = first.map(|number| &self.records[number]);
        settings.on_error == OnError::Stop
            && entry.is_some_and(|e| e.is_bad && outputs(e.offset, settings.shape) > 0)
    }
}

fn fault(kind: FaultKind) -> ProduceFault {
    ProduceFault {
        kind,
        detail: "simulated".into(),
    }
}

thread_local! {
    /// On a lane's thread: how it asks whether it may go on.
    pub(super) static GATEKEEPER: RefCell<Option<(Sender<()>, Receiver<()>)>> =
        const { RefCell::new(None) };
}

pub(super) struct FakeSink {
    shared: Shared,
    handle: usize,
}

impl FakeSink {
    pub(super) fn new(shared: &Shared) -> Self {
        let handle = shared.with(|w| {
            w.handles.push(Handle::default());
            w.handles.len() - 1
        });
        Self {
            shared: shared.clone(),
            handle,
        }
    }
}

impl Sink for FakeSink {
    /// The chain that it is of; `None` for the dead-letter topic.
    type Topic = Option<u32>;

    fn topic(&self, name: &str) -> Result<Option<u32>, ProduceFault> {
        let chain = chain_of(name);
        assert!(
            chain.is_some() || name == DEAD,
            "{name} is no topic of ours"
        );
        Ok(chain)
    }
    fn enqueue(
        &self,
        chain: &Option<u32>,
        _: i32,
        record: &Record<'_>,
        writer: Writer,
        token: Token,
    ) -> Result<(), ProduceFault> {
        GATEKEEPER.with_borrow(|keeper| {
            if let Some((asks, may)) = keeper {
                let _ = asks.send(());
                let _ = may.recv();
            }
        });
        let number = record.origin.timestamp.unwrap_or_default();
        let (flow, handle) = (self.shared.with(|w| w.flow), self.handle);
        let sent = Sent {
            writer,
            holder: Holder::Here { flow, handle },
            number: usize::try_from(number).unwrap(),
            partition: record.origin.partition,
            output: usize::from(record.value.as_deref() == Some(b"1")),
            chain: *chain,
            token,
        };
        self.shared.with(|w| w.enqueue(self.handle, sent))
    }
    fn fresh_ids(&self, count: usize) -> Result<Vec<i64>, ProduceFault> {
        // All but one are there at once.
        let all = 1.max(count.saturating_sub(1));
        let ids = (0..all).map(|_| self.shared.with(|w| w.fences.fresh_id()));
        Ok(ids.collect())
    }
    fn is_usable(&self) -> bool {
        self.shared.with(|w| !w.handles[self.handle].is_dead)
    }
    fn purge(&self) {
        // Every other purge comes too late: the records are there.
        self.shared.with(|w| {
            let answer = match w.handles.len() % 2 {
                0 => Answer::Lost,
                _ => Answer::There,
            };
            w.purge(self.handle, answer);
        });
    }
}
