//! Records to and from librdkafka, byte for byte.
//!
//! The crate cannot write or read a header name that is not UTF-8. The engine has calls of its own for that; these are
//! others, so that one mistake in both directions cannot hide.
#![allow(unsafe_code)]

use super::record::{Header, Record};
use rdkafka::types::{RDKafka, RDKafkaErrorCode, RDKafkaRespErr};
use rdkafka_sys as sys;
use std::ffi::{CStr, CString, c_int, c_void};
use std::ptr;
use std::time::Duration;

/// Enqueues one record; its report comes to the crate's producer with an empty opaque.
pub fn produce(
    client: *mut RDKafka,
    topic: &CStr,
    partition: i32,
    record: &Record,
) -> Result<(), RDKafkaErrorCode> {
    let (key, key_len) = parts(record.key.as_deref());
    let (value, value_len) = parts(record.value.as_deref());
    let headers = new_headers(&record.headers);
    // SAFETY: tags and argument types follow rd_kafka_producev's contract; all bytes are copied by the call.
    let err = unsafe {
        use sys::rd_kafka_vtype_t as tag;
        sys::rd_kafka_producev(
            client,
            tag::RD_KAFKA_VTYPE_TOPIC,
            topic.as_ptr(),
            tag::RD_KAFKA_VTYPE_PARTITION,
            partition,
            tag::RD_KAFKA_VTYPE_MSGFLAGS,
            sys::RD_KAFKA_MSG_F_COPY as c_int,
            tag::RD_KAFKA_VTYPE_KEY,
            key,
            key_len,
            tag::RD_KAFKA_VTYPE_VALUE,
            value,
            value_len,
            tag::RD_KAFKA_VTYPE_TIMESTAMP,
            record.timestamp,
            tag::RD_KAFKA_VTYPE_HEADERS,
            headers,
            tag::RD_KAFKA_VTYPE_END,
        )
    };
    if err == RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR {
        return Ok(());
    }
    // SAFETY: on failure the headers stay ours.
    unsafe { sys::rd_kafka_headers_destroy(headers) };
    Err(err.into())
}

fn parts(bytes: Option<&[u8]>) -> (*const c_void, usize) {
    bytes.map_or((ptr::null(), 0), |b| (b.as_ptr().cast(), b.len()))
}

fn new_headers(headers: &[Header]) -> *mut sys::rd_kafka_headers_t {
    // SAFETY: names and values outlive the calls, which copy them.
    unsafe {
        let list = sys::rd_kafka_headers_new(headers.len());
        for (name, value) in headers {
            let (value, len) = parts(value.as_deref());
            let name_len = isize::try_from(name.len()).unwrap_or(0);
            sys::rd_kafka_header_add(
                list,
                name.as_ptr().cast(),
                name_len,
                value,
                isize::try_from(len).unwrap_or(0),
            );
        }
        list
    }
}

/// What a consumer met.
pub enum Met {
    /// A record.
    Record {
        topic: String,
        partition: i32,
        offset: i64,
        record: Record,
    },
    /// The end of a partition, and the offset there.
    End {
        topic: String,
        partition: i32,
        offset: i64,
    },
    /// Something to show when a read does not come to its end.
    Trouble(String),
}

/// The consumer's queue of events.
pub struct Events(*mut sys::rd_kafka_queue_t);

impl Events {
    /// # Panics
    /// If the client is no consumer.
    pub fn of(client: *mut RDKafka) -> Self {
        // SAFETY: the handle is live; a null queue is checked.
        let queue = unsafe { sys::rd_kafka_queue_get_consumer(client) };
        assert!(!queue.is_null(), "not a consumer");
        Self(queue)
    }

    /// Passes on what there is.
    pub fn poll(&self, timeout: Duration, mut each: impl FnMut(Met)) {
        // SAFETY: queue and event are live until destroyed below; messages live as long as the event.
        unsafe {
            let event =
                sys::rd_kafka_queue_poll(self.0, c_int::try_from(timeout.as_millis()).unwrap_or(0));
            if event.is_null() {
                return;
            }
            match sys::rd_kafka_event_type(event) {
                sys::RD_KAFKA_EVENT_FETCH => loop {
                    let message = sys::rd_kafka_event_message_next(event);
                    if message.is_null() {
                        break;
                    }
                    each(read(message));
                },
                sys::RD_KAFKA_EVENT_ERROR => each(error(event)),
                _ => {}
            }
            sys::rd_kafka_event_destroy(event);
        }
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        // SAFETY: we own one reference.
        unsafe { sys::rd_kafka_queue_destroy(self.0) }
    }
}

/// # Safety
/// `message` is live.
unsafe fn read(message: *const sys::rd_kafka_message_t) -> Met {
    // SAFETY: as the caller says; lengths belong to their pointers.
    unsafe {
        let raw = &*message;
        let mut kind = sys::rd_kafka_timestamp_type_t::RD_KAFKA_TIMESTAMP_NOT_AVAILABLE;
        let timestamp = sys::rd_kafka_message_timestamp(message, &mut kind);
        Met::Record {
            topic: text(sys::rd_kafka_topic_name(raw.rkt)),
            partition: raw.partition,
            offset: raw.offset,
            record: Record {
                key: owned(raw.key, raw.key_len),
                value: owned(raw.payload, raw.len),
                headers: read_headers(message),
                timestamp,
            },
        }
    }
}

/// # Safety
/// `message` is live.
unsafe fn read_headers(message: *const sys::rd_kafka_message_t) -> Vec<Header> {
    let mut list = Vec::new();
    let mut headers = ptr::null_mut();
    // SAFETY: as the caller says; headers belong to the message.
    unsafe {
        if sys::rd_kafka_message_headers(message, &mut headers)
            != RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR
        {
            return list;
        }
        loop {
            let (mut name, mut value, mut len) = (ptr::null(), ptr::null(), 0);
            let err =
                sys::rd_kafka_header_get_all(headers, list.len(), &mut name, &mut value, &mut len);
            if err != RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR {
                return list;
            }
            list.push((
                CStr::from_ptr(name).to_bytes().to_vec(),
                owned(value.cast_mut(), len),
            ));
        }
    }
}

/// # Safety
/// `event` is a live error event.
unsafe fn error(event: *mut sys::rd_kafka_event_t) -> Met {
    // SAFETY: as the caller says; the partition is a copy that is freed here.
    unsafe {
        let code: RDKafkaErrorCode = sys::rd_kafka_event_error(event).into();
        let words = text(sys::rd_kafka_event_error_string(event));
        let raw = sys::rd_kafka_event_topic_partition(event);
        if raw.is_null() {
            return Met::Trouble(words);
        }
        let (topic, partition, offset) = (text((*raw).topic), (*raw).partition, (*raw).offset);
        sys::rd_kafka_topic_partition_destroy(raw);
        match code {
            RDKafkaErrorCode::PartitionEOF => Met::End {
                topic,
                partition,
                offset,
            },
            _ => Met::Trouble(format!("{topic}[{partition}]: {words}")),
        }
    }
}

/// # Safety
/// `bytes` is null or points to `len` bytes.
unsafe fn owned(bytes: *mut c_void, len: usize) -> Option<Vec<u8>> {
    // SAFETY: as the caller says.
    (!bytes.is_null()).then(|| unsafe { std::slice::from_raw_parts(bytes.cast(), len) }.to_vec())
}

/// # Safety
/// `pointer` is a live NUL-terminated text.
unsafe fn text(pointer: *const std::ffi::c_char) -> String {
    // SAFETY: as the caller says.
    unsafe { CStr::from_ptr(pointer) }
        .to_string_lossy()
        .into_owned()
}

/// A topic's name as librdkafka wants it.
pub fn name(topic: &str) -> CString {
    CString::new(topic).expect("a topic's name has no NUL")
}
