//! What clusters answered, as tables and lines for people.

use super::text::{columns, count};
use crate::online::Ahead;
use crate::online::ahead::ClusterSaid;
use crate::online::outlook::Outlook;

/// Two tables: a line for each cluster, and one for each flow.
pub(super) fn table(ahead: &Ahead) -> String {
    let head = |cells: &[&str]| cells.iter().map(|c| (*c).to_owned()).collect::<Vec<_>>();
    let mut clusters = vec![head(&["CLUSTER", "ID", "BROKERS", "TOPICS"])];
    clusters.extend(
        ahead
            .clusters
            .iter()
            .map(|(name, said)| cluster(name, said)),
    );
    let mut flows = vec![head(&[
        "ROUTE",
        "FLOW",
        "TOPICS",
        "PARTITIONS",
        "BEHIND",
        "BEGINS",
    ])];
    flows.extend(ahead.flows.iter().map(flow));
    format!("{}\n{}", columns(&clusters), columns(&flows))
}

fn cluster(name: &str, said: &ClusterSaid) -> Vec<String> {
    let or_dash = |known: Option<String>| known.unwrap_or_else(|| "-".to_owned());
    let brokers = said.answered.then(|| said.brokers.len().to_string());
    let topics = said.topics.map(|count| count.to_string());
    vec![
        name.to_owned(),
        or_dash(said.id.clone()),
        or_dash(brokers),
        or_dash(topics.or_else(|| said.trouble.clone())),
    ]
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

/// A line for each flow and each change of a target topic: what a plan has before it.
pub(super) fn lines(ahead: &Ahead) -> String {
    let mut lines = Vec::new();
    for (name, said) in &ahead.clusters {
        if let Some(trouble) = &said.trouble {
            lines.push(format!("cluster {name}: {trouble}"));
        }
    }
    for flow in &ahead.flows {
        lines.push(catch_up(flow));
        if flow.creates.is_none() || flow.grows.is_none() {
            lines.push(format!(
                "  which topics would be created or grown on {} is not known",
                flow.target
            ));
        }
        for topic in flow.creates.iter().flatten() {
            let (name, count) = (&topic.topic, topic.partitions);
            lines.push(format!(
                "  + topic {name} on {}: {}",
                flow.target,
                partitions(count)
            ));
        }
        for topic in flow.grows.iter().flatten() {
            let (name, from, to) = (&topic.topic, topic.from, topic.to);
            lines.push(format!(
                "  ~ topic {name} on {}: {from} to {}",
                flow.target,
                partitions(to)
            ));
        }
    }
    lines.join("\n") + "\n"
}

fn partitions(count: i32) -> String {
    match count {
        1 => "1 partition".to_owned(),
        _ => format!("{count} partitions"),
    }
}

fn catch_up(flow: &Outlook) -> String {
    let behind = match flow.behind {
        None => "nobody could say what is to be caught up".to_owned(),
        Some(behind) => {
            let records = count(behind.records as f64);
            match behind.bytes {
                Some(bytes) if behind.records > 0 => format!(
                    "{records} records to catch up, about {}B before compression",
                    count(bytes as f64)
                ),
                _ => format!("{records} records to catch up"),
            }
        }
    };
    format!(
        "route {}, {} → {}: {behind}",
        flow.route, flow.source, flow.target
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::online::outlook::Behind;

    #[test]
    fn what_is_to_be_caught_up_is_said_in_records_and_bytes() {
        let flow = |behind| Outlook {
            route: "r".into(),
            source: "a".into(),
            target: "b".into(),
            group: "g".into(),
            topics: 1,
            partitions: 2,
            creates: None,
            grows: None,
            begins: None,
            behind,
        };
        let behind = |records, bytes| Some(Behind { records, bytes });
        let said = |behind| catch_up(&flow(behind));
        assert_eq!(
            said(behind(12_000, Some(5_000_000))),
            "route r, a → b: 12.0k records to catch up, about 5.00MB before compression"
        );
        assert_eq!(
            said(behind(0, Some(0))),
            "route r, a → b: 0 records to catch up"
        );
        assert!(said(None).ends_with("nobody could say what is to be caught up"));
    }
}
