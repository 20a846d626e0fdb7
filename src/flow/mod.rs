//! A flow: one source→target pair of a route, with its own consumer group, workers and trackers.
//!
//! [`spawn`] builds it, a [`FlowHandle`] steers it, a [`FlowExit`] says how it ended.

use crate::config::spec::{ClusterSpec, Name, RouteSpec, group_name};
use crate::handler::Registry;
use crate::observe::{FlowView, Reason};
use crate::record::TopicPartition;
use std::sync::Arc;
use std::time::Instant;

mod budget;
mod dead_letter;
mod gate;
mod job;
mod lane;
pub mod listener;
mod load;
pub mod passing;
pub mod planes;
pub(crate) mod position;
pub(crate) mod scout;
mod sinks;
mod stage;
mod start;
mod target;
mod tracker;
mod verifier;
mod watch;
mod worker;

/// What threads share, for the modules whose interleavings are tried: `tests/threads/main.rs` compiles them with others in the
/// place of these.
mod sync {
    pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
}

pub(crate) use job::over_limit;
pub use start::{OnExit, spawn};

/// What a flow is made of.
#[derive(Clone)]
pub struct FlowSpec {
    /// Instances with one group share the partitions.
    pub group: Name,
    /// The route.
    pub route: Arc<RouteSpec>,
    /// One of the route's sources.
    pub source: Arc<ClusterSpec>,
    /// One of the route's targets.
    pub target: Arc<ClusterSpec>,
    /// What this flow may have in flight of the process's budget (`limits.memory`), in bytes; the
    /// route's own limit may be lower.
    pub share_bytes: u64,
}

impl FlowSpec {
    fn workers(&self) -> u8 {
        u8::try_from(self.route.threads.workers.get()).unwrap_or(u8::MAX)
    }

    /// In what form its records go.
    fn passing(&self) -> passing::Passing {
        passing::Passing::of(&self.route, &self.source, &self.target)
    }

    /// The consumer group of this flow under the route's former name.
    fn former_group(&self) -> Option<String> {
        let was = self.route.was.as_ref()?;
        let (source, target) = (&self.source.name, &self.target.name);
        Some(group_name(&self.group, was, source, target))
    }

    /// What one worker may have in flight, in bytes.
    fn worker_bytes(&self) -> u64 {
        let flow = self.route.in_flight_bytes.min(self.share_bytes);
        (flow / u64::from(self.workers())).max(1 << 20)
    }
}

/// What an embedding program brings to every flow.
#[derive(Clone, Default)]
pub struct Environment {
    /// Its handlers.
    pub handlers: Registry,
    /// Its rebalance listeners.
    pub listeners: listener::Listeners,
}

/// How a flow ended.
#[derive(Clone, Debug, PartialEq)]
pub enum FlowExit {
    /// Everything in flight was acknowledged and every watermark committed: no repeats on restart.
    Drained,
    /// As `Drained`, and `until: end` was reached.
    CaughtUp,
    /// Stopped before everything was confirmed: these offsets may be copied again.
    Unconfirmed(Vec<Unconfirmed>),
    /// It cannot go on; the supervisor starts it again with back-off.
    Failed(Reason),
    /// `on_error: abort_route` met a failure: the whole route stops and is not restarted by itself.
    AbortRoute(Reason),
}

/// A range that may be copied again after a restart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unconfirmed {
    /// The source partition.
    pub partition: TopicPartition,
    /// The last offset that was committed, where one was.
    pub committed: Option<i64>,
    /// The first offset not handed to the target.
    pub next: i64,
}

/// Steers a running flow. Dropping it aborts the flow.
pub struct FlowHandle {
    /// What is seen of it.
    pub view: Arc<FlowView>,
    control: crossbeam_channel::Sender<Control>,
}

/// What a flow can be told.
#[derive(Clone)]
pub(crate) enum Control {
    /// Stop fetching, drain, commit, leave; give up at the deadline.
    Drain {
        /// When to give up.
        deadline: Instant,
    },
    /// Stop at once.
    Abort,
    /// Take over new settings of the route, between two batches.
    Change(NewSettings),
}

/// Called once, when every worker of a flow has taken new settings over, or has ended.
pub type OnTaken = Box<dyn FnOnce() + Send + Sync>;

/// Settings on their way to the workers of a flow.
#[derive(Clone)]
pub(crate) struct NewSettings {
    route: Arc<RouteSpec>,
    _taken: Arc<Taken>,
}

/// Speaks when the last worker has let go of it: also if that worker panicked.
struct Taken(Option<OnTaken>);

impl Drop for Taken {
    fn drop(&mut self) {
        if let Some(on_taken) = self.0.take() {
            on_taken();
        }
    }
}

impl FlowHandle {
    /// Asks the flow to stop gently until `deadline`; its exit follows.
    pub fn drain(&self, deadline: Instant) {
        let _ = self.control.send(Control::Drain { deadline });
    }

    /// Gives the flow new settings, which hold from the next batch of each partition on; `on_taken`
    /// follows. The settings of class `live` are taken over, others are not looked at.
    pub fn change(&self, route: Arc<RouteSpec>, on_taken: OnTaken) {
        let taken = Arc::new(Taken(Some(on_taken)));
        let settings = NewSettings {
            route,
            _taken: taken,
        };
        let _ = self.control.send(Control::Change(settings));
    }

    /// Asks the flow to stop at once; its exit follows.
    pub fn abort(&self) {
        let _ = self.control.send(Control::Abort);
    }
}
