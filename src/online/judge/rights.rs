//! Rights that are needed, now and later, on both sides.

use super::topics::is_hidden;
use super::{Finding, Flow, listed};
use crate::client::native::{Right, Rights};
use crate::config::diagnostic::Code;
use crate::online::ask::is_right;
use crate::online::facts::{ClusterFacts, Question};
use crate::online::needs::Creation;
use rdkafka::types::RDKafkaErrorCode;
use std::collections::BTreeMap;

pub(super) fn judge(flow: &Flow<'_>, found: &mut Vec<Finding>) {
    source_topics(flow, found);
    group(flow, found);
    let Some(target) = flow.target else { return };
    target_topics(flow, target, found);
    changes(flow, target, found);
    idempotence(flow, target, found);
    settings(flow, target, found);
}

/// What is missing, by right.
#[derive(Default)]
struct Missing(BTreeMap<Right, Vec<String>>);

impl Missing {
    fn look(&mut self, facts: &ClusterFacts, topic: &str, wanted: &[Right]) {
        if is_hidden(facts, topic) {
            self.add(Right::Describe, topic);
            return;
        }
        let granted = facts.topic(topic).and_then(|t| t.rights.as_ref());
        // Brokers before 2.3 do not say.
        let Some(granted) = granted else { return };
        for right in wanted.iter().filter(|r| !granted.allow(**r)) {
            self.add(*right, topic);
        }
    }

    fn add(&mut self, right: Right, topic: &str) {
        self.0.entry(right).or_default().push(topic.to_owned());
    }
}

fn say_missing(
    flow: &Flow<'_>,
    code: Code,
    side: &str,
    missing: Missing,
    found: &mut Vec<Finding>,
) {
    let cluster = match side {
        "source" => &flow.needs.source,
        _ => &flow.needs.target,
    };
    for (right, topics) in missing.0 {
        let right = right.as_str();
        found.push(flow.say(
            code,
            &[side],
            &format!(
                "no right to {right} on {} of `{}`",
                super::the_topics(&topics),
                cluster.name
            ),
            &format!(
                "grant {right} on Topic:{} to the user of `{}`",
                listed(&topics),
                cluster.name
            ),
        ));
    }
}

fn source_topics(flow: &Flow<'_>, found: &mut Vec<Finding>) {
    let mut missing = Missing::default();
    for topic in flow.needs.sources.keys() {
        missing.look(flow.source, topic, &[Right::Read, Right::Describe]);
    }
    for topic in &flow.needs.unseen {
        missing.look(flow.source, topic, &[]);
    }
    say_missing(flow, Code::RightMissing, "source", missing, found);
}

/// Reading positions and being in a group are one right, committing is the same.
fn group(flow: &Flow<'_>, found: &mut Vec<Finding>) {
    let group = &flow.needs.group;
    let refused = match flow.source.groups.get(group) {
        None => false,
        Some(Err(code)) => is_right(*code),
        Some(Ok(described)) => {
            let no = |granted: &Rights| !granted.allow(Right::Read);
            described.rights.as_ref().is_some_and(no)
        }
    };
    let positions = flow.source.positions.get(group);
    let unread = matches!(positions, Some(Err((code, _))) if is_right(*code));
    let all = flow.source.unanswered.get(&Question::Groups);
    let all = all.is_some_and(|(code, _)| is_right(*code));
    if refused || unread || all {
        found.push(flow.say(
            Code::RightMissing,
            &["source"],
            &format!(
                "no right to Read on the group {group} of `{}`: it can neither be joined nor commit",
                flow.needs.source.name
            ),
            &format!(
                "grant Read on Group:{group} (or on the prefix `mirror.`) to the user of `{}`",
                flow.needs.source.name
            ),
        ));
    }
}

fn target_topics(flow: &Flow<'_>, target: &ClusterFacts, found: &mut Vec<Finding>) {
    let mut missing = Missing::default();
    let by_content = flow.needs.sources.values().flat_map(|s| &s.targets);
    let mut topics: Vec<&String> = flow.needs.targets.keys().chain(by_content).collect();
    topics.sort();
    topics.dedup();
    for topic in topics {
        missing.look(target, topic, &[Right::Write, Right::Describe]);
    }
    say_missing(flow, Code::RightMissing, "target", missing, found);
}

/// Create now, for what is not there; Alter later, for what has to follow the source's growth.
fn changes(flow: &Flow<'_>, target: &ClusterFacts, found: &mut Vec<Finding>) {
    if flow.needs.creation() != Creation::Allowed {
        return;
    }
    let mut now = Missing::default();
    let mut later = Missing::default();
    for (topic, need) in &flow.needs.targets {
        let code = flow.refusal(target, topic);
        match (target.topics.contains_key(topic), code) {
            (false, Some(code)) if is_right(code) => now.add(Right::Create, topic),
            (true, Some(code)) if is_right(code) => now.add(Right::Alter, topic),
            (true, None) if flow.needs.grows() && !need.sources.is_empty() => {
                let granted = target.topic(topic).and_then(|t| t.rights.as_ref());
                if granted.is_some_and(|g| !g.allow(Right::Alter)) {
                    later.add(Right::Alter, topic);
                }
            }
            _ => {}
        }
    }
    say_missing(flow, Code::RightMissing, "target", now, found);
    let Some(topics) = later.0.remove(&Right::Alter) else {
        return;
    };
    found.push(flow.say(
        Code::RightMissingLater,
        &["target"],
        &format!(
            "no right to Alter on {} of `{}`: when the source grows they will not",
            super::the_topics(&topics),
            flow.needs.target.name
        ),
        &format!(
            "grant Alter on Topic:{} to the user of `{}`, or set `topic_creation: {{ enabled: false }}`",
            listed(&topics),
            flow.needs.target.name
        ),
    ));
}

/// Since 2.8, which brought topic ids, the right to write a topic is enough.
fn idempotence(flow: &Flow<'_>, target: &ClusterFacts, found: &mut Vec<Finding>) {
    let mut described = target.described.values().filter_map(|t| t.as_ref().ok());
    let old = described.any(|topic| topic.id.is_none());
    let granted = target.description.rights.as_ref();
    if old && granted.is_some_and(|g| !g.allow(Right::IdempotentWrite)) {
        found.push(flow.say(
            Code::RightMissing,
            &["target"],
            &format!(
                "no right to IdempotentWrite on the cluster `{}`",
                flow.needs.target.name
            ),
            "grant IdempotentWrite on Cluster:kafka-cluster; brokers before 2.8 ask for it",
        ));
    }
}

/// Settings that may not be read cannot be compared; a copy needs the source's to create topics.
fn settings(flow: &Flow<'_>, target: &ClusterFacts, found: &mut Vec<Finding>) {
    let refused = |facts: &ClusterFacts, topic: &str| {
        let code = facts.configs.get(topic).and_then(|c| c.as_ref().err());
        code.is_some_and(|code| *code == RDKafkaErrorCode::TopicAuthorizationFailed)
    };
    let route = &flow.needs.route;
    let copies =
        flow.needs.creation() == Creation::Allowed && !route.topic_creation.configs.is_empty();
    let (mut needed, mut unseen) = (Missing::default(), Vec::new());
    for (topic, need) in &flow.needs.targets {
        for source in &need.sources {
            if copies && !target.topics.contains_key(topic) && refused(flow.source, source) {
                needed.add(Right::DescribeConfigs, source);
            }
        }
        if refused(target, topic) && !is_hidden(target, topic) {
            unseen.push(topic);
        }
    }
    say_missing(flow, Code::RightMissing, "source", needed, found);
    if !unseen.is_empty() {
        found.push(flow.say(
            Code::NotSeen,
            &["target"],
            &format!(
                "no right to DescribeConfigs on {} of `{}`: size limits, timestamps, cleanup and codec were not compared",
                super::the_topics(&unseen),
                flow.needs.target.name
            ),
            &format!(
                "grant DescribeConfigs on Topic:{} to the user of `{}`",
                listed(&unseen),
                flow.needs.target.name
            ),
        ));
    }
}
