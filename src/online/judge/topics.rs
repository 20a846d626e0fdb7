//! Which topics are there, which are to be made, and whether they can hold what is copied.

use super::{Finding, Flow, listed, the_topics};
use crate::config::diagnostic::Code;
use crate::online::ask::is_right;
use crate::online::facts::{ClusterFacts, Question};
use crate::online::needs::{Creation, TargetNeed};
use crate::partition::{OnFewer, PolicySpec};
use rdkafka::types::RDKafkaErrorCode;
use std::collections::BTreeMap;

pub(super) fn judge(flow: &Flow<'_>, found: &mut Vec<Finding>) {
    matches(flow, found);
    unbound(flow, found);
    leaders(flow, found);
    let Some(target) = flow.target else { return };
    if !target.unanswered.contains_key(&Question::Topics) {
        missing(flow, target, found);
        counts(flow, target, found);
    }
    refused(flow, target, found);
    factor(flow, target, found);
    replicas(flow, target, found);
}

fn matches(flow: &Flow<'_>, found: &mut Vec<Finding>) {
    let asked = !flow.source.unanswered.contains_key(&Question::Topics);
    let nothing = flow.needs.sources.is_empty() && flow.needs.unbound.is_empty();
    let hidden = (flow.needs.unseen.iter()).any(|t| is_hidden(flow.source, t));
    if asked && nothing && !hidden {
        found.push(flow.say(
            Code::NothingMatches,
            &["topics"],
            &format!("no topic of `{}` matches", flow.needs.source.name),
            "correct `topics`, or wait for the topic: it is copied as soon as it is there",
        ));
    }
}

/// Whether the cluster says that we may not see a topic.
pub(super) fn is_hidden(facts: &ClusterFacts, topic: &str) -> bool {
    matches!(facts.described.get(topic), Some(Err(code)) if is_right(*code))
}

fn unbound(flow: &Flow<'_>, found: &mut Vec<Finding>) {
    for (topic, reason) in &flow.needs.unbound {
        found.push(flow.say(
            Code::TopicUnbound,
            &["handlers"],
            &format!("the handlers cannot be set up for topic {topic}: {reason}"),
            "correct the handlers, or exclude the topic",
        ));
    }
}

fn leaders(flow: &Flow<'_>, found: &mut Vec<Finding>) {
    let ends = [
        ("source", Some(flow.source), keys(&flow.needs.sources)),
        ("target", flow.target, keys(&flow.needs.targets)),
    ];
    for (side, facts, topics) in ends {
        let Some(facts) = facts else { continue };
        let leaderless: Vec<&str> = topics
            .into_iter()
            .filter(|topic| {
                let described = facts.topic(topic);
                described.is_some_and(|t| t.partitions.iter().any(|p| p.leader.is_none()))
            })
            .collect();
        if !leaderless.is_empty() {
            found.push(flow.say(
                Code::NotAvailable,
                &[side],
                &format!(
                    "{} of the {side} have partitions without a leader",
                    the_topics(&leaderless)
                ),
                "bring the brokers back; until then these partitions wait",
            ));
        }
    }
}

fn keys<T>(map: &BTreeMap<String, T>) -> Vec<&str> {
    map.keys().map(String::as_str).collect()
}

fn missing(flow: &Flow<'_>, target: &ClusterFacts, found: &mut Vec<Finding>) {
    if flow.needs.creation() == Creation::Allowed {
        return;
    }
    let gone: Vec<&String> = (flow.needs.targets.keys())
        .filter(|topic| !target.topics.contains_key(*topic) && !is_hidden(target, topic))
        .collect();
    if !gone.is_empty() {
        found.push(flow.say(
            Code::TopicMissing,
            &["topic_creation"],
            &format!(
                "`{}` has no {}, and none may be created there",
                flow.needs.target.name,
                the_topics(&gone)
            ),
            "create them, or set `topic_creation: { enabled: true }`",
        ));
    }
}

/// Fewer partitions than the policy wants, and nobody may grow the topic.
fn counts(flow: &Flow<'_>, target: &ClusterFacts, found: &mut Vec<Finding>) {
    let may_grow = flow.needs.creation() == Creation::Allowed && flow.needs.grows();
    let too_few = |wanted: &dyn Fn(&TargetNeed) -> i32| -> Vec<String> {
        let needs = flow.needs.targets.iter();
        needs
            .filter(|(_, need)| !need.sources.is_empty())
            .filter_map(|(topic, need)| {
                let there = *target.topics.get(topic)?;
                let wanted = wanted(need);
                (there < wanted).then(|| format!("{topic} has {there} of {wanted}"))
            })
            .collect()
    };
    match flow.needs.route.policy {
        _ if may_grow => {}
        PolicySpec::Match {
            on_fewer: OnFewer::Stop,
        } => {
            let few = too_few(&|need| need.partitions);
            if !few.is_empty() {
                found.push(flow.say(
                    Code::TooFewPartitions,
                    &["partitions"],
                    &format!(
                        "target topics have too few partitions and may not be grown: {}",
                        listed(&few)
                    ),
                    "grow them, allow `topic_creation`, or set `partitions: { policy: match, on_fewer: modulo }`",
                ));
            }
        }
        PolicySpec::Match {
            on_fewer: OnFewer::Modulo,
        }
        | PolicySpec::Modulo => {
            let few = too_few(&|need| need.partitions);
            if !few.is_empty() {
                found.push(flow.say(
                    Code::PartitionsShared,
                    &["partitions"],
                    &format!(
                        "several source partitions share a target partition: {}",
                        listed(&few)
                    ),
                    "grow the target topics if their partitions are to be the source's",
                ));
            }
        }
        PolicySpec::Fixed(partition) => {
            let few = too_few(&|_| partition.saturating_add(1));
            if !few.is_empty() {
                found.push(flow.say(
                    Code::TooFewPartitions,
                    &["partitions"],
                    &format!(
                        "the fixed partition {partition} is not there: {}",
                        listed(&few)
                    ),
                    "name a partition that exists, or grow the target topics",
                ));
            }
        }
        PolicySpec::KeyHash | PolicySpec::RoundRobin | PolicySpec::By(_) => {}
    }
}

/// The cluster was asked whether it would create or grow them.
fn refused(flow: &Flow<'_>, target: &ClusterFacts, found: &mut Vec<Finding>) {
    if flow.needs.creation() != Creation::Allowed {
        return;
    }
    let mut by_code: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for topic in flow.needs.targets.keys() {
        // Rights and replicas have findings of their own.
        if let Some(code) = flow.refusal(target, topic)
            && !is_right(code)
            && code != RDKafkaErrorCode::InvalidReplicationFactor
        {
            by_code.entry(code.to_string()).or_default().push(topic);
        }
    }
    for (reason, topics) in by_code {
        found.push(flow.say(
            Code::ChangeRefused,
            &["topic_creation"],
            &format!(
                "`{}` would not create or grow {}: {reason}",
                flow.needs.target.name,
                the_topics(&topics)
            ),
            "see the cluster's policies and limits for new topics, or create them by hand",
        ));
    }
}

/// Topics that are still to be created.
fn new_topics<'a>(flow: &'a Flow<'_>, target: &ClusterFacts) -> Vec<&'a str> {
    let needs = flow.needs.targets.keys();
    needs
        .filter(|topic| !target.topics.contains_key(*topic))
        .map(String::as_str)
        .collect()
}

fn factor(flow: &Flow<'_>, target: &ClusterFacts, found: &mut Vec<Finding>) {
    let new = new_topics(flow, target);
    if new.is_empty() || flow.needs.creation() != Creation::Allowed {
        return;
    }
    let given = flow.needs.route.topic_creation.replication_factor;
    let default = target.broker_number("default.replication.factor");
    let factor = given.map(i64::from).or(default);
    let refused = |topic: &&str| {
        flow.refusal(target, topic) == Some(RDKafkaErrorCode::InvalidReplicationFactor)
    };
    let brokers = i64::try_from(target.description.brokers.len()).unwrap_or(i64::MAX);
    let setting = ["topic_creation", "replication_factor"];
    if new.iter().any(refused) || factor.is_some_and(|factor| factor > brokers) {
        let wanted = factor.map_or("more".to_owned(), |factor| factor.to_string());
        found.push(flow.say(
            Code::TooFewBrokers,
            &setting,
            &format!(
                "new topics would have {wanted} replicas, and `{}` has {brokers} brokers alive",
                flow.needs.target.name
            ),
            "lower `topic_creation.replication_factor`, or bring more brokers",
        ));
        return;
    }
    if let (Some(factor), Some(in_sync)) = (factor, target.broker_number("min.insync.replicas"))
        && factor < in_sync
    {
        found.push(flow.say(
            Code::TooFewReplicas,
            &setting,
            &format!(
                "new topics would have {factor} replicas, and `{}` takes records only with {in_sync} in sync",
                flow.needs.target.name
            ),
            "raise `topic_creation.replication_factor`",
        ));
    }
}

fn replicas(flow: &Flow<'_>, target: &ClusterFacts, found: &mut Vec<Finding>) {
    let (mut never, mut now) = (Vec::new(), Vec::new());
    for topic in flow.needs.targets.keys() {
        let Some(described) = target.topic(topic) else {
            continue;
        };
        let Some(needed) = target.number(topic, "min.insync.replicas") else {
            continue;
        };
        let needed = usize::try_from(needed).unwrap_or(0);
        let least = |count: fn(&crate::client::native::PartitionDescription) -> usize| {
            described.partitions.iter().map(count).min().unwrap_or(0)
        };
        let (replicas, in_sync) = (least(|p| p.replicas.len()), least(|p| p.in_sync.len()));
        if replicas < needed {
            never.push(format!("{topic} has {replicas} of {needed}"));
        } else if in_sync < needed {
            now.push(format!("{topic} has {in_sync} of {needed}"));
        }
    }
    if !never.is_empty() {
        found.push(flow.say(
            Code::TooFewReplicas,
            &["target"],
            &format!(
                "target topics have fewer replicas than `min.insync.replicas` and take no record: {}",
                listed(&never)
            ),
            "add replicas to the topics, or lower their `min.insync.replicas`",
        ));
    }
    if !now.is_empty() {
        found.push(flow.say(
            Code::NotAvailable,
            &["target"],
            &format!(
                "target topics have fewer replicas in sync than `min.insync.replicas` and take no record now: {}",
                listed(&now)
            ),
            "bring the brokers back",
        ));
    }
}
