//! Records as they stand in a route's sources, read without a group: nothing is joined, nothing is
//! committed.

use super::sample::Sample;
use crate::client::admin::Observer;
use crate::client::native::{Fetched, OffsetSpec};
use crate::client::reader::{Read, Reader};
use crate::client::settings::Isolation;
use crate::config::spec::{ClusterSpec, Name, RouteSpec};
use crate::plane::Offset;
use crate::record::{HeaderSource, TopicPartition};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How much further back is looked when offsets have gaps.
const FURTHER: i64 = 16;

/// How long one look at a cluster waits.
const LOOK: Duration = Duration::from_millis(100);

/// Which records are wanted.
#[derive(Clone, Debug)]
pub enum Wanted {
    /// The newest, spread over the topics and partitions that the route copies.
    Newest,
    /// Those from this offset of a partition on.
    From(TopicPartition, i64),
}

/// Why there are no records.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LiveError {
    /// A cluster could not be asked.
    #[error("cluster {cluster}: {detail}")]
    Unasked {
        /// The cluster.
        cluster: Name,
        /// In its client's words, or ours.
        detail: String,
    },
    /// The answer is no.
    #[error("{0}")]
    Refused(String),
}

/// One source of a route that is asked.
pub struct Source<'s> {
    cluster: &'s ClusterSpec,
    observer: Observer,
    group: String,
    deadline: Instant,
}

/// What is in a partition.
#[derive(Clone, Debug)]
struct Log {
    /// Index of its source.
    source: usize,
    partition: TopicPartition,
    start: i64,
    end: i64,
    /// How many records are wanted of it.
    quota: usize,
}

/// Topics with their partition counts.
pub type Topics = BTreeMap<String, i32>;

impl<'s> Source<'s> {
    /// Connects. `group` is a name that may be asked for; it is not joined.
    ///
    /// # Errors
    /// The client's words.
    pub fn connect(
        cluster: &'s ClusterSpec,
        group: &str,
        deadline: Instant,
    ) -> Result<Self, LiveError> {
        let subject: Arc<str> = format!("try {}", cluster.name).into();
        let observer = Observer::new(cluster, group, subject);
        Ok(Self {
            cluster,
            observer: observer.map_err(|detail| unasked(cluster, detail))?,
            group: group.to_owned(),
            deadline,
        })
    }

    /// The cluster's name.
    pub fn name(&self) -> &Name {
        &self.cluster.name
    }

    /// All topics with their partition counts.
    ///
    /// # Errors
    /// The cluster does not answer in time.
    pub fn topics(&self) -> Result<Topics, LiveError> {
        let topics = self.observer.topics(self.left());
        topics.map_err(|detail| unasked(self.cluster, detail))
    }

    fn left(&self) -> Duration {
        let left = self.deadline.saturating_duration_since(Instant::now());
        left.max(Duration::from_millis(1))
    }

    fn offsets(
        &self,
        partitions: &[TopicPartition],
        which: OffsetSpec,
    ) -> Result<BTreeMap<TopicPartition, i64>, LiveError> {
        let answers = self.observer.offsets(partitions, which, self.left());
        let answers = answers.map_err(|detail| unasked(self.cluster, detail))?;
        let mut offsets = BTreeMap::new();
        for (partition, offset) in answers {
            let offset = offset.map_err(|code| {
                unasked(self.cluster, format!("no offset of {partition}: {code}"))
            })?;
            offsets.insert(partition, offset);
        }
        Ok(offsets)
    }

    fn logs(&self, source: usize, partitions: &[TopicPartition]) -> Result<Vec<Log>, LiveError> {
        let starts = self.offsets(partitions, OffsetSpec::Earliest)?;
        // What is copied: up to the last stable offset.
        let ends = self.offsets(partitions, OffsetSpec::LastStable)?;
        let log = |partition: &TopicPartition| {
            Some(Log {
                source,
                partition: partition.clone(),
                start: *starts.get(partition)?,
                end: *ends.get(partition)?,
                quota: 0,
            })
        };
        Ok(partitions.iter().filter_map(log).collect())
    }
}

fn unasked(cluster: &ClusterSpec, detail: impl Into<String>) -> LiveError {
    LiveError::Unasked {
        cluster: cluster.name.clone(),
        detail: detail.into(),
    }
}

/// Reads up to `count` records of the topics that `route` copies.
///
/// # Errors
/// A cluster that does not answer in time; a place that is not there.
pub fn read(
    route: &RouteSpec,
    sources: &[Source<'_>],
    wanted: &Wanted,
    count: usize,
) -> Result<Vec<Sample>, LiveError> {
    let mut logs = Vec::new();
    for (index, source) in sources.iter().enumerate() {
        let partitions = match wanted {
            Wanted::Newest => partitions(route, &source.topics()?),
            Wanted::From(partition, _) => {
                there(partition, &source.topics()?, source)?;
                vec![partition.clone()]
            }
        };
        logs.extend(source.logs(index, &partitions)?);
    }
    let mut samples = Vec::new();
    match wanted {
        Wanted::Newest => {
            spread(&mut logs, count);
            logs.retain(|log| log.quota > 0);
            for (index, source) in sources.iter().enumerate() {
                let logs: Vec<Log> = logs.iter().filter(|l| l.source == index).cloned().collect();
                samples.extend(newest(source, logs)?);
            }
        }
        Wanted::From(_, offset) => {
            for (source, log) in sources.iter().zip(&logs) {
                samples.extend(onwards(source, log, *offset, count)?);
            }
        }
    }
    Ok(samples)
}

/// The partitions of the topics that the route copies.
fn partitions(route: &RouteSpec, topics: &Topics) -> Vec<TopicPartition> {
    let copied = topics
        .iter()
        .filter(|(t, _)| route.topics.selects(t).is_some());
    let all = copied.flat_map(|(topic, count)| {
        (0..*count).map(move |partition| TopicPartition::new(topic.as_str(), partition))
    });
    all.collect()
}

fn there(at: &TopicPartition, topics: &Topics, source: &Source<'_>) -> Result<(), LiveError> {
    let name = source.name();
    let words = match topics.get(&*at.topic) {
        Some(count) if at.partition < *count => return Ok(()),
        Some(count) => format!("`{}` of {name} has {count} partitions", at.topic),
        None => format!("cluster {name} has no topic `{}`", at.topic),
    };
    Err(LiveError::Refused(words))
}

/// Gives every topic its turn, and in a topic every partition, until `count` records are given out.
fn spread(logs: &mut [Log], count: usize) {
    let mut order: Vec<usize> = (0..logs.len()).collect();
    order.sort_by_key(|at| {
        let log = &logs[*at];
        (
            log.partition.partition,
            log.source,
            log.partition.topic.clone(),
        )
    });
    let mut left = count;
    loop {
        let before = left;
        for at in &order {
            let log = &mut logs[*at];
            let holds = usize::try_from(log.end - log.start).unwrap_or(0);
            if left > 0 && log.quota < holds {
                log.quota += 1;
                left -= 1;
            }
        }
        if left == 0 || left == before {
            return;
        }
    }
}

/// The last records of every log. Offsets may have gaps (compaction, transactions): where too few
/// come, it is looked further back.
fn newest(source: &Source<'_>, logs: Vec<Log>) -> Result<Vec<Sample>, LiveError> {
    let mut samples = Vec::new();
    let mut wanting = logs;
    let mut back = 1;
    while !wanting.is_empty() {
        let from = |log: &Log| {
            let quota = i64::try_from(log.quota).unwrap_or(i64::MAX);
            log.start
                .max(log.end.saturating_sub(quota.saturating_mul(back)))
        };
        let positions: Vec<(TopicPartition, i64)> = wanting
            .iter()
            .map(|log| (log.partition.clone(), from(log)))
            .collect();
        let mut read = stretch(source, &positions, &wanting)?;
        wanting.retain(|log| {
            let found = read.entry(log.partition.clone()).or_default();
            let enough = found.len() >= log.quota || from(log) <= log.start;
            if enough {
                samples.extend(found.drain(..));
            }
            !enough
        });
        back = back.saturating_mul(FURTHER);
    }
    Ok(samples)
}

/// Reads from the positions to the ends, and keeps the last records of each log.
fn stretch(
    source: &Source<'_>,
    positions: &[(TopicPartition, i64)],
    logs: &[Log],
) -> Result<BTreeMap<TopicPartition, VecDeque<Sample>>, LiveError> {
    let reader = reader(source, positions)?;
    let mut open: BTreeMap<TopicPartition, &Log> = logs
        .iter()
        .map(|log| (log.partition.clone(), log))
        .collect();
    let mut kept: BTreeMap<TopicPartition, VecDeque<Sample>> = BTreeMap::new();
    while !open.is_empty() {
        match look(source, &reader)? {
            Some(Step::Record(partition, record)) => {
                let Some(log) = open.get(&partition) else {
                    continue;
                };
                let (quota, end) = (log.quota, log.end);
                if record.offset() < end {
                    let kept = kept.entry(partition.clone()).or_default();
                    kept.push_back(sample(source, &partition, &record));
                    if kept.len() > quota {
                        kept.pop_front();
                    }
                }
                if record.offset() + 1 >= end {
                    open.remove(&partition);
                }
            }
            Some(Step::End(partition)) => {
                open.remove(&partition);
            }
            None => {}
        }
    }
    Ok(kept)
}

/// `count` records of a partition from an offset on.
fn onwards(
    source: &Source<'_>,
    log: &Log,
    from: i64,
    count: usize,
) -> Result<Vec<Sample>, LiveError> {
    if from < log.start || from >= log.end {
        let holds = match log.end > log.start {
            true => format!("it holds {} to {}", log.start, log.end - 1),
            false => "it is empty".to_owned(),
        };
        let words = format!("{} has no record at {from}: {holds}", log.partition);
        return Err(LiveError::Refused(words));
    }
    let reader = reader(source, &[(log.partition.clone(), from)])?;
    let mut samples = Vec::new();
    while samples.len() < count {
        match look(source, &reader)? {
            Some(Step::Record(partition, record)) => {
                samples.push(sample(source, &partition, &record));
            }
            Some(Step::End(_)) => break,
            None => {}
        }
    }
    Ok(samples)
}

enum Step {
    Record(TopicPartition, Fetched),
    End(TopicPartition),
}

fn reader(source: &Source<'_>, positions: &[(TopicPartition, i64)]) -> Result<Reader, LiveError> {
    let subject: Arc<str> = format!("try {}", source.name()).into();
    let reader = Reader::new(source.cluster, &source.group, Isolation::Committed, subject);
    let reader = reader.map_err(|detail| unasked(source.cluster, detail))?;
    let positions: Vec<(TopicPartition, Offset)> = positions
        .iter()
        .map(|(partition, offset)| (partition.clone(), Offset(*offset)))
        .collect();
    let placed = reader.read_from(&positions);
    placed.map_err(|detail| unasked(source.cluster, detail))?;
    Ok(reader)
}

fn look(source: &Source<'_>, reader: &Reader) -> Result<Option<Step>, LiveError> {
    if Instant::now() >= source.deadline {
        return Err(unasked(source.cluster, "no records in time"));
    }
    match reader.next(LOOK) {
        Ok(Read::Record(record)) => {
            let partition = record.topic_partition();
            Ok(Some(Step::Record(partition, record)))
        }
        Ok(Read::End(partition, _)) => Ok(Some(Step::End(partition))),
        Ok(Read::OutOfRange(partition)) => {
            let words = format!("{partition} has lost records while it was read: try again");
            Err(LiveError::Refused(words))
        }
        Ok(Read::Refused(partition, detail)) => {
            Err(unasked(source.cluster, format!("{partition}: {detail}")))
        }
        Ok(Read::Idle) => Ok(None),
        Err(detail) => Err(unasked(source.cluster, detail)),
    }
}

fn sample(source: &Source<'_>, partition: &TopicPartition, record: &Fetched) -> Sample {
    let mut headers = Vec::new();
    while let Some((name, value)) = HeaderSource::get(record, headers.len()) {
        headers.push((name.to_vec(), value.map(<[u8]>::to_vec)));
    }
    Sample {
        source: source.name().clone(),
        topic: partition.topic.to_string(),
        partition: partition.partition,
        offset: record.offset(),
        timestamp: record.timestamp(),
        key: record.key().map(<[u8]>::to_vec),
        value: record.value().map(<[u8]>::to_vec),
        headers,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(topic: &str, partition: i32, records: i64) -> Log {
        Log {
            source: 0,
            partition: TopicPartition::new(topic, partition),
            start: 5,
            end: 5 + records,
            quota: 0,
        }
    }

    #[test]
    fn every_topic_has_its_turn() {
        let mut logs = [
            log("a", 0, 100),
            log("a", 1, 100),
            log("b", 0, 1),
            log("c", 0, 0),
        ];
        spread(&mut logs, 5);
        assert_eq!(logs.map(|l| l.quota), [2, 2, 1, 0]);
        let mut few = [log("a", 0, 1), log("b", 0, 1)];
        spread(&mut few, 10);
        assert_eq!(few.map(|l| l.quota), [1, 1]);
    }
}
