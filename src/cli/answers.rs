//! What clusters answered, as tables for people and as JSON.

use super::text::{columns, count};
use crate::online::Answers;
use crate::online::outlook::{Outlook, outlooks};
use serde_json::{Value, json};

/// Two tables: a line for each cluster, and one for each flow.
pub(super) fn table(answers: &Answers) -> String {
    let head = |cells: &[&str]| cells.iter().map(|c| (*c).to_owned()).collect::<Vec<_>>();
    let mut clusters = vec![head(&["CLUSTER", "ID", "BROKERS", "TOPICS"])];
    for (name, heard) in &answers.clusters {
        let name = name.to_string();
        clusters.push(match heard {
            Err(trouble) => vec![name, "-".into(), "-".into(), trouble.cause.as_str().into()],
            Ok(facts) => vec![
                name,
                facts.description.id.clone().unwrap_or_else(|| "-".into()),
                facts.description.brokers.len().to_string(),
                facts.topics.len().to_string(),
            ],
        });
    }
    let mut flows = vec![head(&[
        "ROUTE",
        "FLOW",
        "TOPICS",
        "PARTITIONS",
        "BEHIND",
        "BEGINS",
    ])];
    flows.extend(outlooks(answers).iter().map(flow));
    format!("{}\n{}", columns(&clusters), columns(&flows))
}

fn flow(of: &Outlook) -> Vec<String> {
    let known = |number: usize| match of.begins {
        Some(_) => number.to_string(),
        None if number > 0 => number.to_string(),
        None => "-".into(),
    };
    vec![
        of.route.clone(),
        format!("{} → {}", of.source, of.target),
        known(of.topics),
        known(of.partitions),
        of.behind
            .map_or_else(|| "-".into(), |behind| count(behind.records as f64)),
        of.begins
            .map_or_else(|| "-".into(), |begins| begins.in_words()),
    ]
}

/// The same for programs.
pub(super) fn json(answers: &Answers) -> Value {
    let clusters: serde_json::Map<String, Value> = answers
        .clusters
        .iter()
        .map(|(name, heard)| {
            let said = match heard {
                Err(trouble) => json!({ "answered": false, "trouble": trouble.cause.as_str() }),
                Ok(facts) => json!({
                    "answered": true,
                    "id": facts.description.id,
                    "brokers": facts.description.brokers,
                    "topics": facts.topics.len(),
                }),
            };
            (name.to_string(), said)
        })
        .collect();
    json!({ "clusters": clusters, "flows": outlooks(answers) })
}
