//! The process is killed, or told to end, at random moments under load.

use crate::support::checker::{Sights, Verdict, check};
use crate::support::cluster::{Admin, pair};
use crate::support::process::{Mirror, Setup, cluster, route};
use crate::support::reader::Reader;
use crate::support::wait::{self, PATIENCE, count};
use crate::support::workload::{Load, field};
use serde_json::{Value, json};
use std::hash::{BuildHasher, RandomState};

const PARTITIONS: i32 = 6;
const RATE: u64 = 3000;

fn setup(topic: &str, shape: Value) -> Setup {
    let pair = pair();
    let mut copy = route("source", "target", topic);
    for (key, value) in shape.as_object().into_iter().flatten() {
        copy[key] = value.clone();
    }
    let clusters = json!({
        "source": cluster(&pair.source.bootstrap()),
        "target": cluster(&pair.target.bootstrap()),
    });
    Setup::new(clusters, json!({ "copy": copy }))
}

/// Anything below `below`: never the same moment twice.
fn any(below: u64) -> u64 {
    RandomState::new().hash_one(0) % below
}

/// Lets it run to a random moment with records in flight: before its first commit, or some commits later.
fn to_a_random_moment(mirror: &mut Mirror) -> u64 {
    let (commits, records) = (any(4), 200 + any(2000));
    wait::until("a random moment", PATIENCE, || {
        mirror.assert_running();
        mirror.number("copy", "commits") >= commits
            && mirror.number("copy", "delivered_records") >= records
    });
    mirror.wait_in_flight("copy")
}

fn records(sights: &Sights) -> u64 {
    sights.values().map(|s| s.len() as u64).sum()
}

/// Different records at the target.
fn distinct(sights: &Sights) -> u64 {
    use crate::support::checker::Sight;
    let of = |s: &Vec<Sight>| {
        let sequences = s.iter().filter_map(|s| match s {
            Sight::Stamped { sequence, .. } => Some(*sequence),
            Sight::Strange => None,
        });
        sequences.collect::<std::collections::BTreeSet<_>>().len() as u64
    };
    sights.values().map(of).sum()
}

/// Records at the target that the group has not committed: what the next start may repeat.
fn uncommitted(topic: &str, reader: &mut Reader) -> u64 {
    let group = "mirror.default.copy.source.target";
    let committed: i64 = Admin::new(&pair().source.bootstrap())
        .committed(group, topic)
        .values()
        .sum();
    distinct(reader.catch_up()).saturating_sub(committed as u64)
}

/// The rest is copied, and everything compared.
fn finish(topic: &str, setup: &Setup, load: Load, mut reader: Reader) -> Verdict {
    let expected = load.stop();
    let mut last = setup.run(&["--until-caught-up"]);
    assert_eq!(last.wait(PATIENCE).code(), Some(0), "caught up");
    let verdict = check(&expected, reader.catch_up(), str::to_owned);
    println!("{topic}: {verdict}");
    verdict
}

fn killed(topic: &str, shape: Value) {
    let pair = pair();
    let source = pair.source.bootstrap();
    Admin::new(&source).create(topic, PARTITIONS, &[]);
    Admin::new(&pair.target.bootstrap()).create(topic, PARTITIONS, &[]);
    let setup = setup(topic, shape);
    let mut reader = Reader::new(&pair.target.bootstrap(), [topic]);
    let load = Load::start(&source, &[field(topic, PARTITIONS)], RATE);
    let (mut allowed, mut in_flight) = (0, Vec::new());
    for _ in 0..count("MIRROR_TEST_KILLS", 4) {
        let mut mirror = setup.run(&[]);
        in_flight.push(to_a_random_moment(&mut mirror));
        mirror.kill();
        allowed += uncommitted(topic, &mut reader);
    }
    println!(
        "{topic}: in flight at the kills {in_flight:?}, at the target and uncommitted {allowed}"
    );
    let verdict = finish(topic, &setup, load, reader);
    verdict.assert_complete();
    assert!(
        verdict.repeated <= allowed,
        "{} repeats, {allowed} were uncommitted",
        verdict.repeated
    );
}

#[test]
fn kill_9_loses_nothing() {
    killed("killed-w1", json!({}));
}

#[test]
fn kill_9_loses_nothing_with_two_workers() {
    killed("killed-w2", json!({ "workers": 2 }));
}

#[test]
fn kill_9_loses_nothing_with_four_workers() {
    killed("killed-w4", json!({ "workers": 4 }));
}

#[test]
fn kill_9_loses_nothing_with_handler_threads() {
    killed("killed-h3", json!({ "handler_threads": 3 }));
}

fn terminated(topic: &str, shape: Value) {
    let pair = pair();
    let source = pair.source.bootstrap();
    Admin::new(&source).create(topic, PARTITIONS, &[]);
    Admin::new(&pair.target.bootstrap()).create(topic, PARTITIONS, &[]);
    let setup = setup(topic, shape);
    let mut reader = Reader::new(&pair.target.bootstrap(), [topic]);
    let load = Load::start(&source, &[field(topic, PARTITIONS)], RATE);
    let mut in_flight = Vec::new();
    for _ in 0..count("MIRROR_TEST_KILLS", 5) {
        let mut mirror = setup.run(&[]);
        in_flight.push(to_a_random_moment(&mut mirror));
        assert_eq!(
            mirror.terminate().code(),
            Some(0),
            "everything in flight was confirmed"
        );
    }
    println!(
        "{topic}: in flight at the signals {in_flight:?}, {} copied",
        records(reader.catch_up())
    );
    finish(topic, &setup, load, reader).assert_perfect();
}

#[test]
fn sigterm_repeats_nothing() {
    terminated("terminated-w2", json!({ "workers": 2 }));
}

#[test]
fn sigterm_repeats_nothing_with_one_worker() {
    terminated("terminated-w1", json!({ "workers": 1 }));
}

#[test]
fn sigterm_repeats_nothing_with_four_workers() {
    terminated("terminated-w4", json!({ "workers": 4 }));
}

#[test]
fn sigterm_repeats_nothing_with_handler_threads() {
    terminated("terminated-h3", json!({ "handler_threads": 3 }));
}
