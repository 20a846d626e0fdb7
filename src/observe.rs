//! What is seen from outside: states with reasons, counters, and the views that `status`,
//! `/metrics` and the API render. The engine writes here, nothing here calls the engine.

use crate::record::TopicPartition;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
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

/// Why something is not simply running. A closed set: the same words in logs, metrics and status.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum Reason {
    /// Positions are being read from the source's group coordinator.
    ResolvingPositions,
    /// Another member of the group resolves the start of all partitions first (`engine.md` rule 7).
    AwaitingStart,
    /// The owner of partition 0 creates or grows the target topic first (KIP-3).
    AwaitingTopic {
        /// The target topic.
        topic: String,
    },
    /// The target topic is missing and may not be created.
    TargetTopicMissing {
        /// The target topic.
        topic: String,
        /// What to do.
        detail: String,
    },
    /// The target topic has fewer partitions than the policy needs.
    TargetTooFewPartitions {
        /// The target topic.
        topic: String,
        /// Its partition count.
        has: i32,
        /// The count that is needed.
        needs: i32,
    },
    /// The target refused records for a cause that is not the record's.
    TargetRefuses {
        /// The broker's error, by name, and what to do.
        detail: String,
    },
    /// One record cannot be delivered, and `on_error: stop` holds the partition.
    PoisonRecord {
        /// The record's offset in the source partition.
        offset: i64,
        /// The failure code.
        failure: String,
        /// The failure in words.
        detail: String,
    },
    /// Records between the position and the log start are gone from the source.
    Gap {
        /// The first missing offset.
        from: i64,
        /// The first offset that is there.
        to: i64,
    },
    /// The source log ends before the position: it was truncated.
    Truncated {
        /// The position.
        position: i64,
        /// The end of the log.
        end: i64,
    },
    /// The source topic was deleted and created again.
    TopicReplaced {
        /// The topic id that the position belongs to.
        was: String,
        /// The topic id now.
        now: String,
    },
    /// The committed position belongs to another target cluster.
    TargetReplaced {
        /// The cluster id in the commit.
        was: String,
        /// The cluster id now.
        now: String,
    },
    /// A cluster has another id than the file expects.
    WrongCluster {
        /// The cluster's name in the file.
        cluster: String,
        /// The id that is expected.
        expected: String,
        /// The id that it has.
        found: String,
    },
    /// The cluster does not answer.
    Unreachable {
        /// The cluster's name in the file.
        cluster: String,
        /// The client's words.
        detail: String,
    },
    /// The source refuses (rights, for instance).
    SourceRefuses {
        /// The broker's error.
        detail: String,
    },
    /// The source topic does not exist any more.
    SourceTopicGone,
    /// The last stable offset does not move although the log grows: a hanging transaction.
    OpenTransaction {
        /// The last stable offset.
        last_stable: i64,
    },
    /// No progress for a while, with records to copy.
    NoProgress {
        /// The stage that holds it up.
        stage: Stage,
    },
    /// A delivery failed; the partition goes back to its watermark.
    Rewinding,
    /// The client could not be built or failed for good.
    Client {
        /// The client's words.
        detail: String,
    },
    /// A thread of the flow panicked.
    Panic {
        /// The panic's message.
        detail: String,
    },
    /// Nothing matches the route's topics.
    NoTopics,
    /// `on_error: abort_route` met a failure.
    Aborted {
        /// The failure in words.
        detail: String,
    },
    /// The user paused it.
    ByUser,
}

impl Reason {
    /// The reason's stable name, as in metrics and JSON.
    pub fn code(&self) -> &'static str {
        match self {
            Reason::ResolvingPositions => "resolving_positions",
            Reason::AwaitingStart => "awaiting_start",
            Reason::AwaitingTopic { .. } => "awaiting_topic",
            Reason::TargetTopicMissing { .. } => "target_topic_missing",
            Reason::TargetTooFewPartitions { .. } => "target_too_few_partitions",
            Reason::TargetRefuses { .. } => "target_refuses",
            Reason::PoisonRecord { .. } => "poison_record",
            Reason::Gap { .. } => "gap",
            Reason::Truncated { .. } => "truncated",
            Reason::TopicReplaced { .. } => "topic_replaced",
            Reason::TargetReplaced { .. } => "target_replaced",
            Reason::WrongCluster { .. } => "wrong_cluster",
            Reason::Unreachable { .. } => "unreachable",
            Reason::SourceRefuses { .. } => "source_refuses",
            Reason::SourceTopicGone => "source_topic_gone",
            Reason::OpenTransaction { .. } => "open_transaction",
            Reason::NoProgress { .. } => "no_progress",
            Reason::Rewinding => "rewinding",
            Reason::Client { .. } => "client",
            Reason::Panic { .. } => "panic",
            Reason::NoTopics => "no_topics",
            Reason::Aborted { .. } => "aborted",
            Reason::ByUser => "by_user",
        }
    }
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Reason::ResolvingPositions => f.write_str("reading committed positions"),
            Reason::AwaitingStart => {
                f.write_str("another member resolves the start positions first")
            }
            Reason::AwaitingTopic { topic } => {
                write!(f, "waiting for target topic {topic} to be ready")
            }
            Reason::TargetTopicMissing { topic, detail } => {
                write!(f, "target topic {topic} is missing: {detail}")
            }
            Reason::TargetTooFewPartitions { topic, has, needs } => write!(
                f,
                "target topic {topic} has {has} partitions, {needs} are needed: grow it, or allow \
                 topic_creation, or write partitions: {{ policy: match, on_fewer: modulo }}"
            ),
            Reason::TargetRefuses { detail } => write!(f, "the target refuses: {detail}"),
            Reason::PoisonRecord {
                offset,
                failure,
                detail,
            } => write!(
                f,
                "record at offset {offset} cannot be delivered ({failure}: {detail}); on_error: stop holds the partition"
            ),
            Reason::Gap { from, to } => write!(
                f,
                "offsets {from} to {to} (exclusive) are gone from the source; on_gap: stop holds the partition"
            ),
            Reason::Truncated { position, end } => write!(
                f,
                "the source log ends at {end}, before the position {position}: it was truncated; on_gap: stop holds the partition"
            ),
            Reason::TopicReplaced { was, now } => write!(
                f,
                "the source topic was deleted and created again (id {was}, now {now}): nothing of the old position applies; \
                 restart the route to copy the new topic from its beginning (if it halts again, reset the group's \
                 offsets of this topic)"
            ),
            Reason::TargetReplaced { was, now } => write!(
                f,
                "the committed position belongs to target cluster {was}, this one is {now}: use another route name, or reset the group"
            ),
            Reason::WrongCluster {
                cluster,
                expected,
                found,
            } => write!(
                f,
                "cluster {cluster} has id {found}, the file expects {expected}"
            ),
            Reason::Unreachable { cluster, detail } => {
                write!(f, "cluster {cluster} does not answer: {detail}")
            }
            Reason::SourceRefuses { detail } => write!(f, "the source refuses: {detail}"),
            Reason::SourceTopicGone => f.write_str("the source topic does not exist any more"),
            Reason::OpenTransaction { last_stable } => write!(
                f,
                "blocked at last stable offset {last_stable}: a transaction is open at the source"
            ),
            Reason::NoProgress { stage } => write!(
                f,
                "no progress, held up in {}",
                match stage {
                    Stage::Fetch => "fetch",
                    Stage::Handler => "handler",
                    Stage::Produce => "produce",
                    Stage::Commit => "commit",
                }
            ),
            Reason::Rewinding => f.write_str("a delivery failed, going back to the watermark"),
            Reason::Client { detail } => write!(f, "client error: {detail}"),
            Reason::Panic { detail } => write!(f, "a thread panicked: {detail}"),
            Reason::NoTopics => f.write_str("no topic matches"),
            Reason::Aborted { detail } => write!(f, "on_error: abort_route: {detail}"),
            Reason::ByUser => f.write_str("paused by the user"),
        }
    }
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

/// Counters of a flow. Plain atomics: written once a batch, read by whoever asks.
///
/// I7: `fetched` = delivered inputs + dropped + dead_lettered + skipped + discarded + in flight.
#[derive(Debug, Default)]
pub struct Counters {
    /// Records fetched from the source.
    pub fetched_records: AtomicU64,
    /// Their key and value bytes.
    pub fetched_bytes: AtomicU64,
    /// Source records of which every output was acknowledged (with at least one output).
    pub delivered_records: AtomicU64,
    /// Target records acknowledged.
    pub produced_records: AtomicU64,
    /// Their key and value bytes.
    pub produced_bytes: AtomicU64,
    /// Source records that a handler dropped on purpose.
    pub dropped_records: AtomicU64,
    /// Source records settled by `on_error: skip`.
    pub skipped_records: AtomicU64,
    /// Source records settled by a dead letter.
    pub dead_lettered_records: AtomicU64,
    /// Failures of single records seen (each try counts).
    pub failed_records: AtomicU64,
    /// Fetched, then discarded by a rewind or a revoke; they are fetched again by somebody.
    pub discarded_records: AtomicU64,
    /// Registered and not resolved: records now.
    pub in_flight_records: AtomicU64,
    /// Registered and not resolved: bytes now.
    pub in_flight_bytes: AtomicU64,
    /// Commits that the broker acknowledged.
    pub commits: AtomicU64,
    /// Commits that failed (they are repeated).
    pub commit_failures: AtomicU64,
    /// Rebalance events handled (assign, revoke, lost).
    pub rebalances: AtomicU64,
    /// Partitions sent back to their watermark.
    pub rewinds: AtomicU64,
    /// Times that a partition was paused for want of budget.
    pub pauses: AtomicU64,
    /// Milliseconds that fetching was held back for want of budget.
    pub blocked_ms: AtomicU64,
    /// Records missing for good at the source (retention gaps reported).
    pub gap_records: AtomicU64,
    /// Acknowledgements that came after their epoch ended.
    pub stale_acks: AtomicU64,
    /// Sum of fetch → ack times in microseconds, per batch.
    pub delay_us_sum: AtomicU64,
    /// Number of batches in `delay_us_sum`.
    pub delay_count: AtomicU64,
}

impl Counters {
    /// Adds to one counter.
    pub fn add(counter: &AtomicU64, n: u64) {
        counter.fetch_add(n, Ordering::Relaxed);
    }

    /// Sets one gauge.
    pub fn set(gauge: &AtomicU64, n: u64) {
        gauge.store(n, Ordering::Relaxed);
    }

    /// Reads one counter.
    pub fn get(counter: &AtomicU64) -> u64 {
        counter.load(Ordering::Relaxed)
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
}

impl PartitionView {
    /// A partition that was just assigned.
    pub fn starting(reason: Reason) -> Self {
        Self {
            condition: Condition::now(State::Starting, Some(reason)),
            watermark: None,
            committed: None,
            end: None,
        }
    }

    /// Last stable offset − watermark, `None` until both are known.
    pub fn lag(&self) -> Option<i64> {
        Some((self.end? - self.watermark?).max(0))
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
    topics: Mutex<Vec<String>>,
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

    /// The source topics that match now.
    pub fn topics(&self) -> Vec<String> {
        lock(&self.topics).clone()
    }

    /// Replaces the list of matching topics.
    pub fn set_topics(&self, topics: Vec<String>) {
        *lock(&self.topics) = topics;
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
