//! Every setting by its path: what a change of it means for a process that runs, and an example.
//!
//! The one table: the schema's `x-mirror-reload` and `examples`, `mirror explain`, the manual page
//! and the plan all read it. What stands inside a setting has its class.

mod inner;

/// What a change of a setting means for a process that runs.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum ReloadClass {
    /// Taken over while the route runs; no consumer group notices.
    Live,
    /// The clients of the cluster are made anew; positions are kept.
    Reconnect,
    /// The route drains and starts again; positions are kept.
    Restart,
    /// Only a new process takes it over; a reload with such a change is refused.
    Refused,
}

impl ReloadClass {
    /// Each of them, from the lightest.
    pub const ALL: [ReloadClass; 4] = [
        ReloadClass::Live,
        ReloadClass::Reconnect,
        ReloadClass::Restart,
        ReloadClass::Refused,
    ];

    /// Its word in the schema (`x-mirror-reload`) and in plans.
    pub fn as_str(self) -> &'static str {
        match self {
            ReloadClass::Live => "live",
            ReloadClass::Reconnect => "reconnect",
            ReloadClass::Restart => "restart",
            ReloadClass::Refused => "refused",
        }
    }

    /// What it means, in words.
    pub fn meaning(self) -> &'static str {
        match self {
            ReloadClass::Live => "taken over while the route runs",
            ReloadClass::Reconnect => "the cluster's clients are made anew, positions are kept",
            ReloadClass::Restart => "the route drains and starts again, positions are kept",
            ReloadClass::Refused => "only a new process takes it over; the reload is refused",
        }
    }
}

/// What the types do not say about a setting.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Its path: `*` is any name. `routes.*.X` is `defaults.X` as well.
    pub path: &'static str,
    /// What a change of it means.
    pub class: ReloadClass,
    /// What may be written there, as YAML.
    pub examples: &'static [&'static str],
}

const fn live(path: &'static str, examples: &'static [&'static str]) -> Setting {
    let class = ReloadClass::Live;
    Setting {
        path,
        class,
        examples,
    }
}

const fn reconnect(path: &'static str, examples: &'static [&'static str]) -> Setting {
    let class = ReloadClass::Reconnect;
    Setting {
        path,
        class,
        examples,
    }
}

const fn restart(path: &'static str, examples: &'static [&'static str]) -> Setting {
    let class = ReloadClass::Restart;
    Setting {
        path,
        class,
        examples,
    }
}

const fn refused(path: &'static str, examples: &'static [&'static str]) -> Setting {
    let class = ReloadClass::Refused;
    Setting {
        path,
        class,
        examples,
    }
}

/// The table.
pub const SETTINGS: &[Setting] = &[
    live("version", &["1"]),
    refused("group", &["blue"]),
    reconnect(
        "clusters",
        &["{ hub: { bootstrap_servers: ['hub-1:9092', 'hub-2:9092'] } }"],
    ),
    reconnect(
        "clusters.*.bootstrap_servers",
        &[
            "['kafka-1:9092', 'kafka-2:9092']",
            "['${BOOTSTRAP:?host:port of the listener}']",
        ],
    ),
    reconnect(
        "clusters.*.properties",
        &["{ socket.keepalive.enable: true }"],
    ),
    reconnect("clusters.*.tls", &["{ ca: tls/ca.pem }"]),
    reconnect("clusters.*.tls.ca", &["tls/ca.pem"]),
    reconnect("clusters.*.tls.certificate", &["tls/mirror.pem"]),
    reconnect("clusters.*.tls.key", &["tls/mirror.key"]),
    reconnect(
        "clusters.*.tls.key_password",
        &["'${file:/run/secrets/key-password}'"],
    ),
    reconnect("clusters.*.tls.verify_hostname", &["true"]),
    reconnect(
        "clusters.*.sasl",
        &["{ mechanism: SCRAM-SHA-512, username: mirror, password: '${file:/run/secrets/kafka}' }"],
    ),
    reconnect("clusters.*.sasl.mechanism", &["SCRAM-SHA-512"]),
    reconnect("clusters.*.sasl.username", &["mirror"]),
    reconnect(
        "clusters.*.sasl.password",
        &["'${file:/run/secrets/kafka}'"],
    ),
    reconnect("clusters.*.access", &["read"]),
    reconnect("clusters.*.expect_cluster_id", &["Qk3vT0aXQzW0r0e1Yb9mSg"]),
    reconnect("clusters.*.data_plane", &["auto", "native"]),
    live("defaults", &["{ limits: { in_flight: 64MiB } }"]),
    live(
        "handlers",
        &["{ hygiene: [{ filter: { drop: tombstone } }] }"],
    ),
    live(
        "routes",
        &["{ orders: { source: lisbon, target: hub, topics: { include: [orders] } } }"],
    ),
    live("routes.*.about", &["Regional orders, merged in the hub."]),
    live("routes.*.source", &["lisbon", "[lisbon, virginia]"]),
    live("routes.*.target", &["hub", "[lisbon-dr, virginia]"]),
    live(
        "routes.*.topics",
        &[r"{ include: [orders, 'payments\..+'], exclude: ['.+\.test'] }"],
    ),
    live("routes.*.topics.include", &[r"[orders, 'payments\..+']"]),
    live("routes.*.topics.exclude", &[r"['.+\.test']"]),
    live("routes.*.was", &["orders-old"]),
    live("routes.*.accept", &["[reorder]"]),
    restart("routes.*.delivery", &["at_least_once"]),
    live("routes.*.start", &["earliest", "latest"]),
    live("routes.*.on_gap", &["stop", "earliest"]),
    live("routes.*.on_error", &["stop", "dead_letter"]),
    live("routes.*.dead_letter", &["{ topic: mirror.rejected }"]),
    live("routes.*.dead_letter.topic", &["mirror.rejected"]),
    live(
        "routes.*.handlers",
        &["[{ use: hygiene }, { rename: { topic: '{source}.{topic}' } }]"],
    ),
    restart(
        "routes.*.partitions",
        &[
            "match",
            "{ policy: match, on_fewer: modulo }",
            "{ fixed: 0 }",
            "{ by: value.customer_id }",
        ],
    ),
    restart("routes.*.workers", &["4"]),
    restart("routes.*.handler_threads", &["3"]),
    live("routes.*.queue", &["{ records: 100000, bytes: 32MiB }"]),
    live("routes.*.queue.records", &["100000"]),
    live("routes.*.queue.bytes", &["32MiB"]),
    restart("routes.*.producers", &["2"]),
    live(
        "routes.*.topic_creation",
        &["{ enabled: true, replication_factor: 3, configs: [cleanup.policy, retention.ms] }"],
    ),
    live("routes.*.topic_creation.enabled", &["true"]),
    live("routes.*.topic_creation.replication_factor", &["3"]),
    live(
        "routes.*.topic_creation.configs",
        &["[cleanup.policy, retention.ms, retention.bytes]"],
    ),
    live("routes.*.limits", &["{ in_flight: 64MiB }"]),
    live("routes.*.limits.in_flight", &["64MiB"]),
    live("routes.*.limits.record", &["1MiB"]),
    live("routes.*.commit_interval", &["1s"]),
    live("routes.*.discovery_interval", &["5s"]),
    restart(
        "routes.*.rebalance_listener",
        &["log", "{ exec: [/usr/local/bin/notify, rebalance] }"],
    ),
    restart("routes.*.group_protocol", &["classic", "consumer"]),
    restart("routes.*.until", &["end"]),
    restart("routes.*.data_plane", &["auto", "native"]),
    live("accept", &["[gap]"]),
    refused("limits", &["{ memory: 1GiB }"]),
    refused("limits.memory", &["1GiB"]),
    live("reload", &["{ watch: true, settle: 500ms }"]),
    live("reload.watch", &["true"]),
    live("reload.settle", &["500ms"]),
    live("shutdown", &["{ grace: 25s }"]),
    live("shutdown.grace", &["25s"]),
    refused("admin", &["{ listen: 127.0.0.1:8787 }"]),
    refused("admin.listen", &["127.0.0.1:8787", "'off'"]),
    refused("admin.socket", &["/run/mirror/blue.sock"]),
    live(
        "admin.write",
        &["{ token: '${file:/run/secrets/mirror-admin}' }"],
    ),
    live(
        "admin.write.token",
        &["'${file:/run/secrets/mirror-admin}'"],
    ),
    live("include", &["['routes.d/*.yaml']"]),
    live(
        "tests",
        &["[{ route: orders, in: [{ topic: orders }], out: 1 }]"],
    ),
];

/// Every entry of both tables.
pub fn all() -> impl Iterator<Item = &'static Setting> {
    SETTINGS.iter().chain(inner::INNER)
}

/// The entry of exactly this path; `routes.orders.workers` and `defaults.workers` are
/// `routes.*.workers`.
pub fn setting(path: &str) -> Option<&'static Setting> {
    let wanted: Vec<&str> = match path.strip_prefix("defaults.") {
        Some(rest) => ["routes", "*"].into_iter().chain(rest.split('.')).collect(),
        None => path.split('.').collect(),
    };
    all().find(|setting| is_at(setting, &wanted))
}

/// The first example of the setting that stands at `pointer` of a file.
pub fn example(pointer: &str) -> Option<&'static str> {
    let steps: Vec<String> = pointer
        .split('/')
        .skip(1)
        .map(|step| step.replace("~1", "/").replace("~0", "~"))
        .collect();
    let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
    let (above, rest): (&[&str], &[&str]) = match steps.as_slice() {
        ["defaults", rest @ ..] => (&["routes", "*"], rest),
        ["handlers", _, rest @ ..] => (&["routes", "*", "handlers"], rest),
        whole => (&[], whole),
    };
    let wanted: Vec<&str> = above.iter().chain(rest).copied().collect();
    let setting = all().find(|setting| is_at(setting, &wanted))?;
    setting.examples.first().copied()
}

/// Whether the setting's path leads where `steps` do.
fn is_at(setting: &Setting, steps: &[&str]) -> bool {
    let path = setting.path.split('.');
    path.clone().count() == steps.len()
        && path
            .zip(steps)
            .all(|(step, name)| step == "*" || step == *name)
}

/// The class of the setting at `path`: its own, or that of what it stands in.
pub fn class_of(path: &str) -> ReloadClass {
    let mut at = path;
    loop {
        if let Some(setting) = setting(at) {
            return setting.class;
        }
        match at.rsplit_once('.') {
            Some((above, _)) => at = above,
            None => return ReloadClass::Restart,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_setting_stands_twice() {
        let paths: BTreeSet<_> = all().map(|s| s.path).collect();
        assert_eq!(paths.len(), all().count());
    }

    #[test]
    fn classes_are_found_by_any_spelling_of_the_path() {
        for (path, class) in [
            ("routes.orders.workers", ReloadClass::Restart),
            ("defaults.workers", ReloadClass::Restart),
            ("routes.*.handlers.0.filter.keep", ReloadClass::Live),
            ("clusters.hub.sasl.password", ReloadClass::Reconnect),
            ("clusters.hub", ReloadClass::Reconnect),
            ("group", ReloadClass::Refused),
            ("limits.memory", ReloadClass::Refused),
            ("defaults.limits.record", ReloadClass::Live),
        ] {
            assert_eq!(class_of(path), class, "{path}");
        }
    }
}
