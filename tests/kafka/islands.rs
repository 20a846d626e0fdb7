//! Routes are islands: one that reaches nobody and one that is refused hold up no other.

use crate::support::cluster::{Admin, pair};
use crate::support::flow::Flow;
use crate::support::reader::compare;
use crate::support::route::{Shape, cluster, flow_spec, handlers, route, shapes};
use crate::support::wait::{self, PATIENCE};
use crate::support::workload::{Writer, field, fill, noise};
use mirror::config::spec::{RouteSpec, Until};
use mirror::flow::FlowExit;
use mirror::observe::State;
use mirror::record::TopicPartition;
use std::net::TcpListener;

const EACH: u64 = 8000;

/// An address where nothing listens.
fn nowhere() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

/// A route with a record that the target refuses.
fn refused(topic: &str, shape: Shape) -> Flow {
    let (source, target) = (pair().source.bootstrap(), pair().target.bootstrap());
    Admin::new(&source).create(topic, 1, &[]);
    Admin::new(&target).create(topic, 1, &[("max.message.bytes", "2000")]);
    let mut writer = Writer::new(&source);
    let poison = field(topic, 1);
    writer.fill(std::slice::from_ref(&poison), 100);
    writer.write(&poison, 0, |record| record.value = Some(noise(50_000)));
    writer.fill(std::slice::from_ref(&poison), 100);
    writer.finish();
    Flow::copy(route(topic, topic, shape))
}

fn wait_unreachable(flow: &Flow) {
    wait::until("the flow says that it reaches nobody", PATIENCE, || {
        let condition = flow.view().condition();
        let code = condition.reason.as_ref().map(mirror::observe::Reason::code);
        condition.state == State::Failed && code == Some("unreachable")
    });
}

fn islands(shape: Shape) {
    let (source, target) = (pair().source.bootstrap(), pair().target.bootstrap());
    let healthy = format!("island-healthy-{shape}");
    Admin::new(&source).create(&healthy, 6, &[]);
    let expected = fill(&source, &[field(&healthy, 6)], EACH);

    let poison = format!("island-poison-{shape}");
    let refused = refused(&poison, shape);
    let no_target = Flow::start(flow_spec(
        route(&format!("island-no-target-{shape}"), &healthy, shape),
        cluster("source", &source),
        cluster("nowhere", &nowhere()),
    ));
    let no_source = Flow::start(flow_spec(
        route(&format!("island-no-source-{shape}"), &healthy, shape),
        cluster("nowhere", &nowhere()),
        cluster("target", &target),
    ));
    let held = TopicPartition::new(poison.as_str(), 0);
    refused.wait_reason(&held, "poison_record", PATIENCE);
    [&no_target, &no_source]
        .into_iter()
        .for_each(wait_unreachable);

    let among = Flow::copy(RouteSpec {
        until: Until::End,
        ..route(&format!("island-among-{shape}"), &healthy, shape)
    });
    assert_eq!(among.wait_exit(PATIENCE), FlowExit::CaughtUp);
    compare(&target, &expected).assert_perfect();
}

/// How fast they keep flowing is measured by `make bench`.
#[test]
fn the_others_keep_flowing() {
    for shape in shapes(&[handlers(3)]) {
        islands(shape);
    }
}
