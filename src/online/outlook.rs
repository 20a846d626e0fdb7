//! What a flow has before it: topics to create, partitions to add, records to catch up. Pure.

use crate::online::ask::Answers;
use crate::online::facts::{ClusterFacts, Question};
use crate::online::needs::{Creation, FlowNeeds};
use crate::online::position::{Begin, Positions};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a flow has before it, as far as the clusters said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outlook {
    /// The route.
    pub route: String,
    /// The source cluster.
    pub source: String,
    /// The target cluster.
    pub target: String,
    /// The consumer group.
    pub group: String,
    /// Source topics that match.
    pub topics: usize,
    /// Their partitions.
    pub partitions: usize,
    /// Target topics that the flow would create; `None` where the target did not say.
    pub creates: Option<Vec<TopicCreated>>,
    /// Target topics that the flow would grow; `None` where the target did not say.
    pub grows: Option<Vec<TopicGrown>>,
    /// Where the partitions begin; `None` where the source did not say.
    pub begins: Option<Begins>,
    /// What is to be caught up; `None` where the source did not say.
    pub behind: Option<Behind>,
}

/// A topic that would be created.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopicCreated {
    /// Its name.
    pub topic: String,
    /// Its partition count.
    pub partitions: i32,
    /// Its replication factor; `None`: the broker's default.
    pub replication_factor: Option<i32>,
}

/// A topic that would be grown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopicGrown {
    /// Its name.
    pub topic: String,
    /// Its partition count now.
    pub from: i32,
    /// Its partition count then.
    pub to: i32,
}

/// Where the partitions of a flow begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begins {
    /// At committed positions.
    pub committed: usize,
    /// At the first record there is.
    pub earliest: usize,
    /// At the end.
    pub latest: usize,
    /// Behind records that are gone.
    pub gap: usize,
    /// Nowhere, until somebody acts.
    pub halted: usize,
}

/// What is to be caught up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Behind {
    /// Records: offsets, so no more than that.
    pub records: u64,
    /// Bytes before compression, estimated from a look at some records; `None` without one.
    pub bytes: Option<u64>,
}

/// What every flow has before it.
pub fn outlooks(answers: &Answers) -> Vec<Outlook> {
    let facts = |name| answers.clusters.get(name)?.as_ref().ok();
    let flows = answers.flows.iter();
    flows
        .map(|flow| Outlook::of(flow, facts(&flow.source.name), facts(&flow.target.name)))
        .collect()
}

impl Outlook {
    fn of(flow: &FlowNeeds, source: Option<&ClusterFacts>, target: Option<&ClusterFacts>) -> Self {
        let target_id = target.and_then(|t| t.description.id.as_deref());
        let positions = source.and_then(|source| Positions::of(flow, source, target_id));
        let listed = target.filter(|t| !t.unanswered.contains_key(&Question::Topics));
        // Without the source nobody knows which topics there will be.
        let listed = listed.filter(|_| source.is_some());
        Self {
            route: flow.route.name.to_string(),
            source: flow.source.name.to_string(),
            target: flow.target.name.to_string(),
            group: flow.group.clone(),
            topics: flow.sources.len(),
            partitions: flow.partitions().len(),
            creates: listed.map(|target| creates(flow, target)),
            grows: listed.map(|target| grows(flow, target)),
            begins: positions.as_ref().map(Begins::of),
            behind: positions
                .zip(source)
                .map(|(positions, source)| Behind::of(&positions, source)),
        }
    }
}

fn creates(flow: &FlowNeeds, target: &ClusterFacts) -> Vec<TopicCreated> {
    let needs = flow.targets.iter();
    needs
        .filter(|_| flow.creation() == Creation::Allowed)
        .filter(|(topic, _)| !target.topics.contains_key(*topic))
        .map(|(topic, need)| TopicCreated {
            topic: topic.clone(),
            partitions: need.partitions,
            replication_factor: flow.route.topic_creation.replication_factor,
        })
        .collect()
}

fn grows(flow: &FlowNeeds, target: &ClusterFacts) -> Vec<TopicGrown> {
    let needs = flow.targets.iter();
    needs
        .filter(|(_, need)| !need.sources.is_empty())
        .filter(|_| flow.creation() == Creation::Allowed && flow.grows())
        .filter_map(|(topic, need)| {
            let from = *target.topics.get(topic)?;
            (from < need.partitions).then(|| TopicGrown {
                topic: topic.clone(),
                from,
                to: need.partitions,
            })
        })
        .collect()
}

impl Begins {
    fn of(positions: &Positions) -> Self {
        let mut all = Self::default();
        for begin in positions.begins.values() {
            match begin {
                Begin::Committed(_) => all.committed += 1,
                Begin::Earliest(_) => all.earliest += 1,
                Begin::Latest(_) => all.latest += 1,
                Begin::Gap(..) => all.gap += 1,
                Begin::Halted(_) => all.halted += 1,
            }
        }
        all
    }

    /// `90 committed, 6 earliest`.
    pub fn in_words(self) -> String {
        let kinds = [
            (self.committed, "committed"),
            (self.earliest, "earliest"),
            (self.latest, "latest"),
            (self.gap, "behind a gap"),
            (self.halted, "halted"),
        ];
        let words = kinds.iter().filter(|(count, _)| *count > 0);
        let words: Vec<String> = words.map(|(n, word)| format!("{n} {word}")).collect();
        words.join(", ")
    }
}

impl Behind {
    fn of(positions: &Positions, source: &ClusterFacts) -> Self {
        let mut by_topic: BTreeMap<&str, u64> = BTreeMap::new();
        for (tp, begin) in &positions.begins {
            let records = begin.span().map_or(0, |span| span.records());
            *by_topic.entry(&tp.topic).or_default() += records;
        }
        let bytes = by_topic.iter().filter(|(_, records)| **records > 0);
        let bytes = bytes.map(|(topic, records)| {
            let samples = source.samples.get(*topic).filter(|s| !s.is_empty())?;
            let size: u64 = samples.iter().map(|record| record.bytes()).sum();
            let average = size as f64 / samples.len() as f64;
            Some((average * *records as f64) as u64)
        });
        Self {
            records: positions.lag(),
            bytes: bytes.sum(),
        }
    }
}
