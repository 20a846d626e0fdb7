//! A worker: the thread that owns one group member, the trackers of its partitions, and its commits.
//!
//! [`Worker::run`] is the summary: acks first, then what the scout and the keeper found, then what
//! is due, then the next event of the source. One owner, so there is no lock order to know; and a
//! rebalance is an event like any other, drained at our own pace.
//!
//! - `assign`: partitions arrive, get their position, wait for their target topic, are placed
//! - `batch`: fetch → register → handlers → produce → ack → resolve
//! - `whole`: batches that pass as they came
//! - `hold`: budget spent, fetching waits
//! - `recover`: a failed delivery is a barrier; rewind, halt, retry
//! - `isolate`: a bad record stands alone, then `on_error` decides
//! - `change`: new settings, between two batches
//! - `silence`: a producer that says nothing is made anew
//! - `commit`: watermark → commit
//! - `fence`: who writes at the target, so that a zombie is shut out
//! - `release`: revoke, loss and the final drain

mod assign;
mod batch;
mod change;
mod commit;
mod fence;
mod hold;
mod isolate;
mod owned;
mod recover;
mod release;
mod report;
mod silence;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;
mod ticket;
mod whole;

use crate::flow::budget::Budget;
use crate::flow::lane::{Handled, Lane, Lease, LeaseState, Rules};
use crate::flow::listener::Announcer;
use crate::flow::passing::Passing;
use crate::flow::scout::{Finding, Inquiry};
use crate::flow::sinks::Sinks;
use crate::flow::stage::{Ended, Stage};
use crate::flow::target::{Ask, TargetView};
use crate::flow::verifier::Verify;
use crate::flow::watch::Troubles;
use crate::flow::{Control, FlowSpec, Unconfirmed};
use crate::observe::{FlowView, Reason};
use crate::plane::{Abandon, FetchEvent, Outcome, Sink, Source};
use crate::record::TopicPartition;
use commit::Committer;
use crossbeam_channel::{Receiver, Sender};
use fence::Lacking;
use owned::Owned;
use release::Release;
use silence::Silence;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use ticket::Tickets;

/// How long a poll waits when there is nothing to do.
const IDLE_POLL: Duration = Duration::from_millis(100);

/// What other threads tell a worker.
pub(crate) enum Note {
    /// What became of records at the target.
    Outcomes(Vec<Outcome>),
    /// What became of a batch in a handler thread.
    Handled { ticket: u32, handled: Handled },
    /// A handler thread panicked outside a handler.
    LaneDied,
    /// What the scout found.
    Finding(Finding),
    /// The target's topics changed.
    TargetChanged,
    /// What the flow is told to do.
    Control(Control),
}

/// How a worker ended.
#[derive(Debug)]
pub(crate) enum WorkerExit {
    /// All drained and committed.
    Drained,
    /// Stopped with this unconfirmed.
    Unconfirmed(Vec<Unconfirmed>),
    /// Cannot go on.
    Failed(Reason),
    /// `on_error: abort_route`.
    AbortRoute(Reason),
}

/// What a worker is made of.
pub(crate) struct WorkerParts<S: Source, K: Sink> {
    pub(crate) index: u8,
    pub(crate) spec: Arc<FlowSpec>,
    pub(crate) subject: Arc<str>,
    pub(crate) view: Arc<FlowView>,
    pub(crate) source: S,
    pub(crate) inbox: Receiver<Note>,
    pub(crate) scout: Sender<Inquiry>,
    pub(crate) verifier: Sender<Verify>,
    pub(crate) keeper: Sender<Ask>,
    pub(crate) targets: Arc<TargetView>,
    pub(crate) sinks: Arc<Sinks<K>>,
    pub(crate) stage: Stage<S::Record, K>,
    /// Handles batches of partitions in isolation, on this thread.
    pub(crate) isolation_lane: Lane<K>,
    pub(crate) lease: Arc<Lease>,
    pub(crate) announcer: Announcer,
    pub(crate) troubles: Arc<Troubles>,
    /// How long the group may owe an assignment before the member is made anew.
    pub(crate) group_patience: Duration,
    /// How long a producer may say nothing of a record before it is made anew.
    pub(crate) sink_patience: Duration,
}

/// A worker at work.
pub(crate) struct Worker<S: Source, K: Sink> {
    index: u8,
    spec: Arc<FlowSpec>,
    subject: Arc<str>,
    source_name: Arc<str>,
    view: Arc<FlowView>,
    source: S,
    inbox: Receiver<Note>,
    scout: Sender<Inquiry>,
    verifier: Sender<Verify>,
    keeper: Sender<Ask>,
    targets: Arc<TargetView>,
    sinks: Arc<Sinks<K>>,
    stage: Stage<S::Record, K>,
    isolation_lane: Lane<K>,
    /// What the route says of records now; each batch takes it along.
    rules: Arc<Rules>,
    /// Whether whole batches pass.
    passing: Passing,
    /// The producer of partitions in isolation.
    quarantine: Option<Arc<K>>,
    lease: Arc<Lease>,
    announcer: Announcer,
    budget: Budget,
    tickets: Tickets,
    owned: BTreeMap<TopicPartition, Owned<S::Record, K>>,
    /// What may be copied again of partitions that the group took away without asking, until it is known who has them.
    left_behind: BTreeMap<TopicPartition, Unconfirmed>,
    /// Assignments so far; tells apart two lives of one partition here.
    lives: u64,
    /// Questions for positions so far.
    questions: u64,
    committer: Committer,
    release: Option<Release>,
    /// Partitions that lack a producer id.
    lacking: Lacking,
    /// The topics that match, with their partition counts.
    topics: BTreeMap<String, i32>,
    /// Since when fetching is held for want of budget.
    held_since: Option<Instant>,
    /// Whether placed partitions are paused for want of budget.
    paused_all: bool,
    draining: Option<Instant>,
    /// The group is being left to be joined again.
    rejoining: bool,
    /// Since when the group owes an assignment.
    awaiting_group: Option<Instant>,
    group_patience: Duration,
    silence: Silence,
    exit: Option<WorkerExit>,
    next_report: Instant,
    next_retry_look: Instant,
    next_trickle: Instant,
    next_stuck_look: Instant,
    source_is_usable: bool,
    troubles: Arc<Troubles>,
}

impl<S: Source, K: Sink> Worker<S, K> {
    pub(crate) fn new(parts: WorkerParts<S, K>) -> Self {
        let now = Instant::now();
        let committer = Committer::new(&parts.spec.route, now);
        Self {
            index: parts.index,
            source_name: parts.spec.source.name.as_str().into(),
            rules: Arc::new(Rules::of(&parts.spec.route)),
            passing: parts.spec.passing(),
            budget: Budget::new(parts.spec.worker_bytes(), now),
            spec: parts.spec,
            subject: parts.subject,
            view: parts.view,
            source: parts.source,
            inbox: parts.inbox,
            scout: parts.scout,
            verifier: parts.verifier,
            keeper: parts.keeper,
            targets: parts.targets,
            sinks: parts.sinks,
            stage: parts.stage,
            isolation_lane: parts.isolation_lane,
            quarantine: None,
            lease: parts.lease,
            announcer: parts.announcer,
            tickets: Tickets::default(),
            owned: BTreeMap::new(),
            left_behind: BTreeMap::new(),
            lives: 0,
            questions: 0,
            committer,
            release: None,
            lacking: Lacking::default(),
            topics: BTreeMap::new(),
            held_since: None,
            paused_all: false,
            draining: None,
            rejoining: false,
            awaiting_group: None,
            group_patience: parts.group_patience,
            silence: Silence::new(parts.sink_patience, now),
            exit: None,
            next_report: now,
            next_retry_look: now,
            next_trickle: now,
            next_stuck_look: now,
            source_is_usable: true,
            troubles: parts.troubles,
        }
    }

    /// Works until the flow is told to stop, or cannot go on.
    pub(crate) fn run(mut self) -> WorkerExit {
        while self.exit.is_none() {
            self.read_inbox();
            self.tick();
            if self.exit.is_some() {
                break;
            }
            if self.is_held() {
                self.wait_for_room();
            } else {
                let event = self.source.poll(self.poll_timeout());
                match self.lease.stamp() {
                    LeaseState::Current => self.serve(event),
                    LeaseState::Lapsed => self.awake(event),
                }
            }
        }
        self.end()
    }

    /// Takes every note that is there.
    fn read_inbox(&mut self) {
        loop {
            match self.inbox.try_recv() {
                Ok(note) => self.take(note),
                Err(crossbeam_channel::TryRecvError::Empty) => return,
                Err(crossbeam_channel::TryRecvError::Disconnected) => {
                    self.finish(self.stopped());
                    return;
                }
            }
        }
    }

    fn take(&mut self, note: Note) {
        match note {
            Note::Outcomes(outcomes) => outcomes.into_iter().for_each(|o| self.outcome(o)),
            Note::Handled { ticket, handled } => self.handled(ticket, handled),
            Note::LaneDied => {
                let detail = "a handler thread panicked".to_owned();
                self.finish(WorkerExit::Failed(Reason::Panic { detail }));
            }
            Note::Finding(finding) => self.found(finding),
            Note::TargetChanged => self.target_changed(),
            Note::Control(Control::Drain { deadline }) => self.drain(deadline),
            // Whoever waits for it hears when the last worker has let go of the word.
            Note::Control(Control::Change(change)) => self.change(change.route),
            Note::Control(Control::Abort) => {
                self.finish(self.stopped());
            }
        }
    }

    fn found(&mut self, finding: Finding) {
        match finding {
            Finding::Topics(topics) => self.topics_found(topics),
            Finding::Resolved { id, resolved } => self.resolved(id, resolved),
            Finding::CommitStart { id, entries } => self.commit_start(id, entries),
            Finding::Verified { id, ids } => self.verified(id, ids),
        }
    }

    /// What is due by the clock.
    fn tick(&mut self) {
        let now = Instant::now();
        self.budget.tick(now);
        self.look_for_stuck(now);
        self.look_for_group(now);
        self.look_for_silence(now);
        self.retry_due(now);
        self.look_for_ids();
        self.commit_due(now);
        self.release_step(now);
        if now >= self.next_report {
            self.report();
            self.next_report = now + Duration::from_secs(1);
        }
    }

    fn serve(&mut self, event: FetchEvent<S::Record>) {
        match event {
            FetchEvent::Batch(batch) => self.fetched(batch),
            FetchEvent::Run(run) => self.run_fetched(run),
            FetchEvent::Assigned(partitions) => self.assigned(partitions),
            FetchEvent::Revoked(partitions) => self.revoked(partitions),
            FetchEvent::Lost(partitions) => self.lost(&partitions),
            FetchEvent::End(partition, offset) => self.end_reached(&partition, offset),
            FetchEvent::Committed(answer) => self.committed(answer),
            FetchEvent::OutOfRange(partition) => self.out_of_range(&partition),
            FetchEvent::Unreadable { partition, detail } => self.unreadable(&partition, detail),
            FetchEvent::PartitionError {
                partition,
                detail,
                kind,
            } => self.partition_error(&partition, detail, kind),
            FetchEvent::Fatal(detail) => {
                self.source_is_usable = false;
                self.finish(WorkerExit::Failed(Reason::Client { detail }));
            }
            FetchEvent::Idle => {}
        }
    }

    /// The process stood still for so long that the group may have moved on. What was fetched before
    /// is not trusted: everything goes back to its watermark and begins again with one record, after
    /// the group had time to tell us.
    fn awake(&mut self, event: FetchEvent<S::Record>) {
        tracing::warn!(event = "awake", subject = %self.subject, "the process stood still; what was fetched before is dropped");
        let now = Instant::now();
        for tp in self.placed() {
            let detail = "the process stood still; waiting for the group".to_owned();
            self.halt_now(&tp, Reason::Client { detail });
        }
        for owned in self.owned.values_mut().filter(|o| !o.placed) {
            owned.resolve_anew(now);
        }
        let is_old = matches!(
            event,
            FetchEvent::Batch(_) | FetchEvent::Run(_) | FetchEvent::End(..)
        );
        if !is_old {
            self.serve(event);
        }
    }

    fn poll_timeout(&self) -> Duration {
        // In a release every acknowledgement counts, and so does whatever holds up a partition's first record: look often.
        if self.release.is_some() || self.committer.is_busy() || self.lacking.is_expecting() {
            Duration::from_millis(5)
        } else {
            IDLE_POLL
        }
    }

    fn placed(&self) -> Vec<TopicPartition> {
        self.owned
            .values()
            .filter(|o| o.placed)
            .map(|o| o.id.clone())
            .collect()
    }

    fn finish(&mut self, exit: WorkerExit) {
        self.exit.get_or_insert(exit);
    }

    /// Leaves the group and says how it ended.
    fn end(mut self) -> WorkerExit {
        let exit = self.exit.take().unwrap_or_else(|| self.stopped());
        let patience = match self.draining {
            Some(deadline) => deadline
                .saturating_duration_since(Instant::now())
                .max(Duration::from_millis(500)),
            None => Duration::from_secs(2),
        };
        self.let_go_of_records();
        let lanes = self.stage.end(patience / 2);
        for tp in self.owned.keys() {
            self.view.forget(tp);
        }
        match lanes {
            Ended::All if self.troubles.source_is_away() => {
                self.source.abandon(Abandon::ClusterAway);
            }
            Ended::All if self.source_is_usable => self.source.leave(patience / 2),
            Ended::All => {}
            // A handler that does not return holds records: the client must live as long.
            Ended::NotAll => self.source.abandon(Abandon::RecordsHeld),
        }
        exit
    }
}

impl<S: Source, K: Sink> Worker<S, K> {
    /// Nothing of ours goes on after the group is left: lanes throw away what they have queued, what
    /// is in flight is purged (whoever owns the partition next writes it again), and no record is
    /// held any more, since none may outlive the client that fetched it.
    fn let_go_of_records(&mut self) {
        for owned in self.owned.values_mut() {
            owned.gate.close();
            owned.backlog.clear();
            owned.lone = None;
            if owned.in_flight > 0
                && let Some(sink) = owned.sink.take()
            {
                sink.purge();
            }
        }
    }
}

impl<S: Source, K: Sink> Drop for Worker<S, K> {
    /// Also after a panic: the fields, the member among them, are dropped after this.
    fn drop(&mut self) {
        self.let_go_of_records();
        if self.stage.end(Duration::from_secs(1)) == Ended::NotAll {
            self.source.abandon(Abandon::RecordsHeld);
        }
    }
}
