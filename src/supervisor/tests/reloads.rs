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
                    changed: vec!["workers".into()]
                }
            ),
            ("b".into(), RouteResult::Kept),
            ("c".into(), RouteResult::Stopped),
            ("d".into(), RouteResult::Started),
        ]
    );
}

#[test]
fn what_is_the_same_in_both_generations_is_held_once() {
    let mut bench = Bench::with(vec![route("a"), route("b")]);
    let before = bench.board.snapshot().process.spec.clone().unwrap();
    let wanted = spec(vec![changed(&route("a")), route("b")]);
    let _verdict = bench.reload(Ok(config(wanted, "second")));
    let after = bench.board.snapshot().process.spec.clone().unwrap();
    let same = |of: &str| Arc::ptr_eq(&before.routes[&name(of)], &after.routes[&name(of)]);
    assert!(same("b") && !same("a"));
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

/// All of it before the flow has ended.
#[test]
fn new_settings_outlive_a_pause_that_comes_before_they_run() {
    let mut bench = Bench::with(vec![route("a")]);
    let wanted = changed(&route("a"));
    let pause_and_resume = |bench: &mut Bench| {
        let (reply, route) = (oneshot::channel().0, name("a"));
        let pause = Event::Pause { route, reply };
        bench.supervisor.handle(pause, bench.now);
        let (reply, route) = (oneshot::channel().0, name("a"));
        let resume = Event::Resume { route, reply };
        bench.supervisor.handle(resume, bench.now);
    };
    pause_and_resume(&mut bench);
    let _verdict = bench.reload(Ok(config(spec(vec![wanted.clone()]), "second")));
    pause_and_resume(&mut bench);
    bench.end("a", FlowExit::Drained);
    assert_eq!(bench.flows.last("a").spec, wanted);
}

#[test]
fn a_live_change_touches_no_flow_but_its_own_and_the_verdict_waits_until_it_holds() {
    let mut bench = Bench::with(vec![route("a"), route("b")]);
    let wanted = spec(vec![tuned(&route("a")), route("b")]);
    let mut verdict = bench.reload(Ok(config(wanted, "second")));
    let told = bench.flows.last("a").told();
    assert!(
        matches!(&told[..], [Told::Change(r)] if **r == *tuned(&route("a"))),
        "{told:?}"
    );
    assert!(bench.flows.last("b").told().is_empty());
    assert!(verdict.try_recv().is_err(), "nobody has taken it over yet");
    bench.flows.last("a").take();
    bench.pump();
    let verdict = verdict.try_recv().unwrap();
    let ReloadVerdict::Applied { plan, .. } = &verdict else {
        panic!("{verdict}");
    };
    assert_eq!(plan.routes["a"].changed[0].to, "2s");
    let changed = vec!["commit_interval".into()];
    assert_eq!(results(verdict)[0].1, RouteResult::Changed { changed });
    assert_eq!(bench.flows.of("a").len(), 1);
}

#[test]
fn a_flow_that_does_not_take_a_change_over_is_reported() {
    let mut bench = Bench::with(vec![route("a")]);
    let mut verdict = bench.reload(Ok(config(spec(vec![tuned(&route("a"))]), "second")));
    bench.pass(Duration::from_secs(20));
    assert_eq!(
        results(verdict.try_recv().unwrap())[0].1,
        RouteResult::StillChanging
    );
    // One that ends instead takes it with its successor.
    bench.end("a", unreachable());
    bench.pass(Duration::from_secs(5));
    assert_eq!(bench.flows.of("a").len(), 2);
}

fn of_clusters(of: &str, sources: &[(&str, &str)]) -> Arc<RouteSpec> {
    let mut made = (*route(of)).clone();
    made.sources = sources.iter().map(|(name, at)| cluster(name, at)).collect();
    Arc::new(made)
}

#[test]
fn a_cluster_that_changes_is_a_matter_of_its_own_flows() {
    let before = of_clusters("a", &[("lisbon", "one:9092"), ("porto", "two:9092")]);
    let mut bench = Bench::with(vec![before]);
    let after = of_clusters(
        "a",
        &[
            ("lisbon", "one:9092"),
            ("porto", "new:9092"),
            ("faro", "x:9092"),
        ],
    );
    let mut verdict = bench.reload(Ok(config(spec(vec![after]), "second")));
    let flows = || -> Vec<(String, usize)> {
        let all = bench.flows.of("a");
        all.iter()
            .map(|f| (f.source.clone(), f.told().len()))
            .collect()
    };
    assert_eq!(
        flows(),
        [
            ("lisbon".into(), 0),
            ("porto".into(), 1),
            ("faro".into(), 0)
        ],
        "lisbon is not touched, porto drains, faro waits for nobody"
    );
    bench.flows.of("a")[1].exit(FlowExit::Drained);
    bench.pump();
    assert_eq!(bench.flows.of("a").len(), 4);
    assert_eq!(bench.flows.last("a").source, "porto");
    let result = results(verdict.try_recv().unwrap()).remove(0).1;
    assert!(
        matches!(result, RouteResult::Reconnected { .. }),
        "{result}"
    );
    assert_eq!(bench.board.snapshot().routes[&name("a")].flows.len(), 3);
    // One that goes leaves the others alone.
    let less = of_clusters("a", &[("porto", "new:9092"), ("faro", "x:9092")]);
    let mut verdict = bench.reload(Ok(config(spec(vec![less]), "third")));
    bench.flows.of("a")[0].exit(FlowExit::Drained);
    bench.pump();
    assert!(verdict.try_recv().is_ok());
    assert_eq!(bench.flows.of("a").len(), 4);
    assert_eq!(bench.board.snapshot().routes[&name("a")].flows.len(), 2);
}

#[test]
fn a_flow_that_does_not_leave_in_time_is_stopped_at_once_and_followed() {
    let mut bench = Bench::with(vec![route("a")]);
    let _verdict = bench.reload(Ok(config(spec(vec![changed(&route("a"))]), "second")));
    bench.pass(Duration::from_secs(16));
    let told = bench.flows.last("a").told();
    assert!(
        matches!(told[..], [Told::Drain(_), Told::Abort]),
        "{told:?}"
    );
    // Meanwhile it is not wanted at all any more.
    let _verdict = bench.reload(Ok(config(spec(vec![route("b")]), "third")));
    bench.end("a", FlowExit::Unconfirmed(Vec::new()));
    assert_eq!(bench.flows.of("a").len(), 1);
    assert!(!bench.board.snapshot().routes.contains_key(&name("a")));
}

#[test]
fn a_change_that_needs_a_word_is_refused_without_it() {
    let mut bench = Bench::with(["a", "b", "c", "d"].map(route).into());
    let mut verdict = bench.reload(Ok(config(spec(vec![route("a")]), "second")));
    let ReloadVerdict::Rejected { error, hash, .. } = verdict.try_recv().unwrap() else {
        panic!()
    };
    assert!(error.starts_with("3 of 4 running routes stop"), "{error}");
    assert_eq!(hash.as_deref(), Some("second"));
    assert!(bench.flows.all().iter().all(|f| f.told().is_empty()));
    let mut meant = spec(vec![route("a")]);
    meant.accept = vec![crate::config::spec::Accept::Gap];
    let _verdict = bench.reload(Ok(config(meant, "third")));
    assert_eq!(
        bench
            .flows
            .all()
            .iter()
            .filter(|f| !f.told().is_empty())
            .count(),
        3
    );
}
