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

use crate::config::spec::{Name, OnError, RouteSpec};
use crate::flow::over_limit;
use crate::handler::{BoundChain, ChainFault, Clock, Failure, Observer, Verdict};
use crate::partition::{Choice, Policy};
use crate::record::Record;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How many partitions a target topic has, for a record.
pub type Partitions<'p> = dyn Fn(&str, &Sample) -> i32 + 'p;

/// One flow of a route, without its clients.
pub struct Trial<'r> {
    route: &'r RouteSpec,
    target: &'r Name,
    partitions: &'r Partitions<'r>,
    clock: Clock,
    policy: Policy,
    /// Chains by source and topic.
    bound: BTreeMap<(Name, String), Bound>,
    /// What partitions have of them: one that keeps state keeps it from record to record.
    own: BTreeMap<(Name, String, i32), Arc<BoundChain>>,
}

/// A topic that the route copies has a chain, or a reason why it has none.
type Bound = Option<Result<Arc<BoundChain>, ChainFault>>;

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
            own: BTreeMap::new(),
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
        let bound = bound.and_then(Option::as_ref);
        bound.map(|bound| bound.as_deref())
    }

    /// Lets one record through, `observer` being told of every step.
    pub fn pass<O: Observer>(&mut self, sample: &Sample, observer: &mut O) -> Outcome {
        self.bind(&sample.source, &sample.topic);
        let key = (sample.source.clone(), sample.topic.clone());
        let chain = match self.bound.get(&key) {
            Some(Some(Ok(chain))) => {
                let key = (key.0, key.1, sample.partition);
                let own = self.own.entry(key);
                Arc::clone(own.or_insert_with(|| chain.for_partition()))
            }
            Some(Some(Err(fault))) => return Outcome::of(Fate::Unbound(fault.clone())),
            _ => return Outcome::of(Fate::NotCopied),
        };
        let mut out = Vec::new();
        let applied = chain.apply_observed(sample.record(), &mut out, observer);
        match applied {
            Err(failed) => self.failed(Some(failed.step), failed.failure, failed.on_error),
            Ok(Verdict::Dropped { step }) => Outcome::of(Fate::Dropped { step }),
            Ok(Verdict::Forward) => match over_limit(self.route.record_bytes, &out) {
                Err(failure) => self.failed(None, failure, None),
                Ok(()) => place(&mut self.policy, self.partitions, sample, &out),
            },
        }
    }

    fn bind(&mut self, source: &Name, topic: &str) {
        let key = (source.clone(), topic.to_owned());
        let (route, target, clock) = (self.route, self.target, self.clock);
        let bind = || Some(route.bind(source, target, topic, clock)?.map(Arc::new));
        self.bound.entry(key).or_insert_with(bind);
    }

    fn failed(&self, step: Option<usize>, failure: Failure, own: Option<OnError>) -> Outcome {
        Outcome::of(Fate::Failed {
            step,
            on_error: own.unwrap_or(self.route.on_error),
            failure,
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
