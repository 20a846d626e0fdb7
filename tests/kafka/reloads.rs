//! Reloads under load: the routes that did not change never notice.

use crate::support::checker::{Sight, Sights, check};
use crate::support::cluster::{Admin, pair};
use crate::support::process::{Mirror, Setup, cluster, in_shape, route};
use crate::support::reader::{Reader, compare};
use crate::support::record::Record;
use crate::support::route::{Shape, shapes, workers};
use crate::support::stamp::Stamp;
use crate::support::wait::{self, PATIENCE};
use crate::support::workload::{Field, Load, field};
use serde_json::{Value, json};

const STEADY: [&str; 3] = ["steady-a", "steady-b", "steady-c"];
const RELOADS: usize = 20;
const RATE: u64 = 3000;

fn clusters() -> Value {
    let pair = pair();
    json!({ "source": cluster(&pair.source.bootstrap()), "target": cluster(&pair.target.bootstrap()) })
}

/// A file whose steady routes run in one shape, with topics of its own.
struct File(Shape);

impl File {
    fn topic(&self, of: &str) -> String {
        format!("reload-{}-{of}", self.0)
    }

    /// The steady routes, and those that change with each reload: one comes, one changes, one goes.
    fn routes(&self, round: usize) -> Value {
        let mut routes = json!({});
        for name in STEADY {
            routes[name] = in_shape(route("source", "target", &self.topic(name)), self.0);
        }
        for name in [round, round + 1] {
            let mut passing = route("source", "target", &self.topic("passing"));
            // A name is there for two rounds, and changed in its second.
            passing["workers"] = json!(if name == round { 2 } else { 1 });
            passing["handlers"] = json!([{ "rename": { "topic": "{route}.{topic}" } }]);
            // One that goes and one that comes are the same but for the name.
            passing["accept"] = json!(["restart_from_start"]);
            routes[format!("passing-{name}")] = passing;
        }
        routes
    }
}

fn generation(mirror: &Mirror) -> u64 {
    mirror
        .status()
        .and_then(|s| s["generation"].as_u64())
        .unwrap_or(0)
}

/// Rebalances and restarts of the steady routes.
fn unrest(mirror: &Mirror) -> [(u64, u64); 3] {
    STEADY.map(|r| (mirror.number(r, "rebalances"), mirror.number(r, "restarts")))
}

/// Waits until the workers of the steady routes have shared their partitions, and some copying after that: what a group
/// does at its beginning is no rebalance that a reload caused.
fn wait_shared(admin: &Admin, mirror: &mut Mirror, shape: Shape) {
    for route in STEADY {
        let group = format!("mirror.default.{route}.source.target");
        wait::until("the workers share", PATIENCE, || {
            mirror.assert_running();
            admin.shares(&group) == vec![4 / shape.workers; shape.workers]
                && mirror.number(route, "partitions") == 4
        });
        let delivered = mirror.number(route, "delivered_records");
        mirror.wait_delivered(route, delivered + 1000);
    }
}

/// Replaces the file, and waits until it is applied and the steady routes have gone on after it.
fn reload(setup: &Setup, mirror: &mut Mirror, file: &File, round: usize) {
    let delivered = STEADY.map(|r| mirror.number(r, "delivered_records"));
    let was = generation(mirror);
    setup.write(clusters(), file.routes(round));
    let answer = setup.ask(&["reload"]);
    assert!(
        answer.status.success(),
        "{}{}",
        String::from_utf8_lossy(&answer.stdout),
        String::from_utf8_lossy(&answer.stderr)
    );
    wait::until("the reload is applied", PATIENCE, || {
        generation(mirror) > was
    });
    for (route, before) in STEADY.iter().zip(delivered) {
        mirror.wait_delivered(route, before + 1);
    }
}

fn reloads(shape: Shape) {
    let (pair, file) = (pair(), File(shape));
    let source = pair.source.bootstrap();
    let admin = Admin::new(&source);
    let steady: Vec<Field> = STEADY.iter().map(|t| field(&file.topic(t), 4)).collect();
    let passing = field(&file.topic("passing"), 2);
    steady.iter().for_each(|f| admin.create(&f.topic, 4, &[]));
    admin.create(&passing.topic, 2, &[]);
    let load = Load::start(&source, &[&steady[..], &[passing]].concat(), RATE);

    let setup = Setup::new(clusters(), file.routes(0));
    let mut mirror = setup.run(&[]);
    wait_shared(&admin, &mut mirror, shape);
    let before = unrest(&mirror);
    for round in 1..=RELOADS {
        reload(&setup, &mut mirror, &file, round);
    }
    let after = unrest(&mirror);
    println!(
        "reloads-{shape}: rebalances and restarts of the steady routes before {before:?}, after {RELOADS} reloads {after:?}"
    );
    assert_eq!(before, after);
    let expected = load.stop();
    for (route, of) in STEADY.iter().zip(&steady) {
        mirror.wait_copied(&admin, route, &[&of.topic]);
    }
    assert_eq!(mirror.terminate().code(), Some(0));
    let topics: Vec<&str> = steady.iter().map(|f| f.topic.as_str()).collect();
    compare(&pair.target.bootstrap(), &expected.of(&topics)).assert_perfect();
}

#[test]
fn other_routes_never_rebalance() {
    for shape in shapes(&[workers(2)]) {
        reloads(shape);
    }
}

/// Routes that are changed live, one in each shape, and their topics.
const LIVE: [(&str, &str); 2] = [("live-inline", "live-a"), ("live-threads", "live-b")];
const PARTITIONS: i32 = 3;

/// Every record says in which round it was handled; other settings change along.
fn live_routes(round: usize) -> Value {
    let mut routes = json!({});
    for (name, topic) in LIVE {
        let mut route = route("source", "target", topic);
        if name == "live-threads" {
            route["handler_threads"] = json!(2);
        }
        let step = json!({ "reformat": { "set": { "header.x-round": format!("{round}") } } });
        route["handlers"] = json!([step]);
        route["commit_interval"] = json!(format!("{}ms", 500 + round));
        route["limits"] = json!({ "in_flight": format!("{}MiB", 8 + round % 3), "record": "1MiB" });
        route["on_error"] = json!(if round.is_multiple_of(2) {
            "stop"
        } else {
            "skip"
        });
        routes[name] = route;
    }
    routes
}

/// The round that a record was handled in, and the record as it was.
fn unmarked(record: &Record) -> (usize, Record) {
    let mut record = record.clone();
    let mark = record
        .headers
        .iter()
        .position(|(name, _)| name == b"x-round");
    let (_, round) = record.headers.remove(mark.expect("every record is marked"));
    let round = String::from_utf8(round.expect("a value")).expect("a number");
    (round.parse().expect("a number"), record)
}

#[test]
fn live_changes_under_load_neither_rebalance_nor_lose_nor_reorder() {
    let pair = pair();
    let (source, target) = (pair.source.bootstrap(), pair.target.bootstrap());
    let admin = Admin::new(&source);
    let fields: Vec<Field> = LIVE
        .iter()
        .map(|(_, topic)| field(topic, PARTITIONS))
        .collect();
    fields
        .iter()
        .for_each(|f| admin.create(&f.topic, PARTITIONS, &[]));
    let load = Load::start(&source, &fields, RATE);
    let setup = Setup::new(clusters(), live_routes(0));
    let mut mirror = setup.run(&[]);
    LIVE.iter()
        .for_each(|(route, _)| mirror.wait_delivered(route, 500));
    let stirred = |mirror: &Mirror| {
        LIVE.map(|(r, _)| {
            (
                mirror.number(r, "rebalances"),
                mirror.number(r, "restarts"),
                mirror.number(r, "rewinds"),
            )
        })
    };
    let before = stirred(&mirror);
    // Where each partition ended when a round's verdict came: what is written later is handled in it.
    let mut ends: Vec<Vec<i64>> = vec![vec![0; LIVE.len() * PARTITIONS as usize]];
    for round in 1..=RELOADS {
        setup.write(clusters(), live_routes(round));
        let answer = setup.ask(&["reload"]);
        let words = String::from_utf8_lossy(&answer.stdout).into_owned();
        assert!(
            answer.status.success() && words.contains("changed live"),
            "{words}"
        );
        let places = LIVE
            .iter()
            .flat_map(|(_, topic)| (0..PARTITIONS).map(move |p| (topic, p)));
        ends.push(
            places
                .map(|(topic, p)| admin.watermarks(topic, p).1)
                .collect(),
        );
        let delivered = mirror.number(LIVE[0].0, "delivered_records");
        mirror.wait_delivered(LIVE[0].0, delivered + 1);
    }
    let after = stirred(&mirror);
    println!(
        "live changes: rebalances, restarts and rewinds before {before:?}, after {RELOADS} changes {after:?}"
    );
    assert_eq!(before, after);
    let expected = load.stop();
    for (route, topic) in LIVE {
        mirror.wait_copied(&admin, route, &[topic]);
    }
    assert_eq!(mirror.terminate().code(), Some(0));

    let mut reader = Reader::new(&target, LIVE.map(|(_, topic)| topic)).keeping();
    reader.catch_up();
    let mut sights = Sights::new();
    for (at, (_, topic)) in LIVE.iter().enumerate() {
        for partition in 0..PARTITIONS {
            let place = at * PARTITIONS as usize + partition as usize;
            let mut last = 0;
            for record in reader.records(topic, partition) {
                let (round, record) = unmarked(record);
                assert!(round >= last, "a chain that was replaced came back");
                last = round;
                let stamp = Stamp::of(&record).expect("ours");
                // Its number is its offset at the source.
                let due = ends.iter().rposition(|e| e[place] <= stamp.sequence as i64);
                assert!(
                    Some(round) >= due,
                    "{stamp:?} was handled in round {round}, not {due:?}"
                );
                let sight = Sight::Stamped {
                    lane: (stamp.label, stamp.partition),
                    sequence: stamp.sequence,
                    fingerprint: record.fingerprint(),
                };
                sights
                    .entry(((*topic).to_owned(), partition))
                    .or_default()
                    .push(sight);
            }
            assert_eq!(last, RELOADS, "{topic}[{partition}] saw the last chain");
        }
    }
    let verdict = check(
        &expected.of(&LIVE.map(|(_, topic)| topic)),
        &sights,
        str::to_owned,
    );
    println!("live changes: {verdict}");
    verdict.assert_perfect();
}

#[test]
fn a_renamed_route_waits_for_its_former_name_and_goes_on_where_that_was() {
    let pair = pair();
    let source = pair.source.bootstrap();
    let admin = Admin::new(&source);
    let fields = [field("renamed", 4)];
    admin.create("renamed", 4, &[]);
    let load = Load::start(&source, &fields, RATE);
    let of = |name: &str, was: Option<&str>| {
        let mut routes = json!({ name: route("source", "target", "renamed") });
        if let Some(was) = was {
            routes[name]["was"] = json!(was);
        }
        routes
    };
    let setup = Setup::new(clusters(), of("before", None));
    let mut mirror = setup.run(&[]);
    let other = Setup::new(clusters(), of("before", None));
    let mut other_mirror = other.run(&[]);
    mirror.wait_delivered("before", 500);
    other_mirror.wait_delivered("before", 1);
    setup.write(clusters(), of("after", Some("before")));
    assert!(setup.ask(&["reload"]).status.success());
    wait::until("it waits for the other instance", PATIENCE, || {
        let status = mirror.get("/api/v1/routes/after").unwrap_or_default();
        status.contains("former_name_in_use")
    });
    assert_eq!(mirror.number("after", "fetched_records"), 0);
    assert_eq!(other_mirror.terminate().code(), Some(0));
    mirror.wait_delivered("after", 500);
    let expected = load.stop();
    mirror.wait_copied(&admin, "after", &["renamed"]);
    assert_eq!(mirror.terminate().code(), Some(0));
    let verdict = compare(&pair.target.bootstrap(), &expected.of(&["renamed"]));
    println!("renamed: {verdict}");
    verdict.assert_perfect();
}
