use super::testing::{Fakes, Told, changed, cluster, name, route, route_until_end, spec};
use super::*;
use crate::config::spec::{RouteSpec, Spec};
use crate::flow::{FlowExit, Unconfirmed};
use crate::observe::{Reason, State};
use crate::record::TopicPartition;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::oneshot;

/// A supervisor over fakes, with a clock that the test moves.
struct Bench {
    supervisor: Supervisor,
    events: UnboundedReceiver<Event>,
    flows: Arc<Fakes>,
    board: Arc<Board>,
    now: Instant,
}

fn config(spec: Spec, hash: &str) -> LoadedConfig {
    LoadedConfig {
        spec: Arc::new(spec),
        hash: hash.to_owned(),
        files: vec!["mirror.yaml".into()],
        warnings: String::new(),
    }
}

impl Bench {
    fn with(routes: Vec<Arc<RouteSpec>>) -> Self {
        let (sender, events) = EventSender::channel();
        let flows = Arc::new(Fakes::default());
        let board = Arc::new(Board::default());
        let limits = Limits {
            jitter: || 1.0,
            ..Limits::default()
        };
        let supervisor = Supervisor::new(flows.clone(), sender, board.clone(), limits);
        let mut bench = Self {
            supervisor,
            events,
            flows,
            board,
            now: Instant::now(),
        };
        bench
            .supervisor
            .begin(config(spec(routes), "first"), bench.now);
        bench
    }

    /// Handles what the fakes have sent.
    fn pump(&mut self) {
        while let Ok(event) = self.events.try_recv() {
            self.supervisor.handle(event, self.now);
        }
    }

    /// Moves the clock, stopping at each deadline on the way.
    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            let next = self
                .supervisor
                .deadline(self.now)
                .max(self.now + Duration::from_millis(1));
            if next > end {
                break;
            }
            self.now = next;
            self.supervisor.tick(self.now);
            self.pump();
        }
        self.now = end;
    }

    fn end(&mut self, route: &str, exit: FlowExit) {
        self.flows.last(route).exit(exit);
        self.pump();
    }

    /// Asks for a reload that loads `result`.
    fn reload(
        &mut self,
        result: Result<LoadedConfig, RejectedConfig>,
    ) -> oneshot::Receiver<ReloadVerdict> {
        let (reply, verdict) = oneshot::channel();
        self.supervisor.handle(Event::Reload { reply }, self.now);
        assert!(self.supervisor.take_effects().contains(&Effect::Load));
        self.supervisor.handle(Event::Loaded(result), self.now);
        verdict
    }

    fn state(&self, of: &str) -> State {
        self.board.snapshot().routes[&name(of)].condition().state
    }

    fn signal(&mut self, signal: Signal) {
        self.supervisor.handle(Event::Signal(signal), self.now);
    }
}

fn unreachable() -> FlowExit {
    FlowExit::Failed(Reason::NoTopics)
}

fn rejected() -> RejectedConfig {
    RejectedConfig {
        first_error: "mirror.yaml:3:1: unknown key".into(),
        rendered: String::new(),
        hash: Some("bad".into()),
        files: Vec::new(),
    }
}

fn results(verdict: ReloadVerdict) -> Vec<(String, RouteResult)> {
    match verdict {
        ReloadVerdict::Applied { routes, .. } => routes.into_iter().collect(),
        other => panic!("{other}"),
    }
}

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
