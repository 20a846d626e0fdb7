use super::*;
use crate::config::secret::Secret;
use crate::config::spec::*;
use crate::handler::{Chain, Registry, StepSpec};
use crate::partition::{OnFewer, PolicySpec};
use crate::supervisor::testing::{cluster, name, route, spec};
use proptest::prelude::*;
use serde_json::json;
use std::num::NonZeroUsize;
use std::time::Duration;

/// What applying a plan does, as a model: names and specs only.
fn apply(plan: &Plan, running: &Spec) -> BTreeMap<Name, Arc<RouteSpec>> {
    let mut routes = running.routes.clone();
    for (name, change) in &plan.routes {
        let gone = match change {
            Change::Start(spec) => routes.insert(name.clone(), Arc::clone(spec)),
            Change::Alter(alteration) => {
                let before = routes.insert(name.clone(), Arc::clone(&alteration.wanted));
                assert_eq!(
                    apply_flows(before.as_ref().unwrap(), alteration),
                    places(&alteration.wanted)
                );
                before
            }
            Change::Keep(spec) => {
                let before = routes.insert(name.clone(), Arc::clone(spec));
                for (source, target) in places(spec) {
                    let action = FlowAction::Keep;
                    let flow = FlowChange {
                        source,
                        target,
                        action,
                    };
                    check_flow(before.as_ref().unwrap(), spec, &flow);
                }
                before
            }
            Change::Stop(_) => routes.remove(name),
        };
        assert_eq!(gone.is_none(), matches!(change, Change::Start(_)));
    }
    routes
}

fn places(route: &RouteSpec) -> BTreeSet<(Name, Name)> {
    let pairs = route
        .sources
        .iter()
        .flat_map(|s| route.targets.iter().map(move |t| (s, t)));
    pairs
        .map(|(s, t)| (s.name.clone(), t.name.clone()))
        .collect()
}

fn apply_flows(before: &RouteSpec, alteration: &Alteration) -> BTreeSet<(Name, Name)> {
    let mut flows = places(before);
    for flow in &alteration.flows {
        check_flow(before, &alteration.wanted, flow);
        let place = (flow.source.clone(), flow.target.clone());
        match flow.action {
            FlowAction::Start => assert!(flows.insert(place)),
            FlowAction::Stop => assert!(flows.remove(&place)),
            FlowAction::Keep | FlowAction::Take(_) => assert!(flows.contains(&place)),
        }
    }
    flows
}

/// What a flow between two clusters works by: all settings but those that only its start or the plan
/// itself look at, and both clusters.
fn works_by(route: &RouteSpec, flow: &FlowChange) -> (RouteSpec, ClusterSpec, ClusterSpec) {
    let mut settings = route.clone();
    (settings.sources, settings.targets) = (Vec::new(), Vec::new());
    (settings.about, settings.was, settings.accept) = (None, None, Vec::new());
    settings.start = Start::Earliest;
    let find = |list: &[Arc<ClusterSpec>], name: &Name| {
        let found = list.iter().find(|c| c.name == *name);
        (**found.expect("an end of the flow")).clone()
    };
    let source = find(&route.sources, &flow.source);
    (settings, source, find(&route.targets, &flow.target))
}

/// The same without what a running flow takes over.
fn restarts_for(
    (mut settings, source, target): (RouteSpec, ClusterSpec, ClusterSpec),
) -> (RouteSpec, ClusterSpec, ClusterSpec) {
    let plain = route(settings.name.as_str());
    settings.topics = plain.topics.clone();
    settings.chain = plain.chain.clone();
    (settings.on_gap, settings.on_error) = (plain.on_gap, plain.on_error);
    settings.dead_letter = plain.dead_letter.clone();
    settings.threads.queue_records = plain.threads.queue_records;
    settings.threads.queue_bytes = plain.threads.queue_bytes;
    settings.topic_creation = plain.topic_creation.clone();
    (settings.in_flight_bytes, settings.record_bytes) = (plain.in_flight_bytes, plain.record_bytes);
    settings.commit_interval = plain.commit_interval;
    settings.discovery_interval = plain.discovery_interval;
    (settings, source, target)
}

/// What goes on has what is wanted: a flow that is kept works by it already, one that takes it over
/// could.
fn check_flow(before: &RouteSpec, wanted: &RouteSpec, flow: &FlowChange) {
    match flow.action {
        FlowAction::Keep => assert_eq!(works_by(before, flow), works_by(wanted, flow)),
        FlowAction::Take(ReloadClass::Live) => assert_eq!(
            restarts_for(works_by(before, flow)),
            restarts_for(works_by(wanted, flow))
        ),
        FlowAction::Take(_) | FlowAction::Start | FlowAction::Stop => {}
    }
}

fn chain(steps: serde_json::Value) -> Chain {
    let steps: Vec<StepSpec> = serde_json::from_value(steps).unwrap();
    Chain::compile(steps, &Registry::default()).unwrap()
}

fn topics(include: &str) -> TopicSelection {
    TopicSelection::new(&[include.to_owned()], &[]).unwrap()
}

fn any_cluster() -> impl Strategy<Value = Arc<ClusterSpec>> {
    (0..4_u8, 0..2_u64, any::<bool>(), any::<bool>()).prop_map(|(n, address, tls, sasl)| {
        let mut made = (*cluster(&format!("c{n}"), &format!("host-{address}:9092"))).clone();
        made.tls = tls.then(TlsSpec::default);
        made.sasl = sasl.then(|| SaslSpec {
            mechanism: SaslMechanism::Plain,
            username: None,
            password: Some(Secret::new(address.to_string())),
        });
        Arc::new(made)
    })
}

/// A route of which any setting may be another one. Names of clusters are unique at each end.
fn any_route() -> impl Strategy<Value = Arc<RouteSpec>> {
    let ends = || {
        prop::collection::vec(any_cluster(), 1..3).prop_map(|mut list| {
            list.sort_by(|a, b| a.name.cmp(&b.name));
            list.dedup_by(|a, b| a.name == b.name);
            list
        })
    };
    let settings = prop::collection::vec(0..2_u8, 16);
    (0..6_u8, ends(), ends(), settings).prop_map(|(n, sources, targets, s)| {
        let mut made = (*route(&format!("r{n}"))).clone();
        let is = |i: usize| s[i] == 1;
        // A name means one cluster, at whichever end.
        let same = |c: Arc<ClusterSpec>| {
            let source = sources.iter().find(|s| s.name == c.name);
            source.cloned().unwrap_or(c)
        };
        made.targets = targets.into_iter().map(same).collect();
        made.sources.clone_from(&sources);
        made.about = is(0).then(|| "words".to_owned());
        made.topics = topics(if is(1) { "a" } else { "b" });
        made.chain = match is(2) {
            true => chain(json!([{ "filter": { "drop": "tombstone" } }])),
            false => Chain::default(),
        };
        made.policy = match (is(3), is(4)) {
            (true, true) => PolicySpec::Match {
                on_fewer: OnFewer::Stop,
            },
            (true, false) => PolicySpec::Match {
                on_fewer: OnFewer::Modulo,
            },
            (false, _) => PolicySpec::KeyHash,
        };
        made.start = if is(5) {
            Start::Latest
        } else {
            Start::Earliest
        };
        made.on_error = if is(6) { OnError::Skip } else { OnError::Stop };
        made.dead_letter = is(7).then(|| "dead".to_owned());
        made.threads.workers = NonZeroUsize::new(1 + usize::from(s[8])).unwrap();
        made.threads.queue_records = 1 + usize::from(s[9]);
        made.topic_creation.replication_factor = is(10).then_some(3);
        made.in_flight_bytes = 1 + u64::from(s[11]);
        made.record_bytes = is(12).then_some(5);
        made.discovery_interval = Duration::from_secs(1 + u64::from(s[13]));
        made.was = is(14).then(|| name("old"));
        made.accept = if is(15) {
            vec![Accept::Reorder]
        } else {
            Vec::new()
        };
        Arc::new(made)
    })
}

fn any_spec() -> impl Strategy<Value = Spec> {
    prop::collection::vec(any_route(), 0..6).prop_map(spec)
}

proptest! {
    #[test]
    fn applying_the_difference_gives_what_is_wanted(running in any_spec(), wanted in any_spec()) {
        let plan = Plan::between(Some(&running), &wanted);
        prop_assert_eq!(apply(&plan, &running), wanted.routes.clone());
        let t = Report::from(&plan).tally;
        prop_assert_eq!(t.start + t.restart + t.reconnect + t.live + t.stop + t.keep, plan.routes.len());
    }

    #[test]
    fn nothing_differs_from_itself(spec in any_spec()) {
        let plan = Plan::between(Some(&spec), &spec);
        prop_assert!(plan.is_empty() && plan.demands.is_empty());
    }

    #[test]
    fn first_start_is_the_difference_with_nothing(wanted in any_spec()) {
        let plan = Plan::between(None, &wanted);
        prop_assert_eq!(Report::from(&plan).tally.start, wanted.routes.len());
        prop_assert!(plan.refusal().is_none());
    }

    #[test]
    fn a_report_survives_json(running in any_spec(), wanted in any_spec()) {
        let report = Report::from(&Plan::between(Some(&running), &wanted));
        let json = serde_json::to_string(&report).unwrap();
        prop_assert_eq!(serde_json::from_str::<Report>(&json).unwrap(), report);
    }
}

fn with(change: impl FnOnce(&mut RouteSpec)) -> Arc<RouteSpec> {
    let mut made = (*route("orders")).clone();
    change(&mut made);
    Arc::new(made)
}

fn alter(change: impl FnOnce(&mut RouteSpec)) -> Plan {
    Plan::between(
        Some(&spec(vec![route("orders")])),
        &spec(vec![with(change)]),
    )
}

fn verb_of(plan: &Plan) -> Verb {
    Report::from(plan).routes["orders"].change
}

#[test]
fn changed_settings_are_named_as_in_the_file_with_both_values() {
    let plan = alter(|r| {
        r.sources = vec![cluster("lisbon", "elsewhere:9092")];
        r.commit_interval = Duration::from_secs(9);
    });
    let report = Report::from(&plan);
    let changed = &report.routes["orders"].changed;
    let shown: Vec<String> = changed
        .iter()
        .map(|c| format!("{} {:?} {} {}", c.setting, c.class, c.from, c.to))
        .collect();
    assert_eq!(
        shown,
        [
            "commit_interval Live 1s 9s",
            "clusters.lisbon.bootstrap_servers Reconnect [lisbon:9092] [elsewhere:9092]"
        ]
    );
    assert_eq!(verb_of(&plan), Verb::Reconnect);
}

#[test]
fn each_class_has_its_verb() {
    let plan = alter(|r| r.on_error = OnError::Skip);
    assert_eq!(verb_of(&plan), Verb::Live);
    let plan = alter(|r| r.threads.workers = NonZeroUsize::new(2).unwrap());
    assert_eq!(verb_of(&plan), Verb::Restart);
}

#[test]
fn a_secret_is_never_shown_and_still_a_difference() {
    let with_password = |password: &str| {
        with(|r| {
            let mut hub = (*cluster("hub", "hub:9092")).clone();
            hub.sasl = Some(SaslSpec {
                mechanism: SaslMechanism::Plain,
                username: Some("mirror".into()),
                password: Some(Secret::new(password)),
            });
            hub.properties
                .insert("x.secret".into(), Secret::new(password));
            r.targets = vec![Arc::new(hub)];
        })
    };
    let running = spec(vec![with_password("canary-1")]);
    let plan = Plan::between(Some(&running), &spec(vec![with_password("canary-2")]));
    let report = Report::from(&plan);
    assert_eq!(report.routes["orders"].changed.len(), 2, "{report}");
    let json = serde_json::to_string(&report).unwrap();
    assert!(!json.contains("canary") && !report.to_string().contains("canary"));
    let mut spec = running;
    let hub = Arc::clone(&spec.routes[&name("orders")].targets[0]);
    spec.clusters.insert(name("hub"), hub);
    let effective = Effective::from(&spec);
    assert_eq!(effective.clusters["hub"]["sasl.password"], "***");
    assert!(
        !serde_json::to_string(&effective)
            .unwrap()
            .contains("canary")
    );
}

#[test]
fn a_cluster_that_comes_is_a_flow_that_starts_and_nothing_to_the_others() {
    let plan = alter(|r| r.sources.push(cluster("porto", "porto:9092")));
    let report = Report::from(&plan);
    let flows = &report.routes["orders"].flows;
    assert_eq!(
        (flows[0].change, flows[1].change),
        (Verb::Keep, Verb::Start)
    );
    assert!(report.needs.is_empty(), "{report}");
}

#[test]
fn words_about_a_route_change_nothing_that_runs() {
    let plan = alter(|r| r.about = Some("other words".into()));
    assert!(plan.is_empty());
}

#[test]
fn what_is_fixed_for_the_process_is_refused_by_name() {
    let running = spec(vec![]);
    let mut wanted = running.clone();
    wanted.group = name("other");
    wanted.admin.listen = None;
    wanted.memory_bytes <<= 1;
    wanted.grace += Duration::from_secs(1);
    wanted.reload.watch = Watch::Off;
    let plan = Plan::between(Some(&running), &wanted);
    let report = Report::from(&plan);
    let refused: Vec<&str> = report.refused.iter().map(|c| c.setting.as_str()).collect();
    assert_eq!(refused, ["group", "limits.memory", "admin.listen"]);
    let process: Vec<&str> = report.process.iter().map(|c| c.setting.as_str()).collect();
    assert_eq!(process, ["reload.watch", "shutdown.grace"]);
    assert_eq!(
        plan.refusal().unwrap(),
        "group cannot change while running (default -> other): restart the process"
    );
}

// --- words ---------------------------------------------------------------------------------------

fn words(plan: &Plan) -> Vec<(Option<&str>, Accept, Said)> {
    let demands = plan.demands.iter();
    demands
        .map(|d| (d.route.as_ref().map(Name::as_str), d.word, d.said))
        .collect()
}

#[test]
fn another_partition_policy_can_reorder() {
    let plan = alter(|r| r.policy = PolicySpec::Modulo);
    assert_eq!(words(&plan), [(Some("orders"), Accept::Reorder, Said::No)]);
    let refusal = plan.refusal().unwrap();
    assert!(
        refusal.contains("route orders: ") && refusal.contains("`accept: [reorder]`"),
        "{refusal}"
    );
    let plan = alter(|r| {
        r.policy = PolicySpec::Modulo;
        r.accept = vec![Accept::Reorder];
    });
    assert_eq!(plan.refusal(), None);
    let matching = |on_fewer| with(|r| r.policy = PolicySpec::Match { on_fewer });
    let running = spec(vec![matching(OnFewer::Stop)]);
    let plan = Plan::between(Some(&running), &spec(vec![matching(OnFewer::Modulo)]));
    assert_eq!(words(&plan), []);
}

#[test]
fn a_cluster_that_is_replaced_takes_its_positions_along() {
    let plan = alter(|r| r.sources = vec![cluster("porto", "lisbon:9092")]);
    assert_eq!(
        words(&plan),
        [(Some("orders"), Accept::RestartFromStart, Said::No)]
    );
    let plan = alter(|r| {
        r.targets = vec![cluster("lake", "lake:9092")];
        r.start = Start::Latest;
    });
    assert_eq!(words(&plan), [(Some("orders"), Accept::Gap, Said::No)]);
}

fn called(of: &str, change: impl FnOnce(&mut RouteSpec)) -> Arc<RouteSpec> {
    let mut made = (*route(of)).clone();
    change(&mut made);
    Arc::new(made)
}

#[test]
fn a_rename_without_was_is_suspected() {
    let running = spec(vec![route("old")]);
    let of_old = |of: &str, change: fn(&mut RouteSpec)| {
        called(of, |r| {
            r.topics = topics("old");
            change(r);
        })
    };
    let plan = Plan::between(Some(&running), &spec(vec![of_old("new", |_| {})]));
    assert_eq!(
        words(&plan),
        [(Some("new"), Accept::RestartFromStart, Said::No)]
    );
    assert!(plan.refusal().unwrap().contains("`was: old`"));
    let meant = of_old("new", |r| r.accept = vec![Accept::RestartFromStart]);
    assert_eq!(
        Plan::between(Some(&running), &spec(vec![meant])).refusal(),
        None
    );
    let said = of_old("new", |r| r.was = Some(name("old")));
    let plan = Plan::between(Some(&running), &spec(vec![said]));
    assert_eq!(words(&plan), []);
    let report = Report::from(&plan);
    assert_eq!(
        report.routes["new"].flows[0].positions,
        Positions::TakenOver("old".into())
    );
    let other = called("new", |r| r.topics = topics("others"));
    assert_eq!(
        words(&Plan::between(Some(&running), &spec(vec![other]))),
        []
    );
}

#[test]
fn most_of_four_or_more_routes_do_not_stop_by_mistake() {
    let named = |names: &[&str]| spec(names.iter().map(|n| route(n)).collect());
    let four = named(&["a", "b", "c", "d"]);
    let plan = |running: &Spec, wanted: &Spec| Plan::between(Some(running), wanted);
    assert_eq!(
        words(&plan(&four, &named(&["a", "b"]))),
        [],
        "half is not more than half"
    );
    let three_stop = plan(&four, &named(&["a"]));
    assert_eq!(words(&three_stop), [(None, Accept::Gap, Said::No)]);
    let refusal = three_stop.refusal().unwrap();
    assert!(
        refusal.starts_with("3 of 4 running routes stop"),
        "{refusal}"
    );
    let mut meant = named(&["a"]);
    meant.accept = vec![Accept::Gap];
    assert_eq!(plan(&four, &meant).refusal(), None);
    assert_eq!(
        words(&plan(&named(&["a", "b", "c"]), &named(&[]))),
        [],
        "three are few"
    );
    let renamed = |of: &str| {
        called(&format!("{of}2"), |r| {
            r.was = Some(name(of));
            r.topics = topics(of);
        })
    };
    let all = ["a", "b", "c", "d"].map(renamed);
    assert_eq!(words(&plan(&four, &spec(all.into()))), []);
}

#[test]
fn a_plan_reads_like_a_difference() {
    let mut changed = (*route("b")).clone();
    changed.commit_interval = Duration::from_secs(9);
    changed.chain = chain(
        json!([{ "reformat": { "unset": ["header.x-debug", "header.internal-one", "header.y"] } }]),
    );
    let running = spec(vec![route("a"), route("b"), route("c")]);
    let mut more = (*route("d")).clone();
    more.sources.push(cluster("porto", "porto:9092"));
    let wanted = spec(vec![Arc::new(changed), route("c"), Arc::new(more)]);
    let report = Report::from(&Plan::between(Some(&running), &wanted));
    let expected = "  - a  stop  lisbon -> hub  (positions stay in its group)
  ~ b  live  lisbon -> hub  (positions kept)
      · handlers
          - []
          + [{ reformat: { unset: [header.x-debug, header.internal-one, header.y] } }]
      · commit_interval  1s -> 9s
  + d  start
      + lisbon -> hub  (begins at earliest, or where its group was before)
      + porto -> hub  (begins at earliest, or where its group was before)
plan: 1 to start, 1 to stop, 1 to change live, 1 untouched";
    assert_eq!(report.to_string(), expected);
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["routes"]["b"]["changed"][1]["to"], "9s");
    assert_eq!(json["tally"]["keep"], 1);
    assert!(
        report
            .text(crate::logging::Colour::On)
            .contains("\u{1b}[31m-\u{1b}[0m a")
    );
}
