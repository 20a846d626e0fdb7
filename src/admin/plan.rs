//! What a configuration would change about this process: the same difference that a reload applies,
//! against the generation that runs and not against a file that may have changed since.

use super::Desk;
use crate::observe::State;
use crate::online::Ahead;
use crate::plan::{Effective, Plan, Report};
use crate::supervisor::board::Snapshot;
use crate::supervisor::{LoadOrder, RejectedConfig};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

/// What is asked.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanRequest {
    /// The files to plan with, as absolute paths; none: those that the process runs with.
    #[serde(default)]
    pub files: Vec<PathBuf>,
    /// Whether the clusters are asked as well, and how many seconds each question may take.
    #[serde(default)]
    pub question_timeout: Option<u64>,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlanPage {
    /// The generation that runs.
    pub generation: u64,
    /// The hash of its files.
    pub running_hash: String,
    /// The hash of the files that it is compared with.
    pub wanted_hash: String,
    /// Routes that are paused by hand: changes of theirs hold when they are resumed.
    pub paused: Vec<String>,
    /// The difference.
    #[serde(flatten)]
    pub plan: Report,
    /// What the clusters said, where they were asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub online: Option<Ahead>,
}

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NoPlan {
    /// Every error, rendered.
    pub error: String,
}

impl Desk {
    /// Loads and compares. Blocks: files are read, regexes compiled, and clusters asked.
    ///
    /// # Errors
    /// The files may not run.
    pub(super) fn plan(&self, request: &PlanRequest) -> Result<PlanPage, NoPlan> {
        let order = LoadOrder {
            files: (!request.files.is_empty()).then(|| request.files.clone()),
            running: self.board.snapshot().process.spec.clone(),
        };
        let wanted = (self.load)(order).map_err(|rejected: RejectedConfig| NoPlan {
            error: rejected.words().to_owned(),
        })?;
        // After the load: what is applied meanwhile is what it is compared with.
        let snapshot = self.board.snapshot();
        let running = snapshot.process.spec.as_deref();
        let plan = Report::from(&Plan::between(running, &wanted.spec));
        let patience = request.question_timeout.map(Duration::from_secs);
        Ok(PlanPage {
            generation: snapshot.process.generation,
            running_hash: snapshot.process.hash.clone(),
            wanted_hash: wanted.hash.clone(),
            paused: paused(&snapshot),
            // With the environment and the rights of the process that would copy.
            online: patience.map(|patience| Ahead::ask(&wanted.spec, &plan, patience)),
            plan,
        })
    }
}

/// What runs, and since which load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConfigPage {
    /// The generation that runs.
    pub generation: u64,
    /// The hash of its files.
    pub hash: String,
    /// When it was applied, in seconds since 1970.
    pub applied_at: f64,
    /// Where the process differs from it: routes that are paused by hand.
    pub paused: Vec<String>,
    /// Every setting, secrets masked.
    #[serde(flatten)]
    pub effective: Effective,
}

impl From<&Snapshot> for ConfigPage {
    fn from(snapshot: &Snapshot) -> Self {
        let process = &snapshot.process;
        Self {
            generation: process.generation,
            hash: process.hash.clone(),
            applied_at: super::status::seconds(process.applied_at),
            paused: paused(snapshot),
            effective: process
                .spec
                .as_deref()
                .map(Effective::from)
                .unwrap_or_default(),
        }
    }
}

/// The routes that are held by hand.
pub(super) fn paused(snapshot: &Snapshot) -> Vec<String> {
    let held = snapshot.routes.iter().filter(|(_, route)| {
        route
            .held
            .as_ref()
            .is_some_and(|held| held.state == State::Paused)
    });
    held.map(|(name, _)| name.to_string()).collect()
}
