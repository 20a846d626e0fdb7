//! Reloading and pausing.

use super::*;

#[test]
fn i5_a_rejected_file_changes_nothing_and_is_visible() {
    let mut bench = Bench::with(vec![route("a")]);
    let mut verdict = bench.reload(Err(rejected()));
    assert!(matches!(
        verdict.try_recv().unwrap(),
        ReloadVerdict::Rejected { generation: 1, .. }
    ));
    assert!(bench.flows.last("a").told().is_empty());
    let process = bench.board.snapshot().process.clone();
    assert_eq!(process.generation, 1);
    assert_eq!(process.rejected.unwrap().hash.as_deref(), Some("bad"));
    // The file goes back to what runs: no longer news.
    bench.supervisor.handle(Event::FileChanged, bench.now);
    let same = Ok(config(spec(vec![route("a")]), "first"));
    bench.supervisor.handle(Event::Loaded(same), bench.now);
    let process = bench.board.snapshot().process.clone();
    assert_eq!((process.rejected, process.generation), (None, 1));
}

#[test]
fn i5_a_refused_change_changes_nothing() {
    let mut bench = Bench::with(vec![route("a")]);
    let mut wanted = spec(vec![route("b")]);
    wanted.group = name("other");
    let mut verdict = bench.reload(Ok(config(wanted, "second")));
    let ReloadVerdict::Rejected { error, .. } = verdict.try_recv().unwrap() else {
        panic!()
    };
    assert!(error.contains("group cannot change"), "{error}");
    assert!(bench.flows.last("a").told().is_empty());
    assert!(bench.flows.of("b").is_empty());
}

#[test]
fn a_changed_route_restarts_strictly_after_its_end_and_others_are_untouched() {
    let mut bench = Bench::with(vec![route("a"), route("b"), route("c")]);
    let wanted = spec(vec![changed(&route("a")), route("b"), route("d")]);
    let mut verdict = bench.reload(Ok(config(wanted, "second")));
    assert!(matches!(bench.flows.last("a").told()[..], [Told::Drain(_)]));
    assert!(matches!(bench.flows.last("c").told()[..], [Told::Drain(_)]));
    assert!(bench.flows.last("b").told().is_empty());
    assert!(bench.flows.last("d").runs(), "a new route waits for nobody");
    assert_eq!(bench.flows.of("a").len(), 1);
    bench.end("a", FlowExit::Drained);
    assert_eq!(bench.flows.of("a").len(), 2);
    assert!(verdict.try_recv().is_err(), "c has not ended yet");
    bench.end("c", FlowExit::Drained);
    let results = results(verdict.try_recv().unwrap());
    assert_eq!(
        results,
        [
            (
                "a".into(),
                RouteResult::Restarted {
                    changed: vec!["commit_interval".into()]
                }
            ),
            ("b".into(), RouteResult::Kept),
            ("c".into(), RouteResult::Stopped),
            ("d".into(), RouteResult::Started),
        ]
    );
}

#[test]
fn b125_a_reload_does_not_wait_for_a_flow_that_cannot_drain() {
    let mut bench = Bench::with(vec![route("a"), route("b")]);
    let wanted = spec(vec![changed(&route("a")), route("b")]);
    let mut verdict = bench.reload(Ok(config(wanted, "second")));
    bench.pass(Duration::from_secs(11));
    let told = bench.flows.last("a").told();
    assert!(
        matches!(told[..], [Told::Drain(_), Told::Abort]),
        "{told:?}"
    );
    bench.end("a", FlowExit::Unconfirmed(Vec::new()));
    assert!(bench.flows.last("a").runs());
    assert_eq!(results(verdict.try_recv().unwrap()).len(), 2);
    assert!(bench.flows.last("b").told().is_empty());
}

#[test]
fn a_flow_that_never_ends_holds_up_its_own_route_only() {
    let mut bench = Bench::with(vec![route("a")]);
    let wanted = spec(vec![changed(&route("a"))]);
    let mut verdict = bench.reload(Ok(config(wanted, "second")));
    bench.pass(Duration::from_secs(20));
    assert_eq!(
        results(verdict.try_recv().unwrap())[0].1,
        RouteResult::StillStopping
    );
    // The next reload takes it from there: what was to follow is replaced.
    let newest = changed(&changed(&route("a")));
    let _verdict = bench.reload(Ok(config(spec(vec![newest, route("b")]), "third")));
    assert!(bench.flows.last("b").runs());
    assert_eq!(bench.flows.of("a").len(), 1, "B126");
    bench.end("a", FlowExit::Drained);
    assert_eq!(bench.flows.of("a").len(), 2);
}

#[test]
fn a_route_removed_and_wanted_again_starts_after_its_end() {
    let mut bench = Bench::with(vec![route("a")]);
    let _first = bench.reload(Ok(config(spec(vec![]), "second")));
    bench.pass(Duration::from_secs(16));
    let _second = bench.reload(Ok(config(spec(vec![route("a")]), "third")));
    assert_eq!(bench.flows.of("a").len(), 1);
    bench.end("a", FlowExit::Drained);
    assert_eq!(bench.flows.of("a").len(), 2);
}

#[test]
fn a_reload_asked_for_during_a_load_reads_the_files_again() {
    let mut bench = Bench::with(vec![]);
    bench.supervisor.take_effects();
    bench.supervisor.handle(Event::FileChanged, bench.now);
    assert_eq!(bench.supervisor.take_effects(), [Effect::Load]);
    let (reply, mut verdict) = oneshot::channel();
    bench.supervisor.handle(Event::Reload { reply }, bench.now);
    assert!(bench.supervisor.take_effects().is_empty());
    let second = Ok(config(spec(vec![]), "second"));
    bench.supervisor.handle(Event::Loaded(second), bench.now);
    assert!(verdict.try_recv().is_err());
    assert!(bench.supervisor.take_effects().contains(&Effect::Load));
    bench
        .supervisor
        .handle(Event::Loaded(Err(rejected())), bench.now);
    assert!(matches!(
        verdict.try_recv(),
        Ok(ReloadVerdict::Rejected { .. })
    ));
}

#[test]
fn a_file_event_without_a_change_touches_nothing() {
    let mut bench = Bench::with(vec![route("a")]);
    bench.supervisor.handle(Event::FileChanged, bench.now);
    let same = Ok(config(spec(vec![route("a")]), "first"));
    bench.supervisor.handle(Event::Loaded(same), bench.now);
    assert_eq!(bench.board.snapshot().process.generation, 1);
    assert!(bench.flows.last("a").told().is_empty());
}

#[test]
fn pause_drains_and_resume_starts_again() {
    let mut bench = Bench::with(vec![route("a")]);
    let (reply, mut answer) = oneshot::channel();
    bench.supervisor.handle(
        Event::Pause {
            route: name("a"),
            reply,
        },
        bench.now,
    );
    assert_eq!(answer.try_recv().unwrap(), event::Steered::Accepted);
    bench.end("a", FlowExit::Drained);
    assert_eq!(bench.state("a"), State::Paused);
    // A reload does not end a pause; the new settings apply when it is resumed.
    let mut verdict = bench.reload(Ok(config(spec(vec![changed(&route("a"))]), "second")));
    assert_eq!(
        results(verdict.try_recv().unwrap())[0].1,
        RouteResult::Paused
    );
    let (reply, _answer) = oneshot::channel();
    bench.supervisor.handle(
        Event::Resume {
            route: name("a"),
            reply,
        },
        bench.now,
    );
    assert_eq!(bench.flows.of("a").len(), 2);
}
