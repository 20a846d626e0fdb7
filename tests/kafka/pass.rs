//! Whole batches that pass: the target has the same records as the source, whatever its log is made of, and as many of them
//! went undecoded as may.

use crate::support::cluster::{Admin, pair};
use crate::support::flow::Flow;
use crate::support::reader::{Reader, compare};
use crate::support::record::Record;
use crate::support::route::{handlers, route, workers};
use crate::support::transaction::Transaction;
use crate::support::wait::{self, PATIENCE};
use crate::support::workload::{Writer, field, fill};
use crate::wire::{batches, log_of, records};
use kafka_harness::Cluster;
use mirror::config::spec::{DataPlane, OnError, RouteSpec, Until};
use mirror::flow::FlowExit;
use mirror::observe::Counters;
use mirror::wire::cut::RawBatch;
use serde_json::Value;

const EACH: u64 = 2000;
/// What a broker takes by default.
const LIMIT: usize = 1_048_588;
/// What one target topic takes.
const LOW_LIMIT: usize = 20_000;
/// Values of records that are aborted begin with it.
const ABORTED: &[u8] = b"aborted";

/// Topics whose batches differ by a setting of the source's.
const PLAIN: [(&str, &str, &str); 7] = [
    ("pass-none", "compression.type", "uncompressed"),
    ("pass-gzip", "compression.type", "gzip"),
    ("pass-snappy", "compression.type", "snappy"),
    ("pass-lz4", "compression.type", "lz4"),
    ("pass-zstd", "compression.type", "zstd"),
    (
        "pass-append-time",
        "message.timestamp.type",
        "LogAppendTime",
    ),
    ("pass-limit", "compression.type", "uncompressed"),
];
const TRANSACTIONS: &str = "pass-transactions";
const COMPACTED: &str = "pass-compacted";

/// Whether a batch may pass: by the rules as they are written down, not by the code that is tried.
fn may_pass(batch: &RawBatch<'_>, limit: usize) -> bool {
    const CODEC_AND_TRANSACTION: i16 = 0x17;
    let header = batch.header();
    let size = batch.bytes().len();
    let is_small = size < 4096 && header.count < 32;
    let is_aborted = || {
        let values = records(batch).into_iter().filter_map(|record| record.value);
        values.into_iter().any(|value| value.starts_with(ABORTED))
    };
    header.attributes & !CODEC_AND_TRANSACTION == 0
        && header.count == header.last_offset_delta + 1
        && size <= limit
        && !is_small
        && !is_aborted()
}

/// How many records of a source topic may pass.
fn passable(topic: &str, limit: usize) -> u64 {
    let log = log_of(&pair().source, topic).expect("its log");
    let passing = |batch: &&RawBatch<'_>| may_pass(batch, limit);
    let count = |batch: &RawBatch<'_>| u64::from(batch.header().count.unsigned_abs());
    batches(&log).iter().filter(passing).map(count).sum()
}

fn strangers(count: usize, text: &[u8]) -> Vec<(i32, Record)> {
    let record = |n: usize| Record {
        key: Some(n.to_string().into_bytes()),
        value: Some([text, n.to_string().as_bytes()].concat()),
        headers: vec![(b"h".to_vec(), None)],
        timestamp: 1_700_000_000_000 + n as i64,
    };
    (0..count).map(|n| (0, record(n))).collect()
}

fn write_transactions(source: &str) {
    Admin::new(source).create(TRANSACTIONS, 1, &[]);
    let write = |text| Transaction::open(source, TRANSACTIONS, &strangers(500, text));
    write(b"one").commit();
    write(ABORTED).abort();
    write(b"two").commit();
}

/// A log whose older part was compacted, with tombstones that have their horizon, and a part behind it that was not.
fn write_compacted(cluster: &Cluster) {
    let source = cluster.bootstrap();
    let settings = [
        ("cleanup.policy", "compact"),
        ("segment.ms", "100000"),
        ("min.cleanable.dirty.ratio", "0.01"),
    ];
    Admin::new(&source).create(COMPACTED, 1, &settings);
    let field = field(COMPACTED, 1);
    let mut writer = Writer::new(&source);
    for n in 0..900_i64 {
        writer.write(&field, 0, |record| {
            let key = match n {
                // A tombstone; the last word on most keys of the first part; the second part, in another segment.
                400..410 => n - 400,
                0..500 => n % 50,
                _ => n,
            };
            record.key = Some(key.to_string().into_bytes());
            if (400..410).contains(&n) {
                record.value = None;
            }
            record.timestamp = match n {
                0..500 => 1_700_000_000_000,
                _ => 1_700_001_000_000,
            };
        });
        // Segments begin with batches.
        if n == 499 {
            writer.settle(PATIENCE);
        }
    }
    writer.settle(PATIENCE);
    wait::until("the log is compacted", PATIENCE, || {
        let Some(log) = log_of(cluster, COMPACTED) else {
            return false;
        };
        let batches = batches(&log);
        let has_gaps = |batch: &RawBatch<'_>| {
            let header = batch.header();
            header.count <= header.last_offset_delta
        };
        batches.iter().any(has_gaps) && batches.iter().any(|b| b.header().has_delete_horizon())
    });
}

fn natively(name: &str, topics: &str) -> RouteSpec {
    RouteSpec {
        data_plane: DataPlane::Native,
        ..route(name, topics, workers(1))
    }
}

#[test]
fn every_kind_of_log_is_copied_record_by_record_and_what_may_pass_passes() {
    let pair = pair();
    let (source, target) = (pair.source.bootstrap(), pair.target.bootstrap());
    let low = LOW_LIMIT.to_string();
    Admin::new(&target).create("pass-limit", 1, &[("max.message.bytes", &low)]);
    for (topic, key, value) in PLAIN {
        Admin::new(&source).create(topic, 1, &[(key, value)]);
    }
    let fields = PLAIN.map(|(topic, ..)| field(topic, 1));
    fill(&source, &fields, EACH);
    write_transactions(&source);
    write_compacted(&pair.source);

    let mut spec = natively("pass", "pass-.*");
    spec.until = Until::End;
    let flow = Flow::copy(spec);
    assert_eq!(flow.wait_exit(2 * PATIENCE), FlowExit::CaughtUp);

    let topics = PLAIN.map(|(topic, ..)| topic);
    let topics = topics.into_iter().chain([TRANSACTIONS, COMPACTED]);
    let mut there = Reader::new(&source, topics.clone()).keeping();
    let mut here = Reader::new(&target, topics.clone()).keeping();
    there.catch_up();
    here.catch_up();
    let mut passed = 0;
    for topic in topics {
        let limit = match topic {
            "pass-limit" => LOW_LIMIT,
            _ => LIMIT,
        };
        let (all, of_them) = (there.records(topic, 0), passable(topic, limit));
        println!("{topic}: {of_them} of {} records may pass", all.len());
        assert!(all == here.records(topic, 0), "{topic}: not the same");
        let some = !matches!(topic, "pass-append-time" | "pass-limit");
        assert!(of_them > 0 || !some, "{topic}");
        passed += of_them;
    }
    assert_eq!(Counters::get(&flow.counters().passed_records), passed);
    assert_eq!(Counters::get(&flow.counters().refused_batches), 0);
    read_by_java("pass-zstd", EACH);
    read_by_java(TRANSACTIONS, 1000);
}

/// Kafka's own consumer reads so many records of a target topic.
fn read_by_java(topic: &str, records: u64) {
    let lines = crate::java::read(topic, &records.to_string());
    let lines = lines
        .iter()
        .filter_map(|l| serde_json::from_str::<Value>(l).ok());
    let read = lines.filter(|l| l["name"] == "record_data").count();
    assert_eq!(read as u64, records, "{topic}");
}

#[test]
fn a_batch_that_the_target_refuses_is_opened_and_one_record_of_it_meets_on_error() {
    const CULPRIT: u64 = 700;
    let pair = pair();
    let (source, target) = (pair.source.bootstrap(), pair.target.bootstrap());
    let topic = "passed-refused";
    Admin::new(&source).create(topic, 1, &[]);
    // It takes no record without a key.
    Admin::new(&target).create(topic, 1, &[("cleanup.policy", "compact")]);
    let (field, mut writer) = (field(topic, 1), Writer::new(&source));
    for n in 0..EACH {
        writer.write(&field, 0, |record| {
            // Of some records the key says who they are.
            let key = record.key.take();
            let key = key.unwrap_or_else(|| n.to_string().into_bytes());
            record.key = (n != CULPRIT).then_some(key);
        });
    }
    let mut expected = writer.finish();
    let flow = Flow::copy(RouteSpec {
        on_error: OnError::Skip,
        threads: route("passed", "", handlers(2)).threads,
        ..natively("passed-refused", topic)
    });
    flow.wait_settled(EACH, PATIENCE);
    let count = Counters::get;
    let counters = flow.counters();
    assert_eq!(count(&counters.skipped_records), 1);
    assert_eq!(count(&counters.refused_batches), 1);
    assert_eq!(flow.drain(), FlowExit::Drained);
    expected.leave_out((topic.to_owned(), 0), CULPRIT);
    compare(&target, &expected).assert_complete();
}
