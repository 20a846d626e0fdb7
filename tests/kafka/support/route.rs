//! Routes for tests that run a flow inside the test's own process.

use mirror::config::secret::Secret;
use mirror::config::spec::*;
use mirror::flow::FlowSpec;
use mirror::handler::{Chain, Registry};
use mirror::partition::{OnFewer, PolicySpec};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

/// Threads of a flow.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub workers: usize,
    pub handlers: Option<usize>,
}

/// The shapes in which the acceptance tests run.
pub const SHAPES: [Shape; 4] = [workers(1), workers(2), workers(4), handlers(3)];

/// The shapes of one test run: these few, so that every day stays short, or those that `MIRROR_TEST_SHAPES` names
/// (`all`, or some as `w4,h3`).
///
/// # Panics
/// If it names none.
pub fn shapes(few: &[Shape]) -> Vec<Shape> {
    let Ok(wanted) = std::env::var("MIRROR_TEST_SHAPES") else {
        return few.to_vec();
    };
    let is_wanted = |s: &Shape| wanted == "all" || wanted.split(',').any(|w| w == s.to_string());
    let named: Vec<Shape> = SHAPES.into_iter().filter(is_wanted).collect();
    assert!(
        !named.is_empty(),
        "MIRROR_TEST_SHAPES={wanted} names no shape"
    );
    named
}

/// So many workers, each of which does everything itself.
pub const fn workers(workers: usize) -> Shape {
    Shape {
        workers,
        handlers: None,
    }
}

/// One worker with so many threads behind it.
pub const fn handlers(threads: usize) -> Shape {
    Shape {
        workers: 1,
        handlers: Some(threads),
    }
}

impl std::fmt::Display for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.handlers {
            Some(threads) => write!(f, "h{threads}"),
            None => write!(f, "w{}", self.workers),
        }
    }
}

/// A cluster of a spec, without security.
pub fn cluster(name: &str, bootstrap: &str) -> ClusterSpec {
    ClusterSpec {
        name: Name::new(name).expect("a name"),
        bootstrap_servers: bootstrap.split(',').map(str::to_owned).collect(),
        properties: Default::default(),
        tls: None,
        sasl: None,
        access: Access::ReadWrite,
        expect_cluster_id: None,
        data_plane: DataPlane::Auto,
    }
}

/// A user of a cluster.
pub fn login(mechanism: SaslMechanism, username: &str, password: &str) -> SaslSpec {
    SaslSpec {
        mechanism,
        username: Some(username.to_owned()),
        password: Some(Secret::new(password)),
    }
}

/// A route that copies `topics` (a regex), with what the tests want: quick discovery, quick commits.
pub fn route(name: &str, topics: &str, shape: Shape) -> RouteSpec {
    let some = |n: usize| NonZeroUsize::new(n).expect("more than none");
    RouteSpec {
        name: Name::new(name).expect("a name"),
        about: None,
        sources: Vec::new(),
        targets: Vec::new(),
        topics: TopicSelection::new(&[topics.to_owned()], &[]).expect("a regex"),
        chain: Chain::default(),
        policy: PolicySpec::Match {
            on_fewer: OnFewer::Stop,
        },
        start: Start::Earliest,
        on_gap: OnGap::Stop,
        on_error: OnError::Stop,
        dead_letter: None,
        threads: ThreadSpec {
            workers: some(shape.workers),
            handlers: shape.handlers.map(some),
            queue_records: 100_000,
            queue_bytes: 32 << 20,
            producers: NonZeroUsize::MIN,
        },
        topic_creation: TopicCreation {
            mode: CreationMode::Enabled,
            replication_factor: None,
            configs: Vec::new(),
        },
        in_flight_bytes: 64 << 20,
        record_bytes: None,
        commit_interval: Duration::from_secs(1),
        discovery_interval: Duration::from_secs(1),
        rebalance_listener: None,
        group_protocol: GroupProtocol::Classic,
        until: Until::Stopped,
        data_plane: data_plane(),
        was: None,
        accept: Vec::new(),
    }
}

/// The data plane of one test run: `MIRROR_TEST_DATA_PLANE`, librdkafka unless it says `native`.
///
/// # Panics
/// If it names none.
pub fn data_plane() -> DataPlane {
    match std::env::var("MIRROR_TEST_DATA_PLANE").as_deref() {
        Err(_) | Ok("librdkafka") => DataPlane::Librdkafka,
        Ok("native") => DataPlane::Native,
        Ok(other) => panic!("MIRROR_TEST_DATA_PLANE={other} names no data plane"),
    }
}

/// A chain, of steps as a file has them.
///
/// # Panics
/// If they are wrong.
pub fn chain(steps: serde_json::Value) -> Chain {
    let steps: Vec<_> = serde_json::from_value(steps).expect("steps");
    Chain::compile(steps, &Registry::default()).expect("steps that compile")
}

/// One flow of a route.
pub fn flow_spec(route: RouteSpec, source: ClusterSpec, target: ClusterSpec) -> FlowSpec {
    let (source, target) = (Arc::new(source), Arc::new(target));
    FlowSpec {
        group: Name::new("default").expect("a name"),
        route: Arc::new(RouteSpec {
            sources: vec![source.clone()],
            targets: vec![target.clone()],
            ..route
        }),
        source,
        target,
        share_bytes: u64::MAX,
    }
}
