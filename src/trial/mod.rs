//! Records through a route without a mirror: what `mirror test` and `mirror try` stand on.
//!
//! A [`Trial`] binds a route's chain to a topic as a worker does, lets one record after the other
//! through it, and picks the target partition with the route's own policy. Nothing is produced or
//! committed; there is no client here.

pub(crate) mod json;
mod kcat;
pub mod live;
mod outcome;
pub mod print;
mod sample;
pub mod show;
mod steps;
mod trace;

pub use kcat::{KcatError, parse_line};
pub use outcome::{Fate, Outcome, Output};
pub use print::Tried;
pub use sample::{Bytes, Headers, Sample};
pub use steps::{StepLabel, Steps};
pub use trace::{Passage, Snapshot, Trace};

use crate::config::spec::{Name, RouteSpec};
use crate::flow::over_limit;
use crate::handler::{BoundChain, ChainFault, Clock, Observer, StepFailure, Verdict};
use crate::partition::{Choice, Policy};
use crate::record::Record;
use std::collections::BTreeMap;

/// How many partitions a target topic has, for a record.
pub type Partitions<'p> = dyn Fn(&str, &Sample) -> i32 + 'p;

/// One flow of a route, without its clients.
pub struct Trial<'r> {
    route: &'r RouteSpec,
    target: &'r Name,
    partitions: &'r Partitions<'r>,
    clock: Clock,
    policy: Policy,
    /// Chains by source and topic: one that keeps state keeps it from record to record.
    bound: BTreeMap<(Name, String), Bound>,
}

/// A topic that the route copies has a chain, or a reason why it has none.
type Bound = Option<Result<BoundChain, ChainFault>>;

impl<'r> Trial<'r> {
    /// A trial of the flow to `target`, whose topics have as many partitions as `partitions` says.
    ///
    /// # Errors
    /// What is wrong with the partition policy, in words.
    pub fn new(
        route: &'r RouteSpec,
        target: &'r Name,
        partitions: &'r Partitions<'r>,
        clock: Clock,
    ) -> Result<Self, String> {
        Ok(Self {
            route,
            target,
            partitions,
            clock,
            policy: Policy::new(&route.policy)?,
            bound: BTreeMap::new(),
        })
    }

    /// The chain for a topic, bound as the engine binds it. `None` if the route does not copy it.
    ///
    /// # Errors
    /// What the topic cannot fill.
    pub fn chain(
        &mut self,
        source: &Name,
        topic: &str,
    ) -> Option<Result<&BoundChain, &ChainFault>> {
        self.bind(source, topic);
        let bound = self.bound.get(&(source.clone(), topic.to_owned()));
        bound.and_then(Option::as_ref).map(Result::as_ref)
    }

    /// Lets one record through, `observer` being told of every step.
    pub fn pass<O: Observer>(&mut self, sample: &Sample, observer: &mut O) -> Outcome {
        self.bind(&sample.source, &sample.topic);
        let key = (sample.source.clone(), sample.topic.clone());
        let chain = match self.bound.get(&key) {
            Some(Some(Ok(chain))) => chain,
            Some(Some(Err(fault))) => return Outcome::of(Fate::Unbound(fault.clone())),
            _ => return Outcome::of(Fate::NotCopied),
        };
        let mut out = Vec::new();
        let applied = chain.apply_observed(sample.record(), &mut out, observer);
        match applied {
            Err(failed) => self.failed(Some(failed.step), failed),
            Ok(Verdict::Dropped { step }) => Outcome::of(Fate::Dropped { step }),
            Ok(Verdict::Forward) => match over_limit(self.route.record_bytes, &out) {
                Err(failed) => self.failed(None, failed),
                Ok(()) => place(&mut self.policy, self.partitions, sample, &out),
            },
        }
    }

    fn bind(&mut self, source: &Name, topic: &str) {
        let key = (source.clone(), topic.to_owned());
        let (route, target, clock) = (self.route, self.target, self.clock);
        let bind = || route.bind(source, target, topic, clock);
        self.bound.entry(key).or_insert_with(bind);
    }

    fn failed(&self, step: Option<usize>, failed: StepFailure) -> Outcome {
        Outcome::of(Fate::Failed {
            step,
            on_error: failed.on_error.unwrap_or(self.route.on_error),
            failure: failed.failure,
        })
    }
}

/// Gives each output its partition. One that has none holds the source partition, as in the engine.
fn place(
    policy: &mut Policy,
    partitions: &Partitions<'_>,
    sample: &Sample,
    out: &[Record<'_>],
) -> Outcome {
    let mut outcome = Outcome::of(Fate::Forwarded);
    for record in out {
        let has = partitions(&record.topic, sample);
        match policy.choose(record, sample.partition, has) {
            Choice::Partition(partition) => outcome.outputs.push(Output {
                partition,
                record: Snapshot::of(record),
            }),
            Choice::TooFew { needs } => {
                let topic = record.topic.to_string();
                outcome.fate = Fate::TooFew { topic, has, needs };
                break;
            }
        }
    }
    outcome
}

#[cfg(test)]
mod tests;
