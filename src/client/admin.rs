//! Bounded questions to a cluster, and changes of its topics.
//!
//! Every call blocks up to its timeout: only the flow's own side threads make them, never a poll
//! loop and never a tokio worker (B106).

use crate::client::consumer::LogContext;
pub use crate::client::native::ConfigOrigin;
use crate::client::native::{
    self, CommittedPosition, Configured, GroupState, OffsetAnswers, OffsetSpec, Queue, TopicIds,
};
use crate::client::settings;
use crate::config::spec::ClusterSpec;
use crate::record::TopicPartition;
use rdkafka::admin::{AdminClient, AdminOptions, NewPartitions, NewTopic, TopicReplication};
use rdkafka::client::Client;
use rdkafka::config::FromClientConfigAndContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::types::{RDKafka, RDKafkaErrorCode};
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

/// Why a question was not answered, in words.
pub type AskError = String;

/// Asks the source with the group's name, without joining the group.
pub struct Observer {
    client: BaseConsumer<LogContext>,
    queue: Option<Queue>,
    subject: Arc<str>,
}

impl Observer {
    /// Builds the client.
    ///
    /// # Errors
    /// The client's words.
    pub fn new(cluster: &ClusterSpec, group: &str, subject: Arc<str>) -> Result<Self, AskError> {
        let context = LogContext {
            subject: subject.clone(),
        };
        let client: BaseConsumer<LogContext> = settings::observer(cluster, group)
            .create_with_context(context)
            .map_err(|e| e.to_string())?;
        let queue = Queue::of_consumer(&client);
        Ok(Self {
            client,
            queue,
            subject,
        })
    }

    /// Reads the client's own events, so that they do not pile up (B103).
    pub fn serve(&self) {
        serve(self.queue.as_ref(), &self.subject);
    }

    /// The cluster's id.
    pub fn cluster_id(&self, timeout: Duration) -> Option<String> {
        self.client.client().fetch_cluster_id(timeout)
    }

    /// All topics with their partition counts.
    ///
    /// # Errors
    /// The client's words.
    pub fn topics(&self, timeout: Duration) -> Result<BTreeMap<String, i32>, AskError> {
        topics(self.client.client(), timeout)
    }

    /// The group's committed positions.
    ///
    /// # Errors
    /// The client's words; a failed read is not "none".
    pub fn committed(
        &self,
        partitions: &[TopicPartition],
        timeout: Duration,
    ) -> Result<Vec<(TopicPartition, CommittedPosition)>, AskError> {
        native::committed(&self.client, partitions, timeout).map_err(|code| code.to_string())
    }

    /// Whether anybody is in `group`; asked without joining.
    ///
    /// # Errors
    /// The client's words; a failed question is not "nobody".
    pub fn group_state(&self, group: &str, timeout: Duration) -> Result<GroupState, AskError> {
        let groups = [group.to_owned()];
        let mut described = native::describe_groups(&self.client, &groups, timeout)
            .map_err(|(code, words)| format!("{code}: {words}"))?;
        match described.remove(group) {
            Some(Ok(description)) => Ok(description.state),
            Some(Err(RDKafkaErrorCode::GroupIdNotFound)) => Ok(GroupState::Absent),
            Some(Err(code)) => Err(code.to_string()),
            None => Err("no answer for the group".to_owned()),
        }
    }

    /// One offset of each partition.
    ///
    /// # Errors
    /// The client's words.
    pub fn offsets(
        &self,
        partitions: &[TopicPartition],
        spec: OffsetSpec,
        timeout: Duration,
    ) -> Result<OffsetAnswers, AskError> {
        if partitions.is_empty() {
            return Ok(Vec::new());
        }
        native::list_offsets(&self.client, partitions, spec, timeout)
            .map_err(|(code, words)| format!("{code}: {words}"))
    }

    /// The topics' ids.
    ///
    /// # Errors
    /// The client's words.
    pub fn topic_ids(&self, topics: &[&str], timeout: Duration) -> Result<TopicIds, AskError> {
        if topics.is_empty() {
            return Ok(TopicIds::new());
        }
        native::topic_ids(&self.client, topics, timeout)
            .map_err(|(code, words)| format!("{code}: {words}"))
    }
}

/// Looks at and changes topics of a cluster.
pub struct TopicAdmin {
    client: AdminClient<LogContext>,
    queue: Queue,
    subject: Arc<str>,
    runtime: tokio::runtime::Runtime,
}

impl native::Handle for AdminClient<LogContext> {
    fn handle(&self) -> *mut RDKafka {
        self.inner().native_ptr()
    }
}

/// What became of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// It was made, or somebody else made it first.
    Made,
    /// The cluster refuses.
    Refused(String),
}

impl TopicAdmin {
    /// Builds the client.
    ///
    /// # Errors
    /// The client's words.
    pub fn new(cluster: &ClusterSpec, subject: Arc<str>) -> Result<Self, AskError> {
        let context = LogContext {
            subject: subject.clone(),
        };
        let client = AdminClient::from_config_and_context(&settings::common(cluster), context)
            .map_err(|e| e.to_string())?;
        let queue = Queue::main(&client);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .map_err(|e| e.to_string())?;
        Ok(Self {
            client,
            queue,
            subject,
            runtime,
        })
    }

    /// Reads the client's own events, so that they do not pile up (B103).
    pub fn serve(&self) {
        serve(Some(&self.queue), &self.subject);
    }

    /// The cluster's id.
    pub fn cluster_id(&self, timeout: Duration) -> Option<String> {
        self.client.inner().fetch_cluster_id(timeout)
    }

    /// All topics with their partition counts.
    ///
    /// # Errors
    /// The client's words.
    pub fn topics(&self, timeout: Duration) -> Result<BTreeMap<String, i32>, AskError> {
        topics(self.client.inner(), timeout)
    }

    /// The settings of a topic: each value, and whether somebody set it for this topic.
    ///
    /// # Errors
    /// The client's or the cluster's words.
    pub fn configs(
        &self,
        topic: &str,
        timeout: Duration,
    ) -> Result<BTreeMap<String, TopicConfig>, AskError> {
        let name = [topic.to_owned()];
        let answers = native::describe_configs(&self.client, Configured::Topic, &name, timeout)
            .map_err(|(code, words)| format!("{code}: {words}"))?;
        let (_, answer) = answers
            .into_iter()
            .next()
            .ok_or_else(|| "no answer for the topic".to_owned())?;
        let entries = answer.map_err(|code| code.to_string())?.into_iter();
        Ok(entries
            .map(|e| {
                let (value, origin) = (e.value, e.origin);
                (e.name, TopicConfig { value, origin })
            })
            .collect())
    }

    /// Creates a topic.
    ///
    /// # Errors
    /// The question could not be asked.
    pub fn create(&self, new: &NewTopicSpec<'_>, timeout: Duration) -> Result<Change, AskError> {
        // −1 is "the broker's default" (KIP-464).
        let factor = TopicReplication::Fixed(new.replication_factor.unwrap_or(-1));
        let mut topic = NewTopic::new(new.name, new.partitions, factor);
        for (key, value) in new.configs {
            topic = topic.set(key, value);
        }
        let options = options(timeout);
        let answers = self.wait(timeout, self.client.create_topics([&topic], &options))?;
        Ok(change(
            answers.into_iter().next(),
            RDKafkaErrorCode::TopicAlreadyExists,
        ))
    }

    /// Grows a topic to `partitions`.
    ///
    /// # Errors
    /// The question could not be asked.
    pub fn grow(
        &self,
        topic: &str,
        partitions: i32,
        timeout: Duration,
    ) -> Result<Change, AskError> {
        let count = usize::try_from(partitions).unwrap_or(0);
        let new = NewPartitions::new(topic, count);
        let options = options(timeout);
        let answers = self.wait(timeout, self.client.create_partitions([&new], &options))?;
        Ok(change(
            answers.into_iter().next(),
            RDKafkaErrorCode::InvalidPartitions,
        ))
    }

    fn wait<T>(
        &self,
        timeout: Duration,
        question: impl Future<Output = rdkafka::error::KafkaResult<T>>,
    ) -> Result<T, AskError> {
        let limit = timeout + Duration::from_secs(1);
        self.runtime
            .block_on(async { tokio::time::timeout(limit, question).await })
            .map_err(|_| "no answer in time".to_owned())?
            .map_err(|e| e.to_string())
    }
}

/// A topic to create.
pub struct NewTopicSpec<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its partition count.
    pub partitions: i32,
    /// Its replication factor; the broker's default where absent.
    pub replication_factor: Option<i32>,
    /// Its settings.
    pub configs: &'a BTreeMap<String, String>,
}

/// One setting of a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicConfig {
    /// Its value.
    pub value: String,
    /// Where the value comes from.
    pub origin: ConfigOrigin,
}

fn options(timeout: Duration) -> AdminOptions {
    AdminOptions::new()
        .request_timeout(Some(timeout))
        .operation_timeout(Some(timeout))
}

/// Creation is idempotent: an answer that somebody was faster is as good.
fn change(
    answer: Option<rdkafka::admin::TopicResult>,
    somebody_was_faster: RDKafkaErrorCode,
) -> Change {
    match answer {
        Some(Ok(_)) => Change::Made,
        Some(Err((_, code))) if code == somebody_was_faster => Change::Made,
        Some(Err((_, code))) => Change::Refused(code.to_string()),
        None => Change::Refused("no answer for the topic".to_owned()),
    }
}

fn topics<C: rdkafka::ClientContext>(
    client: &Client<C>,
    timeout: Duration,
) -> Result<BTreeMap<String, i32>, AskError> {
    let metadata = client
        .fetch_metadata(None, timeout)
        .map_err(|e| e.to_string())?;
    Ok(metadata
        .topics()
        .iter()
        .filter(|t| t.error().is_none() && !t.partitions().is_empty())
        .map(|t| {
            let count = i32::try_from(t.partitions().len()).unwrap_or(i32::MAX);
            (t.name().to_owned(), count)
        })
        .collect())
}

fn serve(queue: Option<&Queue>, subject: &str) {
    let Some(queue) = queue else { return };
    while let Some(event) = queue.poll(Duration::ZERO) {
        if let native::Said::Log {
            level,
            facility,
            line,
        } = event.read()
        {
            crate::client::consumer::write_log(subject, level, &facility, &line);
        }
    }
}
