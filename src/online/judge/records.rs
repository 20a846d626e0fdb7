//! What the target's settings would do to the records: refuse, change or delete them.

use super::{Finding, Flow, listed};
use crate::config::diagnostic::Code;
use crate::online::arrivals::{Arrivals, drops_tombstones};
use crate::online::facts::ClusterFacts;
use std::time::Duration;

/// What our producers compress with, where the cluster's properties do not say.
const CODEC: &str = "lz4";

pub(super) fn judge(flow: &Flow<'_>, found: &mut Vec<Finding>) {
    let Some(target) = flow.target else { return };
    sizes(flow, target, found);
    timestamp_type(flow, target, found);
    timestamp_range(flow, target, found);
    keys(flow, target, found);
    cleanup(flow, target, found);
    tombstones(flow, target, found);
    codec(flow, target, found);
    retention(flow, target, found);
}

/// Collects one line for each pair of topics about which there is something to say.
fn each(flow: &Flow<'_>, line: impl Fn(&str, &str) -> Option<String>) -> Vec<String> {
    let mut lines: Vec<String> = flow.pairs().filter_map(|(s, t)| line(s, t)).collect();
    lines.sort();
    lines.dedup();
    lines
}

/// As [`each`], of what would arrive in a target topic.
fn each_arrival(flow: &Flow<'_>, line: impl Fn(&str, &Arrivals) -> Option<String>) -> Vec<String> {
    let arrivals = flow.arrivals.iter();
    arrivals.filter_map(|(topic, a)| line(topic, a)).collect()
}

fn sizes(flow: &Flow<'_>, target: &ClusterFacts, found: &mut Vec<Finding>) {
    let key = "max.message.bytes";
    let mut smaller = each(flow, |source, topic| {
        let (ours, theirs) = (target.number(topic, key)?, flow.source.number(source, key)?);
        (ours < theirs).then(|| format!("{topic} takes {ours} bytes, {source} has up to {theirs}"))
    });
    // A topic that is still to be created takes what its broker takes, unless the limit is copied.
    let copied = flow.needs.route.topic_creation.configs.iter();
    let copied = copied.clone().any(|c| c == key);
    if let Some(limit) = target
        .broker_number("message.max.bytes")
        .filter(|_| !copied)
    {
        for (topic, need) in &flow.needs.targets {
            let largest = need.sources.iter();
            let largest = largest.filter_map(|s| flow.source.number(s, key)).max();
            if !target.topics.contains_key(topic) && largest.is_some_and(|l| l > limit) {
                smaller.push(format!(
                    "{topic} would take {limit} bytes, its source has up to {}",
                    largest.unwrap_or_default()
                ));
            }
        }
    }
    if !smaller.is_empty() {
        found.push(flow.say(
            Code::SmallerRecords,
            &["target"],
            &format!(
                "the target takes smaller batches of records than the source: {}",
                listed(&smaller)
            ),
            "raise `max.message.bytes` of the target topics, or say with `on_error` what becomes of larger records",
        ));
    }
}

fn timestamp_type(flow: &Flow<'_>, target: &ClusterFacts, found: &mut Vec<Finding>) {
    let replaced = each(flow, |_, topic| {
        replaces_timestamps(target, topic).then(|| topic.to_owned())
    });
    if !replaced.is_empty() {
        found.push(flow.say(
            Code::TimestampReplaced,
            &["target"],
            &format!(
                "the target replaces the records' timestamps by the time of their arrival: {}",
                listed(&replaced)
            ),
            "set `message.timestamp.type=CreateTime` on the target topics",
        ));
    }
}

fn timestamp_range(flow: &Flow<'_>, target: &ClusterFacts, found: &mut Vec<Finding>) {
    let refused = each_arrival(flow, |topic, arrived| {
        if replaces_timestamps(target, topic) {
            return None;
        }
        let limit = |key: &str| {
            let either = target.number(topic, key);
            let either =
                either.or_else(|| target.number(topic, "message.timestamp.difference.max.ms"));
            either.unwrap_or(i64::MAX)
        };
        let before = limit("message.timestamp.before.max.ms");
        let after = limit("message.timestamp.after.max.ms");
        let age = flow.now_ms.saturating_sub(arrived.oldest?);
        let ahead = arrived.youngest?.saturating_sub(flow.now_ms);
        let sources = listed(&arrived.sources);
        if age > before {
            let (age, before) = (span(age), span(before));
            return Some(format!(
                "{sources} has records {age} old, {topic} takes {before}"
            ));
        }
        (ahead > after).then(|| {
            let (ahead, after) = (span(ahead), span(after));
            format!("{sources} has records {ahead} ahead of now, {topic} takes {after}")
        })
    });
    if !refused.is_empty() {
        found.push(flow.say(
            Code::TimestampRefused,
            &["target"],
            &format!("the target refuses the timestamps of records: {}", listed(&refused)),
            "raise `message.timestamp.before.max.ms` or `message.timestamp.after.max.ms` of the target topics",
        ));
    }
}

fn replaces_timestamps(target: &ClusterFacts, topic: &str) -> bool {
    target.config(topic, "message.timestamp.type") == Some("LogAppendTime")
}

/// As the handlers leave them: they may give keys, and take them.
fn keys(flow: &Flow<'_>, target: &ClusterFacts, found: &mut Vec<Finding>) {
    let refused = each_arrival(flow, |topic, arrived| {
        let Arrivals {
            records,
            without_key,
            ..
        } = arrived;
        let sources = listed(&arrived.sources);
        (target.cleanup(topic).compacts() && *without_key > 0).then(|| {
            format!("{without_key} of {records} records from {sources} have no key, {topic} is compacted")
        })
    });
    if !refused.is_empty() {
        found.push(flow.say(
            Code::KeyMissing,
            &["target"],
            &format!(
                "a compacted topic refuses records without a key: {}",
                listed(&refused)
            ),
            "give the records a key with `reformat`, drop them with `filter`, or set `cleanup.policy=delete`",
        ));
    }
}

fn cleanup(flow: &Flow<'_>, target: &ClusterFacts, found: &mut Vec<Finding>) {
    let differs = each(flow, |source, topic| {
        flow.source.config(source, "cleanup.policy")?;
        let theirs = flow.source.cleanup(source).compacts();
        match (theirs, target.cleanup(topic).compacts()) {
            (false, true) => Some(format!("{topic} is compacted, {source} is not")),
            (true, false) => Some(format!("{source} is compacted, {topic} is not")),
            _ => None,
        }
    });
    if !differs.is_empty() {
        found.push(flow.say(
            Code::CleanupDiffers,
            &["target"],
            &format!(
                "source and target are cleaned up in different ways: {}",
                listed(&differs)
            ),
            "set the same `cleanup.policy` on both, or name it in `topic_creation.configs` before the topic is created",
        ));
    }
}

/// Without its deletes a compacted topic keeps for ever what the source forgot (B088).
fn tombstones(flow: &Flow<'_>, target: &ClusterFacts, found: &mut Vec<Finding>) {
    let kept = each(flow, |source, topic| {
        let chain = &flow.needs.sources.get(source)?.chain;
        let kept = target.cleanup(topic).compacts() && drops_tombstones(flow.needs, source, chain);
        kept.then(|| topic.to_owned())
    });
    if !kept.is_empty() {
        found.push(flow.say(
            Code::TombstonesDropped,
            &["handlers"],
            &format!(
                "the handlers drop tombstones, so nothing is ever deleted from what is compacted: {}",
                listed(&kept)
            ),
            "let tombstones pass, or set `cleanup.policy=delete` on the target",
        ));
    }
}

fn codec(flow: &Flow<'_>, target: &ClusterFacts, found: &mut Vec<Finding>) {
    let properties = &flow.needs.target.properties;
    let given = ["compression.type", "compression.codec"];
    let given = given.iter().find_map(|key| properties.get(*key));
    let ours = given.map_or(CODEC, |codec| codec.reveal());
    let anew = each(flow, |_, topic| {
        let theirs = target.config(topic, "compression.type")?;
        let kept =
            theirs == "producer" || theirs == ours || (theirs, ours) == ("uncompressed", "none");
        (!kept).then(|| format!("{topic} keeps {theirs}"))
    });
    if !anew.is_empty() {
        found.push(flow.say(
            Code::Recompressed,
            &["target"],
            &format!(
                "the target's brokers compress every batch anew, since it comes as {ours}: {}",
                listed(&anew)
            ),
            "set `compression.type` to the same among the target cluster's `properties`, or `producer` on the topics",
        ));
    }
}

/// Copied records keep their timestamps, and the target's retention counts from those (B095).
fn retention(flow: &Flow<'_>, target: &ClusterFacts, found: &mut Vec<Finding>) {
    let short = each_arrival(flow, |topic, arrived| {
        if replaces_timestamps(target, topic) || !target.cleanup(topic).deletes() {
            return None;
        }
        let retention = target.number(topic, "retention.ms").filter(|ms| *ms >= 0)?;
        let age = flow.now_ms.saturating_sub(arrived.oldest?);
        (age > retention).then(|| {
            let (sources, age, kept) = (listed(&arrived.sources), span(age), span(retention));
            format!("{sources} has records {age} old, {topic} keeps {kept}")
        })
    });
    if !short.is_empty() {
        found.push(flow.say(
            Code::ExpiresAtTarget,
            &["target"],
            &format!(
                "the target deletes records soon after they were copied: {}",
                listed(&short)
            ),
            "raise `retention.ms` of the target topics",
        ));
    }
}

/// `36h`, `12d`: the largest unit of which there are two.
fn span(ms: i64) -> String {
    let seconds = Duration::from_millis(u64::try_from(ms).unwrap_or(0)).as_secs();
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7_200 => format!("{}m", seconds / 60),
        7_200..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::span;

    #[test]
    fn spans_are_short() {
        let shown = [0, 119_000, 120_000, 7_200_000, 172_800_000].map(span);
        assert_eq!(shown, ["0s", "119s", "2m", "2h", "2d"]);
    }
}
