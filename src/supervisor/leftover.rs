//! How the run ended: what may be copied again, and by which flow.

use crate::flow::{FlowExit, Unconfirmed};
use crate::observe::Reason;
use std::fmt;

/// The place of a flow: it stays while flows come and go in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlowId {
    /// The route's name.
    pub route: String,
    /// The source cluster's name.
    pub source: String,
    /// The target cluster's name.
    pub target: String,
}

impl fmt::Display for FlowId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} -> {})", self.route, self.source, self.target)
    }
}

/// A flow that did not end with everything confirmed.
#[derive(Clone, Debug, PartialEq)]
pub struct Leftover {
    /// Its place.
    pub flow: FlowId,
    /// Ranges that may be copied again; empty where they are not known.
    pub ranges: Vec<Unconfirmed>,
    /// Why it did not end well, where it said so.
    pub reason: Option<Reason>,
}

impl Leftover {
    /// What `exit` leaves behind, `None` if everything was confirmed.
    pub fn of(flow: &FlowId, exit: &FlowExit) -> Option<Self> {
        let (ranges, reason) = match exit {
            FlowExit::Drained | FlowExit::CaughtUp => return None,
            FlowExit::Unconfirmed(ranges) => (ranges.clone(), None),
            FlowExit::Failed(reason) | FlowExit::AbortRoute(reason) => {
                (Vec::new(), Some(reason.clone()))
            }
        };
        Some(Self {
            flow: flow.clone(),
            ranges,
            reason,
        })
    }

    /// A flow that had not ended when the budget was spent.
    pub fn unended(flow: &FlowId) -> Self {
        Self {
            flow: flow.clone(),
            ranges: Vec::new(),
            reason: None,
        }
    }
}

impl fmt::Display for Leftover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.flow)?;
        match (&self.reason, self.ranges.as_slice()) {
            (Some(reason), _) => write!(f, "{reason}"),
            (None, []) => f.write_str("did not end in time; records since its last commit"),
            (None, ranges) => {
                let mut separator = "";
                for range in ranges {
                    let from = range
                        .committed
                        .map_or("its start".into(), |c| c.to_string());
                    write!(
                        f,
                        "{separator}{} from {from} to {} (exclusive)",
                        range.partition, range.next
                    )?;
                    separator = "; ";
                }
                Ok(())
            }
        }
    }
}

/// How the whole run ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Stopped by the user with everything confirmed: no repeats on restart.
    Drained,
    /// `until: end` was reached by every route.
    CaughtUp,
    /// Every route ended, and these without reaching the end.
    NotCaughtUp(Vec<Leftover>),
    /// Stopped before everything was confirmed.
    Unconfirmed(Vec<Leftover>),
}
