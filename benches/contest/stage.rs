//! The clusters, the prepared topics, and what is in the target.

use crate::topic::{self, Fill};
use crate::workload::{Data, Length};
use kafka_harness::{Cluster, Link, Way, start_all};
use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use std::fs;
use std::num::NonZeroU64;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a broker may take to answer.
const ANSWER: Duration = Duration::from_secs(30);
/// Between two questions about the target.
const ASK: Duration = Duration::from_millis(50);

/// Two clusters of one broker each, on loopback.
pub struct Stage {
    source: Cluster,
    target: Cluster,
}

/// Topics of the source that are written.
#[derive(Clone, Debug)]
pub struct Prepared {
    pub topics: Vec<String>,
    pub partitions: i32,
    pub records: u64,
    /// Of keys and values as they were written.
    pub bytes: u64,
    /// Of the batches, as they lie on the disk and go over the wire.
    pub wire_bytes: u64,
}

impl Stage {
    /// Starts both, with the optimising compiler: they are not what is measured, and share the cores.
    pub fn start() -> Self {
        let fast = |name| Cluster::builder(name).jvm_arg("-XX:TieredStopAtLevel=4");
        let [source, target] =
            start_all([fast("source"), fast("target").proxied()]).expect("two clusters");
        Self { source, target }
    }

    /// Where the source is.
    pub fn source(&self) -> String {
        self.source.bootstrap()
    }

    /// Where the target is.
    pub fn target(&self) -> String {
        self.target.bootstrap()
    }

    /// Where the target is behind a network that takes so many bytes a second.
    pub fn slow_target(&self, bytes_per_second: u64) -> String {
        let slow = Way {
            bytes_per_second: NonZeroU64::new(bytes_per_second),
            ..Way::default()
        };
        self.target.broker(1).proxy().set(Link {
            to_broker: slow,
            to_client: Way::default(),
        });
        self.target.bootstrap_proxied()
    }

    /// Writes the topics of these data.
    pub fn prepare(&self, data: &Data, length: Length) -> Prepared {
        let topics = data.topic_names(length);
        let names = names(&topics);
        topic::create_all(&self.source(), &names, data.partitions, &[]);
        let records = data.records(length);
        let fill = Fill {
            topics: names,
            headers: data.headers,
            frame: data.frame,
            in_a_row: data.in_a_row,
            settings: vec![
                ("compression.type", data.codec),
                ("batch.size", data.batch_bytes),
            ],
            ..Fill::of("", data.partitions, records, data.bytes)
        };
        fill.write(&self.source());
        Prepared {
            wire_bytes: log_bytes(self.source.folder(), &topics),
            topics,
            partitions: data.partitions,
            records,
            bytes: records * (data.bytes as u64 + 8),
        }
    }

    /// Deletes them from the source.
    pub fn forget(&self, prepared: &Prepared) {
        topic::delete_all(&self.source(), &names(&prepared.topics));
    }

    /// Empty topics of the same names at the target, each partition with a leader that answers.
    pub fn empty(&self, prepared: &Prepared) {
        let names = names(&prepared.topics);
        topic::create_all(&self.target(), &names, prepared.partitions, &[]);
        let target = asker(&self.target());
        for (topic, partition) in prepared.everywhere() {
            assert_eq!(end(&target, &topic, partition), 0, "{topic} is empty");
        }
    }

    /// Deletes them there, so that the next run finds what this one found.
    pub fn clear(&self, prepared: &Prepared) {
        topic::delete_all(&self.target(), &names(&prepared.topics));
    }

    /// Looks on how these arrive at the target.
    pub fn arrival(&self, prepared: &Prepared) -> Arrival {
        Arrival {
            source: asker(&self.source()),
            target: asker(&self.target()),
            missing: prepared.everywhere().collect(),
            asked: None,
        }
    }
}

impl Prepared {
    /// Every partition.
    fn everywhere(&self) -> impl Iterator<Item = (String, i32)> {
        let topics = self.topics.iter();
        topics.flat_map(|topic| (0..self.partitions).map(move |p| (topic.clone(), p)))
    }
}

/// What has not arrived yet.
pub struct Arrival {
    source: BaseConsumer,
    target: BaseConsumer,
    missing: Vec<(String, i32)>,
    asked: Option<Instant>,
}

impl Arrival {
    /// Whether every partition of the target has as many records as that of the source. Asked often it says again
    /// what it said.
    pub fn is_complete(&mut self) -> bool {
        let is_early = self.asked.is_some_and(|asked| asked.elapsed() < ASK);
        if is_early || self.missing.is_empty() {
            return self.missing.is_empty();
        }
        self.missing.retain(|(topic, partition)| {
            end(&self.target, topic, *partition) < end(&self.source, topic, *partition)
        });
        self.asked = Some(Instant::now());
        self.missing.is_empty()
    }

    /// Whether anything has arrived in these partitions.
    pub fn has_begun(&self) -> bool {
        let mut missing = self.missing.iter();
        missing.any(|(topic, partition)| end(&self.target, topic, *partition) > 0)
    }
}

fn asker(at: &str) -> BaseConsumer {
    ClientConfig::new()
        .set("bootstrap.servers", at)
        .create()
        .expect("a client")
}

fn end(at: &BaseConsumer, topic: &str, partition: i32) -> i64 {
    // A partition that was made a moment ago may have no leader yet.
    let until = Instant::now() + ANSWER;
    loop {
        match at.fetch_watermarks(topic, partition, ANSWER) {
            Ok((_, end)) => return end,
            Err(error) => assert!(
                Instant::now() < until,
                "the end of {topic}[{partition}]: {error}"
            ),
        }
        std::thread::sleep(ASK);
    }
}

fn names(topics: &[String]) -> Vec<&str> {
    topics.iter().map(String::as_str).collect()
}

/// The segments of these topics, below the folder of their cluster.
fn log_bytes(folder: &Path, topics: &[String]) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let bytes = entries.map(|entry| {
        let path = entry.path();
        if path.is_dir() {
            return log_bytes(&path, topics);
        }
        let is_segment = path.extension().is_some_and(|e| e == "log");
        let partition = folder.file_name().and_then(|name| name.to_str());
        let topic = partition.and_then(|name| name.rsplit_once('-'));
        let is_ours = topic.is_some_and(|(topic, _)| topics.iter().any(|t| t == topic));
        match entry.metadata() {
            Ok(about) if is_segment && is_ours => about.len(),
            _ => 0,
        }
    });
    bytes.sum()
}
