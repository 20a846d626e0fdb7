//! The source grows while mirror runs: partitions, topics. Followed, and nothing missed.

use crate::support::checker::check;
use crate::support::cluster::{Admin, pair};
use crate::support::flow::Flow;
use crate::support::reader::read;
use crate::support::route::{Shape, cluster, flow_spec, handlers, route, workers};
use crate::support::wait::PATIENCE;
use crate::support::workload::{Load, field};
use mirror::config::spec::{RouteSpec, Start};
use mirror::flow::FlowExit;

const RATE: u64 = 3000;

fn grows(name: &str, shape: Shape) {
    let pair = pair();
    let source = pair.source.bootstrap();
    let (admin, hub) = (Admin::new(&source), Admin::new(&pair.target.bootstrap()));
    let first = format!("{name}-first");
    admin.create(&first, 6, &[]);
    let load = Load::start(&source, &[field(&first, 6)], RATE);
    // `start: latest` must not touch what is found later; the first records say where latest was.
    let spec = RouteSpec {
        start: Start::Earliest,
        ..route(name, &format!("{name}-.*"), shape)
    };
    let flow = Flow::start(flow_spec(
        spec,
        cluster("source", &source),
        cluster("target", &pair.target.bootstrap()),
    ));
    flow.wait_settled(RATE, PATIENCE);

    println!("{name}: grown with {} in flight", flow.in_flight());
    admin.grow(&first, 12);
    load.add(field(&first, 12).only(6..12));
    flow.wait_running(12);
    for topic in ["second", "third"] {
        let topic = format!("{name}-{topic}");
        println!(
            "{name}: {topic} appears with {} in flight",
            flow.in_flight()
        );
        admin.create(&topic, 4, &[]);
        load.add(field(&topic, 4));
    }
    flow.wait_running(20);
    let written = load.written();
    flow.wait_settled(written, PATIENCE);
    let expected = load.stop();
    flow.wait_settled(expected.total(), PATIENCE);
    flow.wait_no_lag(PATIENCE);
    assert_eq!(flow.drain(), FlowExit::Drained);
    assert_eq!(hub.partitions(&first), 12);
    let verdict = check(
        &expected,
        &read(&pair.target.bootstrap(), expected.labels()),
        str::to_owned,
    );
    println!("{name}: {verdict}");
    verdict.assert_perfect();
}

#[test]
fn partitions_and_topics_appear() {
    grows("growth-w2", workers(2));
}

#[test]
fn partitions_and_topics_appear_with_handler_threads() {
    grows("growth-h3", handlers(3));
}
