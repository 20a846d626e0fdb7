//! One route: its flows, and what it is on its way to.
//!
//! A route is `Up`, `Ending` (its flows were asked to end, and something follows when the last of
//! them has ended) or `Held`. What follows an ending starts strictly after it: two flows of one
//! place that run at the same time would mix their records at the target (B126).

use super::board::{FlowEntry, RouteView};
use super::core::Launcher;
use super::leftover::{FlowId, Leftover};
use crate::config::settings::ReloadClass;
use crate::config::spec::{ClusterSpec, Name, RouteSpec, Until};
use crate::flow::FlowExit;
use crate::observe::{Condition, Reason, State};
use crate::plan::{Alteration, FlowAction, FlowChange};
use std::sync::Arc;
use std::time::{Duration, Instant};

mod place;

use place::{Life, Next, Place};

/// After this long in health the next failure of a flow is a first one again.
const HEALTHY_AFTER: Duration = Duration::from_secs(60);

/// A route under `until: end` whose partitions are all done or halted for this long gives up.
const HALTED_FOR: Duration = Duration::from_secs(10);

/// A route that the supervisor owns.
pub(super) struct Route {
    spec: Arc<RouteSpec>,
    places: Vec<Place>,
    stage: Stage,
}

enum Stage {
    /// Its flows run, or wait for their next try.
    Up,
    /// Its flows were asked to end.
    Ending {
        then: Then,
        /// When those that are left are told to stop at once; `None`: they were.
        drain_until: Option<Instant>,
    },
    /// Nothing of it runs.
    Held(Condition),
}

/// What follows when the last flow of a route has ended.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Then {
    /// It is forgotten.
    Remove,
    /// It starts again with this spec.
    Start(Arc<RouteSpec>),
    /// It is held for this reason until somebody says otherwise.
    Hold(Reason),
}

/// What a call to a route has led to.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Settled {
    /// Nothing that others need to know.
    No,
    /// Every flow has ended and the route is to be forgotten.
    Removed,
    /// Every flow has ended and what was to follow has begun.
    Moved,
}

impl Route {
    /// Starts every flow of `spec`.
    pub fn start(spec: Arc<RouteSpec>, launcher: &mut Launcher, now: Instant) -> Self {
        let mut route = Self {
            spec,
            places: Vec::new(),
            stage: Stage::Up,
        };
        route.launch_all(launcher, now);
        route
    }

    fn launch_all(&mut self, launcher: &mut Launcher, now: Instant) {
        // A place is large, and most routes have one.
        let count = self.spec.sources.len() * self.spec.targets.len();
        let mut before = std::mem::replace(&mut self.places, Vec::with_capacity(count));
        for source in &self.spec.sources {
            for target in &self.spec.targets {
                let id = FlowId {
                    route: self.spec.name.to_string(),
                    source: source.name.to_string(),
                    target: target.name.to_string(),
                };
                // A place that goes on keeps its counters, so that they never fall at a reload.
                let old = before.iter().position(|place| place.id == id);
                let old = old.map(|at| before.swap_remove(at));
                let flow = launcher.launch(&self.spec, source, target);
                self.places.push(Place::taken(id, flow, old, now));
            }
        }
        self.stage = Stage::Up;
    }

    /// Goes on with other settings, flow by flow: what need not be touched is not.
    pub fn alter(
        &mut self,
        alteration: Alteration,
        launcher: &mut Launcher,
        now: Instant,
        drain_until: Instant,
    ) {
        self.spec = alteration.wanted;
        for flow in &alteration.flows {
            let mut places = self.places.iter_mut();
            let place = places.find(|place| place.is_between(&flow.source, &flow.target));
            match (flow.action, place) {
                (FlowAction::Start, None) => self.launch_one(flow, launcher, now),
                (FlowAction::Take(ReloadClass::Live), Some(place)) => {
                    place.change(&self.spec, launcher);
                }
                (FlowAction::Start | FlowAction::Take(_), Some(place)) => {
                    place.leave(Next::Again, drain_until);
                }
                (FlowAction::Stop, Some(place)) => place.leave(Next::Gone, drain_until),
                (FlowAction::Keep, _) | (FlowAction::Stop | FlowAction::Take(_), None) => {}
            }
        }
        self.settle_places(launcher, now);
    }

    fn launch_one(&mut self, change: &FlowChange, launcher: &mut Launcher, now: Instant) {
        let id = FlowId {
            route: self.spec.name.to_string(),
            source: change.source.to_string(),
            target: change.target.to_string(),
        };
        let find =
            |list: &[Arc<ClusterSpec>], name: &Name| list.iter().find(|c| c.name == *name).cloned();
        let source = find(&self.spec.sources, &change.source);
        let target = find(&self.spec.targets, &change.target);
        if let (Some(source), Some(target)) = (source, target) {
            let flow = launcher.launch(&self.spec, &source, &target);
            self.places.push(Place::taken(id, flow, None, now));
        }
    }

    /// Fills or forgets the places whose flows were to leave and have ended. Strictly after their
    /// ends (B126).
    fn settle_places(&mut self, launcher: &mut Launcher, now: Instant) -> Settled {
        let mut settled = Settled::No;
        let mut at = 0;
        while at < self.places.len() {
            let Some(next) = self.places[at].left() else {
                at += 1;
                continue;
            };
            settled = Settled::Moved;
            let place = self.places.remove(at);
            let ends = place.ends_in(&self.spec);
            if let (Next::Again, Some((source, target))) = (next, ends) {
                let flow = launcher.launch(&self.spec, source, target);
                let id = place.id.clone();
                self.places
                    .insert(at, Place::taken(id, flow, Some(place), now));
                at += 1;
            }
        }
        settled
    }

    /// A flow has taken new settings over.
    pub fn taken(&mut self, run: u64) {
        if let Some(place) = self.places.iter_mut().find(|place| place.is_run(run)) {
            place.taken_over();
        }
    }

    /// Asks every flow to end by `drain_until`, and says what follows. A route that is ending
    /// already keeps the earlier deadline and only changes what follows.
    pub fn end(&mut self, then: Then, drain_until: Instant) {
        let (drain_until, known) = match &self.stage {
            Stage::Ending {
                drain_until: was, ..
            } => (was.map(|was| was.min(drain_until)), *was),
            Stage::Up | Stage::Held(_) => (Some(drain_until), None),
        };
        if let Some(deadline) = drain_until
            && known != Some(deadline)
        {
            self.places
                .iter_mut()
                .for_each(|place| place.leave_with_route(deadline));
        }
        self.stage = Stage::Ending { then, drain_until };
    }

    /// Tells every flow that is left to stop at once, once.
    pub fn abort(&mut self) {
        if let Stage::Ending { drain_until, .. } = &mut self.stage
            && drain_until.take().is_some()
        {
            self.places.iter().for_each(Place::abort);
        }
    }

    /// A flow ended.
    pub fn exited(&mut self, run: u64, exit: FlowExit, launcher: &Launcher, now: Instant) {
        let Some(at) = self.places.iter().position(|place| place.is_run(run)) else {
            return;
        };
        let place = &mut self.places[at];
        match (&self.stage, exit) {
            (Stage::Up, exit) if place.is_leaving() => place.ended(exit),
            (Stage::Up, FlowExit::AbortRoute(reason)) => {
                place.ended(FlowExit::AbortRoute(reason.clone()));
                let patience = now + launcher.limits.drain(launcher.grace);
                self.end(Then::Hold(reason), patience);
            }
            (Stage::Up, FlowExit::CaughtUp) => place.ended(FlowExit::CaughtUp),
            (Stage::Up, exit) if self.spec.until == Until::End => {
                let reason = place.reason_of(exit);
                place.ended(FlowExit::Failed(reason));
            }
            (Stage::Up, exit) => {
                let reason = place.reason_of(exit);
                place.wait(reason, now, (launcher.limits.jitter)());
            }
            (Stage::Ending { .. } | Stage::Held(_), exit) => place.ended(exit),
        }
    }

    /// Does what follows once the last flow has ended.
    pub fn settle(&mut self, launcher: &mut Launcher, now: Instant) -> Settled {
        let then = match &self.stage {
            Stage::Ending { then, .. } => then,
            Stage::Up => return self.settle_places(launcher, now),
            Stage::Held(_) => return Settled::No,
        };
        if self.places.iter().any(Place::runs) {
            return Settled::No;
        }
        match then.clone() {
            Then::Remove => Settled::Removed,
            Then::Start(spec) => {
                self.spec = spec;
                self.launch_all(launcher, now);
                Settled::Moved
            }
            Then::Hold(reason) => {
                let state = match reason {
                    Reason::ByUser => State::Paused,
                    _ => State::Failed,
                };
                self.stage = Stage::Held(Condition::now(state, Some(reason)));
                Settled::Moved
            }
        }
    }

    /// The clock: next tries, deadlines, health.
    pub fn tick(&mut self, launcher: &mut Launcher, now: Instant) {
        match &self.stage {
            Stage::Up => {
                self.retry_due(launcher, now);
                self.places.iter_mut().for_each(|place| place.hurry(now));
            }
            Stage::Ending {
                drain_until: Some(until),
                ..
            } if *until <= now => {
                tracing::warn!(event = "route_abort", route = %self.spec.name,
                    "the flows did not drain in time and are stopped at once");
                self.abort();
            }
            Stage::Ending { .. } | Stage::Held(_) => {}
        }
    }

    fn retry_due(&mut self, launcher: &mut Launcher, now: Instant) {
        for place in &mut self.places {
            if place.due().is_some_and(|due| due <= now) {
                let ends = place.ends_in(&self.spec);
                if let Some((source, target)) = ends {
                    let flow = launcher.launch(&self.spec, source, target);
                    place.retaken(flow, now);
                }
            }
        }
    }

    /// Takes samples of every flow: rate, health, and whether it is stuck under `until: end`.
    pub fn sample(&mut self, now: Instant) {
        let until_end = self.spec.until == Until::End && matches!(self.stage, Stage::Up);
        for place in &mut self.places {
            place.sample(now, HEALTHY_AFTER);
            if until_end && place.halted(now, HALTED_FOR) {
                place.give_up(now + HALTED_FOR);
            }
        }
    }

    /// Makes waiting flows due now and a route that was stopped by a fault start again; `true` in
    /// the latter case. Nothing that runs is touched.
    pub fn retry(&mut self, launcher: &mut Launcher, now: Instant) -> Retried {
        match &self.stage {
            Stage::Held(condition) if condition.state == State::Failed => {
                self.launch_all(launcher, now);
                Retried::Route
            }
            Stage::Up => {
                self.places.iter_mut().for_each(|place| place.due_at(now));
                self.retry_due(launcher, now);
                Retried::Flows
            }
            Stage::Held(_) | Stage::Ending { .. } => Retried::Nothing,
        }
    }

    /// Takes a spec that differs in nothing that runs, or one for a route that the user holds.
    pub fn adopt(&mut self, spec: Arc<RouteSpec>) {
        self.spec = spec;
    }

    /// Whether the user holds it, or will once its flows have ended.
    pub fn is_paused(&self) -> bool {
        match &self.stage {
            Stage::Held(condition) => condition.state == State::Paused,
            Stage::Ending {
                then: Then::Hold(reason),
                ..
            } => *reason == Reason::ByUser,
            Stage::Up | Stage::Ending { .. } => false,
        }
    }

    /// Whether its flows have been asked to end and have not all ended.
    pub fn is_ending(&self) -> bool {
        matches!(self.stage, Stage::Ending { .. })
    }

    /// Whether a flow of it was told to end, by a change or with the route, and has not.
    pub fn is_stopping(&self) -> bool {
        self.is_ending() || self.places.iter().any(Place::is_leaving)
    }

    /// Whether a flow of it has been given settings that do not hold yet.
    pub fn is_changing(&self) -> bool {
        self.places.iter().any(Place::is_changing)
    }

    /// Whether its flows run, or wait for their next try.
    pub fn is_up(&self) -> bool {
        matches!(self.stage, Stage::Up)
    }

    /// Under `until: end`, or held: whether nothing of it will run again by itself.
    pub fn is_over(&self) -> bool {
        match &self.stage {
            Stage::Up => {
                self.spec.until == Until::End
                    && self.places.iter().all(|p| matches!(p.life, Life::Ended(_)))
            }
            Stage::Held(condition) => {
                condition.state == State::Failed && self.spec.until == Until::End
            }
            Stage::Ending { .. } => false,
        }
    }

    /// What its flows leave unconfirmed, those that still run included.
    pub fn leftovers(&self) -> Vec<Leftover> {
        self.places.iter().filter_map(Place::leftover).collect()
    }

    /// When it next needs the clock.
    pub fn deadline(&self) -> Option<Instant> {
        match &self.stage {
            Stage::Up => {
                let places = self.places.iter();
                places
                    .flat_map(|p| p.due().into_iter().chain(p.leave_until()))
                    .min()
            }
            Stage::Ending { drain_until, .. } => *drain_until,
            Stage::Held(_) => None,
        }
    }

    /// What is seen of it.
    pub fn view(&self) -> RouteView {
        RouteView {
            about: self.spec.about.clone(),
            held: match &self.stage {
                Stage::Held(condition) => Some(condition.clone()),
                Stage::Up | Stage::Ending { .. } => None,
            },
            flows: self.places.iter().map(FlowEntry::from).collect(),
        }
    }
}

/// What [`Route::retry`] has started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Retried {
    /// The whole route.
    Route,
    /// Flows that were waiting, if any.
    Flows,
    /// Nothing.
    Nothing,
}
