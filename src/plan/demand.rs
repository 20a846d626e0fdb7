//! Changes that need the user's written word: what can reorder, repeat or lose (`accept:`).

use super::shown::Shown;
use super::{Change, renamed};
use crate::config::spec::{Accept, Name, RouteSpec, Spec, Start};
use crate::partition::PolicySpec;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// From how many running routes on the share of stopped ones is looked at.
const ENOUGH_ROUTES: usize = 4;

/// A word that a change needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Demand {
    /// The route that the word belongs to; `None`: it belongs at the top of the file.
    pub route: Option<Name>,
    /// The word.
    pub word: Accept,
    /// What it is needed for.
    pub cause: Cause,
    /// Whether the file says it.
    pub said: Said,
}

/// Whether the file says a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// It does: the change may be made.
    Yes,
    /// It does not: the change is refused.
    No,
}

/// What needs a word.
#[derive(Clone, Debug, PartialEq)]
pub enum Cause {
    /// Another partition policy: new records of a key go elsewhere than its old ones.
    Policy {
        /// The policy that runs.
        from: PolicySpec,
        /// The policy that is wanted.
        to: PolicySpec,
    },
    /// One cluster of a route is replaced by another: positions hang on its name.
    Cluster {
        /// `source` or `target`.
        end: &'static str,
        /// The cluster that goes.
        gone: Name,
        /// The cluster that comes.
        new: Name,
        /// Where a new flow begins.
        start: Start,
    },
    /// A route goes and one with the same clusters and topics comes.
    Renamed {
        /// The one that goes.
        gone: Name,
        /// Where the new one begins.
        start: Start,
    },
    /// Most routes stop.
    Stops {
        /// How many.
        stopped: usize,
        /// Of how many.
        running: usize,
    },
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let begins = |start: &Start| match start {
            Start::Earliest => "copies from the start again",
            Start::Latest => "leaves out what was not copied yet",
        };
        match self {
            Cause::Policy { from, to } => write!(
                f,
                "with partitions {} instead of {} new records of a key may go elsewhere than its \
                 old ones",
                to.shown(),
                from.shown()
            ),
            Cause::Cluster {
                end,
                gone,
                new,
                start,
            } => write!(
                f,
                "{end} {new} replaces {gone}; positions hang on the name, so the new flow {}",
                begins(start)
            ),
            Cause::Renamed { gone, start } => write!(
                f,
                "it looks like {gone} under another name; without `was: {gone}` it {}",
                begins(start)
            ),
            Cause::Stops { stopped, running } => {
                write!(f, "{stopped} of {running} running routes stop")
            }
        }
    }
}

impl fmt::Display for Demand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = self.word.shown();
        match &self.route {
            Some(route) => write!(f, "route {route}: {}", self.cause)?,
            None => write!(f, "{}", self.cause)?,
        }
        match (self.said, &self.route) {
            (Said::Yes, _) => write!(f, " (accepted: {word})"),
            (Said::No, Some(_)) => {
                write!(
                    f,
                    "; if that is meant, write `accept: [{word}]` at the route"
                )
            }
            (Said::No, None) => write!(
                f,
                "; if that is meant, write `accept: [{word}]` at the top of the file"
            ),
        }
    }
}

/// The word for a flow that begins anew.
fn word_for(start: Start) -> Accept {
    match start {
        Start::Earliest => Accept::RestartFromStart,
        Start::Latest => Accept::Gap,
    }
}

/// Every word that these changes need.
pub(super) fn demands(
    running: &Spec,
    wanted: &Spec,
    changes: &BTreeMap<Name, Change>,
) -> Vec<Demand> {
    let mut demands = Vec::new();
    for (name, change) in changes {
        match (change, running.routes.get(name)) {
            (Change::Alter(alteration), Some(before)) => {
                of_alteration(before, &alteration.wanted, &mut demands);
            }
            (Change::Start(started), _) => {
                demands.extend(suspected_rename(running, wanted, started));
            }
            _ => {}
        }
    }
    demands.extend(mass_stop(running, wanted));
    demands
}

fn of_route(route: &RouteSpec, word: Accept, cause: Cause) -> Demand {
    Demand {
        route: Some(route.name.clone()),
        word,
        cause,
        said: said(&route.accept, word),
    }
}

fn said(words: &[Accept], word: Accept) -> Said {
    if words.contains(&word) {
        Said::Yes
    } else {
        Said::No
    }
}

fn of_alteration(before: &RouteSpec, after: &RouteSpec, demands: &mut Vec<Demand>) {
    if !same_placement(&before.policy, &after.policy) {
        let cause = Cause::Policy {
            from: before.policy.clone(),
            to: after.policy.clone(),
        };
        demands.push(of_route(after, Accept::Reorder, cause));
    }
    let ends = [
        ("source", &before.sources, &after.sources),
        ("target", &before.targets, &after.targets),
    ];
    for (end, before, now) in ends {
        let missing = |here: &[Arc<_>], there: &[Arc<_>]| -> Vec<Name> {
            let of = |c: &Arc<crate::config::spec::ClusterSpec>| c.name.clone();
            let there: BTreeSet<Name> = there.iter().map(of).collect();
            here.iter()
                .map(of)
                .filter(|name| !there.contains(name))
                .collect()
        };
        // A cluster that only comes or only goes is no replacement.
        for (gone, new) in missing(before, now).into_iter().zip(missing(now, before)) {
            let start = after.start;
            let cause = Cause::Cluster {
                end,
                gone,
                new,
                start,
            };
            demands.push(of_route(after, word_for(start), cause));
        }
    }
}

/// Whether both place a record that the first could place on the same partition.
fn same_placement(from: &PolicySpec, to: &PolicySpec) -> bool {
    match (from, to) {
        // They differ in records that `stop` does not place at all.
        (PolicySpec::Match { .. }, PolicySpec::Match { .. }) => true,
        _ => from == to,
    }
}

/// A new route that looks like one that goes: same clusters, same topics, and no `was`.
fn suspected_rename(running: &Spec, wanted: &Spec, started: &RouteSpec) -> Option<Demand> {
    if started.was.is_some() {
        return None;
    }
    let gone = running.routes.iter().find(|(name, before)| {
        !wanted.routes.contains_key(*name)
            && renamed(wanted, name).is_none()
            && looks_like(before, started)
    });
    gone.map(|(gone, _)| {
        let cause = Cause::Renamed {
            gone: gone.clone(),
            start: started.start,
        };
        of_route(started, word_for(started.start), cause)
    })
}

fn looks_like(before: &RouteSpec, started: &RouteSpec) -> bool {
    let same = |a: &[Arc<crate::config::spec::ClusterSpec>], b: &[Arc<_>]| {
        a.iter().map(|c| &c.name).eq(b
            .iter()
            .map(|c: &Arc<crate::config::spec::ClusterSpec>| &c.name))
    };
    same(&before.sources, &started.sources)
        && same(&before.targets, &started.targets)
        && before.topics == started.topics
}

/// More than half of four or more routes stop. One that goes on under another name does not.
fn mass_stop(running: &Spec, wanted: &Spec) -> Option<Demand> {
    let gone = running
        .routes
        .keys()
        .filter(|name| !wanted.routes.contains_key(*name) && renamed(wanted, name).is_none());
    let (stopped, running) = (gone.count(), running.routes.len());
    (running >= ENOUGH_ROUTES && stopped * 2 > running).then(|| Demand {
        route: None,
        word: Accept::Gap,
        cause: Cause::Stops { stopped, running },
        said: said(&wanted.accept, Accept::Gap),
    })
}
