//! The configuration as validated: what the plan compares and the engine runs.
//!
//! raw → **spec** → running are three types. A value of these types passed every check that can
//! be made offline; only `config::validate` makes them.

use crate::config::pattern::Pattern;
use crate::config::secret::Secret;
use crate::handler::{Binding, BoundChain, Chain, ChainFault, Clock};
use crate::partition::PolicySpec;
use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The name of a cluster, route, chain or group: `[a-z0-9_-]+`, no dots, so that consumer group
/// names cannot collide.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Arc<str>);

impl Name {
    /// `text` as a name, `None` if it is empty or has other characters.
    pub fn new(text: &str) -> Option<Self> {
        let legal = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-';
        (!text.is_empty() && text.bytes().all(legal)).then(|| Self(text.into()))
    }

    /// The name's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One file, or several, as validated.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// Instances with one group share the partitions.
    pub group: Name,
    /// The clusters by name.
    pub clusters: BTreeMap<Name, Arc<ClusterSpec>>,
    /// The routes by name.
    pub routes: BTreeMap<Name, Arc<RouteSpec>>,
    /// Budget of the whole process.
    pub memory_bytes: u64,
    /// How the file is watched.
    pub reload: ReloadSpec,
    /// How long stopping may take in all.
    pub grace: Duration,
    /// Where the admin interface listens.
    pub admin: AdminSpec,
    /// The user's written word for a reload that stops most routes.
    pub accept: Vec<Accept>,
}

impl Spec {
    /// Takes over from `running` the routes and clusters that are the same, also where a load made them
    /// otherwise and they became so later.
    pub fn take_over(&mut self, running: &Self) {
        take_over_same(&mut self.routes, &running.routes);
        take_over_same(&mut self.clusters, &running.clusters);
    }
}

fn take_over_same<T: PartialEq>(
    wanted: &mut BTreeMap<Name, Arc<T>>,
    running: &BTreeMap<Name, Arc<T>>,
) {
    for (name, wanted) in wanted {
        let running = running.get(name);
        let other = running.filter(|running| !Arc::ptr_eq(running, wanted));
        if let Some(same) = other.filter(|running| *running == wanted) {
            *wanted = Arc::clone(same);
        }
    }
}

/// `wanted`, or what runs under that name if it is the same: it is held once, with what it has compiled
/// since.
pub fn held_once<T: PartialEq>(
    name: &Name,
    wanted: T,
    running: Option<&BTreeMap<Name, Arc<T>>>,
) -> Arc<T> {
    let same = running.and_then(|running| running.get(name));
    match same.filter(|same| ***same == wanted) {
        Some(same) => Arc::clone(same),
        None => Arc::new(wanted),
    }
}

/// A cluster: how to reach it and who we expect there.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterSpec {
    /// Its name in the file.
    pub name: Name,
    /// `host:port` list.
    pub bootstrap_servers: Vec<String>,
    /// Client properties given by the user; protected ones were refused.
    pub properties: BTreeMap<String, Secret>,
    /// TLS, if the listener wants it.
    pub tls: Option<TlsSpec>,
    /// SASL, if the listener wants it.
    pub sasl: Option<SaslSpec>,
    /// What may be done there.
    pub access: Access,
    /// The cluster id that must be found there.
    pub expect_cluster_id: Option<String>,
    /// Which data plane serves it, where a route does not say.
    pub data_plane: DataPlane,
}

/// What may be done on a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Anything.
    ReadWrite,
    /// Nothing is written or created there but mirror's own group offsets.
    Read,
}

/// TLS of a cluster. Paths are as the user wrote them, relative to the file's folder resolved.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct TlsSpec {
    /// Authorities to trust, PEM; the system's where absent.
    pub ca: Option<PathBuf>,
    /// Client certificate, PEM.
    pub certificate: Option<PathBuf>,
    /// Its private key, PEM.
    pub key: Option<PathBuf>,
    /// The key's password.
    pub key_password: Option<Secret>,
    /// Whether the broker's name must be in its certificate.
    pub verify_hostname: VerifyHostname,
}

/// Whether the broker's host name is compared with its certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum VerifyHostname {
    /// It is (the default).
    #[default]
    Yes,
    /// It is not: only the chain is verified.
    No,
}

/// SASL of a cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct SaslSpec {
    /// The mechanism.
    pub mechanism: SaslMechanism,
    /// User name, for PLAIN and SCRAM.
    pub username: Option<String>,
    /// Password, for PLAIN and SCRAM.
    pub password: Option<Secret>,
}

/// SASL mechanisms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaslMechanism {
    /// PLAIN.
    Plain,
    /// SCRAM-SHA-256.
    ScramSha256,
    /// SCRAM-SHA-512.
    ScramSha512,
    /// OAUTHBEARER; the token method's settings are client properties (`sasl.oauthbearer.*`).
    OauthBearer,
    /// Kerberos; its settings are client properties (`sasl.kerberos.*`).
    Gssapi,
}

impl SaslMechanism {
    /// The name as Kafka spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            SaslMechanism::Plain => "PLAIN",
            SaslMechanism::ScramSha256 => "SCRAM-SHA-256",
            SaslMechanism::ScramSha512 => "SCRAM-SHA-512",
            SaslMechanism::OauthBearer => "OAUTHBEARER",
            SaslMechanism::Gssapi => "GSSAPI",
        }
    }
}

/// A route: what is copied from where to where, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct RouteSpec {
    /// Its name; part of the consumer group's name.
    pub name: Name,
    /// The user's words about it.
    pub about: Option<String>,
    /// One flow for each source and target.
    pub sources: Vec<Arc<ClusterSpec>>,
    /// One flow for each source and target.
    pub targets: Vec<Arc<ClusterSpec>>,
    /// Which source topics.
    pub topics: TopicSelection,
    /// The handlers; empty is the pass-through handler.
    pub chain: Chain,
    /// How the target partition is picked.
    pub policy: PolicySpec,
    /// Where a flow starts, once.
    pub start: Start,
    /// What to do when records that were still to copy are gone.
    pub on_gap: OnGap,
    /// What to do with a record that cannot be delivered.
    pub on_error: OnError,
    /// The dead-letter topic at the target cluster.
    pub dead_letter: Option<String>,
    /// Threads of a flow.
    pub threads: ThreadSpec,
    /// Creation and growth of target topics.
    pub topic_creation: TopicCreation,
    /// Registered and unresolved bytes of a flow, at most.
    pub in_flight_bytes: u64,
    /// Output of one record at most, in bytes; the target topic's limit where absent.
    pub record_bytes: Option<u64>,
    /// How often watermarks are committed.
    pub commit_interval: Duration,
    /// How often topics and partitions are looked for.
    pub discovery_interval: Duration,
    /// Told about rebalances after our own work (KIP-3).
    pub rebalance_listener: Option<ListenerSpec>,
    /// Membership protocol.
    pub group_protocol: GroupProtocol,
    /// When the route is done.
    pub until: Until,
    /// Which data plane serves it.
    pub data_plane: DataPlane,
    /// Its former name, whose positions it keeps.
    pub was: Option<Name>,
    /// The user's written word for changes that can reorder, repeat or lose.
    pub accept: Vec<Accept>,
}

impl RouteSpec {
    /// The chain bound to a source topic of one flow. `None` if the route does not copy the topic.
    ///
    /// # Errors
    /// What the topic cannot fill.
    pub fn bind(
        &self,
        source: &Name,
        target: &Name,
        topic: &str,
        clock: Clock,
    ) -> Option<Result<BoundChain, ChainFault>> {
        let selected_by = self.topics.selects(topic)?;
        Some(self.chain.bind(&Binding {
            route: self.name.as_str(),
            source: source.as_str(),
            target: target.as_str(),
            topic,
            selected_by,
            clock,
            record_bytes: self.record_bytes,
        }))
    }
}

/// What the user accepts of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Accept {
    /// Records of one key may change their order.
    Reorder,
    /// The route may begin again.
    RestartFromStart,
    /// Records may be left out.
    Gap,
}

/// Regexes on whole topic names; exclude wins; internal topics are out unless named literally.
#[derive(Clone, Debug)]
pub struct TopicSelection {
    /// As written, for display and comparison.
    pub include_patterns: Vec<String>,
    /// As written, for display and comparison.
    pub exclude_patterns: Vec<String>,
    /// For the whole name.
    pub include: Vec<Pattern>,
    /// For the whole name.
    pub exclude: Vec<Pattern>,
}

impl PartialEq for TopicSelection {
    fn eq(&self, other: &Self) -> bool {
        self.include_patterns == other.include_patterns
            && self.exclude_patterns == other.exclude_patterns
    }
}

impl TopicSelection {
    /// Reads the patterns; the error carries the index of the pattern in `include` then
    /// `exclude` order.
    pub fn new(include: &[String], exclude: &[String]) -> Result<Self, (usize, regex::Error)> {
        let read = |from: usize, patterns: &[String]| {
            patterns
                .iter()
                .enumerate()
                .map(|(i, p)| Pattern::new(p).map_err(|e| (from + i, e)))
                .collect::<Result<Vec<_>, _>>()
        };
        Ok(Self::of(read(0, include)?, read(include.len(), exclude)?))
    }

    /// The topics that `include` takes and `exclude` does not.
    pub fn of(mut include: Vec<Pattern>, mut exclude: Vec<Pattern>) -> Self {
        // There are few of them in each of many routes, and a pattern is large.
        include.shrink_to_fit();
        exclude.shrink_to_fit();
        let written = |patterns: &[Pattern]| {
            let texts = patterns.iter().map(Pattern::pattern);
            texts.map(str::to_owned).collect()
        };
        Self {
            include_patterns: written(&include),
            exclude_patterns: written(&exclude),
            include,
            exclude,
        }
    }

    /// The same without what the patterns made so far: a check asks those of every route, and of many
    /// routes that would be most of the memory.
    pub fn unasked(mut self) -> Self {
        let patterns = self.include.iter_mut().chain(&mut self.exclude);
        patterns.for_each(Pattern::let_go);
        self
    }

    /// The include pattern that selects `topic`, `None` if it is not selected.
    ///
    /// Internal topics (B037) are selected only by an include that is literally their name.
    pub fn selects(&self, topic: &str) -> Option<&Pattern> {
        // Mostly no pattern of a route takes a topic, and the beginning of each says so.
        let by = match is_internal(topic) {
            true => self.include.iter().find(|p| p.pattern() == topic),
            false => self.include.iter().find(|p| p.is_match(topic)),
        };
        by.filter(|_| !self.exclude.iter().any(|p| p.is_match(topic)))
    }
}

/// Topics that clusters and replicators keep for themselves.
fn is_internal(topic: &str) -> bool {
    topic.starts_with("__")
        || topic == "heartbeats"
        || topic.ends_with(".heartbeats")
        || topic.ends_with(".checkpoints.internal")
        || (topic.starts_with("mm2-offset") && topic.ends_with(".internal"))
}

/// Where a flow starts, once, at its first start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// At the log start of every partition.
    Earliest,
    /// At the end of every partition that exists at the first start.
    Latest,
}

/// What to do when records that were still to copy are gone from the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnGap {
    /// The partition halts; never guess.
    Stop,
    /// Go on at the first record there is, reporting the exact range.
    Earliest,
    /// Go on at the end, reporting the exact range.
    Latest,
}

/// What to do with a record that cannot be delivered, once it stands alone as the culprit.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum OnError {
    /// The partition halts with a reason, and is retried.
    Stop,
    /// The record is left out, counted.
    Skip,
    /// The record goes to the dead-letter topic.
    DeadLetter,
    /// The whole route stops.
    AbortRoute,
}

/// Threads of a flow (KIP-3's two shapes).
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadSpec {
    /// Threads with a consumer of their own in the flow's group (Proposal 2).
    pub workers: NonZeroUsize,
    /// Handle-and-produce threads behind each worker (Proposal 1); `None`: the worker does it.
    pub handlers: Option<NonZeroUsize>,
    /// Records that wait for one handler thread at most.
    pub queue_records: usize,
    /// Bytes that wait for one handler thread at most.
    pub queue_bytes: u64,
    /// Producers of a flow; a source partition stays on one.
    pub producers: NonZeroUsize,
}

/// Creation and growth of target topics.
#[derive(Clone, Debug, PartialEq)]
pub struct TopicCreation {
    /// Whether missing topics are created and small ones grown.
    pub mode: CreationMode,
    /// Replication factor; the target broker's default where absent.
    pub replication_factor: Option<i32>,
    /// Topic settings copied from the source topic at creation.
    pub configs: Vec<String>,
}

/// Whether target topics are created and grown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreationMode {
    /// They are.
    Enabled,
    /// They must be there; a missing one halts what needs it.
    Disabled,
}

/// A rebalance listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenerSpec {
    /// Built in: one log line per event.
    Log,
    /// Built in: runs a command with the event as JSON on its standard input.
    Exec {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
    },
    /// Registered by an embedding program.
    Registered(String),
}

/// Group membership protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupProtocol {
    /// Cooperative-sticky over the classic protocol.
    Classic,
    /// KIP-848.
    Consumer,
}

/// Which implementation fetches and produces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum DataPlane {
    /// Whichever suits.
    #[default]
    Auto,
    /// Our own.
    Native,
    /// librdkafka.
    Librdkafka,
}

/// When a route is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Never: it follows the source.
    Stopped,
    /// When the group's commits reach the ends captured at start.
    End,
}

/// How the file is watched.
#[derive(Clone, Debug, PartialEq)]
pub struct ReloadSpec {
    /// Whether changes of the file are followed by themselves.
    pub watch: Watch,
    /// Quiet time after the last event.
    pub settle: Duration,
}

/// Whether the file is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watch {
    /// It is.
    On,
    /// Only SIGHUP and `mirror reload` reload.
    Off,
}

/// Where the admin interface listens.
#[derive(Clone, Debug, PartialEq)]
pub struct AdminSpec {
    /// HTTP for looking; `None` turns it off.
    pub listen: Option<SocketAddr>,
    /// Unix socket for looking and changing; `None` is the default path.
    pub socket: Option<PathBuf>,
    /// With this token changing calls may come over HTTP; without one, over the socket only.
    pub token: Option<Secret>,
}

/// The consumer group of a flow. The one place where its name is made (`engine.md` rule 16).
pub fn group_name(group: &Name, route: &Name, source: &Name, target: &Name) -> String {
    format!("mirror.{group}.{route}.{source}.{target}")
}
