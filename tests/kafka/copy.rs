//! A copy is the source, byte for byte, each partition in order.

use crate::support::checker::check;
use crate::support::cluster::{Admin, pair, settings};
use crate::support::expected::Expected;
use crate::support::flow::Flow;
use crate::support::reader::read;
use crate::support::route::{SHAPES, chain, cluster, flow_spec, route, shapes};
use crate::support::wait::count;
use crate::support::workload::{field, fill};
use kafka_harness::Cluster;
use mirror::config::spec::{RouteSpec, Until};
use mirror::flow::FlowExit;
use serde_json::json;
use std::time::{Duration, Instant};

const TOPICS: [&str; 3] = ["copy-a", "copy-b", "copy-c"];

/// The same topics at both sources; the labels tell them apart.
fn create_and_fill(cluster: &Cluster, name: &str, each: u64) -> Expected {
    let admin = Admin::new(&cluster.bootstrap());
    let fields = TOPICS.map(|t| field(t, 6).prefix(&format!("{name}.")));
    fields.iter().for_each(|f| admin.create(&f.topic, 6, &[]));
    fill(&cluster.bootstrap(), &fields, each)
}

#[test]
fn two_sources_arrive_in_one_hub_byte_for_byte() {
    let pair = pair();
    let second = settings(Cluster::builder("virginia")).start().unwrap();
    let each = count("MIRROR_TEST_RECORDS", 200_000).div_ceil(36);
    let mut expected = create_and_fill(&pair.source, "lisbon", each);
    expected.join(create_and_fill(&second, "virginia", each));

    for shape in shapes(&SHAPES) {
        let began = Instant::now();
        let flow = |name: &str, from: &Cluster| {
            let spec = RouteSpec {
                until: Until::End,
                chain: chain(json!([{ "rename": { "topic": "{route}.{source}.{topic}" } }])),
                ..route(&format!("copy-{shape}"), "copy-.", shape)
            };
            Flow::start(flow_spec(
                spec,
                cluster(name, &from.bootstrap()),
                cluster("hub", &pair.target.bootstrap()),
            ))
        };
        let flows = [flow("lisbon", &pair.source), flow("virginia", &second)];
        for flow in flows {
            assert_eq!(flow.wait_exit(Duration::from_secs(60)), FlowExit::CaughtUp);
        }
        let took = began.elapsed();
        let at_hub = |label: &str| format!("copy-{shape}.{label}");
        let sights = read(
            &pair.target.bootstrap(),
            expected.labels().iter().map(|l| at_hub(l)),
        );
        let verdict = check(&expected, &sights, at_hub);
        println!("{shape}: {verdict} in {took:.1?}");
        verdict.assert_perfect();
        assert_eq!(verdict.arrived, each * 36);
    }
}
