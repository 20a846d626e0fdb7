//! Flows that fail and come back.

use super::*;

#[test]
fn one_flow_for_each_source_and_target() {
    let mut fan = (*route("fan")).clone();
    fan.sources = vec![cluster("a", "a:1"), cluster("b", "b:1")];
    fan.targets = vec![cluster("c", "c:1"), cluster("d", "d:1")];
    let bench = Bench::with(vec![Arc::new(fan)]);
    let places: Vec<_> = bench
        .flows
        .of("fan")
        .iter()
        .map(|f| format!("{}{}", f.source, f.target))
        .collect();
    assert_eq!(places, ["ac", "ad", "bc", "bd"]);
}

#[test]
fn a_failed_flow_comes_back_with_growing_waits_and_its_neighbours_notice_nothing() {
    let mut bench = Bench::with(vec![route("a"), route("b")]);
    for (tries, wait) in [1, 2, 4, 8].into_iter().enumerate() {
        bench.end("a", unreachable());
        assert_eq!(bench.state("a"), State::Failed);
        assert!(bench.flows.last("a").view.condition().next_try.is_some());
        bench.pass(Duration::from_millis(wait * 1000 - 10));
        assert_eq!(bench.flows.of("a").len(), tries + 1);
        bench.pass(Duration::from_millis(20));
        assert_eq!(bench.flows.of("a").len(), tries + 2);
    }
    assert_eq!(bench.flows.of("b").len(), 1);
    assert!(bench.flows.last("b").told().is_empty());
}

#[test]
fn a_minute_of_health_forgets_the_failures() {
    let mut bench = Bench::with(vec![route("a")]);
    for _ in 0..5 {
        bench.end("a", unreachable());
        bench.pass(Duration::from_secs(61));
    }
    bench.flows.last("a").view.become_(State::Running, None);
    bench.pass(Duration::from_secs(62));
    bench.end("a", unreachable());
    bench.pass(Duration::from_millis(1010));
    assert!(bench.flows.last("a").runs());
}

#[test]
fn a_flow_that_vanishes_is_an_exit_like_others() {
    let mut bench = Bench::with(vec![route("a")]);
    bench.flows.last("a").vanish();
    bench.pump();
    let reason = bench.flows.last("a").view.condition().reason;
    assert!(matches!(reason, Some(Reason::Panic { .. })), "{reason:?}");
    bench.pass(Duration::from_secs(2));
    assert_eq!(bench.flows.of("a").len(), 2);
}

#[test]
fn abort_route_stops_every_flow_until_a_reload() {
    let mut fan = (*route("fan")).clone();
    fan.targets = vec![cluster("c", "c:1"), cluster("d", "d:1")];
    let fan = Arc::new(fan);
    let mut bench = Bench::with(vec![fan.clone()]);
    let [first, second] = &bench.flows.of("fan")[..] else {
        panic!()
    };
    first.exit(FlowExit::AbortRoute(Reason::Aborted { detail: "x".into() }));
    bench.pump();
    assert!(matches!(second.told()[..], [Told::Drain(_)]));
    second.exit(FlowExit::Drained);
    bench.pump();
    bench.pass(Duration::from_secs(600));
    assert_eq!(bench.flows.of("fan").len(), 2);
    assert_eq!(bench.state("fan"), State::Failed);
    let mut verdict = bench.reload(Ok(config(spec(vec![fan]), "first")));
    assert_eq!(
        results(verdict.try_recv().unwrap()),
        [("fan".into(), RouteResult::Retried)]
    );
    assert_eq!(bench.flows.of("fan").len(), 4);
}

#[test]
fn counters_never_fall_when_a_flow_comes_back() {
    let mut bench = Bench::with(vec![route("a")]);
    let count = |bench: &Bench| {
        bench.board.snapshot().routes[&name("a")].flows[0]
            .totals()
            .get("fetched_records")
    };
    let add = |bench: &Bench, n| {
        crate::observe::Counters::add(&bench.flows.last("a").view.counters.fetched_records, n);
    };
    add(&bench, 5);
    bench.end("a", unreachable());
    bench.pass(Duration::from_secs(2));
    add(&bench, 2);
    assert_eq!(count(&bench), 7);
    let _verdict = bench.reload(Ok(config(spec(vec![changed(&route("a"))]), "second")));
    bench.end("a", FlowExit::Drained);
    assert_eq!(count(&bench), 7);
}
