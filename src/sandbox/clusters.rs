//! Embedded clusters: brokers on threads of this process, on free ports of the loopback address.

use super::scene::{CLUSTERS, SOURCES};
use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::config::RDKafkaLogLevel;
use std::time::Duration;

/// How long the clusters are given to answer; they are in this process.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where the clusters are. They end with the process: the broker has no way to stop one.
pub struct Clusters {
    addresses: Vec<(&'static str, String)>,
}

impl Clusters {
    /// Starts every cluster of the scene and creates the source topics.
    ///
    /// # Errors
    /// No free port, or a broker that does not answer.
    pub fn start() -> Result<Self, String> {
        let mut addresses = Vec::new();
        for cluster in CLUSTERS {
            let address = noida::kafka::spawn("127.0.0.1:0")
                .map_err(|error| format!("no embedded cluster {cluster}: {error}"))?;
            addresses.push((cluster, address.to_string()));
        }
        let clusters = Self { addresses };
        CLUSTERS
            .iter()
            .try_for_each(|cluster| clusters.create_topics(cluster))?;
        Ok(clusters)
    }

    /// The address of one cluster.
    pub fn address(&self, cluster: &str) -> &str {
        let found = self.addresses.iter().find(|(name, _)| *name == cluster);
        found.map_or("", |(_, address)| address)
    }

    /// Every cluster with its address.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.addresses
            .iter()
            .map(|(name, address)| (*name, address.as_str()))
    }

    /// Settings of a client of one cluster. Its log lines are left out: what matters of them comes
    /// back as errors.
    pub fn client(&self, cluster: &str) -> ClientConfig {
        let mut config = ClientConfig::new();
        config
            .set("bootstrap.servers", self.address(cluster))
            .set("client.id", "mirror-sandbox")
            .set_log_level(RDKafkaLogLevel::Emerg);
        config
    }

    fn create_topics(&self, cluster: &str) -> Result<(), String> {
        let failed = |why: String| format!("cluster {cluster} takes no topics: {why}");
        let admin: AdminClient<DefaultClientContext> = self
            .client(cluster)
            .create()
            .map_err(|e| failed(e.to_string()))?;
        let here = SOURCES.iter().filter(|source| source.cluster == cluster);
        let topics: Vec<NewTopic<'_>> = here
            .map(|s| NewTopic::new(s.topic, s.partitions, TopicReplication::Fixed(1)))
            .collect();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|e| failed(e.to_string()))?;
        let options = AdminOptions::new().operation_timeout(Some(PATIENCE));
        let created = runtime.block_on(admin.create_topics(&topics, &options));
        for result in created.map_err(|e| failed(e.to_string()))? {
            result.map_err(|(topic, error)| failed(format!("{topic}: {error}")))?;
        }
        Ok(())
    }
}
