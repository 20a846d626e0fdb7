//! The state machine: what each event and the clock do.

use super::board::{Board, Phase, ProcessView, Snapshot};
use super::ending::Ending;
use super::event::{Event, EventSender, Signal, Steered};
use super::flows::{Flows, RunningFlow, exit_to, taken_to};
use super::leftover::Outcome;
use super::reload::Reloads;
use super::route::{Route, Settled, Then};
use super::{Effect, LoadedConfig};
use crate::backoff;
use crate::config::spec::{ClusterSpec, Name, RouteSpec, Spec};
use crate::flow::{FlowExit, FlowSpec};
use crate::observe::Reason;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often rates and health are sampled.
const SAMPLE_EVERY: Duration = Duration::from_secs(1);

/// Times that the supervisor keeps to, and its source of chance.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Draining for a reload or a pause takes no longer than this, nor than the file's grace.
    pub reload_drain: Duration,
    /// After flows were told to stop at once, a reload waits this long before it reports them.
    pub abort_patience: Duration,
    /// Jitter in `0.0..1.0`.
    pub jitter: fn() -> f64,
}

/// A record in flight is held by the producer, and as much again may wait in the consumer.
const COPIES: u64 = 2;

impl Default for Limits {
    fn default() -> Self {
        Self {
            reload_drain: Duration::from_secs(10),
            abort_patience: Duration::from_secs(5),
            jitter: backoff::jitter,
        }
    }
}

impl Limits {
    /// How long a drain may take that is not the shutdown's.
    pub(super) fn drain(&self, grace: Duration) -> Duration {
        self.reload_drain.min(grace)
    }
}

/// A flow that was started.
pub(super) struct Launched {
    pub handle: Arc<dyn RunningFlow>,
    pub run: u64,
}

/// Starts flows, numbering each start.
pub(super) struct Launcher {
    flows: Arc<dyn Flows>,
    events: EventSender,
    next_run: u64,
    group: Option<Name>,
    /// What a flow that starts now may have in flight. Flows that run keep theirs: a route that is
    /// added must not restart the others.
    share_bytes: u64,
    pub grace: Duration,
    pub limits: Limits,
}

impl Launcher {
    pub fn launch(
        &mut self,
        route: &Arc<RouteSpec>,
        source: &Arc<ClusterSpec>,
        target: &Arc<ClusterSpec>,
    ) -> Launched {
        let run = self.next_run;
        self.next_run += 1;
        let spec = FlowSpec {
            // Set before the first route is started (`adopt_spec`); a route's name stands in so
            // that nothing here can panic.
            group: self.group.clone().unwrap_or_else(|| route.name.clone()),
            route: Arc::clone(route),
            source: Arc::clone(source),
            target: Arc::clone(target),
            share_bytes: self.share_bytes,
        };
        let on_exit = exit_to(self.events.clone(), route.name.clone(), run);
        Launched {
            handle: self.flows.start(spec, on_exit),
            run,
        }
    }

    /// Gives a running flow of `route` new settings.
    pub fn change(&self, flow: &Launched, route: &Arc<RouteSpec>) {
        let on_taken = taken_to(self.events.clone(), route.name.clone(), flow.run);
        flow.handle.change(Arc::clone(route), on_taken);
    }

    /// Takes what all flows share from an accepted spec.
    pub fn adopt_spec(&mut self, spec: &Spec) {
        self.group = Some(spec.group.clone());
        self.grace = spec.grace;
        let flows: usize = spec
            .routes
            .values()
            .map(|r| r.sources.len() * r.targets.len())
            .sum();
        self.share_bytes = spec.memory_bytes / (COPIES * flows.max(1) as u64);
    }
}

/// Owns every route of the process.
pub struct Supervisor {
    pub(super) launcher: Launcher,
    pub(super) routes: BTreeMap<Name, Route>,
    pub(super) running: Option<Arc<Spec>>,
    pub(super) process: ProcessView,
    pub(super) reloads: Reloads,
    pub(super) ending: Option<Ending>,
    pub(super) effects: Vec<Effect>,
    pub(super) board: Arc<Board>,
    next_sample: Instant,
}

impl Supervisor {
    /// A supervisor without routes.
    pub fn new(
        flows: Arc<dyn Flows>,
        events: EventSender,
        board: Arc<Board>,
        limits: Limits,
    ) -> Self {
        let process = board.snapshot().process.clone();
        Self {
            launcher: Launcher {
                flows,
                events,
                next_run: 1,
                group: None,
                share_bytes: u64::MAX,
                grace: Duration::from_secs(25),
                limits,
            },
            routes: BTreeMap::new(),
            running: None,
            process,
            reloads: Reloads::default(),
            ending: None,
            effects: Vec::new(),
            board,
            next_sample: Instant::now(),
        }
    }

    /// Applies the first configuration: the difference with nothing.
    pub fn begin(&mut self, config: LoadedConfig, now: Instant) {
        self.apply_first(config, now);
        self.process.phase = Phase::Running;
        self.publish();
    }

    /// What its driver shall do now.
    pub fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// The configuration that runs.
    pub fn running(&self) -> Option<Arc<Spec>> {
        self.running.clone()
    }

    /// Where events for it go.
    pub fn events(&self) -> EventSender {
        self.launcher.events.clone()
    }

    /// When [`tick`](Self::tick) is due.
    pub fn deadline(&self, now: Instant) -> Instant {
        let routes = self.routes.values().filter_map(Route::deadline);
        let own = [
            Some(self.next_sample),
            self.ending.as_ref().and_then(Ending::deadline),
            self.reloads.deadline(),
        ];
        let next = routes.chain(own.into_iter().flatten()).min();
        next.unwrap_or(now + SAMPLE_EVERY)
    }

    /// Reacts to one event.
    pub fn handle(&mut self, event: Event, now: Instant) {
        match event {
            Event::Signal(Signal::Reload) => self.ask_reload(None, now),
            Event::Signal(Signal::Stop) => self.stop(now),
            Event::Signal(Signal::Snapshot) => self.log_snapshot(),
            Event::FileChanged => self.file_changed(now),
            Event::Reload { reply } => self.ask_reload(Some(reply), now),
            Event::Loaded(result) => self.loaded(result, now),
            Event::FlowExited { route, run, exit } => self.flow_exited(&route, run, exit, now),
            Event::WatchTrouble(words) => {
                if !self.process.watch_troubles.contains(&words) {
                    self.board.note("watch_trouble", None, words.clone());
                    self.process.watch_troubles.push(words);
                }
            }
            Event::SettingsTaken { route, run } => {
                if let Some(route) = self.routes.get_mut(&route) {
                    route.taken(run);
                }
            }
            Event::Pause { route, reply } => {
                let _ = reply.send(self.pause(&route, now));
            }
            Event::Resume { route, reply } => {
                let _ = reply.send(self.resume(&route, now));
            }
        }
        self.advance(now);
    }

    /// Reacts to the clock.
    pub fn tick(&mut self, now: Instant) {
        for route in self.routes.values_mut() {
            route.tick(&mut self.launcher, now);
        }
        if self.next_sample <= now {
            self.next_sample = now + SAMPLE_EVERY;
            self.routes.values_mut().for_each(|route| route.sample(now));
            self.board.note_states();
        }
        self.advance(now);
    }

    /// How the run ended, once it has.
    pub fn finished(&self) -> Option<Outcome> {
        self.ending.as_ref().and_then(Ending::outcome)
    }

    /// Moves on everything that waited for what has just happened.
    fn advance(&mut self, now: Instant) {
        self.settle_routes(now);
        self.advance_reload(now);
        self.advance_ending(now);
        self.publish();
        // A status that is asked for after the verdict must not be older than it.
        self.reloads.tell();
    }

    fn flow_exited(&mut self, name: &Name, run: u64, exit: FlowExit, now: Instant) {
        let Some(route) = self.routes.get_mut(name) else {
            return;
        };
        if let FlowExit::Unconfirmed(ranges) = &exit {
            tracing::warn!(event = "flow_unconfirmed", route = %name, ranges = ranges.len(),
                "a flow ended before everything was confirmed; some records may be copied again");
        }
        route.exited(run, exit, &self.launcher, now);
    }

    pub(super) fn settle_routes(&mut self, now: Instant) {
        let mut gone = Vec::new();
        for (name, route) in &mut self.routes {
            match route.settle(&mut self.launcher, now) {
                Settled::Removed => gone.push(name.clone()),
                Settled::Moved => {
                    tracing::info!(event = "route_moved", route = %name, "the old flows have ended");
                }
                Settled::No => {}
            }
        }
        for name in gone {
            if let Some(route) = self.routes.remove(&name) {
                tracing::info!(event = "route_stopped", route = %name, "route stopped");
                if let Some(ending) = &mut self.ending {
                    ending.leftovers.extend(route.leftovers());
                }
            }
        }
    }

    fn pause(&mut self, name: &Name, now: Instant) -> Steered {
        if self.ending.is_some() {
            return Steered::Stopping;
        }
        let drain_until = now + self.launcher.limits.drain(self.launcher.grace);
        match self.of_the_file(name) {
            None => Steered::Unknown,
            Some((route, _)) if route.is_paused() => Steered::Already,
            Some((route, _)) => {
                route.end(Then::Hold(Reason::ByUser), drain_until);
                Steered::Accepted
            }
        }
    }

    fn resume(&mut self, name: &Name, now: Instant) -> Steered {
        if self.ending.is_some() {
            return Steered::Stopping;
        }
        let until = now + self.launcher.limits.reload_drain;
        match self.of_the_file(name) {
            None => Steered::Unknown,
            Some((route, _)) if !route.is_paused() => Steered::Already,
            // What the file says, and not what the route ran with: it may have been paused on its way to new settings, before
            // its flows had ended (found by the model).
            Some((route, spec)) => {
                route.end(Then::Start(spec), until);
                Steered::Accepted
            }
        }
    }

    /// A route of the running file, and what that says of it. One that the file does not have any more and that has not ended yet is nobody's to steer:
    /// paused and resumed it would be back (found by the model).
    fn of_the_file(&mut self, name: &Name) -> Option<(&mut Route, Arc<RouteSpec>)> {
        let spec = self.running.as_ref()?.routes.get(name)?;
        Some((self.routes.get_mut(name)?, Arc::clone(spec)))
    }

    /// Replaces what others see.
    fn publish(&mut self) {
        self.process.spec.clone_from(&self.running);
        self.process.group = self.running.as_ref().map(|spec| spec.group.clone());
        let routes = self.routes.iter();
        self.board.publish(Snapshot {
            process: self.process.clone(),
            routes: routes
                .map(|(name, route)| (name.clone(), route.view()))
                .collect(),
        });
    }

    fn log_snapshot(&self) {
        let snapshot = self.board.snapshot();
        tracing::info!(event = "snapshot", phase = ?snapshot.process.phase,
            generation = snapshot.process.generation, routes = snapshot.routes.len(), "status");
        for (name, route) in &snapshot.routes {
            let of_route = route.condition();
            tracing::info!(event = "snapshot_route", route = %name, state = %of_route.state, "status");
            for flow in &route.flows {
                let condition = flow.view.condition();
                let reason = condition.reason.map_or(String::new(), |r| r.to_string());
                tracing::info!(event = "snapshot_flow", flow = %flow.id, state = %condition.state,
                    %reason, lag = flow.view.lag().0, restarts = flow.restarts, "status");
            }
        }
    }
}
