//! The settings that a plan compares, by their paths, each with the reason for its class. The class
//! itself stands in the one table, `config::settings`.

use crate::config::settings::{ReloadClass, class_of};

/// Names every setting with its path.
macro_rules! settings {
    ($($(#[$about:meta])* $name:ident $path:literal;)*) => {
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

        }
    };
}

settings! {
    /// Read at each load.
    Version "version";
    /// The names of all consumer groups, and so all positions, hang on it.
    Group "group";
    /// A written word about the change itself.
    FileAccept "accept";
    /// Divided over the flows when they start.
    Memory "limits.memory";
    /// How the files are watched.
    ReloadWatch "reload.watch";
    /// How the files are watched.
    ReloadSettle "reload.settle";
    /// For the next stop.
    Grace "shutdown.grace";
    /// The listening socket is bound at start.
    AdminListen "admin.listen";
    /// The listening socket is bound at start.
    AdminSocket "admin.socket";
    /// Each call is held against the configuration that runs.
    AdminToken "admin.write.token";
    /// Other files are watched.
    Include "include";
    /// Never run by `mirror run`.
    Tests "tests";
    /// Reach routes through `use:`.
    Chains "handlers";

    /// Clients know it from their making.
    BootstrapServers "clusters.*.bootstrap_servers";
    /// Clients know it from their making.
    Properties "clusters.*.properties";
    /// Clients know it from their making.
    TlsCa "clusters.*.tls.ca";
    /// Clients know it from their making.
    TlsCertificate "clusters.*.tls.certificate";
    /// Clients know it from their making.
    TlsKey "clusters.*.tls.key";
    /// Clients know it from their making.
    TlsKeyPassword "clusters.*.tls.key_password";
    /// Clients know it from their making.
    TlsVerifyHostname "clusters.*.tls.verify_hostname";
    /// Clients know it from their making.
    SaslMechanism "clusters.*.sasl.mechanism";
    /// Clients know it from their making.
    SaslUsername "clusters.*.sasl.username";
    /// Clients know it from their making.
    SaslPassword "clusters.*.sasl.password";
    /// Asked before anything is written.
    ClusterAccess "clusters.*.access";
    /// Compared when a client has connected.
    ExpectClusterId "clusters.*.expect_cluster_id";
    /// Decides which clients there are.
    ClusterDataPlane "clusters.*.data_plane";

    /// Shown, never run.
    About "routes.*.about";
    /// The flows of a cluster come and go; those of the others are not touched.
    Source "routes.*.source";
    /// The flows of a cluster come and go; those of the others are not touched.
    Target "routes.*.target";
    /// Found again at once; the group hands over the partitions that come and go, and no others.
    TopicsInclude "routes.*.topics.include";
    /// Found again at once; the group hands over the partitions that come and go, and no others.
    TopicsExclude "routes.*.topics.exclude";
    /// A written word about the change itself.
    Was "routes.*.was";
    /// A written word about the change itself.
    Accept "routes.*.accept";
    /// One value for now.
    Delivery "routes.*.delivery";
    /// Applies once, at a flow's first start.
    Start "routes.*.start";
    /// Asked when a position is looked for.
    OnGap "routes.*.on_gap";
    /// Travels with each batch.
    OnError "routes.*.on_error";
    /// Travels with each batch.
    DeadLetter "routes.*.dead_letter.topic";
    /// Each batch carries the chain that it began with.
    Handlers "routes.*.handlers";
    /// Records in flight must not be overtaken on another partition.
    Partitions "routes.*.partitions";
    /// Each is a member of the group.
    Workers "routes.*.workers";
    /// Which thread has which partition hangs on it.
    HandlerThreads "routes.*.handler_threads";
    /// Bounds that are looked at before a batch is taken.
    QueueRecords "routes.*.queue.records";
    /// Bounds that are looked at before a batch is taken.
    QueueBytes "routes.*.queue.bytes";
    /// Which producer has which partition hangs on it.
    Producers "routes.*.producers";
    /// Asked before a topic is made.
    CreationEnabled "routes.*.topic_creation.enabled";
    /// Asked before a topic is made.
    CreationReplication "routes.*.topic_creation.replication_factor";
    /// Asked before a topic is made.
    CreationConfigs "routes.*.topic_creation.configs";
    /// Looked at before a batch is taken. The client's read-ahead keeps its size until a restart.
    InFlight "routes.*.limits.in_flight";
    /// Travels with each batch.
    RecordLimit "routes.*.limits.record";
    /// The next commit keeps to it.
    CommitInterval "routes.*.commit_interval";
    /// The next look keeps to it. The clients' own refresh keeps its interval until a restart.
    DiscoveryInterval "routes.*.discovery_interval";
    /// A listener must hear of the assignment whose release it is told.
    RebalanceListener "routes.*.rebalance_listener";
    /// A member says it when it joins.
    GroupProtocol "routes.*.group_protocol";
    /// The ends are captured at start.
    Until "routes.*.until";
    /// Decides which clients there are.
    DataPlane "routes.*.data_plane";
}

impl Setting {
    /// What a change of it means for a process that runs.
    pub fn class(self) -> ReloadClass {
        class_of(self.path())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::settings::SETTINGS;
    use std::collections::BTreeSet;

    #[test]
    fn every_setting_of_the_table_is_compared_and_none_beside() {
        let is_section = |path: &str| {
            let inside = format!("{path}.");
            SETTINGS.iter().any(|s| s.path.starts_with(&inside))
        };
        let table = SETTINGS.iter().map(|s| s.path);
        // `routes` and `clusters` are maps of settings, `defaults` reaches them.
        let table: BTreeSet<&str> = table
            .filter(|path| !is_section(path) && *path != "defaults")
            .collect();
        let compared: BTreeSet<&str> = Setting::ALL.iter().map(|s| s.path()).collect();
        let difference: Vec<_> = table.symmetric_difference(&compared).collect();
        assert!(
            difference.is_empty(),
            "give each a line in plan::setting and compare it in plan::changed: {difference:?}"
        );
    }
}
