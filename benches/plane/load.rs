//! The loads: records of one size and codec, written once, read by every contender.

use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use std::time::Duration;

/// Partitions of every topic.
const PARTITIONS: i32 = 12;

pub struct Load {
    pub name: &'static str,
    pub topic: String,
    pub records: u64,
    pub bytes: usize,
    pub codec: &'static str,
    batch_bytes: &'static str,
}

impl Load {
    /// The three loads: large records, the same compressed, small compressed ones.
    pub fn all(scale: f64) -> Vec<Load> {
        let load = |name, topic: &str, records: f64, bytes, codec, batch_bytes| Load {
            name,
            topic: topic.to_owned(),
            records: (records * scale) as u64,
            bytes,
            codec,
            batch_bytes,
        };
        vec![
            load(
                "1.5 M × 944 B, uncompressed",
                "large",
                1.5e6,
                944,
                "none",
                "1000000",
            ),
            load(
                "1.5 M × 944 B, LZ4",
                "large-lz4",
                1.5e6,
                944,
                "lz4",
                "1000000",
            ),
            load(
                "5 M × 70 B, LZ4, 16 KB batches",
                "small-lz4",
                5e6,
                70,
                "lz4",
                "16384",
            ),
        ]
    }

    pub fn write(&self, source: &str) {
        create(source, &self.topic);
        let producer: BaseProducer = ClientConfig::new()
            .set("bootstrap.servers", source)
            .set("compression.type", self.codec)
            .set("batch.size", self.batch_bytes)
            .set("linger.ms", "20")
            .set("queue.buffering.max.messages", "1000000")
            .create()
            .expect("a producer");
        let mut text = Text::new(self.bytes);
        for i in 0..self.records {
            let partition = (i % PARTITIONS as u64) as i32;
            let (key, value) = (i.to_be_bytes(), text.next());
            let record = || {
                BaseRecord::to(&self.topic)
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

    pub fn empty_target(&self, target: &str, topic: &str) {
        create(target, topic);
    }

    /// A file with one route for this load; each run has a group and a target topic of its own.
    pub fn route(&self, source: &str, target: &str, run: usize) -> String {
        format!(
            "version: 1\nclusters:\n  source: {{ bootstrap_servers: ['{source}'] }}\n  target:\n    bootstrap_servers: ['{target}']\n    properties: {{ compression.type: {codec}, linger.ms: 50 }}\n\
             admin: {{ listen: 127.0.0.1:0 }}\nreload: {{ watch: false }}\nroutes:\n  run-{run}:\n    source: source\n    target: target\n    topics: {{ include: ['{topic}'] }}\n    handlers:\n      - rename: {{ topic: '{topic}-mirror-{run}' }}\n",
            codec = self.codec,
            topic = self.topic,
        )
    }
}

fn create(at: &str, topic: &str) {
    let admin: AdminClient<_> = ClientConfig::new()
        .set("bootstrap.servers", at)
        .create()
        .expect("an admin client");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime");
    let new = NewTopic::new(topic, PARTITIONS, TopicReplication::Fixed(1));
    runtime
        .block_on(admin.create_topics([&new], &AdminOptions::new()))
        .expect("the topic is created");
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
