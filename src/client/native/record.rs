//! Fetched records and delivery reports: bytes that stay librdkafka's.

use super::{Event, error_code, text};
use crate::record::{HeaderSource, TopicPartition};
use rdkafka::types::{RDKafkaErrorCode, RDKafkaRespErr};
use rdkafka_sys as sys;
use std::any::Any;
use std::ffi::{CStr, c_void};
use std::ptr;

/// One fetched record: its bytes stay librdkafka's until it is dropped.
pub struct Fetched {
    pub(super) message: *const sys::rd_kafka_message_t,
    pub(super) headers: *mut sys::rd_kafka_headers_t,
    /// Owns `message`.
    pub(super) _event: Event,
}

// SAFETY: the message belongs to the event that we own; the library lets any thread read and free
// it.
unsafe impl Send for Fetched {}
// SAFETY: reading is all that shared references allow, and headers were parsed on creation.
unsafe impl Sync for Fetched {}

impl Fetched {
    /// Headers are parsed once, here: `rd_kafka_message_headers` writes to the message, which would
    /// not be safe behind a shared reference. A record without headers costs one check.
    pub(super) fn with_headers(mut self) -> Self {
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

    /// A number that stands for the topic as long as the client reads it, and the partition: cheaper
    /// than the name.
    pub fn partition_handle(&self) -> (usize, i32) {
        (self.raw().rkt as usize, self.raw().partition)
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

    /// Whether there is nothing in it, not even a leader's epoch. So librdkafka gives records of the formats 0 and 1 since it
    /// speaks the compact encoding to brokers (2.5 to 2.15, its issue 5549): it misreads the length of key and value. Nobody
    /// writes such a record on purpose.
    pub(super) fn is_misread(&self) -> bool {
        let has_bytes = self.key().is_some() || self.value().is_some();
        !has_bytes && self.headers.is_null() && self.leader_epoch() < 0
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

pub(super) fn bytes<'a>(pointer: *mut c_void, len: usize) -> Option<&'a [u8]> {
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
    pub(super) event: Event,
}

impl Deliveries {
    /// Calls `each` with every record's report.
    pub fn for_each(&self, mut each: impl FnMut(Delivery<'_>)) {
        loop {
            // SAFETY: the message belongs to the event, and lives as long.
            let message = unsafe {
                let message = sys::rd_kafka_event_message_next(self.event.pointer);
                match message.as_ref() {
                    Some(message) => message,
                    None => return,
                }
            };
            each(Delivery { message });
        }
    }
}

/// What became of one record.
pub struct Delivery<'a> {
    message: &'a sys::rd_kafka_message_t,
}

impl Delivery<'_> {
    /// The number that was given along with the record.
    pub fn opaque(&self) -> u64 {
        self.message._private as u64
    }

    /// Why it failed, if it did.
    pub fn error(&self) -> Option<RDKafkaErrorCode> {
        error_code(self.message.err)
    }

    /// The partition that it was for.
    pub fn place(&self) -> (&str, i32) {
        // SAFETY: a report has its topic, whose name is NUL-terminated and lives as long as the topic.
        let name = unsafe { CStr::from_ptr(sys::rd_kafka_topic_name(self.message.rkt)) };
        (name.to_str().unwrap_or_default(), self.message.partition)
    }
}
