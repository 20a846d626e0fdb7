//! What a thousand routes cost the control plane: loading them, changing one, and the memory that
//! their specs, places and views take. Flows are stand-ins, since the data path has its own benchmark.
//!
//! `cargo bench --bench routes [ROUTES]`

use mirror::cli::{LoadRequest, NoDataLoss, link};
use mirror::config::spec::RouteSpec;
use mirror::flow::{FlowSpec, OnTaken};
use mirror::logging::Colour;
use mirror::observe::{FlowView, State};
use mirror::supervisor::{
    Board, Event, EventSender, Flows, Limits, LoadedConfig, OnExit, ReloadVerdict, RunningFlow,
    Supervisor,
};
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use tokio::sync::oneshot;

/// As the program that is shipped.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

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

fn text(routes: usize, changed: usize) -> String {
    let mut text = "version: 1
clusters:
  a: { bootstrap_servers: ['a:9092'] }
  b: { bootstrap_servers: ['b:9092'] }
routes:
"
    .to_owned();
    for n in 0..routes {
        let round = if n == routes / 2 { changed } else { 0 };
        let _ = write!(
            text,
            "  route-{n}:
    source: a
    target: b
    topics: {{ include: ['team-{n}\\.[a-z]+'] }}
    handlers:
      - filter: {{ drop: tombstone }}
      - rename: {{ topic: '{{source}}.{{topic}}' }}
      - reformat: {{ set: {{ header.x-round: '{round}' }} }}
"
        );
    }
    text
}

/// Resident memory of this process, in MB.
fn resident_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kb = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok());
    kb.unwrap_or(f64::NAN) / 1000.0
}

fn main() {
    let routes = std::env::args()
        .find_map(|a| a.parse().ok())
        .unwrap_or(1000);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("mirror.yaml");
    std::fs::write(&file, text(routes, 0)).expect("the file is written");
    let program = link::program();
    let load = |file: PathBuf| -> LoadedConfig {
        let request = LoadRequest {
            files: vec![file],
            variables: program.variables.clone(),
            no_data_loss: NoDataLoss::AsWritten,
            colour: Colour::Off,
        };
        (program.load)(&request).unwrap_or_else(|rejected| panic!("{}", rejected.words()))
    };
    let before = resident_mb();
    let begun = Instant::now();
    let first = load(file.clone());
    println!(
        "routes {routes}: loaded in {:.0} ms",
        begun.elapsed().as_secs_f64() * 1e3
    );

    let touched = Arc::new(AtomicUsize::new(0));
    let (events, mut inbox) = EventSender::channel();
    let flows = Arc::new(StandIns(Arc::clone(&touched)));
    let board = Arc::new(Board::default());
    let mut supervisor = Supervisor::new(flows, events, Arc::clone(&board), Limits::default());
    let begun = Instant::now();
    supervisor.begin(first, Instant::now());
    println!("started in {:.0} ms", begun.elapsed().as_secs_f64() * 1e3);

    for round in 1..=10 {
        std::fs::write(&file, text(routes, round)).expect("the file is written");
        let begun = Instant::now();
        let (reply, mut verdict) = oneshot::channel();
        supervisor.handle(Event::Reload { reply }, Instant::now());
        supervisor.take_effects();
        let loaded = load(file.clone());
        let load_ms = begun.elapsed().as_secs_f64() * 1e3;
        supervisor.handle(Event::Loaded(Ok(loaded)), Instant::now());
        while let Ok(event) = inbox.try_recv() {
            supervisor.handle(event, Instant::now());
        }
        let verdict = verdict.try_recv().expect("a verdict");
        assert!(
            matches!(verdict, ReloadVerdict::Applied { .. }),
            "{verdict}"
        );
        let all_ms = begun.elapsed().as_secs_f64() * 1e3;
        let touched = touched.swap(0, Ordering::Relaxed);
        println!(
            "reload {round}: {all_ms:.0} ms, of it loading {load_ms:.0} ms; flows touched: {touched}"
        );
        assert_eq!(touched, 1, "one route was changed");
    }
    supervisor.tick(Instant::now() + std::time::Duration::from_secs(2));
    let scrape = mirror::admin::metrics::render(&board).map_or(0, |text| text.len());
    println!(
        "memory: {:.1} MB before, {:.1} MB with {routes} routes after 10 reloads and a scrape of {} kB",
        before,
        resident_mb(),
        scrape / 1000
    );
}
