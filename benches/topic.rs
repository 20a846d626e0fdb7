//! Topics of the benchmarks, and what is in them.

use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use std::time::Duration;
use tokio::runtime::Runtime;

/// Creates a topic with these settings.
pub fn create(at: &str, topic: &str, partitions: i32, settings: &[(&str, &str)]) {
    let mut new = NewTopic::new(topic, partitions, TopicReplication::Fixed(1));
    for (key, value) in settings {
        new = new.set(key, value);
    }
    runtime()
        .block_on(admin(at).create_topics([&new], &AdminOptions::new()))
        .expect("the topic is created");
}

/// Deletes a topic, so that the next run finds the disk as this one did.
pub fn delete(at: &str, topic: &str) {
    runtime()
        .block_on(admin(at).delete_topics(&[topic], &AdminOptions::new()))
        .expect("the topic is deleted");
}

fn admin(at: &str) -> AdminClient<DefaultClientContext> {
    ClientConfig::new()
        .set("bootstrap.servers", at)
        .create()
        .expect("an admin client")
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime")
}

/// Writes so many records of so many bytes, to all partitions in turn.
pub fn fill(
    at: &str,
    topic: &str,
    partitions: i32,
    records: u64,
    bytes: usize,
    settings: &[(&str, &str)],
) {
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", at)
        .set("linger.ms", "20")
        .set("queue.buffering.max.messages", "1000000");
    for (key, value) in settings {
        config.set(*key, *value);
    }
    let producer: BaseProducer = config.create().expect("a producer");
    let mut text = Text::new(bytes);
    for i in 0..records {
        let partition = (i % partitions as u64) as i32;
        let (key, value) = (i.to_be_bytes(), text.next());
        let record = || {
            BaseRecord::to(topic)
                .partition(partition)
                .key(&key)
                .payload(value)
        };
        while producer.send(record()).is_err() {
            producer.poll(Duration::from_millis(10));
        }
        if i % 4096 == 0 {
            producer.poll(Duration::ZERO);
        }
    }
    producer
        .flush(Duration::from_secs(120))
        .expect("all written");
}

/// Half random, half repeated text: compresses about as real records do.
struct Text {
    state: u64,
    buffer: Vec<u8>,
}

impl Text {
    fn new(bytes: usize) -> Self {
        Self {
            state: 0x9e37_79b9_7f4a_7c15,
            buffer: vec![b'a'; bytes],
        }
    }

    fn next(&mut self) -> &[u8] {
        let half = self.buffer.len() / 2;
        for chunk in self.buffer[..half].chunks_mut(8) {
            self.state ^= self.state << 13;
            self.state ^= self.state >> 7;
            self.state ^= self.state << 17;
            let bytes = self.state.to_le_bytes();
            chunk.copy_from_slice(&bytes[..chunk.len()]);
        }
        &self.buffer
    }
}
