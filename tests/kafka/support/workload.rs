//! Writes stamped records to a source: all at once, or going on in the background at a steady rate.

use super::expected::{Expected, Fate, Lane};
use super::raw;
use super::record::Record;
use super::stamp::Stamp;
use rdkafka::producer::{BaseProducer, DeliveryResult, Producer, ProducerContext};
use rdkafka::types::RDKafkaErrorCode;
use rdkafka::{ClientConfig, ClientContext, Message};
use std::collections::BTreeMap;
use std::ffi::CString;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Where records go, and how large their values are.
#[derive(Clone, Debug)]
pub struct Field {
    /// Put before the topic's name to make the label.
    pub prefix: String,
    /// The topic.
    pub topic: String,
    /// Its partitions.
    pub partitions: std::ops::Range<i32>,
    /// Bytes of a value that is not empty on purpose.
    pub value_bytes: usize,
    /// What it does to each record, by number, before it is written.
    pub change: fn(u64, &mut Record),
    /// What has to become of a record.
    pub fate: fn(&Record) -> Fate,
}

/// Partitions `0..partitions` of `topic`, small values.
pub fn field(topic: &str, partitions: i32) -> Field {
    Field {
        prefix: String::new(),
        topic: topic.to_owned(),
        partitions: 0..partitions,
        value_bytes: 120,
        change: |_, _| {},
        fate: |record| Fate::Arrives(record.fingerprint()),
    }
}

impl Field {
    /// Labels start with this, so that two clusters' records can be told apart.
    pub fn prefix(mut self, prefix: &str) -> Self {
        self.prefix = prefix.to_owned();
        self
    }

    /// Only these partitions.
    pub fn only(mut self, partitions: std::ops::Range<i32>) -> Self {
        self.partitions = partitions;
        self
    }

    fn label(&self) -> String {
        format!("{}{}", self.prefix, self.topic)
    }
}

/// Counts what the source took, and where it put it.
#[derive(Default)]
struct Tally {
    acked: AtomicU64,
    failed: AtomicU64,
    /// By topic and partition, in their order.
    offsets: Mutex<BTreeMap<Lane, Vec<i64>>>,
}

impl ClientContext for Tally {}

impl ProducerContext for Tally {
    type DeliveryOpaque = ();
    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        match result {
            Err(_) => self.failed.fetch_add(1, Ordering::Relaxed),
            Ok(message) => {
                let place = (message.topic().to_owned(), message.partition());
                let mut offsets = self.offsets.lock().unwrap();
                offsets.entry(place).or_default().push(message.offset());
                self.acked.fetch_add(1, Ordering::Relaxed)
            }
        };
    }
}

/// Writes records one after another, and remembers them.
pub struct Writer {
    producer: BaseProducer<Tally>,
    expected: Expected,
    /// By topic.
    labels: BTreeMap<String, String>,
    sent: u64,
}

impl Writer {
    /// A writer to the cluster at `bootstrap`. It never gives a record up.
    pub fn new(bootstrap: &str) -> Self {
        let producer = ClientConfig::new()
            .set("bootstrap.servers", bootstrap)
            .set("enable.idempotence", "true")
            .set("message.timeout.ms", "0")
            .set("linger.ms", "5")
            .set("message.max.bytes", "50000000")
            .set("queue.buffering.max.messages", "100000")
            .set("reconnect.backoff.max.ms", "1000")
            .set("topic.metadata.refresh.interval.ms", "1000")
            .create_with_context(Tally::default())
            .expect("a producer");
        Self {
            producer,
            expected: Expected::default(),
            labels: BTreeMap::new(),
            sent: 0,
        }
    }

    /// Goes on where an earlier writer of the same partitions stopped.
    pub fn resume(bootstrap: &str, expected: Expected) -> Self {
        Self {
            expected,
            ..Self::new(bootstrap)
        }
    }

    /// The next record of a partition, changed by `change` before it is written.
    pub fn write(&mut self, field: &Field, partition: i32, change: impl FnOnce(&mut Record)) {
        let lane = (field.label(), partition);
        let stamp = Stamp {
            label: lane.0.clone(),
            partition,
            sequence: self.expected.len_of(&lane),
        };
        let mut record = stamp.record(field.value_bytes);
        (field.change)(stamp.sequence, &mut record);
        change(&mut record);
        self.send(&raw::name(&field.topic), partition, &record);
        if !self.labels.contains_key(&field.topic) {
            self.labels.insert(field.topic.clone(), lane.0.clone());
        }
        self.expected.note(&lane, (field.fate)(&record));
    }

    /// `each` more records for every partition of every field, in turn.
    pub fn fill(&mut self, fields: &[Field], each: u64) {
        for _ in 0..each {
            self.round(fields);
        }
    }

    fn round(&mut self, fields: &[Field]) {
        for field in fields {
            for partition in field.partitions.clone() {
                self.write(field, partition, |_| {});
            }
        }
    }

    fn send(&mut self, topic: &CString, partition: i32, record: &Record) {
        loop {
            match raw::produce(
                self.producer.client().native_ptr(),
                topic,
                partition,
                record,
            ) {
                Ok(()) => break,
                Err(RDKafkaErrorCode::QueueFull | RDKafkaErrorCode::UnknownPartition) => {
                    self.producer.poll(Duration::from_millis(20));
                }
                Err(code) => panic!("the workload cannot write: {code}"),
            }
        }
        self.sent += 1;
        if self.sent.is_multiple_of(500) {
            self.producer.poll(Duration::ZERO);
        }
    }

    /// Waits until the source has everything.
    ///
    /// # Panics
    /// If it does not take it.
    pub fn finish(mut self) -> Expected {
        self.settle(Duration::from_secs(60));
        let offsets = self.producer.context().offsets.lock().unwrap();
        for ((topic, partition), offsets) in offsets.iter() {
            let Some(label) = self.labels.get(topic) else {
                continue;
            };
            let lane = (label.clone(), *partition);
            for offset in offsets {
                self.expected.placed(&lane, *offset);
            }
        }
        drop(offsets);
        self.expected
    }

    /// Waits until the source has everything so far.
    ///
    /// # Panics
    /// If it does not take it.
    pub fn settle(&self, within: Duration) {
        self.producer
            .flush(within)
            .expect("the source takes the workload");
        let tally = self.producer.context();
        assert_eq!(
            tally.failed.load(Ordering::Relaxed),
            0,
            "the source refused records of the workload"
        );
        assert_eq!(tally.acked.load(Ordering::Relaxed), self.sent);
    }

    /// What was written so far.
    pub fn expected(&mut self) -> &mut Expected {
        &mut self.expected
    }
}

/// Writes `each` records to every partition and waits until the source has them.
pub fn fill(bootstrap: &str, fields: &[Field], each: u64) -> Expected {
    let mut writer = Writer::new(bootstrap);
    writer.fill(fields, each);
    writer.finish()
}

/// A workload that goes on in the background.
pub struct Load {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Expected>>,
}

struct Shared {
    fields: Mutex<Vec<Field>>,
    stop: AtomicBool,
    written: AtomicU64,
}

impl Load {
    /// Begins to write about `per_second` records to `fields`.
    pub fn start(bootstrap: &str, fields: &[Field], per_second: u64) -> Self {
        Self::go_on(Writer::new(bootstrap), fields, per_second)
    }

    /// Goes on with a writer that wrote before.
    pub fn go_on(writer: Writer, fields: &[Field], per_second: u64) -> Self {
        let shared = Arc::new(Shared {
            fields: Mutex::new(fields.to_vec()),
            stop: AtomicBool::new(false),
            written: AtomicU64::new(0),
        });
        let of = shared.clone();
        let thread = std::thread::spawn(move || run(writer, &of, per_second));
        Self {
            shared,
            thread: Some(thread),
        }
    }

    /// Also writes there from now on.
    pub fn add(&self, field: Field) {
        self.shared.fields.lock().unwrap().push(field);
    }

    /// From now on changes each record of these topics.
    #[allow(dead_code, reason = "the torture's: this file is in both programs")]
    pub fn change(&self, topics: impl Fn(&str) -> bool, change: fn(u64, &mut Record)) {
        let mut fields = self.shared.fields.lock().unwrap();
        let those = fields.iter_mut().filter(|field| topics(&field.topic));
        those.for_each(|field| field.change = change);
    }

    /// Records written so far.
    pub fn written(&self) -> u64 {
        self.shared.written.load(Ordering::Relaxed)
    }

    /// Stops, and waits until the source has everything.
    pub fn stop(mut self) -> Expected {
        self.shared.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take().expect("stopped once");
        thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Drop for Load {
    /// A test that failed does not go on writing.
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
    }
}

fn run(mut writer: Writer, shared: &Shared, per_second: u64) -> Expected {
    let began = Instant::now();
    while !shared.stop.load(Ordering::Relaxed) {
        let due = began.elapsed().as_millis() as u64 * per_second / 1000;
        let fields = shared.fields.lock().unwrap().clone();
        while writer.sent < due && !shared.stop.load(Ordering::Relaxed) {
            writer.round(&fields);
            shared.written.store(writer.sent, Ordering::Relaxed);
        }
        writer.producer.poll(Duration::from_millis(10));
    }
    writer.finish()
}

/// Bytes that do not get smaller by compression.
pub fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[0]
    };
    (0..bytes).map(|_| next()).collect()
}
