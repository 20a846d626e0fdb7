//! What became of a reload.

use crate::plan::Report;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Of more routes than these, the untouched ones are only counted in the text.
const LISTED: usize = 12;

/// What became of a reload, as a value: returned to who asked, kept in the status, logged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum ReloadVerdict {
    /// It runs, with one result per route.
    Applied {
        /// The configuration's number in this process.
        generation: u64,
        /// Hash of its files.
        hash: String,
        /// The plan that was applied.
        plan: Box<Report>,
        /// What became of each route.
        routes: BTreeMap<String, RouteResult>,
    },
    /// The files have the content that runs already.
    Unchanged {
        /// The configuration's number in this process.
        generation: u64,
        /// Hash of its files.
        hash: String,
    },
    /// It does not run; what ran before goes on untouched (I5).
    Rejected {
        /// The configuration that goes on.
        generation: u64,
        /// The first error in one line.
        error: String,
        /// Hash of the rejected files, if they could be read.
        hash: Option<String>,
    },
}

/// What became of one route in a reload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "result", rename_all = "snake_case")]
pub enum RouteResult {
    /// It was new and has been started.
    Started,
    /// The old one ended, the new one has been started.
    Restarted {
        /// The settings that differ.
        changed: Vec<String>,
    },
    /// Its clients were made anew.
    Reconnected {
        /// The settings that differ.
        changed: Vec<String>,
    },
    /// It took over new settings while it ran.
    Changed {
        /// The settings that differ.
        changed: Vec<String>,
    },
    /// It ended.
    Stopped,
    /// It was not touched.
    Kept,
    /// It had stopped after a fault and was started again.
    Retried,
    /// It is paused by the user; the new settings apply when it is resumed.
    Paused,
    /// The old one did not end in time; the change follows when it does.
    StillStopping,
    /// A flow has not come to take its new settings over; they hold once it does.
    StillChanging,
}

impl fmt::Display for RouteResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RouteResult::Started => f.write_str("started"),
            RouteResult::Restarted { changed } => write!(f, "restarted ({})", changed.join(", ")),
            RouteResult::Reconnected { changed } => {
                write!(f, "reconnected ({})", changed.join(", "))
            }
            RouteResult::Changed { changed } => write!(f, "changed live ({})", changed.join(", ")),
            RouteResult::Stopped => f.write_str("stopped"),
            RouteResult::Kept => f.write_str("untouched"),
            RouteResult::Retried => f.write_str("started again"),
            RouteResult::Paused => f.write_str("paused by the user"),
            RouteResult::StillStopping => {
                f.write_str("still stopping; the change follows when the old one has ended")
            }
            RouteResult::StillChanging => {
                f.write_str("has not taken the change over yet; it does with its next batch")
            }
        }
    }
}

impl fmt::Display for ReloadVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReloadVerdict::Applied {
                generation, routes, ..
            } => {
                write!(f, "applied: generation {generation}")?;
                let all = routes.len() <= LISTED;
                let told = |result: &RouteResult| all || *result != RouteResult::Kept;
                for (route, result) in routes.iter().filter(|(_, result)| told(result)) {
                    write!(f, "\n  {route}: {result}")?;
                }
                match routes.values().filter(|result| !told(result)).count() {
                    0 => Ok(()),
                    kept => write!(f, "\n  {kept} routes: untouched"),
                }
            }
            ReloadVerdict::Unchanged { generation, .. } => {
                write!(f, "unchanged: generation {generation} goes on")
            }
            ReloadVerdict::Rejected {
                generation, error, ..
            } => write!(f, "rejected: {error}\ngeneration {generation} goes on"),
        }
    }
}
