//! What the answers mean. Pure: facts → findings, each at the setting of the file that it speaks of.

mod clusters;
mod groups;
mod positions;
mod records;
mod rights;
#[cfg(test)]
mod tests;
mod topics;

use crate::config::Loaded;
use crate::config::diagnostic::{Code, Diagnostic};
use crate::config::pointer;
use crate::config::spec::Spec;
use crate::online::arrivals::{Arrivals, arrivals};
use crate::online::ask::Answers;
use crate::online::facts::ClusterFacts;
use crate::online::needs::FlowNeeds;
use crate::online::position::Positions;
use rdkafka::types::RDKafkaErrorCode;
use std::collections::{BTreeMap, BTreeSet};

/// Names that a message lists before it only counts.
const LISTED: usize = 4;

/// One thing to say, at a place of the document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Which one.
    pub code: Code,
    /// The setting it speaks of, as a JSON pointer.
    pub at: String,
    /// What was found.
    pub message: String,
    /// What to do.
    pub help: String,
}

impl Finding {
    /// As a diagnostic of the file.
    pub fn placed(self, loaded: &Loaded) -> Diagnostic {
        let place = loaded.document.place(&self.at);
        Diagnostic::new(self.code, place, self.message).help(self.help)
    }
}

/// Everything that the answers say about the configuration.
pub fn judge(spec: &Spec, answers: &Answers) -> Vec<Finding> {
    let mut found = Vec::new();
    clusters::judge(spec, answers, &mut found);
    for needs in &answers.flows {
        let Some(flow) = Flow::new(needs, answers) else {
            continue;
        };
        topics::judge(&flow, &mut found);
        rights::judge(&flow, &mut found);
        records::judge(&flow, &mut found);
        groups::judge(&flow, &mut found);
        positions::judge(&flow, &mut found);
    }
    found
}

/// A flow with what is known of both its ends. The source answered; the target may not have.
struct Flow<'a> {
    needs: &'a FlowNeeds,
    source: &'a ClusterFacts,
    target: Option<&'a ClusterFacts>,
    positions: Option<Positions>,
    /// What would arrive in each target topic, of the records that were looked at.
    arrivals: BTreeMap<String, Arrivals>,
    now_ms: i64,
}

impl<'a> Flow<'a> {
    fn new(needs: &'a FlowNeeds, answers: &'a Answers) -> Option<Self> {
        let facts = |name| answers.clusters.get(name)?.as_ref().ok();
        let source = facts(&needs.source.name)?;
        let target = facts(&needs.target.name);
        let target_id = target.and_then(|t| t.description.id.as_deref());
        Some(Self {
            needs,
            source,
            target,
            positions: Positions::of(needs, source, target_id),
            arrivals: arrivals(needs, &source.samples),
            now_ms: answers.now_ms,
        })
    }

    /// The pointer of one of the route's settings.
    fn at(&self, setting: &[&str]) -> String {
        let route = pointer::child("/routes", self.needs.route.name.as_str());
        setting
            .iter()
            .fold(route, |at, step| pointer::child(&at, step))
    }

    /// A finding about one of the route's settings; the message begins with the flow.
    fn say(&self, code: Code, setting: &[&str], message: &str, help: &str) -> Finding {
        Finding {
            code,
            at: self.at(setting),
            message: format!("{}: {message}", self.needs.title()),
            help: help.to_owned(),
        }
    }

    /// Why the target would not create or grow a topic for this flow.
    fn refusal(&self, target: &ClusterFacts, topic: &str) -> Option<RDKafkaErrorCode> {
        let factor = self.needs.route.topic_creation.replication_factor;
        let creation = target.not_created.get(&(topic.to_owned(), factor));
        creation.or_else(|| target.not_grown.get(topic)).copied()
    }

    /// Source topics with a target topic that is there: what a setting of one may do to the other.
    fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        let target = self.target;
        self.needs.sources.iter().flat_map(move |(source, topic)| {
            let targets = topic.targets.iter();
            targets
                .filter(move |t| target.is_some_and(|facts| facts.topic(t).is_some()))
                .map(move |t| (source.as_str(), t.as_str()))
        })
    }
}

/// `orders, payments and 3 more`.
fn listed<T: AsRef<str>>(names: impl IntoIterator<Item = T>) -> String {
    let mut names: Vec<String> = names.into_iter().map(|n| n.as_ref().to_owned()).collect();
    names.sort();
    names.dedup();
    let more = names.len().saturating_sub(LISTED);
    // One more would be as long as its name.
    let more = if more == 1 { 0 } else { more };
    names.truncate(names.len() - more);
    match more {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

/// `the topic orders`, `the topics orders, payments and 3 more`.
fn the_topics<T: AsRef<str>>(names: &[T]) -> String {
    let names: BTreeSet<&str> = names.iter().map(AsRef::as_ref).collect();
    let word = if names.len() == 1 { "topic" } else { "topics" };
    format!("{word} {}", listed(names))
}
