//! What was written before Kafka 0.11: a broker of today gives it as it lies on its disk (KIP-724).

use crate::support::cluster::{Admin, pair, settings};
use crate::support::flow::Flow;
use crate::support::reader::Reader;
use crate::support::record::Record;
use crate::support::route::{chain, cluster, flow_spec, route, workers};
use crate::support::wait::PATIENCE;
use kafka_harness::Cluster;
use mirror::config::spec::{DataPlane, RouteSpec, Until};
use mirror::flow::FlowExit;
use mirror::wire::codec::Decompressor;
use mirror::wire::cut::{Cut, Cuts};
use serde_json::json;
use std::fs;

const TOPIC: &str = "old-formats";
const LIMIT: usize = 1 << 20;
/// Kafka's own code writes them.
const WRITER: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/harness/kafka/OldFormats.java"
);
/// A log of all old formats and codecs.
fn log(cluster: &Cluster) -> Vec<u8> {
    let lines = cluster.tool(WRITER, &[]).expect("a log");
    let bytes = |line: &str| hex::decode(line.rsplit(' ').next()?).ok();
    let sets = lines
        .lines()
        .map(|line| bytes(line).expect("hexadecimal at a line's end"));
    sets.collect::<Vec<_>>().concat()
}

/// What is in it.
fn records(log: &[u8]) -> Vec<Record> {
    let mut all = Vec::new();
    for cut in Cuts::of(log) {
        let Ok(Cut::Message(message)) = cut else {
            panic!("no message: {cut:?}");
        };
        let mut buffer = Vec::new();
        let opened = message.open(&mut Decompressor::default(), LIMIT, &mut buffer);
        all.extend(opened.expect("it opens").map(|view| {
            let view = view.expect("a record");
            Record {
                key: view.key.map(<[u8]>::to_vec),
                value: view.value.map(<[u8]>::to_vec),
                headers: Vec::new(),
                timestamp: view.timestamp.unwrap_or(-1),
            }
        }));
    }
    assert_eq!(all.len(), 48);
    all
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

fn spec(plane: DataPlane, to: &str) -> RouteSpec {
    RouteSpec {
        data_plane: plane,
        until: Until::End,
        chain: chain(json!([{ "rename": { "topic": to } }])),
        ..route(to, TOPIC, workers(1))
    }
}

fn copy(source: &Cluster, spec: RouteSpec) -> Flow {
    let target = cluster("target", &pair().target.bootstrap());
    let source = cluster("source", &source.bootstrap());
    Flow::start(flow_spec(spec, source, target))
}

fn copied(topic: &str) -> Vec<Record> {
    let mut reader = Reader::new(&pair().target.bootstrap(), [topic]).keeping();
    reader.catch_up();
    reader.records(topic, 0).to_vec()
}

#[test]
fn what_lies_in_old_formats_is_copied_as_it_is() {
    let source = settings(Cluster::builder("old"))
        .start()
        .expect("a cluster");
    Admin::new(&source.bootstrap()).create(TOPIC, 1, &[]);
    let log = log(&source);
    replace(&source, &log);

    let flow = copy(&source, spec(DataPlane::Native, "old-native"));
    assert_eq!(flow.wait_exit(2 * PATIENCE), FlowExit::CaughtUp);
    assert_eq!(copied("old-native"), records(&log));

    // librdkafka takes their keys and values for null where it speaks to a broker of today (its issue 5549): nothing of that
    // may arrive.
    let flow = copy(&source, spec(DataPlane::Librdkafka, "old-librdkafka"));
    let exit = flow.wait_exit(2 * PATIENCE);
    let FlowExit::Failed(reason) = &exit else {
        panic!("{exit:?}");
    };
    assert_eq!(reason.code(), "source_unreadable", "{exit:?}");
    assert_eq!(copied("old-librdkafka"), []);
}
