//! Routes: `defaults:` laid under each, names resolved, what cannot stand together refused.

use super::Check;
use super::clusters::{self, Clusters};
use super::order;
use super::partitions;
use super::promise::Promise;
use super::reach::Reach;
use super::topic_configs;
use super::topics;
use crate::config::chains::{self, Chains, Compiled, Steps, read_raw};
use crate::config::defaults;
use crate::config::diagnostic::Code;
use crate::config::forms::{Listener, OneOrMany, OneOrManyForm};
use crate::config::laid::Laid;
use crate::config::pointer;
use crate::config::raw::{RawRoute, RawTopicCreation};
use crate::config::spec::{
    Accept, Access, ClusterSpec, CreationMode, GroupProtocol, ListenerSpec, Name, OnError, OnGap,
    RouteSpec, Start, ThreadSpec, TopicCreation, Until, held_once,
};
use crate::config::words::{
    RawAccept, RawDataPlane, RawGroupProtocol, RawOnGap, RawStart, RawUntil,
};
use crate::handler::Shelf;
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::num::NonZeroUsize;
use std::sync::Arc;

/// Reads every route.
pub fn read(
    clusters: &Clusters,
    (chains, shelf): (&mut Chains<'_>, &mut Shelf),
    check: &mut Check<'_>,
) -> Vec<Arc<RouteSpec>> {
    let written = check.document.value.get("defaults");
    let below = match written {
        Some(written) => defaults::lay_over(defaults::of_route(), written),
        None => defaults::of_route(),
    };
    let running = check.options.running.map(|running| &running.routes);
    let successors = Successors::of(check);
    let mut routes = Vec::new();
    for (name, written) in check.section("routes") {
        let at = pointer::child("/routes", name);
        let name = check.name_of_key(&at, name);
        let laid = Laid::over(&below, written);
        let Some(raw) = read_raw::<RawRoute>(laid, &at, check) else {
            continue;
        };
        let handlers = laid.get("handlers").and_then(Value::as_array);
        let mut route = Route {
            raw,
            handlers: handlers.map(Vec::as_slice).unwrap_or_default(),
            at,
            clusters,
            successors: &successors,
            check,
        };
        let built = route.build(name, chains, shelf);
        // At once: two configurations are never there in full.
        routes.extend(built.map(|built| held_once(&built.name.clone(), built, running)));
    }
    routes
}

/// One route on its way.
struct Route<'r, 'a> {
    raw: RawRoute,
    /// Its handlers, as written.
    handlers: &'r [Value],
    at: String,
    clusters: &'r Clusters,
    successors: &'r Successors<'a>,
    check: &'r mut Check<'a>,
}

/// The routes of the file, and how many of them take over from each former one.
struct Successors<'a> {
    routes: HashSet<&'a str>,
    of: HashMap<&'a str, usize>,
}

impl<'a> Successors<'a> {
    fn of(check: &Check<'a>) -> Self {
        let routes = check.section("routes");
        let mut of = HashMap::new();
        for was in routes.filter_map(|(_, route)| route.get("was")?.as_str()) {
            *of.entry(was).or_default() += 1;
        }
        let routes = check.section("routes").map(|(name, _)| name.as_str());
        Self {
            routes: routes.collect(),
            of,
        }
    }
}

impl<'r> Route<'r, '_> {
    /// Every check is made before the first absent part ends the building.
    fn build<'c: 'r>(
        &mut self,
        name: Option<Name>,
        chains: &mut Chains<'c>,
        shelf: &mut Shelf,
    ) -> Option<RouteSpec> {
        let sources = self.ends("source", self.raw.source.clone());
        let targets = self.ends("target", self.raw.target.clone());
        self.suited(sources.as_deref());
        self.suited(targets.as_deref());
        self.writable(targets.as_deref());
        let topics = self.raw.topics.take();
        let topics = topics.and_then(|t| topics::read(&t, &self.at, self.check));
        let steps = self.steps(chains);
        let compiled = chains::compile(&steps, shelf, self.check);
        let accept = self.raw.accept.take().unwrap_or_default();
        let policy = self.raw.partitions.take();
        let policy = policy.and_then(|p| partitions::read(p, &self.at, self.check));
        let accept: Vec<Accept> = accept.into_iter().map(Accept::from).collect();
        if let (Some(policy), Compiled::Whole(_)) = (&policy, &compiled) {
            order::report(policy, &steps, &accept, &self.at, self.check);
        }
        self.promise(&steps, &accept);
        if let (Some(route), Some(topics)) = (&name, &topics)
            && let (Some([source, ..]), Some([target, ..])) =
                (sources.as_deref(), targets.as_deref())
        {
            let reach = Reach {
                at: &self.at,
                route,
                topics: &topics.selection,
                include: &topics.include,
                exclude: &topics.exclude,
                compiled: &compiled,
                steps: &steps,
                source,
                target,
                accept: &accept,
            };
            reach.report(self.check);
        }
        let topics = topics.map(|topics| topics.selection.unasked());
        let dead_letter = self.dead_letter(&steps);
        let listener = self.listener();
        let was = self.was();
        let threads = self.threads();
        let raw = &self.raw;
        if let Some(configs) = raw.topic_creation.as_ref().and_then(|c| c.configs.as_ref()) {
            topic_configs::report(configs, &self.at, self.check);
        }
        let limits = raw.limits.as_ref()?;
        Some(RouteSpec {
            name: name?,
            about: raw.about.clone(),
            sources: sources?,
            targets: targets?,
            topics: topics?,
            chain: compiled.whole()?,
            policy: policy?,
            start: start(raw.start?),
            on_gap: on_gap(raw.on_gap?),
            on_error: raw.on_error?,
            dead_letter: dead_letter?,
            threads: threads?,
            topic_creation: topic_creation(raw.topic_creation.as_ref()?)?,
            in_flight_bytes: limits.in_flight?.0,
            record_bytes: limits.record.map(|r| r.0),
            commit_interval: raw.commit_interval?.0,
            discovery_interval: raw.discovery_interval?.0,
            rebalance_listener: listener?,
            group_protocol: group_protocol(raw.group_protocol?),
            until: until(raw.until?),
            data_plane: clusters::data_plane(raw.data_plane?),
            was: was?,
            accept,
        })
    }

    /// What takes back the promise of `delivery`.
    fn promise(&mut self, steps: &Steps<'_>, accept: &[Accept]) {
        let raw = &self.raw;
        let (Some(on_error), Some(gap), Some(begin), Some(end)) =
            (raw.on_error, raw.on_gap, raw.start, raw.until)
        else {
            return;
        };
        let promise = Promise {
            on_error,
            on_gap: on_gap(gap),
            start: start(begin),
            until: until(end),
            accept,
        };
        promise.report(steps, &self.at, self.check);
    }

    /// Whether the native plane can serve the clusters at one end, if it is asked for here.
    fn suited(&mut self, clusters: Option<&[Arc<ClusterSpec>]>) {
        if self.raw.data_plane == Some(RawDataPlane::Native) {
            for cluster in clusters.unwrap_or_default() {
                clusters::suits(cluster, &self.at, self.check);
            }
        }
    }

    /// The clusters at one end. `None` if one of them is unknown, unsound or named twice.
    fn ends(&mut self, end: &str, names: Option<OneOrMany>) -> Option<Vec<Arc<ClusterSpec>>> {
        let names = names?;
        let at = pointer::child(&self.at, end);
        let mut clusters = Vec::new();
        for (index, name) in names.names.iter().enumerate() {
            let at = match names.form {
                OneOrManyForm::One => at.clone(),
                OneOrManyForm::Many => pointer::item(&at, index),
            };
            if names.names[..index].contains(name) {
                let message = format!("{} stands twice in `{end}`", self.check.quoted(&at, name));
                self.check.say(Code::Conflict, &at, message).help =
                    Some("name each cluster once".to_owned());
                continue;
            }
            clusters.push(self.cluster(name, &at));
        }
        clusters.into_iter().collect()
    }

    fn cluster(&mut self, name: &str, at: &str) -> Option<Arc<ClusterSpec>> {
        let known = self.clusters.names.contains(name);
        if !known && !self.check.is_wrong(&pointer::child("/clusters", name)) {
            let names = self.clusters.names.iter().map(String::as_str);
            self.check
                .unknown(Code::UnknownCluster, ("cluster", at, name), names);
        }
        self.clusters.built.get(&Name::new(name)?).cloned()
    }

    /// `access: read` is a promise that nothing is written there.
    fn writable(&mut self, targets: Option<&[Arc<ClusterSpec>]>) {
        for target in targets.unwrap_or_default() {
            if target.access != Access::Read {
                continue;
            }
            let promise =
                pointer::child(&pointer::child("/clusters", target.name.as_str()), "access");
            let promise = self.check.document.place(&promise);
            let at = pointer::child(&self.at, "target");
            let message = format!("the cluster `{}` is only for reading", target.name);
            let diagnostic = self.check.say(Code::ReadOnlyTarget, &at, message);
            diagnostic
                .related
                .push((promise, "promised here".to_owned()));
            diagnostic.help =
                Some("write to another cluster, or take `access: read` away there".to_owned());
        }
    }

    fn steps<'c: 'r>(&mut self, chains: &mut Chains<'c>) -> Steps<'r> {
        let own = pointer::child(&self.at, "handlers");
        // What a route takes from `defaults:` stands, and is reported, there.
        let at = match self.check.document.spots.contains(&own) {
            true => own,
            false => "/defaults/handlers".to_owned(),
        };
        chains.resolve(self.handlers, &at, self.check)
    }

    /// The dead-letter topic: needed by `on_error: dead_letter`, and useless without.
    fn dead_letter(&mut self, steps: &Steps<'_>) -> Option<Option<String>> {
        let at = pointer::child(&self.at, "dead_letter");
        let route = (self.raw.on_error == Some(OnError::DeadLetter))
            .then(|| pointer::child(&self.at, "on_error"));
        let wanted = route.or_else(|| steps.with_on_error("dead_letter").next());
        let topic = self.raw.dead_letter.take().map(|d| d.topic);
        match (topic, wanted) {
            (None, Some(wanted)) if !self.check.is_wrong_below(&at) => {
                self.check
                    .say(Code::NoDeadLetter, &wanted, "`dead_letter` needs a topic")
                    .help =
                    Some("write `dead_letter: { topic: mirror.rejected }` at the route".to_owned());
                None
            }
            (Some(_), None) if self.check.is_wrong_below(&at) || self.lost_on_error(steps) => None,
            (Some(_), None) if self.check.document.spots.contains(&at) => {
                let message =
                    "`dead_letter` has no effect without `on_error: dead_letter`".to_owned();
                self.check.say_of_key(Code::NoEffect, &at, message);
                self.topic(None)
            }
            (Some(topic), _) => self.topic(topic),
            (None, _) => Some(None),
        }
    }

    /// Whether an `on_error` that would say where records go was refused.
    fn lost_on_error(&self, steps: &Steps) -> bool {
        let own = pointer::child(&self.at, "on_error");
        let of_steps = steps
            .pointers
            .iter()
            .map(|at| pointer::child(at, "on_error"));
        let mut all = of_steps.chain([own, "/defaults/on_error".to_owned()]);
        all.any(|at| self.check.is_wrong(&at))
    }

    fn topic(&mut self, topic: Option<String>) -> Option<Option<String>> {
        let Some(topic) = topic else {
            return Some(None);
        };
        if topics::is_topic(&topic) {
            return Some(Some(topic));
        }
        let at = pointer::child(&pointer::child(&self.at, "dead_letter"), "topic");
        let message = format!("{} is not a topic name", self.check.quoted(&at, &topic));
        self.check.say(Code::BadTopic, &at, message).help =
            Some(crate::handler::TOPIC_NAMES.to_owned());
        None
    }

    fn listener(&mut self) -> Option<Option<ListenerSpec>> {
        let at = pointer::child(&self.at, "rebalance_listener");
        match self.raw.rebalance_listener.take() {
            None => Some(None),
            Some(Listener::Named(name)) if name == "log" => Some(Some(ListenerSpec::Log)),
            Some(Listener::Exec(words)) => {
                let (command, args) = words.split_first()?;
                Some(Some(ListenerSpec::Exec {
                    command: command.clone(),
                    args: args.to_vec(),
                }))
            }
            Some(Listener::Named(name)) if self.check.options.listeners.get(&name).is_some() => {
                Some(Some(ListenerSpec::Registered(name)))
            }
            Some(Listener::Named(name)) => {
                let names = ["log"].into_iter();
                let what = ("rebalance listener", at.as_str(), name.as_str());
                self.check.unknown(Code::UnknownListener, what, names);
                None
            }
        }
    }

    fn was(&mut self) -> Option<Option<Name>> {
        let Some(was) = self.raw.was.take() else {
            return Some(None);
        };
        let at = pointer::child(&self.at, "was");
        let name = self.check.name(&at, &was)?;
        if self.successors.routes.contains(&*was) {
            let message = format!(
                "the route {} is still in the file",
                self.check.quoted(&at, &was)
            );
            self.check.say(Code::Conflict, &at, message).help =
                Some("`was` names a route that this one takes over from".to_owned());
            return None;
        }
        if self
            .successors
            .of
            .get(&*was)
            .is_some_and(|routes| *routes > 1)
        {
            let message = format!("two routes take over from {}", self.check.quoted(&at, &was));
            self.check.say(Code::Conflict, &at, message);
            return None;
        }
        Some(Some(name))
    }

    fn threads(&mut self) -> Option<ThreadSpec> {
        let queue = self.raw.queue.as_ref()?;
        let spec = ThreadSpec {
            workers: NonZeroUsize::new(self.raw.workers?)?,
            handlers: self.raw.handler_threads.and_then(NonZeroUsize::new),
            queue_records: queue.records?,
            queue_bytes: queue.bytes?.0,
            producers: NonZeroUsize::new(self.raw.producers?)?,
        };
        let at = pointer::child(&self.at, "queue");
        let sound = !self.check.is_wrong_below(&at);
        if spec.handlers.is_none() && sound && self.check.document.spots.contains(&at) {
            let message = "`queue` has no effect without `handler_threads`".to_owned();
            self.check.say_of_key(Code::NoEffect, &at, message);
        }
        Some(spec)
    }
}

fn start(raw: RawStart) -> Start {
    match raw {
        RawStart::Earliest => Start::Earliest,
        RawStart::Latest => Start::Latest,
    }
}

fn on_gap(raw: RawOnGap) -> OnGap {
    match raw {
        RawOnGap::Stop => OnGap::Stop,
        RawOnGap::Earliest => OnGap::Earliest,
        RawOnGap::Latest => OnGap::Latest,
    }
}

fn group_protocol(raw: RawGroupProtocol) -> GroupProtocol {
    match raw {
        RawGroupProtocol::Classic => GroupProtocol::Classic,
        RawGroupProtocol::Consumer => GroupProtocol::Consumer,
    }
}

fn until(raw: RawUntil) -> Until {
    match raw {
        RawUntil::Stopped => Until::Stopped,
        RawUntil::End => Until::End,
    }
}

impl From<RawAccept> for Accept {
    fn from(raw: RawAccept) -> Self {
        match raw {
            RawAccept::Reorder => Accept::Reorder,
            RawAccept::RestartFromStart => Accept::RestartFromStart,
            RawAccept::Gap => Accept::Gap,
        }
    }
}

fn topic_creation(raw: &RawTopicCreation) -> Option<TopicCreation> {
    Some(TopicCreation {
        mode: match raw.enabled? {
            true => CreationMode::Enabled,
            false => CreationMode::Disabled,
        },
        replication_factor: raw.replication_factor,
        configs: raw.configs.clone()?,
    })
}
