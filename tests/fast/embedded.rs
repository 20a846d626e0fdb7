//! Embedded clusters for tests: brokers in this process, their records in and out, and waiting.

use rdkafka::admin::{AdminClient, AdminOptions, NewPartitions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::{Header, Headers, Message, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use rdkafka::{Offset, TopicPartitionList};
use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime};

/// How long a test waits for something that normally takes a second.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// One record as a test writes and compares it. `None` is Kafka's null everywhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rec {
    pub partition: i32,
    pub key: Option<Vec<u8>>,
    pub value: Option<Vec<u8>>,
    pub headers: Vec<(String, Option<Vec<u8>>)>,
    pub timestamp: i64,
}

impl Rec {
    pub fn new(partition: i32, key: &str, value: &str) -> Self {
        Self {
            partition,
            key: Some(key.into()),
            value: Some(value.into()),
            headers: Vec::new(),
            timestamp: now(),
        }
    }

    pub fn header(mut self, name: &str, value: Option<&str>) -> Self {
        self.headers.push((name.into(), value.map(Into::into)));
        self
    }

    pub fn text(&self) -> &str {
        let value = self.value.as_deref().unwrap_or(b"null");
        std::str::from_utf8(value).expect("a value that is text")
    }
}

/// One time for all records of a test run: recent, since embedded clusters delete what is older
/// than the topic's retention at once.
fn now() -> i64 {
    static NOW: OnceLock<i64> = OnceLock::new();
    *NOW.get_or_init(|| {
        let now = SystemTime::UNIX_EPOCH.elapsed().expect("a clock");
        now.as_millis() as i64
    })
}

/// One embedded cluster. It lives as long as the process.
#[derive(Clone, Debug)]
pub struct Cluster {
    pub bootstrap: String,
}

impl Cluster {
    pub fn start() -> Self {
        let at = noida::kafka::spawn("127.0.0.1:0").expect("a free port");
        Self {
            bootstrap: at.to_string(),
        }
    }

    fn config(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", &self.bootstrap);
        config
    }

    pub fn create_topic(&self, name: &str, partitions: i32, configs: &[(&str, &str)]) {
        let admin: AdminClient<DefaultClientContext> = self.config().create().expect("an admin");
        let mut topic = NewTopic::new(name, partitions, TopicReplication::Fixed(1));
        for (key, value) in configs {
            topic = topic.set(key, value);
        }
        let results = wait_for(admin.create_topics([&topic], &AdminOptions::new()));
        results.expect("an answer")[0].clone().expect("created");
    }

    /// Adds partitions until there are `partitions`.
    pub fn grow(&self, topic: &str, partitions: usize) {
        let admin: AdminClient<DefaultClientContext> = self.config().create().expect("an admin");
        let new = NewPartitions::new(topic, partitions);
        let results = wait_for(admin.create_partitions([&new], &AdminOptions::new()));
        results.expect("an answer")[0].clone().expect("grown");
    }

    /// Deletes the records below `offset`, as retention does.
    pub fn delete_before(&self, topic: &str, partition: i32, offset: i64) {
        let admin: AdminClient<DefaultClientContext> = self.config().create().expect("an admin");
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(topic, partition, Offset::Offset(offset))
            .expect("an offset");
        wait_for(admin.delete_records(&list, &AdminOptions::new())).expect("deleted");
    }

    pub fn produce(&self, topic: &str, records: &[Rec]) {
        let producer: BaseProducer = self
            .config()
            .set("enable.idempotence", "true")
            .set("linger.ms", "5")
            .create()
            .expect("a producer");
        for record in records {
            let mut headers = OwnedHeaders::new();
            for (key, value) in &record.headers {
                let value = value.as_ref();
                headers = headers.insert(Header { key, value });
            }
            let mut out = BaseRecord::<[u8], [u8]>::to(topic)
                .partition(record.partition)
                .timestamp(record.timestamp)
                .headers(headers);
            out.key = record.key.as_deref();
            out.payload = record.value.as_deref();
            producer.send(out).map_err(|(e, _)| e).expect("enqueued");
        }
        producer.flush(PATIENCE).expect("delivered");
    }

    /// The number of partitions, 0 for a topic that is not there.
    pub fn partitions(&self, topic: &str) -> i32 {
        let consumer: BaseConsumer = self.config().create().expect("a consumer");
        let metadata = consumer.fetch_metadata(None, PATIENCE).expect("metadata");
        let found = metadata.topics().iter().find(|t| t.name() == topic);
        found.map_or(0, |t| t.partitions().len() as i32)
    }

    /// First offset and end of a partition.
    pub fn watermarks(&self, topic: &str, partition: i32) -> (i64, i64) {
        let consumer: BaseConsumer = self.config().create().expect("a consumer");
        let marks = consumer.fetch_watermarks(topic, partition, PATIENCE);
        marks.expect("watermarks")
    }

    /// Records that the topic holds, 0 for one that is not there.
    pub fn count(&self, topic: &str) -> i64 {
        let partitions = 0..self.partitions(topic);
        let marks = partitions.map(|p| self.watermarks(topic, p));
        marks.map(|(low, high)| high - low).sum()
    }

    /// Everything in the topic, by partition and offset.
    pub fn read(&self, topic: &str) -> Vec<Rec> {
        let consumer: BaseConsumer = self
            .config()
            .set("group.id", "reader")
            .set("enable.auto.commit", "false")
            .set("fetch.wait.max.ms", "20")
            .create()
            .expect("a consumer");
        (0..self.partitions(topic))
            .flat_map(|p| read_partition(&consumer, topic, p))
            .collect()
    }

    /// The committed offset of a group and its metadata.
    pub fn committed(&self, group: &str, topic: &str, partition: i32) -> Option<(i64, String)> {
        let consumer: BaseConsumer = self
            .config()
            .set("group.id", group)
            .create()
            .expect("a consumer");
        let mut list = TopicPartitionList::new();
        list.add_partition(topic, partition);
        let list = consumer.committed_offsets(list, PATIENCE).expect("offsets");
        let element = list.find_partition(topic, partition)?;
        let offset = element.offset().to_raw().filter(|o| *o >= 0)?;
        Some((offset, element.metadata().to_owned()))
    }
}

fn wait_for<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(future)
}

fn read_partition(consumer: &BaseConsumer, topic: &str, partition: i32) -> Vec<Rec> {
    let (low, high) = consumer
        .fetch_watermarks(topic, partition, PATIENCE)
        .expect("watermarks");
    let mut records = Vec::new();
    if low == high {
        return records;
    }
    let mut list = TopicPartitionList::new();
    list.add_partition_offset(topic, partition, Offset::Beginning)
        .expect("an offset");
    consumer.assign(&list).expect("assigned");
    let deadline = Instant::now() + PATIENCE;
    loop {
        assert!(
            Instant::now() < deadline,
            "{topic}[{partition}] not read to {high}"
        );
        let Some(message) = consumer.poll(Duration::from_millis(100)) else {
            continue;
        };
        let message = message.expect("a record");
        let last = message.offset() + 1 >= high;
        records.push(rec(&message));
        if last {
            return records;
        }
    }
}

fn rec(message: &impl Message) -> Rec {
    let headers = message.headers().map_or_else(Vec::new, |all| {
        let pairs = all.iter();
        pairs
            .map(|h| (h.key.to_owned(), h.value.map(<[u8]>::to_vec)))
            .collect()
    });
    Rec {
        partition: message.partition(),
        key: message.key().map(<[u8]>::to_vec),
        value: message.payload().map(<[u8]>::to_vec),
        headers,
        timestamp: message.timestamp().to_millis().unwrap_or(-1),
    }
}

/// Waits until `holds`, and says what was waited for if it never does.
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "still waiting until {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
