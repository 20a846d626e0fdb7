//! Which settings differ between two specs, by the names that the file uses, with both values.
//!
//! Specs are taken apart field by field: a setting that is added later does not compile until it
//! is compared here, and every comparison names its line in the table of classes.

use super::setting::Setting;
use super::shown::{self, Bytes, Shown};
use crate::config::settings::ReloadClass;
use crate::config::spec::{
    AdminSpec, ClusterSpec, ReloadSpec, RouteSpec, SaslSpec, Spec, ThreadSpec, TlsSpec,
    TopicCreation,
};
use crate::handler::Chain;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// One setting that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changed {
    /// Its path: `workers`, `clusters.lisbon.sasl.password`.
    pub setting: String,
    /// What the change takes.
    pub class: ReloadClass,
    /// The value that runs; a secret is masked.
    pub from: String,
    /// The value that the file wants; a secret is masked.
    pub to: String,
}

/// Collects settings.
struct Differences<'a> {
    cluster: Option<&'a str>,
    wanted: Wanted,
    found: Vec<Changed>,
}

/// Which settings are collected.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// Those that differ.
    Differing,
    /// All, to be shown.
    All,
}

impl<'a> Differences<'a> {
    fn new(cluster: Option<&'a str>, wanted: Wanted) -> Self {
        Self {
            cluster,
            wanted,
            found: Vec::new(),
        }
    }

    fn compare<T: PartialEq + Shown>(&mut self, setting: Setting, running: &T, wanted: &T) {
        if running != wanted || self.wanted == Wanted::All {
            self.note(setting, running.shown(), wanted.shown());
        }
    }

    fn bytes(&mut self, setting: Setting, running: Option<u64>, wanted: Option<u64>) {
        if running != wanted || self.wanted == Wanted::All {
            let shown = |bytes: Option<u64>| bytes.map(Bytes).shown();
            self.note(setting, shown(running), shown(wanted));
        }
    }

    fn note(&mut self, setting: Setting, from: String, to: String) {
        self.found.push(Changed {
            setting: setting.shown(self.cluster),
            class: setting.class(),
            from,
            to,
        });
    }
}

/// The settings of a route that differ and matter to what runs, those of its clusters apart.
/// `about` does not matter: it is shown, never run.
pub(super) fn of_route(running: &RouteSpec, wanted: &RouteSpec) -> Vec<Changed> {
    route(running, wanted, Wanted::Differing)
}

fn route(running: &RouteSpec, wanted: &RouteSpec, which: Wanted) -> Vec<Changed> {
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
        data_plane,
        // Words about the change itself, not about what runs.
        was: _,
        accept: _,
    } = running;
    let mut d = Differences::new(None, which);
    let names = |clusters: &[std::sync::Arc<ClusterSpec>]| -> Vec<_> {
        clusters.iter().map(|c| c.name.clone()).collect()
    };
    d.compare(Setting::Source, &names(sources), &names(&wanted.sources));
    d.compare(Setting::Target, &names(targets), &names(&wanted.targets));
    let (include, exclude) = (&topics.include_patterns, &topics.exclude_patterns);
    d.compare(
        Setting::TopicsInclude,
        include,
        &wanted.topics.include_patterns,
    );
    d.compare(
        Setting::TopicsExclude,
        exclude,
        &wanted.topics.exclude_patterns,
    );
    if which == Wanted::All {
        let (_, whole) = shown::chains(&Chain::default(), chain);
        d.note(Setting::Handlers, whole.clone(), whole);
    } else if *chain != wanted.chain {
        let (from, to) = shown::chains(chain, &wanted.chain);
        d.note(Setting::Handlers, from, to);
    }
    d.compare(Setting::Partitions, policy, &wanted.policy);
    d.compare(Setting::Start, start, &wanted.start);
    d.compare(Setting::OnGap, on_gap, &wanted.on_gap);
    d.compare(Setting::OnError, on_error, &wanted.on_error);
    d.compare(Setting::DeadLetter, dead_letter, &wanted.dead_letter);
    threads_of(&mut d, threads, &wanted.threads);
    creation_of(&mut d, topic_creation, &wanted.topic_creation);
    d.bytes(
        Setting::InFlight,
        Some(*in_flight_bytes),
        Some(wanted.in_flight_bytes),
    );
    d.bytes(Setting::RecordLimit, *record_bytes, wanted.record_bytes);
    d.compare(
        Setting::CommitInterval,
        commit_interval,
        &wanted.commit_interval,
    );
    d.compare(
        Setting::DiscoveryInterval,
        discovery_interval,
        &wanted.discovery_interval,
    );
    d.compare(
        Setting::RebalanceListener,
        rebalance_listener,
        &wanted.rebalance_listener,
    );
    d.compare(
        Setting::GroupProtocol,
        group_protocol,
        &wanted.group_protocol,
    );
    d.compare(Setting::Until, until, &wanted.until);
    d.compare(Setting::DataPlane, data_plane, &wanted.data_plane);
    d.found
}

fn threads_of(d: &mut Differences<'_>, running: &ThreadSpec, wanted: &ThreadSpec) {
    let ThreadSpec {
        workers,
        handlers,
        queue_records,
        queue_bytes,
        producers,
    } = running;
    d.compare(Setting::Workers, workers, &wanted.workers);
    d.compare(Setting::HandlerThreads, handlers, &wanted.handlers);
    d.compare(Setting::QueueRecords, queue_records, &wanted.queue_records);
    d.bytes(
        Setting::QueueBytes,
        Some(*queue_bytes),
        Some(wanted.queue_bytes),
    );
    d.compare(Setting::Producers, producers, &wanted.producers);
}

fn creation_of(d: &mut Differences<'_>, running: &TopicCreation, wanted: &TopicCreation) {
    let TopicCreation {
        mode,
        replication_factor,
        configs,
    } = running;
    d.compare(Setting::CreationEnabled, mode, &wanted.mode);
    d.compare(
        Setting::CreationReplication,
        replication_factor,
        &wanted.replication_factor,
    );
    d.compare(Setting::CreationConfigs, configs, &wanted.configs);
}

/// The settings of a cluster that differ.
pub(super) fn of_cluster(running: &ClusterSpec, wanted: &ClusterSpec) -> Vec<Changed> {
    cluster(running, wanted, Wanted::Differing)
}

fn cluster(running: &ClusterSpec, wanted: &ClusterSpec, which: Wanted) -> Vec<Changed> {
    let ClusterSpec {
        name,
        bootstrap_servers,
        properties,
        tls,
        sasl,
        access,
        expect_cluster_id,
        data_plane,
    } = running;
    let mut d = Differences::new(Some(name.as_str()), which);
    d.compare(
        Setting::BootstrapServers,
        bootstrap_servers,
        &wanted.bootstrap_servers,
    );
    let keys: BTreeSet<&String> = properties.keys().chain(wanted.properties.keys()).collect();
    for key in keys {
        let (from, to) = (
            properties.get(key).cloned(),
            wanted.properties.get(key).cloned(),
        );
        let before = d.found.len();
        d.compare(Setting::Properties, &from, &to);
        if let Some(changed) = d.found.get_mut(before) {
            changed.setting += &format!(".{key}");
        }
    }
    tls_of(&mut d, tls.as_ref(), wanted.tls.as_ref());
    sasl_of(&mut d, sasl.as_ref(), wanted.sasl.as_ref());
    d.compare(Setting::ClusterAccess, access, &wanted.access);
    d.compare(
        Setting::ExpectClusterId,
        expect_cluster_id,
        &wanted.expect_cluster_id,
    );
    d.compare(Setting::ClusterDataPlane, data_plane, &wanted.data_plane);
    d.found
}

/// TLS that is absent is not TLS with nothing in it: that alone is a difference, too.
fn tls_of(d: &mut Differences<'_>, running: Option<&TlsSpec>, wanted: Option<&TlsSpec>) {
    if running.is_none() && wanted.is_none() {
        return;
    }
    let before = d.found.len();
    let (none, also_none) = (TlsSpec::default(), TlsSpec::default());
    let (from, to) = (running.unwrap_or(&none), wanted.unwrap_or(&also_none));
    let TlsSpec {
        ca,
        certificate,
        key,
        key_password,
        verify_hostname,
    } = from;
    d.compare(Setting::TlsCa, ca, &to.ca);
    d.compare(Setting::TlsCertificate, certificate, &to.certificate);
    d.compare(Setting::TlsKey, key, &to.key);
    d.compare(Setting::TlsKeyPassword, key_password, &to.key_password);
    d.compare(
        Setting::TlsVerifyHostname,
        verify_hostname,
        &to.verify_hostname,
    );
    if running.is_some() != wanted.is_some() && d.found.len() == before {
        let shown = |tls: Option<&TlsSpec>| tls.map_or("no TLS", |_| "TLS").to_owned();
        d.note(Setting::TlsCa, shown(running), shown(wanted));
    }
}

fn sasl_of(d: &mut Differences<'_>, running: Option<&SaslSpec>, wanted: Option<&SaslSpec>) {
    let mechanism = |sasl: Option<&SaslSpec>| sasl.map(|s| s.mechanism);
    let username = |sasl: Option<&SaslSpec>| sasl.and_then(|s| s.username.clone());
    let password = |sasl: Option<&SaslSpec>| sasl.and_then(|s| s.password.clone());
    if let Some(SaslSpec {
        mechanism: _,
        username: _,
        password: _,
    }) = running.or(wanted)
    {
        d.compare(
            Setting::SaslMechanism,
            &mechanism(running),
            &mechanism(wanted),
        );
        d.compare(Setting::SaslUsername, &username(running), &username(wanted));
        d.compare(Setting::SaslPassword, &password(running), &password(wanted));
    }
}

/// The settings of the process that differ, routes and clusters apart.
pub(super) fn of_process(running: &Spec, wanted: &Spec) -> Vec<Changed> {
    process(running, wanted, Wanted::Differing)
}

fn process(running: &Spec, wanted: &Spec, which: Wanted) -> Vec<Changed> {
    let Spec {
        group,
        clusters: _,
        routes: _,
        memory_bytes,
        reload: ReloadSpec { watch, settle },
        grace,
        admin: AdminSpec {
            listen,
            socket,
            token,
        },
        // A word about the change itself.
        accept: _,
    } = running;
    let mut d = Differences::new(None, which);
    d.compare(Setting::Group, group, &wanted.group);
    d.bytes(
        Setting::Memory,
        Some(*memory_bytes),
        Some(wanted.memory_bytes),
    );
    d.compare(Setting::ReloadWatch, watch, &wanted.reload.watch);
    d.compare(Setting::ReloadSettle, settle, &wanted.reload.settle);
    d.compare(Setting::Grace, grace, &wanted.grace);
    d.compare(Setting::AdminListen, listen, &wanted.admin.listen);
    d.compare(Setting::AdminSocket, socket, &wanted.admin.socket);
    d.compare(Setting::AdminToken, token, &wanted.admin.token);
    d.found
}

/// Every setting of a route with its value, secrets masked.
pub(super) fn settings_of(of: &RouteSpec) -> Settings {
    values(route(of, of, Wanted::All))
}

fn values(all: Vec<Changed>) -> Settings {
    all.into_iter().map(|c| (c.setting, c.to)).collect()
}

/// Every setting with its value, secrets masked.
pub type Settings = BTreeMap<String, String>;

/// A configuration as it runs: every setting that matters, defaults included.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Effective {
    /// The process's.
    pub process: Settings,
    /// The clusters', by name.
    pub clusters: BTreeMap<String, Settings>,
    /// The routes', by name.
    pub routes: BTreeMap<String, Settings>,
}

impl From<&Spec> for Effective {
    fn from(spec: &Spec) -> Self {
        let of_cluster = |of: &ClusterSpec| -> Settings {
            let settings: Settings = values(cluster(of, of, Wanted::All));
            let prefix = format!("clusters.{}.", of.name);
            let short = |key: String| key.strip_prefix(&prefix).map_or(key.clone(), str::to_owned);
            settings
                .into_iter()
                .map(|(key, value)| (short(key), value))
                .collect()
        };
        Self {
            process: values(process(spec, spec, Wanted::All)),
            clusters: spec
                .clusters
                .iter()
                .map(|(n, c)| (n.to_string(), of_cluster(c)))
                .collect(),
            routes: spec
                .routes
                .iter()
                .map(|(n, r)| (n.to_string(), settings_of(r)))
                .collect(),
        }
    }
}
