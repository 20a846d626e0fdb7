//! `mirror` itself, as `mirror run` runs it: loader, supervisor, admin socket, file watch.

use crate::admin::{Admin, Desk};
use crate::cli::{LoadRequest, NoDataLoss, Program, watch};
use crate::logging::Colour;
use crate::supervisor::board::Snapshot;
use crate::supervisor::{
    self, Board, Event, EventSender, Limits, Load, LoadOrder, LoadedConfig, Outcome, Signal,
    Supervisor,
};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::UnboundedReceiver;

/// After the outcome is known, threads that still run are not waited for longer than this.
const LINGER: Duration = Duration::from_millis(200);

/// A supervisor on a thread of its own.
pub struct Mirror {
    board: Arc<Board>,
    events: EventSender,
    outcome: Receiver<Result<Outcome, String>>,
}

impl Mirror {
    /// Loads `file` and runs what it says.
    ///
    /// # Errors
    /// The file is refused, or there is no thread.
    pub fn start(file: &Path, program: &Program) -> Result<Self, String> {
        let request = LoadRequest {
            files: vec![file.to_owned()],
            variables: program.variables.clone(),
            no_data_loss: NoDataLoss::Required,
            colour: Colour::Off,
            running: None,
        };
        let loader = Arc::clone(&program.load);
        let load: Load = Arc::new(move |order| loader(&request.with(order)));
        let first = load(LoadOrder::default()).map_err(|rejected| rejected.words().to_owned())?;
        let (events, inbox) = EventSender::channel();
        let (tell, outcome) = channel();
        let mirror = Self {
            board: Arc::new(Board::default()),
            events: events.clone(),
            outcome,
        };
        let parts = Parts {
            first,
            load,
            program: program.clone(),
            board: mirror.board.clone(),
            events,
        };
        std::thread::Builder::new()
            .name("sandbox-mirror".into())
            .spawn(move || {
                let _ = tell.send(parts.run(inbox));
            })
            .map_err(|e| format!("no thread for the supervisor: {e}"))?;
        Ok(mirror)
    }

    /// What is seen of it now.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.board.snapshot()
    }

    /// Asks it to stop: gently the first time, at once the second.
    pub fn stop(&self) {
        self.events.send(Event::Signal(Signal::Stop));
    }

    /// Waits for its end, `None` while it runs.
    ///
    /// # Errors
    /// Why it could not run.
    pub fn outcome(&self, within: Duration) -> Result<Option<Outcome>, String> {
        match self.outcome.recv_timeout(within) {
            Ok(outcome) => outcome.map(Some),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err("the supervisor panicked".into()),
        }
    }
}

/// What the supervisor's thread is given.
struct Parts {
    first: LoadedConfig,
    load: Load,
    program: Program,
    board: Arc<Board>,
    events: EventSender,
}

impl Parts {
    fn run(self, inbox: UnboundedReceiver<Event>) -> Result<Outcome, String> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("mirror-control")
            .enable_all()
            .build()
            .map_err(|error| format!("no runtime: {error}"))?;
        let outcome = runtime.block_on(self.supervise(inbox));
        runtime.shutdown_timeout(LINGER);
        outcome
    }

    async fn supervise(self, inbox: UnboundedReceiver<Event>) -> Result<Outcome, String> {
        let desk = Desk {
            board: self.board.clone(),
            events: self.events.clone(),
            load: self.load.clone(),
        };
        let _admin = Admin::start(&self.first.spec.admin, &self.first.spec.group, desk)
            .map_err(|error| error.to_string())?;
        let watch = watch(self.first.spec.reload.settle, self.events.clone());
        let flows = self.program.flows;
        let mut supervisor = Supervisor::new(flows, self.events, self.board, Limits::default());
        supervisor.begin(self.first, Instant::now());
        let follow = |files, settle| {
            if let Some(watch) = &watch {
                watch.follow(files, settle);
            }
        };
        Ok(supervisor::run(supervisor, inbox, self.load, follow).await)
    }
}
