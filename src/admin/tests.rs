use super::*;
use crate::admin::client::{Answer, Method, ask};
use crate::admin::status::Status;
use crate::observe::{Counters, Reason, State};
use crate::supervisor::event::Steered;
use crate::supervisor::testing::{Fakes, name, route, spec, tuned};
use crate::supervisor::{
    Event, Limits, LoadOrder, LoadedConfig, RejectedConfig, ReloadVerdict, Signal, Supervisor,
};
use std::io::{Read, Write};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::UnboundedReceiver;

/// A served board, with a supervisor that the test turns by hand.
struct Bench {
    admin: Admin,
    supervisor: Supervisor,
    inbox: UnboundedReceiver<Event>,
    flows: Arc<Fakes>,
    _folder: tempfile::TempDir,
}

/// Loads `a` changed and no `b`, or rejects a file that is named.
fn load() -> crate::supervisor::Load {
    Arc::new(|order| match order.files {
        None => Ok(LoadedConfig {
            spec: Arc::new(spec(vec![tuned(&route("a"))])),
            hash: "second".into(),
            files: Vec::new(),
            warnings: String::new(),
        }),
        Some(files) => Err(RejectedConfig {
            first_error: format!("{}: no such file", files[0].display()),
            rendered: String::new(),
            hash: None,
            files: Vec::new(),
        }),
    })
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (events, inbox) = EventSender::channel();
        let board = Arc::new(Board::default());
        let flows = Arc::new(Fakes::default());
        let desk = Desk {
            board: board.clone(),
            events: events.clone(),
            load: load(),
        };
        let admin = AdminSpec {
            listen: Some(([127, 0, 0, 1], 0).into()),
            socket: Some(folder.path().join("mirror.sock")),
            token: None,
        };
        let admin = Admin::start(&admin, &name("default"), desk).unwrap();
        let mut supervisor = Supervisor::new(flows.clone(), events, board, Limits::default());
        let first = LoadedConfig {
            spec: Arc::new(spec(vec![route("a"), route("b")])),
            hash: "first".into(),
            files: Vec::new(),
            warnings: String::new(),
        };
        supervisor.begin(first, Instant::now());
        Self {
            admin,
            supervisor,
            inbox,
            flows,
            _folder: folder,
        }
    }

    fn ask(&self, method: Method<'_>, path: &str) -> Answer {
        let places = [self.admin.socket().to_owned()];
        ask(&places, method, path, Duration::from_secs(20)).unwrap()
    }

    fn get(&self, path: &str) -> Answer {
        self.ask(Method::Get, path)
    }
}

#[test]
fn ready_when_every_flow_is_past_starting_and_not_while_stopping() {
    let mut bench = Bench::new();
    assert_eq!(bench.get("/livez").code, 200);
    bench.flows.last("a").view.become_(State::Lagging, None);
    let waiting = bench.get("/readyz");
    assert_eq!(waiting.code, 503);
    assert!(
        waiting.body.contains("route b (lisbon -> hub): starting"),
        "{}",
        waiting.body
    );
    assert!(!waiting.body.contains("route a"));
    bench.flows.last("b").view.become_(State::Running, None);
    assert_eq!(bench.get("/readyz").code, 200);
    bench
        .supervisor
        .handle(Event::Signal(Signal::Stop), Instant::now());
    assert_eq!(bench.get("/readyz").code, 503);
}

#[test]
fn metrics_exist_with_zero_and_read_the_counters() {
    let bench = Bench::new();
    let before = bench.get("/metrics").body;
    assert!(
        before
            .contains(r#"mirror_fetched_records_total{route="a",source="lisbon",target="hub"} 0"#),
        "{before}"
    );
    let counters = &bench.flows.last("a").view.counters;
    Counters::add(&counters.fetched_records, 7);
    Counters::add(&counters.delay_us_sum, 1_500_000);
    Counters::set(&counters.in_flight_records, 3);
    let text = bench.get("/metrics").body;
    for line in [
        r#"mirror_fetched_records_total{route="a",source="lisbon",target="hub"} 7"#,
        r#"mirror_delay_seconds_total{route="a",source="lisbon",target="hub"} 1.5"#,
        r#"mirror_in_flight_records{route="a",source="lisbon",target="hub"} 3"#,
        r#"mirror_route_state{route="a",state="starting"} 1"#,
        r#"mirror_route_state{route="a",state="failed"} 0"#,
        "mirror_generation 1",
        "mirror_reload_success 1",
        r#"mirror_reloads_total{result="rejected"} 0"#,
        "# EOF",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
}

#[test]
fn status_is_one_document_and_a_route_has_a_page() {
    let bench = Bench::new();
    let reason = Reason::Unreachable {
        cluster: "hub".into(),
        detail: "refused".into(),
    };
    bench
        .flows
        .last("a")
        .view
        .become_(State::Failed, Some(reason));
    let status: Status = serde_json::from_str(&bench.get("/api/v1/status").body).unwrap();
    assert_eq!(status.routes["a"].condition.state, "failed");
    let reason = status.routes["a"].condition.reason.as_ref().unwrap();
    assert_eq!(
        (reason.code.as_str(), status.generation),
        ("unreachable", 1)
    );
    assert_eq!(bench.get("/api/v1/routes/b").code, 200);
    assert_eq!(bench.get("/api/v1/routes/c").code, 404);
}

#[test]
fn a_reload_waits_for_its_verdict() {
    let mut bench = Bench::new();
    let socket = vec![bench.admin.socket().to_owned()];
    let patience = Duration::from_secs(20);
    let asking =
        std::thread::spawn(move || ask(&socket, Method::Post, "/api/v1/reload", patience).unwrap());
    let Some(Event::Reload { reply }) = bench.inbox.blocking_recv() else {
        panic!()
    };
    let verdict = ReloadVerdict::Rejected {
        generation: 1,
        error: "x".into(),
        hash: None,
    };
    reply.send(verdict.clone()).unwrap();
    let answer = asking.join().unwrap();
    assert_eq!(answer.code, 409);
    assert_eq!(
        serde_json::from_str::<ReloadVerdict>(&answer.body).unwrap(),
        verdict
    );
}

#[test]
fn pausing_a_route_that_is_not_there_is_said() {
    let mut bench = Bench::new();
    let socket = vec![bench.admin.socket().to_owned()];
    let asking = std::thread::spawn(move || {
        ask(
            &socket,
            Method::Post,
            "/api/v1/routes/x/pause",
            Duration::from_secs(20),
        )
        .unwrap()
    });
    let Some(Event::Pause { reply, .. }) = bench.inbox.blocking_recv() else {
        panic!()
    };
    reply.send(Steered::Unknown).unwrap();
    assert_eq!(asking.join().unwrap().code, 404);
}

/// The answer to a request over TCP, with these lines in its head.
fn over_tcp(at: SocketAddr, request: &str, head: &str) -> String {
    let mut tcp = std::net::TcpStream::connect(at).unwrap();
    write!(
        tcp,
        "{request} HTTP/1.1\r\nHost: x\r\n{head}Connection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    tcp.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn tcp_may_look_and_not_change() {
    let bench = Bench::new();
    let at = bench.admin.address().unwrap();
    assert!(over_tcp(at, "GET /livez", "").starts_with("HTTP/1.1 200"));
    for head in ["", "Authorization: Bearer \r\n"] {
        let refused = over_tcp(at, "POST /api/v1/reload", head);
        assert!(refused.starts_with("HTTP/1.1 403"), "{refused}");
        assert!(refused.contains("`admin.write`"), "{refused}");
    }
}

#[test]
fn tcp_may_change_with_the_token_of_what_runs() {
    let mut bench = Bench::new();
    let at = bench.admin.address().unwrap();
    let mut changed = spec(vec![route("a"), route("b")]);
    changed.admin.token = Some(crate::config::secret::Secret::new("0123456789abcdef"));
    let now = Instant::now();
    let (reply, _verdict) = tokio::sync::oneshot::channel();
    bench.supervisor.handle(Event::Reload { reply }, now);
    let loaded = LoadedConfig {
        spec: Arc::new(changed),
        hash: "second".into(),
        files: Vec::new(),
        warnings: String::new(),
    };
    bench.supervisor.handle(Event::Loaded(Ok(loaded)), now);
    let pause = "POST /api/v1/routes/a/pause";
    for head in [
        "",
        "Authorization: Bearer 0123456789abcdeX\r\n",
        "Authorization: Bearer 0123456789abcdef0\r\n",
        "Authorization: Basic 0123456789abcdef\r\n",
    ] {
        let refused = over_tcp(at, pause, head);
        assert!(refused.starts_with("HTTP/1.1 401"), "{refused}");
        assert!(
            refused.to_lowercase().contains("www-authenticate: bearer"),
            "{refused}"
        );
    }
    std::thread::scope(|scope| {
        let asking =
            scope.spawn(move || over_tcp(at, pause, "authorization: bearer 0123456789abcdef\r\n"));
        let Some(Event::Pause { reply, .. }) = bench.inbox.blocking_recv() else {
            panic!()
        };
        reply.send(Steered::Accepted).unwrap();
        let answer = asking.join().unwrap();
        assert!(answer.starts_with("HTTP/1.1 202"), "{answer}");
    });
}

#[test]
fn a_busy_port_is_an_error_that_says_what_to_do() {
    let bench = Bench::new();
    let folder = tempfile::tempdir().unwrap();
    let spec = AdminSpec {
        listen: bench.admin.address(),
        socket: Some(folder.path().join("other.sock")),
        token: None,
    };
    let desk = Desk {
        board: Arc::new(Board::default()),
        events: EventSender::channel().0,
        load: load(),
    };
    let error = Admin::start(&spec, &name("default"), desk)
        .unwrap_err()
        .to_string();
    assert!(error.contains("choose another address"), "{error}");
}

#[test]
fn the_plan_that_is_shown_is_the_plan_that_is_applied() {
    let mut bench = Bench::new();
    let shown = bench.ask(Method::PostJson("{}"), "/api/v1/plan");
    let shown: plan::PlanPage = serde_json::from_str(&shown.body).unwrap();
    assert_eq!(
        (shown.generation, shown.wanted_hash.as_str()),
        (1, "second")
    );
    let t = shown.plan.tally;
    assert_eq!((t.live, t.stop, t.keep), (1, 1, 0));
    let now = Instant::now();
    let (reply, mut verdict) = tokio::sync::oneshot::channel();
    bench.supervisor.handle(Event::Reload { reply }, now);
    bench
        .supervisor
        .handle(Event::Loaded(load()(LoadOrder::default())), now);
    bench.flows.last("a").take();
    bench.flows.last("b").exit(crate::flow::FlowExit::Drained);
    while let Ok(event) = bench.inbox.try_recv() {
        bench.supervisor.handle(event, now);
    }
    let Ok(ReloadVerdict::Applied { plan, .. }) = verdict.try_recv() else {
        panic!("not applied");
    };
    assert_eq!(*plan, shown.plan);
    // And after it there is nothing left to do.
    let again = bench.ask(Method::PostJson("{}"), "/api/v1/plan");
    let again: plan::PlanPage = serde_json::from_str(&again.body).unwrap();
    assert!(again.plan.is_empty() && again.generation == 2);
    let config = bench.get("/api/v1/config").body;
    let config: plan::ConfigPage = serde_json::from_str(&config).unwrap();
    assert_eq!(config.generation, 2);
    assert_eq!(config.effective.routes["a"]["commit_interval"], "2s");
    let events = bench.get("/api/v1/events").body;
    assert!(events.contains("reload_applied"), "{events}");
}

#[test]
fn a_plan_of_files_that_may_not_run_says_why() {
    let bench = Bench::new();
    let answer = bench.ask(Method::PostJson(r#"{"files":["/x.yaml"]}"#), "/api/v1/plan");
    assert_eq!(answer.code, 409);
    assert!(
        answer.body.contains("/x.yaml: no such file"),
        "{}",
        answer.body
    );
}

#[test]
fn no_answer_holds_a_secret() {
    let bench = Bench::new();
    crate::redact::remember(["canary-in-an-answer"]);
    let answer = bench.get("/api/v1/routes/canary-in-an-answer");
    assert_eq!(answer.code, 404);
    assert_eq!(answer.body, "no route is called ***\n");
}
