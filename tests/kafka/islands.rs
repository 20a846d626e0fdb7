//! Routes are islands: one that reaches nobody and one that is refused hold up no other.

use crate::support::checker::check;
use crate::support::cluster::{Admin, pair};
use crate::support::flow::Flow;
use crate::support::reader::read;
use crate::support::route::{cluster, flow_spec, route, workers};
use crate::support::wait::PATIENCE;
use crate::support::workload::{Writer, field, fill};
use mirror::config::spec::{RouteSpec, Until};
use mirror::flow::FlowExit;
use mirror::observe::State;
use std::net::TcpListener;
use std::time::{Duration, Instant};

const EACH: u64 = 8000;

/// An address where nothing listens.
fn nowhere() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

#[test]
fn the_others_keep_flowing() {
    let pair = pair();
    let (source, target) = (pair.source.bootstrap(), pair.target.bootstrap());
    let (admin, hub) = (Admin::new(&source), Admin::new(&target));
    let copy = |name: &str| {
        let spec = RouteSpec {
            until: Until::End,
            ..route(name, "island-healthy", workers(1))
        };
        let began = Instant::now();
        let flow = Flow::start(flow_spec(
            spec,
            cluster("source", &source),
            cluster("target", &target),
        ));
        assert_eq!(flow.wait_exit(Duration::from_secs(60)), FlowExit::CaughtUp);
        began.elapsed()
    };
    admin.create("island-healthy", 6, &[]);
    let expected = fill(&source, &[field("island-healthy", 6)], EACH);
    let alone = copy("island-alone");
    hub.delete("island-healthy");

    admin.create("island-poison", 1, &[]);
    hub.create("island-poison", 1, &[("max.message.bytes", "2000")]);
    let mut writer = Writer::new(&source);
    let poison = field("island-poison", 1);
    writer.fill(std::slice::from_ref(&poison), 100);
    let noise: Vec<u8> = (0..50_000_u32)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect();
    writer.write(&poison, 0, |record| record.value = Some(noise));
    writer.fill(std::slice::from_ref(&poison), 100);
    writer.finish();

    let refused = Flow::start(flow_spec(
        route("island-refused", "island-poison", workers(1)),
        cluster("source", &source),
        cluster("target", &target),
    ));
    let no_target = Flow::start(flow_spec(
        route("island-no-target", "island-healthy", workers(1)),
        cluster("source", &source),
        cluster("nowhere", &nowhere()),
    ));
    let no_source = Flow::start(flow_spec(
        route("island-no-source", "island-healthy", workers(1)),
        cluster("nowhere", &nowhere()),
        cluster("target", &target),
    ));
    refused.wait_reason(
        &mirror::record::TopicPartition::new("island-poison", 0),
        "poison_record",
        PATIENCE,
    );
    for flow in [&no_target, &no_source] {
        crate::support::wait::until("the flow says that it reaches nobody", PATIENCE, || {
            let condition = flow.view().condition();
            condition.state == State::Failed
                && condition.reason.is_some_and(|r| r.code() == "unreachable")
        });
    }
    let among = copy("island-among");
    println!(
        "{} records: alone {alone:.2?}, among broken routes {among:.2?}",
        expected.total()
    );
    check(&expected, &read(&target, ["island-healthy"]), str::to_owned).assert_perfect();
}
