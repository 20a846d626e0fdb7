//! The source side's questions: which topics match, where each partition starts, whether a topic
//! is still the same one, how far its end is.
//!
//! One thread per flow, so that a source that does not answer never holds up a poll loop
//! (`engine.md` rule 6). Positions are ours (rule 7): the client's reset policy is never asked.

mod fellows;
mod former;
mod judge;
mod positions;
mod until;

pub(crate) use judge::{Facts, Position, Resolution};

use crate::client::admin::Observer;
use crate::config::spec::{ClusterSpec, OnGap, RouteSpec, Start, TopicSelection};
use crate::flow::target::{TargetView, check_expected};
use crate::observe::{Counters, FlowView, Reason};
use crate::plan::Fingerprint;
use crate::plane::{CommitEntry, Offset};
use crate::record::TopicPartition;
use crossbeam_channel::{Receiver, RecvTimeoutError};
use fellows::Fellows;
use rdkafka::types::RDKafkaErrorCode;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// How long one question to the source may take.
const ASK: Duration = Duration::from_secs(10);
/// How often ends are asked for, for the lag.
const ENDS: Duration = Duration::from_secs(2);
/// How long it is left alone after it failed.
const ENDS_REST: Duration = Duration::from_secs(10);
/// How often what other members of the group commit is looked at.
const FELLOWS: Duration = Duration::from_secs(5);
/// How often `until: end` is checked.
const UNTIL: Duration = Duration::from_millis(500);
/// How often what is not wanted is checked.
const NEVER: Duration = Duration::from_secs(3600);

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
    /// The route has new settings.
    Change(Arc<RouteSpec>),
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

/// What the scout is made of.
pub(crate) struct ScoutSpec {
    /// The client, shared with the verifier once it is made.
    pub(crate) observer: Arc<OnceLock<Arc<Observer>>>,
    pub(crate) source: Arc<ClusterSpec>,
    pub(crate) group: String,
    /// The group of the route's former name, whose positions a first start takes over (`was:`).
    pub(crate) former: Option<String>,
    pub(crate) selection: TopicSelection,
    pub(crate) start: Start,
    pub(crate) on_gap: OnGap,
    pub(crate) interval: Duration,
    /// What the other members of the group must have alike.
    pub(crate) settings: Fingerprint,
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
    /// The id of each topic when this flow met it first: the group's commits go with a topic, and then
    /// only this tells that it was deleted and created again.
    met: HashMap<Arc<str>, String>,
    known: bool,
    /// `until: end`: the ends captured at start.
    ends: Option<Vec<(TopicPartition, i64, i64)>>,
    fellows: Fellows,
    silent_since: Option<Instant>,
}

impl Scout {
    pub(crate) fn new(spec: ScoutSpec) -> Self {
        Self {
            spec,
            identified: false,
            matching: BTreeMap::new(),
            met: HashMap::new(),
            known: false,
            ends: None,
            fellows: Fellows::default(),
            silent_since: None,
        }
    }

    /// Serves until it is told to stop, or nobody is left to ask anything.
    pub(crate) fn run(mut self, inquiries: &Receiver<Inquiry>) {
        let mut rounds = Rounds::new();
        loop {
            match inquiries.recv_deadline(rounds.next()) {
                Ok(Inquiry::Stop) | Err(RecvTimeoutError::Disconnected) => return,
                Ok(Inquiry::Change(route)) => {
                    self.change(&route);
                    rounds.discovery = Instant::now();
                }
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
            Inquiry::Change(_) | Inquiry::Stop => {}
        }
    }

    /// Keeps to new settings from the next question on.
    fn change(&mut self, route: &RouteSpec) {
        self.spec.selection = route.topics.clone();
        self.spec.start = route.start;
        self.spec.on_gap = route.on_gap;
        self.spec.interval = route.discovery_interval;
        self.spec.settings = Fingerprint::of(route);
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
        if now >= rounds.fellows {
            self.look_at_fellows();
            rounds.fellows = Instant::now() + FELLOWS;
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
        self.meet_matching();
        Ok(())
    }

    /// Each member of the group meets every matching topic, so that whoever owns it later knows whether
    /// it is still the same. Where the source does not say now, the next assignment asks again.
    fn meet_matching(&mut self) {
        let topics = distinct_topics(&self.matching_partitions());
        if let Ok(ids) = self.identities(&topics) {
            self.meet(&ids);
        }
    }

    /// Remembers the ids of topics that are met for the first time.
    fn meet(&mut self, ids: &HashMap<Arc<str>, TopicIdentity>) {
        for (topic, identity) in ids {
            if let TopicIdentity::Is(id) = identity {
                self.met.entry(topic.clone()).or_insert_with(|| id.clone());
            }
        }
    }

    /// Whether this flow met another topic of this name.
    fn is_another(&self, topic: &Arc<str>, identity: Option<&TopicIdentity>) -> bool {
        match (self.met.get(topic), identity) {
            (Some(was), Some(TopicIdentity::Is(now))) => was != now,
            _ => false,
        }
    }

    fn matching_partitions(&self) -> Vec<TopicPartition> {
        partitions_of(&self.matching)
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

/// When each round is due.
struct Rounds {
    discovery: Instant,
    ends: Instant,
    fellows: Instant,
    until: Instant,
}

impl Rounds {
    fn new() -> Self {
        let now = Instant::now();
        Self {
            discovery: now,
            ends: now + ENDS,
            fellows: now + FELLOWS,
            until: now + UNTIL,
        }
    }

    fn next(&self) -> Instant {
        let soonest = self.discovery.min(self.ends);
        soonest.min(self.fellows).min(self.until)
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
