//! One flow between two embedded clusters: what arrives is what was there, and a restart repeats
//! nothing.

use crate::embedded::{Cluster, PATIENCE, Rec, wait_until};
use mirror::config::spec::*;
use mirror::flow::{self, Environment, FlowExit, FlowHandle, FlowSpec};
use mirror::handler::Chain;
use mirror::partition::{OnFewer, PolicySpec};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

struct Running {
    handle: FlowHandle,
    exit: Receiver<FlowExit>,
}

impl Running {
    fn exit(&self) -> FlowExit {
        let exit = self.exit.recv_timeout(PATIENCE);
        exit.unwrap_or_else(|_| panic!("no exit: {:?}", self.handle.view))
    }

    fn drain(&self) -> FlowExit {
        self.handle.drain(Instant::now() + PATIENCE);
        self.exit()
    }
}

fn cluster(name: &str, at: &Cluster) -> Arc<ClusterSpec> {
    Arc::new(ClusterSpec {
        name: Name::new(name).unwrap(),
        bootstrap_servers: vec![at.bootstrap.clone()],
        properties: Default::default(),
        tls: None,
        sasl: None,
        access: Access::ReadWrite,
        expect_cluster_id: None,
    })
}

fn spec(source: &Cluster, target: &Cluster, until: Until) -> FlowSpec {
    let (source, target) = (cluster("a", source), cluster("b", target));
    let route = RouteSpec {
        name: Name::new("copy").unwrap(),
        about: None,
        sources: vec![source.clone()],
        targets: vec![target.clone()],
        topics: TopicSelection::new(&["orders.*".into()], &[]).unwrap(),
        chain: Chain::default(),
        policy: PolicySpec::Match {
            on_fewer: OnFewer::Stop,
        },
        start: Start::Earliest,
        on_gap: OnGap::Stop,
        on_error: OnError::Stop,
        dead_letter: None,
        threads: ThreadSpec {
            workers: NonZeroUsize::MIN,
            handlers: None,
            queue_records: 100_000,
            queue_bytes: 32 << 20,
            producers: NonZeroUsize::MIN,
        },
        topic_creation: TopicCreation {
            mode: CreationMode::Enabled,
            replication_factor: None,
            configs: vec![],
        },
        in_flight_bytes: 64 << 20,
        record_bytes: None,
        commit_interval: Duration::from_millis(200),
        discovery_interval: Duration::from_secs(1),
        rebalance_listener: None,
        group_protocol: GroupProtocol::Classic,
        until,
    };
    FlowSpec {
        group: Name::new("default").unwrap(),
        route: Arc::new(route),
        source,
        target,
    }
}

fn start(spec: FlowSpec) -> Running {
    let _ = tracing_subscriber::fmt()
        .with_env_filter(std::env::var("LOG").unwrap_or("off".into()))
        .with_test_writer()
        .try_init();
    let (tell, exit) = std::sync::mpsc::channel();
    let on_exit = Box::new(move |e| {
        let _ = tell.send(e);
    });
    Running {
        handle: flow::spawn(spec, &Environment::default(), on_exit),
        exit,
    }
}

/// Everything that a copy is known to spoil: null and empty, repeated and null headers, order.
fn difficult_records() -> Vec<Rec> {
    let mut tombstone = Rec::new(0, "gone", "").header("why", Some("deleted"));
    tombstone.value = None;
    let mut keyless = Rec::new(1, "", "no key at all");
    keyless.key = None;
    let mut bytes = Rec::new(2, "", "");
    bytes.key = Some(vec![0, 255, 254, 10]);
    bytes.value = Some((0..=255).collect());
    bytes.timestamp = 1;
    vec![
        Rec::new(0, "k", "plain"),
        tombstone,
        Rec::new(0, "", "")
            .header("twice", Some("first"))
            .header("null", None)
            .header("empty", Some(""))
            .header("twice", Some("second")),
        keyless,
        Rec::new(1, "ключ", "значение").header("имя", Some("é")),
        bytes,
    ]
}

#[test]
fn copies_every_byte() {
    let (a, b) = (Cluster::start(), Cluster::start());
    a.create_topic("orders", 3, &[]);
    a.produce("orders", &difficult_records());
    let running = start(spec(&a, &b, Until::End));
    assert_eq!(running.exit(), FlowExit::CaughtUp);
    assert_eq!(b.partitions("orders"), 3);
    assert_eq!(b.read("orders"), difficult_records());
    for partition in 0..3 {
        let end = a.watermarks("orders", partition).1;
        let (offset, metadata) = a
            .committed("mirror.default.copy.a.b", "orders", partition)
            .expect("a commit");
        assert_eq!(offset, end, "partition {partition}");
        assert!(!metadata.is_empty());
    }
}

#[test]
fn resumes_where_it_stopped() {
    let (a, b) = (Cluster::start(), Cluster::start());
    a.create_topic("orders", 2, &[]);
    let records = |from: usize, to: usize| -> Vec<Rec> {
        let numbers = from..to;
        numbers
            .map(|n| Rec::new((n % 2) as i32, &n.to_string(), "x"))
            .collect()
    };
    a.produce("orders", &records(0, 5_000));
    let first = start(spec(&a, &b, Until::Stopped));
    wait_until("the first records are there", || b.count("orders") > 0);
    assert_eq!(first.drain(), FlowExit::Drained);
    a.produce("orders", &records(5_000, 10_000));
    let second = start(spec(&a, &b, Until::End));
    assert_eq!(second.exit(), FlowExit::CaughtUp);
    let mut expected = records(0, 10_000);
    expected.sort_by_key(|r| r.partition);
    assert!(b.read("orders") == expected, "every record once, in order");
}
