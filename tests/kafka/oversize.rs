//! One record that the target does not take, among many: it alone meets `on_error`, its followers come after it.

use crate::support::cluster::{Admin, pair};
use crate::support::expected::Lane;
use crate::support::flow::Flow;
use crate::support::reader::{Reader, compare};
use crate::support::record::Record;
use crate::support::route::{Shape, handlers, route, shapes, workers};
use crate::support::wait::PATIENCE;
use crate::support::workload::{Writer, field, noise};
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

/// A large record in the middle, which says who it is in its key.
fn write(topic: &str, value: &[u8]) -> Writer {
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
    writer
}

fn start(topic: &str, shape: Shape, on_error: OnError) -> Flow {
    Flow::copy(RouteSpec {
        on_error,
        dead_letter: (on_error == OnError::DeadLetter).then(|| format!("{topic}-rejected")),
        ..route(topic, topic, shape)
    })
}

/// Lets everything be settled, and compares it with what there should be.
fn finish(writer: Writer, flow: Flow, without: &[(Lane, u64)]) {
    let mut expected = writer.finish();
    flow.wait_settled(expected.total(), PATIENCE);
    flow.wait_no_lag(PATIENCE);
    assert_eq!(flow.drain(), FlowExit::Drained);
    for (lane, sequence) in without {
        expected.leave_out(lane.clone(), *sequence);
    }
    compare(&pair().target.bootstrap(), &expected).assert_complete();
}

fn culprit(topic: &str) -> (Lane, u64) {
    ((topic.to_owned(), PARTITION), CULPRIT)
}

#[test]
fn skip_leaves_out_one_record() {
    for shape in shapes(&[workers(1), handlers(3)]) {
        let topic = format!("large-skip-{shape}");
        let mut writer = write(&topic, &noise(100_000));
        let flow = start(&topic, shape, OnError::Skip);
        flow.wait_settled(writer.expected().total(), PATIENCE);
        assert_eq!(Counters::get(&flow.counters().skipped_records), 1);
        finish(writer, flow, &[culprit(&topic)]);
    }
}

#[test]
fn a_dead_letter_keeps_the_record() {
    for shape in shapes(&[workers(1)]) {
        let topic = format!("large-letter-{shape}");
        let value = noise(100_000);
        let mut writer = write(&topic, &value);
        let flow = start(&topic, shape, OnError::DeadLetter);
        flow.wait_settled(writer.expected().total(), PATIENCE);
        assert_eq!(Counters::get(&flow.counters().dead_lettered_records), 1);
        finish(writer, flow, &[culprit(&topic)]);
        assert_letter(&topic, &value);
    }
}

/// The one letter has the original's bytes, its place and the cause.
fn assert_letter(topic: &str, value: &[u8]) {
    let rejected = format!("{topic}-rejected");
    let mut letters = Reader::new(&pair().target.bootstrap(), [&rejected]).keeping();
    letters.catch_up();
    let [letter] = letters.records(&rejected, 0) else {
        panic!("one letter: {:?}", letters.records(&rejected, 0));
    };
    assert_eq!(letter.value.as_deref(), Some(value));
    let key = format!("~{topic}/{PARTITION}/{CULPRIT}~");
    assert_eq!(letter.key.as_deref(), Some(key.as_bytes()));
    let says = |text: &str| {
        letter
            .headers
            .iter()
            .any(|(n, v)| n.starts_with(b"mirror.") && v.as_deref() == Some(text.as_bytes()))
    };
    for text in [&CULPRIT.to_string(), "record_too_large"] {
        assert!(says(text), "no header says {text}: {:?}", letter.headers);
    }
}

#[test]
fn stop_holds_the_partition_until_the_record_fits() {
    for shape in shapes(&[workers(2)]) {
        let topic = format!("large-stop-{shape}");
        let mut writer = write(&topic, &noise(100_000));
        let flow = start(&topic, shape, OnError::Stop);
        let held = TopicPartition::new(topic.as_str(), PARTITION);
        let view = flow.wait_reason(&held, "poison_record", PATIENCE);
        assert!(
            matches!(&view.condition.reason, Some(Reason::PoisonRecord { offset, failure, .. })
                if *offset == CULPRIT as i64 && failure == "record_too_large"),
            "{view:?}"
        );
        // The others go on to their ends.
        flow.wait_settled((PARTITIONS as u64 - 1) * EACH + CULPRIT, PATIENCE);
        let mut expected = writer.expected().clone();
        let (lane, _) = culprit(&topic);
        (CULPRIT..EACH).for_each(|n| expected.leave_out(lane.clone(), n));
        let target = pair().target.bootstrap();
        compare(&target, &expected).assert_complete();

        Admin::new(&target).set(&topic, "max.message.bytes", "1000000");
        finish(writer, flow, &[]);
    }
}

#[test]
fn a_record_that_only_looks_too_large_arrives() {
    for shape in shapes(&[workers(1)]) {
        let topic = format!("large-soft-{shape}");
        let writer = write(&topic, &vec![b'x'; 100_000]);
        let flow = start(&topic, shape, OnError::Skip);
        finish(writer, flow, &[]);
    }
}
