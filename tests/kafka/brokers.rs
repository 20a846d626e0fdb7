//! Brokers are killed or stand still under load and come back: nothing is lost, nothing changes its order.

use crate::support::cluster::{Admin, pair, settings};
use crate::support::flow::Flow;
use crate::support::reader::compare;
use crate::support::route::{Shape, cluster, flow_spec, handlers, route, shapes, workers};
use crate::support::wait::{self, PATIENCE};
use crate::support::workload::{Load, field};
use kafka_harness::Cluster;
use mirror::flow::FlowExit;

const RATE: u64 = 3000;

/// What is killed, and in which shape the flow runs meanwhile.
struct Fault<'a> {
    topic: &'a str,
    source: &'a Cluster,
    target: &'a Cluster,
    victim: &'a Cluster,
    shape: Shape,
}

impl Fault<'_> {
    /// Kills one broker after the other with `kill -9`, each with records in flight, and brings it back.
    fn strike(&self) {
        let source = self.source.bootstrap();
        Admin::new(&source).create(self.topic, 6, &[]);
        let load = Load::start(&source, &[field(self.topic, 6)], RATE);
        let spec = route("brokers", self.topic, self.shape);
        let target = cluster("target", &self.target.bootstrap());
        let flow = Flow::start(flow_spec(spec, cluster("source", &source), target));
        flow.wait_settled(RATE, PATIENCE);

        let all: Vec<i32> = self
            .victim
            .brokers()
            .iter()
            .map(kafka_harness::Broker::id)
            .collect();
        for id in &all[..2] {
            let in_flight = flow.wait_in_flight();
            self.victim.broker(*id).kill().unwrap();
            println!(
                "{}: broker {id} killed with {in_flight} in flight",
                self.topic
            );
            let others: Vec<i32> = all.iter().copied().filter(|other| other != id).collect();
            self.victim.wait_members(&others, PATIENCE).unwrap();
            let written = load.written();
            flow.wait_settled(written, PATIENCE);
            self.victim.broker(*id).restart().unwrap();
            self.victim.wait_members(&all, PATIENCE).unwrap();
            flow.wait_settled(load.written(), PATIENCE);
        }
        let expected = load.stop();
        flow.wait_settled(expected.total(), PATIENCE);
        assert_eq!(flow.drain(), FlowExit::Drained);
        compare(&self.target.bootstrap(), &expected).assert_complete();
    }
}

fn three(name: &str) -> Cluster {
    settings(Cluster::builder(name).brokers(3)).start().unwrap()
}

#[test]
fn source_brokers_are_killed() {
    let (pair, source) = (pair(), three("three-source"));
    for shape in shapes(&[workers(2), handlers(3)]) {
        Fault {
            topic: &format!("source-killed-{shape}"),
            source: &source,
            target: &pair.target,
            victim: &source,
            shape,
        }
        .strike();
    }
}

#[test]
fn target_brokers_are_killed() {
    let (pair, target) = (pair(), three("three-target"));
    for shape in shapes(&[workers(4), handlers(3)]) {
        Fault {
            topic: &format!("target-killed-{shape}"),
            source: &pair.source,
            target: &target,
            victim: &target,
            shape,
        }
        .strike();
    }
}

/// A broker that stands still for so long that its controller drops it comes back as leader of what nobody led meanwhile.
#[test]
fn a_target_broker_is_frozen() {
    let target = settings(Cluster::builder("frozen-target")).start().unwrap();
    for shape in shapes(&[workers(2)]) {
        let topic = format!("frozen-target-{shape}");
        let source = pair().source.bootstrap();
        Admin::new(&source).create(&topic, 6, &[]);
        let load = Load::start(&source, &[field(&topic, 6)], RATE);
        let to = cluster("target", &target.bootstrap());
        let spec = route(&topic, &topic, shape);
        let flow = Flow::start(flow_spec(spec, cluster("source", &source), to));
        flow.wait_settled(RATE, PATIENCE);
        for _ in 0..2 {
            let (in_flight, written) = (flow.wait_in_flight(), load.written());
            target.broker(1).freeze().unwrap();
            wait::until("the load goes on for some seconds", PATIENCE, || {
                load.written() > written + 5 * RATE
            });
            target.broker(1).thaw().unwrap();
            println!("{topic}: broker 1 frozen with {in_flight} in flight");
            // The client may never get over it; then its producer is made anew after half a minute.
            flow.wait_settled(load.written(), 3 * PATIENCE);
        }
        let expected = load.stop();
        flow.wait_settled(expected.total(), PATIENCE);
        assert_eq!(flow.drain(), FlowExit::Drained);
        compare(&target.bootstrap(), &expected).assert_complete();
    }
}
