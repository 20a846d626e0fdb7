//! Instances join and leave under load: nothing is lost, nothing repeated, and who keeps a partition hardly pauses.

use crate::support::checker::check;
use crate::support::cluster::{Admin, pair};
use crate::support::flow::Flow;
use crate::support::pulse::Pulse;
use crate::support::reader::read;
use crate::support::route::{Shape, cluster, flow_spec, handlers, route, workers};
use crate::support::wait::{self, PATIENCE};
use crate::support::workload::{Load, field};
use mirror::flow::{FlowExit, FlowSpec};
use mirror::observe::Counters;
use mirror::record::TopicPartition;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

const PARTITIONS: i32 = 12;
const RATE: u64 = 4000;
/// The engine's drain budget, and what a busy machine adds.
const LONGEST_PAUSE: Duration = Duration::from_millis(3500);

fn owned(flow: &Flow) -> BTreeSet<TopicPartition> {
    flow.partitions().into_keys().collect()
}

/// Waits until these flows share all partitions between them, and all of these run.
fn wait_shared(flows: &[&Flow]) {
    use mirror::observe::State;
    wait::until("the partitions are shared", PATIENCE, || {
        let all: Vec<_> = flows.iter().map(|f| f.partitions()).collect();
        let count: usize = all.iter().map(std::collections::BTreeMap::len).sum();
        let running = |p: &mirror::observe::PartitionView| {
            matches!(p.condition.state, State::Running | State::Lagging)
        };
        count == PARTITIONS as usize && all.iter().all(|p| !p.is_empty() && p.values().all(running))
    });
}

fn join_and_leave(topic: &str, shape: Shape) {
    let pair = pair();
    let source = pair.source.bootstrap();
    Admin::new(&source).create(topic, PARTITIONS, &[]);
    let spec = || -> FlowSpec {
        let target = cluster("target", &pair.target.bootstrap());
        flow_spec(
            route(topic, topic, shape),
            cluster("source", &source),
            target,
        )
    };
    let load = Load::start(&source, &[field(topic, PARTITIONS)], RATE);
    let first = Flow::start(spec());
    first.wait_settled(RATE, PATIENCE);
    let pulse = Pulse::start(&pair.target.bootstrap(), topic);
    pulse.wait_beats(PARTITIONS as usize);

    let began = Instant::now();
    let mut kept = owned(&first);
    println!("{topic}: second joins with {} in flight", first.in_flight());
    let second = Flow::start(spec());
    wait_shared(&[&first, &second]);
    kept = kept.intersection(&owned(&first)).cloned().collect();
    println!(
        "{topic}: third joins with {} in flight",
        first.in_flight() + second.in_flight()
    );
    let third = Flow::start(spec());
    wait_shared(&[&first, &second, &third]);
    kept = kept.intersection(&owned(&first)).cloned().collect();

    println!(
        "{topic}: second leaves with {} in flight",
        second.in_flight()
    );
    assert_eq!(second.drain(), FlowExit::Drained);
    wait_shared(&[&first, &third]);
    assert_eq!(third.drain(), FlowExit::Drained);
    first.wait_running(PARTITIONS as usize);
    let pauses = pulse.stop();

    let expected = load.stop();
    let total = expected.total();
    wait::until("no lag", PATIENCE, || {
        Admin::new(&pair.target.bootstrap()).end_sum(topic) as u64 >= total
    });
    println!(
        "{topic}: {} rebalance events at the first",
        Counters::get(&first.counters().rebalances)
    );
    assert_eq!(first.drain(), FlowExit::Drained);
    let verdict = check(
        &expected,
        &read(&pair.target.bootstrap(), [topic]),
        str::to_owned,
    );
    let longest = kept
        .iter()
        .map(|tp| pauses.longest(tp.partition, began))
        .max()
        .unwrap_or_default();
    println!(
        "{topic}: {verdict}; {} partitions stayed, longest pause {longest:.2?}; of all {:.2?}",
        kept.len(),
        pauses.longest_of_all(began)
    );
    verdict.assert_perfect();
    assert!(
        !kept.is_empty(),
        "no partition stayed: nothing was measured"
    );
    assert!(
        longest <= LONGEST_PAUSE,
        "a partition that stayed paused for {longest:?}"
    );
}

#[test]
fn instances_with_one_worker_join_and_leave() {
    join_and_leave("members-w1", workers(1));
}

#[test]
fn instances_with_two_workers_join_and_leave() {
    join_and_leave("members-w2", workers(2));
}

#[test]
fn instances_with_handler_threads_join_and_leave() {
    join_and_leave("members-h3", handlers(3));
}
