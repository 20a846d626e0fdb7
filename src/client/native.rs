//! The one module with `unsafe`: what librdkafka can do and the `rdkafka` crate does not wrap.
//!
//! Why not the crate's own calls:
//! - its consumer gives errors and end-of-partition events without topic and partition (B054);
//! - iterating a header whose name is not UTF-8 panics there (B092);
//! - its producer looks the topic up by name for every record, and cannot copy headers as a whole;
//! - topic ids, offsets of many partitions at once and commits with a result event are not wrapped.
//!
//! Every pointer here is owned by a type with `Drop`, or lives as long as the event that owns it.
//! The types are `Send` because librdkafka's objects are: the library is thread safe, and an event
//! with its messages may be freed by any thread.
#![allow(unsafe_code)]

use crate::record::{HeaderSource, Headers, Record, TopicPartition};
use rdkafka::topic_partition_list::TopicPartitionList;
use rdkafka::types::{RDKafka, RDKafkaErrorCode, RDKafkaRespErr};
use rdkafka_sys as sys;
use std::any::Any;
use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

/// A client handle that outlives what is made from it. Implemented by the crate's clients.
pub trait Handle {
    /// librdkafka's handle.
    fn handle(&self) -> *mut RDKafka;
}

fn millis(timeout: Duration) -> c_int {
    c_int::try_from(timeout.as_millis()).unwrap_or(c_int::MAX)
}

fn text(pointer: *const c_char) -> String {
    if pointer.is_null() {
        return String::new();
    }
    // SAFETY: librdkafka's strings are NUL-terminated and live as long as the object asked.
    unsafe { CStr::from_ptr(pointer) }
        .to_string_lossy()
        .into_owned()
}

/// A queue of events of one client.
pub struct Queue {
    pointer: *mut sys::rd_kafka_queue_t,
}

// SAFETY: queues are thread safe in librdkafka.
unsafe impl Send for Queue {}
// SAFETY: as above.
unsafe impl Sync for Queue {}

impl Queue {
    /// The queue on which a consumer's records, rebalances and errors arrive.
    pub fn of_consumer(client: &impl Handle) -> Option<Self> {
        // SAFETY: the handle is live; a null queue is checked.
        let pointer = unsafe { sys::rd_kafka_queue_get_consumer(client.handle()) };
        (!pointer.is_null()).then_some(Self { pointer })
    }

    /// The queue on which a producer's delivery reports arrive.
    pub fn main(client: &impl Handle) -> Self {
        // SAFETY: the handle is live; the main queue always exists.
        let pointer = unsafe { sys::rd_kafka_queue_get_main(client.handle()) };
        Self { pointer }
    }

    /// A queue for the answers of admin requests.
    pub fn private(client: &impl Handle) -> Self {
        // SAFETY: the handle is live.
        let pointer = unsafe { sys::rd_kafka_queue_new(client.handle()) };
        Self { pointer }
    }

    /// The next event, `None` after `timeout` or when another thread called [`Queue::wake`].
    pub fn poll(&self, timeout: Duration) -> Option<Event> {
        // SAFETY: the queue is live; the event is owned by `Event` from here on.
        let event = unsafe { sys::rd_kafka_queue_poll(self.pointer, millis(timeout)) };
        (!event.is_null()).then_some(Event { pointer: event })
    }

    /// Makes a waiting [`Queue::poll`] return.
    pub fn wake(&self) {
        // SAFETY: the queue is live; yielding is thread safe.
        unsafe { sys::rd_kafka_queue_yield(self.pointer) }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // SAFETY: we own one reference.
        unsafe { sys::rd_kafka_queue_destroy(self.pointer) }
    }
}

/// One event of a queue.
pub struct Event {
    pointer: *mut sys::rd_kafka_event_t,
}

// SAFETY: an event is a plain owned object.
unsafe impl Send for Event {}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: owned, freed once.
        unsafe { sys::rd_kafka_event_destroy(self.pointer) }
    }
}

/// What an event says.
pub enum Said {
    /// A record was fetched.
    Fetched(Fetched),
    /// Partitions are to be assigned.
    Assign(Vec<TopicPartition>),
    /// Partitions are to be given up.
    Revoke(Vec<TopicPartition>),
    /// A commit was answered.
    Committed {
        /// The number given to [`commit`].
        id: u64,
        /// Each partition with the committed offset, or its error.
        results: Vec<(TopicPartition, Result<i64, RDKafkaErrorCode>)>,
        /// An error of the whole request.
        error: Option<RDKafkaErrorCode>,
    },
    /// A partition reached its end; this is the next offset to be fetched.
    EndOfPartition(TopicPartition, i64),
    /// An error, with its partition where it has one.
    Error {
        /// The code.
        code: RDKafkaErrorCode,
        /// Of this partition.
        partition: Option<TopicPartition>,
        /// librdkafka's words.
        detail: String,
        /// Whether the client handle is dead.
        severity: Severity,
    },
    /// A log line.
    Log {
        /// syslog level, 0 to 7.
        level: i32,
        /// What it is about.
        facility: String,
        /// The line.
        line: String,
    },
    /// Delivery reports.
    Delivered(Deliveries),
    /// Anything that we have no use for.
    Other,
}

/// Whether an error ends the client handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The client goes on.
    Passing,
    /// The handle is dead.
    Fatal,
}

impl Event {
    /// Reads the event.
    pub fn read(self) -> Said {
        // SAFETY: the event is live.
        match unsafe { sys::rd_kafka_event_type(self.pointer) } {
            sys::RD_KAFKA_EVENT_FETCH => self.fetched(),
            sys::RD_KAFKA_EVENT_REBALANCE => self.rebalance(),
            sys::RD_KAFKA_EVENT_OFFSET_COMMIT => self.committed(),
            sys::RD_KAFKA_EVENT_ERROR => self.error(),
            sys::RD_KAFKA_EVENT_LOG => self.log(),
            sys::RD_KAFKA_EVENT_DR => Said::Delivered(Deliveries { event: self }),
            _ => Said::Other,
        }
    }

    fn fetched(self) -> Said {
        // SAFETY: a fetch event holds exactly one message, which lives as long as the event.
        let message = unsafe { sys::rd_kafka_event_message_next(self.pointer) };
        if message.is_null() {
            return Said::Other;
        }
        Said::Fetched(
            Fetched {
                message,
                headers: ptr::null_mut(),
                _event: self,
            }
            .with_headers(),
        )
    }

    fn rebalance(&self) -> Said {
        // SAFETY: the list belongs to the event.
        let list = unsafe { sys::rd_kafka_event_topic_partition_list(self.pointer) };
        let partitions = read_list(list).into_iter().map(|(tp, ..)| tp).collect();
        match self.code() {
            Some(RDKafkaErrorCode::AssignPartitions) => Said::Assign(partitions),
            _ => Said::Revoke(partitions),
        }
    }

    fn committed(&self) -> Said {
        // SAFETY: list and opaque belong to the event.
        let (list, opaque) = unsafe {
            (
                sys::rd_kafka_event_topic_partition_list(self.pointer),
                sys::rd_kafka_event_opaque(self.pointer),
            )
        };
        let results = read_list(list)
            .into_iter()
            .map(|(tp, offset, error)| (tp, error.map_or(Ok(offset), Err)))
            .collect();
        Said::Committed {
            id: opaque as u64,
            results,
            error: self.code(),
        }
    }

    fn error(&self) -> Said {
        let Some(code) = self.code() else {
            return Said::Other;
        };
        // SAFETY: the partition is a copy that we free; strings belong to the event.
        let (partition, detail, fatal) = unsafe {
            let raw = sys::rd_kafka_event_topic_partition(self.pointer);
            let partition = (!raw.is_null()).then(|| {
                let found = (
                    TopicPartition::new(text((*raw).topic), (*raw).partition),
                    (*raw).offset,
                );
                sys::rd_kafka_topic_partition_destroy(raw);
                found
            });
            (
                partition,
                text(sys::rd_kafka_event_error_string(self.pointer)),
                sys::rd_kafka_event_error_is_fatal(self.pointer) != 0,
            )
        };
        match (code, partition) {
            (RDKafkaErrorCode::PartitionEOF, Some((tp, offset))) => {
                Said::EndOfPartition(tp, offset)
            }
            (code, partition) => Said::Error {
                code,
                partition: partition.map(|(tp, _)| tp),
                detail,
                severity: if fatal {
                    Severity::Fatal
                } else {
                    Severity::Passing
                },
            },
        }
    }

    fn log(&self) -> Said {
        let (mut facility, mut line, mut level) = (ptr::null(), ptr::null(), 0);
        // SAFETY: out parameters are set by the call; strings belong to the event.
        let err =
            unsafe { sys::rd_kafka_event_log(self.pointer, &mut facility, &mut line, &mut level) };
        if err != 0 {
            return Said::Other;
        }
        Said::Log {
            level,
            facility: text(facility),
            line: text(line),
        }
    }

    fn code(&self) -> Option<RDKafkaErrorCode> {
        // SAFETY: the event is live.
        error_code(unsafe { sys::rd_kafka_event_error(self.pointer) })
    }
}

fn error_code(raw: RDKafkaRespErr) -> Option<RDKafkaErrorCode> {
    (raw != RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR).then(|| raw.into())
}

type ListEntry = (TopicPartition, i64, Option<RDKafkaErrorCode>);

/// Copies a partition list. The topic names of a run of one topic share one allocation.
fn read_list(list: *const sys::rd_kafka_topic_partition_list_t) -> Vec<ListEntry> {
    if list.is_null() {
        return Vec::new();
    }
    // SAFETY: the list is live and holds `cnt` elements.
    let elements = unsafe {
        let count = usize::try_from((*list).cnt).unwrap_or(0);
        if count == 0 {
            return Vec::new();
        }
        std::slice::from_raw_parts((*list).elems, count)
    };
    let mut names: HashMap<String, Arc<str>> = HashMap::new();
    elements
        .iter()
        .map(|e| {
            let name = text(e.topic);
            let topic = names
                .entry(name)
                .or_insert_with_key(|name| name.as_str().into())
                .clone();
            (
                TopicPartition::new(topic, e.partition),
                e.offset,
                error_code(e.err),
            )
        })
        .collect()
}

/// One fetched record: its bytes stay librdkafka's until it is dropped.
pub struct Fetched {
    message: *const sys::rd_kafka_message_t,
    headers: *mut sys::rd_kafka_headers_t,
    /// Owns `message`.
    _event: Event,
}

// SAFETY: the message belongs to the event that we own; the library lets any thread read and free
// it.
unsafe impl Send for Fetched {}
// SAFETY: reading is all that shared references allow, and headers were parsed on creation.
unsafe impl Sync for Fetched {}

impl Fetched {
    /// Headers are parsed once, here: `rd_kafka_message_headers` writes to the message, which would
    /// not be safe behind a shared reference. A record without headers costs one check.
    fn with_headers(mut self) -> Self {
        let mut headers = ptr::null_mut();
        // SAFETY: the message is live; on success the headers belong to it.
        let err = unsafe { sys::rd_kafka_message_headers(self.message, &mut headers) };
        if err == RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR {
            self.headers = headers;
        }
        self
    }

    fn raw(&self) -> &sys::rd_kafka_message_t {
        // SAFETY: lives as long as the event that we own.
        unsafe { &*self.message }
    }

    /// Whether `other` is of the same partition, without looking at names.
    pub fn same_partition(&self, other: &Self) -> bool {
        self.raw().rkt == other.raw().rkt && self.raw().partition == other.raw().partition
    }

    /// The partition, with a freshly allocated topic name: ask once a batch.
    pub fn topic_partition(&self) -> TopicPartition {
        // SAFETY: the topic handle lives as long as the message.
        let name = unsafe { sys::rd_kafka_topic_name(self.raw().rkt) };
        TopicPartition::new(text(name), self.raw().partition)
    }

    /// The record's offset.
    pub fn offset(&self) -> i64 {
        self.raw().offset
    }

    /// The leader epoch it was fetched with, −1 if unknown.
    pub fn leader_epoch(&self) -> i32 {
        // SAFETY: the message is live.
        unsafe { sys::rd_kafka_message_leader_epoch(self.message) }
    }

    /// The key; null is `None`.
    pub fn key(&self) -> Option<&[u8]> {
        bytes(self.raw().key, self.raw().key_len)
    }

    /// The value; null is `None`.
    pub fn value(&self) -> Option<&[u8]> {
        bytes(self.raw().payload, self.raw().len)
    }

    /// The timestamp in milliseconds.
    pub fn timestamp(&self) -> Option<i64> {
        let mut kind = sys::rd_kafka_timestamp_type_t::RD_KAFKA_TIMESTAMP_NOT_AVAILABLE;
        // SAFETY: the message is live.
        let at = unsafe { sys::rd_kafka_message_timestamp(self.message, &mut kind) };
        (kind != sys::rd_kafka_timestamp_type_t::RD_KAFKA_TIMESTAMP_NOT_AVAILABLE && at >= 0)
            .then_some(at)
    }

    /// Key and value bytes.
    pub fn len(&self) -> usize {
        self.raw().key_len + self.raw().len
    }

    /// Whether key and value are both without bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

fn bytes<'a>(pointer: *mut c_void, len: usize) -> Option<&'a [u8]> {
    // SAFETY: librdkafka gives a pointer to `len` bytes, or null; callers bind the lifetime to the
    // owner.
    (!pointer.is_null()).then(|| unsafe { std::slice::from_raw_parts(pointer.cast(), len) })
}

impl HeaderSource for Fetched {
    fn get(&self, index: usize) -> Option<(&[u8], Option<&[u8]>)> {
        if self.headers.is_null() {
            return None;
        }
        let (mut name, mut value, mut len) = (ptr::null(), ptr::null(), 0);
        // SAFETY: headers live as long as the message; out parameters are set on success.
        let err = unsafe {
            sys::rd_kafka_header_get_all(self.headers, index, &mut name, &mut value, &mut len)
        };
        if err != RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR {
            return None;
        }
        // SAFETY: the name is NUL-terminated and lives as long as the headers.
        let name = unsafe { CStr::from_ptr(name) }.to_bytes();
        Some((name, bytes(value.cast_mut(), len)))
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

/// Delivery reports of one event.
pub struct Deliveries {
    event: Event,
}

impl Deliveries {
    /// Calls `each` with every record's opaque number and its error, if it failed.
    pub fn for_each(&self, mut each: impl FnMut(u64, Option<RDKafkaErrorCode>)) {
        loop {
            // SAFETY: the message belongs to the event; only plain fields are read.
            let (opaque, err) = unsafe {
                let message = sys::rd_kafka_event_message_next(self.event.pointer);
                if message.is_null() {
                    return;
                }
                ((*message)._private as u64, (*message).err)
            };
            each(opaque, error_code(err));
        }
    }
}

/// A topic of a producer, looked up once.
pub struct TopicHandle {
    pointer: *mut sys::rd_kafka_topic_t,
}

// SAFETY: topic handles are thread safe in librdkafka.
unsafe impl Send for TopicHandle {}
// SAFETY: as above.
unsafe impl Sync for TopicHandle {}

impl TopicHandle {
    /// Looks `topic` up. `None` if the name cannot be a topic's.
    pub fn new(producer: &impl Handle, topic: &str) -> Option<Self> {
        let name = CString::new(topic).ok()?;
        // SAFETY: the handle is live; a null result is checked.
        let pointer =
            unsafe { sys::rd_kafka_topic_new(producer.handle(), name.as_ptr(), ptr::null_mut()) };
        (!pointer.is_null()).then_some(Self { pointer })
    }
}

impl Drop for TopicHandle {
    fn drop(&mut self) {
        // SAFETY: we own one reference.
        unsafe { sys::rd_kafka_topic_destroy(self.pointer) }
    }
}

/// Enqueues `record` for `partition` of `topic`. The bytes are copied; `opaque` comes back with the
/// record's delivery report, exactly once if and only if this returns `Ok`.
///
/// # Errors
/// librdkafka's code when the record was not taken.
pub fn enqueue(
    producer: &impl Handle,
    topic: &TopicHandle,
    partition: i32,
    record: &Record<'_>,
    opaque: u64,
) -> Result<(), RDKafkaErrorCode> {
    let (key, key_len) = parts(record.key.as_deref());
    let (value, value_len) = parts(record.value.as_deref());
    let headers = copy_headers(&record.headers);
    // 0 would mean "now"; a record without timestamp gets the producer's time as any client's does.
    let timestamp = record.timestamp.unwrap_or(0);
    // SAFETY: tags and argument types follow rd_kafka_producev's contract, the list ends in
    // VTYPE_END, key and value are copied (F_COPY) before the call returns.
    let err = unsafe {
        use sys::rd_kafka_vtype_t as tag;
        sys::rd_kafka_producev(
            producer.handle(),
            tag::RD_KAFKA_VTYPE_RKT,
            topic.pointer,
            tag::RD_KAFKA_VTYPE_PARTITION,
            partition,
            tag::RD_KAFKA_VTYPE_MSGFLAGS,
            sys::RD_KAFKA_MSG_F_COPY as c_int,
            tag::RD_KAFKA_VTYPE_VALUE,
            value,
            value_len,
            tag::RD_KAFKA_VTYPE_KEY,
            key,
            key_len,
            tag::RD_KAFKA_VTYPE_TIMESTAMP,
            timestamp,
            tag::RD_KAFKA_VTYPE_HEADERS,
            headers,
            tag::RD_KAFKA_VTYPE_OPAQUE,
            opaque as *mut c_void,
            tag::RD_KAFKA_VTYPE_END,
        )
    };
    match error_code(err) {
        None => Ok(()),
        Some(code) => {
            if !headers.is_null() {
                // SAFETY: on failure the headers stay ours.
                unsafe { sys::rd_kafka_headers_destroy(headers) }
            }
            Err(code)
        }
    }
}

/// Null stays null, and empty stays empty: an empty slice's pointer is not null.
fn parts(bytes: Option<&[u8]>) -> (*const c_void, usize) {
    bytes.map_or((ptr::null(), 0), |b| (b.as_ptr().cast(), b.len()))
}

/// Headers for one record to produce, null for none: untouched ones of this plane are copied as a
/// whole.
fn copy_headers(headers: &Headers<'_>) -> *mut sys::rd_kafka_headers_t {
    if let Headers::Untouched(source) = headers
        && let Some(fetched) = source
            .as_any()
            .and_then(|any| any.downcast_ref::<Fetched>())
    {
        if fetched.headers.is_null() {
            return ptr::null_mut();
        }
        // SAFETY: the source headers are live.
        return unsafe { sys::rd_kafka_headers_copy(fetched.headers) };
    }
    if headers.get(0).is_none() {
        return ptr::null_mut();
    }
    // SAFETY: plain allocation; name and value are copied by rd_kafka_header_add.
    unsafe {
        let list = sys::rd_kafka_headers_new(8);
        let mut index = 0;
        while let Some((name, value)) = headers.get(index) {
            let (value, len) = parts(value);
            sys::rd_kafka_header_add(
                list,
                name.as_ptr().cast(),
                name.len() as isize,
                value,
                len as isize,
            );
            index += 1;
        }
        list
    }
}

/// Throws away what `producer` has queued and in flight; each record still gets its report.
pub fn purge(producer: &impl Handle) {
    // SAFETY: the handle is live.
    unsafe {
        sys::rd_kafka_purge(
            producer.handle(),
            (sys::RD_KAFKA_PURGE_F_QUEUE | sys::RD_KAFKA_PURGE_F_INFLIGHT) as c_int,
        );
    }
}

/// The reason for which `client` is dead, if it is.
pub fn fatal_error(client: &impl Handle) -> Option<(RDKafkaErrorCode, String)> {
    let mut buffer = [0 as c_char; 512];
    // SAFETY: the buffer is as long as we say.
    let code =
        unsafe { sys::rd_kafka_fatal_error(client.handle(), buffer.as_mut_ptr(), buffer.len()) };
    error_code(code).map(|code| (code, text(buffer.as_ptr())))
}

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

/// Sends a commit; its answer arrives on `queue` as [`Said::Committed`] with `id`.
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
        OffsetSpec::Earliest => sys::rd_kafka_OffsetSpec_t::RD_KAFKA_OFFSET_SPEC_EARLIEST,
        _ => sys::rd_kafka_OffsetSpec_t::RD_KAFKA_OFFSET_SPEC_LATEST,
    };
    let mut list = TopicPartitionList::with_capacity(partitions.len());
    for tp in partitions {
        list.add_partition(&tp.topic, tp.partition);
    }
    let queue = Queue::private(client);
    let options = AdminOptions::new(
        client,
        sys::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_LISTOFFSETS,
        timeout,
    );
    // SAFETY: list, options and queue outlive the call, which copies what it needs.
    unsafe {
        let raw = list.ptr();
        for i in 0..partitions.len() {
            (*(*raw).elems.add(i)).offset = which as i64;
        }
        if spec == OffsetSpec::LastStable {
            let error = sys::rd_kafka_AdminOptions_set_isolation_level(
                options.pointer,
                sys::rd_kafka_IsolationLevel_t::RD_KAFKA_ISOLATION_LEVEL_READ_COMMITTED,
            );
            if !error.is_null() {
                sys::rd_kafka_error_destroy(error);
            }
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
unsafe fn read_uuid(id: *const sys::rd_kafka_Uuid_t) -> Option<String> {
    if id.is_null() {
        return None;
    }
    // SAFETY: checked above; the text belongs to the id.
    unsafe {
        let zero = sys::rd_kafka_Uuid_most_significant_bits(id) == 0
            && sys::rd_kafka_Uuid_least_significant_bits(id) == 0;
        (!zero).then(|| text(sys::rd_kafka_Uuid_base64str(id)))
    }
}

/// Waits for the answer of one admin request. librdkafka keeps its own deadline; ours is a little
/// later, so that nothing can hang.
fn answer(queue: &Queue, timeout: Duration) -> Result<Event, (RDKafkaErrorCode, String)> {
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

struct AdminOptions {
    pointer: *mut sys::rd_kafka_AdminOptions_t,
}

impl AdminOptions {
    fn new(client: &impl Handle, op: sys::rd_kafka_admin_op_t, timeout: Duration) -> Self {
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
}

impl Drop for AdminOptions {
    fn drop(&mut self) {
        // SAFETY: owned, freed once.
        unsafe { sys::rd_kafka_AdminOptions_destroy(self.pointer) }
    }
}
