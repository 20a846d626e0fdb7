//! The end of a run: one budget for everything, and an honest account of what was not confirmed.

use super::board::Phase;
use super::core::Supervisor;
use super::leftover::{Leftover, Outcome};
use super::route::{Route, Then};
use crate::shutdown::Budget;
use std::time::Instant;

/// A run that is ending.
pub(super) struct Ending {
    cause: Cause,
    budget: Budget,
    stage: Stage,
    /// What the routes that are gone have left unconfirmed.
    pub leftovers: Vec<Leftover>,
}

/// Why the run ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// A signal.
    Signal,
    /// Nothing is left to copy under `until: end`.
    NothingLeft,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Draining,
    Aborting,
    Over,
}

impl Ending {
    /// When the clock matters to it.
    pub fn deadline(&self) -> Option<Instant> {
        match self.stage {
            Stage::Draining => Some(self.budget.abort_at),
            Stage::Aborting => Some(self.budget.give_up_at),
            Stage::Over => None,
        }
    }

    /// How the run ended, once it has.
    pub fn outcome(&self) -> Option<Outcome> {
        if self.stage != Stage::Over {
            return None;
        }
        let leftovers = self.leftovers.clone();
        Some(match (self.cause, leftovers.is_empty()) {
            (Cause::Signal, true) => Outcome::Drained,
            (Cause::Signal, false) => Outcome::Unconfirmed(leftovers),
            (Cause::NothingLeft, true) => Outcome::CaughtUp,
            (Cause::NothingLeft, false) => Outcome::NotCaughtUp(leftovers),
        })
    }
}

impl Supervisor {
    /// The first signal drains, the second stops at once.
    pub(super) fn stop(&mut self, now: Instant) {
        match &mut self.ending {
            None => self.end_all(Cause::Signal, now),
            Some(ending) => {
                // A second signal during an `until: end` finish is a user who does not want to
                // wait either.
                ending.budget.abort_at = now;
                ending.budget.give_up_at = ending.budget.give_up_at.min(now + Budget::RESERVE);
            }
        }
    }

    fn end_all(&mut self, cause: Cause, now: Instant) {
        let budget = Budget::new(self.launcher.grace, now);
        if cause == Cause::Signal {
            tracing::info!(
                event = "stopping",
                grace_ms = self.launcher.grace.as_millis() as u64,
                routes = self.routes.len(),
                "stopping: a second signal stops at once"
            );
        }
        self.process.phase = Phase::Draining;
        for route in self.routes.values_mut() {
            route.end(Then::Remove, budget.abort_at);
        }
        self.ending = Some(Ending {
            cause,
            budget,
            stage: Stage::Draining,
            leftovers: Vec::new(),
        });
    }

    /// Moves the ending on; begins it when nothing is left to copy.
    pub(super) fn advance_ending(&mut self, now: Instant) {
        if self.ending.is_none() && self.nothing_left() {
            self.end_all(Cause::NothingLeft, now);
            self.settle_routes(now);
        }
        let Some(ending) = &mut self.ending else {
            return;
        };
        if ending.stage == Stage::Draining && ending.budget.abort_at <= now {
            ending.stage = Stage::Aborting;
            self.process.phase = Phase::Aborting;
            self.routes.values_mut().for_each(Route::abort);
        }
        if self.routes.is_empty() {
            ending.stage = Stage::Over;
        } else if ending.stage == Stage::Aborting && ending.budget.give_up_at <= now {
            // A thread that does not even abort must not keep the process past its budget: what
            // it had in flight is listed, and the kernel ends it.
            let unended = self.routes.values().flat_map(Route::leftovers);
            ending.leftovers.extend(unended);
            ending.stage = Stage::Over;
        }
    }

    /// Whether every route is over under `until: end`. A route that follows its source for ever
    /// keeps the run going, and so does a file without routes.
    fn nothing_left(&self) -> bool {
        !self.routes.is_empty() && self.routes.values().all(Route::is_over)
    }
}
