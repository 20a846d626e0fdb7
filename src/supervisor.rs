//! The one control loop: events in, plans applied, routes owned by name.
//!
//! [`Supervisor`] is a plain state machine (`handle` an [`Event`], `tick` the clock) so that every
//! order of events can be tried without waiting; [`run`] drives it. Routes are islands: what one
//! does changes nothing of another (I6), and a failed load changes nothing at all (I5).

use crate::config::spec::Spec;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::UnboundedReceiver;

pub mod board;
mod core;
mod ending;
pub mod event;
pub mod flows;
pub mod journal;
mod leftover;
pub mod meter;
mod reload;
mod route;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
pub mod totals;
pub mod verdict;

pub use self::core::{Limits, Supervisor};
pub use board::Board;
pub use event::{Event, EventSender, Signal};
pub use flows::{Flows, OnExit, RunningFlow};
pub use leftover::{FlowId, Leftover, Outcome};
pub use verdict::{ReloadVerdict, RouteResult};

/// A configuration that may run.
#[derive(Clone, Debug)]
pub struct LoadedConfig {
    /// What is wanted.
    pub spec: Arc<Spec>,
    /// Hash of the content of every file used.
    pub hash: String,
    /// Every file used, to be watched.
    pub files: Vec<PathBuf>,
    /// Warnings, rendered for a terminal; empty if there are none.
    pub warnings: String,
}

/// A configuration that may not.
#[derive(Clone, Debug)]
pub struct RejectedConfig {
    /// The first error in one line: file, line, message.
    pub first_error: String,
    /// Every error, rendered for a terminal.
    pub rendered: String,
    /// Hash of the content of every file read, if they could be read.
    pub hash: Option<String>,
    /// Every file that was read or looked for.
    pub files: Vec<PathBuf>,
}

impl RejectedConfig {
    /// Every error as rendered, or the first one where nothing was rendered.
    pub fn words(&self) -> &str {
        if self.rendered.is_empty() {
            &self.first_error
        } else {
            self.rendered.trim_end()
        }
    }
}

/// What to load.
#[derive(Clone, Debug, Default)]
pub struct LoadOrder {
    /// Other files than the process's own, for a plan.
    pub files: Option<Vec<PathBuf>>,
    /// The configuration that runs, if one does: what is the same in both is held once.
    pub running: Option<Arc<Spec>>,
}

/// Loads a configuration as this process runs it: its own files at start and at each reload, or others
/// for a plan. Called on threads that may block.
pub type Load = Arc<dyn Fn(LoadOrder) -> Result<LoadedConfig, RejectedConfig> + Send + Sync>;

/// What the state machine wants done by its driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Load the configuration and bring the result as [`Event::Loaded`].
    Load,
    /// Watch these files from now on.
    Follow {
        /// The files.
        files: Vec<PathBuf>,
        /// Their own word on how long to wait for quiet, if they could be read.
        settle: Option<Duration>,
    },
}

/// Runs `supervisor` until it has nothing left to run. `follow` is told which files to watch.
pub async fn run(
    mut supervisor: Supervisor,
    mut events: UnboundedReceiver<Event>,
    load: Load,
    follow: impl Fn(Vec<PathBuf>, Option<Duration>),
) -> Outcome {
    loop {
        for effect in supervisor.take_effects() {
            match effect {
                Effect::Load => {
                    let running = supervisor.running();
                    load_aside(&load, running, supervisor.events());
                }
                Effect::Follow { files, settle } => follow(files, settle),
            }
        }
        if let Some(outcome) = supervisor.finished() {
            return outcome;
        }
        let due = tokio::time::Instant::from_std(supervisor.deadline(Instant::now()));
        tokio::select! {
            Some(event) = events.recv() => supervisor.handle(event, Instant::now()),
            () = tokio::time::sleep_until(due) => supervisor.tick(Instant::now()),
        }
    }
}

/// Files are read and regexes compiled away from the loop, which goes on serving exits meanwhile.
fn load_aside(load: &Load, running: Option<Arc<Spec>>, events: EventSender) {
    let load = Arc::clone(load);
    let order = LoadOrder {
        files: None,
        running,
    };
    tokio::task::spawn_blocking(move || {
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| load(order)));
        let result = caught.unwrap_or_else(|_| {
            Err(RejectedConfig {
                first_error: "the configuration loader panicked; this is a bug in mirror".into(),
                rendered: String::new(),
                hash: None,
                files: Vec::new(),
            })
        });
        events.send(Event::Loaded(result));
    });
}
