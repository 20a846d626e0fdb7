//! Which data plane does the work at either end of a flow, and why.

use crate::broker::security::{Security, Unsuited};
use crate::config::spec::{ClusterSpec, DataPlane, RouteSpec};
use std::fmt;

/// The planes of a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planes {
    /// Which one fetches.
    pub fetch: Plane,
    /// Which one produces.
    pub produce: Plane,
}

/// The plane of one end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plane {
    /// Our own; the file says so.
    Native,
    /// librdkafka.
    Librdkafka(Because),
}

/// Why it is librdkafka.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Because {
    /// The file says so.
    Named,
    /// `auto` takes it in this version.
    Auto,
    /// The native plane cannot serve the cluster.
    Unsuited(Unsuited),
}

impl Planes {
    /// Those of a flow.
    pub fn of(route: &RouteSpec, source: &ClusterSpec, target: &ClusterSpec) -> Self {
        Self {
            fetch: Plane::of(route, source),
            produce: Plane::of(route, target),
        }
    }
}

impl Plane {
    /// The route's word goes before the cluster's.
    fn of(route: &RouteSpec, cluster: &ClusterSpec) -> Self {
        let wanted = match route.data_plane {
            DataPlane::Auto => cluster.data_plane,
            said => said,
        };
        match (wanted, Security::of(cluster)) {
            (DataPlane::Auto, _) => Plane::Librdkafka(Because::Auto),
            (DataPlane::Librdkafka, _) => Plane::Librdkafka(Because::Named),
            (DataPlane::Native, Ok(_)) => Plane::Native,
            (DataPlane::Native, Err(unsuited)) => Plane::Librdkafka(Because::Unsuited(unsuited)),
        }
    }

    /// Its name, as in the file.
    pub fn as_str(&self) -> &'static str {
        match self {
            Plane::Native => "native",
            Plane::Librdkafka(_) => "librdkafka",
        }
    }

    /// Why it is this one.
    pub fn because(&self) -> String {
        match self {
            Plane::Native => Because::Named.to_string(),
            Plane::Librdkafka(because) => because.to_string(),
        }
    }
}

impl fmt::Display for Because {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Because::Named => f.write_str("data_plane says so"),
            Because::Auto => f.write_str("auto is librdkafka in this version"),
            Because::Unsuited(unsuited) => unsuited.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::config_tests::load_text;

    fn planes(cluster: &str, route: &str) -> (String, String) {
        let text = format!(
            "version: 1\nclusters:\n  a: {{ bootstrap_servers: ['a:1']{cluster} }}\n  b: {{ bootstrap_servers: ['b:1'] }}\n\
             routes:\n  r:\n    source: a\n    target: b\n    topics: {{ include: [t] }}\n{route}"
        );
        let spec = load_text(&text).expect("a file that loads").spec;
        let route = spec.routes.values().next().expect("a route");
        let planes = Planes::of(route, &route.sources[0], &route.targets[0]);
        let said = |plane: &Plane| format!("{}: {}", plane.as_str(), plane.because());
        (said(&planes.fetch), said(&planes.produce))
    }

    #[test]
    fn the_route_goes_before_the_cluster_and_auto_is_librdkafka() {
        let auto = "librdkafka: auto is librdkafka in this version".to_owned();
        let named = "librdkafka: data_plane says so".to_owned();
        let native = "native: data_plane says so".to_owned();
        assert_eq!(planes("", ""), (auto.clone(), auto.clone()));
        let of_source = ", data_plane: native";
        assert_eq!(planes(of_source, ""), (native.clone(), auto));
        let of_route = "    data_plane: native\n";
        assert_eq!(planes("", of_route), (native.clone(), native));
        let other = "    data_plane: librdkafka\n";
        assert_eq!(planes(of_source, other), (named.clone(), named));
    }
}
