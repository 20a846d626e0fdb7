//! Instances join and leave under load: nothing is lost, nothing repeated, and who keeps a partition hardly pauses.

use crate::support::cluster::{Admin, pair};
use crate::support::flow::Flow;
use crate::support::process::{self, Mirror, Setup};
use crate::support::pulse::Pulse;
use crate::support::reader::compare;
use crate::support::route::{SHAPES, Shape, cluster, flow_spec, route, shapes, workers};
use crate::support::wait::{self, PATIENCE};
use crate::support::workload::{Load, field};
use mirror::config::spec::{GroupProtocol, ListenerSpec, RouteSpec};
use mirror::flow::listener::{RebalanceContext, RebalanceListener};
use mirror::flow::{Environment, FlowExit, FlowSpec};
use mirror::observe::Counters;
use mirror::record::TopicPartition;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const PARTITIONS: i32 = 12;
const RATE: u64 = 4000;
/// The engine's drain budget, and what a busy machine adds.
const LONGEST_PAUSE: Duration = Duration::from_millis(3500);

/// Notes what members give up: a partition that goes from one worker to another of the same instance did not stay.
#[derive(Default)]
struct Moves(Mutex<BTreeSet<i32>>);

impl RebalanceListener for Moves {
    fn assigned(&self, _: &RebalanceContext<'_>, _: &[TopicPartition], _: &[TopicPartition]) {}

    fn revoked(&self, _: &RebalanceContext<'_>, released: &[TopicPartition]) {
        self.0
            .lock()
            .unwrap()
            .extend(released.iter().map(|tp| tp.partition));
    }

    fn lost(&self, at: &RebalanceContext<'_>, lost: &[TopicPartition]) {
        self.revoked(at, lost);
    }
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

fn join_and_leave(topic: &str, shape: Shape, group_protocol: GroupProtocol) {
    let pair = pair();
    let source = pair.source.bootstrap();
    Admin::new(&source).create(topic, PARTITIONS, &[]);
    let spec = || -> FlowSpec {
        let target = cluster("target", &pair.target.bootstrap());
        let spec = RouteSpec {
            rebalance_listener: Some(ListenerSpec::Registered("moves".into())),
            group_protocol,
            ..route(topic, topic, shape)
        };
        flow_spec(spec, cluster("source", &source), target)
    };
    let moves = Arc::new(Moves::default());
    let mut environment = Environment::default();
    environment.listeners.register("moves", moves.clone());
    let load = Load::start(&source, &[field(topic, PARTITIONS)], RATE);
    let first = Flow::start_in(spec(), &environment);
    first.wait_settled(RATE, PATIENCE);
    let pulse = Pulse::start(&pair.target.bootstrap(), topic);
    pulse.wait_beats(PARTITIONS as usize);

    let began = Instant::now();
    println!("{topic}: second joins with {} in flight", first.in_flight());
    let second = Flow::start_in(spec(), &environment);
    wait_shared(&[&first, &second]);
    println!(
        "{topic}: third joins with {} in flight",
        first.in_flight() + second.in_flight()
    );
    let third = Flow::start_in(spec(), &environment);
    wait_shared(&[&first, &second, &third]);

    println!(
        "{topic}: second leaves with {} in flight",
        second.in_flight()
    );
    assert_eq!(second.drain(), FlowExit::Drained);
    wait_shared(&[&first, &third]);
    assert_eq!(third.drain(), FlowExit::Drained);
    first.wait_running(PARTITIONS as usize);
    let pauses = pulse.stop();
    let moved = moves.0.lock().unwrap().clone();
    let kept: Vec<i32> = (0..PARTITIONS).filter(|p| !moved.contains(p)).collect();

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
    let verdict = compare(&pair.target.bootstrap(), &expected);
    let longest = kept
        .iter()
        .map(|p| pauses.longest(*p, began))
        .max()
        .unwrap_or_default();
    println!(
        "{topic}: {} partitions stayed, longest pause {longest:.2?}; of all {:.2?}",
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
fn instances_join_and_leave() {
    for shape in shapes(&SHAPES) {
        let topic = format!("members-{shape}");
        join_and_leave(&topic, shape, GroupProtocol::Classic);
    }
}

/// KIP-848: the group's coordinator says who owns what.
#[test]
fn instances_join_and_leave_a_group_of_the_consumer_protocol() {
    for shape in shapes(&[workers(2)]) {
        let topic = format!("members-848-{shape}");
        join_and_leave(&topic, shape, GroupProtocol::Consumer);
    }
}

/// An instance ends while the group is in the middle of a rebalance that another one's joining began.
#[test]
fn an_instance_ends_in_the_middle_of_a_rebalance() {
    let topic = "members-middle";
    let pair = pair();
    let source = pair.source.bootstrap();
    Admin::new(&source).create(topic, 6, &[]);
    let load = Load::start(&source, &[field(topic, 6)], RATE);
    let spec = || {
        let target = cluster("target", &pair.target.bootstrap());
        flow_spec(
            route(topic, topic, workers(1)),
            cluster("source", &source),
            target,
        )
    };
    let mut flow = Flow::start(spec());
    flow.wait_settled(RATE, PATIENCE);
    for round in 0..4 {
        let before = Counters::get(&flow.counters().rebalances);
        let next = Flow::start(spec());
        wait::until("partitions are asked back", PATIENCE, || {
            Counters::get(&flow.counters().rebalances) > before
        });
        let (in_flight, began) = (flow.in_flight(), Instant::now());
        let (leaving, staying) = if round % 2 == 0 {
            (flow, next)
        } else {
            (next, flow)
        };
        assert_eq!(leaving.drain(), FlowExit::Drained, "round {round}");
        let left = began.elapsed();
        flow = staying;
        flow.wait_running(6);
        let taken_over = began.elapsed();
        println!(
            "{topic}: left with {in_flight} in flight after {left:.2?}, all taken over after {taken_over:.2?}"
        );
        // Who leaves without a word is missed only when its session ends, after 45 s.
        assert!(
            taken_over < Duration::from_secs(20),
            "round {round}: {taken_over:?}"
        );
    }
    let expected = load.stop();
    let hub = Admin::new(&pair.target.bootstrap());
    wait::until("all is there", PATIENCE, || {
        hub.end_sum(topic) as u64 >= expected.total()
    });
    assert_eq!(flow.drain(), FlowExit::Drained);
    compare(&pair.target.bootstrap(), &expected).assert_perfect();
}

/// What a process says of members that differ.
fn differing(mirror: &Mirror) -> Option<Value> {
    let status = mirror.status()?;
    let differing = &status["routes"]["differing"]["flows"][0]["differing"];
    (!differing.is_null()).then(|| differing.clone())
}

#[test]
fn members_with_differing_files_are_found_out() {
    let pair = pair();
    let source = pair.source.bootstrap();
    let topic = "members-differing";
    Admin::new(&source).create(topic, 4, &[]);
    let clusters = || json!({ "source": process::cluster(&source), "target": process::cluster(&pair.target.bootstrap()) });
    let routes = |on_error: &str, workers: u64| {
        let mut route = process::route("source", "target", topic);
        route["on_error"] = json!(on_error);
        route["workers"] = json!(workers);
        json!({ "differing": route })
    };
    let load = Load::start(&source, &[field(topic, 4)], 200);
    let one = Setup::new(clusters(), routes("stop", 1));
    let two = Setup::new(clusters(), routes("stop", 2));
    let (first, second) = (one.run(&[]), two.run(&[]));
    let share = |mirror: &Mirror| mirror.number("differing", "partitions");
    wait::until("both have partitions", PATIENCE, || {
        share(&first) > 0 && share(&second) > 0
    });

    println!("{topic}: the second one's file differs in what is copied");
    two.write(clusters(), routes("skip", 2));
    assert!(two.ask(&["reload"]).status.success());
    let (of_first, of_second) = wait::find("both say so", PATIENCE, || {
        Some((differing(&first)?, differing(&second)?))
    });
    assert_eq!(of_first["ours"], of_second["theirs"]);
    assert_eq!(of_first["theirs"], of_second["ours"]);
    // Until then they differed in their threads alone, and nothing was said of that.
    for (setup, other) in [(&one, &of_first), (&two, &of_second)] {
        let said = setup.logged("members_differ");
        assert_eq!(said.len(), 1, "{said:#?}");
        let said = said[0]["message"].to_string();
        assert!(said.contains(other["theirs"].as_str().unwrap()), "{said}");
    }
    let page = String::from_utf8(one.ask(&["status"]).stdout).unwrap();
    assert!(page.contains("members differ"), "{page}");
    let metrics = first.get("/metrics").unwrap();
    assert!(
        metrics.contains(
            "mirror_members_differ{route=\"differing\",source=\"source\",target=\"target\"} 1"
        ),
        "{metrics}"
    );

    println!("{topic}: the first one gets the same file");
    one.write(clusters(), routes("skip", 1));
    assert!(one.ask(&["reload"]).status.success());
    wait::until("nobody differs", PATIENCE, || {
        first.status().is_some()
            && second.status().is_some()
            && differing(&first).is_none()
            && differing(&second).is_none()
    });
    load.stop();
    assert!(first.terminate().success());
    assert!(second.terminate().success());
}
