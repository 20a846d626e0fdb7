//! Names of topic settings in `topic_creation.configs`.

use super::Check;
use crate::config::diagnostic::Code;
use crate::config::pointer;
use crate::config::suggest;

/// The settings that topics of Apache Kafka have, up to 4.1. Brokers differ in which of them they know.
const KNOWN: &[&str] = &[
    "cleanup.policy",
    "compression.gzip.level",
    "compression.lz4.level",
    "compression.type",
    "compression.zstd.level",
    "delete.retention.ms",
    "file.delete.delay.ms",
    "flush.messages",
    "flush.ms",
    "follower.replication.throttled.replicas",
    "index.interval.bytes",
    "leader.replication.throttled.replicas",
    "local.retention.bytes",
    "local.retention.ms",
    "max.compaction.lag.ms",
    "max.message.bytes",
    "message.downconversion.enable",
    "message.format.version",
    "message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms",
    "message.timestamp.difference.max.ms",
    "message.timestamp.type",
    "min.cleanable.dirty.ratio",
    "min.compaction.lag.ms",
    "min.insync.replicas",
    "preallocate",
    "remote.log.copy.disable",
    "remote.log.delete.on.disable",
    "remote.storage.enable",
    "retention.bytes",
    "retention.ms",
    "segment.bytes",
    "segment.index.bytes",
    "segment.jitter.ms",
    "segment.ms",
    "unclean.leader.election.enable",
];

/// How the settings of other brokers than Apache's begin.
const OTHERS: [&str; 3] = ["confluent.", "redpanda.", "write.caching"];

/// Warns of settings that no topic has, of the route that stands at `of_route`.
pub fn report(configs: &[String], of_route: &str, check: &mut Check<'_>) {
    let own = pointer::child(&pointer::child(of_route, "topic_creation"), "configs");
    // What a route takes from `defaults:` stands, and is reported, there.
    let at = match check.document.spots.contains(&own) {
        true => own,
        false => "/defaults/topic_creation/configs".to_owned(),
    };
    for (index, config) in configs.iter().enumerate() {
        if is_known(config) {
            continue;
        }
        let at = pointer::item(&at, index);
        let message = format!(
            "{} is no setting of a topic in Kafka",
            check.quoted(&at, config)
        );
        let near = suggest::nearest(config, KNOWN.iter().copied());
        let help = match near.filter(|_| check.document.may_be_shown(&at)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "it is copied only if the source topic has it; `kafka-configs.sh --describe --all` lists what it has".to_owned(),
        };
        check.say(Code::UnknownTopicConfig, &at, message).help = Some(help);
    }
}

fn is_known(config: &str) -> bool {
    KNOWN.contains(&config) || OTHERS.iter().any(|other| config.starts_with(other))
}
