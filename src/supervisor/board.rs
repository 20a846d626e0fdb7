//! What the supervisor lets others see: one snapshot, replaced as a whole.

use super::journal::{Happened, Journal};
use super::leftover::FlowId;
use super::meter::Rate;
use super::totals::Totals;
use super::verdict::ReloadVerdict;
use crate::config::spec::{Name, Spec, Watch};
use crate::observe::{Condition, FlowView, Reason, State};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

/// What the process as a whole is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Before the first configuration was applied.
    Starting,
    /// Routes run.
    Running,
    /// Stopping gently.
    Draining,
    /// Stopping at once.
    Aborting,
}

/// What is seen of the process.
#[derive(Clone, Debug)]
pub struct ProcessView {
    /// The group's name.
    pub group: Option<Name>,
    /// What it is doing.
    pub phase: Phase,
    /// When it began.
    pub started: SystemTime,
    /// How many configurations were applied.
    pub generation: u64,
    /// Hash of the running configuration's files.
    pub hash: String,
    /// When the running configuration was applied.
    pub applied_at: SystemTime,
    /// The verdict of the last reload, and when it fell.
    pub last_reload: Option<(SystemTime, ReloadVerdict)>,
    /// Whether the last load was rejected: then the file and what runs differ.
    pub rejected: Option<Rejection>,
    /// Reloads that were applied.
    pub reloads_applied: u64,
    /// Reloads that were rejected.
    pub reloads_rejected: u64,
    /// Whether the file is watched.
    pub watch: Watch,
    /// What keeps changes of the files from being seen as they should.
    pub watch_troubles: Vec<String>,
    /// The configuration that runs.
    pub spec: Option<Arc<Spec>>,
}

/// A configuration that may not run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rejection {
    /// The first error in one line.
    pub error: String,
    /// Hash of the rejected files, if they could be read.
    pub hash: Option<String>,
    /// When, in seconds since 1970.
    pub at: f64,
}

/// What is seen of one route.
#[derive(Clone, Debug)]
pub struct RouteView {
    /// The user's words about it.
    pub about: Option<String>,
    /// Why it is held as a whole, if it is.
    pub held: Option<Condition>,
    /// Its flows, sources × targets.
    pub flows: Vec<FlowEntry>,
}

/// What is seen of one flow's place.
#[derive(Clone, Debug)]
pub struct FlowEntry {
    /// The place.
    pub id: FlowId,
    /// The flow that has it now, or had it last.
    pub view: Arc<FlowView>,
    /// Counters of the flows that had it before.
    pub carried: Totals,
    /// How often it was started again after a failure.
    pub restarts: u64,
    /// How fast it is.
    pub rate: Rate,
    /// Whether it has copied since the route was started with its present settings.
    pub has_run: bool,
}

impl FlowEntry {
    /// Counters over every flow that had the place.
    pub fn totals(&self) -> Totals {
        self.carried.plus(&Totals::of(&self.view.counters))
    }
}

impl RouteView {
    /// The route's condition: what holds it, else that of the flow that needs most attention.
    pub fn condition(&self) -> Condition {
        if let Some(held) = &self.held {
            return held.clone();
        }
        let worst = self
            .flows
            .iter()
            .map(|flow| flow.view.condition())
            .max_by_key(|condition| attention(condition.state));
        worst.unwrap_or(Condition {
            state: State::Stopped,
            reason: None::<Reason>,
            since: SystemTime::UNIX_EPOCH,
            next_try: None,
        })
    }
}

/// How much a state asks for attention: a route is as well as its worst flow.
fn attention(state: State) -> u8 {
    match state {
        State::Failed => 7,
        State::Stalled => 6,
        State::Draining => 5,
        State::Starting => 4,
        State::Paused => 3,
        State::Lagging => 2,
        State::Running => 1,
        State::Stopped => 0,
    }
}

/// Everything that is seen, at one moment.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The process.
    pub process: ProcessView,
    /// Its routes.
    pub routes: BTreeMap<Name, RouteView>,
}

/// Holds the newest snapshot. Readers never wait for the supervisor, nor it for them.
#[derive(Debug)]
pub struct Board {
    snapshot: Mutex<Arc<Snapshot>>,
    journal: Mutex<Journal>,
}

impl Default for Board {
    fn default() -> Self {
        let now = SystemTime::now();
        let process = ProcessView {
            group: None,
            phase: Phase::Starting,
            started: now,
            generation: 0,
            hash: String::new(),
            applied_at: now,
            last_reload: None,
            rejected: None,
            reloads_applied: 0,
            reloads_rejected: 0,
            watch: Watch::Off,
            watch_troubles: Vec::new(),
            spec: None,
        };
        Self {
            snapshot: Mutex::new(Arc::new(Snapshot {
                process,
                routes: BTreeMap::new(),
            })),
            journal: Mutex::default(),
        }
    }
}

impl Board {
    /// The newest snapshot.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.lock())
    }

    /// What happened lately, oldest first.
    pub fn events(&self) -> Vec<Happened> {
        self.journal().events()
    }

    /// Writes in the journal.
    pub fn note(&self, event: &str, route: Option<&Name>, text: String) {
        self.journal().note(event, route, text);
    }

    /// Notes the routes whose state has changed since the last time.
    pub fn note_states(&self) {
        let snapshot = self.snapshot();
        self.journal().compare(&snapshot.routes);
    }

    fn journal(&self) -> std::sync::MutexGuard<'_, Journal> {
        self.journal
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Replaces the snapshot.
    pub fn publish(&self, snapshot: Snapshot) {
        *self.lock() = Arc::new(snapshot);
    }

    /// A pointer is swapped under the lock and nothing else: poisoning cannot leave half of one.
    fn lock(&self) -> std::sync::MutexGuard<'_, Arc<Snapshot>> {
        self.snapshot
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
