//! The route's settings, which change while records are in flight.

use crate::config::spec::{OnError, OnGap};
use crate::flow::FlowSpec;
use crate::flow::worker::tests::flow_spec;
use crate::handler::{Chain, Registry, StepSpec};
use std::num::NonZeroUsize;
use std::sync::Arc;

/// The dead-letter topic.
pub(super) const DEAD: &str = "dead";
/// How much the handler thread's queue holds.
pub(super) const QUEUE: (u64, u64) = (20, 1 << 20);

/// What a chain makes of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// One record for each element of its value: none, one or two.
    Split,
    /// The record.
    Whole,
}

/// The settings of the route as one file has them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    /// The number of the chain, which names the target topic as well: each new chain needs a topic that is not there yet.
    pub(super) chain: u32,
    pub(super) shape: Shape,
    pub(super) on_error: OnError,
    pub(super) on_gap: OnGap,
}

impl Settings {
    pub(super) fn first(on_error: OnError, on_gap: OnGap) -> Self {
        Self {
            chain: 0,
            shape: Shape::Split,
            on_error,
            on_gap,
        }
    }

    pub(super) fn topic(&self) -> String {
        format!("t{}", self.chain)
    }

    /// What a flow is made of with these settings.
    pub(super) fn spec(&self) -> FlowSpec {
        let rename = serde_json::json!({ "rename": { "topic": self.topic() } });
        let split = serde_json::json!({ "reformat": { "split": { "array": "value" } } });
        let steps = match self.shape {
            Shape::Split => vec![split, rename],
            Shape::Whole => vec![rename],
        };
        let steps: Vec<StepSpec> = serde_json::from_value(steps.into()).unwrap();
        let chain = Chain::compile(steps, &Registry::default()).unwrap();
        let spec = flow_spec(chain, self.on_error);
        let mut route = (*spec.route).clone();
        route.dead_letter = Some(DEAD.to_owned());
        route.on_gap = self.on_gap;
        route.threads.handlers = NonZeroUsize::new(1);
        (route.threads.queue_records, route.threads.queue_bytes) = (QUEUE.0 as usize, QUEUE.1);
        FlowSpec {
            route: Arc::new(route),
            ..spec
        }
    }
}

/// The chain that a target topic is of; `None` for the dead-letter topic.
pub(super) fn chain_of(topic: &str) -> Option<u32> {
    topic.strip_prefix('t')?.parse().ok()
}
