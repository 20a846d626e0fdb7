use super::*;
use crate::config::spec::{AdminSpec, ReloadSpec, Watch};
use crate::supervisor::testing::{cluster, name, route, spec};
use proptest::prelude::*;
use std::time::Duration;

/// What applying a plan does, as a model: names and specs only.
fn apply(plan: &Plan, running: &Spec, wanted: &Spec) -> BTreeMap<Name, Arc<RouteSpec>> {
    let mut routes = running.routes.clone();
    for (name, change) in &plan.routes {
        match change {
            Change::Start(spec) => assert!(routes.insert(name.clone(), spec.clone()).is_none()),
            Change::Restart { wanted, .. } => {
                assert!(routes.insert(name.clone(), wanted.clone()).is_some());
            }
            Change::Stop => assert!(routes.remove(name).is_some()),
            Change::Keep => assert_eq!(routes.get(name), wanted.routes.get(name)),
        }
    }
    routes
}

fn any_route() -> impl Strategy<Value = Arc<RouteSpec>> {
    let clusters = prop::collection::btree_set(0..4_u8, 1..3);
    (0..6_u8, clusters.clone(), clusters, 0..3_u64, 0..2_u64).prop_map(
        |(n, sources, targets, interval, address)| {
            let mut made = (*route(&format!("r{n}"))).clone();
            let ends = |set: std::collections::BTreeSet<u8>| {
                set.into_iter()
                    .map(|c| cluster(&format!("c{c}"), &format!("host-{address}:9092")))
                    .collect()
            };
            made.sources = ends(sources);
            made.targets = ends(targets);
            made.commit_interval = Duration::from_secs(1 + interval);
            Arc::new(made)
        },
    )
}

fn any_spec() -> impl Strategy<Value = Spec> {
    prop::collection::vec(any_route(), 0..6).prop_map(spec)
}

proptest! {
    #[test]
    fn applying_the_difference_gives_what_is_wanted(running in any_spec(), wanted in any_spec()) {
        let plan = Plan::between(Some(&running), &wanted);
        prop_assert_eq!(apply(&plan, &running, &wanted), wanted.routes.clone());
        prop_assert_eq!(plan.is_empty(), running.routes == wanted.routes);
        let t = plan.tally();
        prop_assert_eq!(t.start + t.restart + t.stop + t.keep, plan.routes.len());
    }

    #[test]
    fn first_start_is_the_difference_with_nothing(wanted in any_spec()) {
        let plan = Plan::between(None, &wanted);
        prop_assert_eq!(plan.tally().start, wanted.routes.len());
        prop_assert!(plan.refused.is_empty());
    }
}

#[test]
fn changed_settings_are_named_as_in_the_file() {
    let running = spec(vec![route("orders")]);
    let mut changed = (*route("orders")).clone();
    changed.sources = vec![cluster("lisbon", "elsewhere:9092")];
    changed.commit_interval = Duration::from_secs(9);
    let plan = Plan::between(Some(&running), &spec(vec![Arc::new(changed)]));
    let Some(Change::Restart { changed, .. }) = plan.routes.get(&name("orders")) else {
        panic!("{plan}");
    };
    assert_eq!(changed, &["clusters.lisbon", "commit_interval"]);
}

#[test]
fn words_about_a_route_change_nothing() {
    let mut changed = (*route("orders")).clone();
    changed.about = Some("other words".into());
    let plan = Plan::between(
        Some(&spec(vec![route("orders")])),
        &spec(vec![Arc::new(changed)]),
    );
    assert!(plan.is_empty(), "{plan}");
}

#[test]
fn what_is_fixed_for_the_process_is_refused_by_name() {
    let running = spec(vec![]);
    let mut wanted = running.clone();
    wanted.group = name("other");
    wanted.admin = AdminSpec {
        listen: None,
        socket: None,
    };
    wanted.memory_bytes += 1;
    wanted.grace += Duration::from_secs(1);
    wanted.reload = ReloadSpec {
        watch: Watch::Off,
        settle: Duration::from_secs(3),
    };
    let plan = Plan::between(Some(&running), &wanted);
    let settings: Vec<Fixed> = plan.refused.iter().map(|r| r.setting).collect();
    assert_eq!(settings, [Fixed::Group, Fixed::Memory, Fixed::Admin]);
    assert!(
        plan.to_string()
            .contains("group cannot change while running (default -> other)")
    );
}

#[test]
fn a_plan_reads_like_a_difference() {
    let mut changed = (*route("b")).clone();
    changed.commit_interval = Duration::from_secs(9);
    let running = spec(vec![route("a"), route("b"), route("c")]);
    let wanted = spec(vec![Arc::new(changed), route("c"), route("d")]);
    let plan = Plan::between(Some(&running), &wanted);
    assert_eq!(
        plan.to_string(),
        "  - a  stop\n  ~ b  restart  commit_interval (positions kept)\n    c  keep\n  \
         + d  start    lisbon -> hub\nplan: 1 to start, 1 to restart, 1 to stop, 1 untouched"
    );
    let json = serde_json::to_value(&plan).unwrap();
    assert_eq!(json["routes"]["b"]["changed"][0], "commit_interval");
    assert_eq!(json["tally"]["keep"], 1);
}
