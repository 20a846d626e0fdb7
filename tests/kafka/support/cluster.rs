//! Clusters of the tests, and what is asked of them.
//!
//! Tests that do not break brokers share one pair: a start costs seconds of both cores. Their topics, groups and users
//! are their own.

use super::wait;
use bytes::BytesMut;
use kafka_harness::{Cluster, start_all};
use kafka_protocol::messages::{ApiKey, LeaveGroupRequest, RequestHeader};
use kafka_protocol::protocol::{Encodable, StrBytes};
use rdkafka::admin::{
    AdminClient, AdminOptions, AlterConfig, NewPartitions, NewTopic, ResourceSpecifier,
    TopicReplication, TopicResult,
};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};
use rdkafka::metadata::Metadata;
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

const ASK: Duration = Duration::from_secs(20);

/// A source and a target.
pub struct Pair {
    pub source: Cluster,
    pub target: Cluster,
}

static SHARED: Mutex<Option<Arc<Pair>>> = Mutex::new(None);

/// The pair that tests share. The target has ACLs: clients without a name may do everything, `mirror` may do what is
/// granted.
pub fn pair() -> Arc<Pair> {
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(pair) = &*shared {
        return pair.clone();
    }
    let target = || {
        Cluster::builder("target")
            .sasl_plain("mirror", "secret")
            .acls(&[])
    };
    let [source, target] = start_all([settings(Cluster::builder("source")), settings(target())])
        .expect("two clusters");
    let pair = Arc::new(Pair { source, target });
    *shared = Some(pair.clone());
    // SAFETY: `end_shared` takes no argument and does not unwind.
    unsafe { libc::atexit(end_shared) };
    pair
}

/// Settings that all clusters of these tests have: chosen timestamps are old, and nothing may expire for it; what is to be
/// compacted is so at once.
pub fn settings(builder: kafka_harness::ClusterBuilder) -> kafka_harness::ClusterBuilder {
    builder
        .property("log.retention.ms", "-1")
        .property("log.cleaner.backoff.ms", "200")
}

/// A static is never dropped, and brokers should not outlive the tests by a folder.
extern "C" fn end_shared() {
    drop(SHARED.lock().unwrap_or_else(PoisonError::into_inner).take());
}

/// Asks and changes a cluster with the client library of the tests.
pub struct Admin {
    client: AdminClient<DefaultClientContext>,
    consumer: BaseConsumer,
    runtime: tokio::runtime::Runtime,
    bootstrap: String,
}

impl Admin {
    /// An admin at `bootstrap`.
    pub fn new(bootstrap: &str) -> Self {
        let mut config = ClientConfig::new();
        config
            .set("bootstrap.servers", bootstrap)
            .set("group.id", "admin")
            .set("isolation.level", "read_committed");
        Self {
            client: config.create().expect("an admin client"),
            consumer: config.create().expect("a consumer"),
            runtime: tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime"),
            bootstrap: bootstrap.to_owned(),
        }
    }

    /// Creates a topic, with as many copies as the cluster's default, and waits until it is there.
    pub fn create(&self, topic: &str, partitions: i32, configs: &[(&str, &str)]) {
        let mut new = NewTopic::new(topic, partitions, TopicReplication::Fixed(-1));
        for (key, value) in configs {
            new = new.set(key, value);
        }
        self.make(topic, RDKafkaErrorCode::TopicAlreadyExists, || {
            self.client.create_topics([&new], &options())
        });
        wait::until(&format!("{topic} is there"), ASK, || {
            self.partitions(topic) == partitions
        });
    }

    /// Deletes a topic, and waits until it is gone.
    pub fn delete(&self, topic: &str) {
        self.make(topic, RDKafkaErrorCode::UnknownTopicOrPartition, || {
            self.client.delete_topics(&[topic], &options())
        });
        wait::until(&format!("{topic} is gone"), ASK, || {
            self.partitions(topic) == 0
        });
    }

    /// Changes a topic. Asked once more after a failure, `already` says that the change was made the first time.
    fn make<F>(&self, topic: &str, already: RDKafkaErrorCode, mut change: impl FnMut() -> F)
    where
        F: Future<Output = KafkaResult<Vec<TopicResult>>>,
    {
        let mut is_asked_again = false;
        answered(&format!("{topic} is changed"), || {
            let answers = self.runtime.block_on(change());
            let is_made = |code| code == already && is_asked_again;
            let result = answers.and_then(|answers| {
                answers.into_iter().try_for_each(|answer| match answer {
                    Err((_, code)) if !is_made(code) => Err(KafkaError::AdminOp(code)),
                    _ => Ok(()),
                })
            });
            is_asked_again = true;
            result
        });
    }

    /// Grows a topic.
    pub fn grow(&self, topic: &str, partitions: usize) {
        let new = NewPartitions::new(topic, partitions);
        self.make(topic, RDKafkaErrorCode::InvalidPartitions, || {
            self.client.create_partitions([&new], &options())
        });
    }

    /// Sets one setting of a topic; the others go back to their defaults.
    pub fn set(&self, topic: &str, key: &str, value: &str) {
        let change = AlterConfig::new(ResourceSpecifier::Topic(topic)).set(key, value);
        let answer = answered(&format!("{key} of {topic} is set"), || {
            let change = self.client.alter_configs([&change], &options());
            self.runtime.block_on(change)
        });
        answer
            .into_iter()
            .for_each(|r| drop(r.unwrap_or_else(|(t, e)| panic!("set {key} of {t:?}: {e}"))));
    }

    /// Deletes the records of a partition before `before`, as retention does.
    pub fn delete_records(&self, topic: &str, partition: i32, before: i64) {
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(topic, partition, Offset::Offset(before))
            .expect("an offset");
        answered(
            &format!("records of {topic}[{partition}] are deleted"),
            || {
                // The client asks whom it remembers as leader, and does not learn from the answer that it is another by now.
                self.client.inner().fetch_metadata(Some(topic), ASK)?;
                let deletion = self.client.delete_records(&list, &options());
                let answer = self.runtime.block_on(deletion)?;
                answer.elements().iter().try_for_each(|e| e.error())
            },
        );
    }

    /// A topic's partition count; 0 if there is none.
    pub fn partitions(&self, topic: &str) -> i32 {
        let metadata = self.metadata();
        let topic = metadata.topics().iter().find(|t| t.name() == topic);
        topic.map_or(0, |t| i32::try_from(t.partitions().len()).expect("a count"))
    }

    /// Log start and end of a partition.
    pub fn watermarks(&self, topic: &str, partition: i32) -> (i64, i64) {
        answered(&format!("watermarks of {topic}[{partition}]"), || {
            self.consumer.fetch_watermarks(topic, partition, ASK)
        })
    }

    fn metadata(&self) -> Metadata {
        answered("metadata", || self.consumer.fetch_metadata(None, ASK))
    }

    /// The ends of all partitions of a topic, summed up.
    pub fn end_sum(&self, topic: &str) -> i64 {
        (0..self.partitions(topic))
            .map(|p| self.watermarks(topic, p).1)
            .sum()
    }

    /// How many partitions of its only topic each member of a group owns.
    pub fn shares(&self, group: &str) -> Vec<usize> {
        let groups = answered(&format!("group {group}"), || {
            self.consumer.fetch_group_list(Some(group), ASK)
        });
        let members = groups.groups().iter().flat_map(|g| g.members());
        members.map(|m| share(m.assignment())).collect()
    }

    /// Takes every member out of a group, as if each had left: they do not hear of it. The cluster has one broker.
    pub fn expel(&self, group: &str) {
        let groups = answered(&format!("group {group}"), || {
            self.consumer.fetch_group_list(Some(group), ASK)
        });
        let members = groups.groups().iter().flat_map(|g| g.members());
        let ids: Vec<&str> = members.map(|member| member.id()).collect();
        assert!(!ids.is_empty(), "{group} has members");
        for id in ids {
            leave(&self.bootstrap, group, id).expect("the broker is told");
        }
    }

    /// The names of all groups.
    pub fn groups(&self) -> BTreeSet<String> {
        let groups = answered("groups", || self.consumer.fetch_group_list(None, ASK));
        groups
            .groups()
            .iter()
            .map(|g| g.name().to_owned())
            .collect()
    }

    /// The names of all topics.
    pub fn topics(&self) -> BTreeSet<String> {
        self.metadata()
            .topics()
            .iter()
            .map(|t| t.name().to_owned())
            .collect()
    }

    /// A group's committed offsets of a topic.
    pub fn committed(&self, group: &str, topic: &str) -> BTreeMap<i32, i64> {
        let consumer: BaseConsumer = ClientConfig::new()
            .set("bootstrap.servers", &self.bootstrap)
            .set("group.id", group)
            .create()
            .expect("a consumer");
        let mut list = TopicPartitionList::new();
        for partition in 0..self.partitions(topic) {
            list.add_partition(topic, partition);
        }
        let answer = answered(&format!("committed offsets of {group}"), || {
            consumer.committed_offsets(list.clone(), ASK)
        });
        let offsets = answer
            .elements()
            .into_iter()
            .filter_map(|e| match e.offset() {
                Offset::Offset(at) => Some((e.partition(), at)),
                _ => None,
            });
        offsets.collect()
    }
}

/// Tells the coordinator that a member leaves.
fn leave(bootstrap: &str, group: &str, member: &str) -> std::io::Result<()> {
    const VERSION: i16 = 0;
    let header = RequestHeader::default()
        .with_request_api_key(ApiKey::LeaveGroup as i16)
        .with_request_api_version(VERSION);
    let leave = LeaveGroupRequest::default()
        .with_group_id(StrBytes::from(group.to_owned()).into())
        .with_member_id(StrBytes::from(member.to_owned()));
    let mut frame = BytesMut::new();
    let of_header = ApiKey::LeaveGroup.request_header_version(VERSION);
    header
        .encode(&mut frame, of_header)
        .map_err(std::io::Error::other)?;
    leave
        .encode(&mut frame, VERSION)
        .map_err(std::io::Error::other)?;
    let mut broker = TcpStream::connect(bootstrap)?;
    broker.set_read_timeout(Some(ASK))?;
    broker.write_all(&(frame.len() as u32).to_be_bytes())?;
    broker.write_all(&frame)?;
    // Length, correlation, error code.
    let mut answer = [0; 10];
    broker.read_exact(&mut answer)?;
    assert_eq!(answer[8..], [0, 0], "{member} has left {group}");
    Ok(())
}

/// The partitions in an assignment of the classic protocol: version, topics, then name and partitions of each.
fn share(assignment: Option<&[u8]>) -> usize {
    let counted = |bytes: &[u8]| {
        let name = i16::from_be_bytes(bytes.get(6..8)?.try_into().ok()?);
        let at = 8 + usize::try_from(name).ok()?;
        let count = i32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?);
        usize::try_from(count).ok()
    };
    assignment.and_then(counted).unwrap_or(0)
}

/// Asks what may be asked as often as one likes, until it is answered: a partition whose leader has just gone has none for
/// a moment, and these tests kill leaders.
fn answered<T>(what: &str, mut ask: impl FnMut() -> KafkaResult<T>) -> T {
    let mut last = None;
    let found = wait::try_find(3 * ASK, || ask().map_err(|error| last = Some(error)).ok());
    found.unwrap_or_else(|| panic!("{what}: {last:?}"))
}

fn options() -> AdminOptions {
    AdminOptions::new()
        .request_timeout(Some(ASK))
        .operation_timeout(Some(ASK))
}
