//! Kafka's own programs at both ends, and `mirror` killed in between.

use crate::support::cluster::{Admin, pair};
use crate::support::process::{Setup, cluster, in_shape, route};
use crate::support::route::{Shape, shapes, workers};
use crate::support::wait::PATIENCE;
use serde_json::{Value, json};
use std::collections::BTreeSet;

fn values(lines: &[String], name: &str) -> BTreeSet<String> {
    let parsed = lines
        .iter()
        .filter_map(|l| serde_json::from_str::<Value>(l).ok());
    parsed
        .filter(|l| l["name"] == name)
        .filter_map(|l| l["value"].as_str().map(str::to_owned))
        .collect()
}

/// What Kafka's own consumer says while it reads so many records of a target topic.
pub fn read(topic: &str, records: &str) -> Vec<String> {
    let target = pair().target.bootstrap();
    let args = [
        "--bootstrap-server",
        &target,
        "--topic",
        topic,
        "--group-id",
        topic,
        "--max-messages",
        records,
        "--verbose",
        "--reset-policy",
        "earliest",
    ];
    let main = "org.apache.kafka.tools.VerifiableConsumer";
    let consumer = pair().target.spawn_tool(main, &args).expect("a consumer");
    let (lines, _) = consumer.wait(PATIENCE).expect("it ends");
    lines
}

fn through_java(topic: &str, shape: Shape) {
    let pair = pair();
    let source = pair.source.bootstrap();
    Admin::new(&source).create(topic, 3, &[]);
    let clusters =
        json!({ "source": cluster(&source), "target": cluster(&pair.target.bootstrap()) });
    let setup = Setup::new(
        clusters,
        json!({ "java": in_shape(route("source", "target", topic), shape) }),
    );
    let args = [
        "--bootstrap-server",
        &source,
        "--topic",
        topic,
        "--throughput",
        "3000",
        "--acks",
        "-1",
    ];
    let producer = pair
        .source
        .spawn_tool("org.apache.kafka.tools.VerifiableProducer", &args)
        .unwrap();
    for moment in [1500, 3000] {
        let mut mirror = setup.run(&[]);
        mirror.wait_delivered("java", moment);
        println!(
            "{topic}: killed with {} in flight",
            mirror.wait_in_flight("java")
        );
        mirror.kill();
    }
    let mut mirror = setup.run(&[]);
    mirror.wait_delivered("java", 1500);
    // It writes for as long as it takes: however slow the machine is, records are in flight at each kill.
    let (lines, _) = producer.stop(PATIENCE).unwrap();
    let acknowledged = values(&lines, "producer_send_success");
    drop(mirror);
    let mut last = setup.run(&["--until-caught-up"]);
    assert_eq!(last.wait(PATIENCE).code(), Some(0));

    let total = Admin::new(&pair.target.bootstrap())
        .end_sum(topic)
        .to_string();
    let lines = read(topic, &total);
    let arrived = values(&lines, "record_data");
    let lost = acknowledged.difference(&arrived).count();
    println!(
        "{topic}: {} acknowledged, {} different values arrived of {total} records, {lost} lost",
        acknowledged.len(),
        arrived.len()
    );
    assert!(
        acknowledged.len() > 4000,
        "it was killed before it wrote much"
    );
    assert_eq!(lost, 0);
}

#[test]
fn every_acknowledged_value_arrives() {
    for shape in shapes(&[workers(2)]) {
        through_java(&format!("java-{shape}"), shape);
    }
}
