//! How late records come: from being written to the source to being appended to the target.
//!
//! Each record carries when it was handed to the source's client, which sends it at once; the target's topic stamps records
//! when it appends them. So what is shown has the way into the source in it, and up to a millisecond of the broker's clock:
//! both make it too long rather than too short, and for all contenders alike.

use crate::contender::{Contender, Tools};
use crate::job::Job;
use crate::process::Running;
use crate::stage::{Arrival, Prepared, Stage};
use crate::topic;
use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::{Message, Timestamp};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const PARTITIONS: i32 = 12;
const BYTES: usize = 944;
/// The linger of the bare loop, for which others say what they add.
const LINGER_MS: u32 = 5;
/// How long a contender may take to copy its first records, and its last.
const PATIENCE: Duration = Duration::from_secs(120);
/// Of the paced records the first fifth does not count.
const SETTLING: f64 = 0.2;
/// A record that says nothing about when it was written.
const UNTIMED: u64 = 0;

/// Records a second, for so long.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    pub per_second: u64,
    pub lasts: Duration,
}

/// How late they came, and what that cost.
pub struct Delay {
    pub contender: Contender,
    pub pace: Pace,
    /// In milliseconds, in order.
    pub delays: Vec<f64>,
    /// CPU microseconds for a record while the pace was kept.
    pub micros: f64,
}

impl Delay {
    /// The delay that so many of a hundred do not exceed.
    pub fn percentile(&self, percent: f64) -> f64 {
        let last = self.delays.len().saturating_sub(1);
        let at = (last as f64 * percent / 100.0).ceil() as usize;
        self.delays.get(at).copied().unwrap_or(f64::NAN)
    }
}

/// Measures a contender.
pub fn measure(stage: &Stage, tools: &Tools, contender: Contender, pace: Pace) -> Delay {
    let live = Live::open(stage, contender, pace);
    let job = Job {
        source: stage.source(),
        target: stage.target(),
        topics: vec![live.topic.clone()],
        records: Job::ENDLESS,
        codec: "none".to_owned(),
        linger_ms: LINGER_MS,
    };
    let command = contender.endless(&job, tools);
    let mut running = Running::start(&live.topic, command, &tools.folder);
    let writer = live.begin(&mut running);
    let before = running.cost().cpu_s;
    let sent = writer.pace(pace);
    let cpu_s = running.cost().cpu_s - before;
    let mut arrival = live.arrival();
    let _ = running.until(PATIENCE * 2 + pace.lasts, || arrival.is_complete());
    let mut delays = live.delays(sent);
    delays.sort_by(f64::total_cmp);
    live.close();
    println!(
        "{:<20} {:>6} records/s: {} delays",
        contender.name(),
        pace.per_second,
        delays.len()
    );
    Delay {
        contender,
        pace,
        delays,
        micros: cpu_s / sent as f64 * 1e6,
    }
}

/// Topics of one measurement.
struct Live<'a> {
    stage: &'a Stage,
    topic: String,
}

impl<'a> Live<'a> {
    fn open(stage: &'a Stage, contender: Contender, pace: Pace) -> Self {
        let topic = format!("live-{}-{}", contender.name(), pace.per_second);
        topic::create(&stage.source(), &topic, PARTITIONS, &[]);
        let stamped = [("message.timestamp.type", "LogAppendTime")];
        topic::create(&stage.target(), &topic, PARTITIONS, &stamped);
        Self { stage, topic }
    }

    fn arrival(&self) -> Arrival {
        self.stage.arrival(&Prepared {
            topics: vec![self.topic.clone()],
            partitions: PARTITIONS,
            records: 0,
            bytes: 0,
            wire_bytes: 0,
        })
    }

    /// Writes now and then until what was written comes through: the contender has begun.
    fn begin(&self, running: &mut Running) -> Writer<'_> {
        let writer = Writer::new(self);
        let arrival = self.arrival();
        while !arrival.has_begun() {
            for partition in 0..PARTITIONS as u64 {
                writer.send(UNTIMED, partition);
            }
            writer.producer.poll(Duration::from_millis(50));
            running.look(PATIENCE);
        }
        writer
    }

    /// Reads the target: how late each timed record came. The first of them do not count.
    fn delays(&self, sent: u64) -> Vec<f64> {
        let reader: BaseConsumer = ClientConfig::new()
            .set("bootstrap.servers", self.stage.target())
            .set("group.id", &self.topic)
            .set("enable.partition.eof", "true")
            .create()
            .expect("a reader");
        let mut all = TopicPartitionList::new();
        for partition in 0..PARTITIONS {
            all.add_partition_offset(&self.topic, partition, Offset::Beginning)
                .expect("a partition");
        }
        reader.assign(&all).expect("an assignment");
        let (mut delays, mut ended) = (Vec::new(), 0);
        let until = Instant::now() + PATIENCE;
        while ended < PARTITIONS {
            assert!(Instant::now() < until, "{} is read to its end", self.topic);
            match reader.poll(Duration::from_millis(200)) {
                Some(Ok(record)) => delays.extend(late(&record, sent)),
                Some(Err(rdkafka::error::KafkaError::PartitionEOF(_))) => ended += 1,
                Some(Err(error)) => panic!("{}: {error}", self.topic),
                None => {}
            }
        }
        delays
    }

    fn close(self) {
        topic::delete(&self.stage.source(), &self.topic);
        topic::delete(&self.stage.target(), &self.topic);
    }
}

/// Milliseconds from its writing to its append, if it says when it was written and counts.
fn late(record: &impl Message, sent: u64) -> Option<f64> {
    let value = record.payload()?;
    let number = |at: usize| Some(u64::from_be_bytes(value.get(at..at + 8)?.try_into().ok()?));
    let (written, index) = (number(0)?, number(8)?);
    let Timestamp::LogAppendTime(appended) = record.timestamp() else {
        panic!("the target stamps what it appends");
    };
    let counts = written != UNTIMED && index as f64 >= sent as f64 * SETTLING;
    // The broker's clock has whole milliseconds.
    counts.then(|| (appended + 1) as f64 - written as f64 / 1000.0)
}

/// Writes to the source, at once.
struct Writer<'a> {
    topic: &'a str,
    producer: BaseProducer,
}

impl<'a> Writer<'a> {
    fn new(live: &'a Live) -> Self {
        let producer = ClientConfig::new()
            .set("bootstrap.servers", live.stage.source())
            .set("linger.ms", "0")
            .create()
            .expect("a producer");
        Self {
            topic: &live.topic,
            producer,
        }
    }

    /// Keeps the pace, and gives how many records it wrote.
    fn pace(&self, pace: Pace) -> u64 {
        let began = Instant::now();
        let all = (pace.per_second as f64 * pace.lasts.as_secs_f64()) as u64;
        let mut sent = 0;
        while sent < all {
            let due = (began.elapsed().as_secs_f64() * pace.per_second as f64) as u64;
            while sent < due.min(all) {
                let now = SystemTime::now().duration_since(UNIX_EPOCH);
                let micros = now.expect("after 1970").as_micros() as u64;
                self.send(micros, sent);
                sent += 1;
            }
            self.producer.poll(Duration::ZERO);
            std::thread::sleep(Duration::from_micros(500));
        }
        self.producer
            .flush(Duration::from_secs(60))
            .expect("all written");
        sent
    }

    fn send(&self, micros: u64, index: u64) {
        let mut value = [b'a'; BYTES];
        value[..8].copy_from_slice(&micros.to_be_bytes());
        value[8..16].copy_from_slice(&index.to_be_bytes());
        let partition = (index % PARTITIONS as u64) as i32;
        let record = || {
            BaseRecord::<[u8], [u8]>::to(self.topic)
                .partition(partition)
                .payload(&value)
        };
        while self.producer.send(record()).is_err() {
            self.producer.poll(Duration::from_millis(1));
        }
    }
}
