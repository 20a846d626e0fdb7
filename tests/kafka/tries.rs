//! `mirror try` reads the records that it is asked for, and leaves no trace on the clusters.

use crate::support::cluster::{Admin, pair};
use crate::support::process::{Setup, cluster, route};
use crate::support::workload::{Writer, field};
use serde_json::{Value, json};
use std::collections::BTreeSet;

fn setup(bootstrap: (&str, &str), topics: &str) -> Setup {
    let mut copy = route("source", "target", topics);
    copy["partitions"] = json!("key_hash");
    copy["handlers"] = json!([
        { "filter": { "drop": "tombstone" } },
        { "rename": { "topic": "tried.{topic}" } },
        { "reformat": { "set": { "value.seen": true } }, "name": "mark" },
    ]);
    let clusters = json!({
        "source": cluster(bootstrap.0),
        "target": cluster(bootstrap.1),
    });
    Setup::new(clusters, json!({ "copy": copy }))
}

/// What `mirror try` says, and its exit code.
fn tried(setup: &Setup, args: &[&str]) -> (Value, Option<i32>) {
    let output = setup.ask(&[&["try", "copy", "--format", "json"], args].concat());
    let text = String::from_utf8_lossy(&output.stdout);
    let said = String::from_utf8_lossy(&output.stderr);
    println!("{said}");
    (
        serde_json::from_str(&text).unwrap_or(Value::Null),
        output.status.code(),
    )
}

/// Where the records stand that were shown.
fn places(said: &Value) -> Vec<(String, i64, i64)> {
    let records = said["records"].as_array().expect("records").iter();
    let place = |r: &Value| {
        let topic = r["record"]["topic"].as_str().expect("a topic").to_owned();
        let number = |name: &str| r[name].as_i64().expect("a number");
        (topic, number("partition"), number("offset"))
    };
    records.map(place).collect()
}

#[test]
fn the_newest_records_are_shown_and_the_clusters_stay_as_they_were() {
    let pair = pair();
    let ends = [pair.source.bootstrap(), pair.target.bootstrap()];
    let admins = ends.each_ref().map(|end| Admin::new(end));
    let fields = [field("try-a", 2), field("try-b", 1)];
    for (field, partitions) in fields.iter().zip([2, 1]) {
        admins[0].create(&field.topic, partitions, &[]);
    }
    let mut writer = Writer::new(&ends[0]);
    for (field, partition, count) in [(0, 0, 10), (0, 1, 3), (1, 0, 4)] {
        for number in 0..count {
            writer.write(&fields[field], partition, |record| {
                record.key = Some(b"k".to_vec());
                record.value = (number > 0).then(|| format!("{{\"n\":{number}}}").into_bytes());
            });
        }
    }
    writer.finish();
    let state = || admins.each_ref().map(|a| (a.groups(), a.topics()));
    let before = state();
    let setup = setup((&ends[0], &ends[1]), "try-.");
    let (said, exit) = tried(&setup, &["-n", "4"]);
    assert_eq!(exit, Some(0), "{said}");
    // Every partition has its turn, a second one the first.
    let newest = [
        ("try-a", 0, 8),
        ("try-a", 0, 9),
        ("try-a", 1, 2),
        ("try-b", 0, 3),
    ];
    let newest = newest.map(|(topic, partition, offset)| (topic.to_owned(), partition, offset));
    let shown: BTreeSet<_> = places(&said).into_iter().collect();
    assert_eq!(shown, BTreeSet::from(newest));
    let step = &said["records"][0]["steps"][2];
    assert_eq!(
        (&step["name"], &step["action"]),
        (&json!("mark"), &json!("reformat"))
    );
    let record = &said["records"][0];
    let output = &record["outputs"][0];
    let marked = record["record"]["value"].as_str().expect("a value");
    let marked = marked.replace('}', ",\"seen\":true}");
    assert_eq!(output["value"], json!(marked), "{said}");
    assert!(
        output["topic"]
            .as_str()
            .is_some_and(|t| t.starts_with("tried.try-"))
    );

    let (said, exit) = tried(&setup, &["--at", "try-a:1:0", "-n", "2"]);
    assert_eq!(
        (places(&said), exit),
        (
            vec![("try-a".into(), 1, 0), ("try-a".into(), 1, 1)],
            Some(0)
        )
    );
    assert_eq!(said["records"][0]["outputs"], json!([]), "a tombstone");
    for place in ["try-a:1:3", "try-a:7:0", "nowhere:0:0"] {
        assert_eq!(tried(&setup, &["--at", place]).1, Some(1), "{place}");
    }
    assert_eq!(state(), before, "groups and topics");
    assert_eq!(
        admins[0].committed("mirror.default.copy.source.target", "try-a"),
        [].into()
    );
}

#[test]
fn a_cluster_that_does_not_answer_is_exit_5() {
    let setup = setup(("127.0.0.1:1", "127.0.0.1:1"), "try-.");
    assert_eq!(tried(&setup, &["--timeout", "3"]).1, Some(5));
}
