//! Which settings differ between two specs of one route, by the names that the file uses.

use crate::config::spec::{ClusterSpec, Name, RouteSpec};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The settings that differ and matter to the running route. `about` does not: it is shown, never
/// run.
///
/// Both specs are taken apart field by field: a setting that is added later does not compile
/// until it is compared here.
pub fn changed_settings(running: &RouteSpec, wanted: &RouteSpec) -> Vec<String> {
    let RouteSpec {
        name: _,
        about: _,
        sources,
        targets,
        topics,
        chain,
        policy,
        start,
        on_gap,
        on_error,
        dead_letter,
        threads,
        topic_creation,
        in_flight_bytes,
        record_bytes,
        commit_interval,
        discovery_interval,
        rebalance_listener,
        group_protocol,
        until,
        // Words about the change itself, not about what runs.
        was: _,
        accept: _,
    } = running;
    let differs = [
        ("topics", *topics != wanted.topics),
        ("handlers", *chain != wanted.chain),
        ("partitions", *policy != wanted.policy),
        ("start", *start != wanted.start),
        ("on_gap", *on_gap != wanted.on_gap),
        ("on_error", *on_error != wanted.on_error),
        ("dead_letter", *dead_letter != wanted.dead_letter),
        ("workers", *threads != wanted.threads),
        ("topic_creation", *topic_creation != wanted.topic_creation),
        (
            "limits.in_flight",
            *in_flight_bytes != wanted.in_flight_bytes,
        ),
        ("limits.record", *record_bytes != wanted.record_bytes),
        (
            "commit_interval",
            *commit_interval != wanted.commit_interval,
        ),
        (
            "discovery_interval",
            *discovery_interval != wanted.discovery_interval,
        ),
        (
            "rebalance_listener",
            *rebalance_listener != wanted.rebalance_listener,
        ),
        ("group_protocol", *group_protocol != wanted.group_protocol),
        ("until", *until != wanted.until),
    ];
    let mut changed = Vec::new();
    changed.extend(changed_ends("source", sources, &wanted.sources));
    changed.extend(changed_ends("target", targets, &wanted.targets));
    changed.extend(
        differs
            .iter()
            .filter(|(_, differs)| *differs)
            .map(|(setting, _)| (*setting).to_owned()),
    );
    changed.sort();
    changed.dedup();
    changed
}

/// `source` or `target` if the list of names differs, `clusters.NAME` for each cluster that kept
/// its name and changed inside.
fn changed_ends(
    end: &str,
    running: &[Arc<ClusterSpec>],
    wanted: &[Arc<ClusterSpec>],
) -> Vec<String> {
    let names = |list: &[Arc<ClusterSpec>]| -> Vec<Name> {
        list.iter().map(|cluster| cluster.name.clone()).collect()
    };
    let before: BTreeMap<&Name, &Arc<ClusterSpec>> = running
        .iter()
        .map(|cluster| (&cluster.name, cluster))
        .collect();
    let mut changed = Vec::new();
    if names(running) != names(wanted) {
        changed.push(end.to_owned());
    }
    for cluster in wanted {
        if before.get(&cluster.name).is_some_and(|b| *b != cluster) {
            changed.push(format!("clusters.{}", cluster.name));
        }
    }
    changed
}
