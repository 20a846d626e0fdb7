//! Both clusters and the group, as slow and obvious as can be: what is written, what has arrived, what
//! is committed, and who owns what. Everything that the worker does is held against it at once.

use super::Start;
use crate::config::spec::OnError;
use crate::flow::worker::tests::{Made, tp};
use crate::handler::FailureCode;
use crate::plane::*;
use crate::record::{Record, TopicPartition};
use crossbeam_channel::{Receiver, Sender};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub(super) const PARTITIONS: i32 = 3;
pub(super) const DEAD: &str = "dead";
/// How a commit of the flow's start is told from others.
const START: &str = "start";

/// Whose a partition is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Elsewhere,
    Ours,
    /// The group wants it back and has no answer yet.
    Revoking,
    /// The group has given it away, and the worker has not heard.
    Lost,
}

/// One source partition, with what became of its records.
#[derive(Default)]
pub(super) struct Log {
    /// Offsets with a record. Between them are holes, behind them control records up to `end`.
    pub(super) offsets: Vec<i64>,
    pub(super) end: i64,
    /// Records that the target refuses for good.
    pub(super) bad: BTreeSet<i64>,
    pub(super) committed: i64,
    /// Where it was before a commit landed late.
    before_late: Option<i64>,
    /// Outputs that are at the target.
    pub(super) arrived: BTreeSet<(i64, usize)>,
    letters: BTreeSet<i64>,
    /// Offsets that were enqueued once.
    entered: BTreeSet<i64>,
    /// Nothing before it may be enqueued until a rewind.
    next: i64,
}

/// How many records a record becomes.
pub(super) fn outputs(offset: i64) -> usize {
    match offset % 4 {
        1 => 2,
        3 => 0,
        _ => 1,
    }
}

impl Log {
    pub(super) fn write(&mut self, hole: i64, bad: bool) {
        let offset = self.end + hole;
        self.offsets.push(offset);
        self.end = offset + 1;
        if bad && outputs(offset) > 0 {
            self.bad.insert(offset);
        }
    }

    /// How far it is committed. A commit of a former life that landed late may have set it back, which nobody hears of
    /// before the next one: records are repeated if everything ends in between.
    pub(super) fn reached(&self) -> i64 {
        self.committed
            .max(self.before_late.unwrap_or(self.committed))
    }

    /// Whether nobody needs to copy this record any more.
    pub(super) fn is_settled(&self, offset: i64, on_error: OnError) -> bool {
        let delivered = (0..outputs(offset)).all(|k| self.arrived.contains(&(offset, k)));
        let given_up = match on_error {
            OnError::Skip => self.bad.contains(&offset),
            OnError::DeadLetter => self.letters.contains(&offset),
            OnError::Stop | OnError::AbortRoute => false,
        };
        delivered || given_up
    }

    /// The first record below `until` that would be lost.
    pub(super) fn unsettled(&self, until: i64, on_error: OnError) -> Option<i64> {
        let mut below = self.offsets.iter().copied().filter(|o| *o < until);
        below.find(|o| !self.is_settled(*o, on_error))
    }
}

/// A record at a producer.
#[derive(Clone)]
pub(super) struct Sent {
    partition: i32,
    offset: i64,
    output: usize,
    is_letter: bool,
    token: Token,
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
    pub(super) failed: Option<i32>,
}

/// A commit on its way.
struct OnItsWay {
    entries: Vec<CommitEntry>,
    id: u64,
    landing: Landing,
}

/// When a commit may land.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Landing {
    /// While its partitions are here.
    InTime,
    /// Whenever it wants: the worker's deadline for it is over.
    Late,
    /// Never: the group has given its partitions away.
    Fenced,
}

pub(super) struct World {
    pub(super) logs: Vec<Log>,
    pub(super) places: Vec<Place>,
    /// The group waits for the answer to what it said last.
    pub(super) rebalancing: bool,
    pub(super) events: VecDeque<FetchEvent<Made>>,
    pub(super) fetching: BTreeMap<i32, i64>,
    pub(super) paused: BTreeSet<i32>,
    pub(super) handles: Vec<Handle>,
    commits: VecDeque<OnItsWay>,
    /// Failures that lie in the worker's inbox, by producer.
    pub(super) posted: Vec<(usize, Option<i32>)>,
    pub(super) start: Start,
    /// What the next enqueue is told.
    pub(super) refusal: Option<FaultKind>,
    pub(super) on_error: OnError,
    /// What must never happen, and did.
    pub(super) violations: Vec<String>,
}

impl World {
    pub(super) fn new(on_error: OnError, start: Start) -> Self {
        Self {
            logs: (0..PARTITIONS).map(|_| Log::default()).collect(),
            places: vec![Place::Elsewhere; PARTITIONS as usize],
            rebalancing: false,
            events: VecDeque::new(),
            fetching: BTreeMap::new(),
            paused: BTreeSet::new(),
            handles: Vec::new(),
            commits: VecDeque::new(),
            posted: Vec::new(),
            start,
            refusal: None,
            on_error,
            violations: Vec::new(),
        }
    }

    fn holds(&mut self, holds: bool, says: impl FnOnce() -> String) {
        if !holds {
            self.violations.push(says());
        }
    }

    // --- the source --------------------------------------------------------------------------

    /// Up to `count` records of a partition that is fetched.
    pub(super) fn fetch(&mut self, partition: i32, count: usize) -> Option<FetchEvent<Made>> {
        let from = *self.fetching.get(&partition)?;
        if self.paused.contains(&partition) {
            return None;
        }
        let log = &self.logs[partition as usize];
        let offsets = log.offsets.iter().copied().filter(|o| *o >= from);
        let offsets: Vec<i64> = offsets.take(count).collect();
        let Some(last) = offsets.last() else {
            self.fetching.insert(partition, log.end.max(from));
            return Some(FetchEvent::End(tp(partition), Offset(log.end.max(from))));
        };
        self.fetching.insert(partition, last + 1);
        let made = |offset: i64| Made {
            offset,
            value: match outputs(offset) {
                0 => b"[]".to_vec(),
                1 => b"[0]".to_vec(),
                _ => b"[0,1]".to_vec(),
            },
        };
        let records = offsets.into_iter().map(made).collect();
        Some(FetchEvent::Batch(Batch::new(tp(partition), records)))
    }

    /// Up to `count` records are not read, and fetching goes on behind them.
    pub(super) fn fetch_spoilt(
        &mut self,
        partition: i32,
        count: usize,
    ) -> Option<FetchEvent<Made>> {
        let Some(FetchEvent::Batch(_)) = self.fetch(partition, count) else {
            return None;
        };
        Some(FetchEvent::Unreadable {
            partition: tp(partition),
            detail: "simulated".into(),
        })
    }

    // --- the group ---------------------------------------------------------------------------

    fn chosen(&self, mask: u8, is: Place) -> Vec<TopicPartition> {
        let all = (0..PARTITIONS).filter(|p| mask & (1 << p) != 0);
        all.filter(|p| self.places[*p as usize] == is)
            .map(tp)
            .collect()
    }

    fn rebalance(&mut self, mask: u8, from: Place, to: Place) -> Option<Vec<TopicPartition>> {
        let chosen = self.chosen(mask, from);
        if self.rebalancing || chosen.is_empty() {
            return None;
        }
        for tp in &chosen {
            self.places[tp.partition as usize] = to;
        }
        self.rebalancing = true;
        Some(chosen)
    }

    pub(super) fn assign(&mut self, mask: u8) {
        if let Some(chosen) = self.rebalance(mask, Place::Elsewhere, Place::Ours) {
            self.events.push_back(FetchEvent::Assigned(chosen));
        }
    }

    pub(super) fn revoke(&mut self, mask: u8) {
        if let Some(chosen) = self.rebalance(mask, Place::Ours, Place::Revoking) {
            self.events.push_back(FetchEvent::Revoked(chosen));
        }
    }

    pub(super) fn lose(&mut self) {
        if let Some(chosen) = self.rebalance(0xff, Place::Ours, Place::Lost) {
            // Nobody knows the member any more, whoever waited for what it sent.
            for commit in &mut self.commits {
                commit.landing = Landing::Fenced;
            }
            self.events.push_back(FetchEvent::Lost(chosen));
        }
    }

    /// What is on its way lands whenever it wants, unless nobody knows its member.
    pub(super) fn commits_may_be_late(&mut self) {
        let in_time = |c: &&mut OnItsWay| c.landing == Landing::InTime;
        for commit in self.commits.iter_mut().filter(in_time) {
            commit.landing = Landing::Late;
        }
    }

    /// The start of every partition; what has a position keeps it.
    pub(super) fn start_entries(&self) -> Vec<CommitEntry> {
        let entry = |(partition, log): (i32, &Log)| CommitEntry {
            partition: tp(partition),
            offset: Offset(log.committed),
            leader_epoch: -1,
            metadata: START.to_owned(),
        };
        let mut entries: Vec<CommitEntry> = (0..).zip(&self.logs).map(entry).collect();
        if let Some(last) = entries.last_mut() {
            last.metadata.push_str(";s");
        }
        entries
    }

    /// Whoever has the partition now copies and commits some of it.
    pub(super) fn copy_elsewhere(&mut self, partition: i32, count: usize) {
        let place = self.places[partition as usize];
        if !matches!(place, Place::Elsewhere | Place::Lost) {
            return;
        }
        if self.start == Start::Ahead {
            if self.places[0] != Place::Elsewhere {
                return;
            }
            self.start = Start::Behind;
        }
        let on_error = self.on_error;
        let log = &mut self.logs[partition as usize];
        let from = log.committed;
        let next: Vec<i64> = log.offsets.iter().copied().filter(|o| *o >= from).collect();
        for offset in next.into_iter().take(count) {
            if log.bad.contains(&offset) {
                match on_error {
                    OnError::Skip => {}
                    OnError::DeadLetter => drop(log.letters.insert(offset)),
                    OnError::Stop | OnError::AbortRoute => return,
                }
            } else {
                log.arrived
                    .extend((0..outputs(offset)).map(|k| (offset, k)));
            }
            log.entered.insert(offset);
            log.committed = offset + 1;
        }
    }

    /// The broker takes the oldest commit that it was sent, or answers with an error; either way the
    /// answer is one.
    pub(super) fn answer_commit(&mut self, how: CommitFate) {
        let Some(OnItsWay {
            entries,
            id,
            landing,
        }) = self.commits.pop_front()
        else {
            return;
        };
        let lost = |e: &CommitEntry| self.places[e.partition.partition as usize] == Place::Lost;
        let is_fenced = landing == Landing::Fenced || entries.iter().any(lost);
        if how != CommitFate::Refused && !is_fenced {
            for entry in &entries {
                self.apply(entry, landing);
            }
        }
        let taken = how == CommitFate::Taken && !is_fenced;
        let results = entries.iter().map(|e| {
            let word = match how {
                CommitFate::PartlyRefused => Err("partly refused".to_owned()),
                _ => Ok(e.offset),
            };
            (e.partition.clone(), word)
        });
        let answer = CommitAnswer {
            id,
            results: results.collect(),
            error: (!taken && how != CommitFate::PartlyRefused).then(|| "refused".to_owned()),
        };
        self.events.push_back(FetchEvent::Committed(answer));
    }

    fn apply(&mut self, entry: &CommitEntry, landing: Landing) {
        let (partition, offset) = (entry.partition.partition, entry.offset.0);
        let is_start = entry.metadata.starts_with(START);
        // The start is committed for all by whoever has the first partition.
        let owner = if is_start { 0 } else { partition };
        let in_time = self.places[owner as usize] != Place::Elsewhere || landing == Landing::Late;
        self.holds(in_time, || {
            format!("I3: {partition}@{offset} was committed after it was let go")
        });
        let log = &mut self.logs[partition as usize];
        let before = std::mem::replace(&mut log.committed, offset);
        log.before_late = (landing == Landing::Late).then_some(before);
        let is_forward = offset >= before || landing == Landing::Late;
        self.holds(is_forward, || {
            format!("{partition} was committed back from {before} to {offset}")
        });
        if entry.metadata.ends_with(";s") {
            self.start = Start::Behind;
        }
        let log = &mut self.logs[partition as usize];
        let unsettled = log.unsettled(offset, self.on_error);
        self.holds(unsettled.is_none(), || {
            format!("lost: {partition}@{unsettled:?} lies below the commit {offset}")
        });
    }

    // --- the target --------------------------------------------------------------------------

    /// The first record in flight of each partition at each producer.
    fn heads(&self) -> Vec<(usize, usize)> {
        let mut heads = Vec::new();
        for (handle, at) in self.handles.iter().enumerate() {
            let mut seen = BTreeSet::new();
            for (index, sent) in at.in_flight.iter().enumerate() {
                if seen.insert((sent.partition, sent.is_letter)) {
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

    fn arrive(&mut self, sent: &Sent) {
        let log = &mut self.logs[sent.partition as usize];
        match sent.is_letter {
            true => drop(log.letters.insert(sent.offset)),
            false => drop(log.arrived.insert((sent.offset, sent.output))),
        }
    }

    /// The target takes one record, unless it is a bad one.
    pub(super) fn ack(&mut self, pick: usize) {
        let Some((handle, sent)) = self.take_head(pick) else {
            return;
        };
        let is_bad = self.logs[sent.partition as usize]
            .bad
            .contains(&sent.offset);
        if is_bad && !sent.is_letter {
            let kind = FaultKind::Record(FailureCode::RecordTooLarge);
            self.report_failure(handle, &sent, kind);
            return self.kill(handle, Answer::Lost);
        }
        self.arrive(&sent);
        let outcome = Outcome::Acked {
            ticket: sent.token.ticket,
            count: 1,
            furthest: sent.token.distance,
        };
        let failed = None;
        let reports = &mut self.handles[handle].reports;
        reports.push_back(Report { outcome, failed });
    }

    /// One record fails; of a broken producer all do.
    pub(super) fn fail(&mut self, pick: usize, kind: FaultKind, answer: Answer) {
        let Some((handle, sent)) = self.take_head(pick) else {
            return;
        };
        if answer == Answer::There
            && !self.logs[sent.partition as usize]
                .bad
                .contains(&sent.offset)
        {
            self.arrive(&sent);
        }
        self.report_failure(handle, &sent, kind);
        if kind == FaultKind::Collateral {
            self.kill(handle, answer);
        }
    }

    fn report_failure(&mut self, handle: usize, sent: &Sent, kind: FaultKind) {
        let outcome = Outcome::Failed {
            ticket: sent.token.ticket,
            distance: sent.token.distance,
            fault: fault(kind),
        };
        let failed = Some(sent.partition);
        let reports = &mut self.handles[handle].reports;
        reports.push_back(Report { outcome, failed });
    }

    /// A producer ends; of what it had in flight nobody knows whether it is there.
    fn kill(&mut self, handle: usize, answer: Answer) {
        self.handles[handle].is_dead = true;
        for sent in std::mem::take(&mut self.handles[handle].in_flight) {
            let is_bad = self.logs[sent.partition as usize]
                .bad
                .contains(&sent.offset);
            if answer == Answer::There && (sent.is_letter || !is_bad) {
                self.arrive(&sent);
            }
            self.report_failure(handle, &sent, FaultKind::Collateral);
        }
    }

    fn enqueue(&mut self, handle: usize, sent: Sent) -> Result<(), ProduceFault> {
        if self.handles[handle].is_dead {
            return Err(fault(FaultKind::Collateral));
        }
        if let Some(kind) = self.refusal.take() {
            return Err(fault(kind));
        }
        self.check_order(handle, &sent);
        self.handles[handle].in_flight.push(sent);
        Ok(())
    }

    /// A next life here does not wait for what the one before left behind.
    fn forget_failures(&mut self, partition: i32) {
        let reports = self.handles.iter_mut().flat_map(|at| &mut at.reports);
        let of_reports = reports.map(|report| &mut report.failed);
        let posted = self.posted.iter_mut().map(|(_, failed)| failed);
        for failed in of_reports.chain(posted) {
            if *failed == Some(partition) {
                *failed = None;
            }
        }
    }

    fn check_order(&mut self, handle: usize, sent: &Sent) {
        let (partition, offset) = (sent.partition, sent.offset);
        let place = self.places[partition as usize];
        self.holds(place != Place::Elsewhere, || {
            format!("I3: {partition}@{offset} was enqueued after it was let go")
        });
        // What failed and is not heard of comes after this one as well.
        let at_others = self.handles.iter().enumerate().any(|(other, at)| {
            let has = |failed: &Option<i32>| *failed == Some(partition);
            other != handle
                && (at.in_flight.iter().any(|s| s.partition == partition)
                    || at.reports.iter().any(|report| has(&report.failed))
                    || self
                        .posted
                        .iter()
                        .any(|(at, failed)| *at == other && has(failed)))
        });
        self.holds(!at_others, || {
            format!("I2: {partition}@{offset} may overtake what is at another producer")
        });
        let log = &mut self.logs[partition as usize];
        let next = std::mem::replace(&mut log.next, offset);
        let is_first = log.entered.insert(offset);
        let mut before = log
            .offsets
            .iter()
            .filter(|o| **o < offset && outputs(**o) > 0);
        let skipped = before.find(|o| !log.entered.contains(o)).copied();
        self.holds(next <= offset, || {
            format!("I2: {partition}@{offset} was enqueued, though {next} was or is to be")
        });
        self.holds(!is_first || skipped.is_none(), || {
            format!("I2: {partition}@{offset} was enqueued before {skipped:?}")
        });
    }
}

fn fault(kind: FaultKind) -> ProduceFault {
    ProduceFault {
        kind,
        detail: "simulated".into(),
    }
}

/// What a broker makes of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CommitFate {
    Taken,
    Refused,
    /// It is taken, and the answer gets lost.
    TakenInSilence,
    /// It is taken, and the answer names an error for each partition.
    PartlyRefused,
}

#[derive(Clone)]
pub(super) struct Shared(Arc<Mutex<World>>);

impl Shared {
    pub(super) fn new(world: World) -> Self {
        Self(Arc::new(Mutex::new(world)))
    }

    pub(super) fn with<T>(&self, f: impl FnOnce(&mut World) -> T) -> T {
        f(&mut self.0.lock().unwrap())
    }
}

pub(super) struct FakeSource(pub(super) Shared);

impl Source for FakeSource {
    type Record = Made;

    fn poll(&mut self, _: Duration) -> FetchEvent<Made> {
        FetchEvent::Idle
    }
    fn subscribe(&mut self, _: &[String]) -> Result<(), String> {
        Ok(())
    }
    fn place(&mut self, at: &[(TopicPartition, Offset)]) -> Result<(), String> {
        self.0.with(|w| {
            for (tp, offset) in at {
                let log = &w.logs[tp.partition as usize];
                let committed = log.committed;
                // It may have been asked before a commit of a former life landed late: the next one of this life puts
                // that right, and what is copied again until then is repeated.
                let is_position = offset.0 == committed || log.before_late == Some(offset.0);
                let place = w.places[tp.partition as usize];
                w.holds(place != Place::Ours || is_position, || {
                    format!("placed {tp} at {offset}, committed is {committed}")
                });
                w.holds(place != Place::Elsewhere, || {
                    format!("placed {tp}, which is not ours")
                });
                w.fetching.insert(tp.partition, offset.0);
                w.paused.remove(&tp.partition);
                w.logs[tp.partition as usize].next = offset.0;
            }
        });
        Ok(())
    }
    fn rewind(&mut self, partition: &TopicPartition, to: Offset) -> Result<(), String> {
        self.0.with(|w| {
            if let Some(at) = w.fetching.get_mut(&partition.partition) {
                *at = to.0;
                w.paused.remove(&partition.partition);
                w.logs[partition.partition as usize].next = to.0;
            }
        });
        Ok(())
    }
    fn pause(&mut self, partitions: &[TopicPartition]) {
        let all = partitions.iter().map(|tp| tp.partition);
        self.0.with(|w| w.paused.extend(all));
    }
    fn resume(&mut self, partitions: &[TopicPartition]) {
        self.0.with(|w| {
            w.paused
                .retain(|p| !partitions.iter().any(|tp| tp.partition == *p));
        });
    }
    fn release(&mut self, partitions: &[TopicPartition]) -> Result<(), String> {
        self.0.with(|w| {
            for tp in partitions {
                let mut in_flight = w.handles.iter().flat_map(|at| &at.in_flight);
                let has_any = in_flight.any(|sent| sent.partition == tp.partition);
                w.holds(!has_any, || {
                    format!("I2: {tp} was let go with records in flight")
                });
                w.fetching.remove(&tp.partition);
                w.places[tp.partition as usize] = Place::Elsewhere;
                w.forget_failures(tp.partition);
            }
            w.rebalancing = false;
        });
        Ok(())
    }
    fn commit(&mut self, entries: &[CommitEntry], id: u64) -> Result<(), String> {
        self.0.with(|w| {
            for entry in entries {
                let (partition, offset) = (entry.partition.partition, entry.offset.0);
                if entry.metadata.starts_with(START) {
                    continue;
                }
                let place = w.places[partition as usize];
                w.holds(place != Place::Elsewhere, || {
                    format!("I3: {partition}@{offset} is committed after it was let go")
                });
                let next = w.fetching.get(&partition).copied().unwrap_or(i64::MIN);
                w.holds(offset <= next, || {
                    format!("I1: {partition}@{offset} is committed, fetched is up to {next}")
                });
            }
            // A member that was thrown out and has not heard of it yet.
            let landing = match w.places.contains(&Place::Lost) {
                true => Landing::Fenced,
                false => Landing::InTime,
            };
            w.commits.push_back(OnItsWay {
                entries: entries.to_vec(),
                id,
                landing,
            });
        });
        Ok(())
    }
    fn abandon(&mut self, _: Abandon) {}
    fn renew(&mut self) -> Result<(), String> {
        Ok(())
    }
    fn leave(&mut self, _: Duration) {}
}

/// What a lane on a thread of its own says before each record, and when it is done.
pub(super) enum Said<N> {
    AtRecord,
    Done(N),
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
    /// Whether it is the dead-letter topic.
    type Topic = bool;

    fn topic(&self, name: &str) -> Result<bool, ProduceFault> {
        Ok(name == DEAD)
    }
    fn enqueue(
        &self,
        is_letter: &bool,
        _: i32,
        record: &Record<'_>,
        token: Token,
    ) -> Result<(), ProduceFault> {
        GATEKEEPER.with_borrow(|keeper| {
            if let Some((asks, may)) = keeper {
                let _ = asks.send(());
                let _ = may.recv();
            }
        });
        let sent = Sent {
            partition: record.origin.partition,
            offset: record.origin.offset,
            output: usize::from(record.value.as_deref() == Some(b"1")),
            is_letter: *is_letter,
            token,
        };
        self.shared.with(|w| w.enqueue(self.handle, sent))
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
            w.kill(self.handle, answer);
        });
    }
}
