//! What the sandbox plays: its clusters, its topics, and where each of them must arrive.

/// A topic that the generator fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceTopic {
    /// The cluster's name in the file.
    pub cluster: &'static str,
    /// The topic.
    pub topic: &'static str,
    /// Its partitions.
    pub partitions: i32,
}

/// A source topic and the topic at a target that must hold the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lane {
    /// The route that copies it.
    pub route: &'static str,
    /// Where it comes from.
    pub source: SourceTopic,
    /// The target cluster's name in the file.
    pub target: &'static str,
    /// The topic there.
    pub target_topic: String,
}

/// The clusters, in the order in which they are shown.
pub const CLUSTERS: [&str; 3] = ["lisbon", "virginia", "hub"];

/// The route that merges two regions in the hub.
pub const FAN_IN: &str = "orders-in";

/// The route that brings the hub's topics to two regions.
pub const FAN_OUT: &str = "catalogue-out";

/// Header that the reload adds to what [`FAN_IN`] copies.
pub const ADDED_HEADER: &str = "x-dc";

const fn topic(cluster: &'static str, topic: &'static str, partitions: i32) -> SourceTopic {
    SourceTopic {
        cluster,
        topic,
        partitions,
    }
}

/// Everything that the generator fills.
pub const SOURCES: [SourceTopic; 6] = [
    topic("lisbon", "orders", 3),
    topic("lisbon", "payments.card", 2),
    topic("virginia", "orders", 3),
    topic("virginia", "payments.card", 2),
    topic("hub", "catalogue", 2),
    topic("hub", "prices", 2),
];

/// Every copy that the example file promises.
pub fn lanes() -> Vec<Lane> {
    let mut lanes = Vec::new();
    for source in SOURCES {
        if source.cluster == "hub" {
            lanes.extend(["lisbon", "virginia"].map(|target| Lane {
                route: FAN_OUT,
                source,
                target,
                target_topic: source.topic.to_owned(),
            }));
        } else {
            lanes.push(Lane {
                route: FAN_IN,
                source,
                target: "hub",
                target_topic: format!("{}.{}", source.cluster, source.topic),
            });
        }
    }
    lanes
}

/// How many clusters each record of `cluster` is copied to.
pub fn copies_from(cluster: &str) -> u64 {
    let lanes = lanes();
    let lanes = lanes.iter().filter(|lane| lane.source.cluster == cluster);
    let topics = SOURCES.iter().filter(|source| source.cluster == cluster);
    (lanes.count() / topics.count().max(1)) as u64
}

/// The value of the record with this number: anyone who knows its place can tell whether a copy
/// is the same, byte for byte.
pub fn value(of: &SourceTopic, partition: i32, number: u64) -> String {
    format!(
        r#"{{"from":"{}","topic":"{}","partition":{partition},"number":{number},"amount":{}.{:02},"note":"{}"}}"#,
        of.cluster,
        of.topic,
        number * 7 % 1000,
        number % 100,
        "-".repeat(40 + (number % 60) as usize),
    )
}

/// Which number a value carries, if it is one of ours.
pub fn number(value: &[u8]) -> Option<u64> {
    #[derive(serde::Deserialize)]
    struct Numbered {
        number: u64,
    }
    let numbered: Numbered = serde_json::from_slice(value).ok()?;
    Some(numbered.number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_carries_its_number() {
        let text = value(&SOURCES[0], 2, 4711);
        assert_eq!(number(text.as_bytes()), Some(4711));
        assert_eq!(number(b"{}"), None);
        assert_eq!(number(b"garbage"), None);
    }

    #[test]
    fn every_source_has_a_lane() {
        assert_eq!(lanes().len(), 8);
        assert_eq!(CLUSTERS.map(copies_from), [1, 1, 2]);
    }
}
