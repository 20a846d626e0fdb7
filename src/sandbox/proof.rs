//! The count at the end: everything in each source partition against everything at its target.

use super::clusters::Clusters;
use super::scene::{ADDED_HEADER, Lane, number, value};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::{BorrowedMessage, Headers, Message};
use rdkafka::{Offset, TopicPartitionList};
use std::time::{Duration, Instant};

/// How long reading one partition may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// What one lane's count gave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Records in the source topic.
    pub sent: u64,
    /// Numbers that are at the target.
    pub arrived: u64,
    /// Numbers that are there more than once (at least once allows it).
    pub repeated: u64,
    /// Numbers whose first copy comes after that of a higher one.
    pub disordered: u64,
    /// Records that are not what was sent.
    pub altered: u64,
    /// Records with the header that the reload added.
    pub marked: u64,
}

impl Count {
    /// Whether every record arrived as it was, in order.
    pub fn is_complete(&self) -> bool {
        self.arrived == self.sent && self.disordered == 0 && self.altered == 0
    }

    /// Both counts together.
    pub fn plus(&self, other: &Count) -> Count {
        Count {
            sent: self.sent + other.sent,
            arrived: self.arrived + other.arrived,
            repeated: self.repeated + other.repeated,
            disordered: self.disordered + other.disordered,
            altered: self.altered + other.altered,
            marked: self.marked + other.marked,
        }
    }
}

/// Follows the numbers of one partition: they began at 0 and grew by one.
#[derive(Default)]
struct Sequence {
    /// The lowest number that has not been seen, with nothing missing below it.
    next: u64,
    /// Numbers seen beyond a missing one.
    beyond: std::collections::BTreeSet<u64>,
    repeated: u64,
    disordered: u64,
}

impl Sequence {
    fn see(&mut self, number: u64) {
        if number < self.next || self.beyond.contains(&number) {
            self.repeated += 1;
            return;
        }
        if self.beyond.last().is_some_and(|highest| number < *highest) {
            self.disordered += 1;
        }
        self.beyond.insert(number);
        while self.beyond.remove(&self.next) {
            self.next += 1;
        }
    }

    fn arrived(&self) -> u64 {
        self.next + self.beyond.len() as u64
    }
}

/// Asked before each record: an error ends the count.
pub type GoOn<'a> = &'a dyn Fn() -> Result<(), String>;

/// Counts one lane.
///
/// # Errors
/// A cluster that does not answer, or what `go_on` says.
pub fn count(lane: &Lane, clusters: &Clusters, go_on: GoOn<'_>) -> Result<Count, String> {
    let source = reader(clusters, lane.source.cluster)?;
    let target = reader(clusters, lane.target)?;
    let mut sum = Count::default();
    for partition in 0..lane.source.partitions {
        let (low, high) = ends(&source, lane.source.topic, partition)?;
        let mut one = count_partition(lane, &target, partition, go_on)?;
        one.sent = (high - low).unsigned_abs();
        sum = sum.plus(&one);
    }
    Ok(sum)
}

fn reader(clusters: &Clusters, cluster: &str) -> Result<BaseConsumer, String> {
    let mut config = clusters.client(cluster);
    config
        .set("group.id", "sandbox-count")
        .set("enable.auto.commit", "false")
        .set("fetch.wait.max.ms", "20")
        .create()
        .map_err(|e| format!("cannot count on {cluster}: {e}"))
}

fn ends(reader: &BaseConsumer, topic: &str, partition: i32) -> Result<(i64, i64), String> {
    let ends = reader.fetch_watermarks(topic, partition, PATIENCE);
    ends.map_err(|e| format!("cannot count {topic}[{partition}]: {e}"))
}

/// A topic that nothing was copied to need not be there.
fn exists(reader: &BaseConsumer, topic: &str) -> Result<bool, String> {
    let metadata = reader
        .fetch_metadata(None, PATIENCE)
        .map_err(|e| format!("cannot count {topic}: {e}"))?;
    Ok(metadata.topics().iter().any(|found| found.name() == topic))
}

fn count_partition(
    lane: &Lane,
    target: &BaseConsumer,
    partition: i32,
    go_on: GoOn<'_>,
) -> Result<Count, String> {
    let topic = lane.target_topic.as_str();
    let failed = |e: rdkafka::error::KafkaError| format!("cannot count {topic}[{partition}]: {e}");
    let mut count = Count::default();
    if !exists(target, topic)? {
        return Ok(count);
    }
    let (low, high) = ends(target, topic, partition)?;
    let mut sequence = Sequence::default();
    let mut from = TopicPartitionList::new();
    from.add_partition_offset(topic, partition, Offset::Beginning)
        .map_err(failed)?;
    target.assign(&from).map_err(failed)?;
    let deadline = Instant::now() + PATIENCE;
    let mut left = (high - low).unsigned_abs();
    while left > 0 {
        go_on()?;
        if Instant::now() > deadline {
            return Err(format!("cannot count {topic}[{partition}]: no answer"));
        }
        let Some(record) = target.poll(Duration::from_millis(100)) else {
            continue;
        };
        look(&record.map_err(failed)?, lane, &mut sequence, &mut count);
        left -= 1;
    }
    count.arrived = sequence.arrived();
    count.repeated = sequence.repeated;
    count.disordered = sequence.disordered;
    Ok(count)
}

/// Looks at one record of the target.
fn look(record: &BorrowedMessage<'_>, lane: &Lane, sequence: &mut Sequence, count: &mut Count) {
    let bytes = record.payload().unwrap_or_default();
    let number = number(bytes);
    let as_sent = |n| value(&lane.source, record.partition(), n).as_bytes() == bytes;
    match number.filter(|n| as_sent(*n)) {
        Some(number) => sequence.see(number),
        None => count.altered += 1,
    }
    let headers = record.headers();
    let marked = headers.is_some_and(|all| all.iter().any(|h| h.key == ADDED_HEADER));
    count.marked += u64::from(marked);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(numbers: &[u64]) -> Sequence {
        let mut sequence = Sequence::default();
        numbers.iter().for_each(|n| sequence.see(*n));
        sequence
    }

    #[test]
    fn a_gap_is_missing() {
        assert_eq!(seen(&[0, 1, 3, 4]).arrived(), 4);
    }

    #[test]
    fn a_rewind_repeats_and_keeps_the_order() {
        let sequence = seen(&[0, 1, 2, 3, 2, 3, 4]);
        let found = (sequence.arrived(), sequence.repeated, sequence.disordered);
        assert_eq!(found, (5, 2, 0));
    }

    #[test]
    fn a_late_first_copy_is_disorder() {
        let sequence = seen(&[0, 2, 1, 3]);
        let found = (sequence.arrived(), sequence.repeated, sequence.disordered);
        assert_eq!(found, (4, 0, 1));
    }
}
