//! Reloads under load: the routes that did not change never notice.

use crate::support::checker::check;
use crate::support::cluster::{Admin, pair};
use crate::support::process::{Mirror, Setup, cluster, route};
use crate::support::reader::read;
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

/// The steady routes, and those that change with each reload: one comes, one changes, one goes.
fn routes(round: usize) -> Value {
    let mut routes = json!({});
    for name in STEADY {
        routes[name] = route("source", "target", &format!("reload-{name}"));
    }
    for name in [round, round + 1] {
        let mut passing = route("source", "target", "reload-passing");
        // A name is there for two rounds, and changed in its second.
        passing["workers"] = json!(if name == round { 2 } else { 1 });
        passing["handlers"] = json!([{ "rename": { "topic": "{route}.{topic}" } }]);
        // One that goes and one that comes are the same but for the name.
        passing["accept"] = json!(["restart_from_start"]);
        routes[format!("passing-{name}")] = passing;
    }
    routes
}

fn generation(mirror: &Mirror) -> u64 {
    mirror
        .status()
        .and_then(|s| s["generation"].as_u64())
        .unwrap_or(0)
}

#[test]
fn other_routes_never_rebalance() {
    let pair = pair();
    let source = pair.source.bootstrap();
    let admin = Admin::new(&source);
    let fields: Vec<Field> = STEADY
        .iter()
        .map(|t| field(&format!("reload-{t}"), 4))
        .collect();
    fields.iter().for_each(|f| admin.create(&f.topic, 4, &[]));
    admin.create("reload-passing", 2, &[]);
    let load = Load::start(
        &source,
        &[&fields[..], &[field("reload-passing", 2)]].concat(),
        RATE,
    );

    let setup = Setup::new(clusters(), routes(0));
    let mut mirror = setup.run(&[]);
    STEADY.iter().for_each(|r| mirror.wait_delivered(r, 500));
    let rebalances = |mirror: &Mirror| {
        STEADY.map(|r| (mirror.number(r, "rebalances"), mirror.number(r, "restarts")))
    };
    let before = rebalances(&mirror);
    for round in 1..=RELOADS {
        let (delivered, was) = (
            STEADY.map(|r| mirror.number(r, "delivered_records")),
            generation(&mirror),
        );
        setup.write(clusters(), routes(round));
        let answer = setup.ask(&["reload"]);
        assert!(
            answer.status.success(),
            "{}{}",
            String::from_utf8_lossy(&answer.stdout),
            String::from_utf8_lossy(&answer.stderr)
        );
        wait::until("the reload is applied", PATIENCE, || {
            generation(&mirror) > was
        });
        for (route, before) in STEADY.iter().zip(delivered) {
            mirror.wait_delivered(route, before + 1);
        }
    }
    let after = rebalances(&mirror);
    println!(
        "reloads: rebalances and restarts of the steady routes before {before:?}, after {RELOADS} reloads {after:?}"
    );
    assert_eq!(before, after);
    let expected = load.stop();
    STEADY.iter().for_each(|r| mirror.wait_no_lag(r));
    assert_eq!(mirror.terminate().code(), Some(0));
    let topics: Vec<&str> = fields.iter().map(|f| f.topic.as_str()).collect();
    let verdict = check(
        &expected.of(&topics),
        &read(&pair.target.bootstrap(), topics),
        str::to_owned,
    );
    println!("reloads: {verdict}");
    verdict.assert_perfect();
}
