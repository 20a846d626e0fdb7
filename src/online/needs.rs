//! What each flow needs of its two clusters: topics, partitions, a group. Pure, from the topics that
//! the clusters show; the same rules by which the engine creates and grows (`flow::target`).

use crate::config::spec::{Access, ClusterSpec, CreationMode, RouteSpec, Spec, group_name};
use crate::handler::{BoundChain, Clock};
use crate::partition::PolicySpec;
use crate::record::TopicPartition;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// One source→target pair of a route, with the topics that it copies.
#[derive(Clone, Debug)]
pub struct FlowNeeds {
    /// The route.
    pub route: Arc<RouteSpec>,
    /// The source cluster.
    pub source: Arc<ClusterSpec>,
    /// The target cluster.
    pub target: Arc<ClusterSpec>,
    /// The consumer group.
    pub group: String,
    /// The source topics that match.
    pub sources: BTreeMap<String, SourceTopic>,
    /// The target topics that must be there.
    pub targets: BTreeMap<String, TargetNeed>,
    /// Topics that the route names literally and that the source does not show.
    pub unseen: BTreeSet<String>,
    /// Source topics for which the handlers cannot be set up, with the reason.
    pub unbound: BTreeMap<String, String>,
}

/// A source topic that matches.
#[derive(Clone, Debug)]
pub struct SourceTopic {
    /// Its partition count.
    pub partitions: i32,
    /// The target topics that its records may go to.
    pub targets: Vec<String>,
    /// The handlers, bound to it.
    pub chain: BoundChain,
}

/// A target topic that must be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetNeed {
    /// The partitions it is created with, and grown to if the policy is `match`.
    pub partitions: i32,
    /// The source topics whose records go there; none for a dead-letter topic.
    pub sources: Vec<String>,
}

/// Whether a flow may create and grow target topics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Creation {
    /// It may.
    Allowed,
    /// It must take them as they are.
    Forbidden,
}

impl FlowNeeds {
    /// `orders-in (lisbon → hub)`, or the route's name alone where it has one flow.
    pub fn title(&self) -> String {
        match (self.route.sources.len(), self.route.targets.len()) {
            (1, 1) => self.route.name.to_string(),
            _ => format!(
                "{} ({} → {})",
                self.route.name, self.source.name, self.target.name
            ),
        }
    }

    /// Whether it may create and grow target topics.
    pub fn creation(&self) -> Creation {
        match (self.route.topic_creation.mode, self.target.access) {
            (CreationMode::Enabled, Access::ReadWrite) => Creation::Allowed,
            _ => Creation::Forbidden,
        }
    }

    /// Whether its target topics follow the source's partition count.
    pub fn grows(&self) -> bool {
        matches!(self.route.policy, PolicySpec::Match { .. })
    }

    /// Every source partition.
    pub fn partitions(&self) -> Vec<TopicPartition> {
        let mut all = Vec::new();
        for (topic, source) in &self.sources {
            let name: Arc<str> = topic.as_str().into();
            all.extend((0..source.partitions).map(|p| TopicPartition::new(name.clone(), p)));
        }
        all
    }
}

/// What every flow of `spec` needs. `topics` tells what a cluster shows, `None` where it could not be
/// asked.
pub fn needs(
    spec: &Spec,
    topics: &dyn Fn(&ClusterSpec) -> Option<BTreeMap<String, i32>>,
) -> Vec<FlowNeeds> {
    let mut all = Vec::new();
    for route in spec.routes.values() {
        for source in &route.sources {
            let there = topics(source);
            for target in &route.targets {
                let mut needs = FlowNeeds {
                    route: route.clone(),
                    source: source.clone(),
                    target: target.clone(),
                    group: group_name(&spec.group, &route.name, &source.name, &target.name),
                    sources: BTreeMap::new(),
                    targets: BTreeMap::new(),
                    unseen: BTreeSet::new(),
                    unbound: BTreeMap::new(),
                };
                if let Some(there) = &there {
                    needs.see(there, &topics(target).unwrap_or_default());
                }
                all.push(needs);
            }
        }
    }
    all
}

impl FlowNeeds {
    fn see(&mut self, there: &BTreeMap<String, i32>, at_target: &BTreeMap<String, i32>) {
        for (topic, partitions) in there {
            self.match_topic(topic, *partitions, at_target);
        }
        let patterns = self.route.topics.include_patterns.iter();
        self.unseen = patterns
            .filter(|pattern| is_literal(pattern) && !there.contains_key(*pattern))
            .cloned()
            .collect();
        let copies = !self.sources.is_empty() || !self.unseen.is_empty();
        if let Some(topic) = self.route.dead_letter.clone().filter(|_| copies) {
            self.targets.entry(topic).or_insert(TargetNeed {
                partitions: 1,
                sources: Vec::new(),
            });
        }
    }

    fn match_topic(&mut self, topic: &str, partitions: i32, at_target: &BTreeMap<String, i32>) {
        let (source, target) = (&self.source.name, &self.target.name);
        let Some(bound) = self.route.bind(source, target, topic, Clock::System) else {
            return;
        };
        let chain = match bound {
            Ok(chain) => chain,
            Err(fault) => {
                self.unbound.insert(topic.to_owned(), fault.message);
                return;
            }
        };
        let targets = chain.targets().clone();
        for name in &targets.known {
            let need = self.targets.entry(name.clone()).or_insert(TargetNeed {
                partitions: 0,
                sources: Vec::new(),
            });
            need.partitions = need.partitions.max(partitions);
            need.sources.push(topic.to_owned());
        }
        let mut written = targets.known.clone();
        let by_content = at_target
            .keys()
            .filter(|name| targets.by_content.iter().any(|r| r.is_match(name)));
        written.extend(by_content.filter(|n| !targets.known.contains(n)).cloned());
        let source = SourceTopic {
            partitions,
            targets: written,
            chain,
        };
        self.sources.insert(topic.to_owned(), source);
    }
}

/// Whether a pattern can match one name only.
fn is_literal(pattern: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
    !pattern.is_empty() && pattern.bytes().all(plain)
}
