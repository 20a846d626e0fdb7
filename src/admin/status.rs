//! The status: what `GET /api/v1/status` answers and `mirror status` prints. Stable field names.

use crate::config::spec::Watch;
use crate::flow::planes::Plane;
use crate::observe::{Condition, Counters, Differing, PartitionView, Reason, State};
use crate::record::TopicPartition;
use crate::supervisor::board::{FlowEntry, Phase, Rejection, RouteView, Snapshot};
use crate::supervisor::meter::Rate;
use crate::supervisor::verdict::ReloadVerdict;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::SystemTime;

/// Partitions in trouble that a flow's status lists at most; a route's own page lists all.
const TROUBLED: usize = 20;

/// The process and its routes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Status {
    /// The program's version.
    pub version: String,
    /// The group's name.
    pub group: Option<String>,
    /// What the process is doing.
    pub phase: Phase,
    /// When it began, in seconds since 1970, as all times here.
    pub started: f64,
    /// How many configurations were applied.
    pub generation: u64,
    /// Hash of the running configuration's files.
    pub hash: String,
    /// When it was applied.
    pub applied_at: f64,
    /// Whether the files are watched.
    pub watching: bool,
    /// What keeps changes of the files from being seen as they should.
    #[serde(default)]
    pub watch_troubles: Vec<String>,
    /// Where the process differs from its file: routes that are paused by hand.
    #[serde(default)]
    pub drift: Vec<String>,
    /// The rejected configuration in the files, while they differ from what runs.
    pub rejected: Option<Rejection>,
    /// The last reload's verdict.
    pub last_reload: Option<LastReload>,
    /// The routes by name.
    pub routes: BTreeMap<String, RouteStatus>,
}

/// A verdict with its time.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LastReload {
    /// When it fell.
    pub at: f64,
    /// What it was.
    #[serde(flatten)]
    pub verdict: ReloadVerdict,
}

/// A condition as text.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ConditionStatus {
    /// The state's name.
    pub state: String,
    /// Why, where there is something to say.
    pub reason: Option<ReasonStatus>,
    /// Since when.
    pub since: f64,
    /// When the next try is due.
    pub next_try: Option<f64>,
}

/// A reason as code and text.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReasonStatus {
    /// From the closed set.
    pub code: String,
    /// In words.
    pub text: String,
}

/// One route.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RouteStatus {
    /// The user's words about it.
    pub about: Option<String>,
    /// Its condition: as well as its worst flow.
    #[serde(flatten)]
    pub condition: ConditionStatus,
    /// Records behind, over all flows; `null` until all are known.
    pub lag: Option<i64>,
    /// Over all flows; the delay is that of the slowest.
    #[serde(flatten)]
    pub rate: Rate,
    /// Its flows.
    pub flows: Vec<FlowStatus>,
}

/// One flow.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FlowStatus {
    /// The source cluster's name.
    pub source: String,
    /// The target cluster's name.
    pub target: String,
    /// The consumer group.
    pub consumer_group: String,
    /// Which implementation fetches and which one produces, and why.
    #[serde(default)]
    pub data_plane: Option<DataPlaneStatus>,
    /// Its condition.
    #[serde(flatten)]
    pub condition: ConditionStatus,
    /// Another member of the group that copies with other settings, if one was seen lately.
    #[serde(default)]
    pub differing: Option<DifferingStatus>,
    /// Records behind; `null` until every partition's is known.
    pub lag: Option<i64>,
    /// How fast it is.
    #[serde(flatten)]
    pub rate: Rate,
    /// Records fetched and not resolved.
    pub in_flight_records: u64,
    /// Their bytes.
    pub in_flight_bytes: u64,
    /// Times that it was started again after a failure.
    pub restarts: u64,
    /// Source topics that match.
    pub topics: usize,
    /// Partitions that this process owns.
    pub partitions: usize,
    /// Partitions that are failed, stalled or held back by an open transaction; all of them on a route's own page.
    pub partitions_listed: Vec<PartitionStatus>,
    /// The counters by name.
    pub counters: BTreeMap<String, u64>,
}

/// Members of a group whose files differ.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DifferingStatus {
    /// Our settings, as a hash.
    pub ours: String,
    /// The other member's.
    pub theirs: String,
    /// The topic of a partition that the other member has.
    pub topic: String,
    /// That partition.
    pub partition: i32,
    /// In words.
    pub text: String,
}

/// The data planes of a flow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataPlaneStatus {
    /// Who fetches.
    pub fetch: PlaneStatus,
    /// Who produces.
    pub produce: PlaneStatus,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlaneStatus {
    /// `native` or `librdkafka`.
    pub plane: String,
    /// Why it is this one.
    pub because: String,
}

impl From<&Plane> for PlaneStatus {
    fn from(plane: &Plane) -> Self {
        Self {
            plane: plane.as_str().to_owned(),
            because: plane.because(),
        }
    }
}

/// One source partition.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PartitionStatus {
    /// The source topic.
    pub topic: String,
    /// The partition.
    pub partition: i32,
    /// Its condition.
    #[serde(flatten)]
    pub condition: ConditionStatus,
    /// Every offset below is resolved.
    pub watermark: Option<i64>,
    /// The last committed value.
    pub committed: Option<i64>,
    /// Records behind.
    pub lag: Option<i64>,
}

/// Which partitions are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Those in trouble, and not too many.
    Troubled,
    /// All.
    All,
}

/// Seconds since 1970.
pub fn seconds(at: SystemTime) -> f64 {
    at.duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0.0, |since| (since.as_secs_f64() * 1e3).round() / 1e3)
}

impl From<&Condition> for ConditionStatus {
    fn from(condition: &Condition) -> Self {
        let reason = condition.reason.as_ref();
        Self {
            state: condition.state.to_string(),
            reason: reason.map(|reason| ReasonStatus {
                code: reason.code().to_owned(),
                text: reason.to_string(),
            }),
            since: seconds(condition.since),
            next_try: condition.next_try.map(seconds),
        }
    }
}

impl From<&Differing> for DifferingStatus {
    fn from(differing: &Differing) -> Self {
        Self {
            ours: differing.ours.to_string(),
            theirs: differing.theirs.to_string(),
            topic: differing.at.topic.to_string(),
            partition: differing.at.partition,
            text: differing.to_string(),
        }
    }
}

impl From<&Snapshot> for Status {
    fn from(snapshot: &Snapshot) -> Self {
        let process = &snapshot.process;
        let routes = snapshot.routes.iter();
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            group: process.group.as_ref().map(ToString::to_string),
            phase: process.phase,
            started: seconds(process.started),
            generation: process.generation,
            hash: process.hash.clone(),
            applied_at: seconds(process.applied_at),
            watching: process.watch == Watch::On,
            watch_troubles: process.watch_troubles.clone(),
            drift: super::plan::paused(snapshot),
            rejected: process.rejected.clone(),
            last_reload: process.last_reload.clone().map(|(at, verdict)| LastReload {
                at: seconds(at),
                verdict,
            }),
            routes: routes
                .map(|(name, route)| (name.to_string(), route_status(route, Detail::Troubled)))
                .collect(),
        }
    }
}

/// The status of one route.
pub fn route_status(route: &RouteView, detail: Detail) -> RouteStatus {
    let flows: Vec<FlowStatus> = route.flows.iter().map(|f| flow_status(f, detail)).collect();
    let lags: Option<Vec<i64>> = flows.iter().map(|flow| flow.lag).collect();
    RouteStatus {
        about: route.about.clone(),
        condition: (&route.condition()).into(),
        lag: lags.map(|lags| lags.iter().sum()),
        rate: Rate {
            records_per_second: flows.iter().map(|f| f.rate.records_per_second).sum(),
            bytes_per_second: flows.iter().map(|f| f.rate.bytes_per_second).sum(),
            delay_seconds: flows
                .iter()
                .filter_map(|f| f.rate.delay_seconds)
                .reduce(f64::max),
        },
        flows,
    }
}

fn flow_status(entry: &FlowEntry, detail: Detail) -> FlowStatus {
    let view = &entry.view;
    let partitions = view.partitions();
    let (lag, known) = view.lag();
    let totals = entry.totals();
    FlowStatus {
        source: entry.id.source.clone(),
        target: entry.id.target.clone(),
        consumer_group: view.group.clone(),
        data_plane: view.planes().map(|planes| DataPlaneStatus {
            fetch: (&planes.fetch).into(),
            produce: (&planes.produce).into(),
        }),
        condition: (&view.condition()).into(),
        differing: view.differing().as_ref().map(Into::into),
        lag: (known && !partitions.is_empty()).then_some(lag),
        rate: entry.rate,
        in_flight_records: Counters::get(&view.counters.in_flight_records),
        in_flight_bytes: Counters::get(&view.counters.in_flight_bytes),
        restarts: entry.restarts,
        topics: view.topics().len(),
        partitions: partitions.len(),
        partitions_listed: listed(&partitions, detail),
        counters: totals
            .iter()
            .map(|(counted, value)| (counted.raw_name().to_owned(), value))
            .collect(),
    }
}

fn listed(
    partitions: &BTreeMap<TopicPartition, PartitionView>,
    detail: Detail,
) -> Vec<PartitionStatus> {
    let (wanted, most): (fn(&Condition) -> bool, usize) = match detail {
        Detail::All => (|_| true, usize::MAX),
        Detail::Troubled => (is_troubled, TROUBLED),
    };
    partitions
        .iter()
        .filter(|(_, partition)| wanted(&partition.condition))
        .take(most)
        .map(|(at, partition)| PartitionStatus {
            topic: at.topic.to_string(),
            partition: at.partition,
            condition: (&partition.condition).into(),
            watermark: partition.watermark,
            committed: partition.committed,
            lag: partition.lag(),
        })
        .collect()
}

fn is_troubled(condition: &Condition) -> bool {
    matches!(condition.state, State::Failed | State::Stalled)
        || matches!(condition.reason, Some(Reason::OpenTransaction { .. }))
}
