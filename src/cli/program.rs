//! What the commands are built upon: the loader, the engine, `check` and the schema, given by
//! whoever links the program (or embeds it with handlers of its own).

use super::{CheckFormat, TestFormat, TryArgs};
use crate::config::interpolate::Variables;
use crate::config::spec::Spec;
use crate::exit::Exit;
use crate::logging::Colour;
use crate::supervisor::{Flows, LoadOrder, LoadedConfig, RejectedConfig};
use std::path::PathBuf;
use std::sync::Arc;

/// Loads a configuration.
pub type LoadFiles =
    Arc<dyn Fn(&LoadRequest) -> Result<LoadedConfig, RejectedConfig> + Send + Sync>;

/// Checks files and prints the result.
pub type CheckFiles = Arc<dyn Fn(&CheckRequest) -> Exit + Send + Sync>;

/// Runs the tests of files and prints the result.
pub type TestFiles = Arc<dyn Fn(&TestRequest) -> Exit + Send + Sync>;

/// Lets records of a route through its handlers and prints their ways.
pub type TryFiles = Arc<dyn Fn(&TryRequest) -> Exit + Send + Sync>;

/// The parts that the commands work with.
#[derive(Clone)]
pub struct Program {
    /// The engine.
    pub flows: Arc<dyn Flows>,
    /// The configuration loader.
    pub load: LoadFiles,
    /// The work of `mirror check`.
    pub check: CheckFiles,
    /// The work of `mirror test`.
    pub test: TestFiles,
    /// The work of `mirror try`.
    pub try_route: TryFiles,
    /// The JSON schema of the file.
    pub schema: fn() -> String,
    /// Which variables files may take, as the command line says.
    pub variables: Variables,
}

/// What to load, and how strictly.
#[derive(Clone, Debug)]
pub struct LoadRequest {
    /// Files or folders, in order.
    pub files: Vec<PathBuf>,
    /// Which variables they may take.
    pub variables: Variables,
    /// Whether settings that give up on records are refused.
    pub no_data_loss: NoDataLoss,
    /// Whether rendered diagnostics may use colour.
    pub colour: Colour,
    /// The configuration that the process runs, if it does: what is the same in both is held once.
    pub running: Option<Arc<Spec>>,
}

impl LoadRequest {
    /// The same as `order` says.
    pub fn with(&self, order: LoadOrder) -> Self {
        Self {
            files: order.files.unwrap_or_else(|| self.files.clone()),
            running: order.running,
            ..self.clone()
        }
    }
}

/// Whether settings that give up on a record on purpose are refused (`--no-data-loss`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoDataLoss {
    /// They are.
    Required,
    /// The file may use them.
    AsWritten,
}

impl From<bool> for NoDataLoss {
    fn from(flag: bool) -> Self {
        if flag {
            NoDataLoss::Required
        } else {
            NoDataLoss::AsWritten
        }
    }
}

/// What `mirror check` is asked.
#[derive(Clone, Debug)]
pub struct CheckRequest {
    /// Files or folders, in order.
    pub files: Vec<PathBuf>,
    /// Which variables they may take.
    pub variables: Variables,
    /// How the result looks.
    pub format: CheckFormat,
    /// What is printed of a sound configuration.
    pub printed: Printed,
    /// What warnings mean for the exit code.
    pub warnings: Warnings,
    /// Whether settings that give up on records are refused.
    pub no_data_loss: NoDataLoss,
    /// Whether the clusters are asked.
    pub ask: super::check::Ask,
    /// Whether colour may be used.
    pub colour: Colour,
}

/// What `mirror check` prints of a sound configuration, as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Printed {
    /// A line for each route.
    Routes,
    /// The file as it is understood.
    Effective,
}

/// What warnings mean for the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Warnings {
    /// Nothing.
    Allow,
    /// Exit 3.
    Deny,
}

/// What `mirror test` is asked.
#[derive(Clone, Debug)]
pub struct TestRequest {
    /// Files or folders, in order.
    pub files: Vec<PathBuf>,
    /// Which variables they may take.
    pub variables: Variables,
    /// Test files; those beside the configuration where there is none.
    pub tests: Vec<PathBuf>,
    /// Which tests.
    pub only: Option<String>,
    /// Whether what no test reached is shown.
    pub coverage: Coverage,
    /// Whether the tests are made to say what comes out.
    pub update: Update,
    /// How the result looks.
    pub format: TestFormat,
    /// Whether colour may be used.
    pub colour: Colour,
}

/// Whether what no test reached is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coverage {
    /// It is.
    Shown,
    /// It is not.
    Hidden,
}

/// Whether tests that do not pass are made to say what comes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    /// They are.
    Written,
    /// They stay as they are.
    Never,
}

/// What `mirror try` is asked.
#[derive(Clone, Debug)]
pub struct TryRequest {
    /// Files or folders, in order.
    pub files: Vec<PathBuf>,
    /// Which variables they may take.
    pub variables: Variables,
    /// The arguments.
    pub args: TryArgs,
    /// Whether colour may be used.
    pub colour: Colour,
}
