//! The target is away or refuses for a while, under load and with `on_error: skip`: nothing is skipped, the order holds.

use crate::support::checker::{Sight, check};
use crate::support::cluster::{Admin, pair};
use crate::support::expected::Expected;
use crate::support::flow::Flow;
use crate::support::reader::{compare, read};
use crate::support::route::{Shape, cluster, flow_spec, handlers, login, route, shapes, workers};
use crate::support::wait::{self, PATIENCE, count};
use crate::support::workload::{Load, field};
use mirror::config::spec::{ClusterSpec, CreationMode, OnError, RouteSpec, SaslMechanism};
use mirror::flow::FlowExit;
use mirror::observe::Counters;
use mirror::record::TopicPartition;
use std::time::{Duration, Instant};

const PARTITIONS: i32 = 6;
const RATE: u64 = 3000;

/// How long the target is away once everybody has noticed.
fn outage() -> Duration {
    Duration::from_secs(count("MIRROR_TEST_OUTAGE", 8))
}

/// A topic under load, and a flow that copies it to `target`.
fn start(topic: &str, shape: Shape, mode: CreationMode, target: ClusterSpec) -> (Load, Flow) {
    let source = pair().source.bootstrap();
    Admin::new(&source).create(topic, PARTITIONS, &[]);
    let mut spec = RouteSpec {
        on_error: OnError::Skip,
        ..route(topic, topic, shape)
    };
    spec.topic_creation.mode = mode;
    let load = Load::start(&source, &[field(topic, PARTITIONS)], RATE);
    let flow = Flow::start(flow_spec(spec, cluster("source", &source), target));
    flow.wait_settled(RATE, PATIENCE);
    (load, flow)
}

/// The shared target, where everything is allowed.
fn open_target() -> ClusterSpec {
    cluster("target", &pair().target.bootstrap())
}

fn partitions(topic: &str) -> Vec<TopicPartition> {
    (0..PARTITIONS)
        .map(|p| TopicPartition::new(topic, p))
        .collect()
}

/// The outage goes on while the load does.
fn let_time_pass(load: &Load) {
    let (until, before) = (Instant::now() + outage(), load.written());
    wait::until("the outage goes on under load", outage() + PATIENCE, || {
        Instant::now() >= until && load.written() > before
    });
}

fn end(topic: &str, load: Load, flow: Flow) -> Expected {
    let expected = load.stop();
    flow.wait_settled(expected.total(), PATIENCE);
    flow.wait_no_lag(PATIENCE);
    let c = flow.counters();
    println!(
        "{topic}: delivered {}, skipped {}, failed {}, rewinds {}, discarded {}",
        Counters::get(&c.delivered_records),
        Counters::get(&c.skipped_records),
        Counters::get(&c.failed_records),
        Counters::get(&c.rewinds),
        Counters::get(&c.discarded_records)
    );
    assert_eq!(
        Counters::get(&c.skipped_records),
        0,
        "an outage is no property of a record"
    );
    assert_eq!(flow.drain(), FlowExit::Drained);
    expected
}

fn deleted_and_made_by_the_test(topic: &str, shape: Shape) {
    let pair = pair();
    let hub = Admin::new(&pair.target.bootstrap());
    hub.create(topic, PARTITIONS, &[]);
    let (load, flow) = start(topic, shape, CreationMode::Disabled, open_target());
    let in_flight = flow.wait_in_flight();
    hub.delete(topic);
    println!("{topic}: target topic deleted with {in_flight} in flight");
    let acked: Vec<(TopicPartition, i64)> = partitions(topic)
        .into_iter()
        .map(|tp| {
            let view = flow.wait_reason(&tp, "target_topic_missing", PATIENCE);
            (tp, view.watermark.expect("a watermark"))
        })
        .collect();
    let_time_pass(&load);
    hub.create(topic, PARTITIONS, &[]);
    let mut expected = end(topic, load, flow);
    // What was acknowledged before went with the topic; everything after it has to be there.
    for (tp, watermark) in &acked {
        (0..*watermark)
            .for_each(|n| expected.leave_out((topic.to_owned(), tp.partition), n as u64));
    }
    compare(&pair.target.bootstrap(), &expected).assert_complete();
}

#[test]
fn the_target_topic_is_deleted_and_made_by_somebody() {
    for shape in shapes(&[workers(1), handlers(3)]) {
        deleted_and_made_by_the_test(&format!("away-{shape}"), shape);
    }
}

fn deleted_and_made_by_mirror(topic: &str, shape: Shape) {
    let pair = pair();
    let hub = Admin::new(&pair.target.bootstrap());
    let (load, flow) = start(topic, shape, CreationMode::Enabled, open_target());
    let in_flight = flow.wait_in_flight();
    let before = flow.delivered();
    hub.delete(topic);
    println!("{topic}: target topic deleted with {in_flight} in flight");
    flow.wait_settled(before + RATE, PATIENCE);
    let mut expected = end(topic, load, flow);
    let sights = read(&pair.target.bootstrap(), [topic]);
    // What was acknowledged before went with the topic: each partition begins somewhere, and has all from there on.
    for (place, records) in &sights {
        let first = records.iter().find_map(|s| match s {
            Sight::Stamped { sequence, .. } => Some(*sequence),
            Sight::Strange => None,
        });
        (0..first.unwrap_or(0)).for_each(|n| expected.leave_out(place.clone(), n));
    }
    assert_eq!(sights.len(), PARTITIONS as usize);
    let verdict = check(&expected, &sights, str::to_owned);
    println!("{topic}: {verdict}");
    verdict.assert_complete();
}

#[test]
fn the_target_topic_is_deleted_and_made_by_mirror() {
    for shape in shapes(&[workers(2)]) {
        deleted_and_made_by_mirror(&format!("away-made-{shape}"), shape);
    }
}

fn refused_for_want_of_rights(topic: &str, shape: Shape) {
    let pair = pair();
    Admin::new(&pair.target.bootstrap()).create(topic, PARTITIONS, &[]);
    let grant = [
        "--allow-principal",
        "User:mirror",
        "--operation",
        "Write",
        "--operation",
        "Describe",
        "--topic",
        topic,
    ];
    pair.target.acl_add(&grant).unwrap();

    let mut target = cluster("target", &pair.target.bootstrap_sasl_plain());
    target.sasl = Some(login(SaslMechanism::Plain, "mirror", "secret"));
    let (load, flow) = start(topic, shape, CreationMode::Disabled, target);
    let in_flight = flow.wait_in_flight();
    pair.target
        .acl_remove(&[
            "--allow-principal",
            "User:mirror",
            "--operation",
            "Write",
            "--topic",
            topic,
        ])
        .unwrap();
    println!("{topic}: rights taken with {in_flight} in flight");
    for tp in partitions(topic) {
        flow.wait_reason(&tp, "target_refuses", PATIENCE);
    }
    let_time_pass(&load);
    pair.target.acl_add(&grant).unwrap();
    let expected = end(topic, load, flow);
    compare(&pair.target.bootstrap(), &expected).assert_complete();
}

#[test]
fn the_target_refuses_for_want_of_rights() {
    for shape in shapes(&[workers(2)]) {
        refused_for_want_of_rights(&format!("away-acl-{shape}"), shape);
    }
}
