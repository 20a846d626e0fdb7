//! The plan: what a wanted configuration changes about the running one. A pure difference.
//!
//! First start is the difference with nothing, so start and reload are one code path. The plan that
//! is shown is the plan that is applied: [`Plan::between`] makes both, and [`Report`] is what is
//! seen of it, in `mirror plan` as in the verdict of a reload.

use crate::config::settings::ReloadClass;
use crate::config::spec::{ClusterSpec, Name, RouteSpec, Spec};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

mod changed;
mod demand;
mod fingerprint;
mod report;
mod setting;
mod shown;
#[cfg(test)]
mod tests;

pub use changed::{Changed, Effective, Settings};
pub use demand::{Cause, Demand, Said};
pub use fingerprint::Fingerprint;
pub use report::{FlowReport, Positions, Report, RouteReport, Tally, Verb};
pub use setting::Setting;

/// What becomes of every route, and what cannot change while the process runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The change of each route that is running or wanted.
    pub routes: BTreeMap<Name, Change>,
    /// Settings of the process that differ.
    pub process: Vec<Changed>,
    /// The words that the changes need, said or not.
    pub demands: Vec<Demand>,
}

/// What becomes of one route.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// It is new.
    Start(Arc<RouteSpec>),
    /// It goes on with other settings.
    Alter(Alteration),
    /// It is not wanted any more.
    Stop(Arc<RouteSpec>),
    /// Nothing that runs differs; the words about it may.
    Keep(Arc<RouteSpec>),
}

/// A route that goes on with other settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Alteration {
    /// What it becomes.
    pub wanted: Arc<RouteSpec>,
    /// The settings that differ, those of its clusters among them.
    pub changed: Vec<Changed>,
    /// What becomes of each flow that runs or is wanted.
    pub flows: Vec<FlowChange>,
}

/// What becomes of one flow of a route that goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowChange {
    /// The source cluster.
    pub source: Name,
    /// The target cluster.
    pub target: Name,
    /// What is done.
    pub action: FlowAction,
}

/// What is done about a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowAction {
    /// It is new.
    Start,
    /// It is not wanted any more.
    Stop,
    /// Nothing.
    Keep,
    /// What its settings take: never [`ReloadClass::Refused`].
    Take(ReloadClass),
}

impl Plan {
    /// The difference that makes `wanted` out of `running`; out of nothing at first start.
    pub fn between(running: Option<&Spec>, wanted: &Spec) -> Self {
        let none = BTreeMap::new();
        let before = running.map_or(&none, |spec| &spec.routes);
        let names: BTreeSet<&Name> = before.keys().chain(wanted.routes.keys()).collect();
        let routes: BTreeMap<Name, Change> = names
            .into_iter()
            .filter_map(|name| {
                let change = change_of(before.get(name), wanted.routes.get(name))?;
                Some((name.clone(), change))
            })
            .collect();
        let demands = running.map_or_else(Vec::new, |r| demand::demands(r, wanted, &routes));
        Self {
            process: running.map_or_else(Vec::new, |r| changed::of_process(r, wanted)),
            demands,
            routes,
        }
    }

    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        self.process.is_empty() && self.routes.values().all(|c| matches!(c, Change::Keep(_)))
    }

    /// The first reason for which it is not applied, in words.
    pub fn refusal(&self) -> Option<String> {
        let fixed = self
            .process
            .iter()
            .find(|c| c.class == ReloadClass::Refused);
        let fixed = fixed.map(|c| {
            format!(
                "{} cannot change while running ({} -> {}): restart the process",
                c.setting, c.from, c.to
            )
        });
        let unsaid = || self.demands.iter().find(|d| d.said == Said::No);
        fixed.or_else(|| unsaid().map(ToString::to_string))
    }
}

fn change_of(running: Option<&Arc<RouteSpec>>, wanted: Option<&Arc<RouteSpec>>) -> Option<Change> {
    Some(match (running, wanted) {
        (None, None) => return None,
        (Some(running), None) => Change::Stop(Arc::clone(running)),
        (None, Some(wanted)) => Change::Start(Arc::clone(wanted)),
        (Some(running), Some(wanted)) => alteration(running, wanted),
    })
}

fn alteration(running: &RouteSpec, wanted: &Arc<RouteSpec>) -> Change {
    let mut changed = changed::of_route(running, wanted);
    // A cluster that comes or goes is a flow of its own and nothing to the others.
    let is_end = |c: &Changed| {
        [Setting::Source, Setting::Target]
            .iter()
            .any(|end| end.shown(None) == c.setting)
    };
    let takes = changed.iter().filter(|c| !is_end(c)).map(|c| c.class).max();
    let clusters = changed_clusters(running, wanted);
    if changed.is_empty() && clusters.is_empty() {
        return Change::Keep(Arc::clone(wanted));
    }
    let flows = flows(running, wanted, |source, target| {
        let at_ends = [source, target]
            .into_iter()
            .filter_map(|name| clusters.get(name));
        let at_ends = at_ends.flatten().map(|c: &Changed| c.class);
        at_ends.chain(takes).max()
    });
    changed.extend(clusters.into_values().flatten());
    Change::Alter(Alteration {
        wanted: Arc::clone(wanted),
        changed,
        flows,
    })
}

/// The clusters that kept their names and changed inside.
fn changed_clusters(running: &RouteSpec, wanted: &RouteSpec) -> BTreeMap<Name, Vec<Changed>> {
    let ends = |route: &RouteSpec| -> BTreeMap<Name, Arc<ClusterSpec>> {
        let all = route.sources.iter().chain(&route.targets);
        all.map(|c| (c.name.clone(), Arc::clone(c))).collect()
    };
    let (before, now) = (ends(running), ends(wanted));
    let differs = now.into_iter().filter_map(|(name, cluster)| {
        let changed = changed::of_cluster(before.get(&name)?, &cluster);
        (!changed.is_empty()).then_some((name, changed))
    });
    differs.collect()
}

/// What becomes of each flow, in the order of the file; those that go last.
fn flows(
    running: &RouteSpec,
    wanted: &RouteSpec,
    takes: impl Fn(&Name, &Name) -> Option<ReloadClass>,
) -> Vec<FlowChange> {
    let places = |route: &RouteSpec| -> Vec<(Name, Name)> {
        let sources = route.sources.iter();
        let pairs = sources.flat_map(|s| route.targets.iter().map(move |t| (s, t)));
        pairs
            .map(|(s, t)| (s.name.clone(), t.name.clone()))
            .collect()
    };
    let (before, now) = (places(running), places(wanted));
    let gone = before.iter().filter(|place| !now.contains(place));
    let all = now.iter().chain(gone);
    all.map(|(source, target)| {
        let place = (source.clone(), target.clone());
        let action = match (before.contains(&place), now.contains(&place)) {
            (false, _) => FlowAction::Start,
            (true, false) => FlowAction::Stop,
            (true, true) => takes(source, target).map_or(FlowAction::Keep, FlowAction::Take),
        };
        FlowChange {
            source: place.0,
            target: place.1,
            action,
        }
    })
    .collect()
}

/// The route of `spec` that takes over from `name`, if one does.
fn renamed<'a>(spec: &'a Spec, name: &Name) -> Option<&'a Arc<RouteSpec>> {
    spec.routes
        .values()
        .find(|route| route.was.as_ref() == Some(name))
}
