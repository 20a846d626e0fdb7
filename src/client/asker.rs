//! Questions to a cluster that change nothing there: no group is joined, no topic made, no offset
//! committed.
//!
//! Every call blocks up to its timeout and may be made from any thread; whoever must not wait makes
//! it on a thread of its own. A queue of the client's own events is read from its birth (B144).

use crate::client::native::{
    self, ClusterDescription, Configured, GroupDescriptions, GroupOffsets, OffsetAnswers,
    OffsetSpec, Queue, Refusal, TopicDescriptions,
};
use crate::client::settings;
use crate::config::spec::ClusterSpec;
use crate::record::TopicPartition;
use rdkafka::ClientContext;
use rdkafka::admin::{AdminClient, AdminOptions, NewPartitions, NewTopic, TopicReplication};
use rdkafka::client::Client;
use rdkafka::config::FromClientConfigAndContext;
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext};
use rdkafka::error::KafkaError;
use rdkafka::types::{RDKafka, RDKafkaErrorCode};
use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Complaints that are kept: the first ones tell the most.
const COMPLAINTS: usize = 200;
/// What one partition may hold in memory while records are looked at.
const SAMPLE_FETCH_BYTES: &str = "65536";

/// What a client says about its connections, of its own accord.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    /// The code.
    pub code: RDKafkaErrorCode,
    /// librdkafka's words, which begin with the broker's address as a rule.
    pub words: String,
}

/// The settings of a topic or broker.
pub type Configs = BTreeMap<String, String>;

/// The settings of topics; an error where they may not be read.
pub type TopicConfigs = HashMap<String, Result<Configs, RDKafkaErrorCode>>;

/// Says nothing: what the client complains of is read from its queue.
#[derive(Clone, Debug)]
struct Quiet;

impl ClientContext for Quiet {
    fn log(&self, _: rdkafka::config::RDKafkaLogLevel, _: &str, _: &str) {}
    fn error(&self, _: KafkaError, _: &str) {}
}

impl ConsumerContext for Quiet {}

impl native::Handle for AdminClient<Quiet> {
    fn handle(&self) -> *mut RDKafka {
        self.inner().native_ptr()
    }
}

impl native::Handle for BaseConsumer<Quiet> {
    fn handle(&self) -> *mut RDKafka {
        self.client().native_ptr()
    }
}

/// A client that only asks.
pub struct Asker {
    // Dropped first: nobody reads the queue of a client that ends.
    listener: Listener,
    client: AdminClient<Quiet>,
    cluster: Arc<ClusterSpec>,
}

impl Asker {
    /// Builds the client, whose connections are given up after `patience`.
    ///
    /// # Errors
    /// The client's words: a file of certificates that cannot be read, for instance.
    pub fn new(cluster: &Arc<ClusterSpec>, patience: Duration) -> Result<Self, String> {
        let mut config = settings::common(cluster);
        // Well before the question's deadline, so that the client still says where it hung.
        let setup = patience * 2 / 3;
        let setup = setup.max(Duration::from_secs(1)).as_millis().to_string();
        config.set("socket.connection.setup.timeout.ms", setup);
        let client = AdminClient::from_config_and_context(&config, Quiet)
            .map_err(|error| error.to_string())?;
        let listener = Listener::new(Queue::main(&client));
        Ok(Self {
            client,
            listener,
            cluster: cluster.clone(),
        })
    }

    /// What the client complained of so far.
    pub fn complaints(&self) -> Vec<Complaint> {
        lock(&self.listener.complaints).clone()
    }

    /// The cluster's id, brokers, and our rights.
    ///
    /// # Errors
    /// The code and the client's words.
    pub fn cluster(&self, timeout: Duration) -> Result<ClusterDescription, Refusal> {
        native::describe_cluster(&self.client, timeout)
    }

    /// All topics that we may see, with their partition counts.
    ///
    /// # Errors
    /// The code and the client's words.
    pub fn topics(&self, timeout: Duration) -> Result<BTreeMap<String, i32>, Refusal> {
        let client: &Client<Quiet> = self.client.inner();
        let metadata = client.fetch_metadata(None, timeout).map_err(refusal)?;
        let seen = metadata.topics().iter();
        Ok(seen
            .filter(|t| t.error().is_none() && !t.partitions().is_empty())
            .map(|t| {
                let count = i32::try_from(t.partitions().len()).unwrap_or(i32::MAX);
                (t.name().to_owned(), count)
            })
            .collect())
    }

    /// Partitions, ids and our rights of topics.
    ///
    /// # Errors
    /// The code and the client's words.
    pub fn describe_topics(
        &self,
        topics: &[String],
        timeout: Duration,
    ) -> Result<TopicDescriptions, Refusal> {
        if topics.is_empty() {
            return Ok(TopicDescriptions::new());
        }
        native::describe_topics(&self.client, topics, timeout)
    }

    /// State, members and our rights of groups.
    ///
    /// # Errors
    /// The code and the client's words.
    pub fn describe_groups(
        &self,
        groups: &[String],
        timeout: Duration,
    ) -> Result<GroupDescriptions, Refusal> {
        if groups.is_empty() {
            return Ok(GroupDescriptions::new());
        }
        native::describe_groups(&self.client, groups, timeout)
    }

    /// The groups that we may see.
    ///
    /// # Errors
    /// The code and the client's words.
    pub fn groups(&self, timeout: Duration) -> Result<Vec<String>, Refusal> {
        native::list_groups(&self.client, timeout)
    }

    /// A group's committed positions.
    ///
    /// # Errors
    /// The code and the client's words; a failed read is not "none".
    pub fn group_offsets(&self, group: &str, timeout: Duration) -> Result<GroupOffsets, Refusal> {
        native::group_offsets(&self.client, group, timeout)
    }

    /// One offset of each partition.
    ///
    /// # Errors
    /// The code and the client's words.
    pub fn offsets(
        &self,
        partitions: &[TopicPartition],
        spec: OffsetSpec,
        timeout: Duration,
    ) -> Result<OffsetAnswers, Refusal> {
        if partitions.is_empty() {
            return Ok(OffsetAnswers::new());
        }
        native::list_offsets(&self.client, partitions, spec, timeout)
    }

    /// The first offset of each partition whose record is as young as its time in milliseconds.
    ///
    /// # Errors
    /// The code and the client's words.
    pub fn offsets_at(
        &self,
        times: &[(TopicPartition, i64)],
        timeout: Duration,
    ) -> Result<HashMap<TopicPartition, Option<i64>>, Refusal> {
        native::offsets_at(&self.client, times, timeout)
    }

    /// The settings of topics; an error where we may not read them.
    ///
    /// # Errors
    /// The code and the client's words.
    pub fn topic_configs(
        &self,
        topics: &[String],
        timeout: Duration,
    ) -> Result<TopicConfigs, Refusal> {
        if topics.is_empty() {
            return Ok(TopicConfigs::new());
        }
        let answers = native::describe_configs(&self.client, Configured::Topic, topics, timeout)?;
        let answers = answers.into_iter();
        Ok(answers.map(|(topic, a)| (topic, a.map(configs))).collect())
    }

    /// The settings of a broker.
    ///
    /// # Errors
    /// The code and the client's words.
    pub fn broker_configs(&self, broker: i32, timeout: Duration) -> Result<Configs, Refusal> {
        let name = [broker.to_string()];
        let answers = native::describe_configs(&self.client, Configured::Broker, &name, timeout)?;
        match answers.into_iter().next() {
            Some((_, Ok(entries))) => Ok(configs(entries)),
            Some((_, Err(code))) => Err((code, code.to_string())),
            None => Ok(Configs::new()),
        }
    }

    /// Whether the cluster would create such topics: it checks rights, names and policies, and
    /// creates nothing.
    ///
    /// # Errors
    /// The code and the client's words.
    pub fn would_create(
        &self,
        topics: &[WantedTopic],
        timeout: Duration,
    ) -> Result<Vec<(String, RDKafkaErrorCode)>, Refusal> {
        if topics.is_empty() {
            return Ok(Vec::new());
        }
        let new: Vec<NewTopic<'_>> = topics
            .iter()
            .map(|t| {
                // −1 is "the broker's default" (KIP-464).
                let factor = TopicReplication::Fixed(t.replication_factor.unwrap_or(-1));
                // As a running flow creates it.
                NewTopic::new(&t.name, t.partitions, factor)
                    .set("message.timestamp.type", "CreateTime")
            })
            .collect();
        let options = options(timeout).validate_only(true);
        let answers = wait(timeout, self.client.create_topics(&new, &options))?;
        Ok(answers.into_iter().filter_map(Result::err).collect())
    }

    /// Whether the cluster would grow topics so far; it grows none.
    ///
    /// # Errors
    /// The code and the client's words.
    pub fn would_grow(
        &self,
        topics: &[WantedTopic],
        timeout: Duration,
    ) -> Result<Vec<(String, RDKafkaErrorCode)>, Refusal> {
        if topics.is_empty() {
            return Ok(Vec::new());
        }
        let new: Vec<NewPartitions<'_>> = topics
            .iter()
            .map(|t| NewPartitions::new(&t.name, usize::try_from(t.partitions).unwrap_or(0)))
            .collect();
        let options = options(timeout).validate_only(true);
        let answers = wait(timeout, self.client.create_partitions(&new, &options))?;
        Ok(answers.into_iter().filter_map(Result::err).collect())
    }

    /// Shows `each` up to `records` records of each place, read without a group.
    ///
    /// # Errors
    /// The client cannot be made.
    pub fn sample(
        &self,
        places: &[(TopicPartition, i64)],
        records: usize,
        timeout: Duration,
        each: impl FnMut(&TopicPartition, &native::Fetched),
    ) -> Result<(), String> {
        if places.is_empty() {
            return Ok(());
        }
        let mut config = settings::common(&self.cluster);
        config
            .set("enable.auto.commit", "false")
            .set("enable.partition.eof", "true")
            .set("auto.offset.reset", "error")
            .set("isolation.level", "read_committed")
            .set("fetch.message.max.bytes", SAMPLE_FETCH_BYTES)
            .set("queued.max.messages.kbytes", "4096");
        let client: BaseConsumer<Quiet> = config
            .create_with_context(Quiet)
            .map_err(|error| error.to_string())?;
        let listener = Listener::new(Queue::main(&client));
        native::sample(&client, places, records, timeout, each);
        drop(listener);
        Ok(())
    }
}

/// A topic that may have to be created or grown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedTopic {
    /// Its name.
    pub name: String,
    /// Its partition count.
    pub partitions: i32,
    /// Its replication factor; the broker's default where absent.
    pub replication_factor: Option<i32>,
}

fn configs(entries: Vec<native::ConfigEntry>) -> Configs {
    entries.into_iter().map(|e| (e.name, e.value)).collect()
}

/// Reads a client's own events, from its birth to its end.
struct Listener {
    complaints: Arc<Mutex<Vec<Complaint>>>,
    queue: Arc<Queue>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    fn new(queue: Queue) -> Self {
        let (queue, over) = (Arc::new(queue), Arc::new(AtomicBool::new(false)));
        let complaints = Arc::new(Mutex::new(Vec::new()));
        let (theirs, ends, heard) = (queue.clone(), over.clone(), complaints.clone());
        let thread = std::thread::Builder::new()
            .name("mirror-asker".into())
            .spawn(move || {
                while !ends.load(Ordering::Acquire) {
                    let Some(event) = theirs.poll(Duration::from_millis(100)) else {
                        continue;
                    };
                    let Some(complaint) = complaint(event.read()) else {
                        continue;
                    };
                    let mut heard = lock(&heard);
                    if heard.len() < COMPLAINTS && !heard.contains(&complaint) {
                        heard.push(complaint);
                    }
                }
            });
        Self {
            complaints,
            queue,
            over,
            thread: thread.ok(),
        }
    }
}

/// Closed connections and hung handshakes are only logged.
fn complaint(said: native::Said) -> Option<Complaint> {
    match said {
        native::Said::Error { code, detail, .. } => Some(Complaint {
            code,
            words: detail,
        }),
        native::Said::Log { facility, line, .. } if facility == "FAIL" => Some(Complaint {
            code: RDKafkaErrorCode::BrokerTransportFailure,
            words: line,
        }),
        _ => None,
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        self.queue.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn options(timeout: Duration) -> AdminOptions {
    AdminOptions::new()
        .request_timeout(Some(timeout))
        .operation_timeout(Some(timeout))
}

/// librdkafka keeps its own deadline; ours is a little later, so that nothing can hang.
fn wait<T>(
    timeout: Duration,
    question: impl Future<Output = rdkafka::error::KafkaResult<T>>,
) -> Result<T, Refusal> {
    let late = |words: &str| (RDKafkaErrorCode::OperationTimedOut, words.to_owned());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .map_err(|error| (RDKafkaErrorCode::Fail, error.to_string()))?;
    runtime
        .block_on(async { tokio::time::timeout(timeout + Duration::from_secs(1), question).await })
        .map_err(|_| late("no answer in time"))?
        .map_err(refusal)
}

fn refusal(error: KafkaError) -> Refusal {
    let code = error.rdkafka_error_code().unwrap_or(RDKafkaErrorCode::Fail);
    (code, error.to_string())
}
