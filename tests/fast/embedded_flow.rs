//! One flow between two embedded clusters: what arrives is what was there, and a restart repeats
//! nothing.

use crate::embedded::{Cluster, Rec, wait_until};
use crate::embedded_running::{File, copy};
use mirror::config::spec::Until;
use mirror::flow::FlowExit;

/// Everything that a copy is known to spoil: null and empty, repeated and null headers, order.
fn difficult_records() -> Vec<Rec> {
    let mut tombstone = Rec::new(0, "gone", "").header("why", Some("deleted"));
    tombstone.value = None;
    let mut keyless = Rec::new(1, "", "no key at all");
    keyless.key = None;
    let mut bytes = Rec::new(2, "", "");
    bytes.key = Some(vec![0, 255, 254, 10]);
    bytes.value = Some((0..=255).collect());
    bytes.timestamp = 1;
    vec![
        Rec::new(0, "k", "plain"),
        tombstone,
        Rec::new(0, "", "")
            .header("twice", Some("first"))
            .header("null", None)
            .header("empty", Some(""))
            .header("twice", Some("second")),
        keyless,
        Rec::new(1, "ключ", "значение").header("имя", Some("é")),
        bytes,
    ]
}

/// Numbered records that take turns in two partitions.
fn numbered(numbers: std::ops::Range<usize>) -> Vec<Rec> {
    numbers
        .map(|n| Rec::new((n % 2) as i32, &n.to_string(), &format!("value {n}")))
        .collect()
}

/// The same by partition, as they are read.
fn by_partition(mut records: Vec<Rec>) -> Vec<Rec> {
    records.sort_by_key(|r| r.partition);
    records
}

/// What a route says of its data plane.
const PLANES: [&str; 2] = ["    data_plane: librdkafka\n", "    data_plane: native\n"];

#[test]
fn every_byte_arrives() {
    PLANES.into_iter().for_each(every_byte_arrives_by);
}

fn every_byte_arrives_by(plane: &str) {
    let (a, b) = (Cluster::start(), Cluster::start());
    a.create_topic("orders", 3, &[("retention.ms", "-1")]);
    a.produce("orders", &difficult_records());
    File::new(&copy(&a, &b, plane)).copy_all();
    assert_eq!(b.read("orders"), difficult_records(), "{plane}");
    for partition in 0..3 {
        let end = a.watermarks("orders", partition).1;
        let committed = a.committed("mirror.default.copy.a.b", "orders", partition);
        let (offset, metadata) = committed.expect("a commit");
        assert_eq!(offset, end, "partition {partition}");
        // `s`: the start of every partition is settled.
        assert!(metadata.split(';').any(|field| field == "s"), "{metadata}");
    }
}

#[test]
fn a_restart_goes_on_where_it_stopped() {
    PLANES.into_iter().for_each(a_restart_goes_on_by);
}

fn a_restart_goes_on_by(plane: &str) {
    let (a, b) = (Cluster::start(), Cluster::start());
    a.create_topic("orders", 2, &[]);
    a.produce("orders", &numbered(0..5_000));
    let file = File::new(&copy(&a, &b, plane));
    let first = file.start(Until::Stopped);
    wait_until("the first records are there", || b.count("orders") > 0);
    assert_eq!(first[0].drain(), FlowExit::Drained);
    a.produce("orders", &numbered(5_000..10_000));
    file.copy_all();
    let expected = by_partition(numbered(0..10_000));
    assert!(b.read("orders") == expected, "every record once, in order");
}

#[test]
fn both_thread_shapes_keep_the_order() {
    for shape in [
        "    workers: 2\n",
        "    handler_threads: 2\n    producers: 2\n",
    ] {
        let (a, b) = (Cluster::start(), Cluster::start());
        a.create_topic("orders", 2, &[]);
        a.produce("orders", &numbered(0..4_000));
        File::new(&copy(&a, &b, shape)).copy_all();
        let expected = by_partition(numbered(0..4_000));
        assert!(b.read("orders") == expected, "{shape}");
    }
}

#[test]
fn growth_and_new_topics_are_followed() {
    PLANES.into_iter().for_each(growth_is_followed_by);
}

fn growth_is_followed_by(plane: &str) {
    let (a, b) = (Cluster::start(), Cluster::start());
    a.create_topic("orders", 1, &[("retention.ms", "123456789")]);
    let running = File::new(&copy(&a, &b, plane)).start(Until::Stopped);
    wait_until("the topic is there", || b.partitions("orders") == 1);
    a.create_topic("orders.new", 2, &[]);
    a.produce("orders.new", &numbered(0..10));
    wait_until("the new topic is copied", || b.count("orders.new") == 10);
    a.grow("orders", 3);
    a.produce("orders", &[Rec::new(2, "k", "in the new partition")]);
    wait_until("the new partition is copied", || b.count("orders") == 1);
    assert_eq!(b.partitions("orders"), 3);
    assert_eq!(running[0].drain(), FlowExit::Drained);
}

#[test]
fn trimmed_records_halt_the_partition_until_the_user_decides() {
    let (a, b) = (Cluster::start(), Cluster::start());
    a.create_topic("orders", 1, &[]);
    let records: Vec<Rec> = (0..30).map(|n| Rec::new(0, &n.to_string(), "x")).collect();
    a.produce("orders", &records[..10]);
    File::new(&copy(&a, &b, "")).copy_all();
    a.produce("orders", &records[10..]);
    a.delete_before("orders", 0, 20);
    let running = File::new(&copy(&a, &b, "")).start(Until::Stopped);
    let view = &running[0].handle.view;
    wait_until("the gap is seen", || {
        let partitions = view.partitions();
        let mut reasons = partitions
            .values()
            .filter_map(|p| p.condition.reason.clone());
        reasons.any(|r| r == mirror::observe::Reason::Gap { from: 10, to: 20 })
    });
    running[0].handle.abort();
    running[0].exit();
    assert_eq!(b.count("orders"), 10);
    File::new(&copy(&a, &b, "    on_gap: earliest\n")).copy_all();
    assert_eq!(b.count("orders"), 20);
}
