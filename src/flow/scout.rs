//! The source side's questions: which topics match, where each partition starts, whether a topic
//! is still the same one, how far its end is.
//!
//! One thread per flow, so that a source that does not answer never holds up a poll loop
//! (`engine.md` rule 6). Positions are ours (rule 7): the client's reset policy is never asked.

use crate::client::admin::Observer;
use crate::client::native::OffsetSpec;
use crate::config::spec::{ClusterSpec, OnGap, Start, TopicSelection};
use crate::flow::position::{CommitMetadata, StartMark};
use crate::flow::target::{TargetView, check_expected};
use crate::observe::{Counters, FlowView, Reason, State};
use crate::plane::{CommitEntry, Offset};
use crate::record::TopicPartition;
use crossbeam_channel::{Receiver, RecvTimeoutError};
use rdkafka::types::RDKafkaErrorCode;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// How long one question to the source may take.
const ASK: Duration = Duration::from_secs(10);
/// How often ends are asked for, for the lag.
const ENDS: Duration = Duration::from_secs(2);
/// How long that may take: commits wait for the same thread.
const ENDS_ASK: Duration = Duration::from_secs(2);
/// How long it is left alone after it failed.
const ENDS_REST: Duration = Duration::from_secs(10);
/// How often `until: end` is checked.
const UNTIL: Duration = Duration::from_millis(500);
/// How often what is not wanted is checked.
const NEVER: Duration = Duration::from_secs(3600);
/// How long a source may stay silent before `until: end` gives up.
const UNTIL_PATIENCE: Duration = Duration::from_secs(30);

/// What the scout is asked.
pub(crate) enum Inquiry {
    /// Where do these assigned partitions start?
    Resolve {
        worker: u8,
        id: u64,
        partitions: Vec<TopicPartition>,
    },
    /// The position was refused: is it still in the log of the same topic?
    Recheck {
        worker: u8,
        id: u64,
        partition: TopicPartition,
        position: Offset,
        topic_id: Option<String>,
    },
    /// The flow ends.
    Stop,
}

/// What the scout tells a worker.
#[derive(Debug)]
pub(crate) enum Finding {
    /// The topics that match, with their partition counts. Told when they change.
    Topics(BTreeMap<String, i32>),
    /// Where partitions start: the answer to the question of this number.
    Resolved {
        id: u64,
        resolved: Vec<(TopicPartition, Resolution)>,
    },
    /// The flow's start: to be committed by this worker before anybody fetches.
    CommitStart { id: u64, entries: Vec<CommitEntry> },
    /// The topics' ids, for a commit.
    Verified { id: u64, ids: TopicIdsNow },
}

/// Ids of topics now; `Err` where the source could not be asked.
pub(crate) type TopicIdsNow = Result<HashMap<Arc<str>, TopicIdentity>, String>;

/// What a topic's id says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TopicIdentity {
    /// This one.
    Is(String),
    /// The cluster knows no ids.
    Unknown,
    /// There is no such topic.
    Gone,
    /// The cluster did not say (rights, an election): to be asked again.
    Unclear,
}

/// Where a partition starts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Resolution {
    /// Here.
    Position(Position),
    /// The start of all partitions has to be committed first, by another member.
    AwaitStart,
    /// Nowhere, for this reason, until somebody acts.
    Halt(Reason),
    /// The source could not be asked; to be asked again.
    Retry(Reason),
}

/// A position to fetch from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) offset: Offset,
    /// The topic's id, where the cluster knows ids.
    pub(crate) topic_id: Option<String>,
    /// Records that are gone, where `on_gap` says to go on.
    pub(crate) gap: Option<(i64, i64)>,
    /// The committed value, if there is one.
    pub(crate) committed: Option<Offset>,
}

/// What the scout is made of.
pub(crate) struct ScoutSpec {
    /// The client, shared with the verifier once it is made.
    pub(crate) observer: Arc<OnceLock<Arc<Observer>>>,
    pub(crate) source: Arc<ClusterSpec>,
    pub(crate) group: String,
    pub(crate) selection: TopicSelection,
    pub(crate) start: Start,
    pub(crate) on_gap: OnGap,
    pub(crate) interval: Duration,
    pub(crate) subject: Arc<str>,
    pub(crate) view: Arc<FlowView>,
    pub(crate) target: Arc<TargetView>,
    pub(crate) workers: u8,
    pub(crate) tell: Box<dyn Fn(u8, Finding) + Send>,
    /// Called when the source does not answer, or is another cluster than expected.
    pub(crate) trouble: Box<dyn Fn(Option<Reason>) + Send>,
    /// For `until: end`: called once, when it is reached or cannot be.
    pub(crate) until: Option<UntilDone>,
}

/// Called when `until: end` was reached (`None`), or will not be (the reason).
pub(crate) type UntilDone = Box<dyn Fn(Option<Reason>) + Send>;

/// Asks the source.
pub(crate) struct Scout {
    spec: ScoutSpec,
    identified: bool,
    matching: BTreeMap<String, i32>,
    known: bool,
    /// `until: end`: the ends captured at start.
    ends: Option<Vec<(TopicPartition, i64, i64)>>,
    silent_since: Option<Instant>,
}

impl Scout {
    pub(crate) fn new(spec: ScoutSpec) -> Self {
        Self {
            spec,
            identified: false,
            matching: BTreeMap::new(),
            known: false,
            ends: None,
            silent_since: None,
        }
    }

    /// Serves until it is told to stop, or nobody is left to ask anything.
    pub(crate) fn run(mut self, inquiries: &Receiver<Inquiry>) {
        let mut rounds = Rounds::new();
        loop {
            match inquiries.recv_deadline(rounds.next()) {
                Ok(Inquiry::Stop) | Err(RecvTimeoutError::Disconnected) => return,
                Ok(inquiry) => self.answer(inquiry),
                Err(RecvTimeoutError::Timeout) => self.rounds(&mut rounds),
            }
        }
    }

    fn answer(&mut self, inquiry: Inquiry) {
        match inquiry {
            Inquiry::Resolve {
                worker,
                id,
                partitions,
            } => self.resolve(worker, id, partitions),
            Inquiry::Recheck {
                worker,
                id,
                partition,
                position,
                topic_id,
            } => {
                let resolution = self
                    .recheck(&partition, position, topic_id)
                    .unwrap_or_else(Resolution::Retry);
                let resolved = vec![(partition, resolution)];
                (self.spec.tell)(worker, Finding::Resolved { id, resolved });
            }
            Inquiry::Stop => {}
        }
    }

    fn rounds(&mut self, rounds: &mut Rounds) {
        let now = Instant::now();
        if now >= rounds.discovery {
            let pause = match self.discover() {
                Ok(()) => {
                    (self.spec.trouble)(None);
                    self.spec.interval
                }
                Err(reason) => {
                    (self.spec.trouble)(Some(reason));
                    self.spec.interval.min(Duration::from_secs(1))
                }
            };
            rounds.discovery = Instant::now() + pause;
        }
        if now >= rounds.ends {
            let pause = match self.ask_ends() {
                Ok(()) => ENDS,
                Err(_) => ENDS_REST,
            };
            rounds.ends = Instant::now() + pause;
        }
        if now >= rounds.until {
            self.check_until();
            let pause = if self.spec.until.is_some() {
                UNTIL
            } else {
                NEVER
            };
            rounds.until = Instant::now() + pause;
        }
    }

    /// The client, once the cluster has answered and is the one that the file expects. The client is
    /// kept while it does not answer: dropping one whose cluster is away may block (B101).
    fn observer(&mut self) -> Result<&Observer, Reason> {
        let source = self.spec.observer.clone();
        if source.get().is_none() {
            let observer = Observer::new(
                &self.spec.source,
                &self.spec.group,
                self.spec.subject.clone(),
            )
            .map_err(|detail| Reason::Client { detail })?;
            let _ = source.set(Arc::new(observer));
        }
        let observer = source
            .get()
            .ok_or_else(|| self.unreachable("no client".into()))?;
        if !self.identified {
            // A metadata answer first: before it the cluster id is not known.
            observer
                .topics(ASK)
                .map_err(|detail| self.unreachable(detail))?;
            check_expected(&self.spec.source, observer.cluster_id(ASK).as_deref())?;
            self.identified = true;
        }
        self.spec
            .observer
            .get()
            .map(AsRef::as_ref)
            .ok_or_else(|| self.unreachable("no client".into()))
    }

    fn unreachable(&self, detail: String) -> Reason {
        Reason::Unreachable {
            cluster: self.spec.source.name.to_string(),
            detail,
        }
    }

    // --- discovery ---------------------------------------------------------------------------

    fn discover(&mut self) -> Result<(), Reason> {
        let observer = self.observer()?;
        observer.serve();
        let all = observer.topics(ASK);
        let all = all.map_err(|detail| self.unreachable(detail))?;
        let matching: BTreeMap<String, i32> = all
            .into_iter()
            .filter(|(topic, _)| self.spec.selection.selects(topic).is_some())
            .collect();
        if self.known && matching == self.matching {
            return Ok(());
        }
        tracing::info!(event = "topics_matched", subject = %self.spec.subject, topics = matching.len());
        self.known = true;
        self.matching = matching;
        self.spec
            .view
            .set_topics(self.matching.keys().cloned().collect());
        for worker in 0..self.spec.workers {
            (self.spec.tell)(worker, Finding::Topics(self.matching.clone()));
        }
        Ok(())
    }

    fn matching_partitions(&self) -> Vec<TopicPartition> {
        partitions_of(&self.matching)
    }

    // --- positions ---------------------------------------------------------------------------

    fn resolve(&mut self, worker: u8, id: u64, partitions: Vec<TopicPartition>) {
        match self.try_resolve(&partitions) {
            Ok(FlowStart::Behind(resolved)) => {
                (self.spec.tell)(worker, Finding::Resolved { id, resolved });
            }
            Ok(FlowStart::Ours(entries)) => {
                (self.spec.tell)(worker, Finding::CommitStart { id, entries });
            }
            Err(reason) => {
                let resolved = partitions
                    .into_iter()
                    .map(|tp| (tp, Resolution::Retry(reason.clone())))
                    .collect();
                (self.spec.tell)(worker, Finding::Resolved { id, resolved });
            }
        }
    }

    fn try_resolve(&mut self, assigned: &[TopicPartition]) -> Result<FlowStart, Reason> {
        let Some(target_cluster) = self.spec.target.cluster_id() else {
            return Err(Reason::ResolvingPositions);
        };
        if !self.known {
            self.discover()?;
        }
        let mut all = self.matching_partitions();
        all.extend(assigned.iter().cloned());
        all.sort();
        all.dedup();
        let observer = self.observer()?;
        let committed = observer.committed(&all, ASK);
        let committed = Committed::read(committed.map_err(|d| self.unreachable(d))?)?;
        if !committed.started {
            // The member that owns the first partition by name resolves the start for all.
            return if all.first().is_some_and(|first| assigned.contains(first)) {
                self.start_entries(&all, &committed, target_cluster)
                    .map(FlowStart::Ours)
            } else {
                let wait = |tp: &TopicPartition| (tp.clone(), Resolution::AwaitStart);
                Ok(FlowStart::Behind(assigned.iter().map(wait).collect()))
            };
        }
        self.judge_all(assigned, &committed, target_cluster.as_deref())
            .map(FlowStart::Behind)
    }

    /// The commits that make up the flow's start: what has a position keeps it, the rest gets the
    /// configured start. The last one says `started` and is sent last: until it is acknowledged, a
    /// next resolve finds an unfinished start and resumes it.
    fn start_entries(
        &mut self,
        all: &[TopicPartition],
        committed: &Committed,
        target_cluster: Option<String>,
    ) -> Result<Vec<CommitEntry>, Reason> {
        let fresh: Vec<TopicPartition> = all
            .iter()
            .filter(|tp| !committed.positions.contains_key(*tp))
            .cloned()
            .collect();
        let spec = match self.spec.start {
            Start::Earliest => OffsetSpec::Earliest,
            Start::Latest => OffsetSpec::LastStable,
        };
        let starts = self.offsets(&fresh, spec)?;
        let ids = self
            .identities(&distinct_topics(all))
            .map_err(|d| self.unreachable(d))?;
        tracing::info!(event = "first_start", subject = %self.spec.subject, partitions = fresh.len(),
            start = ?self.spec.start, "no start is committed yet: committing it for every matching partition");
        let mut entries = Vec::with_capacity(all.len());
        for tp in all {
            let known = committed.positions.get(tp).map(|(offset, _)| *offset);
            // One that is left out would later pass for "found later".
            let Some(offset) = known.or_else(|| starts.get(tp).copied()) else {
                return Err(self.unreachable(format!("no offset of {tp}: it has no leader now")));
            };
            let topic_id = match ids.get(&tp.topic) {
                Some(TopicIdentity::Is(id)) => Some(id.clone()),
                _ => None,
            };
            entries.push(CommitEntry {
                partition: tp.clone(),
                offset: Offset(offset),
                leader_epoch: -1,
                metadata: CommitMetadata {
                    topic_id,
                    target_cluster: target_cluster.clone(),
                    start: StartMark::Unsaid,
                }
                .encode(),
            });
        }
        if let Some(last) = entries.last_mut() {
            last.metadata.push_str(";s");
        }
        Ok(entries)
    }

    fn judge_all(
        &mut self,
        assigned: &[TopicPartition],
        committed: &Committed,
        target_cluster: Option<&str>,
    ) -> Result<Vec<(TopicPartition, Resolution)>, Reason> {
        let starts = self.offsets(assigned, OffsetSpec::Earliest)?;
        let ends = self.offsets(assigned, OffsetSpec::HighWatermark)?;
        let ids = self
            .identities(&distinct_topics(assigned))
            .map_err(|d| self.unreachable(d))?;
        Ok(assigned
            .iter()
            .map(|tp| {
                let facts = Facts {
                    log_start: starts.get(tp).copied(),
                    end: ends.get(tp).copied(),
                    identity: ids.get(&tp.topic).cloned(),
                    committed: committed.positions.get(tp),
                    target_cluster,
                    on_gap: self.spec.on_gap,
                };
                (tp.clone(), facts.judge())
            })
            .collect())
    }

    /// Before it is called a gap, the leader itself is asked (B055).
    fn recheck(
        &mut self,
        partition: &TopicPartition,
        position: Offset,
        topic_id: Option<String>,
    ) -> Result<Resolution, Reason> {
        let metadata = CommitMetadata {
            topic_id,
            ..CommitMetadata::default()
        };
        let mut committed = Committed::default();
        committed
            .positions
            .insert(partition.clone(), (position.0, metadata));
        let judged = self.judge_all(std::slice::from_ref(partition), &committed, None)?;
        Ok(judged
            .into_iter()
            .next()
            .map_or(Resolution::Retry(Reason::ResolvingPositions), |(_, r)| r))
    }

    fn offsets(
        &mut self,
        of: &[TopicPartition],
        spec: OffsetSpec,
    ) -> Result<HashMap<TopicPartition, i64>, Reason> {
        let answers = self.observer()?.offsets(of, spec, ASK);
        let answers = answers.map_err(|detail| self.unreachable(detail))?;
        Ok(answers
            .into_iter()
            .filter_map(|(tp, offset)| Some((tp, offset.ok()?)))
            .collect())
    }

    fn identities(&mut self, topics: &[Arc<str>]) -> TopicIdsNow {
        let observer = self.observer().map_err(|reason| reason.to_string())?;
        identities(observer, topics, ASK)
    }

    // --- ends --------------------------------------------------------------------------------

    fn ask_ends(&mut self) -> Result<(), Reason> {
        let owned: Vec<TopicPartition> = self.spec.view.partitions().into_keys().collect();
        let answers = self
            .observer()?
            .offsets(&owned, OffsetSpec::LastStable, ENDS_ASK);
        let answers = answers.map_err(|detail| self.unreachable(detail))?;
        for (tp, end) in answers {
            if let Ok(end) = end {
                self.spec.view.known_partition(&tp, |p| p.end = Some(end));
            }
        }
        Ok(())
    }

    fn check_until(&mut self) {
        if self.spec.until.is_none() {
            return;
        }
        let done = match self.until_reached() {
            Ok(done) => {
                self.silent_since = None;
                done
            }
            Err(reason) => {
                let since = *self.silent_since.get_or_insert_with(Instant::now);
                (since.elapsed() > UNTIL_PATIENCE).then_some(Some(reason))
            }
        };
        if let Some(outcome) = done
            && let Some(tell) = self.spec.until.take()
        {
            tell(outcome);
        }
    }

    /// `None`: not yet; `Some(None)`: reached; `Some(Some(reason))`: what is left is halted.
    fn until_reached(&mut self) -> Result<Option<Option<Reason>>, Reason> {
        if !self.known {
            self.observer()?;
            return Ok(None);
        }
        if self.ends.is_none() {
            let all = self.matching_partitions();
            let ends = self.offsets(&all, OffsetSpec::LastStable)?;
            let starts = self.offsets(&all, OffsetSpec::Earliest)?;
            let bounds = |tp: &TopicPartition| Some((tp.clone(), *starts.get(tp)?, *ends.get(tp)?));
            // All or none: a partition without leader now would never be waited for.
            let Some(captured) = all.iter().map(bounds).collect::<Option<Vec<_>>>() else {
                return Ok(None);
            };
            self.ends = Some(captured);
        }
        let ends = self.ends.clone().unwrap_or_default();
        let all: Vec<TopicPartition> = ends.iter().map(|(tp, ..)| tp.clone()).collect();
        if all.is_empty() {
            return Ok(Some(None));
        }
        let observer = self.observer()?;
        let Ok(committed) = observer.committed(&all, ASK) else {
            return Ok(None);
        };
        let committed = Committed::read(committed)?;
        let left: Vec<&TopicPartition> = ends
            .iter()
            .filter(|(tp, start, end)| {
                let position = committed.positions.get(tp).map(|(offset, _)| *offset);
                position.map_or(start < end, |p| p < *end)
            })
            .map(|(tp, ..)| tp)
            .collect();
        if left.is_empty() {
            return Ok(Some(None));
        }
        Ok(self.halted(&left).map(Some))
    }

    /// The reason of a halt, if everything that is left is halted here.
    fn halted(&self, left: &[&TopicPartition]) -> Option<Reason> {
        let views = self.spec.view.partitions();
        let mut reason = None;
        for tp in left {
            let view = views.get(*tp)?;
            if view.condition.state != State::Failed {
                return None;
            }
            reason.clone_from(&view.condition.reason);
        }
        reason
    }
}

/// Asks for the ids of topics.
pub(crate) fn identities(
    observer: &Observer,
    topics: &[Arc<str>],
    timeout: Duration,
) -> TopicIdsNow {
    let names: Vec<&str> = topics.iter().map(AsRef::as_ref).collect();
    let ids = observer.topic_ids(&names, timeout)?;
    let identity = |topic: &Arc<str>| match ids.get(topic.as_ref()) {
        Some(Ok(Some(id))) => TopicIdentity::Is(id.clone()),
        Some(Ok(None)) => TopicIdentity::Unknown,
        Some(Err(RDKafkaErrorCode::UnknownTopicOrPartition | RDKafkaErrorCode::UnknownTopicId)) => {
            TopicIdentity::Gone
        }
        Some(Err(_)) | None => TopicIdentity::Unclear,
    };
    Ok(topics.iter().map(|t| (t.clone(), identity(t))).collect())
}

/// What is known of one partition when its position is judged.
struct Facts<'a> {
    log_start: Option<i64>,
    end: Option<i64>,
    identity: Option<TopicIdentity>,
    committed: Option<&'a (i64, CommitMetadata)>,
    target_cluster: Option<&'a str>,
    on_gap: OnGap,
}

impl Facts<'_> {
    fn judge(&self) -> Resolution {
        let topic_id = match &self.identity {
            Some(TopicIdentity::Is(id)) => Some(id.clone()),
            Some(TopicIdentity::Unknown) => None,
            Some(TopicIdentity::Gone) => return Resolution::Retry(Reason::SourceTopicGone),
            Some(TopicIdentity::Unclear) | None => {
                return Resolution::Retry(Reason::ResolvingPositions);
            }
        };
        let (Some(log_start), Some(end)) = (self.log_start, self.end) else {
            return Resolution::Retry(Reason::ResolvingPositions);
        };
        let Some((position, metadata)) = self.committed else {
            // The start is behind the flow: this partition was found later and begins at its
            // beginning, whatever `start` says (B042).
            return Resolution::Position(Position {
                offset: Offset(log_start),
                topic_id,
                gap: None,
                committed: None,
            });
        };
        if let Some(reason) = self.replaced(metadata, topic_id.as_deref()) {
            return Resolution::Halt(reason);
        }
        self.place(*position, log_start, end, topic_id)
    }

    fn replaced(&self, metadata: &CommitMetadata, topic_id: Option<&str>) -> Option<Reason> {
        if let (Some(was), Some(now)) = (metadata.topic_id.as_deref(), topic_id)
            && was != now
        {
            return Some(Reason::TopicReplaced {
                was: was.to_owned(),
                now: now.to_owned(),
            });
        }
        if let (Some(was), Some(now)) = (metadata.target_cluster.as_deref(), self.target_cluster)
            && was != now
        {
            return Some(Reason::TargetReplaced {
                was: was.to_owned(),
                now: now.to_owned(),
            });
        }
        None
    }

    /// A position outside the log is an event of its own, never a silent reset (B051, B052, B056).
    fn place(
        &self,
        position: i64,
        log_start: i64,
        end: i64,
        topic_id: Option<String>,
    ) -> Resolution {
        let at = |offset: i64, gap| {
            Resolution::Position(Position {
                offset: Offset(offset),
                topic_id,
                gap,
                committed: Some(Offset(position)),
            })
        };
        if position < log_start {
            return match self.on_gap {
                OnGap::Stop => Resolution::Halt(Reason::Gap {
                    from: position,
                    to: log_start,
                }),
                OnGap::Earliest => at(log_start, Some((position, log_start))),
                OnGap::Latest => at(end, Some((position, end))),
            };
        }
        if position > end {
            return match self.on_gap {
                OnGap::Stop => Resolution::Halt(Reason::Truncated { position, end }),
                OnGap::Earliest | OnGap::Latest => at(end, Some((end, position))),
            };
        }
        at(position, None)
    }
}

/// Whether the flow's start is behind it.
enum FlowStart {
    /// It is, or another member sees to it.
    Behind(Vec<(TopicPartition, Resolution)>),
    /// It is ours to commit.
    Ours(Vec<CommitEntry>),
}

/// The group's commits.
#[derive(Default)]
struct Committed {
    positions: HashMap<TopicPartition, (i64, CommitMetadata)>,
    started: bool,
}

impl Committed {
    /// A failed read of one partition is not "none": the whole question is asked again.
    fn read(
        answers: Vec<(TopicPartition, crate::client::native::CommittedPosition)>,
    ) -> Result<Self, Reason> {
        let mut all = Self::default();
        for (tp, answer) in answers {
            let position = answer.map_err(|code| Reason::SourceRefuses {
                detail: format!("reading the committed offset of {tp}: {code}"),
            })?;
            if let Some((offset, bytes)) = position {
                let metadata = CommitMetadata::decode(&bytes);
                all.started |= metadata.start == StartMark::Started;
                all.positions.insert(tp, (offset, metadata));
            }
        }
        Ok(all)
    }
}

/// When each round is due.
struct Rounds {
    discovery: Instant,
    ends: Instant,
    until: Instant,
}

impl Rounds {
    fn new() -> Self {
        let now = Instant::now();
        Self {
            discovery: now,
            ends: now + ENDS,
            until: now + UNTIL,
        }
    }

    fn next(&self) -> Instant {
        self.discovery.min(self.ends).min(self.until)
    }
}

fn partitions_of(topics: &BTreeMap<String, i32>) -> Vec<TopicPartition> {
    let mut all = Vec::new();
    for (topic, count) in topics {
        let name: Arc<str> = topic.as_str().into();
        all.extend((0..*count).map(|p| TopicPartition::new(name.clone(), p)));
    }
    all
}

pub(crate) fn distinct_topics(partitions: &[TopicPartition]) -> Vec<Arc<str>> {
    let mut topics: Vec<Arc<str>> = partitions.iter().map(|tp| tp.topic.clone()).collect();
    topics.sort();
    topics.dedup();
    topics
}

/// Reports a gap: log, metric; status shows it by the partition's reason where it stops.
pub(crate) fn report_gap(
    view: &FlowView,
    subject: &str,
    partition: &TopicPartition,
    gap: (i64, i64),
) {
    let (from, to) = gap;
    tracing::error!(event = "gap", subject, topic = %partition.topic, partition = partition.partition,
        from, to, "offsets from..to are not on the source any more; going on as on_gap says");
    Counters::add(
        &view.counters.gap_records,
        u64::try_from(to - from).unwrap_or(0),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts<'a>(committed: Option<&'a (i64, CommitMetadata)>, on_gap: OnGap) -> Facts<'a> {
        Facts {
            log_start: Some(100),
            end: Some(200),
            identity: Some(TopicIdentity::Is("now".into())),
            committed,
            target_cluster: Some("target"),
            on_gap,
        }
    }

    fn offset_of(resolution: Resolution) -> i64 {
        match resolution {
            Resolution::Position(p) => p.offset.0,
            other => panic!("no position: {other:?}"),
        }
    }

    #[test]
    fn found_later_begins_at_its_beginning() {
        assert_eq!(offset_of(facts(None, OnGap::Stop).judge()), 100);
    }

    #[test]
    fn a_gap_is_named_exactly_and_never_guessed() {
        let committed = (40, CommitMetadata::default());
        assert_eq!(
            facts(Some(&committed), OnGap::Stop).judge(),
            Resolution::Halt(Reason::Gap { from: 40, to: 100 })
        );
        assert_eq!(
            offset_of(facts(Some(&committed), OnGap::Earliest).judge()),
            100
        );
        assert_eq!(
            offset_of(facts(Some(&committed), OnGap::Latest).judge()),
            200
        );
    }

    #[test]
    fn a_position_beyond_the_end_is_a_truncation() {
        let committed = (900, CommitMetadata::default());
        assert_eq!(
            facts(Some(&committed), OnGap::Stop).judge(),
            Resolution::Halt(Reason::Truncated {
                position: 900,
                end: 200
            })
        );
    }

    #[test]
    fn the_ends_of_the_log_are_no_gap() {
        for position in [100, 200] {
            let committed = (position, CommitMetadata::default());
            assert_eq!(
                offset_of(facts(Some(&committed), OnGap::Stop).judge()),
                position
            );
        }
    }

    #[test]
    fn a_replaced_topic_or_target_halts() {
        let other_topic = (
            150,
            CommitMetadata {
                topic_id: Some("was".into()),
                ..CommitMetadata::default()
            },
        );
        assert!(matches!(
            facts(Some(&other_topic), OnGap::Stop).judge(),
            Resolution::Halt(Reason::TopicReplaced { .. })
        ));
        let other_target = (
            150,
            CommitMetadata {
                target_cluster: Some("old".into()),
                ..CommitMetadata::default()
            },
        );
        assert!(matches!(
            facts(Some(&other_target), OnGap::Stop).judge(),
            Resolution::Halt(Reason::TargetReplaced { .. })
        ));
    }

    #[test]
    fn a_cluster_without_topic_ids_is_not_checked() {
        let committed = (
            150,
            CommitMetadata {
                topic_id: Some("was".into()),
                ..CommitMetadata::default()
            },
        );
        let mut facts = facts(Some(&committed), OnGap::Stop);
        facts.identity = Some(TopicIdentity::Unknown);
        assert_eq!(offset_of(facts.judge()), 150);
    }
}
