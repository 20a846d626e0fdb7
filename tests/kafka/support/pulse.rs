//! Watches a target topic from the side: how long did each partition get nothing?

use super::raw::{Events, Met};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::wait;

/// A watch in the background.
pub struct Pulse {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Pauses>>,
}

#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    partitions: AtomicUsize,
}

/// When records arrived, by partition.
pub struct Pauses {
    beats: BTreeMap<i32, Vec<Instant>>,
}

impl Pulse {
    /// Watches every partition of `topic` from its end on.
    pub fn start(bootstrap: &str, topic: &str) -> Self {
        let consumer: BaseConsumer = ClientConfig::new()
            .set("bootstrap.servers", bootstrap)
            .set("group.id", "pulse")
            .set("enable.auto.commit", "false")
            .set("auto.offset.reset", "latest")
            .set("fetch.wait.max.ms", "20")
            .create()
            .expect("a consumer");
        let metadata = consumer
            .fetch_metadata(Some(topic), wait::PATIENCE)
            .expect("metadata");
        let mut list = TopicPartitionList::new();
        for partition in metadata.topics().iter().flat_map(|t| t.partitions()) {
            list.add_partition_offset(topic, partition.id(), Offset::End)
                .expect("an offset");
        }
        consumer.assign(&list).expect("assign");
        let shared = Arc::new(Shared::default());
        let of = shared.clone();
        let thread = std::thread::spawn(move || watch(&consumer, &of));
        Self {
            shared,
            thread: Some(thread),
        }
    }

    /// Waits until so many partitions have got something.
    pub fn wait_beats(&self, partitions: usize) {
        wait::until("records arrive", wait::PATIENCE, || {
            self.shared.partitions.load(Ordering::Relaxed) >= partitions
        });
    }

    /// Ends the watch.
    pub fn stop(mut self) -> Pauses {
        self.shared.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take().expect("stopped once");
        thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Drop for Pulse {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
    }
}

fn watch(consumer: &BaseConsumer, shared: &Shared) -> Pauses {
    let events = Events::of(consumer.client().native_ptr());
    let mut beats: BTreeMap<i32, Vec<Instant>> = BTreeMap::new();
    while !shared.stop.load(Ordering::Relaxed) {
        events.poll(Duration::from_millis(50), |met| {
            if let Met::Record { partition, .. } = met {
                beats.entry(partition).or_default().push(Instant::now());
            }
        });
        shared.partitions.store(beats.len(), Ordering::Relaxed);
    }
    Pauses { beats }
}

impl Pauses {
    /// The longest time since `from` in which a partition got nothing.
    pub fn longest(&self, partition: i32, from: Instant) -> Duration {
        let beats = self.beats.get(&partition).map_or(&[][..], Vec::as_slice);
        let after: Vec<&Instant> = beats.iter().filter(|at| **at >= from).collect();
        after
            .windows(2)
            .map(|pair| *pair[1] - *pair[0])
            .max()
            .unwrap_or_default()
    }

    /// The longest such time of any partition.
    pub fn longest_of_all(&self, from: Instant) -> Duration {
        self.beats
            .keys()
            .map(|p| self.longest(*p, from))
            .max()
            .unwrap_or_default()
    }
}
