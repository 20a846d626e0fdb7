//! What was heard of the clusters. Plain values: who judges them asks nobody.

use crate::client::asker::Configs;
use crate::client::native::{
    ClusterDescription, GroupDescription, GroupOffsets, Refusal, TopicDescription,
};
use crate::config::spec::Name;
use crate::online::arrivals::Samples;
use crate::online::trouble::Trouble;
use crate::record::TopicPartition;
use rdkafka::types::RDKafkaErrorCode;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// What was heard of every cluster that a route uses.
pub type Heard = BTreeMap<Name, Result<ClusterFacts, Trouble>>;

/// What was heard of one cluster.
#[derive(Clone, Debug, Default)]
pub struct ClusterFacts {
    /// Its id, brokers, and our rights.
    pub description: ClusterDescription,
    /// The topics that we may see, with their partition counts.
    pub topics: BTreeMap<String, i32>,
    /// The settings of one broker; `None` where we may not read them.
    pub broker: Option<Configs>,
    /// The topics that matter, as described.
    pub described: HashMap<String, Result<TopicDescription, RDKafkaErrorCode>>,
    /// Their settings.
    pub configs: HashMap<String, Result<Configs, RDKafkaErrorCode>>,
    /// The flows' groups.
    pub groups: HashMap<String, Result<GroupDescription, RDKafkaErrorCode>>,
    /// What they committed.
    pub positions: HashMap<String, Result<GroupOffsets, Refusal>>,
    /// The logs of source partitions.
    pub logs: HashMap<TopicPartition, LogFacts>,
    /// The first offset of a source partition that its retention leaves for a while.
    pub expiring: HashMap<TopicPartition, i64>,
    /// Some of the records that are to be copied.
    pub samples: Samples,
    /// Topics that would not be created with that many replicas, with the cluster's reason.
    pub not_created: BTreeMap<(String, Option<i32>), RDKafkaErrorCode>,
    /// Topics that would not be grown, with the cluster's reason.
    pub not_grown: BTreeMap<String, RDKafkaErrorCode>,
    /// Questions without an answer.
    pub unanswered: BTreeMap<Question, Refusal>,
}

impl ClusterFacts {
    /// A topic, if the cluster described it.
    pub fn topic(&self, name: &str) -> Option<&TopicDescription> {
        self.described.get(name)?.as_ref().ok()
    }

    /// A setting of a topic that is there.
    pub fn config(&self, topic: &str, key: &str) -> Option<&str> {
        let configs = self.configs.get(topic)?.as_ref().ok()?;
        configs.get(key).map(String::as_str)
    }

    /// A setting of a topic as a number.
    pub fn number(&self, topic: &str, key: &str) -> Option<i64> {
        self.config(topic, key)?.parse().ok()
    }

    /// A setting of a broker.
    pub fn broker_number(&self, key: &str) -> Option<i64> {
        self.broker.as_ref()?.get(key)?.parse().ok()
    }

    /// What a topic's `cleanup.policy` says.
    pub fn cleanup(&self, topic: &str) -> Cleanup {
        let policy = self.config(topic, "cleanup.policy").unwrap_or("delete");
        let words: BTreeSet<&str> = policy.split(',').map(str::trim).collect();
        match (words.contains("compact"), words.contains("delete")) {
            (true, true) => Cleanup::Both,
            (true, false) => Cleanup::Compact,
            (false, _) => Cleanup::Delete,
        }
    }
}

/// How a topic is cleaned up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cleanup {
    /// What is too old or too much is deleted.
    Delete,
    /// The last record of each key is kept.
    Compact,
    /// Both.
    Both,
}

impl Cleanup {
    /// Whether records without a key are refused.
    pub fn compacts(self) -> bool {
        self != Cleanup::Delete
    }

    /// Whether old records are deleted.
    pub fn deletes(self) -> bool {
        self != Cleanup::Compact
    }
}

/// Where a partition's log begins and ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogFacts {
    /// The log start.
    pub start: Option<i64>,
    /// The last stable offset.
    pub stable: Option<i64>,
    /// The high watermark.
    pub end: Option<i64>,
}

/// What a cluster is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Question {
    /// All topics.
    Topics,
    /// Partitions and rights of the topics that matter.
    Descriptions,
    /// Their settings.
    Settings,
    /// The flows' groups.
    Groups,
    /// What they committed.
    Positions,
    /// Where logs begin and end.
    Offsets,
    /// What retention is about to delete.
    Retention,
    /// Whether topics would be created.
    Creation,
    /// Whether topics would be grown.
    Growth,
}

impl Question {
    /// The question in words, after "did not say".
    pub fn as_str(self) -> &'static str {
        match self {
            Question::Topics => "which topics there are",
            Question::Descriptions => "what its topics are like",
            Question::Settings => "the settings of its topics",
            Question::Groups => "who is in the consumer groups",
            Question::Positions => "which positions are committed",
            Question::Offsets => "where the partitions begin and end",
            Question::Retention => "what its retention is about to delete",
            Question::Creation => "whether topics may be created",
            Question::Growth => "whether topics may be grown",
        }
    }
}
