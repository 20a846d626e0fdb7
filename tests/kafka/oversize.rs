//! One record that the target does not take, among many: it alone meets `on_error`, its followers come after it.

use crate::support::checker::check;
use crate::support::cluster::{Admin, pair};
use crate::support::expected::Expected;
use crate::support::flow::Flow;
use crate::support::reader::{Reader, read};
use crate::support::record::Record;
use crate::support::route::{Shape, cluster, flow_spec, handlers, route, workers};
use crate::support::wait::PATIENCE;
use crate::support::workload::{Field, Writer, field};
use mirror::config::spec::{OnError, RouteSpec};
use mirror::flow::FlowExit;
use mirror::observe::{Counters, Reason};
use mirror::record::TopicPartition;

const PARTITIONS: i32 = 3;
const EACH: u64 = 4000;
/// What the target topic takes.
const LIMIT: &str = "20000";
/// The culprit's partition; its number is also its offset.
const PARTITION: i32 = 1;
const CULPRIT: u64 = 1500;

/// Bytes that do not get smaller by compression.
fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[0]
    };
    (0..bytes).map(|_| next()).collect()
}

/// A large record in the middle, which says who it is in its key.
fn write(topic: &str, value: &[u8]) -> (Writer, Field) {
    let pair = pair();
    let source = pair.source.bootstrap();
    Admin::new(&source).create(topic, PARTITIONS, &[]);
    Admin::new(&pair.target.bootstrap()).create(topic, PARTITIONS, &[("max.message.bytes", LIMIT)]);
    let field = field(topic, PARTITIONS);
    let mut writer = Writer::new(&source);
    for sequence in 0..EACH {
        for partition in 0..PARTITIONS {
            let culprit = partition == PARTITION && sequence == CULPRIT;
            writer.write(&field, partition, |record: &mut Record| {
                if culprit {
                    record.key = Some(format!("~{topic}/{partition}/{sequence}~").into_bytes());
                    record.value = Some(value.to_vec());
                }
            });
        }
    }
    writer.settle(PATIENCE);
    (writer, field)
}

fn start(topic: &str, shape: Shape, on_error: OnError, dead_letter: Option<&str>) -> Flow {
    let pair = pair();
    let spec = RouteSpec {
        on_error,
        dead_letter: dead_letter.map(str::to_owned),
        ..route(topic, topic, shape)
    };
    let source = cluster("source", &pair.source.bootstrap());
    Flow::start(flow_spec(
        spec,
        source,
        cluster("target", &pair.target.bootstrap()),
    ))
}

fn culprit(topic: &str) -> ((String, i32), u64) {
    ((topic.to_owned(), PARTITION), CULPRIT)
}

fn assert_all_but_the_culprit(topic: &str, mut expected: Expected) {
    let (lane, sequence) = culprit(topic);
    expected.leave_out(lane, sequence);
    let verdict = check(
        &expected,
        &read(&pair().target.bootstrap(), [topic]),
        str::to_owned,
    );
    println!("{topic}: {verdict}");
    verdict.assert_complete();
}

fn skipped(topic: &str, shape: Shape) {
    let (mut writer, _) = write(topic, &noise(100_000));
    let flow = start(topic, shape, OnError::Skip, None);
    let total = writer.expected().total();
    flow.wait_settled(total, PATIENCE);
    assert_eq!(Counters::get(&flow.counters().skipped_records), 1);
    flow.wait_no_lag(PATIENCE);
    assert_eq!(flow.drain(), FlowExit::Drained);
    assert_all_but_the_culprit(topic, writer.finish());
}

#[test]
fn skip_leaves_out_one_record() {
    skipped("large-skip", workers(1));
}

#[test]
fn skip_leaves_out_one_record_with_handler_threads() {
    skipped("large-skip-h3", handlers(3));
}

#[test]
fn a_dead_letter_keeps_the_record() {
    let topic = "large-letter";
    let value = noise(100_000);
    let (mut writer, _) = write(topic, &value);
    let flow = start(
        topic,
        workers(1),
        OnError::DeadLetter,
        Some("large-rejected"),
    );
    let total = writer.expected().total();
    flow.wait_settled(total, PATIENCE);
    assert_eq!(Counters::get(&flow.counters().dead_lettered_records), 1);
    assert_eq!(flow.drain(), FlowExit::Drained);
    assert_all_but_the_culprit(topic, writer.finish());

    let mut letters = Reader::new(&pair().target.bootstrap(), ["large-rejected"]).keeping();
    letters.catch_up();
    let letter = letters.records("large-rejected", 0);
    assert_eq!(letter.len(), 1, "{letter:?}");
    assert_eq!(letter[0].value.as_deref(), Some(&value[..]));
    assert_eq!(
        letter[0].key,
        Some(format!("~{topic}/{PARTITION}/{CULPRIT}~").into_bytes())
    );
    let header = |name: &str| {
        let found = letter[0].headers.iter().find(|(n, _)| n == name.as_bytes());
        found
            .and_then(|(_, v)| v.clone())
            .map(|v| String::from_utf8_lossy(&v).into_owned())
    };
    let names: Vec<_> = letter[0]
        .headers
        .iter()
        .map(|(n, _)| String::from_utf8_lossy(n))
        .collect();
    println!("{topic}: headers of the letter {names:?}");
    let offset = CULPRIT.to_string();
    assert!(
        letter[0]
            .headers
            .iter()
            .any(|(n, v)| n.starts_with(b"mirror.") && v.as_deref() == Some(offset.as_bytes()))
    );
    assert!(
        names
            .iter()
            .any(|n| n.starts_with("mirror.") && header(n).as_deref() == Some("record_too_large"))
    );
}

#[test]
fn stop_holds_the_partition_until_the_record_fits() {
    let topic = "large-stop";
    let (mut writer, _) = write(topic, &noise(100_000));
    let flow = start(topic, workers(2), OnError::Stop, None);
    let held = TopicPartition::new(topic, PARTITION);
    let view = flow.wait_reason(&held, "poison_record", PATIENCE);
    assert!(
        matches!(&view.condition.reason, Some(Reason::PoisonRecord { offset, failure, .. })
            if *offset == CULPRIT as i64 && failure == "record_too_large"),
        "{view:?}"
    );
    // The others go on to their ends.
    flow.wait_settled((PARTITIONS as u64 - 1) * EACH + CULPRIT, PATIENCE);
    let mut expected = writer.expected().clone();
    let lane = (topic.to_owned(), PARTITION);
    (CULPRIT..EACH).for_each(|n| expected.leave_out(lane.clone(), n));
    let verdict = check(
        &expected,
        &read(&pair().target.bootstrap(), [topic]),
        str::to_owned,
    );
    println!("{topic}, held: {verdict}");
    verdict.assert_complete();

    Admin::new(&pair().target.bootstrap()).set(topic, "max.message.bytes", "1000000");
    let total = writer.expected().total();
    flow.wait_settled(total, PATIENCE);
    assert_eq!(flow.drain(), FlowExit::Drained);
    let verdict = check(
        &writer.finish(),
        &read(&pair().target.bootstrap(), [topic]),
        str::to_owned,
    );
    println!("{topic}: {verdict}");
    verdict.assert_complete();
}

#[test]
fn a_record_that_only_looks_too_large_arrives() {
    let topic = "large-soft";
    let (mut writer, _) = write(topic, &vec![b'x'; 100_000]);
    let flow = start(topic, workers(1), OnError::Skip, None);
    let total = writer.expected().total();
    flow.wait_settled(total, PATIENCE);
    assert_eq!(flow.drain(), FlowExit::Drained);
    let verdict = check(
        &writer.finish(),
        &read(&pair().target.bootstrap(), [topic]),
        str::to_owned,
    );
    println!("{topic}: {verdict}");
    verdict.assert_complete();
}
