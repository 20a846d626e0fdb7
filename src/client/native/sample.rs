//! A look at records without a group: nothing is joined, nothing is committed.

use super::{Fetched, Handle, Queue, Said};
use crate::record::TopicPartition;
use rdkafka_sys as sys;
use std::collections::HashMap;
use std::ffi::CString;
use std::ptr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Topics that are being read without a group; reading ends when it is dropped.
struct Taps {
    topics: HashMap<Arc<str>, *mut sys::rd_kafka_topic_t>,
    started: Vec<(*mut sys::rd_kafka_topic_t, i32)>,
}

impl Drop for Taps {
    fn drop(&mut self) {
        // SAFETY: each partition was started once, each topic handle is ours.
        unsafe {
            for (topic, partition) in &self.started {
                sys::rd_kafka_consume_stop(*topic, *partition);
            }
            for topic in self.topics.values() {
                sys::rd_kafka_topic_destroy(*topic);
            }
        }
    }
}

/// Reads up to `records` records of each of `places`, from the offset given, and shows them to
/// `each`. Ends when all have shown theirs, or after `timeout`.
///
/// `client` is a consumer without a group, whose reset policy is `error`.
pub fn sample(
    client: &impl Handle,
    places: &[(TopicPartition, i64)],
    records: usize,
    timeout: Duration,
    mut each: impl FnMut(&TopicPartition, &Fetched),
) {
    let deadline = Instant::now() + timeout;
    let queue = Queue::private(client);
    let mut taps = Taps {
        topics: HashMap::new(),
        started: Vec::new(),
    };
    let mut open: HashMap<TopicPartition, usize> = HashMap::new();
    for (tp, offset) in places {
        if start(client, &mut taps, tp, *offset, &queue) {
            open.insert(tp.clone(), 0);
        }
    }
    while !open.is_empty() {
        let left = deadline.saturating_duration_since(Instant::now());
        let Some(event) = queue.poll(left) else {
            break;
        };
        match event.read() {
            Said::Fetched(record) => {
                let tp = record.topic_partition();
                if let Some(seen) = open.get_mut(&tp) {
                    each(&tp, &record);
                    *seen += 1;
                    if *seen >= records {
                        open.remove(&tp);
                    }
                }
            }
            Said::EndOfPartition(tp, _) => drop(open.remove(&tp)),
            Said::Error {
                partition: Some(tp),
                ..
            } => drop(open.remove(&tp)),
            _ => {}
        }
    }
}

fn start(
    client: &impl Handle,
    taps: &mut Taps,
    tp: &TopicPartition,
    offset: i64,
    queue: &Queue,
) -> bool {
    let Ok(name) = CString::new(&*tp.topic) else {
        return false;
    };
    // SAFETY: name, handle and queue are live; a null topic is not kept.
    unsafe {
        let topic = match taps.topics.get(&tp.topic) {
            Some(topic) => *topic,
            None => {
                let topic =
                    sys::rd_kafka_topic_new(client.handle(), name.as_ptr(), ptr::null_mut());
                if topic.is_null() {
                    return false;
                }
                taps.topics.insert(tp.topic.clone(), topic);
                topic
            }
        };
        let started =
            sys::rd_kafka_consume_start_queue(topic, tp.partition, offset, queue.pointer) == 0;
        if started {
            taps.started.push((topic, tp.partition));
        }
        started
    }
}
