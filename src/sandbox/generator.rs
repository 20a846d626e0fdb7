//! Fills the source topics: numbered records at a steady rate, until it is told to stop.

use super::clusters::Clusters;
use super::scene::{SOURCES, SourceTopic, copies_from, value};
use rdkafka::client::ClientContext;
use rdkafka::error::KafkaError;
use rdkafka::message::{DeliveryResult, Header, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer, ProducerContext};
use rdkafka::types::RDKafkaErrorCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Records go out in portions of this time.
const TICK: Duration = Duration::from_millis(50);

/// How long the last records may take to be acknowledged.
const PATIENCE: Duration = Duration::from_secs(10);

/// What the sources have acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Records.
    pub records: u64,
    /// Copies that the routes owe for them: some topics go to two clusters.
    pub copies: u64,
}

/// One thread for each cluster that is a source.
pub struct Generator {
    stop: Arc<AtomicBool>,
    sent: Arc<Mutex<Sent>>,
    threads: Vec<JoinHandle<Result<(), String>>>,
}

impl Generator {
    /// Starts to send `rate` records a second, shared by the source topics.
    ///
    /// # Errors
    /// A client or thread that cannot be had.
    pub fn start(clusters: &Clusters, rate: u32) -> Result<Self, String> {
        let stop = Arc::new(AtomicBool::new(false));
        let sent = Arc::new(Mutex::default());
        let mut threads = Vec::new();
        for (cluster, _) in clusters.iter() {
            let topics: Vec<SourceTopic> = SOURCES
                .into_iter()
                .filter(|source| source.cluster == cluster)
                .collect();
            let share = f64::from(rate) * topics.len() as f64 / SOURCES.len() as f64;
            let context = Acknowledged::default();
            let producer: BaseProducer<Acknowledged> = clusters
                .client(cluster)
                .set("enable.idempotence", "true")
                .set("linger.ms", "5")
                .create_with_context(context.clone())
                .map_err(|e| format!("no producer for {cluster}: {e}"))?;
            let feed = Feed {
                producer,
                context,
                topics: topics.into_iter().map(Numbered::new).collect(),
                rate: share,
                copies: copies_from(cluster),
                stop: stop.clone(),
                sent: sent.clone(),
            };
            let thread = std::thread::Builder::new()
                .name("sandbox-feed".into())
                .spawn(move || feed.run())
                .map_err(|e| format!("no thread for the generator: {e}"))?;
            threads.push(thread);
        }
        Ok(Self {
            stop,
            sent,
            threads,
        })
    }

    /// What the sources have taken so far.
    pub fn sent(&self) -> Sent {
        *self.sent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stops, and gives what the sources acknowledged.
    ///
    /// # Errors
    /// A source that did not take everything.
    pub fn stop(mut self) -> Result<Sent, String> {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            thread
                .join()
                .map_err(|_| "the generator panicked".to_owned())??;
        }
        Ok(self.sent())
    }
}

impl Drop for Generator {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Counts what the broker acknowledged, and what it did not.
#[derive(Clone, Default)]
struct Acknowledged {
    acked: Arc<AtomicU64>,
    failed: Arc<AtomicU64>,
}

impl ClientContext for Acknowledged {}

impl ProducerContext for Acknowledged {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        let counter = match result {
            Ok(_) => &self.acked,
            Err(_) => &self.failed,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// A topic and the number of the next record of each of its partitions.
struct Numbered {
    topic: SourceTopic,
    next: Vec<u64>,
}

impl Numbered {
    fn new(topic: SourceTopic) -> Self {
        let next = (0..topic.partitions).map(|_| 0).collect();
        Self { topic, next }
    }
}

/// What one thread does for one cluster.
struct Feed {
    producer: BaseProducer<Acknowledged>,
    context: Acknowledged,
    topics: Vec<Numbered>,
    rate: f64,
    /// Copies of each record.
    copies: u64,
    stop: Arc<AtomicBool>,
    sent: Arc<Mutex<Sent>>,
}

impl Feed {
    fn run(mut self) -> Result<(), String> {
        let begun = Instant::now();
        let mut count: u64 = 0;
        let mut counted = 0;
        while !self.stop.load(Ordering::Relaxed) {
            let due = (begun.elapsed().as_secs_f64() * self.rate) as u64;
            while count < due {
                self.send(count)?;
                count += 1;
            }
            // Reads reports for the whole of the tick: a shorter poll reads only one.
            self.producer.poll(TICK);
            counted = self.account(counted);
        }
        self.producer
            .flush(PATIENCE)
            .map_err(|e| format!("a source does not take its records: {e}"))?;
        self.account(counted);
        match self.context.failed.load(Ordering::Relaxed) {
            0 => Ok(()),
            failed => Err(format!("a source refused {failed} records")),
        }
    }

    /// Adds what was acknowledged since `counted` to the sum over all clusters.
    fn account(&self, counted: u64) -> u64 {
        let acked = self.context.acked.load(Ordering::Relaxed);
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        sent.records += acked - counted;
        sent.copies += (acked - counted) * self.copies;
        acked
    }

    /// Sends the record with this index: topics take turns, and so do the partitions of each.
    fn send(&mut self, index: u64) -> Result<(), String> {
        let turn = index as usize % self.topics.len();
        let round = index as usize / self.topics.len();
        let Numbered { topic, next } = &mut self.topics[turn];
        let partition = round % next.len();
        let number = next[partition];
        next[partition] += 1;
        let key = format!("{}-{partition}-{}", topic.topic, number % 1000);
        let value = value(topic, partition as i32, number);
        let mut record = BaseRecord::to(topic.topic)
            .partition(partition as i32)
            .key(&key)
            .payload(&value)
            .headers(OwnedHeaders::new().insert(Header {
                key: "trace",
                value: Some(&key),
            }));
        // A full queue takes more as soon as reports are read; the order stays.
        loop {
            match self.producer.send(record) {
                Ok(()) => return Ok(()),
                Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), again)) => {
                    self.producer.poll(TICK);
                    record = again;
                }
                Err((error, _)) => return Err(format!("cannot send to {}: {error}", topic.topic)),
            }
        }
    }
}
