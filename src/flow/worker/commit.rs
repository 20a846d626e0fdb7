//! watermark → commit: serial and proven (`engine.md` rules 1, 7, 13).
//!
//! A commit takes three steps. *Snapshot*: the watermarks that moved. *Verify*: the scout asks for
//! the ids of their topics; since ids never come back, an id that is the same after the snapshot was
//! the same all the time, and a topic that was deleted and created again under a live consumer is
//! caught before its offsets are written. *Send*, and wait for the broker's answer. One is under way
//! at a time; interval, revoke and drain all go through here.

use super::Worker;
use super::owned::{Phase, RetryHow, Standing};
use crate::config::spec::RouteSpec;
use crate::flow::position::{CommitMetadata, StartMark, WriterMark};
use crate::flow::scout::{TopicIdentity, TopicIdsNow, distinct_topics};
use crate::flow::tracker::Tracker;
use crate::flow::verifier::Verify;
use crate::observe::{Counters, Reason};
use crate::plan::Fingerprint;
use crate::plane::{CommitAnswer, CommitEntry, Offset, Sink, Source};
use crate::record::TopicPartition;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Partitions of one commit at most: larger requests fail whole.
const PARTITIONS: usize = 500;
/// Metadata of one commit at most, in bytes.
const METADATA: usize = 256 * 1024;
/// How soon a failed commit is repeated.
const AGAIN: Duration = Duration::from_millis(250);
/// How long an answer may take before the commit is made anew.
const PATIENCE: Duration = Duration::from_secs(30);

/// One watermark on its way to the broker.
#[derive(Clone, Debug)]
struct Taken {
    partition: TopicPartition,
    life: u64,
    offset: Offset,
    leader_epoch: i32,
    writer: Option<WriterMark>,
}

/// What the ids of topics say of a watermark.
enum Word {
    /// It is of the topic that is there now.
    Same,
    /// Its topic is gone, or another one.
    Other,
    /// The cluster did not say.
    Unclear,
    /// The partition is not ours any more.
    Left,
}

#[derive(Debug)]
enum Step {
    Verifying(Vec<Taken>),
    Sent(Vec<Taken>),
    /// A part of the flow's start.
    SentStart,
}

#[derive(Debug)]
struct UnderWay {
    id: u64,
    since: Instant,
    step: Step,
}

/// The commits of one worker.
#[derive(Debug)]
pub(super) struct Committer {
    interval: Duration,
    due: Instant,
    last_id: u64,
    under_way: Option<UnderWay>,
    /// The settings that each commit names.
    settings: Fingerprint,
    /// Parts of the flow's start still to send.
    start: VecDeque<Vec<CommitEntry>>,
}

impl Committer {
    pub(super) fn new(route: &RouteSpec, now: Instant) -> Self {
        Self {
            interval: route.commit_interval,
            settings: Fingerprint::of(route),
            due: now + route.commit_interval,
            last_id: 0,
            under_way: None,
            start: VecDeque::new(),
        }
    }

    /// Keeps to new settings from now on.
    pub(super) fn keep_to(&mut self, route: &RouteSpec, now: Instant) {
        self.interval = route.commit_interval;
        self.settings = Fingerprint::of(route);
        self.due = self.due.min(now + self.interval);
    }

    pub(super) fn is_busy(&self) -> bool {
        self.under_way.is_some()
    }

    /// Commits at the next opportunity, whatever the interval says.
    pub(super) fn hurry(&mut self, now: Instant) {
        self.due = self.due.min(now);
    }

    fn begin(&mut self, step: Step) -> u64 {
        self.last_id += 1;
        self.under_way = Some(UnderWay {
            id: self.last_id,
            since: Instant::now(),
            step,
        });
        self.last_id
    }

    /// Takes what is under way, if it is this one: late answers of given-up commits are ignored.
    fn take(&mut self, id: u64) -> Option<Step> {
        if self.under_way.as_ref().is_some_and(|u| u.id == id) {
            return self.under_way.take().map(|u| u.step);
        }
        None
    }
}

impl<S: Source, K: Sink> Worker<S, K> {
    /// Begins a commit when one is due.
    pub(super) fn commit_due(&mut self, now: Instant) {
        if let Some(under_way) = &self.committer.under_way {
            if now.duration_since(under_way.since) < PATIENCE {
                return;
            }
            tracing::warn!(event = "commit_unanswered", subject = %self.subject, "a commit was not answered in time; it is made again");
            Counters::add(&self.view.counters.commit_failures, 1);
            self.committer.under_way = None;
        }
        if self.is_too_late(now) {
            return;
        }
        if !self.committer.start.is_empty() {
            return self.send_start();
        }
        if now < self.committer.due {
            return;
        }
        self.committer.due = now + self.committer.interval;
        let taken = self.snapshot();
        if taken.is_empty() {
            return;
        }
        if taken.len() == PARTITIONS {
            self.committer.due = now;
        }
        let partitions: Vec<TopicPartition> = taken.iter().map(|t| t.partition.clone()).collect();
        let topics = distinct_topics(&partitions);
        let id = self.committer.begin(Step::Verifying(taken));
        let _ = self.verifier.send(Verify {
            worker: self.index,
            id,
            topics,
        });
    }

    /// Whether partitions leave without their commit: one that is sent now would land after they were let go (I3, found
    /// by the simulation). What is kept is committed afterwards.
    fn is_too_late(&self, now: Instant) -> bool {
        let release = self.release.as_ref();
        release.is_some_and(|release| release.is_over(now))
    }

    /// The watermarks that moved since their last commit, and those of partitions that may not write before one. Those of a
    /// topic that seems gone are asked for as well: a broker that has just been started may not know it for a while (B080).
    fn snapshot(&self) -> Vec<Taken> {
        self.owned
            .values()
            .filter(|o| o.is_resolved() && o.is_asked_for() && !o.fence.is_fenced())
            .filter(|o| o.is_moved() || o.awaits_claim())
            .take(PARTITIONS)
            .map(|o| Taken {
                partition: o.id.clone(),
                life: o.life,
                offset: o.tracker.watermark(),
                leader_epoch: o.leader_epoch,
                writer: o.fence.mark(),
            })
            .collect()
    }

    /// The scout's word on the topics of a snapshot.
    pub(super) fn verified(&mut self, id: u64, ids: TopicIdsNow) {
        let Some(Step::Verifying(taken)) = self.committer.take(id) else {
            return;
        };
        if self.is_too_late(Instant::now()) {
            return;
        }
        let ids = match ids {
            Ok(ids) => ids,
            Err(detail) => return self.commit_failed(&detail),
        };
        let mut same = Vec::with_capacity(taken.len());
        let mut unclear = false;
        for taken in taken {
            match self.word_on(&taken, &ids) {
                Word::Same => same.push(taken),
                Word::Other => self.topic_is_other(&taken.partition, &ids),
                Word::Unclear => unclear = true,
                Word::Left => {}
            }
        }
        if unclear {
            self.committer.due = Instant::now() + AGAIN;
        }
        self.send(same);
    }

    /// What the ids say of one watermark that was taken before they were asked.
    fn word_on(&mut self, taken: &Taken, ids: &HashMap<Arc<str>, TopicIdentity>) -> Word {
        let owned = self.owned.get_mut(&taken.partition);
        let Some(owned) = owned.filter(|o| o.life == taken.life) else {
            return Word::Left;
        };
        match (owned.topic_id.as_deref(), ids.get(&taken.partition.topic)) {
            (Some(was), Some(TopicIdentity::Is(now))) if was != now => Word::Other,
            (_, Some(TopicIdentity::Is(_) | TopicIdentity::Unknown)) => {
                owned.topic = Standing::There;
                Word::Same
            }
            (_, Some(TopicIdentity::Gone)) => Word::Other,
            (_, Some(TopicIdentity::Unclear) | None) => Word::Unclear,
        }
    }

    /// Found before a commit: the topic of a watermark is gone, or another one.
    fn topic_is_other(&mut self, tp: &TopicPartition, ids: &HashMap<Arc<str>, TopicIdentity>) {
        let Some(owned) = self.owned.get_mut(tp) else {
            return;
        };
        owned.topic.call_gone();
        let is_doubtful = owned.topic == Standing::Doubtful;
        match (owned.topic_id.clone(), ids.get(&tp.topic)) {
            (Some(was), Some(TopicIdentity::Is(now))) => {
                let now = now.clone();
                self.topic_replaced(tp, was, now, Offset(0));
            }
            // Gone: asked once more soon, then with every commit; the group tells us when it takes the partition away.
            _ if is_doubtful => self.committer.due = Instant::now() + AGAIN,
            _ => {}
        }
    }

    /// The topic was deleted and created again: named, and halted for good. What a live partition has
    /// fetched and where the group stands means nothing any more, so the worker joins anew; then the
    /// partition arrives here again, unplaced, with its position in the new topic.
    pub(super) fn topic_replaced(
        &mut self,
        tp: &TopicPartition,
        was: String,
        now: String,
        position: Offset,
    ) {
        let Some(owned) = self.owned.get(tp) else {
            return;
        };
        if matches!(owned.phase, Phase::Releasing) {
            return;
        }
        let live = owned.placed;
        let reason = Reason::TopicReplaced { was, now };
        if let Reason::TopicReplaced { was, now } = &reason {
            tracing::error!(event = "topic_replaced", subject = %self.subject, cluster = %self.source_name,
                topic = %tp.topic, partition = tp.partition, was, now, "{reason}");
        }
        self.halt_for_good(tp, reason, position);
        if live {
            self.rejoin();
        }
    }

    /// Halts a partition of which nothing may be committed or fetched any more.
    fn halt_for_good(&mut self, tp: &TopicPartition, reason: Reason, position: Offset) {
        if let Some(owned) = self.owned.get_mut(tp) {
            if owned.placed {
                self.source.pause(std::slice::from_ref(tp));
            }
            owned.gate.close();
            owned.backlog.clear();
            // What is in flight belongs to a life that is over.
            self.lives += 1;
            owned.life = self.lives;
            owned.in_flight = 0;
            owned.cost = 0;
            owned.sink = None;
            owned.fence.let_go();
            owned.topic = Standing::Replaced;
            owned.tracker = Tracker::new(position);
            owned.committed = None;
            owned.halt(reason, RetryHow::Never, Instant::now());
        }
    }

    fn send(&mut self, taken: Vec<Taken>) {
        if taken.is_empty() {
            return;
        }
        let target_cluster = self.targets.cluster_id().flatten();
        let mut bytes = 0;
        let entries: Vec<CommitEntry> = taken
            .iter()
            .map(|t| {
                let topic_id = self
                    .owned
                    .get(&t.partition)
                    .and_then(|o| o.topic_id.clone());
                let metadata = CommitMetadata {
                    topic_id,
                    target_cluster: target_cluster.clone(),
                    settings: Some(self.committer.settings),
                    writer: t.writer,
                    start: StartMark::Started,
                }
                .encode();
                bytes += metadata.len();
                CommitEntry {
                    partition: t.partition.clone(),
                    offset: t.offset,
                    leader_epoch: t.leader_epoch,
                    metadata,
                }
            })
            .collect();
        debug_assert!(bytes <= METADATA, "rule 13: 500 entries of about 90 bytes");
        let id = self.committer.begin(Step::Sent(taken));
        if let Err(detail) = self.source.commit(&entries, id) {
            self.committer.under_way = None;
            self.commit_failed(&detail);
        }
    }

    /// The broker's answer.
    pub(super) fn committed(&mut self, answer: CommitAnswer) {
        let Some(step) = self.committer.take(answer.id) else {
            return;
        };
        if let Some(error) = &answer.error {
            self.commit_failed(error);
            if matches!(step, Step::SentStart) {
                self.start_failed();
            }
            return;
        }
        match step {
            Step::Sent(taken) => self.committed_offsets(&taken, &answer),
            Step::SentStart => self.start_committed(&answer),
            Step::Verifying(_) => {}
        }
    }

    fn committed_offsets(&mut self, taken: &[Taken], answer: &CommitAnswer) {
        let mut failed = None;
        for (tp, result) in &answer.results {
            let Some(sent) = taken.iter().find(|t| t.partition == *tp) else {
                continue;
            };
            match result {
                Ok(_) => {
                    if let Some(owned) = self.owned.get_mut(tp).filter(|o| o.life == sent.life) {
                        owned.committed = Some(sent.offset);
                        owned.fence.stands(sent.writer);
                        self.view
                            .partition(tp, |v| v.committed = Some(sent.offset.0));
                    }
                }
                Err(error) => failed = Some(error.clone()),
            }
        }
        match failed {
            Some(error) => self.commit_failed(&error),
            None => Counters::add(&self.view.counters.commits, 1),
        }
        self.claimed();
    }

    /// "Rebalance in progress", "illegal generation" and their like are no more than "later": copying
    /// goes on, and the next commit says it all (B016, B023).
    fn commit_failed(&mut self, error: &str) {
        Counters::add(&self.view.counters.commit_failures, 1);
        tracing::debug!(event = "commit_failed", subject = %self.subject, error);
        self.committer.due = Instant::now() + AGAIN;
    }

    // --- the flow's start --------------------------------------------------------------------

    /// The scout resolved the start of all matching partitions; this worker commits it. All say `started`, since the mark
    /// must outlive any one topic. What is more than one commit goes part by part, the one that says it last; then all say
    /// it. From the first mark on others begin, and a start that is committed again would set them back: what fits one
    /// commit is committed once.
    /// The answer to an older question is stale: somebody else may have begun since.
    pub(super) fn commit_start(&mut self, id: u64, entries: Vec<CommitEntry>) {
        let asked =
            |o: &super::owned::Owned<_, _>| o.asked == id && matches!(o.phase, Phase::Resolving);
        // Whoever has the first partition commits the start: it may be somebody else by now, and those that were asked
        // for with it ask again (found by the simulation).
        let first = entries.first().and_then(|e| self.owned.get(&e.partition));
        if !first.is_some_and(asked) {
            if self.owned.values().any(asked) {
                self.start_failed();
            }
            return;
        }
        let mut marked = entries.clone();
        for entry in &mut marked {
            entry.metadata = entry.metadata.trim_end_matches(";s").to_owned() + ";s";
        }
        let unmarked = entries
            .chunks(PARTITIONS)
            .filter(|_| entries.len() > PARTITIONS);
        let parts = unmarked.chain(marked.chunks(PARTITIONS));
        self.committer.start = parts.map(<[_]>::to_vec).collect();
        if self.committer.start.is_empty() {
            self.start_failed();
        }
    }

    fn send_start(&mut self) {
        let Some(part) = self.committer.start.front().cloned() else {
            return;
        };
        let id = self.committer.begin(Step::SentStart);
        if let Err(detail) = self.source.commit(&part, id) {
            self.committer.under_way = None;
            self.commit_failed(&detail);
            self.start_failed();
        }
    }

    fn start_committed(&mut self, answer: &CommitAnswer) {
        if answer.results.iter().any(|(_, r)| r.is_err()) {
            return self.start_failed();
        }
        self.committer.start.pop_front();
        if self.committer.start.is_empty() {
            let waiting = self.unresolved();
            self.resolve(waiting);
        }
    }

    /// The start is not ours to commit any more; who waits for it asks again.
    pub(super) fn forget_start(&mut self) {
        if !self.committer.start.is_empty() {
            self.start_failed();
        }
    }

    /// The start is unfinished: it is resolved anew, keeping what is committed already.
    fn start_failed(&mut self) {
        self.committer.start.clear();
        let at = Instant::now() + AGAIN;
        for tp in self.unresolved() {
            if let Some(owned) = self.owned.get_mut(&tp) {
                owned.phase = Phase::ResolveLater {
                    at,
                    reason: Reason::ResolvingPositions,
                };
            }
        }
    }

    fn unresolved(&self) -> Vec<TopicPartition> {
        self.owned
            .values()
            .filter(|o| matches!(o.phase, Phase::Resolving))
            .map(|o| o.id.clone())
            .collect()
    }

    /// Whether the watermark of every one of `partitions` is committed.
    pub(super) fn is_committed(&self, partitions: &[TopicPartition]) -> bool {
        partitions
            .iter()
            .filter_map(|tp| self.owned.get(tp))
            .all(|o| {
                !o.placed
                    || o.has_vanished()
                    || o.fence.is_fenced()
                    || !o.is_resolved()
                    || o.committed == Some(o.tracker.watermark())
            })
    }
}
