//! Brokers are killed under load and come back: nothing is lost, nothing changes its order.

use crate::support::checker::check;
use crate::support::cluster::{Admin, pair, settings};
use crate::support::flow::Flow;
use crate::support::reader::read;
use crate::support::route::{Shape, cluster, flow_spec, handlers, route, workers};
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
            let in_flight = wait::find("records in flight", PATIENCE, || {
                Some(flow.in_flight()).filter(|n| *n > 0)
            });
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
        let verdict = check(
            &expected,
            &read(&self.target.bootstrap(), [self.topic]),
            str::to_owned,
        );
        println!("{}: {verdict}", self.topic);
        verdict.assert_complete();
    }
}

fn three(name: &str) -> Cluster {
    settings(Cluster::builder(name).brokers(3)).start().unwrap()
}

fn source_killed(topic: &str, shape: Shape) {
    let (pair, source) = (pair(), three("three-source"));
    Fault {
        topic,
        source: &source,
        target: &pair.target,
        victim: &source,
        shape,
    }
    .strike();
}

fn target_killed(topic: &str, shape: Shape) {
    let (pair, target) = (pair(), three("three-target"));
    Fault {
        topic,
        source: &pair.source,
        target: &target,
        victim: &target,
        shape,
    }
    .strike();
}

#[test]
fn source_brokers_are_killed() {
    source_killed("source-killed-w2", workers(2));
}

#[test]
fn source_brokers_are_killed_with_handler_threads() {
    source_killed("source-killed-h3", handlers(3));
}

#[test]
fn target_brokers_are_killed() {
    target_killed("target-killed-h3", handlers(3));
}

#[test]
fn target_brokers_are_killed_with_four_workers() {
    target_killed("target-killed-w4", workers(4));
}
