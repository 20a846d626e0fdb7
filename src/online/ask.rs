//! Asks the clusters: each question on a thread of its own, all clusters at the same time, in three
//! rounds, since what is asked follows from what was answered.

use crate::client::asker::{Asker, TopicConfigs, WantedTopic};
use crate::client::native::{
    GroupDescriptions, GroupOffsets, OffsetAnswers, OffsetSpec, Refusal, TopicDescriptions,
};
use crate::config::spec::{ClusterSpec, Name, Spec};
use crate::online::arrivals::{SampledRecord, Samples};
use crate::online::facts::{Cleanup, ClusterFacts, Heard, LogFacts, Question};
use crate::online::needs::{Creation, FlowNeeds, needs};
use crate::online::pending::{Pending, Wait};
use crate::online::position::Positions;
use crate::online::trouble::{Cause, Trouble};
use crate::record::{HeaderSource, TopicPartition};
use rdkafka::types::RDKafkaErrorCode;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How often a cluster that does not answer is looked at for a final complaint.
const LOOK: Duration = Duration::from_millis(50);
/// How long other brokers may still answer after one complained for good.
const OTHERS: Duration = Duration::from_secs(1);
/// How long is waited at the end for clients to be gone.
const FAREWELL: Duration = Duration::from_secs(1);
/// Source partitions of a cluster whose records are looked at.
const SAMPLED_PARTITIONS: usize = 64;
/// Records that are looked at in each.
const SAMPLED_RECORDS: usize = 50;
/// The topic in which a cluster keeps positions.
const OFFSETS_TOPIC: &str = "__consumer_offsets";

/// Everything that was heard.
#[derive(Clone, Debug)]
pub struct Answers {
    /// By cluster.
    pub clusters: Heard,
    /// What each flow needs, as far as that is known.
    pub flows: Vec<FlowNeeds>,
    /// When it was asked, in milliseconds since 1970.
    pub now_ms: i64,
}

impl Answers {
    /// Whether every cluster answered every question, if only with a no.
    pub fn is_complete(&self) -> bool {
        self.clusters.values().all(|heard| match heard {
            Ok(facts) => facts.unanswered.values().all(|(code, _)| is_right(*code)),
            Err(_) => false,
        })
    }
}

/// A cluster that answered.
struct Line {
    asker: Arc<Asker>,
    facts: ClusterFacts,
}

/// What [`ask()`] takes at most: its rounds one after the other, in which coordinators get twice the
/// time, and the waits around them.
pub fn longest(patience: Duration) -> Duration {
    patience * 5 + OTHERS + FAREWELL
}

/// Asks every cluster that a route of `spec` uses. No question takes longer than `patience`, and a
/// cluster that is away delays none of the others' answers.
pub fn ask(spec: &Spec, patience: Duration) -> Answers {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now_ms = now.map_or(0, |d| i64::try_from(d.as_millis()).unwrap_or(i64::MAX));
    let mut lines = reach_all(spec, patience);
    look_around(&mut lines, patience);
    let flows = needs(spec, &|cluster| match lines.get(&cluster.name) {
        Some(Ok(line)) if !line.facts.unanswered.contains_key(&Question::Topics) => {
            Some(line.facts.topics.clone())
        }
        _ => None,
    });
    second_round(&mut lines, &flows, patience);
    third_round(&mut lines, &flows, now_ms, patience);
    let answers = Answers {
        clusters: lines
            .iter()
            .map(|(name, line)| {
                let facts = line.as_ref().map(|line| line.facts.clone());
                (name.clone(), facts.map_err(Clone::clone))
            })
            .collect(),
        flows,
        now_ms,
    };
    hang_up(lines);
    answers
}

type Lines = BTreeMap<Name, Result<Line, Trouble>>;

/// Ends the clients aside: one whose cluster is away may take its time.
fn hang_up(lines: Lines) {
    let gone = Pending::ask(FAREWELL, move || drop(lines));
    let _ = gone.wait();
}

// --- First round: who answers at all ---------------------------------------------------------

fn reach_all(spec: &Spec, patience: Duration) -> Lines {
    let used: BTreeMap<Name, Arc<ClusterSpec>> = spec
        .routes
        .values()
        .flat_map(|route| route.sources.iter().chain(&route.targets))
        .map(|cluster| (cluster.name.clone(), cluster.clone()))
        .collect();
    let asked: Vec<_> = used
        .into_iter()
        .map(|(name, cluster)| {
            (
                name,
                // Making a client may itself take time (a Kerberos ticket).
                Pending::ask(patience + OTHERS, move || reach(&cluster, patience)),
            )
        })
        .collect();
    let silent = || Trouble {
        cause: Cause::Silent,
        words: Vec::new(),
    };
    asked
        .into_iter()
        .map(|(name, pending)| (name, pending.wait().unwrap_or_else(|| Err(silent()))))
        .collect()
}

fn reach(cluster: &Arc<ClusterSpec>, patience: Duration) -> Result<Line, Trouble> {
    let asker = Arc::new(Asker::new(cluster, patience).map_err(Trouble::settings)?);
    let asking = asker.clone();
    let mut question = Pending::ask(patience, move || asking.cluster(patience));
    let mut gave_up = None;
    let trouble = loop {
        match question.wait_a_little(LOOK) {
            Wait::Answered(Ok(description)) => {
                let facts = ClusterFacts {
                    description,
                    ..ClusterFacts::default()
                };
                return Ok(Line { asker, facts });
            }
            Wait::Answered(Err(refusal)) => break trouble(&asker, Some(refusal)),
            Wait::Never => break trouble(&asker, None),
            Wait::NotYet => {}
        }
        let now = trouble(&asker, None);
        if now.cause.is_final() && gave_up.is_none() {
            gave_up = Some(now);
            question = question.at_most(OTHERS);
        }
    };
    // Not here: the answer must not wait for the client's end.
    drop(Pending::ask(Duration::ZERO, move || drop(asker)));
    Err(trouble)
}

fn trouble(asker: &Asker, refusal: Option<Refusal>) -> Trouble {
    let mut trouble = Trouble::of(&asker.complaints());
    if let Some((_, words)) = refusal.filter(|_| trouble.words.is_empty()) {
        trouble.words.push(words);
    }
    trouble
}

// --- Still the first: topics, and the settings of a broker -----------------------------------

fn look_around(lines: &mut Lines, patience: Duration) {
    let mut asked = Vec::new();
    for (name, line) in reached(lines) {
        let (asker, broker) = (line.asker.clone(), line.facts.description.brokers.first());
        let broker = broker.copied();
        let topics = Pending::ask(patience, move || asker.topics(patience));
        let asker = line.asker.clone();
        let configs = Pending::ask(patience, move || {
            asker.broker_configs(broker?, patience).ok()
        });
        asked.push((name.clone(), topics, configs));
    }
    for (name, topics, configs) in asked {
        let Some(facts) = facts_of(lines, &name) else {
            continue;
        };
        if let Some(topics) = facts.hear(Question::Topics, topics.wait()) {
            facts.topics = topics;
        }
        facts.broker = configs.wait().flatten();
    }
}

// --- Second round: what the flows need to know ------------------------------------------------

/// What one cluster is asked for all flows at once.
#[derive(Default)]
struct Wanted {
    topics: BTreeSet<String>,
    groups: BTreeSet<String>,
    partitions: BTreeSet<TopicPartition>,
    /// By replication factor: a request names each topic once.
    creations: BTreeMap<Option<i32>, BTreeMap<String, WantedTopic>>,
    growths: BTreeMap<String, WantedTopic>,
}

fn second_round(lines: &mut Lines, flows: &[FlowNeeds], patience: Duration) {
    let mut asked = Vec::new();
    for (name, line) in reached(lines) {
        let wanted = wanted(name, &line.facts, flows);
        asked.push((name.clone(), Second::ask(line, wanted, patience)));
    }
    for (name, second) in asked {
        if let Some(facts) = facts_of(lines, &name) {
            second.hear(facts);
        }
    }
}

fn wanted(name: &Name, facts: &ClusterFacts, flows: &[FlowNeeds]) -> Wanted {
    let mut wanted = Wanted::default();
    for flow in flows.iter().filter(|f| f.source.name == *name) {
        wanted.topics.extend(flow.sources.keys().cloned());
        wanted.topics.extend(flow.unseen.iter().cloned());
        wanted.groups.insert(flow.group.clone());
        wanted.partitions.extend(flow.partitions());
    }
    for flow in flows.iter().filter(|f| f.target.name == *name) {
        wanted.topics.extend(flow.targets.keys().cloned());
        let by_content = flow.sources.values().flat_map(|s| &s.targets);
        wanted.topics.extend(by_content.cloned());
        if flow.creation() == Creation::Allowed {
            wanted.changes(flow, facts);
        }
    }
    wanted
}

impl Wanted {
    fn changes(&mut self, flow: &FlowNeeds, facts: &ClusterFacts) {
        for (topic, need) in &flow.targets {
            let change = WantedTopic {
                name: topic.clone(),
                partitions: need.partitions,
                replication_factor: flow.route.topic_creation.replication_factor,
            };
            let list = match facts.topics.get(topic) {
                None => self.creations.entry(change.replication_factor).or_default(),
                Some(there) if *there < need.partitions && flow.grows() => &mut self.growths,
                Some(_) => continue,
            };
            let known = list.entry(topic.clone()).or_insert_with(|| change.clone());
            known.partitions = known.partitions.max(change.partitions);
        }
    }
}

type Asked<T> = Pending<Result<T, Refusal>>;

/// Topics that would not be created or grown.
type Refusals = Vec<(String, RDKafkaErrorCode)>;

/// The questions of the second round, all under way.
struct Second {
    described: Asked<TopicDescriptions>,
    configs: Asked<TopicConfigs>,
    groups: Asked<Option<GroupDescriptions>>,
    positions: Vec<(String, Asked<GroupOffsets>)>,
    starts: Asked<OffsetAnswers>,
    stables: Asked<OffsetAnswers>,
    ends: Asked<OffsetAnswers>,
    creations: Vec<(Option<i32>, Asked<Refusals>)>,
    growths: Asked<Refusals>,
}

impl Second {
    fn ask(line: &Line, wanted: Wanted, patience: Duration) -> Self {
        let topics: Vec<String> = wanted.topics.into_iter().collect();
        let groups: Vec<String> = wanted.groups.into_iter().collect();
        let partitions: Arc<[TopicPartition]> = wanted.partitions.into_iter().collect();
        let growths: Vec<WantedTopic> = wanted.growths.into_values().collect();
        let asker = || line.asker.clone();
        let offsets = |spec: OffsetSpec| {
            let (asker, partitions) = (asker(), partitions.clone());
            Pending::ask(patience, move || asker.offsets(&partitions, spec, patience))
        };
        let kept = positions_are_kept(&line.facts);
        let positions = groups.iter().map(|group| {
            let (asker, group) = (asker(), group.clone());
            let name = group.clone();
            let question = move || match asked_of_coordinators(&asker, kept, patience)? {
                Coordinators::Asked => asker.group_offsets(&group, patience),
                Coordinators::NewCluster => Ok(HashMap::new()),
            };
            (name, Pending::ask(patience * 2, question))
        });
        let positions = positions.collect();
        let creations = wanted.creations.into_iter().map(|(factor, topics)| {
            let (asker, topics) = (asker(), topics.into_values().collect::<Vec<_>>());
            let question = move || asker.would_create(&topics, patience);
            (factor, Pending::ask(patience, question))
        });
        let creations = creations.collect();
        let (a, b, c, d) = (asker(), asker(), asker(), asker());
        let described = topics.clone();
        Self {
            described: Pending::ask(patience, move || a.describe_topics(&described, patience)),
            configs: Pending::ask(patience, move || b.topic_configs(&topics, patience)),
            groups: Pending::ask(patience * 2, move || {
                match asked_of_coordinators(&c, kept, patience)? {
                    Coordinators::Asked => c.describe_groups(&groups, patience).map(Some),
                    Coordinators::NewCluster => Ok(None),
                }
            }),
            positions,
            starts: offsets(OffsetSpec::Earliest),
            stables: offsets(OffsetSpec::LastStable),
            ends: offsets(OffsetSpec::HighWatermark),
            creations,
            growths: Pending::ask(patience, move || d.would_grow(&growths, patience)),
        }
    }

    fn hear(self, facts: &mut ClusterFacts) {
        if let Some(described) = facts.hear(Question::Descriptions, self.described.wait()) {
            facts.described = described;
        }
        if let Some(configs) = facts.hear(Question::Settings, self.configs.wait()) {
            facts.configs = configs;
        }
        if let Some(groups) = facts.hear(Question::Groups, self.groups.wait()) {
            facts.groups = groups.unwrap_or_default();
        }
        for (group, positions) in self.positions {
            let positions = positions.wait().unwrap_or_else(|| Err(late()));
            if let Err(refusal) = &positions
                && !is_right(refusal.0)
            {
                facts
                    .unanswered
                    .insert(Question::Positions, refusal.clone());
            }
            facts.positions.insert(group, positions);
        }
        facts.hear_offsets(self.starts, |log| &mut log.start);
        facts.hear_offsets(self.stables, |log| &mut log.stable);
        facts.hear_offsets(self.ends, |log| &mut log.end);
        for (factor, answers) in self.creations {
            let refused = facts.hear(Question::Creation, answers.wait());
            for (topic, code) in refused.unwrap_or_default() {
                facts.not_created.insert((topic, factor), code);
            }
        }
        let refused = facts.hear(Question::Growth, self.growths.wait());
        facts.not_grown.extend(refused.unwrap_or_default());
    }
}

/// Whether coordinators of groups may be asked.
enum Coordinators {
    /// They may.
    Asked,
    /// Nobody ever used a group there: the question would make the cluster create its own topic for
    /// positions, and the answer is known.
    NewCluster,
}

/// Whether the cluster shows the topic in which it keeps positions.
#[derive(Clone, Copy)]
enum OffsetsTopic {
    Shown,
    NotShown,
}

fn positions_are_kept(facts: &ClusterFacts) -> OffsetsTopic {
    match facts.topics.contains_key(OFFSETS_TOPIC) {
        true => OffsetsTopic::Shown,
        false => OffsetsTopic::NotShown,
    }
}

fn asked_of_coordinators(
    asker: &Asker,
    kept: OffsetsTopic,
    patience: Duration,
) -> Result<Coordinators, Refusal> {
    if let OffsetsTopic::Shown = kept {
        return Ok(Coordinators::Asked);
    }
    let name = [OFFSETS_TOPIC.to_owned()];
    let described = asker.describe_topics(&name, patience)?;
    Ok(match described.get(OFFSETS_TOPIC) {
        Some(Err(RDKafkaErrorCode::UnknownTopicOrPartition | RDKafkaErrorCode::UnknownTopic)) => {
            Coordinators::NewCluster
        }
        _ => Coordinators::Asked,
    })
}

impl ClusterFacts {
    /// Takes an answer, or notes that there was none.
    fn hear<T>(&mut self, question: Question, answer: Option<Result<T, Refusal>>) -> Option<T> {
        match answer.unwrap_or_else(|| Err(late())) {
            Ok(answer) => Some(answer),
            Err(refusal) => {
                self.unanswered.insert(question, refusal);
                None
            }
        }
    }

    fn hear_offsets(
        &mut self,
        asked: Asked<OffsetAnswers>,
        place: fn(&mut LogFacts) -> &mut Option<i64>,
    ) {
        let answers = self.hear(Question::Offsets, asked.wait());
        for (tp, offset) in answers.unwrap_or_default() {
            *place(self.logs.entry(tp).or_default()) = offset.ok();
        }
    }
}

/// Whether an answer is about rights: a definite one.
pub(super) fn is_right(code: RDKafkaErrorCode) -> bool {
    matches!(
        code,
        RDKafkaErrorCode::TopicAuthorizationFailed
            | RDKafkaErrorCode::GroupAuthorizationFailed
            | RDKafkaErrorCode::ClusterAuthorizationFailed
    )
}

fn late() -> Refusal {
    let words = "no answer in time".to_owned();
    (RDKafkaErrorCode::OperationTimedOut, words)
}

// --- Third round: what follows from positions --------------------------------------------------

fn third_round(lines: &mut Lines, flows: &[FlowNeeds], now_ms: i64, patience: Duration) {
    let places = places(lines, flows);
    let mut asked = Vec::new();
    for (name, line) in reached(lines) {
        let times = expiry_times(&line.facts, flows, name, now_ms);
        let asker = line.asker.clone();
        let expiring = Pending::ask(patience, move || asker.offsets_at(&times, patience));
        let (asker, places) = (
            line.asker.clone(),
            places.get(name).cloned().unwrap_or_default(),
        );
        let samples = Pending::ask(patience, move || look_at(&asker, &places, patience));
        asked.push((name.clone(), expiring, samples));
    }
    for (name, expiring, samples) in asked {
        let Some(facts) = facts_of(lines, &name) else {
            continue;
        };
        if let Some(expiring) = facts.hear(Question::Retention, expiring.wait()) {
            // Without a record that young everything is about to go: up to the end.
            let known = expiring.into_iter().filter_map(|(tp, at)| {
                let end = facts.logs.get(&tp).and_then(|log| log.end);
                Some((tp, at.or(end)?))
            });
            facts.expiring = known.collect();
        }
        facts.samples = samples.wait().unwrap_or_default();
    }
}

/// The places from which the flows would copy, by source cluster: some of each topic.
fn places(lines: &Lines, flows: &[FlowNeeds]) -> BTreeMap<Name, Vec<(TopicPartition, i64)>> {
    let mut all: BTreeMap<Name, BTreeMap<TopicPartition, i64>> = BTreeMap::new();
    for flow in flows {
        let Some(Ok(source)) = lines.get(&flow.source.name) else {
            continue;
        };
        let target = lines.get(&flow.target.name).and_then(|l| l.as_ref().ok());
        let target = target.and_then(|l| l.facts.description.id.as_deref());
        let Some(positions) = Positions::of(flow, &source.facts, target) else {
            continue;
        };
        let places = all.entry(flow.source.name.clone()).or_default();
        for (tp, begin) in positions.begins {
            if let Some(span) = begin.span().filter(|s| s.records() > 0) {
                places.entry(tp).or_insert(span.from);
            }
        }
    }
    all.into_iter()
        .map(|(cluster, places)| {
            let mut list: Vec<_> = places.into_iter().collect();
            // The first partitions of every topic before the second ones of any.
            list.sort_by(|(a, _), (b, _)| (a.partition, &a.topic).cmp(&(b.partition, &b.topic)));
            list.truncate(SAMPLED_PARTITIONS);
            (cluster, list)
        })
        .collect()
}

fn look_at(asker: &Asker, places: &[(TopicPartition, i64)], patience: Duration) -> Samples {
    let mut samples = Samples::new();
    // What cannot be looked at is judged by settings alone.
    let _ = asker.sample(places, SAMPLED_RECORDS, patience, |tp, record| {
        let headers = (0..).map_while(|i| record.get(i));
        let sampled = SampledRecord {
            partition: tp.partition,
            offset: record.offset(),
            key: record.key().map(<[u8]>::to_vec),
            value: record.value().map(<[u8]>::to_vec),
            headers: headers
                .map(|(name, value)| (name.to_vec(), value.map(<[u8]>::to_vec)))
                .collect(),
            timestamp: record.timestamp(),
        };
        let topic = samples.entry(tp.topic.to_string()).or_default();
        topic.push(sampled);
    });
    samples
}

/// Records are at risk that retention takes within a tenth of its time, or an hour if that is less.
fn expiry_times(
    facts: &ClusterFacts,
    flows: &[FlowNeeds],
    cluster: &Name,
    now_ms: i64,
) -> Vec<(TopicPartition, i64)> {
    let mut times = BTreeMap::new();
    for flow in flows.iter().filter(|f| f.source.name == *cluster) {
        for tp in flow.partitions() {
            let retention = facts.number(&tp.topic, "retention.ms");
            let deletes = facts.cleanup(&tp.topic) != Cleanup::Compact;
            if let Some(retention) = retention.filter(|ms| *ms >= 0 && deletes) {
                let soon = (retention / 10).min(3_600_000);
                times.insert(tp, now_ms.saturating_sub(retention).saturating_add(soon));
            }
        }
    }
    times.into_iter().collect()
}

fn reached(lines: &Lines) -> impl Iterator<Item = (&Name, &Line)> {
    let all = lines.iter();
    all.filter_map(|(name, line)| Some((name, line.as_ref().ok()?)))
}

fn facts_of<'a>(lines: &'a mut Lines, name: &Name) -> Option<&'a mut ClusterFacts> {
    let line = lines.get_mut(name)?.as_mut().ok()?;
    Some(&mut line.facts)
}
