//! The file as written. The JSON schema is made from these types; their comments are its texts.
//!
//! Every field is an `Option`, also those that the schema requires: what the schema refused is
//! taken out before the reading, so that the rest can still be checked.

use crate::case::raw::RawTest;
use crate::config::forms::{AsWritten, Listener, OneOrMany, Partitions, Scalar};
use crate::config::spec::OnError;
use crate::config::units::{DurationText, SizeText};
use crate::config::words::{
    Delivery, RawAccept, RawAccess, RawDataPlane, RawGroupProtocol, RawMechanism, RawOnGap,
    RawStart, RawUntil,
};
use crate::handler::StepSpec;
use schemars::{JsonSchema, Schema};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Takes `null` out of what the members of an object may be: `routes:` with nothing behind it is
/// a half-written file, never "no routes".
pub(crate) fn without_null(schema: &mut Schema) {
    let Some(Value::Object(members)) = schema.get_mut("properties") else {
        return;
    };
    for member in members.values_mut() {
        let Value::Object(member) = member else {
            continue;
        };
        if let Some(Value::Array(types)) = member.get_mut("type") {
            types.retain(|t| t != "null");
            if let [only] = types.as_slice() {
                let only = only.clone();
                member.insert("type".to_owned(), only);
            }
        }
        if let Some(Value::Array(branches)) = member.get_mut("anyOf") {
            branches.retain(|b| b.get("type").is_none_or(|t| t != "null"));
            if let [Value::Object(only)] = branches.as_slice() {
                let only = only.clone();
                member.remove("anyOf");
                for (keyword, value) in only {
                    member.entry(keyword).or_insert(value);
                }
            }
        }
    }
}

/// A struct of the file: every key known, every key optional, absent and `null` never the same.
macro_rules! raw {
    ($($(#[$about:meta])* pub struct $name:ident { $($fields:tt)* })*) => {
        $(#[derive(Clone, Debug, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        #[schemars(transform = without_null)]
        $(#[$about])*
        pub struct $name { $($fields)* })*
    };
}

pub(crate) use raw;

/// `defaults:` and a route share the settings; a route has more.
macro_rules! with_settings {
    ($(#[$about:meta])* pub struct $name:ident { $($own:tt)* }) => {
        raw! {
            $(#[$about])*
            pub struct $name {
                $($own)*
                /// Delivery guarantee. `at_least_once` is the only one for now: a source offset is
                /// committed only after everything before it is acknowledged by the target.
                pub delivery: Option<Delivery>,
                /// Where a flow starts, once, at its first start. Topics and partitions that are
                /// found later begin at their beginning.
                pub start: Option<RawStart>,
                /// What to do when records that were still to copy are gone from the source.
                pub on_gap: Option<RawOnGap>,
                /// What to do with a record that cannot be delivered, once it stands alone as the
                /// culprit. A step may have its own.
                pub on_error: Option<OnError>,
                /// Where such records go with `on_error: dead_letter`.
                pub dead_letter: Option<RawDeadLetter>,
                /// The handlers, in their order: `filter`, `rename`, `reformat`, `use`. None: every
                /// record passes as it is.
                #[schemars(with = "Option<Vec<StepSpec>>")]
                pub handlers: Option<AsWritten>,
                /// How the target partition is picked: `match`, `key_hash`, `modulo`,
                /// `round_robin`, `{ policy: NAME, on_fewer: stop | modulo }`, `{ fixed: N }` or
                /// `{ by: PATH }`.
                pub partitions: Option<Partitions>,
                /// Threads of each flow, each with a consumer of its own in the flow's group, that
                /// fetch, handle and produce.
                #[schemars(range(min = 1, max = 1024))]
                pub workers: Option<usize>,
                /// Threads behind each worker that handle and produce what it fetched. Absent: the
                /// worker does it itself.
                #[schemars(range(min = 1, max = 1024))]
                pub handler_threads: Option<usize>,
                /// What may wait for one handler thread.
                pub queue: Option<RawQueue>,
                /// Producers of each flow, shared by its threads; a source partition stays on one.
                #[schemars(range(min = 1, max = 1024))]
                pub producers: Option<usize>,
                /// Creation and growth of target topics.
                pub topic_creation: Option<RawTopicCreation>,
                /// Limits of each flow.
                pub limits: Option<RawRouteLimits>,
                /// How often the committed offsets follow what is acknowledged.
                #[schemars(extend("not" = crate::config::units::zero()))]
                pub commit_interval: Option<DurationText>,
                /// How often new topics and partitions are looked for.
                #[schemars(extend("not" = crate::config::units::zero()))]
                pub discovery_interval: Option<DurationText>,
                /// Who is told about rebalances, after our own drain and commit: `log`,
                /// `{ exec: [command, args…] }`, or a name that an embedding program registered.
                pub rebalance_listener: Option<Listener>,
                /// Membership protocol of the consumer group.
                pub group_protocol: Option<RawGroupProtocol>,
                /// When the route is done: `end` when the group's commits reach the ends captured
                /// at start, `stopped` never.
                pub until: Option<RawUntil>,
                /// Which implementation fetches and produces.
                pub data_plane: Option<RawDataPlane>,
            }
        }
    };
}

raw! {
    /// Configuration of `mirror`: Kafka clusters, and the routes that copy topics between them.
    #[schemars(title = "mirror")]
    pub struct RawFile {
        /// Version of this format: 1.
        #[schemars(required, range(min = 1, max = 1))]
        pub version: Option<u64>,
        /// Instances with one group share the partitions; part of every consumer group's name.
        pub group: Option<String>,
        /// The Kafka clusters by name (`a-z 0-9 _ -`).
        #[schemars(required)]
        pub clusters: Option<BTreeMap<String, RawCluster>>,
        /// Merged into every route: maps key by key, lists and scalars replace. `partitions` and
        /// `rebalance_listener` replace as a whole.
        pub defaults: Option<RawDefaults>,
        /// Named chains of steps, for `use:`.
        #[schemars(with = "Option<BTreeMap<String, Vec<StepSpec>>>")]
        pub handlers: Option<BTreeMap<String, Vec<Value>>>,
        /// What is copied, by name (`a-z 0-9 _ -`). The name is the identity in reloads, metrics
        /// and consumer groups.
        #[schemars(required)]
        pub routes: Option<BTreeMap<String, RawRoute>>,
        /// Your written word for a reload that stops more than half of four or more routes: `gap`.
        pub accept: Option<Vec<RawAccept>>,
        /// Limits of the whole process.
        pub limits: Option<RawLimits>,
        /// How changes of the files are followed.
        pub reload: Option<RawReload>,
        /// How the process stops.
        pub shutdown: Option<RawShutdown>,
        /// The admin interface.
        pub admin: Option<RawAdmin>,
        /// Further files, relative to this one; `*` and `?` match inside a file name.
        pub include: Option<Vec<String>>,
        /// Tests for `mirror test`: records in, records out.
        pub tests: Option<Vec<RawTest>>,
    }

    /// A Kafka cluster.
    pub struct RawCluster {
        /// Where to connect first, `host:port` each.
        #[schemars(required, length(min = 1))]
        pub bootstrap_servers: Option<Vec<String>>,
        /// Further librdkafka properties for all clients of this cluster. Those that delivery
        /// rests on are refused.
        pub properties: Option<BTreeMap<String, Scalar>>,
        /// TLS, if the listener wants it.
        pub tls: Option<RawTls>,
        /// SASL, if the listener wants it.
        pub sasl: Option<RawSasl>,
        /// `read` is a promise: nothing is written or created there but mirror's own group offsets.
        pub access: Option<RawAccess>,
        /// The cluster id that must be found there.
        pub expect_cluster_id: Option<String>,
        /// Which implementation fetches and produces.
        pub data_plane: Option<RawDataPlane>,
    }

    /// TLS. Paths are relative to the file that names them.
    pub struct RawTls {
        /// Authorities to trust, PEM; the system's where absent.
        pub ca: Option<String>,
        /// Client certificate, PEM.
        pub certificate: Option<String>,
        /// Private key of the client certificate, PEM.
        pub key: Option<String>,
        /// Password of the private key.
        pub key_password: Option<String>,
        /// Whether the broker's host name must be in its certificate.
        pub verify_hostname: Option<bool>,
    }

    /// SASL.
    pub struct RawSasl {
        /// The mechanism.
        #[schemars(required)]
        pub mechanism: Option<RawMechanism>,
        /// User name, for PLAIN and SCRAM.
        pub username: Option<String>,
        /// Password, for PLAIN and SCRAM; `${file:/run/secrets/…}` keeps it out of this file.
        pub password: Option<String>,
    }

    /// Which source topics.
    pub struct RawTopics {
        /// Regexes on the whole name; named captures feed `{…}` in `rename`.
        #[schemars(required, length(min = 1))]
        pub include: Option<Vec<String>>,
        /// Regexes on the whole name; they win over `include`.
        pub exclude: Option<Vec<String>>,
    }

    /// The dead-letter topic.
    pub struct RawDeadLetter {
        /// Its name, at the target cluster.
        #[schemars(required)]
        pub topic: Option<String>,
    }

    /// What may wait for one handler thread.
    pub struct RawQueue {
        /// Records at most.
        #[schemars(range(min = 1))]
        pub records: Option<usize>,
        /// Bytes at most.
        #[schemars(extend("not" = crate::config::units::zero()))]
        pub bytes: Option<SizeText>,
    }

    /// Creation and growth of target topics.
    pub struct RawTopicCreation {
        /// Whether missing topics are created and small ones grown.
        pub enabled: Option<bool>,
        /// Replicas of a created topic; the target's own default where absent.
        #[schemars(range(min = 1, max = 32767))]
        pub replication_factor: Option<i32>,
        /// Topic settings copied from the source topic at creation.
        pub configs: Option<Vec<String>>,
    }

    /// Limits of each flow.
    pub struct RawRouteLimits {
        /// Bytes that are fetched and not yet settled, at most.
        #[schemars(extend("not" = crate::config::units::zero()))]
        pub in_flight: Option<SizeText>,
        /// Output of one record at most; what the target topic takes where absent.
        #[schemars(extend("not" = crate::config::units::zero()))]
        pub record: Option<SizeText>,
    }

    /// Limits of the whole process.
    pub struct RawLimits {
        /// Memory budget, shared by all routes.
        #[schemars(extend("not" = crate::config::units::zero()))]
        pub memory: Option<SizeText>,
    }

    /// How changes of the files are followed.
    pub struct RawReload {
        /// Whether a changed file is applied by itself; otherwise by SIGHUP and `mirror reload`.
        pub watch: Option<bool>,
        /// Quiet time after the last change.
        pub settle: Option<DurationText>,
    }

    /// How the process stops.
    pub struct RawShutdown {
        /// How long draining may take in all.
        pub grace: Option<DurationText>,
    }

    /// The admin interface.
    pub struct RawAdmin {
        /// Address of HTTP for looking, `host:port` with an IP address; `off` for none.
        pub listen: Option<String>,
        /// Path of the Unix socket for looking and changing.
        pub socket: Option<String>,
        /// Lets changing calls come over HTTP as well, from whoever has the token.
        pub write: Option<RawAdminWrite>,
    }

    /// Changing calls over HTTP.
    pub struct RawAdminWrite {
        /// What a caller sends as `Authorization: Bearer TOKEN`, 16 characters or more;
        /// `${file:/run/secrets/…}` keeps it out of this file.
        #[schemars(required)]
        pub token: Option<String>,
    }
}

with_settings! {
    /// Settings of every route that does not say otherwise.
    pub struct RawDefaults {}
}

with_settings! {
    /// A route: which topics are copied from where to where, and how.
    pub struct RawRoute {
        /// Your words about it.
        pub about: Option<String>,
        /// One cluster, or several: one flow for each source and target.
        #[schemars(required)]
        pub source: Option<OneOrMany>,
        /// One cluster, or several: one flow for each source and target.
        #[schemars(required)]
        pub target: Option<OneOrMany>,
        /// Which source topics.
        #[schemars(required)]
        pub topics: Option<RawTopics>,
        /// The route's former name: it keeps that one's positions.
        pub was: Option<String>,
        /// Your written word for a change that can reorder, repeat or lose.
        pub accept: Option<Vec<RawAccept>>,
    }
}
