//! The harness against real brokers.

mod support;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use kafka_harness::{Cluster, HarnessError, Link, Way, start_all};
use support::{exists, list_topics, tls_handshake};

const SOON: Duration = Duration::from_secs(60);

#[test]
fn a_pair_is_ready_within_twenty_seconds() {
    // The first start ever prepares Kafka; that is not what is measured here.
    drop(Cluster::builder("warm").start().unwrap());
    let began = Instant::now();
    let [source, target] =
        start_all([Cluster::builder("source"), Cluster::builder("target")]).unwrap();
    let took = began.elapsed();
    println!("a pair was ready after {took:.2?}");
    assert!(took < Duration::from_secs(20), "{took:?}");
    assert_ne!(source.bootstrap(), target.bootstrap());
    assert_ne!(source.id(), target.id());
}

#[test]
fn a_killed_broker_comes_back_with_its_address_and_its_topics() {
    let cluster = Cluster::builder("single").start().unwrap();
    let (broker, address) = (cluster.broker(1), cluster.bootstrap());
    cluster
        .admin(
            "org.apache.kafka.tools.TopicCommand",
            &["--create", "--topic", "orders"],
        )
        .unwrap();

    let first = broker.pid().unwrap();
    broker.kill().unwrap();
    assert!(!broker.is_running() && !exists(first));
    assert!(matches!(
        cluster.wait_ready(Duration::ZERO),
        Err(HarnessError::NotReady { .. })
    ));

    let began = Instant::now();
    broker.restart().unwrap();
    cluster.wait_ready(SOON).unwrap();
    println!("a killed broker was back after {:.2?}", began.elapsed());
    assert_eq!(cluster.bootstrap(), address);
    let topics = cluster
        .admin("org.apache.kafka.tools.TopicCommand", &["--list"])
        .unwrap();
    assert_eq!(topics.trim(), "orders");
}

#[test]
fn three_brokers_do_with_two_and_notice_who_is_missing() {
    let began = Instant::now();
    let cluster = Cluster::builder("trio").brokers(3).start().unwrap();
    println!("three brokers were ready after {:.2?}", began.elapsed());
    cluster.wait_members(&[1, 2, 3], SOON).unwrap();

    cluster.broker(2).kill().unwrap();
    cluster.wait_members(&[1, 3], SOON).unwrap();
    cluster.broker(2).restart().unwrap();
    cluster.wait_members(&[1, 2, 3], SOON).unwrap();

    cluster.broker(3).freeze().unwrap();
    cluster.wait_members(&[1, 2], SOON).unwrap();
    cluster.broker(3).thaw().unwrap();
    cluster.wait_members(&[1, 2, 3], SOON).unwrap();

    cluster.broker(1).stop().unwrap();
    cluster.wait_members(&[2, 3], SOON).unwrap();
}

#[test]
fn a_full_disk_ends_a_broker_and_room_brings_it_back() {
    let cluster = Cluster::builder("full").brokers(3).start().unwrap();
    cluster.broker(2).fill_disk().unwrap();
    // Its metadata log grows all the time.
    let ended = cluster.broker(2).wait_ended(SOON).unwrap();
    assert!(ended.is_some_and(|status| !status.success()), "{ended:?}");
    cluster.wait_members(&[1, 3], SOON).unwrap();
    cluster.broker(2).restart().unwrap();
    cluster.wait_members(&[1, 2, 3], SOON).unwrap();
}

#[test]
fn clients_of_a_proxied_listener_stay_behind_the_proxy() {
    let cluster = Cluster::builder("proxied").proxied().start().unwrap();
    let topics = || {
        let access = ["--bootstrap-server", &cluster.bootstrap_proxied()];
        let create = ["--create", "--if-not-exists", "--topic", "orders"];
        let tool = "org.apache.kafka.tools.TopicCommand";
        cluster.tool(tool, &[&access[..], &create].concat())
    };
    topics().unwrap();
    // Bootstrap, and the connection to the address that the broker advertises.
    let toll = cluster.broker(1).proxy().toll();
    assert!(toll.connections >= 2 && toll.passed > 0, "{toll:?}");
    cluster.broker(1).proxy().set(Link::both(Way {
        delay: Duration::from_millis(200),
        ..Way::default()
    }));
    topics().unwrap();
    assert!(cluster.broker(1).proxy().toll().delayed > 0);
}

#[test]
fn a_broker_that_ends_by_itself_is_reported_with_its_log() {
    let error = Cluster::builder("broken")
        .property("num.io.threads", "none")
        .start()
        .unwrap_err();
    let HarnessError::BrokerEnded { log_tail, .. } = &error else {
        panic!("{error}")
    };
    assert!(log_tail.contains("num.io.threads"), "{log_tail}");
}

#[test]
fn every_listener_lets_the_right_ones_in() {
    let cluster = Cluster::builder("secure")
        .tls()
        .sasl_plain("alice", "plain \"secret\"")
        .scram("bob", "scram-secret")
        .start()
        .unwrap();
    tls_handshake(&cluster, &cluster.bootstrap_tls());
    tls_handshake(&cluster, &cluster.bootstrap_sasl_tls());

    let alice = ("PLAIN", "alice", "plain \"secret\"");
    let bob = ("SCRAM-SHA-512", "bob", "scram-secret");
    list_topics(
        &cluster,
        &cluster.bootstrap_sasl_plain(),
        "SASL_PLAINTEXT",
        alice,
    )
    .unwrap();
    list_topics(&cluster, &cluster.bootstrap_scram(), "SASL_PLAINTEXT", bob).unwrap();
    list_topics(&cluster, &cluster.bootstrap_sasl_tls(), "SASL_SSL", bob).unwrap();
    let stranger = ("PLAIN", "alice", "guessed");
    let refused = list_topics(
        &cluster,
        &cluster.bootstrap_sasl_plain(),
        "SASL_PLAINTEXT",
        stranger,
    )
    .unwrap_err();
    assert!(
        refused.to_string().contains("Authentication failed"),
        "{refused}"
    );
}

#[test]
fn a_user_with_few_rights_sees_what_was_granted() {
    let cluster = Cluster::builder("strict")
        .sasl_plain("mirror", "secret")
        .acls_deny_anonymous()
        .start()
        .unwrap();
    cluster
        .admin(
            "org.apache.kafka.tools.TopicCommand",
            &["--create", "--topic", "orders"],
        )
        .unwrap();
    let topics = || {
        let user = ("PLAIN", "mirror", "secret");
        list_topics(
            &cluster,
            &cluster.bootstrap_sasl_plain(),
            "SASL_PLAINTEXT",
            user,
        )
        .unwrap()
    };
    let anonymous = ["--list", "--bootstrap-server", &cluster.bootstrap()];
    assert_eq!(
        cluster
            .tool("org.apache.kafka.tools.TopicCommand", &anonymous)
            .unwrap()
            .trim(),
        ""
    );
    assert_eq!(topics().trim(), "");

    let grant = [
        "--allow-principal",
        "User:mirror",
        "--operation",
        "Describe",
        "--topic",
        "orders",
    ];
    cluster.acl_add(&grant).unwrap();
    assert_eq!(topics().trim(), "orders");
    cluster.acl_remove(&grant).unwrap();
    assert_eq!(topics().trim(), "");
}

#[test]
fn verifiable_tools_run_beside_a_test() {
    let cluster = Cluster::builder("verifiable").start().unwrap();
    cluster
        .admin(
            "org.apache.kafka.tools.TopicCommand",
            &["--create", "--topic", "numbers"],
        )
        .unwrap();
    let bootstrap = cluster.bootstrap();
    let access = ["--bootstrap-server", &bootstrap, "--topic", "numbers"];
    let produce = [&access[..], &["--max-messages", "100"]].concat();
    let producer = cluster
        .spawn_tool("org.apache.kafka.tools.VerifiableProducer", &produce)
        .unwrap();
    let (lines, status) = producer.wait(SOON).unwrap();
    assert!(status.success());
    assert_eq!(
        lines
            .iter()
            .filter(|line| line.contains("producer_send_success"))
            .count(),
        100
    );

    let consume = [
        &access[..],
        &["--group-id", "readers", "--max-messages", "100"],
    ]
    .concat();
    let mut consumer = cluster
        .spawn_tool("org.apache.kafka.tools.VerifiableConsumer", &consume)
        .unwrap();
    assert!(
        consumer
            .find_line(SOON, |line| line.contains("offsets_committed"))
            .is_some()
    );
}

#[test]
fn a_panic_leaves_no_process_and_no_folder() {
    let mut left = None;
    let panic = catch_unwind(AssertUnwindSafe(|| {
        let cluster = Cluster::builder("panic").start().unwrap();
        left = Some((
            cluster.broker(1).pid().unwrap(),
            cluster.folder().to_owned(),
        ));
        panic!("as a test does whose assertion fails");
    }));
    assert!(panic.is_err());
    let (pid, folder) = left.unwrap();
    assert!(!exists(pid) && !folder.exists());
}
