//! The one module with `unsafe`: what librdkafka can do and the `rdkafka` crate does not wrap.
//!
//! Why not the crate's own calls:
//! - its consumer gives errors and end-of-partition events without topic and partition (B054);
//! - iterating a header whose name is not UTF-8 panics there (B092);
//! - its producer looks the topic up by name for every record, and cannot copy headers as a whole;
//! - topic ids, offsets of many partitions at once and commits with a result event are not wrapped,
//!   nor what a cluster says of our rights, and reading without a group.
//!
//! Every pointer here is owned by a type with `Drop`, or lives as long as the event that owns it.
//! The types are `Send` because librdkafka's objects are: the library is thread safe, and an event
//! with its messages may be freed by any thread.
#![allow(unsafe_code)]

mod ask;
mod configs;
mod describe;
mod produce;
mod record;
mod sample;

pub use ask::*;
pub use configs::*;
pub use describe::*;
pub use produce::*;
pub use record::{Deliveries, Delivery, Fetched};
pub use sample::sample;

use crate::record::TopicPartition;
use rdkafka::types::{RDKafka, RDKafkaErrorCode, RDKafkaRespErr};
use rdkafka_sys as sys;
use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int};
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

/// What is said of a record that librdkafka misread.
const MISREAD: &str = "it seems to be in the format of before Kafka 0.11, which librdkafka misreads (its issue 5549); write data_plane: native";

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
        let fetched = Fetched {
            message,
            headers: ptr::null_mut(),
            _event: self,
        };
        let fetched = fetched.with_headers();
        match fetched.is_misread() {
            true => Said::Error {
                code: RDKafkaErrorCode::NotImplemented,
                partition: Some(fetched.topic_partition()),
                detail: format!("offset {}: {MISREAD}", fetched.offset()),
                severity: Severity::Passing,
            },
            false => Said::Fetched(fetched),
        }
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
