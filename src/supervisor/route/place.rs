//! The place of one flow (route, source, target): it stays while flows come and go in it.

use crate::backoff::{Backoff, Span};
use crate::config::spec::{ClusterSpec, Name, RouteSpec};
use crate::flow::FlowExit;
use crate::observe::{Counters, FlowView, Reason, State};
use crate::supervisor::board::FlowEntry;
use crate::supervisor::core::{Launched, Launcher};
use crate::supervisor::leftover::{FlowId, Leftover};
use crate::supervisor::meter::{Meter, Sample};
use crate::supervisor::totals::Totals;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// Before a failed flow is started again.
const AGAIN: Span = Span {
    first: Duration::from_secs(1),
    longest: Duration::from_secs(60),
};

/// A place and the flow that has it.
pub(super) struct Place {
    pub id: FlowId,
    pub life: Life,
    view: Arc<FlowView>,
    carried: Totals,
    backoff: Backoff,
    restarts: u64,
    meter: Meter,
    healthy_since: Option<Instant>,
    /// Whether it has copied since the route was started with its present settings.
    has_run: bool,
    halted_since: Option<Instant>,
    /// Why it was told to drain although the route goes on (`until: end` that cannot be reached).
    gave_up: Option<Reason>,
    /// It was told to end although its route goes on, and what follows.
    leaving: Option<Leaving>,
    /// How many new settings its flow was given and has not taken over yet.
    untaken: u32,
}

/// The end of a flow whose route goes on.
struct Leaving {
    /// When it is told to stop at once; `None`: it was.
    drain_until: Option<Instant>,
    then: Next,
}

/// What follows in a place when its flow has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Another flow, with the route's new settings.
    Again,
    /// Nothing: the place goes, too.
    Gone,
}

/// What the flow of a place is doing.
pub(super) enum Life {
    /// It was started and has not ended.
    Runs(Launched),
    /// It failed and is started again when this moment comes.
    Waits { due: Instant, reason: Reason },
    /// It ended and is not started again by itself.
    Ended(FlowExit),
}

impl Place {
    /// A place with a flow that has just been started; `old` is the place's past, if it had one.
    pub fn taken(id: FlowId, flow: Launched, old: Option<Place>, now: Instant) -> Self {
        let view = flow.handle.view();
        let (carried, restarts) = old.map_or((Totals::default(), 0), |old| {
            (
                old.carried.plus(&Totals::of(&old.view.counters)),
                old.restarts,
            )
        });
        let mut place = Self {
            id,
            life: Life::Runs(flow),
            view,
            carried,
            backoff: Backoff::default(),
            restarts,
            meter: Meter::default(),
            healthy_since: None,
            has_run: false,
            halted_since: None,
            gave_up: None,
            leaving: None,
            untaken: 0,
        };
        place.meter_sample(now);
        place
    }

    /// Another try in the same place.
    pub fn retaken(&mut self, flow: Launched, now: Instant) {
        self.carried = self.carried.plus(&Totals::of(&self.view.counters));
        self.view = flow.handle.view();
        self.life = Life::Runs(flow);
        self.untaken = 0;
        self.restarts += 1;
        self.healthy_since = None;
        self.meter_sample(now);
    }

    pub fn is_between(&self, source: &Name, target: &Name) -> bool {
        self.id.source == source.as_str() && self.id.target == target.as_str()
    }

    pub fn is_run(&self, run: u64) -> bool {
        matches!(&self.life, Life::Runs(flow) if flow.run == run)
    }

    pub fn runs(&self) -> bool {
        matches!(self.life, Life::Runs(_))
    }

    /// Asks a running flow to end gently. One that waits for its next try has ended already: its
    /// last exit stays on record, since what it left in flight may be copied again.
    pub fn drain(&mut self, deadline: Instant) {
        match &self.life {
            Life::Runs(flow) => {
                self.view.become_(State::Draining, None);
                flow.handle.drain(deadline);
            }
            Life::Waits { reason, .. } => {
                let exit = FlowExit::Failed(reason.clone());
                self.life = Life::Ended(exit);
            }
            Life::Ended(_) => {}
        }
    }

    /// Asks the flow to end, to be followed by `then`, while the route goes on. One that is leaving
    /// already keeps its deadline.
    pub fn leave(&mut self, then: Next, drain_until: Instant) {
        if let Some(leaving) = &mut self.leaving {
            leaving.then = then;
            return;
        }
        self.drain(drain_until);
        self.leaving = Some(Leaving {
            drain_until: Some(drain_until),
            then,
        });
    }

    /// The whole route ends, and says itself what follows.
    pub fn leave_with_route(&mut self, deadline: Instant) {
        self.leaving = None;
        self.drain(deadline);
    }

    /// What follows now, if its flow was to leave and has ended.
    pub fn left(&self) -> Option<Next> {
        let leaving = self.leaving.as_ref().filter(|_| !self.runs());
        leaving.map(|leaving| leaving.then)
    }

    /// Whether its flow was told to leave and has not ended.
    pub fn is_leaving(&self) -> bool {
        self.leaving.is_some()
    }

    /// When a flow that leaves is told to stop at once.
    pub fn leave_until(&self) -> Option<Instant> {
        self.leaving
            .as_ref()
            .and_then(|leaving| leaving.drain_until)
    }

    /// Stops a flow at once that did not leave in time.
    pub fn hurry(&mut self, now: Instant) {
        let Some(leaving) = &mut self.leaving else {
            return;
        };
        if leaving.drain_until.is_some_and(|until| until <= now) {
            leaving.drain_until = None;
            tracing::warn!(event = "flow_abort", flow = %self.id,
                "the flow did not drain in time and is stopped at once");
            self.abort();
        }
    }

    /// Gives its flow new settings. One that waits or leaves gets them with its next flow.
    pub fn change(&mut self, spec: &Arc<RouteSpec>, launcher: &Launcher) {
        if let Life::Runs(flow) = &self.life
            && self.leaving.is_none()
        {
            self.untaken += 1;
            launcher.change(flow, spec);
        }
    }

    /// Its flow has taken settings over.
    pub fn taken_over(&mut self) {
        self.untaken = self.untaken.saturating_sub(1);
    }

    /// Whether its flow has been given settings that do not hold yet.
    pub fn is_changing(&self) -> bool {
        self.untaken > 0 && self.runs()
    }

    pub fn abort(&self) {
        if let Life::Runs(flow) = &self.life {
            flow.handle.abort();
        }
    }

    /// The flow ended for good.
    pub fn ended(&mut self, exit: FlowExit) {
        let exit = match self.gave_up.take() {
            Some(reason) => FlowExit::Failed(reason),
            None => exit,
        };
        match &exit {
            FlowExit::Failed(reason) | FlowExit::AbortRoute(reason) => {
                self.view.become_(State::Failed, Some(reason.clone()));
            }
            FlowExit::Drained | FlowExit::CaughtUp | FlowExit::Unconfirmed(_) => {
                self.view.become_(State::Stopped, None);
            }
        }
        self.life = Life::Ended(exit);
    }

    /// The flow failed: it is started again after a while.
    pub fn wait(&mut self, reason: Reason, now: Instant, jitter: f64) {
        let wait = self.backoff.next(AGAIN, jitter);
        tracing::warn!(event = "flow_failed", flow = %self.id, code = reason.code(), %reason,
            failures = self.backoff.failures(), retry_in_ms = wait.as_millis() as u64,
            "flow failed");
        self.view.become_(State::Failed, Some(reason.clone()));
        self.view.next_try(SystemTime::now() + wait);
        self.healthy_since = None;
        self.life = Life::Waits {
            due: now + wait,
            reason,
        };
    }

    /// An exit that nobody asked for, as the reason of a failure.
    pub fn reason_of(&mut self, exit: FlowExit) -> Reason {
        if let Some(reason) = self.gave_up.take() {
            return reason;
        }
        match exit {
            FlowExit::Failed(reason) | FlowExit::AbortRoute(reason) => reason,
            FlowExit::Drained | FlowExit::CaughtUp | FlowExit::Unconfirmed(_) => Reason::Client {
                detail: "the flow ended although nobody asked it to".into(),
            },
        }
    }

    pub fn due(&self) -> Option<Instant> {
        match &self.life {
            Life::Waits { due, .. } => Some(*due),
            Life::Runs(_) | Life::Ended(_) => None,
        }
    }

    pub fn due_at(&mut self, now: Instant) {
        if let Life::Waits { due, .. } = &mut self.life {
            *due = now;
        }
    }

    /// The clusters of this place.
    pub fn ends_in<'a>(
        &self,
        spec: &'a RouteSpec,
    ) -> Option<(&'a Arc<ClusterSpec>, &'a Arc<ClusterSpec>)> {
        let find = |list: &'a [Arc<ClusterSpec>], name: &str| {
            list.iter().find(|cluster| cluster.name.as_str() == name)
        };
        Some((
            find(&spec.sources, &self.id.source)?,
            find(&spec.targets, &self.id.target)?,
        ))
    }

    /// Samples rate and health.
    pub fn sample(&mut self, now: Instant, healthy_after: Duration) {
        self.meter_sample(now);
        let healthy =
            self.runs() && matches!(self.view.condition().state, State::Running | State::Lagging);
        if !healthy {
            self.healthy_since = None;
            return;
        }
        self.has_run = true;
        let since = *self.healthy_since.get_or_insert(now);
        if now.duration_since(since) >= healthy_after {
            self.backoff.reset();
        }
    }

    fn meter_sample(&mut self, now: Instant) {
        let counters = &self.view.counters;
        let resolved = [
            &counters.delivered_records,
            &counters.dropped_records,
            &counters.skipped_records,
            &counters.dead_lettered_records,
        ];
        let before: u64 = [
            "delivered_records",
            "dropped_records",
            "skipped_records",
            "dead_lettered_records",
        ]
        .iter()
        .map(|name| self.carried.get(name))
        .sum();
        let records = before + resolved.iter().map(|c| Counters::get(c)).sum::<u64>();
        let bytes = self.carried.get("produced_bytes") + Counters::get(&counters.produced_bytes);
        let delay_us = Counters::get(&counters.delay_us_sum) + self.carried.get("delay_seconds");
        let sample = Sample {
            records,
            bytes,
            batches: Counters::get(&counters.delay_count) + self.carried.get("delay_batches"),
            delay: Duration::from_micros(delay_us),
        };
        self.meter.sample(now, sample);
    }

    /// Whether every partition is done or halted, at least one halted, for at least `patience`.
    pub fn halted(&mut self, now: Instant, patience: Duration) -> bool {
        let partitions = self.view.partitions();
        let failed = |state| state == State::Failed;
        let stuck = self.runs()
            && partitions.values().any(|p| failed(p.condition.state))
            && partitions
                .values()
                .all(|p| failed(p.condition.state) || p.lag() == Some(0));
        if !stuck {
            self.halted_since = None;
            return false;
        }
        let since = *self.halted_since.get_or_insert(now);
        now.duration_since(since) >= patience
    }

    /// Ends a flow that will never reach its end, remembering the first halted partition's reason.
    pub fn give_up(&mut self, drain_until: Instant) {
        if self.gave_up.is_some() {
            return;
        }
        let halted = self
            .view
            .partitions()
            .into_iter()
            .find_map(|(_, partition)| {
                let condition = partition.condition;
                (condition.state == State::Failed).then_some(condition.reason)
            });
        self.gave_up = Some(halted.flatten().unwrap_or(Reason::Aborted {
            detail: "a halted partition keeps the end from being reached".into(),
        }));
        if let Life::Runs(flow) = &self.life {
            flow.handle.drain(drain_until);
        }
    }

    /// What it leaves unconfirmed.
    pub fn leftover(&self) -> Option<Leftover> {
        match &self.life {
            Life::Runs(_) => Some(Leftover::unended(&self.id)),
            Life::Waits { reason, .. } => Leftover::of(&self.id, &FlowExit::Failed(reason.clone())),
            Life::Ended(exit) => Leftover::of(&self.id, exit),
        }
    }
}

impl From<&Place> for FlowEntry {
    fn from(place: &Place) -> Self {
        FlowEntry {
            id: place.id.clone(),
            view: Arc::clone(&place.view),
            carried: place.carried.clone(),
            restarts: place.restarts,
            rate: place.meter.rate(),
            has_run: place.has_run,
        }
    }
}
