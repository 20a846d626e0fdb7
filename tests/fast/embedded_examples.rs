//! Every file of `examples/` loads as it is, and copies what it says.

use crate::embedded::{Cluster, Rec, wait_until};
use crate::embedded_running::{File, Supervised, copy};
use mirror::supervisor::Outcome;
use std::collections::BTreeMap;
use std::path::Path;

/// An example with every bootstrap list replaced by embedded clusters, and what one broker cannot
/// have taken out: replicas, and security that embedded clusters do not speak.
struct Example {
    clusters: BTreeMap<String, Cluster>,
    file: File,
}

impl Example {
    fn open(name: &str) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("examples")
            .join(name);
        let text = std::fs::read_to_string(path).expect("the example");
        let mut document: serde_json::Value = serde_yaml::from_str(&text).expect("YAML");
        let mut clusters = BTreeMap::new();
        let written = document["clusters"].as_object_mut().expect("clusters");
        for (name, cluster) in written {
            let embedded = Cluster::start();
            cluster["bootstrap_servers"] = serde_json::json!([embedded.bootstrap]);
            let settings = cluster.as_object_mut().expect("a map");
            settings.remove("tls");
            settings.remove("sasl");
            clusters.insert(name.clone(), embedded);
        }
        document["admin"] = serde_json::json!({ "listen": "off" });
        document["defaults"]["commit_interval"] = "200ms".into();
        one_replica(&mut document);
        Self {
            clusters,
            file: File::new(&document.to_string()),
        }
    }

    fn fill(&self, cluster: &str, topic: &str, records: &[Rec]) {
        self.clusters[cluster].create_topic(topic, 2, &[]);
        self.clusters[cluster].produce(topic, records);
    }

    /// Runs it until every one of these topics holds so many records, and not one more.
    fn copies(&self, expected: &[(&str, &str, i64)]) {
        let supervised = Supervised::start(&self.file);
        for (cluster, topic, count) in expected {
            let there = || self.clusters[*cluster].count(topic) >= *count;
            wait_until(&format!("{cluster} has {count} records in {topic}"), there);
        }
        // Embedded clusters refuse the commits of those who stay while another member leaves; Kafka takes them.
        wait_until("everything is committed", || self.is_committed(&supervised));
        assert_eq!(supervised.stop(), Outcome::Drained);
        for (cluster, topic, count) in expected {
            let found = self.clusters[*cluster].count(topic);
            assert_eq!(found, *count, "{cluster} {topic}");
        }
    }
}

impl Example {
    fn is_committed(&self, supervised: &Supervised) -> bool {
        let snapshot = supervised.board.snapshot();
        let mut flows = snapshot.routes.values().flat_map(|route| &route.flows);
        flows.all(|flow| {
            let source = &self.clusters[flow.id.source.as_str()];
            let partitions = flow.view.partitions();
            let mut positions = partitions.iter();
            positions
                .all(|(tp, p)| p.committed == Some(source.watermarks(&tp.topic, tp.partition).1))
        })
    }
}

fn one_replica(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::Object(map) => {
            if map.contains_key("replication_factor") {
                map.insert("replication_factor".into(), 1.into());
            }
            map.values_mut().for_each(one_replica);
        }
        serde_json::Value::Array(list) => list.iter_mut().for_each(one_replica),
        _ => {}
    }
}

fn plain(count: usize) -> Vec<Rec> {
    let numbers = 0..count;
    numbers
        .map(|n| Rec::new((n % 2) as i32, &n.to_string(), r#"{"a":1}"#))
        .collect()
}

#[test]
fn fan_in() {
    let example = Example::open("fan-in.yaml");
    let mut tombstone = Rec::new(0, "gone", "");
    tombstone.value = None;
    let mut records = plain(10);
    records.push(tombstone);
    example.fill("lisbon", "orders", &records);
    example.fill("lisbon", "orders.test", &plain(5));
    example.fill("virginia", "payments.card", &plain(7));
    example.copies(&[
        ("hub", "lisbon.orders", 10),
        ("hub", "virginia.payments.card", 7),
        ("hub", "lisbon.orders.test", 0),
    ]);
    let copied = example.clusters["hub"].read("lisbon.orders");
    let marked = |r: &Rec| r.headers == [("x-dc".to_owned(), Some(b"lisbon".to_vec()))];
    assert!(copied.iter().all(marked), "{copied:?}");
}

#[test]
fn fan_out() {
    let example = Example::open("fan-out.yaml");
    example.fill("hub", "catalogue", &plain(10));
    example.fill("hub", "rates.usd", &plain(4));
    let targets = ["lisbon", "virginia", "tokyo"];
    let expected: Vec<(&str, &str, i64)> = targets
        .iter()
        .flat_map(|t| [(*t, "catalogue", 10), (*t, "rates-usd", 4)])
        .collect();
    example.copies(&expected);
}

#[test]
fn disaster_recovery() {
    let example = Example::open("disaster-recovery.yaml");
    example.fill("primary", "orders", &plain(20));
    example.fill("primary", "tmp-x", &plain(3));
    example.copies(&[("standby", "orders", 20), ("standby", "tmp-x", 0)]);
    let [primary, standby] = ["primary", "standby"].map(|c| example.clusters[c].read("orders"));
    assert_eq!(primary, standby);
}

#[test]
fn filtered_feed() {
    let example = Example::open("filtered-feed.yaml");
    let order = |id: u32, status: &str, items: &str| {
        let value = format!(
            r#"{{"order_id":{id},"status":"{status}","country":"PT","customer":{{"phone":"1"}},"items":{items}}}"#
        );
        Rec::new(0, &id.to_string(), &value).header("traceparent", Some("t"))
    };
    let records = [
        order(1, "paid", r#"[{"sku":"a"},{"sku":"b"}]"#),
        order(2, "open", r#"[{"sku":"c"}]"#),
        order(3, "paid", r#""no list""#),
    ];
    example.fill("shop", "team.orders.v2", &records);
    example.copies(&[("lake", "orders-team-2", 2), ("lake", "mirror.rejected", 1)]);
    let copied = example.clusters["lake"].read("orders-team-2");
    assert!(
        copied.iter().all(|r| !r.text().contains("phone")),
        "{copied:?}"
    );
    assert!(
        copied[0]
            .headers
            .iter()
            .any(|(n, _)| n == "upstream-traceparent")
    );
}

#[test]
fn the_first_configuration_of_the_readme() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let text = std::fs::read_to_string(path).expect("the README");
    let (_, rest) = text.split_once("```yaml\n").expect("a configuration");
    let (configuration, _) = rest.split_once("```").expect("its end");
    let file = File::new(configuration);
    assert_eq!(file.load().spec.routes.len(), 1);
}

#[allow(dead_code, reason = "its main is for those who run it")]
#[path = "../../examples/custom_handler.rs"]
pub mod custom_handler;

#[test]
fn a_program_with_a_handler_of_its_own() {
    let (a, b) = (Cluster::start(), Cluster::start());
    a.create_topic("orders", 1, &[]);
    let mut binary = Rec::new(0, "binary", "");
    binary.value = Some(vec![0xff]);
    let mut tombstone = Rec::new(0, "gone", "");
    tombstone.value = None;
    let paid = Rec::new(0, "1", "paid from PT50000201231234567890154 today");
    a.produce("orders", &[paid, binary, tombstone.clone()]);
    let text = copy(
        &a,
        &b,
        "    handlers: [{ use: iban }]\n    on_error: skip\n",
    );
    let environment = custom_handler::environment().expect("a regex");
    File::embedding(&text, environment).copy_all();
    let masked = Rec::new(0, "1", "paid from PT**54 today");
    assert_eq!(b.read("orders"), [masked, tombstone]);
}
