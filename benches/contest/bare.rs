//! The bare loop: fetch, enqueue, count acknowledgements. No tracking, no commits: what the client
//! itself costs, with the same tuned settings.
#![allow(unsafe_code)]

use crate::job::Job;
use rdkafka_sys as sys;
use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

static REPORTS: AtomicU64 = AtomicU64::new(0);
static FAILURES: AtomicU64 = AtomicU64::new(0);

unsafe extern "C" fn report(
    _: *mut sys::rd_kafka_t,
    message: *const sys::rd_kafka_message_t,
    _: *mut c_void,
) {
    // SAFETY: librdkafka hands a live message to its callback.
    let failed = unsafe { (*message).err } != sys::rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_NO_ERROR;
    REPORTS.fetch_add(1, Ordering::Relaxed);
    FAILURES.fetch_add(u64::from(failed), Ordering::Relaxed);
}

fn settings(pairs: &[(&str, &str)]) -> *mut sys::rd_kafka_conf_t {
    let mut words = [0 as c_char; 256];
    // SAFETY: strings live through each call; the buffer is as long as we say.
    unsafe {
        let conf = sys::rd_kafka_conf_new();
        for (key, value) in pairs {
            let (key, value) = (
                CString::new(*key).expect("key"),
                CString::new(*value).expect("value"),
            );
            let set = sys::rd_kafka_conf_set(
                conf,
                key.as_ptr(),
                value.as_ptr(),
                words.as_mut_ptr(),
                words.len(),
            );
            assert_eq!(
                set,
                sys::rd_kafka_conf_res_t::RD_KAFKA_CONF_OK,
                "{:?}",
                CStr::from_ptr(words.as_ptr())
            );
        }
        conf
    }
}

/// Copies, in this process.
pub fn run(job: &Job) {
    let group = format!("bare-{}", std::process::id());
    let consumer_settings = settings(&[
        ("bootstrap.servers", &job.source),
        ("group.id", &group),
        ("enable.auto.commit", "false"),
        ("auto.offset.reset", "earliest"),
        ("check.crcs", "true"),
        ("isolation.level", "read_committed"),
        ("fetch.queue.backoff.ms", "20"),
        ("queued.min.messages", "1000000"),
        ("queued.max.messages.kbytes", "65536"),
    ]);
    let producer_settings = settings(&[
        ("bootstrap.servers", &job.target),
        ("enable.idempotence", "true"),
        ("acks", "all"),
        ("message.timeout.ms", "0"),
        ("linger.ms", &job.linger_ms.to_string()),
        ("batch.size", "1000000"),
        ("batch.num.messages", "100000"),
        ("compression.type", &job.codec),
        ("queue.buffering.max.messages", "500000"),
        ("queue.buffering.max.kbytes", "131072"),
    ]);
    // SAFETY: handles are created, used by this thread and left to the end of the process.
    unsafe {
        sys::rd_kafka_conf_set_dr_msg_cb(producer_settings, Some(report));
        let consumer = client(sys::rd_kafka_type_t::RD_KAFKA_CONSUMER, consumer_settings);
        let producer = client(sys::rd_kafka_type_t::RD_KAFKA_PRODUCER, producer_settings);
        sys::rd_kafka_poll_set_consumer(consumer);
        let list = sys::rd_kafka_topic_partition_list_new(1);
        for topic in &job.topics {
            let name = CString::new(topic.as_str()).expect("name");
            sys::rd_kafka_topic_partition_list_add(list, name.as_ptr(), -1);
        }
        sys::rd_kafka_subscribe(consumer, list);
        // It waits for a full batch: a fifth of what lingers anyway.
        let wait_ms = c_int::try_from(job.linger_ms / 5).unwrap_or(c_int::MAX);
        copy(consumer, producer, job.records, wait_ms);
        sys::rd_kafka_flush(producer, 120_000);
    }
    assert_eq!(
        (
            REPORTS.load(Ordering::Relaxed),
            FAILURES.load(Ordering::Relaxed)
        ),
        (job.records, 0)
    );
}

/// # Safety
/// The settings are used here and nowhere else.
unsafe fn client(
    kind: sys::rd_kafka_type_t,
    settings: *mut sys::rd_kafka_conf_t,
) -> *mut sys::rd_kafka_t {
    let mut words = [0 as c_char; 256];
    // SAFETY: the buffer is as long as we say; what is returned lives to the end of the process.
    unsafe {
        let client = sys::rd_kafka_new(kind, settings, words.as_mut_ptr(), words.len());
        assert!(!client.is_null(), "{:?}", CStr::from_ptr(words.as_ptr()));
        client
    }
}

/// # Safety
/// Both are live.
unsafe fn copy(
    consumer: *mut sys::rd_kafka_t,
    producer: *mut sys::rd_kafka_t,
    want: u64,
    wait_ms: c_int,
) {
    let mut seen = 0;
    let mut batch = vec![ptr::null_mut(); 4096];
    let mut targets = HashMap::new();
    // SAFETY: messages are read, copied by the producer, and destroyed once.
    unsafe {
        let queue = sys::rd_kafka_queue_get_consumer(consumer);
        while seen < want {
            let count =
                sys::rd_kafka_consume_batch_queue(queue, wait_ms, batch.as_mut_ptr(), batch.len());
            for message in &batch[..usize::try_from(count).unwrap_or(0)] {
                if (**message).err == sys::rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_NO_ERROR {
                    let target = *targets
                        .entry((**message).rkt)
                        .or_insert_with_key(|source| same_name(producer, *source));
                    produce(producer, target, *message);
                    seen += 1;
                }
                sys::rd_kafka_message_destroy(*message);
            }
            sys::rd_kafka_poll(producer, 0);
        }
    }
}

/// # Safety
/// Both are live.
unsafe fn same_name(
    producer: *mut sys::rd_kafka_t,
    source: *mut sys::rd_kafka_topic_t,
) -> *mut sys::rd_kafka_topic_t {
    // SAFETY: the name lives as long as the topic.
    unsafe {
        let name = sys::rd_kafka_topic_name(source);
        sys::rd_kafka_topic_new(producer, name, ptr::null_mut())
    }
}

/// # Safety
/// All three are live.
unsafe fn produce(
    producer: *mut sys::rd_kafka_t,
    topic: *mut sys::rd_kafka_topic_t,
    message: *mut sys::rd_kafka_message_t,
) {
    use sys::rd_kafka_vtype_t as tag;
    let mut kind = sys::rd_kafka_timestamp_type_t::RD_KAFKA_TIMESTAMP_NOT_AVAILABLE;
    let mut headers = ptr::null_mut();
    // SAFETY: tags and types follow rd_kafka_producev's contract; it takes the headers with the record, or leaves both.
    unsafe {
        let at = sys::rd_kafka_message_timestamp(message, &mut kind);
        sys::rd_kafka_message_detach_headers(message, &mut headers);
        let m = &*message;
        while sys::rd_kafka_producev(
            producer,
            tag::RD_KAFKA_VTYPE_RKT,
            topic,
            tag::RD_KAFKA_VTYPE_PARTITION,
            m.partition,
            tag::RD_KAFKA_VTYPE_MSGFLAGS,
            sys::RD_KAFKA_MSG_F_COPY as c_int,
            tag::RD_KAFKA_VTYPE_VALUE,
            m.payload,
            m.len,
            tag::RD_KAFKA_VTYPE_KEY,
            m.key,
            m.key_len,
            tag::RD_KAFKA_VTYPE_TIMESTAMP,
            at,
            tag::RD_KAFKA_VTYPE_HEADERS,
            headers,
            tag::RD_KAFKA_VTYPE_END,
        ) != sys::rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_NO_ERROR
        {
            sys::rd_kafka_poll(producer, 10);
        }
    }
}
