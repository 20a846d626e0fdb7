//! Whether whole batches of a flow pass as they came, and if not, why: decided here alone, for the workers as well as for `check`.

use super::planes::{Plane, Planes};
use crate::config::spec::{ClusterSpec, RouteSpec};
use crate::handler::Cost;
use crate::native::sink::Manner;
use crate::partition::Policy;
use crate::wire::pass::Codecs;
use std::fmt;

/// In what form the records of a flow go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Passing {
    /// In whole batches of these codecs, wherever the rules let one pass.
    Whole(Codecs),
    /// One by one.
    Records(Because),
}

/// Why no batch passes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Because {
    /// A step looks at records, or changes them.
    Chain(Cost),
    /// The target partition depends on the record.
    Policy,
    /// `limits.record` is about single records.
    Limit,
    /// librdkafka fetches from this cluster, and has records only.
    Fetched(String),
    /// librdkafka produces to this one.
    Produced(String),
}

impl Passing {
    /// That of a flow.
    pub fn of(route: &RouteSpec, source: &ClusterSpec, target: &ClusterSpec) -> Self {
        match hindrance(route, source, target) {
            Some(because) => Passing::Records(because),
            None => Passing::Whole(Manner::codecs(target)),
        }
    }

    /// That of a route: what holds one of its flows back is told.
    pub fn of_route(route: &RouteSpec) -> Self {
        let flows = route.sources.iter().flat_map(|source| {
            let targets = route.targets.iter();
            targets.map(move |target| Self::of(route, source, target))
        });
        let flows: Vec<Self> = flows.collect();
        let held_back = flows.iter().find(|f| matches!(f, Passing::Records(_)));
        let one = held_back.or(flows.first()).cloned();
        one.unwrap_or(Passing::Whole(Codecs::Any))
    }
}

fn hindrance(route: &RouteSpec, source: &ClusterSpec, target: &ClusterSpec) -> Option<Because> {
    let cost = route.chain.cost();
    let planes = Planes::of(route, source, target);
    let is_pass = Policy::new(&route.policy).is_ok_and(|policy| policy.is_pass());
    match () {
        () if cost != Cost::PassThrough => Some(Because::Chain(cost)),
        () if !is_pass => Some(Because::Policy),
        () if route.record_bytes.is_some() => Some(Because::Limit),
        () if planes.fetch != Plane::Native => Some(Because::Fetched(source.name.to_string())),
        () if planes.produce != Plane::Native => Some(Because::Produced(target.name.to_string())),
        () => None,
    }
}

impl Passing {
    /// The class of its cost.
    pub fn class(&self) -> String {
        match self {
            Passing::Whole(_) => Cost::PassThrough.to_string(),
            Passing::Records(Because::Chain(cost)) => cost.to_string(),
            Passing::Records(_) => "records as they are".to_owned(),
        }
    }

    /// What there is to say of that.
    pub fn because(&self) -> Option<String> {
        match self {
            Passing::Whole(Codecs::Only(codec)) => Some(format!("{} batches", codec.as_str())),
            Passing::Whole(Codecs::Any) | Passing::Records(Because::Chain(_)) => None,
            Passing::Records(because) => Some(because.to_string()),
        }
    }
}

/// What a route costs, as `check` says it.
impl fmt::Display for Passing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.class())?;
        match self.because() {
            Some(because) => write!(f, " ({because})"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Because {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Because::Chain(cost) => cost.fmt(f),
            Because::Policy => f.write_str("the partition policy looks at them"),
            Because::Limit => f.write_str("limits.record is about each of them"),
            Because::Fetched(cluster) => write!(f, "librdkafka fetches from {cluster}"),
            Because::Produced(cluster) => write!(f, "librdkafka produces to {cluster}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::config_tests::load_text;

    fn said(clusters: [&str; 2], route: &str) -> String {
        let [a, b] = clusters;
        let text = format!(
            "version: 1\nclusters:\n  a: {{ bootstrap_servers: ['a:1']{a} }}\n  b: {{ bootstrap_servers: ['b:1']{b} }}\n\
             routes:\n  r:\n    source: a\n    target: b\n    topics: {{ include: [t] }}\n{route}"
        );
        let spec = load_text(&text).expect("a file that loads").spec;
        Passing::of_route(spec.routes.values().next().expect("a route")).to_string()
    }

    #[test]
    fn the_class_that_really_runs_is_said_with_what_holds_it_back() {
        let native = ", data_plane: native";
        let zstd = ", data_plane: native, properties: { compression.type: zstd }";
        let both = [native, native];
        for (clusters, route, wanted) in [
            (both, "", "pass-through"),
            (
                both,
                "    handlers: [{ rename: { topic: 'x.{topic}' } }]\n",
                "pass-through",
            ),
            ([native, zstd], "", "pass-through (zstd batches)"),
            (
                ["", native],
                "",
                "records as they are (librdkafka fetches from a)",
            ),
            (
                [native, ""],
                "",
                "records as they are (librdkafka produces to b)",
            ),
            (
                both,
                "    partitions: key_hash\n",
                "records as they are (the partition policy looks at them)",
            ),
            (
                both,
                "    limits: { record: 1MB }\n",
                "records as they are (limits.record is about each of them)",
            ),
            (
                both,
                "    handlers: [{ filter: { keep: { header.a: [x] } } }]\n",
                "headers only",
            ),
        ] {
            assert_eq!(said(clusters, route), wanted);
        }
    }
}
