//! Topics of the benchmarks, and what is in them.

use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use std::ops::Range;
use std::time::Duration;
use tokio::runtime::Runtime;

/// Creates a topic with these settings.
pub fn create(at: &str, topic: &str, partitions: i32, settings: &[(&str, &str)]) {
    create_all(at, &[topic], partitions, settings);
}

/// Creates topics with these settings.
pub fn create_all(at: &str, topics: &[&str], partitions: i32, settings: &[(&str, &str)]) {
    let mut new: Vec<NewTopic> = topics
        .iter()
        .map(|topic| NewTopic::new(topic, partitions, TopicReplication::Fixed(1)))
        .collect();
    for (key, value) in settings {
        new = new.into_iter().map(|topic| topic.set(key, value)).collect();
    }
    let made = runtime()
        .block_on(admin(at).create_topics(&new, &patient()))
        .expect("the brokers answer");
    for one in made {
        one.expect("the topic is created");
    }
}

/// Deletes a topic, so that the next run finds the disk as this one did.
pub fn delete(at: &str, topic: &str) {
    delete_all(at, &[topic]);
}

/// Deletes topics.
pub fn delete_all(at: &str, topics: &[&str]) {
    let gone = runtime()
        .block_on(admin(at).delete_topics(topics, &patient()))
        .expect("the brokers answer");
    for one in gone {
        one.expect("the topic is deleted");
    }
}

/// Thousands of partitions take their time.
fn patient() -> AdminOptions {
    let minute = Some(Duration::from_secs(60));
    AdminOptions::new()
        .request_timeout(minute)
        .operation_timeout(minute)
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

/// What is written into topics.
pub struct Fill<'a> {
    /// Where to, each of them with so many partitions.
    pub topics: Vec<&'a str>,
    pub partitions: i32,
    /// How many in all, and of what size.
    pub records: u64,
    pub bytes: usize,
    /// What stands before and after the text of each value: nothing, or what makes it JSON.
    pub frame: (&'a str, &'a str),
    /// Headers of each.
    pub headers: usize,
    /// So many in a row go to one partition, then the next one's turn comes: where partitions are many, batches would
    /// otherwise never be full.
    pub in_a_row: u64,
    /// Of the producer.
    pub settings: Vec<(&'a str, &'a str)>,
}

impl<'a> Fill<'a> {
    /// Records of text for one topic, to all partitions in turn.
    pub fn of(topic: &'a str, partitions: i32, records: u64, bytes: usize) -> Self {
        Self {
            topics: vec![topic],
            partitions,
            records,
            bytes,
            frame: ("", ""),
            headers: 0,
            in_a_row: 1,
            settings: Vec::new(),
        }
    }

    /// Writes them, and waits until all are acknowledged.
    pub fn write(&self, at: &str) {
        let producer = self.producer(at);
        let mut text = Text::new(self.bytes, self.frame);
        let headers = self.headers();
        let everywhere = self.topics.len() as u64 * self.partitions as u64;
        for i in 0..self.records {
            let place = i / self.in_a_row % everywhere;
            let topic = self.topics[(place / self.partitions as u64) as usize];
            let partition = (place % self.partitions as u64) as i32;
            let key = i.to_be_bytes();
            let mut record = BaseRecord::to(topic)
                .partition(partition)
                .key(&key)
                .payload(text.next());
            if let Some(headers) = &headers {
                record = record.headers(headers.clone());
            }
            while let Err((_, refused)) = producer.send(record) {
                producer.poll(Duration::from_millis(10));
                record = refused;
            }
            if i % 4096 == 0 {
                producer.poll(Duration::ZERO);
            }
        }
        producer
            .flush(Duration::from_secs(120))
            .expect("all written");
    }

    fn producer(&self, at: &str) -> BaseProducer {
        let mut config = ClientConfig::new();
        config
            .set("bootstrap.servers", at)
            .set("linger.ms", "20")
            .set("queue.buffering.max.messages", "1000000");
        for (key, value) in &self.settings {
            config.set(*key, *value);
        }
        config.create().expect("a producer")
    }

    fn headers(&self) -> Option<OwnedHeaders> {
        let names = ["trace", "region", "schema"];
        let header = |key: &'static str| Header {
            key,
            value: Some("0123456789abcdef"),
        };
        (self.headers > 0).then(|| {
            let wanted = names.into_iter().cycle().take(self.headers);
            wanted.fold(OwnedHeaders::new(), |all, name| all.insert(header(name)))
        })
    }
}

/// Half random, half repeated: compresses about as real records do.
struct Text {
    state: u64,
    buffer: Vec<u8>,
    random: Range<usize>,
    alphabet: Alphabet,
}

/// What the random half is made of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Alphabet {
    Bytes,
    /// As a string in JSON may have.
    Letters,
}

impl Text {
    fn new(bytes: usize, (head, tail): (&str, &str)) -> Self {
        let free = bytes.saturating_sub(head.len() + tail.len());
        let alphabet = match head {
            "" => Alphabet::Bytes,
            _ => Alphabet::Letters,
        };
        Self {
            state: 0x9e37_79b9_7f4a_7c15,
            buffer: [head.as_bytes(), &vec![b'a'; free], tail.as_bytes()].concat(),
            random: head.len()..head.len() + free / 2,
            alphabet,
        }
    }

    fn next(&mut self) -> &[u8] {
        for chunk in self.buffer[self.random.clone()].chunks_mut(8) {
            self.state ^= self.state << 13;
            self.state ^= self.state >> 7;
            self.state ^= self.state << 17;
            let mut bytes = self.state.to_le_bytes();
            if self.alphabet == Alphabet::Letters {
                bytes = bytes.map(|byte| b'a' + byte % 16);
            }
            chunk.copy_from_slice(&bytes[..chunk.len()]);
        }
        &self.buffer
    }
}
