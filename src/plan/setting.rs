//! Every setting of the file, and what a change of it takes while the process runs: the one table.
//! The plan sorts its changes by it, the schema shows it (`x-mirror-reload`), `mirror explain` tells it.

use serde::{Deserialize, Serialize};

/// What a change of a setting takes. Ordered: each takes more than those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Running flows take it over between two batches.
    Live,
    /// The clients of the flows concerned are made anew.
    Reconnect,
    /// The flows concerned drain and start again.
    Restart,
    /// Only a new process takes it.
    Refused,
}

impl Class {
    /// Its word in the schema and in plans.
    pub fn as_str(self) -> &'static str {
        match self {
            Class::Live => "live",
            Class::Reconnect => "reconnect",
            Class::Restart => "restart",
            Class::Refused => "refused",
        }
    }

    /// What it means, in one line.
    pub fn meaning(self) -> &'static str {
        match self {
            Class::Live => {
                "running flows take it over between two batches; nothing is drained, the group does not rebalance"
            }
            Class::Reconnect => {
                "the flows at that cluster drain and make their clients anew; positions are kept"
            }
            Class::Restart => "the route's flows drain and start again; positions are kept",
            Class::Refused => "refused while the process runs: restart the process",
        }
    }
}

/// Names every setting with its path and class.
macro_rules! settings {
    ($($(#[$about:meta])* $name:ident $path:literal $class:ident;)*) => {
        /// A setting, by its path in the file; `*` stands for the name of a cluster or route.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Setting { $($(#[$about])* $name),* }

        impl Setting {
            /// Every setting.
            pub const ALL: &[Setting] = &[$(Setting::$name),*];

            /// Its path in the file.
            pub fn path(self) -> &'static str {
                match self { $(Setting::$name => $path),* }
            }

            /// What a change of it takes.
            pub fn class(self) -> Class {
                match self { $(Setting::$name => Class::$class),* }
            }
        }
    };
}

settings! {
    /// Read at each load.
    Version "version" Live;
    /// The names of all consumer groups, and so all positions, hang on it.
    Group "group" Refused;
    /// A written word about the change itself.
    FileAccept "accept" Live;
    /// Divided over the flows when they start.
    Memory "limits.memory" Refused;
    /// How the files are watched.
    ReloadWatch "reload.watch" Live;
    /// How the files are watched.
    ReloadSettle "reload.settle" Live;
    /// For the next stop.
    Grace "shutdown.grace" Live;
    /// The listening socket is bound at start.
    AdminListen "admin.listen" Refused;
    /// The listening socket is bound at start.
    AdminSocket "admin.socket" Refused;
    /// Other files are watched.
    Include "include" Live;
    /// Never run by `mirror run`.
    Tests "tests" Live;
    /// Reach routes through `use:`.
    Chains "handlers" Live;

    /// Clients know it from their making.
    BootstrapServers "clusters.*.bootstrap_servers" Reconnect;
    /// Clients know it from their making.
    Properties "clusters.*.properties" Reconnect;
    /// Clients know it from their making.
    TlsCa "clusters.*.tls.ca" Reconnect;
    /// Clients know it from their making.
    TlsCertificate "clusters.*.tls.certificate" Reconnect;
    /// Clients know it from their making.
    TlsKey "clusters.*.tls.key" Reconnect;
    /// Clients know it from their making.
    TlsKeyPassword "clusters.*.tls.key_password" Reconnect;
    /// Clients know it from their making.
    TlsVerifyHostname "clusters.*.tls.verify_hostname" Reconnect;
    /// Clients know it from their making.
    SaslMechanism "clusters.*.sasl.mechanism" Reconnect;
    /// Clients know it from their making.
    SaslUsername "clusters.*.sasl.username" Reconnect;
    /// Clients know it from their making.
    SaslPassword "clusters.*.sasl.password" Reconnect;
    /// Asked before anything is written.
    ClusterAccess "clusters.*.access" Reconnect;
    /// Compared when a client has connected.
    ExpectClusterId "clusters.*.expect_cluster_id" Reconnect;
    /// Decides which clients there are.
    ClusterDataPlane "clusters.*.data_plane" Reconnect;

    /// Shown, never run.
    About "routes.*.about" Live;
    /// The flows of a cluster come and go; those of the others are not touched.
    Source "routes.*.source" Live;
    /// The flows of a cluster come and go; those of the others are not touched.
    Target "routes.*.target" Live;
    /// Found again at once; the group hands over the partitions that come and go, and no others.
    TopicsInclude "routes.*.topics.include" Live;
    /// Found again at once; the group hands over the partitions that come and go, and no others.
    TopicsExclude "routes.*.topics.exclude" Live;
    /// A written word about the change itself.
    Was "routes.*.was" Live;
    /// A written word about the change itself.
    Accept "routes.*.accept" Live;
    /// One value for now.
    Delivery "routes.*.delivery" Restart;
    /// Applies once, at a flow's first start.
    Start "routes.*.start" Live;
    /// Asked when a position is looked for.
    OnGap "routes.*.on_gap" Live;
    /// Travels with each batch.
    OnError "routes.*.on_error" Live;
    /// Travels with each batch.
    DeadLetter "routes.*.dead_letter.topic" Live;
    /// Each batch carries the chain that it began with.
    Handlers "routes.*.handlers" Live;
    /// Records in flight must not be overtaken on another partition.
    Partitions "routes.*.partitions" Restart;
    /// Each is a member of the group.
    Workers "routes.*.workers" Restart;
    /// Which thread has which partition hangs on it.
    HandlerThreads "routes.*.handler_threads" Restart;
    /// Bounds that are looked at before a batch is taken.
    QueueRecords "routes.*.queue.records" Live;
    /// Bounds that are looked at before a batch is taken.
    QueueBytes "routes.*.queue.bytes" Live;
    /// Which producer has which partition hangs on it.
    Producers "routes.*.producers" Restart;
    /// Asked before a topic is made.
    CreationEnabled "routes.*.topic_creation.enabled" Live;
    /// Asked before a topic is made.
    CreationReplication "routes.*.topic_creation.replication_factor" Live;
    /// Asked before a topic is made.
    CreationConfigs "routes.*.topic_creation.configs" Live;
    /// Looked at before a batch is taken. The client's read-ahead keeps its size until a restart.
    InFlight "routes.*.limits.in_flight" Live;
    /// Travels with each batch.
    RecordLimit "routes.*.limits.record" Live;
    /// The next commit keeps to it.
    CommitInterval "routes.*.commit_interval" Live;
    /// The next look keeps to it. The clients' own refresh keeps its interval until a restart.
    DiscoveryInterval "routes.*.discovery_interval" Live;
    /// A listener must hear of the assignment whose release it is told.
    RebalanceListener "routes.*.rebalance_listener" Restart;
    /// A member says it when it joins.
    GroupProtocol "routes.*.group_protocol" Restart;
    /// The ends are captured at start.
    Until "routes.*.until" Restart;
    /// Decides which clients there are.
    DataPlane "routes.*.data_plane" Restart;
}

impl Setting {
    /// The setting at `path`, or the one that `path` lies within (a step in a chain, a client
    /// property). Names of clusters and routes may be written or `*`; `defaults.X` is `routes.*.X`.
    pub fn at(path: &str) -> Option<Self> {
        let normal = match path.strip_prefix("defaults.") {
            Some(rest) => format!("routes.*.{rest}"),
            None => path.to_owned(),
        };
        let written: Vec<&str> = normal.split('.').collect();
        let holds = |setting: &&Setting| {
            let parts: Vec<&str> = setting.path().split('.').collect();
            parts.len() <= written.len()
                && parts.iter().zip(&written).all(|(p, w)| *p == "*" || p == w)
        };
        Setting::ALL.iter().find(holds).copied()
    }

    /// Its path as a plan shows it: without the route, with the cluster's name.
    pub fn shown(self, cluster: Option<&str>) -> String {
        match (self.path().strip_prefix("routes.*."), cluster) {
            (Some(rest), _) => rest.to_owned(),
            (None, Some(name)) => self.path().replacen('*', name, 1),
            (None, None) => self.path().to_owned(),
        }
    }
}

/// What a change at `path` takes, also for a section whose settings differ: the most that one of
/// them takes. `None` if nothing is known at that path.
pub fn class_at(path: &str) -> Option<Class> {
    if let Some(setting) = Setting::at(path) {
        return Some(setting.class());
    }
    let section = match path.strip_prefix("defaults") {
        Some(rest) => format!("routes.*{rest}"),
        None => path.to_owned(),
    };
    let inside = Setting::ALL.iter().filter(|setting| {
        let rest = setting.path().strip_prefix(section.as_str());
        rest.is_some_and(|rest| rest.starts_with('.'))
    });
    inside.map(|setting| setting.class()).max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::schema;
    use serde_json::Value;

    /// The paths of all leaves of the schema, `*` for names. What lies within a setting that is
    /// compared as a whole (`handlers`, `partitions`, …) is not entered.
    fn leaves(node: &Value, path: &str, found: &mut Vec<String>) {
        let root = schema::schema();
        let node = match node.get("$ref").and_then(Value::as_str) {
            Some(to) => root.pointer(to.trim_start_matches('#')).unwrap(),
            None => node,
        };
        let child = |name: &str| match path {
            "" => name.to_owned(),
            _ => format!("{path}.{name}"),
        };
        match (node.get("properties"), node.get("additionalProperties")) {
            (Some(Value::Object(members)), _) => {
                for (name, member) in members {
                    leaves(member, &child(name), found);
                }
            }
            (None, Some(member @ Value::Object(_)))
                if !path.is_empty() && Setting::at(path).is_none() =>
            {
                leaves(member, &child("*"), found);
            }
            _ => found.push(path.to_owned()),
        }
    }

    #[test]
    fn every_setting_of_the_schema_has_a_class() {
        let mut found = Vec::new();
        leaves(schema::schema(), "", &mut found);
        assert!(found.len() > 60, "{found:?}");
        let without: Vec<&String> = found.iter().filter(|p| Setting::at(p).is_none()).collect();
        assert!(
            without.is_empty(),
            "give these a line in plan::setting, and compare them in plan::changed: {without:?}"
        );
    }

    #[test]
    fn every_setting_of_the_table_is_in_the_schema() {
        let mut found = Vec::new();
        leaves(schema::schema(), "", &mut found);
        for setting in Setting::ALL {
            let there = found.iter().any(|p| Setting::at(p) == Some(*setting));
            assert!(there, "{} is no setting", setting.path());
        }
    }

    #[test]
    fn a_path_may_lie_within_a_setting_or_above_several() {
        assert_eq!(
            Setting::at("routes.orders.handlers.0.filter"),
            Some(Setting::Handlers)
        );
        assert_eq!(Setting::at("defaults.workers"), Some(Setting::Workers));
        assert_eq!(
            Setting::at("clusters.a.properties.x.y"),
            Some(Setting::Properties)
        );
        assert_eq!(class_at("routes.*.limits"), Some(Class::Live));
        assert_eq!(class_at("clusters.*.tls"), Some(Class::Reconnect));
        assert_eq!(class_at("defaults.queue"), Some(Class::Live));
        assert_eq!(class_at("nothing"), None);
    }
}
