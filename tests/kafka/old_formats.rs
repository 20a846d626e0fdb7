//! What was written before Kafka 0.11: a broker of today gives it as it lies on its disk (KIP-724), and both planes copy it.

use crate::support::cluster::{Admin, pair, settings};
use crate::support::flow::Flow;
use crate::support::reader::Reader;
use crate::support::record::Record;
use crate::support::route::{chain, cluster, flow_spec, route, workers};
use crate::support::wait::PATIENCE;
use kafka_harness::Cluster;
use mirror::config::spec::{DataPlane, RouteSpec, Until};
use mirror::flow::FlowExit;
use serde_json::json;
use std::fs;

const TOPIC: &str = "old-formats";
/// Kafka's own code writes them.
const WRITER: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/harness/kafka/OldFormats.java"
);
/// Records of format 0, which has no timestamps; those of format 1 follow.
const WITHOUT_TIME: usize = 16;
const ALL: usize = 48;

/// A log of all old formats and codecs.
fn log(cluster: &Cluster) -> Vec<u8> {
    let lines = cluster.tool(WRITER, &[]).expect("a log");
    let bytes = |line: &str| hex::decode(line.rsplit(' ').next()?).ok();
    let sets = lines
        .lines()
        .map(|line| bytes(line).expect("hexadecimal at a line's end"));
    sets.collect::<Vec<_>>().concat()
}

/// Puts a log in the place of the one that a topic has. The broker makes everything else anew from it, since it was not
/// stopped in order as far as it knows.
fn replace(cluster: &Cluster, log: &[u8]) {
    let broker = cluster.broker(1);
    broker.stop().expect("it stops");
    let (data, first) = (broker.data(), "00000000000000000000.log");
    let folder = data.join(format!("{TOPIC}-0"));
    for file in fs::read_dir(&folder).expect("the topic's folder") {
        let path = file.expect("a file").path();
        if path
            .file_name()
            .is_some_and(|name| name != "partition.metadata")
        {
            fs::remove_file(path).expect("it goes");
        }
    }
    fs::write(folder.join(first), log).expect("it is written");
    fs::remove_file(data.join(".kafka_cleanshutdown")).expect("it was stopped in order");
    broker.restart().expect("it starts");
    cluster.wait_ready(PATIENCE).expect("it is ready");
}

fn records(bootstrap: &str, topic: &str) -> Vec<Record> {
    let mut reader = Reader::new(bootstrap, [topic]).keeping();
    reader.catch_up();
    reader.records(topic, 0).to_vec()
}

fn without_time(records: &[Record]) -> Vec<Record> {
    let each = records.iter().cloned();
    each.map(|record| Record {
        timestamp: -1,
        ..record
    })
    .collect()
}

#[test]
fn what_lies_in_old_formats_is_copied_by_both_planes() {
    let source = settings(Cluster::builder("old"))
        .start()
        .expect("a cluster");
    Admin::new(&source.bootstrap()).create(TOPIC, 1, &[]);
    replace(&source, &log(&source));
    let original = records(&source.bootstrap(), TOPIC);
    assert_eq!(original.len(), ALL, "the broker gives them");
    let target = pair().target.bootstrap();
    for (plane, name) in [
        (DataPlane::Native, "native"),
        (DataPlane::Librdkafka, "librdkafka"),
    ] {
        let renamed = format!("{TOPIC}-{name}");
        let spec = RouteSpec {
            data_plane: plane,
            until: Until::End,
            chain: chain(json!([{ "rename": { "topic": renamed } }])),
            ..route(&renamed, TOPIC, workers(1))
        };
        let from = cluster("source", &source.bootstrap());
        let flow = Flow::start(flow_spec(spec, from, cluster("target", &target)));
        assert_eq!(flow.wait_exit(2 * PATIENCE), FlowExit::CaughtUp, "{name}");
        let copy = records(&target, &renamed);
        assert_eq!(copy[WITHOUT_TIME..], original[WITHOUT_TIME..], "{name}");
        let (old, copied) = (&original[..WITHOUT_TIME], &copy[..WITHOUT_TIME]);
        assert_eq!(without_time(copied), without_time(old), "{name}");
        // A client that is given no time writes its own.
        let has_time = plane == DataPlane::Librdkafka;
        assert!(
            copied.iter().all(|r| (r.timestamp > 0) == has_time),
            "{name}"
        );
    }
}
