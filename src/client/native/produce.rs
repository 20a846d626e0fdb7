//! Enqueueing: what a producer is handed, and what ends it.

use super::record::Fetched;
use super::{Handle, error_code, text};
use crate::record::{Headers, Record};
use rdkafka::types::RDKafkaErrorCode;
use rdkafka_sys as sys;
use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr;

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

/// What of a record is written.
pub struct Parts<'a> {
    /// The key, if it has one.
    pub key: Option<&'a [u8]>,
    /// The value, if it has one.
    pub value: Option<&'a [u8]>,
    /// The headers.
    pub headers: &'a Headers<'a>,
    /// The timestamp in milliseconds, if it has one.
    pub timestamp: Option<i64>,
}

impl<'a> Parts<'a> {
    /// Those of a record.
    pub fn of(record: &'a Record<'a>) -> Self {
        Self {
            key: record.key.as_deref(),
            value: record.value.as_deref(),
            headers: &record.headers,
            timestamp: record.timestamp,
        }
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
    record: &Parts<'_>,
    opaque: u64,
) -> Result<(), RDKafkaErrorCode> {
    let (key, key_len) = parts(record.key);
    let (value, value_len) = parts(record.value);
    let headers = copy_headers(record.headers);
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
    throw_away(
        producer,
        sys::RD_KAFKA_PURGE_F_QUEUE | sys::RD_KAFKA_PURGE_F_INFLIGHT,
    );
}

/// The same, but for what is in flight.
pub fn purge_queued(producer: &impl Handle) {
    throw_away(producer, sys::RD_KAFKA_PURGE_F_QUEUE);
}

fn throw_away(producer: &impl Handle, what: c_int) {
    // Not waiting for the brokers' threads: poll loops call this.
    let flags = what | sys::RD_KAFKA_PURGE_F_NON_BLOCKING;
    // SAFETY: the handle is live.
    unsafe {
        sys::rd_kafka_purge(producer.handle(), flags);
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
