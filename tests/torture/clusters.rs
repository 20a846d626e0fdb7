//! The two clusters of all runs.

use crate::support::cluster::Admin;
use kafka_harness::{Cluster, ClusterBuilder, Link, start_all};
use proof::plan::{Side, Victim};
use std::time::Duration;

/// Until a cluster is whole again.
pub const PATIENCE: Duration = Duration::from_secs(90);

/// Source and target, three brokers each, each broker behind a proxy.
pub struct Clusters {
    pub source: Cluster,
    pub target: Cluster,
}

impl Clusters {
    /// Starts them. At the target there are ACLs, and mirror has a name.
    ///
    /// # Panics
    /// If they do not start.
    pub fn start() -> Self {
        let target = three("target").sasl_plain("mirror", "secret").acls(&[]);
        let [source, target] = start_all([three("source"), target]).expect("two clusters");
        let everything = [
            "--topic",
            "*",
            "--group",
            "*",
            "--cluster",
            "--operation",
            "All",
        ];
        let mirror = ["--allow-principal", "User:mirror"];
        target
            .acl_add(&[&mirror[..], &everything].concat())
            .expect("mirror may do everything");
        Self { source, target }
    }

    /// One of the two.
    pub fn of(&self, side: Side) -> &Cluster {
        match side {
            Side::Source => &self.source,
            Side::Target => &self.target,
        }
    }

    /// The ids of a cluster's other brokers.
    pub fn others(&self, victim: Victim) -> Vec<i32> {
        let all = self.of(victim.side).brokers().iter();
        let ids = all.map(kafka_harness::Broker::id);
        ids.filter(|id| *id != victim.broker).collect()
    }

    /// Waits until every broker is there and knows the others.
    ///
    /// # Panics
    /// If that takes too long.
    pub fn wait_whole(&self) {
        for cluster in [&self.source, &self.target] {
            for broker in cluster.brokers() {
                broker.proxy().set(Link::default());
            }
            cluster
                .wait_members(&[1, 2, 3], PATIENCE)
                .expect("the cluster is whole");
        }
    }

    /// Deletes the topics of a run, so that the next one does not pay for them.
    pub fn forget(&self, prefix: &str) {
        for cluster in [&self.source, &self.target] {
            let admin = Admin::new(&cluster.bootstrap());
            for topic in admin.topics().iter().filter(|t| t.contains(prefix)) {
                admin.delete(topic);
            }
        }
    }
}

/// Timestamps may be what they are, and nothing expires or rolls for it.
fn three(name: &str) -> ClusterBuilder {
    Cluster::builder(name)
        .brokers(3)
        .proxied()
        .property("log.retention.ms", "-1")
        .property("log.roll.ms", "9000000000000000")
        .property("log.message.timestamp.after.max.ms", "9000000000000000")
        .property("log.message.timestamp.before.max.ms", "9000000000000000")
}
