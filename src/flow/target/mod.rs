//! The target's topics: created and grown before a record moves (`engine.md` rule 8, KIP-3).
//!
//! One thread per flow, the [`TopicKeeper`], asks and changes the target, so that a target that
//! does not answer holds up neither fetching nor commits. What it finds is read by the lanes in the
//! [`TargetView`].
//!
//! Who may create: the worker that owns partition 0 of the source topic. Everyone else waits until
//! the target shows the topic. The duty passes on with the partition: each worker says again what it
//! needs whenever its assignment changes.

mod view;

pub(crate) use view::{TargetTopic, TargetView, Times};

use crate::client::admin::{Change, ConfigOrigin, NewTopicSpec, TopicAdmin};
use crate::config::spec::{Access, ClusterSpec, CreationMode, RouteSpec, TopicCreation};
use crate::observe::Reason;
use crate::partition::PolicySpec;
use crossbeam_channel::{Receiver, RecvTimeoutError};
use regex::Regex;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long one question to the target may take.
const ASK: Duration = Duration::from_secs(10);
/// How soon an unfinished need is looked at again.
const EAGER: Duration = Duration::from_millis(500);

/// What one worker needs of the target, all of it, replacing what it said before.
#[derive(Clone, Debug, Default)]
pub(crate) struct Needs {
    pub(crate) topics: Vec<Need>,
    /// Whole-name regexes of content-named topics.
    pub(crate) by_content: Vec<Regex>,
}

/// One topic that must be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Need {
    /// The target topic.
    pub(crate) topic: String,
    /// The partitions it must have.
    pub(crate) partitions: i32,
    /// The source topic, whose settings are copied at creation; none for a dead-letter topic.
    pub(crate) source_topic: Option<String>,
    /// Whether this worker may create and grow it.
    pub(crate) duty: Duty,
}

/// Whether a worker may create and grow a topic (KIP-3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Duty {
    /// It owns partition 0.
    Owner,
    /// It waits until the target shows the topic.
    Waiter,
}

/// What the keeper is told.
pub(crate) enum Ask {
    /// A worker's needs.
    Needs { worker: u8, needs: Needs },
    /// The route has new settings.
    Change(Arc<RouteSpec>),
    /// The flow ends.
    Stop,
}

/// What the keeper is made of.
pub(crate) struct KeeperSpec {
    pub(crate) source: Arc<ClusterSpec>,
    pub(crate) target: Arc<ClusterSpec>,
    pub(crate) creation: TopicCreation,
    pub(crate) policy: PolicySpec,
    pub(crate) interval: Duration,
    pub(crate) subject: Arc<str>,
    pub(crate) view: Arc<TargetView>,
    /// Called when the view changed.
    pub(crate) changed: Box<dyn Fn() + Send>,
    /// Called when the target does not answer, or is another cluster than expected.
    pub(crate) trouble: Box<dyn Fn(Option<Reason>) + Send>,
}

/// Asks and changes the target's topics.
pub(crate) struct TopicKeeper {
    spec: KeeperSpec,
    needs: HashMap<u8, Needs>,
    target: Option<TopicAdmin>,
    /// What topics are set to.
    settings: HashMap<String, Settings>,
}

/// What a topic is set to, as far as it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Settings {
    /// The largest batch it takes.
    record_bytes: u64,
    times: Times,
}

impl Settings {
    /// Nobody may say: the broker judges each record, and nothing is built on its times.
    const UNKNOWN: Self = Self {
        record_bytes: u64::MAX,
        times: Times::OfBroker,
    };
}

impl TopicKeeper {
    pub(crate) fn new(spec: KeeperSpec) -> Self {
        Self {
            spec,
            needs: HashMap::new(),
            target: None,
            settings: HashMap::new(),
        }
    }

    /// Serves until it is told to stop, or nobody is left to tell it anything.
    pub(crate) fn run(mut self, asks: &Receiver<Ask>) {
        let mut next = Instant::now();
        loop {
            match asks.recv_deadline(next) {
                Ok(Ask::Needs { worker, needs }) => {
                    self.needs.insert(worker, needs);
                    // What else is queued is taken first: one look serves all workers.
                    next = Instant::now();
                    continue;
                }
                Ok(Ask::Change(route)) => {
                    self.spec.creation = route.topic_creation.clone();
                    self.spec.interval = route.discovery_interval;
                    next = Instant::now();
                    continue;
                }
                Ok(Ask::Stop) | Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => {}
            }
            let finished = self.round();
            next = Instant::now() + finished.pause(self.spec.interval);
        }
    }

    /// One look at the target: what is there, what is missing, what can be done about it.
    fn round(&mut self) -> Round {
        match self.look() {
            Ok(round) => {
                (self.spec.trouble)(None);
                round
            }
            Err(reason) => {
                (self.spec.trouble)(Some(reason));
                Round::Unfinished
            }
        }
    }

    fn look(&mut self) -> Result<Round, Reason> {
        self.connect()?;
        let mut there = self.topics()?;
        let wanted = self.wanted();
        let mut problems = HashMap::new();
        let mut touched = false;
        for need in wanted.values() {
            match self.fulfil(need, there.get(&need.topic).copied()) {
                Fulfilled::Already => {}
                Fulfilled::Changed => touched = true,
                Fulfilled::Waits(reason) => {
                    problems.insert(need.topic.clone(), reason);
                }
            }
        }
        if touched {
            // Whatever race there was: the count that counts is the one read now.
            there = self.topics()?;
        }
        let unfinished = touched || !problems.is_empty();
        let topics = self.describe(&there, &wanted);
        let news = self.spec.view.replace(topics) | self.spec.view.set_problems(problems);
        if news {
            (self.spec.changed)();
        }
        Ok(if unfinished {
            Round::Unfinished
        } else {
            Round::Finished
        })
    }

    fn connect(&mut self) -> Result<&TopicAdmin, Reason> {
        let unreachable = |detail: String| Reason::Unreachable {
            cluster: self.spec.target.name.to_string(),
            detail,
        };
        if self.target.is_none() {
            let admin = TopicAdmin::new(&self.spec.target, self.spec.subject.clone())
                .map_err(|detail| Reason::Client { detail })?;
            self.target = Some(admin);
        }
        let admin = self
            .target
            .as_ref()
            .ok_or_else(|| unreachable("no client".into()))?;
        admin.serve();
        if self.spec.view.cluster_id.get().is_none() {
            // A metadata answer first: only after it "no id" means that there is none.
            admin.topics(ASK).map_err(unreachable)?;
            let id = admin.cluster_id(ASK);
            check_expected(&self.spec.target, id.as_deref())?;
            let _ = self.spec.view.cluster_id.set(id);
            (self.spec.changed)();
        }
        Ok(admin)
    }

    fn topics(&self) -> Result<BTreeMap<String, i32>, Reason> {
        let unreachable = |detail: String| Reason::Unreachable {
            cluster: self.spec.target.name.to_string(),
            detail,
        };
        let admin = self
            .target
            .as_ref()
            .ok_or_else(|| unreachable("no client".into()))?;
        admin.topics(ASK).map_err(unreachable)
    }

    /// The needs of all workers, one per topic: the largest count; a duty if any has it.
    fn wanted(&self) -> BTreeMap<String, Need> {
        let mut wanted: BTreeMap<String, Need> = BTreeMap::new();
        for need in self.needs.values().flat_map(|n| &n.topics) {
            wanted
                .entry(need.topic.clone())
                .and_modify(|w| {
                    w.partitions = w.partitions.max(need.partitions);
                    if need.duty == Duty::Owner {
                        w.duty = Duty::Owner;
                        w.source_topic.clone_from(&need.source_topic);
                    }
                })
                .or_insert_with(|| need.clone());
        }
        wanted
    }

    fn fulfil(&self, need: &Need, there: Option<i32>) -> Fulfilled {
        let may_change = self.spec.creation.mode == CreationMode::Enabled
            && self.spec.target.access == Access::ReadWrite;
        let grows =
            matches!(self.spec.policy, PolicySpec::Match { .. }) && need.source_topic.is_some();
        match there {
            Some(count) if count >= need.partitions || !grows => Fulfilled::Already,
            // Too few, and nobody may grow it: the policy decides, per partition.
            Some(_) if !may_change => Fulfilled::Already,
            None if !may_change => Fulfilled::Waits(Reason::TargetTopicMissing {
                topic: need.topic.clone(),
                detail: "create it, or allow topic_creation".into(),
            }),
            _ if need.duty == Duty::Waiter => Fulfilled::Waits(Reason::AwaitingTopic {
                topic: need.topic.clone(),
            }),
            None => self.create(need),
            Some(_) => self.grow(need),
        }
    }

    fn create(&self, need: &Need) -> Fulfilled {
        let configs = match self.configs_to_copy(need) {
            Ok(configs) => configs,
            Err(detail) => {
                return self.missing(
                    need,
                    &format!("its settings could not be read at the source: {detail}"),
                );
            }
        };
        let new = NewTopicSpec {
            name: &need.topic,
            partitions: need.partitions,
            replication_factor: self.spec.creation.replication_factor,
            configs: &configs,
        };
        let Some(admin) = &self.target else {
            return self.missing(need, "no client");
        };
        match admin.create(&new, ASK) {
            Ok(Change::Made) => {
                tracing::info!(event = "topic_created", subject = %self.spec.subject,
                    topic = need.topic, partitions = need.partitions, "target topic created");
                Fulfilled::Changed
            }
            Ok(Change::Refused(words)) => {
                let advice = advice(&words);
                self.missing(
                    need,
                    &format!("the target refuses to create it: {words}{advice}"),
                )
            }
            Err(words) => self.missing(need, &format!("creating it was not answered: {words}")),
        }
    }

    fn missing(&self, need: &Need, detail: &str) -> Fulfilled {
        Fulfilled::Waits(Reason::TargetTopicMissing {
            topic: need.topic.clone(),
            detail: detail.to_owned(),
        })
    }

    fn grow(&self, need: &Need) -> Fulfilled {
        let Some(admin) = &self.target else {
            return self.missing(need, "no client");
        };
        let refused = |words: String| {
            Fulfilled::Waits(Reason::TargetRefuses {
                detail: format!(
                    "growing topic {} to {} partitions: {words}",
                    need.topic, need.partitions
                ),
            })
        };
        match admin.grow(&need.topic, need.partitions, ASK) {
            Ok(Change::Made) => {
                tracing::info!(event = "topic_grown", subject = %self.spec.subject,
                    topic = need.topic, partitions = need.partitions, "target topic grown");
                Fulfilled::Changed
            }
            Ok(Change::Refused(words)) | Err(words) => refused(words),
        }
    }

    /// The settings of a new topic: those of the source topic that somebody set there, out of the
    /// route's list. The timestamps are the records' own (rule 12).
    fn configs_to_copy(&self, need: &Need) -> Result<BTreeMap<String, String>, String> {
        let mut configs = BTreeMap::new();
        if let Some(source_topic) = &need.source_topic
            && !self.spec.creation.configs.is_empty()
        {
            let source = TopicAdmin::new(&self.spec.source, self.spec.subject.clone())?;
            let theirs = source.configs(source_topic, ASK)?;
            for key in &self.spec.creation.configs {
                if let Some(config) = theirs.get(key)
                    && config.origin == ConfigOrigin::Topic
                {
                    configs.insert(key.clone(), config.value.clone());
                }
            }
        }
        configs.insert("message.timestamp.type".into(), "CreateTime".into());
        Ok(configs)
    }

    /// What lanes may write to: needed topics that are there, and content-named ones.
    fn describe(
        &mut self,
        there: &BTreeMap<String, i32>,
        wanted: &BTreeMap<String, Need>,
    ) -> HashMap<String, TargetTopic> {
        let by_content: Vec<Regex> = self
            .needs
            .values()
            .flat_map(|n| n.by_content.iter().cloned())
            .collect();
        let mut topics = HashMap::new();
        for (name, partitions) in there {
            if !wanted.contains_key(name) && !by_content.iter().any(|r| r.is_match(name)) {
                continue;
            }
            let Settings {
                record_bytes,
                times,
            } = self.settings(name);
            topics.insert(
                name.clone(),
                TargetTopic {
                    partitions: *partitions,
                    record_bytes,
                    times,
                },
            );
        }
        self.settings.retain(|name, _| there.contains_key(name));
        topics
    }

    /// What a topic is set to.
    fn settings(&mut self, topic: &str) -> Settings {
        if let Some(settings) = self.settings.get(topic) {
            return *settings;
        }
        let Some(admin) = &self.target else {
            return Settings::UNKNOWN;
        };
        let settings = match admin.configs(topic, ASK) {
            Ok(configs) => {
                let value = |name| configs.get(name).map(|c| c.value.as_str());
                let limit = value("max.message.bytes").and_then(|v| v.parse().ok());
                Settings {
                    record_bytes: limit.unwrap_or(Settings::UNKNOWN.record_bytes),
                    times: match value("message.timestamp.type") {
                        Some("CreateTime") => Times::OfRecords,
                        _ => Times::OfBroker,
                    },
                }
            }
            Err(error) => {
                tracing::info!(event = "topic_settings_unknown", subject = %self.spec.subject, topic, error);
                Settings::UNKNOWN
            }
        };
        self.settings.insert(topic.to_owned(), settings);
        settings
    }
}

/// Refuses a cluster that is not the one the file expects.
pub(crate) fn check_expected(cluster: &ClusterSpec, found: Option<&str>) -> Result<(), Reason> {
    match (&cluster.expect_cluster_id, found) {
        (Some(expected), Some(found)) if expected != found => Err(Reason::WrongCluster {
            cluster: cluster.name.to_string(),
            expected: expected.clone(),
            found: found.to_owned(),
        }),
        _ => Ok(()),
    }
}

/// How a look ended.
enum Round {
    Finished,
    Unfinished,
}

impl Round {
    fn pause(&self, interval: Duration) -> Duration {
        match self {
            Round::Finished => interval,
            Round::Unfinished => EAGER.min(interval),
        }
    }
}

/// What became of a need.
enum Fulfilled {
    Already,
    Changed,
    Waits(Reason),
}

/// What to do about a refusal, where its words do not say.
fn advice(words: &str) -> &'static str {
    match words.contains("InvalidReplicationFactor") {
        true => "; it has fewer brokers than `topic_creation.replication_factor` asks for",
        false => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keeper() -> TopicKeeper {
        let cluster = |name: &str| {
            Arc::new(ClusterSpec {
                name: crate::config::spec::Name::new(name).unwrap(),
                bootstrap_servers: vec![],
                properties: BTreeMap::new(),
                tls: None,
                sasl: None,
                access: Access::ReadWrite,
                expect_cluster_id: None,
                data_plane: crate::config::spec::DataPlane::Auto,
            })
        };
        TopicKeeper::new(KeeperSpec {
            source: cluster("a"),
            target: cluster("b"),
            creation: TopicCreation {
                mode: CreationMode::Enabled,
                replication_factor: None,
                configs: vec![],
            },
            policy: PolicySpec::Match {
                on_fewer: crate::partition::OnFewer::Stop,
            },
            interval: Duration::from_secs(5),
            subject: "test".into(),
            view: Arc::default(),
            changed: Box::new(|| {}),
            trouble: Box::new(|_| {}),
        })
    }

    fn need(partitions: i32, duty: Duty) -> Needs {
        Needs {
            topics: vec![Need {
                topic: "t".into(),
                partitions,
                source_topic: Some("t".into()),
                duty,
            }],
            by_content: vec![],
        }
    }

    #[test]
    fn only_the_owner_of_partition_0_creates_and_the_duty_passes_on_with_it() {
        let mut keeper = keeper();
        keeper.needs.insert(0, need(6, Duty::Waiter));
        keeper.needs.insert(1, need(6, Duty::Waiter));
        let waits = |keeper: &TopicKeeper| {
            let wanted = keeper.wanted();
            matches!(
                keeper.fulfil(&wanted["t"], None),
                Fulfilled::Waits(Reason::AwaitingTopic { .. })
            )
        };
        assert!(waits(&keeper), "somebody else owns partition 0");
        // The owner died before it created the topic, and partition 0 came to worker 1.
        keeper.needs.insert(1, need(6, Duty::Owner));
        assert_eq!(keeper.wanted()["t"].duty, Duty::Owner);
        assert!(!waits(&keeper), "it tries now (and has no client here)");
    }

    #[test]
    fn several_sources_into_one_topic_need_the_largest_count() {
        let mut keeper = keeper();
        keeper.needs.insert(0, need(6, Duty::Owner));
        keeper.needs.insert(1, need(12, Duty::Waiter));
        let wanted = keeper.wanted();
        assert_eq!(
            (wanted["t"].partitions, wanted["t"].duty),
            (12, Duty::Owner)
        );
    }
}
