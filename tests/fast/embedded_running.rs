//! Runs a configuration on embedded clusters: its flows one by one, or all of it by the supervisor.

use crate::embedded::{Cluster, PATIENCE};
use mirror::cli::link;
use mirror::cli::{LoadRequest, NoDataLoss, Program};
use mirror::config::spec::{RouteSpec, Spec, Until};
use mirror::flow::{self, Environment, FlowExit, FlowHandle, FlowSpec};
use mirror::logging::Colour;
use mirror::supervisor::{
    self, Board, Event, EventSender, Limits, Load, LoadedConfig, Outcome, RejectedConfig,
    ReloadVerdict, Signal, Supervisor,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::Instant;

/// A file with clusters `a` and `b` and the route `copy` of `orders…` between them; `more` is what
/// the route says beside that, indented by four.
pub fn copy(a: &Cluster, b: &Cluster, more: &str) -> String {
    format!(
        "version: 1
clusters:
  a: {{ bootstrap_servers: ['{}'] }}
  b: {{ bootstrap_servers: ['{}'] }}
defaults: {{ commit_interval: 200ms, discovery_interval: 1s }}
admin: {{ listen: off }}
routes:
  copy:
    source: a
    target: b
    topics: {{ include: ['orders.*'] }}
{more}",
        a.bootstrap, b.bootstrap
    )
}

/// A configuration in a folder of its own.
pub struct File {
    folder: tempfile::TempDir,
    environment: Environment,
}

impl File {
    pub fn new(text: &str) -> Self {
        Self::embedding(text, Environment::default())
    }

    pub fn embedding(text: &str, environment: Environment) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let file = Self {
            folder,
            environment,
        };
        file.write(text);
        file
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("mirror.yaml")
    }

    pub fn write(&self, text: &str) {
        std::fs::write(self.path(), text).expect("written");
    }

    pub fn load(&self) -> LoadedConfig {
        let program = link::embedding(self.environment.clone());
        load(&program, &self.path()).unwrap_or_else(|e| panic!("{}", e.words()))
    }

    /// Copies everything that is there, flow after flow, and ends.
    pub fn copy_all(&self) {
        for running in self.start(Until::End) {
            assert_eq!(running.exit(), FlowExit::CaughtUp);
        }
    }

    /// Starts every flow.
    pub fn start(&self, until: Until) -> Vec<Running> {
        log();
        let spec = self.load().spec;
        let mut all = Vec::new();
        for route in spec.routes.values() {
            let mut route = RouteSpec::clone(route);
            route.until = until;
            all.extend(self.flows(&spec, Arc::new(route)));
        }
        all
    }

    fn flows(&self, spec: &Spec, route: Arc<RouteSpec>) -> Vec<Running> {
        let mut flows = Vec::new();
        for source in &route.sources {
            for target in &route.targets {
                let (tell, exit) = channel();
                let spec = FlowSpec {
                    group: spec.group.clone(),
                    route: route.clone(),
                    source: source.clone(),
                    target: target.clone(),
                    share_bytes: u64::MAX,
                };
                let on_exit = Box::new(move |e| {
                    let _ = tell.send(e);
                });
                let handle = flow::spawn(spec, &self.environment, on_exit);
                flows.push(Running { handle, exit });
            }
        }
        flows
    }
}

fn load(program: &Program, path: &Path) -> Result<LoadedConfig, RejectedConfig> {
    (program.load)(&LoadRequest {
        files: vec![path.to_owned()],
        variables: program.variables.clone(),
        no_data_loss: NoDataLoss::AsWritten,
        colour: Colour::Off,
        running: None,
    })
}

/// `LOG=debug cargo test …` shows what the engine says.
fn log() {
    if let Ok(filter) = std::env::var("LOG") {
        let _ = tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_test_writer()
            .try_init();
    }
}

/// One flow.
pub struct Running {
    pub handle: FlowHandle,
    exit: Receiver<FlowExit>,
}

impl Running {
    pub fn exit(&self) -> FlowExit {
        // A drain may take all of its own time, where the group does not let a member go.
        let exit = self.exit.recv_timeout(2 * PATIENCE);
        exit.unwrap_or_else(|_| panic!("no exit: {:#?}", self.handle.view))
    }

    pub fn drain(&self) -> FlowExit {
        self.handle.drain(Instant::now() + PATIENCE);
        self.exit()
    }
}

/// The supervisor with all routes of a file, on a thread.
pub struct Supervised {
    pub board: Arc<Board>,
    events: EventSender,
    thread: JoinHandle<Outcome>,
}

impl Supervised {
    pub fn start(file: &File) -> Self {
        log();
        let program = link::embedding(file.environment.clone());
        let (path, loader) = (file.path(), program.clone());
        let load: Load = Arc::new(move |_| load(&loader, &path));
        let (events, inbox) = EventSender::channel();
        let board = Arc::new(Board::default());
        let first = file.load();
        let (sender, shown) = (events.clone(), board.clone());
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            runtime.block_on(async {
                let mut supervisor =
                    Supervisor::new(program.flows, sender, shown, Limits::default());
                supervisor.begin(first, Instant::now());
                supervisor::run(supervisor, inbox, load, |_, _| {}).await
            })
        });
        Self {
            board,
            events,
            thread,
        }
    }

    pub fn reload(&self) -> ReloadVerdict {
        let (reply, verdict) = tokio::sync::oneshot::channel();
        self.events.send(Event::Reload { reply });
        verdict.blocking_recv().expect("a verdict")
    }

    pub fn stop(self) -> Outcome {
        self.events.send(Event::Signal(Signal::Stop));
        self.thread.join().expect("no panic")
    }
}
