//! What clusters answered, as a value that is shown, sent and read: `check --online`, `plan --online`.

use crate::config::spec::Spec;
use crate::online::ask::{self, Answers};
use crate::online::outlook::{Outlook, outlooks};
use crate::plan::{Report, Verb};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// What clusters said of themselves, and what each flow has before it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ahead {
    /// By the cluster's name.
    pub clusters: BTreeMap<String, ClusterSaid>,
    /// Each flow.
    pub flows: Vec<Outlook>,
    /// Whether every cluster answered every question, if only with a no.
    pub complete: bool,
}

/// What a cluster said of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterSaid {
    /// Whether it answered.
    pub answered: bool,
    /// Why it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// Its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Its brokers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub brokers: Vec<i32>,
    /// How many topics it shows us.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topics: Option<usize>,
}

impl Ahead {
    /// Asks about the routes of `wanted` that `plan` starts, restarts or changes.
    pub fn ask(wanted: &Spec, plan: &Report, patience: Duration) -> Self {
        Self::from(&ask::ask(&touched(wanted, plan), patience))
    }
}

fn touched(wanted: &Spec, plan: &Report) -> Spec {
    let mut touched = Spec::clone(wanted);
    touched.routes.retain(|name, _| {
        let planned = plan.routes.get(name.as_str()).map(|route| route.change);
        planned.is_some_and(|verb| verb != Verb::Stop)
    });
    touched
}

impl From<&Answers> for Ahead {
    fn from(answers: &Answers) -> Self {
        let clusters = answers.clusters.iter().map(|(name, heard)| {
            let said = match heard {
                Err(trouble) => ClusterSaid {
                    answered: false,
                    trouble: Some(trouble.cause.as_str().to_owned()),
                    id: None,
                    brokers: Vec::new(),
                    topics: None,
                },
                Ok(facts) => ClusterSaid {
                    answered: true,
                    trouble: None,
                    id: facts.description.id.clone(),
                    brokers: facts.description.brokers.clone(),
                    topics: Some(facts.topics.len()),
                },
            };
            (name.to_string(), said)
        });
        Self {
            clusters: clusters.collect(),
            flows: outlooks(answers),
            complete: answers.is_complete(),
        }
    }
}
