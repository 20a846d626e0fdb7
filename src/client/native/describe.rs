//! What a cluster says of itself, its topics and its groups, with the rights of whoever asks.

use super::ask::{AdminOptions, answer, read_uuid};
use super::record::bytes;
use super::{Event, Handle, Queue, error_code, text};
use crate::record::TopicPartition;
use rdkafka::types::RDKafkaErrorCode;
use rdkafka_sys as sys;
use std::collections::HashMap;
use std::ffi::{CString, c_char};
use std::ptr;
use std::time::Duration;

/// An error of a whole request: the code, and librdkafka's words.
pub type Refusal = (RDKafkaErrorCode, String);

/// An operation that Kafka grants on a topic, a group or the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Right {
    /// Fetch from a topic; join and commit for a group.
    Read,
    /// Produce.
    Write,
    /// Create topics.
    Create,
    /// Grow a topic.
    Alter,
    /// See that it is there.
    Describe,
    /// Read its settings.
    DescribeConfigs,
    /// Produce idempotently: asked for by brokers before 2.8.
    IdempotentWrite,
}

impl Right {
    /// Every right that matters here.
    pub const ALL: [Right; 7] = [
        Right::Read,
        Right::Write,
        Right::Create,
        Right::Alter,
        Right::Describe,
        Right::DescribeConfigs,
        Right::IdempotentWrite,
    ];

    /// The name in Kafka's tools.
    pub fn as_str(self) -> &'static str {
        match self {
            Right::Read => "Read",
            Right::Write => "Write",
            Right::Create => "Create",
            Right::Alter => "Alter",
            Right::Describe => "Describe",
            Right::DescribeConfigs => "DescribeConfigs",
            Right::IdempotentWrite => "IdempotentWrite",
        }
    }

    fn operation(self) -> sys::rd_kafka_AclOperation_t {
        use sys::rd_kafka_AclOperation_t as op;
        match self {
            Right::Read => op::RD_KAFKA_ACL_OPERATION_READ,
            Right::Write => op::RD_KAFKA_ACL_OPERATION_WRITE,
            Right::Create => op::RD_KAFKA_ACL_OPERATION_CREATE,
            Right::Alter => op::RD_KAFKA_ACL_OPERATION_ALTER,
            Right::Describe => op::RD_KAFKA_ACL_OPERATION_DESCRIBE,
            Right::DescribeConfigs => op::RD_KAFKA_ACL_OPERATION_DESCRIBE_CONFIGS,
            Right::IdempotentWrite => op::RD_KAFKA_ACL_OPERATION_IDEMPOTENT_WRITE,
        }
    }
}

/// The rights that a cluster grants to whoever asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rights(Vec<Right>);

impl Rights {
    /// Exactly these.
    pub fn of(rights: &[Right]) -> Self {
        Self(rights.to_vec())
    }

    /// Whether `right` is granted.
    pub fn allow(&self, right: Right) -> bool {
        self.0.contains(&right)
    }

    /// `None` where the cluster did not say (brokers before 2.3).
    ///
    /// # Safety
    /// `operations` is null or points to `count` operations.
    unsafe fn read(operations: *const sys::rd_kafka_AclOperation_t, count: usize) -> Option<Self> {
        if operations.is_null() {
            return None;
        }
        // SAFETY: as the caller says.
        let granted = unsafe { std::slice::from_raw_parts(operations, count) };
        let ours = Right::ALL.into_iter();
        Some(Self(
            ours.filter(|r| granted.contains(&r.operation())).collect(),
        ))
    }
}

/// A cluster as it describes itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterDescription {
    /// Its id; `None` where it has none.
    pub id: Option<String>,
    /// The brokers that are alive.
    pub brokers: Vec<i32>,
    /// Our rights on the cluster as a whole.
    pub rights: Option<Rights>,
}

/// Asks a cluster for its id, brokers, and our rights.
///
/// # Errors
/// The code of the request, and librdkafka's words.
pub fn describe_cluster(
    client: &impl Handle,
    timeout: Duration,
) -> Result<ClusterDescription, Refusal> {
    let queue = Queue::private(client);
    let options = AdminOptions::new(
        client,
        sys::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_DESCRIBECLUSTER,
        timeout,
    )
    .with_rights();
    // SAFETY: options and queue outlive the call, which copies what it needs.
    unsafe { sys::rd_kafka_DescribeCluster(client.handle(), options.pointer(), queue.pointer) };
    let event = answer(&queue, timeout)?;
    let (mut nodes, mut operations) = (0, 0);
    // SAFETY: the result and its parts belong to the event.
    unsafe {
        let result = sys::rd_kafka_event_DescribeCluster_result(event.pointer);
        if result.is_null() {
            return Ok(ClusterDescription::default());
        }
        let id = text(sys::rd_kafka_DescribeCluster_result_cluster_id(result));
        let list = sys::rd_kafka_DescribeCluster_result_nodes(result, &mut nodes);
        let granted =
            sys::rd_kafka_DescribeCluster_result_authorized_operations(result, &mut operations);
        Ok(ClusterDescription {
            id: (!id.is_empty()).then_some(id),
            brokers: node_ids(list, nodes),
            rights: Rights::read(granted, operations),
        })
    }
}

/// A topic as its cluster describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopicDescription {
    /// Its id; `None` where the cluster knows no ids.
    pub id: Option<String>,
    /// Its partitions, by number.
    pub partitions: Vec<PartitionDescription>,
    /// Our rights on it.
    pub rights: Option<Rights>,
}

/// A partition as its cluster describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartitionDescription {
    /// Its leader; `None`: nobody leads it now.
    pub leader: Option<i32>,
    /// The brokers that keep a copy.
    pub replicas: Vec<i32>,
    /// Those of them that are in sync.
    pub in_sync: Vec<i32>,
}

/// The answer of [`describe_topics`]; an error where one topic cannot be described.
pub type TopicDescriptions = HashMap<String, Result<TopicDescription, RDKafkaErrorCode>>;

/// Asks for partitions, ids and our rights of `topics`, in one call.
///
/// # Errors
/// The code of the whole request, and librdkafka's words.
pub fn describe_topics(
    client: &impl Handle,
    topics: &[String],
    timeout: Duration,
) -> Result<TopicDescriptions, Refusal> {
    let names = c_strings(topics);
    let mut pointers: Vec<*const c_char> = names.iter().map(|n| n.as_ptr()).collect();
    let queue = Queue::private(client);
    let options = AdminOptions::new(
        client,
        sys::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_DESCRIBETOPICS,
        timeout,
    )
    .with_rights();
    // SAFETY: names, options and queue outlive the call, which copies what it needs.
    unsafe {
        let collection =
            sys::rd_kafka_TopicCollection_of_topic_names(pointers.as_mut_ptr(), pointers.len());
        sys::rd_kafka_DescribeTopics(
            client.handle(),
            collection,
            options.pointer(),
            queue.pointer,
        );
        sys::rd_kafka_TopicCollection_destroy(collection);
    }
    let event = answer(&queue, timeout)?;
    let mut count = 0;
    // SAFETY: the result and its entries belong to the event.
    unsafe {
        let result = sys::rd_kafka_event_DescribeTopics_result(event.pointer);
        if result.is_null() {
            return Ok(TopicDescriptions::new());
        }
        let topics = sys::rd_kafka_DescribeTopics_result_topics(result, &mut count);
        Ok((0..count).map(|i| read_topic(*topics.add(i))).collect())
    }
}

/// # Safety
/// `topic` is live.
unsafe fn read_topic(
    topic: *const sys::rd_kafka_TopicDescription_t,
) -> (String, Result<TopicDescription, RDKafkaErrorCode>) {
    let (mut partitions, mut operations) = (0, 0);
    // SAFETY: as the caller says; parts belong to the topic.
    unsafe {
        let name = text(sys::rd_kafka_TopicDescription_name(topic));
        if let Some(code) = code_of(sys::rd_kafka_TopicDescription_error(topic)) {
            return (name, Err(code));
        }
        let list = sys::rd_kafka_TopicDescription_partitions(topic, &mut partitions);
        let granted = sys::rd_kafka_TopicDescription_authorized_operations(topic, &mut operations);
        let mut numbered: Vec<_> = (0..partitions)
            .map(|i| {
                let partition = *list.add(i);
                let number = sys::rd_kafka_TopicPartitionInfo_partition(partition);
                (number, read_partition(partition))
            })
            .collect();
        numbered.sort_by_key(|(number, _)| *number);
        let description = TopicDescription {
            id: read_uuid(sys::rd_kafka_TopicDescription_topic_id(topic)),
            partitions: numbered.into_iter().map(|(_, p)| p).collect(),
            rights: Rights::read(granted, operations),
        };
        (name, Ok(description))
    }
}

/// # Safety
/// `partition` is live.
unsafe fn read_partition(
    partition: *const sys::rd_kafka_TopicPartitionInfo_t,
) -> PartitionDescription {
    let (mut replicas, mut in_sync) = (0, 0);
    // SAFETY: as the caller says; nodes belong to the partition.
    unsafe {
        let leader = sys::rd_kafka_TopicPartitionInfo_leader(partition);
        let all = sys::rd_kafka_TopicPartitionInfo_replicas(partition, &mut replicas);
        let alive = sys::rd_kafka_TopicPartitionInfo_isr(partition, &mut in_sync);
        PartitionDescription {
            leader: (!leader.is_null())
                .then(|| sys::rd_kafka_Node_id(leader))
                .filter(|id| *id >= 0),
            replicas: node_ids(all, replicas),
            in_sync: node_ids(alive, in_sync),
        }
    }
}

/// # Safety
/// `nodes` is null or points to `count` live nodes.
unsafe fn node_ids(nodes: *mut *const sys::rd_kafka_Node_t, count: usize) -> Vec<i32> {
    if nodes.is_null() {
        return Vec::new();
    }
    // SAFETY: as the caller says.
    unsafe { std::slice::from_raw_parts(nodes, count) }
        .iter()
        .filter(|node| !node.is_null())
        // SAFETY: as the caller says.
        .map(|node| unsafe { sys::rd_kafka_Node_id(*node) })
        .collect()
}

/// A consumer group as its coordinator describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupDescription {
    /// Whether members are in it.
    pub state: GroupState,
    /// Its members.
    pub members: Vec<MemberDescription>,
    /// Our rights on it.
    pub rights: Option<Rights>,
}

/// What a group is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupState {
    /// There is no such group, or it was never used.
    Absent,
    /// It has positions, and nobody is in it.
    Empty,
    /// Members are in it.
    Active,
}

/// A member of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberDescription {
    /// The name that its client gave itself.
    pub client_id: String,
    /// Where it connects from.
    pub host: String,
}

/// The answer of [`describe_groups`]; an error where one group cannot be described.
pub type GroupDescriptions = HashMap<String, Result<GroupDescription, RDKafkaErrorCode>>;

/// Asks for state, members and our rights of `groups`, without joining any.
///
/// # Errors
/// The code of the whole request, and librdkafka's words.
pub fn describe_groups(
    client: &impl Handle,
    groups: &[String],
    timeout: Duration,
) -> Result<GroupDescriptions, Refusal> {
    let names = c_strings(groups);
    let mut pointers: Vec<*const c_char> = names.iter().map(|n| n.as_ptr()).collect();
    let queue = Queue::private(client);
    let options = AdminOptions::new(
        client,
        sys::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_DESCRIBECONSUMERGROUPS,
        timeout,
    )
    .with_rights();
    // SAFETY: names, options and queue outlive the call, which copies what it needs.
    unsafe {
        sys::rd_kafka_DescribeConsumerGroups(
            client.handle(),
            pointers.as_mut_ptr(),
            pointers.len(),
            options.pointer(),
            queue.pointer,
        );
    }
    let event = answer(&queue, timeout)?;
    let mut count = 0;
    // SAFETY: the result and its entries belong to the event.
    unsafe {
        let result = sys::rd_kafka_event_DescribeConsumerGroups_result(event.pointer);
        if result.is_null() {
            return Ok(GroupDescriptions::new());
        }
        let groups = sys::rd_kafka_DescribeConsumerGroups_result_groups(result, &mut count);
        Ok((0..count).map(|i| read_group(*groups.add(i))).collect())
    }
}

/// # Safety
/// `group` is live.
unsafe fn read_group(
    group: *const sys::rd_kafka_ConsumerGroupDescription_t,
) -> (String, Result<GroupDescription, RDKafkaErrorCode>) {
    use sys::rd_kafka_consumer_group_state_t as state;
    let mut operations = 0;
    // SAFETY: as the caller says; parts belong to the group.
    unsafe {
        let name = text(sys::rd_kafka_ConsumerGroupDescription_group_id(group));
        if let Some(code) = code_of(sys::rd_kafka_ConsumerGroupDescription_error(group)) {
            return (name, Err(code));
        }
        let granted =
            sys::rd_kafka_ConsumerGroupDescription_authorized_operations(group, &mut operations);
        let members = sys::rd_kafka_ConsumerGroupDescription_member_count(group);
        let description = GroupDescription {
            state: match sys::rd_kafka_ConsumerGroupDescription_state(group) {
                state::RD_KAFKA_CONSUMER_GROUP_STATE_DEAD => GroupState::Absent,
                state::RD_KAFKA_CONSUMER_GROUP_STATE_EMPTY => GroupState::Empty,
                _ => GroupState::Active,
            },
            members: (0..members)
                .map(|i| {
                    let member = sys::rd_kafka_ConsumerGroupDescription_member(group, i);
                    MemberDescription {
                        client_id: text(sys::rd_kafka_MemberDescription_client_id(member)),
                        host: text(sys::rd_kafka_MemberDescription_host(member)),
                    }
                })
                .collect(),
            rights: Rights::read(granted, operations),
        };
        (name, Ok(description))
    }
}

/// Asks every broker for the groups that we may see. Unlike a question to a group's coordinator it
/// does not make a new cluster create its topic for offsets.
///
/// # Errors
/// The code of the whole request, and librdkafka's words.
pub fn list_groups(client: &impl Handle, timeout: Duration) -> Result<Vec<String>, Refusal> {
    let queue = Queue::private(client);
    let options = AdminOptions::new(
        client,
        sys::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_LISTCONSUMERGROUPS,
        timeout,
    );
    // SAFETY: options and queue outlive the call, which copies what it needs.
    unsafe { sys::rd_kafka_ListConsumerGroups(client.handle(), options.pointer(), queue.pointer) };
    let event = answer(&queue, timeout)?;
    let mut count = 0;
    // SAFETY: the result and its entries belong to the event.
    unsafe {
        let result = sys::rd_kafka_event_ListConsumerGroups_result(event.pointer);
        if result.is_null() {
            return Ok(Vec::new());
        }
        let groups = sys::rd_kafka_ListConsumerGroups_result_valid(result, &mut count);
        let name = |i| text(sys::rd_kafka_ConsumerGroupListing_group_id(*groups.add(i)));
        Ok((0..count).map(name).collect())
    }
}

/// A group's committed positions: offset, and the bytes beside it.
pub type GroupOffsets = HashMap<TopicPartition, (i64, Vec<u8>)>;

/// Asks for every position that `group` has committed, without joining it.
///
/// # Errors
/// The code of the request or of the first partition that has one. A failed read is not "none".
pub fn group_offsets(
    client: &impl Handle,
    group: &str,
    timeout: Duration,
) -> Result<GroupOffsets, Refusal> {
    let Ok(name) = CString::new(group) else {
        return Ok(GroupOffsets::new());
    };
    let queue = Queue::private(client);
    let options = AdminOptions::new(
        client,
        sys::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_LISTCONSUMERGROUPOFFSETS,
        timeout,
    );
    // SAFETY: all outlive the call, which copies what it needs; no list means every partition.
    unsafe {
        let mut question = [sys::rd_kafka_ListConsumerGroupOffsets_new(
            name.as_ptr(),
            ptr::null(),
        )];
        sys::rd_kafka_ListConsumerGroupOffsets(
            client.handle(),
            question.as_mut_ptr(),
            question.len(),
            options.pointer(),
            queue.pointer,
        );
        sys::rd_kafka_ListConsumerGroupOffsets_destroy(question[0]);
    }
    read_group_offsets(&answer(&queue, timeout)?)
}

fn read_group_offsets(event: &Event) -> Result<GroupOffsets, Refusal> {
    let mut count = 0;
    let mut offsets = GroupOffsets::new();
    // SAFETY: the result and its entries belong to the event.
    unsafe {
        let result = sys::rd_kafka_event_ListConsumerGroupOffsets_result(event.pointer);
        if result.is_null() {
            return Ok(offsets);
        }
        let groups = sys::rd_kafka_ListConsumerGroupOffsets_result_groups(result, &mut count);
        for i in 0..count {
            let group = *groups.add(i);
            if let Some(code) = code_of(sys::rd_kafka_group_result_error(group)) {
                return Err((code, code.to_string()));
            }
            let list = sys::rd_kafka_group_result_partitions(group);
            if list.is_null() {
                continue;
            }
            for j in 0..usize::try_from((*list).cnt).unwrap_or(0) {
                let entry = &*(*list).elems.add(j);
                let tp = TopicPartition::new(text(entry.topic), entry.partition);
                if let Some(code) = error_code(entry.err) {
                    return Err((code, format!("{tp}: {code}")));
                }
                if entry.offset >= 0 {
                    let beside = bytes(entry.metadata, entry.metadata_size);
                    offsets.insert(tp, (entry.offset, beside.unwrap_or_default().to_vec()));
                }
            }
        }
    }
    Ok(offsets)
}

/// For each partition with its time, in milliseconds: the first offset whose record is as young as
/// that; `None` where there is none.
///
/// # Errors
/// The code of the whole request, and librdkafka's words.
pub fn offsets_at(
    client: &impl Handle,
    times: &[(TopicPartition, i64)],
    timeout: Duration,
) -> Result<HashMap<TopicPartition, Option<i64>>, Refusal> {
    if times.is_empty() {
        return Ok(HashMap::new());
    }
    // A time before 1970 would be one of librdkafka's own numbers.
    let wanted: Vec<(&TopicPartition, i64)> =
        times.iter().map(|(tp, at)| (tp, (*at).max(0))).collect();
    let isolation = sys::rd_kafka_IsolationLevel_t::RD_KAFKA_ISOLATION_LEVEL_READ_UNCOMMITTED;
    Ok(
        super::ask::ask_offsets(client, &wanted, isolation, timeout)?
            .into_iter()
            .filter_map(|(tp, offset)| Some((tp, Some(offset.ok()?).filter(|at| *at >= 0))))
            .collect(),
    )
}

pub(super) fn c_strings(texts: &[String]) -> Vec<CString> {
    texts
        .iter()
        .filter_map(|t| CString::new(t.as_str()).ok())
        .collect()
}

/// # Safety
/// `error` is null or live.
unsafe fn code_of(error: *const sys::rd_kafka_error_t) -> Option<RDKafkaErrorCode> {
    if error.is_null() {
        return None;
    }
    // SAFETY: as the caller says.
    error_code(unsafe { sys::rd_kafka_error_code(error) })
}
