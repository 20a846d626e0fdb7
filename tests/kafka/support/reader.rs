//! Reads a whole target, every partition to its last stable offset, as a consumer with `read_committed` sees it.

use super::checker::{Sight, Sights, Verdict, check};
use super::expected::Expected;
use super::raw::{Events, Met};
use super::record::Record;
use super::stamp::Stamp;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// How long reading to the end may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Reads topics, again and again, each time from where it stopped.
pub struct Reader {
    consumer: BaseConsumer,
    topics: BTreeSet<String>,
    next: BTreeMap<(String, i32), i64>,
    sights: Sights,
    raw: BTreeMap<(String, i32), Vec<Record>>,
    keep: bool,
}

impl Reader {
    /// A reader of `topics` at `bootstrap`.
    pub fn new(bootstrap: &str, topics: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let consumer = ClientConfig::new()
            .set("bootstrap.servers", bootstrap)
            .set("group.id", "reader")
            .set("enable.auto.commit", "false")
            .set("isolation.level", "read_committed")
            .set("auto.offset.reset", "error")
            .set("enable.partition.eof", "true")
            .set("fetch.wait.max.ms", "50")
            .create()
            .expect("a consumer");
        Self {
            consumer,
            topics: topics.into_iter().map(Into::into).collect(),
            next: BTreeMap::new(),
            sights: Sights::new(),
            raw: BTreeMap::new(),
            keep: false,
        }
    }

    /// Also keeps the records themselves: [`records`](Self::records).
    pub fn keeping(mut self) -> Self {
        self.keep = true;
        self
    }

    /// Reads on to the ends as they are now.
    ///
    /// # Panics
    /// If that takes too long.
    pub fn catch_up(&mut self) -> &Sights {
        let mut open = self.assign();
        let events = Events::of(self.consumer.client().native_ptr());
        let deadline = Instant::now() + PATIENCE;
        let mut trouble = None;
        while !open.is_empty() {
            assert!(
                Instant::now() < deadline,
                "reading {open:?} does not end; {trouble:?}"
            );
            events.poll(Duration::from_millis(100), |met| match met {
                Met::Record {
                    topic,
                    partition,
                    offset,
                    record,
                } => {
                    let place = (topic, partition);
                    self.next.insert(place.clone(), offset + 1);
                    self.see(place, record);
                }
                Met::End {
                    topic,
                    partition,
                    offset,
                } => {
                    let place = (topic, partition);
                    open.remove(&place);
                    self.next.insert(place, offset);
                }
                Met::Trouble(words) => trouble = Some(words),
            });
        }
        drop(events);
        self.consumer.unassign().expect("unassign");
        &self.sights
    }

    fn see(&mut self, place: (String, i32), record: Record) {
        let sight = match Stamp::of(&record) {
            Some(stamp) => Sight::Stamped {
                lane: (stamp.label, stamp.partition),
                sequence: stamp.sequence,
                fingerprint: record.fingerprint(),
            },
            None => Sight::Strange,
        };
        self.sights.entry(place.clone()).or_default().push(sight);
        if self.keep {
            self.raw.entry(place).or_default().push(record);
        }
    }

    /// Assigns every partition there is now, from where the last read stopped.
    fn assign(&mut self) -> BTreeSet<(String, i32)> {
        let mut list = TopicPartitionList::new();
        let mut open = BTreeSet::new();
        for topic in &self.topics {
            let metadata = self
                .consumer
                .fetch_metadata(Some(topic), Duration::from_secs(20))
                .expect("metadata of the topic to read");
            for partition in metadata.topics().iter().flat_map(|t| t.partitions()) {
                let place = (topic.clone(), partition.id());
                let from = self
                    .next
                    .get(&place)
                    .map_or(Offset::Beginning, |at| Offset::Offset(*at));
                list.add_partition_offset(topic, partition.id(), from)
                    .expect("an offset");
                open.insert(place);
            }
        }
        self.consumer.assign(&list).expect("assign");
        open
    }

    /// The records of one partition, if they are kept.
    pub fn records(&self, topic: &str, partition: i32) -> &[Record] {
        self.raw
            .get(&(topic.to_owned(), partition))
            .map_or(&[], Vec::as_slice)
    }
}

/// Reads all of `topics`.
pub fn read(bootstrap: &str, topics: impl IntoIterator<Item = impl Into<String>>) -> Sights {
    let mut reader = Reader::new(bootstrap, topics);
    reader.catch_up();
    reader.sights
}

/// Reads the topics of what was written, and says what became of it.
pub fn compare(bootstrap: &str, expected: &Expected) -> Verdict {
    let topics = expected.labels();
    let verdict = check(expected, &read(bootstrap, &topics), str::to_owned);
    println!("{}: {verdict}", Vec::from_iter(topics).join(", "));
    verdict
}
