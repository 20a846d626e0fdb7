//! How a run ends.

use super::*;

#[test]
fn a_stop_with_everything_confirmed_is_clean() {
    let mut bench = Bench::with(vec![route("a"), route("b")]);
    bench.signal(Signal::Stop);
    assert_eq!(bench.board.snapshot().process.phase, board::Phase::Draining);
    bench.end("a", FlowExit::Drained);
    assert_eq!(bench.supervisor.finished(), None);
    bench.end("b", FlowExit::Drained);
    assert_eq!(bench.supervisor.finished(), Some(Outcome::Drained));
}

#[test]
fn what_may_be_copied_again_is_listed() {
    let mut bench = Bench::with(vec![route("a")]);
    bench.signal(Signal::Stop);
    let range = Unconfirmed {
        partition: TopicPartition::new("orders", 3),
        committed: Some(7),
        next: 12,
    };
    bench.end("a", FlowExit::Unconfirmed(vec![range]));
    let Some(Outcome::Unconfirmed(left)) = bench.supervisor.finished() else {
        panic!()
    };
    assert_eq!(
        left[0].to_string(),
        "a (lisbon -> hub): orders[3] from 7 to 12 (exclusive)"
    );
}

#[test]
fn a_second_signal_stops_at_once_and_the_budget_ends_everything() {
    let mut bench = Bench::with(vec![route("a")]);
    bench.signal(Signal::Stop);
    bench.pass(Duration::from_secs(1));
    assert!(matches!(bench.flows.last("a").told()[..], [Told::Drain(_)]));
    bench.signal(Signal::Stop);
    assert!(matches!(
        bench.flows.last("a").told()[..],
        [Told::Drain(_), Told::Abort]
    ));
    bench.pass(Duration::from_secs(3));
    assert!(
        matches!(bench.supervisor.finished(), Some(Outcome::Unconfirmed(left)) if left.len() == 1)
    );
}

#[test]
fn b153_stopping_never_takes_longer_than_the_grace() {
    let mut bench = Bench::with(vec![route("a")]);
    bench.signal(Signal::Stop);
    bench.pass(Duration::from_millis(24_500));
    assert_eq!(bench.supervisor.finished(), None);
    assert!(matches!(
        bench.flows.last("a").told()[..],
        [Told::Drain(_), Told::Abort]
    ));
    bench.pass(Duration::from_millis(600));
    assert!(matches!(
        bench.supervisor.finished(),
        Some(Outcome::Unconfirmed(_))
    ));
}

#[test]
fn until_end_is_done_when_every_route_is() {
    let mut bench = Bench::with(vec![route_until_end("a"), route_until_end("b")]);
    bench.end("a", FlowExit::CaughtUp);
    assert_eq!(bench.supervisor.finished(), None);
    bench.end("b", FlowExit::CaughtUp);
    assert_eq!(bench.supervisor.finished(), Some(Outcome::CaughtUp));
}

#[test]
fn until_end_with_a_failure_ends_after_the_others_and_says_no() {
    let mut bench = Bench::with(vec![route_until_end("a"), route_until_end("b")]);
    bench.end("a", unreachable());
    bench.pass(Duration::from_secs(100));
    assert_eq!(bench.flows.of("a").len(), 1);
    bench.end("b", FlowExit::CaughtUp);
    assert!(
        matches!(bench.supervisor.finished(), Some(Outcome::NotCaughtUp(left)) if left.len() == 1)
    );
}

#[test]
fn until_end_with_a_halted_partition_gives_up_with_its_reason() {
    let mut bench = Bench::with(vec![route_until_end("a")]);
    let flow = bench.flows.last("a");
    flow.view.partition(&TopicPartition::new("orders", 0), |p| {
        p.condition
            .become_(State::Failed, Some(Reason::SourceTopicGone));
    });
    bench.pass(Duration::from_secs(9));
    assert!(flow.told().is_empty());
    bench.pass(Duration::from_secs(3));
    assert!(matches!(flow.told()[..], [Told::Drain(_)]));
    bench.end("a", FlowExit::Drained);
    let Some(Outcome::NotCaughtUp(left)) = bench.supervisor.finished() else {
        panic!()
    };
    assert_eq!(left[0].reason, Some(Reason::SourceTopicGone));
}

#[test]
fn a_file_without_routes_runs_on() {
    let mut bench = Bench::with(vec![]);
    bench.pass(Duration::from_secs(60));
    assert_eq!(bench.supervisor.finished(), None);
    bench.signal(Signal::Stop);
    assert_eq!(bench.supervisor.finished(), Some(Outcome::Drained));
}
