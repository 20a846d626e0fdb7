//! The process is killed, or told to end, at random moments under load.

use crate::support::checker::{Sight, Sights, Verdict, check};
use crate::support::cluster::{Admin, pair};
use crate::support::process::{Mirror, Setup, cluster, in_shape, route};
use crate::support::reader::Reader;
use crate::support::route::{SHAPES, Shape, shapes};
use crate::support::wait::{self, PATIENCE, count};
use crate::support::workload::{Load, field};
use serde_json::json;
use std::hash::{BuildHasher, RandomState};

const PARTITIONS: i32 = 6;
const RATE: u64 = 3000;

/// A topic at both ends, the file that copies it, and a load on it.
struct Stand {
    topic: String,
    setup: Setup,
    reader: Reader,
    load: Load,
}

impl Stand {
    fn new(topic: String, shape: Shape) -> Self {
        let pair = pair();
        let (source, target) = (pair.source.bootstrap(), pair.target.bootstrap());
        Admin::new(&source).create(&topic, PARTITIONS, &[]);
        Admin::new(&target).create(&topic, PARTITIONS, &[]);
        let copy = in_shape(route("source", "target", &topic), shape);
        let clusters = json!({ "source": cluster(&source), "target": cluster(&target) });
        Self {
            setup: Setup::new(clusters, json!({ "copy": copy })),
            reader: Reader::new(&target, [&topic]),
            load: Load::start(&source, &[field(&topic, PARTITIONS)], RATE),
            topic,
        }
    }

    /// Records at the target that the group has not committed: what the next start may repeat.
    fn uncommitted(&mut self) -> u64 {
        let group = "mirror.default.copy.source.target";
        let committed: i64 = Admin::new(&pair().source.bootstrap())
            .committed(group, &self.topic)
            .values()
            .sum();
        distinct(self.reader.catch_up()).saturating_sub(committed as u64)
    }

    /// The rest is copied, and everything compared.
    fn finish(mut self) -> Verdict {
        let expected = self.load.stop();
        let mut last = self.setup.run(&["--until-caught-up"]);
        assert_eq!(last.wait(PATIENCE).code(), Some(0), "caught up");
        let verdict = check(&expected, self.reader.catch_up(), str::to_owned);
        println!("{}: {verdict}", self.topic);
        verdict
    }
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
    let of = |s: &Vec<Sight>| {
        let sequences = s.iter().filter_map(|s| match s {
            Sight::Stamped { sequence, .. } => Some(*sequence),
            Sight::Strange => None,
        });
        sequences.collect::<std::collections::BTreeSet<_>>().len() as u64
    };
    sights.values().map(of).sum()
}

fn killed(topic: String, shape: Shape) {
    let mut stand = Stand::new(topic, shape);
    let (mut allowed, mut in_flight) = (0, Vec::new());
    for _ in 0..count("MIRROR_TEST_KILLS", 4) {
        let mut mirror = stand.setup.run(&[]);
        in_flight.push(to_a_random_moment(&mut mirror));
        mirror.kill();
        allowed += stand.uncommitted();
    }
    println!(
        "{}: in flight at the kills {in_flight:?}, at the target and uncommitted {allowed}",
        stand.topic
    );
    let verdict = stand.finish();
    verdict.assert_complete();
    assert!(
        verdict.repeated <= allowed,
        "{} repeats, {allowed} were uncommitted",
        verdict.repeated
    );
}

#[test]
fn kill_9_loses_nothing() {
    for shape in shapes(&SHAPES) {
        killed(format!("killed-{shape}"), shape);
    }
}

fn terminated(topic: String, shape: Shape) {
    let mut stand = Stand::new(topic, shape);
    let mut in_flight = Vec::new();
    for _ in 0..count("MIRROR_TEST_KILLS", 4) {
        let mut mirror = stand.setup.run(&[]);
        in_flight.push(to_a_random_moment(&mut mirror));
        assert_eq!(
            mirror.terminate().code(),
            Some(0),
            "everything in flight was confirmed"
        );
    }
    println!(
        "{}: in flight at the signals {in_flight:?}, {} copied",
        stand.topic,
        records(stand.reader.catch_up())
    );
    stand.finish().assert_perfect();
}

#[test]
fn sigterm_repeats_nothing() {
    for shape in shapes(&SHAPES) {
        terminated(format!("terminated-{shape}"), shape);
    }
}
