//! Client settings: what carries our promises is set here and may not be overridden (`engine.md`
//! rule 3); what a user adds is checked by `config` before it gets here.

use crate::config::spec::{ClusterSpec, GroupProtocol, SaslMechanism, VerifyHostname};
use rdkafka::ClientConfig;
use rdkafka::config::RDKafkaLogLevel;
use std::time::Duration;

/// Settings that a user may not give, each with the reason.
pub const PROTECTED: &[(&str, &str)] = &[
    ("bootstrap.servers", "write it as bootstrap_servers"),
    ("metadata.broker.list", "write it as bootstrap_servers"),
    (
        "group.id",
        "the consumer group is made of the names of group, route, source and target",
    ),
    (
        "group.instance.id",
        "one id in several consumers fences them",
    ),
    ("group.protocol", "write it as group_protocol"),
    (
        "group.remote.assignor",
        "the assignor belongs to the group protocol",
    ),
    (
        "partition.assignment.strategy",
        "rebalances are cooperative, so that kept partitions run on",
    ),
    (
        "enable.auto.commit",
        "offsets are committed only when the target acknowledged every record before them",
    ),
    (
        "auto.commit.enable",
        "offsets are committed only when the target acknowledged every record before them",
    ),
    (
        "enable.auto.offset.store",
        "offsets are committed only when the target acknowledged every record before them",
    ),
    (
        "auto.offset.reset",
        "a position out of range is on_gap's business, never a silent jump",
    ),
    ("isolation.level", "aborted records are never copied"),
    ("check.crcs", "corrupted bytes must not be copied"),
    (
        "enable.partition.eof",
        "ends of partitions move the watermark past control records",
    ),
    (
        "allow.auto.create.topics",
        "target topics are created with the source's partition count",
    ),
    (
        "enable.idempotence",
        "order and no loss need the idempotent producer",
    ),
    (
        "enable.gapless.guarantee",
        "a failed record must not be overtaken",
    ),
    (
        "acks",
        "a record counts as delivered when all in-sync replicas have it",
    ),
    (
        "request.required.acks",
        "a record counts as delivered when all in-sync replicas have it",
    ),
    (
        "max.in.flight",
        "more than five requests in flight break order",
    ),
    (
        "max.in.flight.requests.per.connection",
        "more than five requests in flight break order",
    ),
    ("message.timeout.ms", "no record is given up for being late"),
    (
        "delivery.timeout.ms",
        "no record is given up for being late",
    ),
    ("retries", "no record is given up for being late"),
    (
        "message.send.max.retries",
        "no record is given up for being late",
    ),
    (
        "transactional.id",
        "source offsets cannot join a transaction on another cluster",
    ),
    ("partitioner", "write it as partitions"),
    (
        "enable.metrics.push",
        "the client reports to nobody but you",
    ),
    (
        "topic.metadata.refresh.interval.ms",
        "growth is followed within discovery_interval",
    ),
    (
        "metadata.max.age.ms",
        "growth is followed within discovery_interval",
    ),
    (
        "auto.commit.interval.ms",
        "write commit_interval at the route",
    ),
    (
        "plugin.library.paths",
        "mirror loads no foreign code into its process",
    ),
    (
        "message.max.bytes",
        "the target topic decides what is too large, not the client",
    ),
    (
        "queue.buffering.max.messages",
        "memory is bounded by limits.in_flight",
    ),
    (
        "queue.buffering.max.kbytes",
        "memory is bounded by limits.in_flight",
    ),
];

/// What every client of `cluster` has in common.
pub fn common(cluster: &ClusterSpec) -> ClientConfig {
    let mut config = ClientConfig::new();
    config
        .set("client.id", "mirror")
        .set("bootstrap.servers", cluster.bootstrap_servers.join(","))
        // B084, B146: a broker that comes back under a new address is found again soon.
        .set("reconnect.backoff.max.ms", "2000")
        .set("socket.connection.setup.timeout.ms", "10000")
        // A broker that its controller has dropped for a moment answers that there are no brokers; the client then
        // forgets all of them, and by default asks the bootstrap servers again only after five minutes.
        .set("metadata.recovery.rebootstrap.trigger.ms", "5000")
        .set("socket.keepalive.enable", "true");
    for (key, value) in &cluster.properties {
        config.set(key, value.reveal());
    }
    set_security(&mut config, cluster);
    config
        .set("enable.metrics.push", "false")
        .set("allow.auto.create.topics", "false")
        .set_log_level(RDKafkaLogLevel::Info);
    config
}

fn set_security(config: &mut ClientConfig, cluster: &ClusterSpec) {
    let protocol = match (&cluster.tls, &cluster.sasl) {
        (None, None) => None,
        (Some(_), None) => Some("ssl"),
        (None, Some(_)) => Some("sasl_plaintext"),
        (Some(_), Some(_)) => Some("sasl_ssl"),
    };
    if let Some(protocol) = protocol {
        config.set("security.protocol", protocol);
    }
    if let Some(tls) = &cluster.tls {
        let mut path = |key: &str, path: &Option<std::path::PathBuf>| {
            if let Some(path) = path {
                config.set(key, path.to_string_lossy());
            }
        };
        path("ssl.ca.location", &tls.ca);
        path("ssl.certificate.location", &tls.certificate);
        path("ssl.key.location", &tls.key);
        if let Some(password) = &tls.key_password {
            config.set("ssl.key.password", password.reveal());
        }
        // B145: said out loud, since the library's default changed between versions.
        let verify = match tls.verify_hostname {
            VerifyHostname::Yes => "https",
            VerifyHostname::No => "none",
        };
        config.set("ssl.endpoint.identification.algorithm", verify);
    }
    if let Some(sasl) = &cluster.sasl {
        config.set("sasl.mechanism", sasl.mechanism.as_str());
        if let Some(user) = &sasl.username {
            config.set("sasl.username", user);
        }
        if let Some(password) = &sasl.password {
            config.set("sasl.password", password.reveal());
        }
        if sasl.mechanism == SaslMechanism::OauthBearer
            && config.get("sasl.oauthbearer.method").is_none()
        {
            config.set("sasl.oauthbearer.method", "oidc");
        }
    }
}

/// What a group member is made with.
pub struct MemberSettings<'a> {
    /// The source cluster.
    pub cluster: &'a ClusterSpec,
    /// The consumer group.
    pub group: &'a str,
    /// Membership protocol.
    pub protocol: GroupProtocol,
    /// Growth must be followed within this time.
    pub discovery_interval: Duration,
    /// Bytes that may wait in the client's fetch queue.
    pub prefetch_bytes: u64,
}

/// Settings of a group member.
pub fn member(of: &MemberSettings<'_>) -> ClientConfig {
    let mut config = common(of.cluster);
    let kbytes = (of.prefetch_bytes / 1024).clamp(1024, 2_097_151);
    default(
        &mut config,
        of.cluster,
        "fetch.message.max.bytes",
        "1048576",
    );
    // One second by default: it would quarter the throughput of small records.
    default(&mut config, of.cluster, "fetch.queue.backoff.ms", "20");
    default(&mut config, of.cluster, "queued.min.messages", "1000000");
    default(
        &mut config,
        of.cluster,
        "queued.max.messages.kbytes",
        &kbytes.to_string(),
    );
    let refresh = of
        .discovery_interval
        .as_millis()
        .clamp(1000, 5000)
        .to_string();
    config
        .set("group.id", of.group)
        .set("enable.auto.commit", "false")
        .set("enable.auto.offset.store", "false")
        .set("auto.offset.reset", "error")
        .set("isolation.level", "read_committed")
        .set("check.crcs", "true")
        .set("enable.partition.eof", "true")
        .set("topic.metadata.refresh.interval.ms", refresh);
    match of.protocol {
        GroupProtocol::Classic => config
            .set("group.protocol", "classic")
            .set("partition.assignment.strategy", "cooperative-sticky"),
        GroupProtocol::Consumer => config.set("group.protocol", "consumer"),
    };
    config
}

/// Settings of a client that asks questions with a group's name and never joins it.
pub fn observer(cluster: &ClusterSpec, group: &str) -> ClientConfig {
    let mut config = common(cluster);
    config
        .set("group.id", group)
        .set("enable.auto.commit", "false")
        .set("auto.offset.reset", "error")
        .set("isolation.level", "read_committed");
    config
}

/// Which records are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// Those of ended transactions that were not aborted, and those of none: what is copied.
    Committed,
    /// All.
    Uncommitted,
}

/// Settings of a client that reads partitions with a group's name and never joins it.
pub fn reader(cluster: &ClusterSpec, group: &str, isolation: Isolation) -> ClientConfig {
    let mut config = observer(cluster, group);
    default(&mut config, cluster, "fetch.message.max.bytes", "1048576");
    default(&mut config, cluster, "fetch.queue.backoff.ms", "20");
    // Read much faster than looked at: what waits is bounded by this, in all.
    default(&mut config, cluster, "queued.max.messages.kbytes", "16384");
    config
        .set("enable.auto.offset.store", "false")
        .set("check.crcs", "true")
        .set("enable.partition.eof", "true");
    match isolation {
        Isolation::Committed => config.set("isolation.level", "read_committed"),
        Isolation::Uncommitted => config.set("isolation.level", "read_uncommitted"),
    };
    config
}

/// What a producer puts into one batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Batching {
    /// Records up to so many bytes.
    UpTo(u64),
    /// One record.
    Alone,
}

/// Settings of an idempotent producer with such batches.
pub fn producer(
    cluster: &ClusterSpec,
    discovery_interval: Duration,
    batching: Batching,
) -> ClientConfig {
    let mut config = common(cluster);
    let refresh = discovery_interval.as_millis().clamp(1000, 5000).to_string();
    default(&mut config, cluster, "linger.ms", "20");
    default(&mut config, cluster, "batch.num.messages", "100000");
    default(&mut config, cluster, "compression.type", "lz4");
    let in_flight = match batching {
        Batching::UpTo(bytes) => {
            default(&mut config, cluster, "batch.size", &bytes.to_string());
            "5"
        }
        Batching::Alone => {
            config.set("batch.num.messages", "1").set("linger.ms", "0");
            // What would be on its way behind a refused one has a gap before it.
            "1"
        }
    };
    config
        .set("enable.idempotence", "true")
        .set("enable.gapless.guarantee", "true")
        .set("acks", "all")
        // The broker decides what is too large, not the client (B074).
        .set("max.in.flight.requests.per.connection", in_flight)
        .set("message.max.bytes", "1000000000")
        .set("message.timeout.ms", "0")
        // Our own budget bounds what is queued, so that a full queue cannot reorder (B061).
        .set("queue.buffering.max.messages", "0")
        .set("queue.buffering.max.kbytes", "2097151")
        // A missing topic is known soon; the barrier handles it (rule 4).
        .set("topic.metadata.propagation.max.ms", "10000")
        .set("topic.metadata.refresh.interval.ms", refresh);
    config
}

/// Sets a tuned default that the user's properties win over.
fn default(config: &mut ClientConfig, cluster: &ClusterSpec, key: &str, value: &str) {
    if !cluster.properties.contains_key(key) {
        config.set(key, value);
    }
}

/// The protected settings by client kind, as `--no-data-loss` prints them.
pub fn enforced() -> Vec<(&'static str, &'static str, &'static str)> {
    vec![
        ("consumer", "enable.auto.commit", "false"),
        ("consumer", "enable.auto.offset.store", "false"),
        ("consumer", "auto.offset.reset", "error"),
        ("consumer", "isolation.level", "read_committed"),
        ("consumer", "check.crcs", "true"),
        ("producer", "enable.idempotence", "true"),
        ("producer", "enable.gapless.guarantee", "true"),
        ("producer", "acks", "all"),
        ("producer", "max.in.flight.requests.per.connection", "5"),
        ("producer", "message.timeout.ms", "0 (never given up)"),
        ("both", "allow.auto.create.topics", "false"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdkafka::consumer::BaseConsumer;
    use rdkafka::producer::BaseProducer;

    /// `builtin.features` is no proof (it claims what fails): a client is made for each.
    #[test]
    fn every_mechanism_and_codec_is_in_this_build() {
        for mechanism in [
            "PLAIN",
            "SCRAM-SHA-256",
            "SCRAM-SHA-512",
            "OAUTHBEARER",
            "GSSAPI",
        ] {
            for protocol in ["sasl_plaintext", "sasl_ssl"] {
                let mut config = ClientConfig::new();
                config
                    .set("bootstrap.servers", "127.0.0.1:1")
                    .set("group.id", "mechanisms")
                    .set("security.protocol", protocol)
                    .set("sasl.mechanism", mechanism);
                match mechanism {
                    "OAUTHBEARER" => config
                        .set("sasl.oauthbearer.method", "oidc")
                        .set("sasl.oauthbearer.client.id", "id")
                        .set("sasl.oauthbearer.client.secret", "word")
                        .set("sasl.oauthbearer.token.endpoint.url", "http://127.0.0.1:1/"),
                    // No ticket is fetched by a test.
                    "GSSAPI" => config
                        .set("sasl.kerberos.kinit.cmd", "true")
                        .set("sasl.kerberos.min.time.before.relogin", "0"),
                    _ => config
                        .set("sasl.username", "user")
                        .set("sasl.password", "word"),
                };
                let client: Result<BaseConsumer, _> = config.create();
                assert!(
                    client.is_ok(),
                    "{mechanism} over {protocol}: {:?}",
                    client.err()
                );
            }
        }
        for codec in ["gzip", "snappy", "lz4", "zstd"] {
            let client: Result<BaseProducer, _> = ClientConfig::new()
                .set("bootstrap.servers", "127.0.0.1:1")
                .set("compression.type", codec)
                .create();
            assert!(client.is_ok(), "{codec}: {:?}", client.err());
        }
    }

    #[test]
    fn what_we_promise_wins_over_nothing_a_user_may_set() {
        for (_, setting, _) in enforced() {
            assert!(
                PROTECTED.iter().any(|(p, _)| *p == setting),
                "{setting} is enforced and not protected"
            );
        }
    }
}
