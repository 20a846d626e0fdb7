use kafka_harness::{Cluster, start_all};
use mirror::config::spec::*;
use mirror::flow::{self, Environment, FlowExit, FlowSpec};
use mirror::handler::Chain;
use mirror::partition::{OnFewer, PolicySpec};
use rdkafka::ClientConfig;
use rdkafka::admin::*;
use rdkafka::producer::*;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

fn cluster(name: &str, at: &str) -> Arc<ClusterSpec> {
    Arc::new(ClusterSpec {
        name: Name::new(name).unwrap(),
        bootstrap_servers: vec![at.into()],
        properties: Default::default(),
        tls: None,
        sasl: None,
        access: Access::ReadWrite,
        expect_cluster_id: None,
    })
}

fn route(
    source: &Arc<ClusterSpec>,
    target: &Arc<ClusterSpec>,
    workers: usize,
    handlers: Option<usize>,
) -> RouteSpec {
    RouteSpec {
        name: Name::new("r").unwrap(),
        about: None,
        sources: vec![source.clone()],
        targets: vec![target.clone()],
        topics: TopicSelection::new(&["t.*".into()], &[]).unwrap(),
        chain: Chain::default(),
        policy: PolicySpec::Match {
            on_fewer: OnFewer::Stop,
        },
        start: Start::Earliest,
        on_gap: OnGap::Stop,
        on_error: OnError::Stop,
        dead_letter: None,
        threads: ThreadSpec {
            workers: NonZeroUsize::new(workers).unwrap(),
            handlers: handlers.and_then(NonZeroUsize::new),
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
        commit_interval: Duration::from_secs(1),
        discovery_interval: Duration::from_secs(2),
        rebalance_listener: Some(ListenerSpec::Log),
        group_protocol: GroupProtocol::Classic,
        until: Until::End,
        was: None,
        accept: Vec::new(),
    }
}

#[test]
fn copies() {
    let _ = tracing_subscriber::fmt()
        .with_env_filter(std::env::var("LOG").unwrap_or("info".into()))
        .with_test_writer()
        .try_init();
    let [a, b] = start_all([Cluster::builder("source"), Cluster::builder("target")]).unwrap();
    let admin: AdminClient<_> = ClientConfig::new()
        .set("bootstrap.servers", a.bootstrap())
        .create()
        .unwrap();
    let rt = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    rt.block_on(admin.create_topics(
        &[
            NewTopic::new("t1", 6, TopicReplication::Fixed(1)),
            NewTopic::new("t2", 3, TopicReplication::Fixed(1)),
        ],
        &AdminOptions::new(),
    ))
    .unwrap();
    let p: BaseProducer = ClientConfig::new()
        .set("bootstrap.servers", a.bootstrap())
        .set("linger.ms", "20")
        .set("queue.buffering.max.messages", "1000000")
        .create()
        .unwrap();
    let n: u32 = std::env::var("N")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(100_000);
    for i in 0..n {
        let k = i.to_string();
        let v = vec![b'x'; 200];
        while p
            .send(
                BaseRecord::to(if i % 3 == 0 { "t2" } else { "t1" })
                    .key(&k)
                    .payload(&v),
            )
            .is_err()
        {
            p.poll(Duration::from_millis(10));
        }
        if i % 1000 == 0 {
            p.poll(Duration::ZERO);
        }
    }
    p.flush(Duration::from_secs(30)).unwrap();
    for (w, h) in [(1, None), (2, None), (1, Some(3))] {
        let (s, t) = (cluster("a", &a.bootstrap()), cluster("b", &b.bootstrap()));
        let mut r = route(&s, &t, w, h);
        r.name = Name::new(&format!("r{w}{}", h.unwrap_or(0))).unwrap();
        let spec = FlowSpec {
            group: Name::new("default").unwrap(),
            route: Arc::new(r),
            source: s,
            target: t,
        };
        let (tx, rx) = std::sync::mpsc::channel();
        let t0 = Instant::now();
        let h = flow::spawn(
            spec,
            &Environment::default(),
            Box::new(move |e| {
                tx.send(e).unwrap();
            }),
        );
        let exit = rx.recv_timeout(Duration::from_secs(60));
        println!("{:?} after {:?}: {:?}", exit, t0.elapsed(), h.view);
        assert_eq!(exit.unwrap(), FlowExit::CaughtUp);
    }
    println!(
        "{}",
        b.admin("org.apache.kafka.tools.GetOffsetShell", &["--topic", "t1"])
            .unwrap()
    );
}
