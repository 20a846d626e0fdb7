//! What is seen from outside: states with reasons, counters, and the views that `status`,
//! `/metrics` and the API render. The engine writes here, nothing here calls the engine.

mod counters;
mod reason;

pub use counters::Counters;
pub use reason::{Reason, ReasonCode};

use crate::flow::planes::Planes;
use crate::plan::Fingerprint;
use crate::record::TopicPartition;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock};
use std::time::SystemTime;

/// What a route, a flow or a partition is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Not yet fetching: resolving positions, or waiting for a target topic.
    Starting,
    /// Copying, close to the end of the source.
    Running,
    /// Copying, with records still to catch up.
    Lagging,
    /// Behind, and no progress for a while.
    Stalled,
    /// Held by the user.
    Paused,
    /// Stopping gently.
    Draining,
    /// Stopped by a fault; retried unless the reason says otherwise.
    Failed,
    /// Ended.
    Stopped,
}

impl State {
    /// Its name, the same in logs, JSON and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            State::Starting => "starting",
            State::Running => "running",
            State::Lagging => "lagging",
            State::Stalled => "stalled",
            State::Paused => "paused",
            State::Draining => "draining",
            State::Failed => "failed",
            State::Stopped => "stopped",
        }
    }
}

impl std::fmt::Display for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The stage of the path that holds up progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Nothing comes from the source.
    Fetch,
    /// Fetched, and waiting in or before the handlers.
    Handler,
    /// Handed to the target's client, and not acknowledged.
    Produce,
    /// Acknowledged, and the watermark is not committed.
    Commit,
}

/// State with its reason and times.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Condition {
    /// What it is doing.
    pub state: State,
    /// Why, where there is something to say.
    pub reason: Option<Reason>,
    /// Since when.
    #[serde(serialize_with = "unix_seconds")]
    pub since: SystemTime,
    /// When the next try is due, for what waits.
    #[serde(serialize_with = "unix_seconds_opt")]
    pub next_try: Option<SystemTime>,
}

impl Condition {
    /// A condition that begins now.
    pub fn now(state: State, reason: Option<Reason>) -> Self {
        Self {
            state,
            reason,
            since: SystemTime::now(),
            next_try: None,
        }
    }

    /// Moves to `state` for `reason`, keeping `since` when nothing changes. True if it changed.
    pub fn become_(&mut self, state: State, reason: Option<Reason>) -> bool {
        let changed = self.state != state || self.reason != reason;
        if changed {
            *self = Self::now(state, reason);
        }
        changed
    }
}

fn unix_seconds<S: serde::Serializer>(at: &SystemTime, s: S) -> Result<S::Ok, S::Error> {
    let seconds = at
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0.0, |d| d.as_secs_f64());
    s.serialize_f64((seconds * 1000.0).round() / 1000.0)
}

fn unix_seconds_opt<S: serde::Serializer>(
    at: &Option<SystemTime>,
    s: S,
) -> Result<S::Ok, S::Error> {
    match at {
        Some(at) => unix_seconds(at, s),
        None => s.serialize_none(),
    }
}

/// What is known of one source partition.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PartitionView {
    /// Its condition.
    #[serde(flatten)]
    pub condition: Condition,
    /// The watermark: every offset below is resolved.
    pub watermark: Option<i64>,
    /// The last committed value.
    pub committed: Option<i64>,
    /// The last stable offset of the source, where it was asked.
    pub end: Option<i64>,
    /// The source's high watermark, while an open transaction keeps the last stable offset below it.
    pub held_back: Option<i64>,
}

impl PartitionView {
    /// A partition that was just assigned.
    pub fn starting(reason: Reason) -> Self {
        Self {
            condition: Condition::now(State::Starting, Some(reason)),
            watermark: None,
            committed: None,
            end: None,
            held_back: None,
        }
    }

    /// What a look at the source's ends says. The last stable offset lies below the high watermark in
    /// every transaction's life; only if it stays where the look before saw it, something is held back.
    pub fn see_ends(&mut self, stable: i64, high: i64) {
        let stands_still = self.end == Some(stable);
        self.held_back = (stands_still && stable < high).then_some(high);
        self.end = Some(stable);
    }

    /// Last stable offset − watermark, `None` until both are known.
    pub fn lag(&self) -> Option<i64> {
        Some((self.end? - self.watermark?).max(0))
    }
}

/// Another member of the group copies under other settings than we do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Differing {
    /// Our settings.
    pub ours: Fingerprint,
    /// The other member's.
    pub theirs: Fingerprint,
    /// A partition that it has.
    pub at: TopicPartition,
}

impl std::fmt::Display for Differing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { ours, theirs, at } = self;
        write!(
            f,
            "another member of the group copies {at} with other settings (theirs {theirs}, ours {ours}): \
             give all members the same file"
        )
    }
}

/// Everything seen of one flow. Shared by the flow's threads and by who looks at it.
#[derive(Debug)]
pub struct FlowView {
    /// The route's name.
    pub route: String,
    /// The source cluster's name.
    pub source: String,
    /// The target cluster's name.
    pub target: String,
    /// The consumer group.
    pub group: String,
    /// Counters.
    pub counters: Counters,
    condition: Mutex<Condition>,
    partitions: Mutex<BTreeMap<TopicPartition, PartitionView>>,
    topics: Mutex<Option<Vec<String>>>,
    differing: Mutex<Option<Differing>>,
    planes: OnceLock<Planes>,
}

impl FlowView {
    /// A flow that has just been made.
    pub fn new(route: &str, source: &str, target: &str, group: &str) -> Self {
        Self {
            route: route.to_owned(),
            source: source.to_owned(),
            target: target.to_owned(),
            group: group.to_owned(),
            counters: Counters::default(),
            condition: Mutex::new(Condition::now(State::Starting, None)),
            partitions: Mutex::default(),
            topics: Mutex::default(),
            differing: Mutex::default(),
            planes: OnceLock::new(),
        }
    }

    /// The flow's own condition.
    pub fn condition(&self) -> Condition {
        lock(&self.condition).clone()
    }

    /// Moves the flow to another condition. True if that is news.
    pub fn become_(&self, state: State, reason: Option<Reason>) -> bool {
        lock(&self.condition).become_(state, reason)
    }

    /// Says when the next try is due.
    pub fn next_try(&self, at: SystemTime) {
        lock(&self.condition).next_try = Some(at);
    }

    /// The partitions that this process owns now.
    pub fn partitions(&self) -> BTreeMap<TopicPartition, PartitionView> {
        lock(&self.partitions).clone()
    }

    /// Changes what is known of one partition, making it known if it was not.
    pub fn partition(&self, of: &TopicPartition, change: impl FnOnce(&mut PartitionView)) {
        let mut all = lock(&self.partitions);
        change(
            all.entry(of.clone())
                .or_insert_with(|| PartitionView::starting(Reason::ResolvingPositions)),
        );
    }

    /// The same for a partition that may have left: it is not made known again.
    pub fn known_partition(&self, of: &TopicPartition, change: impl FnOnce(&mut PartitionView)) {
        if let Some(view) = lock(&self.partitions).get_mut(of) {
            change(view);
        }
    }

    /// Forgets a partition that left.
    pub fn forget(&self, of: &TopicPartition) {
        lock(&self.partitions).remove(of);
    }

    /// The source topics that match now; none before the first look.
    pub fn topics(&self) -> Vec<String> {
        lock(&self.topics).clone().unwrap_or_default()
    }

    /// Whether the source was looked at, and nothing matches.
    pub fn matches_nothing(&self) -> bool {
        lock(&self.topics).as_ref().is_some_and(Vec::is_empty)
    }

    /// Replaces the list of matching topics.
    pub fn set_topics(&self, topics: Vec<String>) {
        *lock(&self.topics) = Some(topics);
    }

    /// The member of the group that copies under other settings, if one was seen lately.
    pub fn differing(&self) -> Option<Differing> {
        lock(&self.differing).clone()
    }

    /// Says whether a member copies under other settings. True if that is news.
    pub fn see_differing(&self, now: Option<Differing>) -> bool {
        let mut seen = lock(&self.differing);
        let news = seen.is_some() != now.is_some();
        *seen = now;
        news
    }

    /// Which data planes run, once that is decided.
    pub fn planes(&self) -> Option<&Planes> {
        self.planes.get()
    }

    /// Says which data planes run: once.
    pub fn set_planes(&self, planes: Planes) {
        let _ = self.planes.set(planes);
    }

    /// Sum of the known lags, and whether every owned partition's lag is known.
    pub fn lag(&self) -> (i64, bool) {
        let all = lock(&self.partitions);
        let known: i64 = all.values().filter_map(PartitionView::lag).sum();
        (known, all.values().all(|p| p.lag().is_some()))
    }
}

/// Views are plain data: a panic while one was written leaves nothing half-true that matters.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_transaction_is_seen_when_the_stable_offset_stands_still_below_the_end() {
        let mut view = PartitionView::starting(Reason::ResolvingPositions);
        view.see_ends(10, 20);
        assert_eq!(view.held_back, None, "seen once: any transaction");
        view.see_ends(15, 20);
        assert_eq!(view.held_back, None, "it moves");
        view.see_ends(15, 30);
        assert_eq!(view.held_back, Some(30));
        view.see_ends(30, 30);
        assert_eq!(view.held_back, None);
        view.see_ends(30, 30);
        assert_eq!(view.held_back, None, "an idle partition");
    }
}
