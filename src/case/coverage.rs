//! Which steps, and which ways through them, the tests reached.

use crate::config::Loaded;
use crate::config::spec::{Name, RouteSpec};
use crate::handler::{Failure, Observer, StepSpec, StepView};
use crate::record::Record;
use crate::trial::{StepLabel, Steps};
use std::collections::{BTreeMap, BTreeSet};

/// What the tests reached of every route.
#[derive(Debug, Default)]
pub struct Coverage {
    routes: BTreeMap<Name, RouteCoverage>,
}

/// What the tests reached of one route's chain.
#[derive(Debug, Default)]
pub struct RouteCoverage {
    labels: Steps,
    steps: Vec<StepCoverage>,
}

/// A step with the ways that lead through it.
#[derive(Debug, Default)]
struct StepCoverage {
    ways: Vec<Way>,
    reached: BTreeSet<Way>,
    /// The way that the record in it takes, as far as it is known when it enters.
    entered: Vec<Way>,
}

/// A way through a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// A record came to it.
    Reached,
    /// `when` held.
    WhenTrue,
    /// `when` did not hold.
    WhenFalse,
    /// The filter kept a record.
    Kept,
    /// The filter dropped a record.
    Dropped,
    /// The entry of `to` of this number, from 1, was taken.
    Entry(usize),
    /// The step failed, and its own `on_error` decided.
    Failed,
}

impl std::fmt::Display for Way {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Reached => f.write_str("no record came to it"),
            Self::WhenTrue => f.write_str("`when` never held"),
            Self::WhenFalse => f.write_str("`when` always held"),
            Self::Kept => f.write_str("it never kept a record"),
            Self::Dropped => f.write_str("it never dropped a record"),
            Self::Entry(number) => write!(f, "entry {number} of `to` was never taken"),
            Self::Failed => f.write_str("its `on_error` was never needed"),
        }
    }
}

/// A way that no test took.
#[derive(Debug)]
pub struct Gap<'c> {
    /// The step.
    pub step: &'c StepLabel,
    /// The way.
    pub way: Way,
}

impl Coverage {
    /// Of all routes, nothing reached.
    pub fn of(loaded: &Loaded) -> Self {
        let routes = loaded.spec.routes.values();
        let routes = routes.map(|route| (route.name.clone(), RouteCoverage::of(route, loaded)));
        Self {
            routes: routes.collect(),
        }
    }

    /// The route's part.
    pub(super) fn route(&mut self, name: &Name) -> &mut RouteCoverage {
        self.routes.entry(name.clone()).or_default()
    }

    /// Each route with its part.
    pub fn routes(&self) -> impl Iterator<Item = (&Name, &RouteCoverage)> {
        self.routes.iter()
    }
}

impl RouteCoverage {
    fn of(route: &RouteSpec, loaded: &Loaded) -> Self {
        let steps = route.chain.specs().map(|spec| StepCoverage {
            ways: ways(spec),
            ..StepCoverage::default()
        });
        Self {
            labels: Steps::of(route, &loaded.document),
            steps: steps.collect(),
        }
    }

    /// How many ways there are, and how many of them were taken.
    pub fn count(&self) -> (usize, usize) {
        let all = self.steps.iter().map(|s| s.ways.len()).sum();
        let taken = |s: &StepCoverage| s.ways.iter().filter(|w| s.reached.contains(w)).count();
        (all, self.steps.iter().map(taken).sum())
    }

    /// The ways that no test took. Of a step that no record came to, only that.
    pub fn gaps(&self) -> Vec<Gap<'_>> {
        let mut gaps = Vec::new();
        for (index, step) in self.steps.iter().enumerate() {
            let Some(label) = self.labels.get(index) else {
                continue;
            };
            let missed = step.ways.iter().filter(|w| !step.reached.contains(w));
            for way in missed {
                gaps.push(Gap {
                    step: label,
                    way: *way,
                });
                if *way == Way::Reached {
                    break;
                }
            }
        }
        gaps
    }
}

/// The ways through a step, as written.
fn ways(spec: &StepSpec) -> Vec<Way> {
    let mut ways = vec![Way::Reached];
    if spec.when.is_some() {
        ways.extend([Way::WhenTrue, Way::WhenFalse]);
    }
    if spec.filter.is_some() {
        ways.extend([Way::Kept, Way::Dropped]);
    }
    let entries = spec.rename.as_ref().and_then(|rename| rename.to.as_ref());
    ways.extend((1..=entries.map_or(0, Vec::len)).map(Way::Entry));
    if spec.on_error.is_some() {
        ways.push(Way::Failed);
    }
    ways
}

impl Observer for RouteCoverage {
    fn enters(&mut self, step: StepView<'_>, record: &Record<'_>) {
        let Some(seen) = self.steps.get_mut(step.index) else {
            return;
        };
        let way = step.way(record);
        seen.entered = vec![Way::Reached];
        seen.entered.extend(way.when.map(|holds| match holds {
            true => Way::WhenTrue,
            false => Way::WhenFalse,
        }));
        let entry = way.entry.map(|entry| Way::Entry(entry + 1));
        seen.entered.extend(entry);
    }

    fn leaves(&mut self, step: usize, out: &[Record<'_>], failure: Option<&Failure>) {
        let Some(seen) = self.steps.get_mut(step) else {
            return;
        };
        let idle = seen.entered.contains(&Way::WhenFalse);
        seen.reached.extend(seen.entered.drain(..));
        match (failure, out.is_empty()) {
            (Some(_), _) => seen.reached.insert(Way::Failed),
            (None, _) if idle => false,
            (None, true) => seen.reached.insert(Way::Dropped),
            (None, false) => seen.reached.insert(Way::Kept),
        };
    }
}
