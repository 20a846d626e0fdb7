//! The bare loop: fetch, enqueue, count acknowledgements. No tracking, no commits: what the client
//! itself costs, with the same tuned settings.
#![allow(unsafe_code)]

use rdkafka_sys as sys;
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

/// Arguments: source, target, source topic, target topic, records, codec.
pub fn run(args: &[String]) {
    let [source, target, from, to, records, codec] = args else {
        panic!("six arguments");
    };
    let want: u64 = records.parse().expect("a number");
    let group = format!("bare-{}", std::process::id());
    let consumer_settings = settings(&[
        ("bootstrap.servers", source),
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
        ("bootstrap.servers", target),
        ("enable.idempotence", "true"),
        ("acks", "all"),
        ("message.timeout.ms", "0"),
        ("linger.ms", "50"),
        ("batch.size", "1000000"),
        ("batch.num.messages", "100000"),
        ("compression.type", codec),
        ("queue.buffering.max.messages", "500000"),
        ("queue.buffering.max.kbytes", "131072"),
    ]);
    let mut words = [0 as c_char; 256];
    // SAFETY: handles are created, used by this thread and left to the end of the process.
    unsafe {
        sys::rd_kafka_conf_set_dr_msg_cb(producer_settings, Some(report));
        let consumer = sys::rd_kafka_new(
            sys::rd_kafka_type_t::RD_KAFKA_CONSUMER,
            consumer_settings,
            words.as_mut_ptr(),
            words.len(),
        );
        let producer = sys::rd_kafka_new(
            sys::rd_kafka_type_t::RD_KAFKA_PRODUCER,
            producer_settings,
            words.as_mut_ptr(),
            words.len(),
        );
        assert!(!consumer.is_null() && !producer.is_null());
        sys::rd_kafka_poll_set_consumer(consumer);
        let (from, to) = (
            CString::new(from.as_str()).expect("name"),
            CString::new(to.as_str()).expect("name"),
        );
        let list = sys::rd_kafka_topic_partition_list_new(1);
        sys::rd_kafka_topic_partition_list_add(list, from.as_ptr(), -1);
        sys::rd_kafka_subscribe(consumer, list);
        let topic = sys::rd_kafka_topic_new(producer, to.as_ptr(), ptr::null_mut());
        copy(consumer, producer, topic, want);
        sys::rd_kafka_flush(producer, 120_000);
    }
    assert_eq!(
        (
            REPORTS.load(Ordering::Relaxed),
            FAILURES.load(Ordering::Relaxed)
        ),
        (want, 0)
    );
}

/// # Safety
/// All three are live.
unsafe fn copy(
    consumer: *mut sys::rd_kafka_t,
    producer: *mut sys::rd_kafka_t,
    topic: *mut sys::rd_kafka_topic_t,
    want: u64,
) {
    let mut seen = 0;
    let mut batch = vec![ptr::null_mut(); 4096];
    // SAFETY: messages are read, copied by the producer, and destroyed once.
    unsafe {
        let queue = sys::rd_kafka_queue_get_consumer(consumer);
        while seen < want {
            let count =
                sys::rd_kafka_consume_batch_queue(queue, 100, batch.as_mut_ptr(), batch.len());
            for message in &batch[..usize::try_from(count).unwrap_or(0)] {
                if (**message).err == sys::rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_NO_ERROR {
                    produce(producer, topic, *message);
                    seen += 1;
                }
                sys::rd_kafka_message_destroy(*message);
            }
            sys::rd_kafka_poll(producer, 0);
        }
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
    // SAFETY: tags and types follow rd_kafka_producev's contract.
    unsafe {
        let at = sys::rd_kafka_message_timestamp(message, &mut kind);
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
            tag::RD_KAFKA_VTYPE_END,
        ) != sys::rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_NO_ERROR
        {
            sys::rd_kafka_poll(producer, 10);
        }
    }
}
