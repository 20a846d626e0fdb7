//! Commits with an answer, a group's positions, offsets and ids of topics, and the end of a member.

use super::record::bytes;
use super::{Event, Handle, Queue, error_code, millis, text};
use crate::record::TopicPartition;
use rdkafka::topic_partition_list::TopicPartitionList;
use rdkafka::types::{RDKafka, RDKafkaErrorCode};
use rdkafka_sys as sys;
use std::collections::HashMap;
use std::ffi::{CString, c_char, c_int, c_void};
use std::time::Duration;

/// One entry of a commit.
pub struct CommitEntry<'a> {
    /// The partition.
    pub partition: &'a TopicPartition,
    /// The next offset to be read.
    pub offset: i64,
    /// The leader epoch of the record before it, −1 if unknown.
    pub leader_epoch: i32,
    /// What is written beside it.
    pub metadata: &'a str,
}

/// Sends a commit; its answer arrives on `queue` as [`super::Said::Committed`] with `id`.
///
/// # Errors
/// The code when the request could not even be made.
pub fn commit(
    consumer: &impl Handle,
    queue: &Queue,
    entries: &[CommitEntry<'_>],
    id: u64,
) -> Result<(), RDKafkaErrorCode> {
    let mut list = TopicPartitionList::with_capacity(entries.len());
    for entry in entries {
        let mut element = list.add_partition(&entry.partition.topic, entry.partition.partition);
        element.set_metadata(entry.metadata);
        // An offset below zero cannot come from a tracker; the crate's only other error is that.
        let _ = element.set_offset(rdkafka::Offset::Offset(entry.offset));
    }
    // SAFETY: the list holds `entries.len()` elements in our order; the request copies it.
    let err = unsafe {
        let raw = list.ptr();
        for (i, entry) in entries.iter().enumerate() {
            sys::rd_kafka_topic_partition_set_leader_epoch((*raw).elems.add(i), entry.leader_epoch);
        }
        sys::rd_kafka_commit_queue(
            consumer.handle(),
            raw,
            queue.pointer,
            None,
            id as *mut c_void,
        )
    };
    error_code(err).map_or(Ok(()), Err)
}

/// Begins to close a group member: rebalance events for what it holds follow on `queue`.
pub fn close_consumer(consumer: &impl Handle, queue: &Queue) {
    // SAFETY: both are live; an error object only says that it is closed already.
    unsafe {
        let error = sys::rd_kafka_consumer_close_queue(consumer.handle(), queue.pointer);
        if !error.is_null() {
            sys::rd_kafka_error_destroy(error);
        }
    }
}

/// A client that is destroyed without closing its consumer.
pub struct Doomed {
    handle: *mut RDKafka,
}

// SAFETY: the handle is used once, by whoever owns this.
unsafe impl Send for Doomed {}

impl Doomed {
    /// Takes the handle of a client that nobody uses or drops any more.
    pub fn of(client: &impl Handle) -> Self {
        Self {
            handle: client.handle(),
        }
    }

    /// Destroys it; blocks as long as its threads take to end.
    pub fn destroy(self) {
        // SAFETY: the owner gave the client up.
        unsafe {
            sys::rd_kafka_destroy_flags(
                self.handle,
                sys::RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE as c_int,
            );
        }
    }
}

/// Whether the group knows this client as a member. Only with the classic protocol does that end with
/// the request to leave.
pub fn is_member(consumer: &impl Handle) -> bool {
    // SAFETY: the handle is live; the text is ours to free, with the library's own call.
    unsafe {
        let id = sys::rd_kafka_memberid(consumer.handle());
        let is_member = !id.is_null() && *id != 0;
        sys::rd_kafka_mem_free(consumer.handle(), id.cast());
        is_member
    }
}

/// Whether a member that was told to close has left.
pub fn is_closed(consumer: &impl Handle) -> bool {
    // SAFETY: the handle is live.
    unsafe { sys::rd_kafka_consumer_closed(consumer.handle()) != 0 }
}

/// A group's committed position of one partition: `None` if there is none, else the offset and
/// the bytes beside it, which need not be text.
pub type CommittedPosition = Result<Option<(i64, Vec<u8>)>, RDKafkaErrorCode>;

/// Asks for the positions of `partitions` that the group of `consumer` has committed.
///
/// Not the crate's call: it panics on metadata that is not UTF-8.
///
/// # Errors
/// The code of the whole request. A failed read is not "none".
pub fn committed(
    consumer: &impl Handle,
    partitions: &[TopicPartition],
    timeout: Duration,
) -> Result<Vec<(TopicPartition, CommittedPosition)>, RDKafkaErrorCode> {
    let mut list = TopicPartitionList::with_capacity(partitions.len());
    for tp in partitions {
        list.add_partition(&tp.topic, tp.partition);
    }
    // SAFETY: the list is ours and live; offsets, metadata and errors are written into it.
    let elements = unsafe {
        let raw = list.ptr();
        let err = sys::rd_kafka_committed(consumer.handle(), raw, millis(timeout));
        if let Some(code) = error_code(err) {
            return Err(code);
        }
        std::slice::from_raw_parts((*raw).elems, partitions.len())
    };
    let read = |e: &sys::rd_kafka_topic_partition_t| match error_code(e.err) {
        Some(code) => Err(code),
        None if e.offset < 0 => Ok(None),
        None => Ok(Some((
            e.offset,
            bytes(e.metadata, e.metadata_size)
                .unwrap_or_default()
                .to_vec(),
        ))),
    };
    Ok(partitions
        .iter()
        .zip(elements)
        .map(|(tp, e)| (tp.clone(), read(e)))
        .collect())
}

/// Which offset [`list_offsets`] asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffsetSpec {
    /// The log start.
    Earliest,
    /// The last stable offset.
    LastStable,
    /// The high watermark.
    HighWatermark,
    /// The first record that is not older than this, in milliseconds; −1 in the answer if there is none.
    Since(i64),
}

/// The answer of [`list_offsets`], by partition.
pub type OffsetAnswers = Vec<(TopicPartition, Result<i64, RDKafkaErrorCode>)>;

/// Asks for one offset of each of `partitions`, in one call.
///
/// # Errors
/// The code of the whole request, and librdkafka's words.
pub fn list_offsets(
    client: &impl Handle,
    partitions: &[TopicPartition],
    spec: OffsetSpec,
    timeout: Duration,
) -> Result<OffsetAnswers, (RDKafkaErrorCode, String)> {
    let which = match spec {
        OffsetSpec::Earliest => sys::rd_kafka_OffsetSpec_t::RD_KAFKA_OFFSET_SPEC_EARLIEST as i64,
        // A time before 1970 would be one of the numbers below.
        OffsetSpec::Since(at) => at.max(0),
        OffsetSpec::LastStable | OffsetSpec::HighWatermark => {
            sys::rd_kafka_OffsetSpec_t::RD_KAFKA_OFFSET_SPEC_LATEST as i64
        }
    };
    let isolation = match spec {
        OffsetSpec::LastStable => {
            sys::rd_kafka_IsolationLevel_t::RD_KAFKA_ISOLATION_LEVEL_READ_COMMITTED
        }
        _ => sys::rd_kafka_IsolationLevel_t::RD_KAFKA_ISOLATION_LEVEL_READ_UNCOMMITTED,
    };
    let wanted: Vec<(&TopicPartition, i64)> = partitions.iter().map(|tp| (tp, which)).collect();
    ask_offsets(client, &wanted, isolation, timeout)
}

/// Asks for one offset of each partition: the number beside it is one of librdkafka's, or a time.
pub(super) fn ask_offsets(
    client: &impl Handle,
    wanted: &[(&TopicPartition, i64)],
    isolation: sys::rd_kafka_IsolationLevel_t,
    timeout: Duration,
) -> Result<OffsetAnswers, (RDKafkaErrorCode, String)> {
    let mut list = TopicPartitionList::with_capacity(wanted.len());
    for (tp, _) in wanted {
        list.add_partition(&tp.topic, tp.partition);
    }
    let queue = Queue::private(client);
    let options = AdminOptions::new(
        client,
        sys::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_LISTOFFSETS,
        timeout,
    );
    // SAFETY: the list holds `wanted.len()` elements in our order; list, options and queue outlive
    // the call, which copies what it needs.
    unsafe {
        let raw = list.ptr();
        for (i, (_, which)) in wanted.iter().enumerate() {
            (*(*raw).elems.add(i)).offset = *which;
        }
        let error = sys::rd_kafka_AdminOptions_set_isolation_level(options.pointer, isolation);
        if !error.is_null() {
            sys::rd_kafka_error_destroy(error);
        }
        sys::rd_kafka_ListOffsets(client.handle(), raw, options.pointer, queue.pointer);
    }
    let event = answer(&queue, timeout)?;
    Ok(read_offset_answers(&event))
}

fn read_offset_answers(event: &Event) -> OffsetAnswers {
    let mut count = 0;
    // SAFETY: the result and its entries belong to the event.
    unsafe {
        let result = sys::rd_kafka_event_ListOffsets_result(event.pointer);
        if result.is_null() {
            return Vec::new();
        }
        let infos = sys::rd_kafka_ListOffsets_result_infos(result, &mut count);
        (0..count)
            .map(|i| {
                let tp = &*sys::rd_kafka_ListOffsetsResultInfo_topic_partition(*infos.add(i));
                (
                    TopicPartition::new(text(tp.topic), tp.partition),
                    error_code(tp.err).map_or(Ok(tp.offset), Err),
                )
            })
            .collect()
    }
}

/// The id of each topic in text form; `None` where the cluster knows no ids (a zero id), an error
/// where the topic cannot be described.
pub type TopicIds = HashMap<String, Result<Option<String>, RDKafkaErrorCode>>;

/// Asks for the ids of `topics`, in one call.
///
/// # Errors
/// The code of the whole request, and librdkafka's words.
pub fn topic_ids(
    client: &impl Handle,
    topics: &[&str],
    timeout: Duration,
) -> Result<TopicIds, (RDKafkaErrorCode, String)> {
    let names: Vec<CString> = topics
        .iter()
        .filter_map(|t| CString::new(*t).ok())
        .collect();
    let mut pointers: Vec<*const c_char> = names.iter().map(|n| n.as_ptr()).collect();
    let queue = Queue::private(client);
    let options = AdminOptions::new(
        client,
        sys::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_DESCRIBETOPICS,
        timeout,
    );
    // SAFETY: names, options and queue outlive the call, which copies what it needs.
    unsafe {
        let collection =
            sys::rd_kafka_TopicCollection_of_topic_names(pointers.as_mut_ptr(), pointers.len());
        sys::rd_kafka_DescribeTopics(client.handle(), collection, options.pointer, queue.pointer);
        sys::rd_kafka_TopicCollection_destroy(collection);
    }
    let event = answer(&queue, timeout)?;
    Ok(read_topic_ids(&event))
}

fn read_topic_ids(event: &Event) -> TopicIds {
    let mut count = 0;
    // SAFETY: the result and its entries belong to the event.
    unsafe {
        let result = sys::rd_kafka_event_DescribeTopics_result(event.pointer);
        if result.is_null() {
            return TopicIds::new();
        }
        let topics = sys::rd_kafka_DescribeTopics_result_topics(result, &mut count);
        (0..count)
            .map(|i| {
                let topic = *topics.add(i);
                let name = text(sys::rd_kafka_TopicDescription_name(topic));
                let error = sys::rd_kafka_TopicDescription_error(topic);
                let id = match (!error.is_null())
                    .then(|| error_code(sys::rd_kafka_error_code(error)))
                    .flatten()
                {
                    Some(code) => Err(code),
                    None => Ok(read_uuid(sys::rd_kafka_TopicDescription_topic_id(topic))),
                };
                (name, id)
            })
            .collect()
    }
}

/// A zero id means *unknown* (Kafka before 2.8).
///
/// # Safety
/// `id` is null or live.
pub(super) unsafe fn read_uuid(id: *const sys::rd_kafka_Uuid_t) -> Option<String> {
    if id.is_null() {
        return None;
    }
    // SAFETY: checked above; the text belongs to the id.
    unsafe {
        let zero = sys::rd_kafka_Uuid_most_significant_bits(id) == 0
            && sys::rd_kafka_Uuid_least_significant_bits(id) == 0;
        (!zero).then(|| as_kafka_writes_it(&text(sys::rd_kafka_Uuid_base64str(id))))
    }
}

/// librdkafka writes ids in base64's first alphabet, Kafka and its tools in the one for addresses: whoever compares them
/// should see the same text.
fn as_kafka_writes_it(id: &str) -> String {
    id.replace('+', "-").replace('/', "_")
}

/// Waits for the answer of one admin request. librdkafka keeps its own deadline; ours is a little
/// later, so that nothing can hang.
pub(super) fn answer(
    queue: &Queue,
    timeout: Duration,
) -> Result<Event, (RDKafkaErrorCode, String)> {
    let event = queue
        .poll(timeout + Duration::from_secs(1))
        .ok_or_else(|| {
            (
                RDKafkaErrorCode::OperationTimedOut,
                "no answer in time".to_owned(),
            )
        })?;
    match event.code() {
        None => Ok(event),
        // SAFETY: the string belongs to the event.
        Some(code) => Err((
            code,
            text(unsafe { sys::rd_kafka_event_error_string(event.pointer) }),
        )),
    }
}

/// The options of one admin request.
pub(super) struct AdminOptions {
    pointer: *mut sys::rd_kafka_AdminOptions_t,
}

impl AdminOptions {
    pub(super) fn new(
        client: &impl Handle,
        op: sys::rd_kafka_admin_op_t,
        timeout: Duration,
    ) -> Self {
        let mut buffer = [0 as c_char; 256];
        // SAFETY: the handle is live; a value out of range leaves the default in place.
        let pointer = unsafe {
            let pointer = sys::rd_kafka_AdminOptions_new(client.handle(), op);
            sys::rd_kafka_AdminOptions_set_request_timeout(
                pointer,
                millis(timeout),
                buffer.as_mut_ptr(),
                buffer.len(),
            );
            pointer
        };
        Self { pointer }
    }

    /// The answer shall say what we may do.
    pub(super) fn with_rights(self) -> Self {
        // SAFETY: the options are ours; an error object only says that the request has no such option.
        unsafe {
            let error =
                sys::rd_kafka_AdminOptions_set_include_authorized_operations(self.pointer, 1);
            if !error.is_null() {
                sys::rd_kafka_error_destroy(error);
            }
        }
        self
    }

    pub(super) fn pointer(&self) -> *mut sys::rd_kafka_AdminOptions_t {
        self.pointer
    }
}

impl Drop for AdminOptions {
    fn drop(&mut self) {
        // SAFETY: owned, freed once.
        unsafe { sys::rd_kafka_AdminOptions_destroy(self.pointer) }
    }
}
