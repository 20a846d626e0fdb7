//! One route of many changed, in a supervisor whose flows are stand-ins: the data path has its own
//! benchmark.

use crate::text;
use mirror::cli::{LoadRequest, NoDataLoss, Program, link};
use mirror::config::spec::{RouteSpec, Spec};
use mirror::flow::{FlowSpec, OnTaken};
use mirror::logging::Colour;
use mirror::observe::{FlowView, State};
use mirror::supervisor::{
    Board, Event, EventSender, Flows, Limits, LoadedConfig, OnExit, ReloadVerdict, RunningFlow,
    Supervisor,
};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::oneshot;

/// What a reload may take.
const LIMIT: Duration = Duration::from_secs(1);
/// Reloads, one after the other.
pub const TIMES: usize = 10;

/// A flow that is always well and takes every change over at once.
struct StandIn {
    view: Arc<FlowView>,
    touched: Arc<AtomicUsize>,
    _on_exit: Mutex<Option<OnExit>>,
}

impl RunningFlow for StandIn {
    fn view(&self) -> Arc<FlowView> {
        Arc::clone(&self.view)
    }

    fn drain(&self, _: Instant) {
        self.touched.fetch_add(1, Ordering::Relaxed);
    }

    fn abort(&self) {
        self.touched.fetch_add(1, Ordering::Relaxed);
    }

    fn change(&self, _: Arc<RouteSpec>, on_taken: OnTaken) {
        self.touched.fetch_add(1, Ordering::Relaxed);
        on_taken();
    }
}

/// Starts stand-ins and counts what is done to them.
struct StandIns(Arc<AtomicUsize>);

impl Flows for StandIns {
    fn start(&self, spec: FlowSpec, on_exit: OnExit) -> Arc<dyn RunningFlow> {
        let of = &spec.route.name;
        let view = FlowView::new(of.as_str(), "a", "b", "group");
        view.become_(State::Running, None);
        Arc::new(StandIn {
            view: Arc::new(view),
            touched: Arc::clone(&self.0),
            _on_exit: Mutex::new(Some(on_exit)),
        })
    }
}

/// A process with all its routes, but for their flows.
pub struct Process {
    program: Program,
    supervisor: Supervisor,
    inbox: UnboundedReceiver<Event>,
    board: Arc<Board>,
    touched: Arc<AtomicUsize>,
    file: PathBuf,
    routes: usize,
}

/// How long a reload took.
struct Taken {
    whole: Duration,
    loading: Duration,
}

impl Process {
    /// Starts with the file of `routes` routes in `folder`.
    pub fn start(folder: &Path, routes: usize) -> Self {
        let program = link::program();
        let file = text::write(folder, routes, 0);
        let touched = Arc::new(AtomicUsize::new(0));
        let (events, inbox) = EventSender::channel();
        let flows = Arc::new(StandIns(Arc::clone(&touched)));
        let board = Arc::new(Board::default());
        let mut supervisor = Supervisor::new(flows, events, Arc::clone(&board), Limits::default());
        supervisor.begin(load(&program, &file, None), Instant::now());
        Self {
            program,
            supervisor,
            inbox,
            board,
            touched,
            file,
            routes,
        }
    }

    /// Changes one route in the file and reloads.
    fn reload(&mut self, round: usize) -> Taken {
        let folder = self.file.parent().expect("its folder").to_path_buf();
        text::write(&folder, self.routes, round);
        let begun = Instant::now();
        let (reply, mut verdict) = oneshot::channel();
        self.supervisor.handle(Event::Reload { reply }, begun);
        self.supervisor.take_effects();
        let loaded = load(&self.program, &self.file, self.supervisor.running());
        let loading = begun.elapsed();
        let now = Instant::now();
        self.supervisor.handle(Event::Loaded(Ok(loaded)), now);
        while let Ok(event) = self.inbox.try_recv() {
            self.supervisor.handle(event, Instant::now());
        }
        let verdict = verdict.try_recv().expect("a verdict");
        let applied = matches!(verdict, ReloadVerdict::Applied { .. });
        assert!(applied, "{verdict}");
        let touched = self.touched.swap(0, Ordering::Relaxed);
        assert_eq!(touched, 1, "one route was changed");
        Taken {
            whole: begun.elapsed(),
            loading,
        }
    }

    /// Reloads [`TIMES`] times, and answers one scrape.
    pub fn live(&mut self) {
        for round in 1..=TIMES {
            self.reload(round);
        }
        let later = Instant::now() + Duration::from_secs(2);
        self.supervisor.tick(later);
        mirror::admin::metrics::render(&self.board).expect("a scrape");
    }
}

fn load(program: &Program, file: &Path, running: Option<Arc<Spec>>) -> LoadedConfig {
    let request = LoadRequest {
        files: vec![file.to_path_buf()],
        variables: program.variables.clone(),
        no_data_loss: NoDataLoss::AsWritten,
        colour: Colour::Off,
        running,
    };
    (program.load)(&request).unwrap_or_else(|rejected| panic!("{}", rejected.words()))
}

/// Changes one of `routes` routes ten times.
pub fn change_one(routes: usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut process = Process::start(folder.path(), routes);
    let mut taken: Vec<Taken> = (1..=TIMES).map(|round| process.reload(round)).collect();
    taken.sort_by_key(|taken| taken.whole);
    let (median, slowest) = (&taken[TIMES / 2], &taken[TIMES - 1]);
    println!(
        "\none of {routes} routes changed, {TIMES} times: {:.0} ms, of it loading {:.0} ms; the slowest {:.0} ms, limit {} ms{}; one flow touched",
        median.whole.as_secs_f64() * 1e3,
        median.loading.as_secs_f64() * 1e3,
        slowest.whole.as_secs_f64() * 1e3,
        LIMIT.as_millis(),
        if slowest.whole <= LIMIT { "" } else { "  over" }
    );
}
