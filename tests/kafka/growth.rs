//! The source grows while mirror runs: partitions, topics. Followed, and nothing missed.

use crate::support::cluster::{Admin, pair};
use crate::support::flow::Flow;
use crate::support::reader::compare;
use crate::support::route::{Shape, handlers, route, shapes, workers};
use crate::support::wait::PATIENCE;
use crate::support::workload::{Load, field};
use mirror::flow::FlowExit;
use std::time::Instant;

const RATE: u64 = 3000;

fn grows(name: &str, shape: Shape) {
    let pair = pair();
    let source = pair.source.bootstrap();
    let (admin, hub) = (Admin::new(&source), Admin::new(&pair.target.bootstrap()));
    let first = format!("{name}-first");
    admin.create(&first, 6, &[]);
    let load = Load::start(&source, &[field(&first, 6)], RATE);
    let flow = Flow::copy(route(name, &format!("{name}-.*"), shape));
    flow.wait_settled(RATE, PATIENCE);

    println!("{name}: grown with {} in flight", flow.in_flight());
    admin.grow(&first, 12);
    load.add(field(&first, 12).only(6..12));
    let since = Instant::now();
    flow.wait_running(12);
    println!("{name}: followed after {:.1?}", since.elapsed());
    for topic in ["second", "third"] {
        let topic = format!("{name}-{topic}");
        println!(
            "{name}: {topic} appears with {} in flight",
            flow.in_flight()
        );
        admin.create(&topic, 4, &[]);
        load.add(field(&topic, 4));
    }
    let since = Instant::now();
    flow.wait_running(20);
    println!("{name}: new topics followed after {:.1?}", since.elapsed());
    let written = load.written();
    flow.wait_settled(written, PATIENCE);
    let expected = load.stop();
    flow.wait_settled(expected.total(), PATIENCE);
    flow.wait_no_lag(PATIENCE);
    assert_eq!(flow.drain(), FlowExit::Drained);
    assert_eq!(hub.partitions(&first), 12);
    compare(&pair.target.bootstrap(), &expected).assert_perfect();
}

#[test]
fn partitions_and_topics_appear() {
    for shape in shapes(&[workers(2), handlers(3)]) {
        grows(&format!("growth-{shape}"), shape);
    }
}
