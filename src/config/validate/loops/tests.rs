//! The answers against a simulation that sends every short name through every way.

use super::*;
use crate::config::config_tests::{load_text, said};
use crate::config::spec::{RouteSpec, Spec};
use crate::config::validate::identity::Identities;
use proptest::prelude::*;
use regex::Regex;
use std::sync::Arc;

/// A route as it is generated.
#[derive(Clone, Debug)]
struct Written {
    source: &'static str,
    target: &'static str,
    include: &'static str,
    exclude: &'static str,
    rename: &'static str,
    dead_letter: &'static str,
}

const CLUSTERS: [&str; 3] = ["a", "b", "c"];

fn route() -> impl Strategy<Value = Written> {
    let include = [
        ".+",
        "a.*",
        ".*b",
        r"(?<x>[ab])\..*",
        "(?<x>a*)b(?<y>.?)",
        "ab",
        r"[ab]{2}\..+",
    ];
    let exclude = ["", "b.*", r"a\..*|b\..*|c\..*", ".*bb"];
    let rename = [
        "",
        "",
        "{source}.{topic}",
        "{target}.{topic}",
        "{topic}b",
        "ab",
        "{x}.b",
        "{x}{topic}",
        "{topic}.{topic}",
    ];
    (
        prop::sample::select(CLUSTERS.to_vec()),
        prop::sample::select(CLUSTERS.to_vec()),
        prop::sample::select(include.to_vec()),
        prop::sample::select(exclude.to_vec()),
        prop::sample::select(rename.to_vec()),
        prop::sample::select(vec!["", "", "", "ab", "bb"]),
    )
        .prop_map(
            |(source, target, include, exclude, rename, dead_letter)| Written {
                source,
                target,
                include,
                exclude,
                rename,
                dead_letter,
            },
        )
}

/// The routes as validated; `None` if one of them is refused by itself: it can select nothing.
fn spec_of(routes: &[Written]) -> Option<Vec<Arc<RouteSpec>>> {
    // Loops are refused: the specs are taken apart from each other, and put together here.
    let one = |(index, route): (usize, &Written)| {
        let source = route.source;
        let target = if route.target == source {
            "z"
        } else {
            route.target
        };
        let mut text = format!(
            "version: 1\nclusters: {{ a: {{ bootstrap_servers: ['a:1'] }}, b: {{ bootstrap_servers: ['b:1'] }}, c: {{ bootstrap_servers: ['c:1'] }}, z: {{ bootstrap_servers: ['z:1'] }} }}\nroutes:\n  r{index}:\n    source: {source}\n    target: {target}\n    topics: {{ include: ['{}']{} }}\n",
            route.include,
            match route.exclude {
                "" => String::new(),
                exclude => format!(", exclude: ['{exclude}']"),
            }
        );
        if !route.rename.is_empty() {
            text += &format!(
                "    handlers: [{{ rename: {{ topic: '{}' }} }}]\n",
                route.rename
            );
        }
        if !route.dead_letter.is_empty() {
            let topic = route.dead_letter;
            text += &format!("    on_error: dead_letter\n    dead_letter: {{ topic: {topic} }}\n");
        }
        let spec: Spec = load_text(&text).ok()?.spec;
        let mut built = spec.routes.values().next().unwrap().as_ref().clone();
        if route.target == source {
            built.targets = built.sources.clone();
        }
        Some(Arc::new(built))
    };
    routes.iter().enumerate().map(one).collect()
}

/// A route with its patterns compiled.
struct Simulated {
    route: Written,
    include: Regex,
    exclude: Option<Regex>,
}

fn simulated(routes: &[Written]) -> Vec<Simulated> {
    let whole = |p: &str| Regex::new(&format!("^(?:{p})$")).unwrap();
    let one = |route: &Written| Simulated {
        route: route.clone(),
        include: whole(route.include),
        exclude: (!route.exclude.is_empty()).then(|| whole(route.exclude)),
    };
    routes.iter().map(one).collect()
}

/// What a route makes of a name, by the regex engine and by text replacement alone.
fn written(simulated: &Simulated, name: &str) -> Vec<String> {
    let Simulated {
        route,
        include,
        exclude,
    } = simulated;
    if name.is_empty() || !include.is_match(name) || name.len() > MAX_NAME {
        return Vec::new();
    }
    if exclude.as_ref().is_some_and(|e| e.is_match(name)) {
        return Vec::new();
    }
    let mut new = match route.rename {
        "" => "{topic}".to_owned(),
        rename => rename.to_owned(),
    };
    let captures = include.captures(name).unwrap();
    if new.contains("{x}") {
        match captures.name("x") {
            Some(x) => new = new.replace("{x}", x.as_str()),
            None => return Vec::new(),
        }
    }
    let new = new
        .replace("{source}", route.source)
        .replace("{target}", route.target)
        .replace("{topic}", name);
    if new.is_empty() || new == "." || new == ".." || new.len() > MAX_NAME {
        return Vec::new();
    }
    let mut all = vec![new];
    if !route.dead_letter.is_empty() {
        all.push(route.dead_letter.to_owned());
    }
    all
}

/// Whether a record of `name` comes to `start` after some hops, none of them twice.
fn comes_back(routes: &[Simulated], start: usize, at: usize, name: &str, used: &[usize]) -> bool {
    written(&routes[at], name).iter().any(|new| {
        (0..routes.len()).any(|next| {
            routes[next].route.source == routes[at].route.target
                && !written(&routes[next], new).is_empty()
                && (next == start
                    || !used.contains(&next)
                        && comes_back(routes, start, next, new, &[used, &[next]].concat()))
        })
    })
}

/// Every name of `a`, `b` and `.` up to four letters.
fn names() -> Vec<String> {
    let mut names = vec![String::new()];
    for _ in 0..4 {
        let longer = names
            .iter()
            .flat_map(|n| ["a", "b", "."].map(|l| format!("{n}{l}")));
        let longer: Vec<String> = longer.collect();
        names.extend(longer);
        names.sort();
        names.dedup();
    }
    names.retain(|n| !n.is_empty() && n != "." && n != "..");
    names
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 30, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn answers_are_those_of_a_simulation(routes in prop::collection::vec(route(), 1..4)) {
        // A template with a capture that the include does not have names nothing.
        prop_assume!(routes.iter().all(|r| !r.rename.contains("{x}") || r.include.contains("<x>")));
        let Some(specs) = spec_of(&routes) else {
            return Ok(());
        };
        let clusters: Vec<_> = specs.iter().flat_map(|r| r.sources.iter().chain(&r.targets)).collect();
        let identities = Identities::of(clusters.into_iter());
        let network = Network::of(&specs, identities);
        prop_assert_eq!(network.flows.len(), routes.len());
        let found = answers(&network);
        let plain = routes.iter().all(|r| {
            !r.rename.contains("{x}") && r.rename.matches("{topic}").count() < 2 && r.dead_letter.is_empty()
        });
        let routes = simulated(&routes);
        let tried = names();
        for start in 0..routes.len() {
            let simulated = tried.iter().find(|n| comes_back(&routes, start, start, n, &[start])).cloned();
            let answer = found.iter().find(|(flow, _)| *flow == start).map(|(_, answer)| answer);
            match answer {
                None | Some(Answer::No) => {
                    prop_assert!(simulated.is_none(), "missed: {:?} of {}", simulated, start);
                }
                Some(Answer::BrokenOff) => prop_assert!(false, "three flows are few"),
                Some(Answer::Found(found)) => {
                    prop_assert!(!plain || found.certainty == LoopCertainty::Sure, "{:?}", found);
                    prop_assert!(found.certainty != LoopCertainty::Sure || found.names.is_some());
                    check_names(&routes, found)?;
                }
            }
        }
    }
}

/// The names of a loop are what the simulation makes of them.
fn check_names(routes: &[Simulated], found: &Loop) -> Result<(), TestCaseError> {
    let Some(names) = &found.names else {
        return Ok(());
    };
    prop_assert_eq!(names.len(), found.flows.len() + 1);
    for (hop, &flow) in found.flows.iter().enumerate() {
        let written = written(&routes[flow], &names[hop]);
        prop_assert!(written.contains(&names[hop + 1]), "{:?}", found);
    }
    let back = written(&routes[found.flows[0]], &names[found.flows.len()]);
    // A name at the limit of the length is taken, and fails only when it is named.
    prop_assert!(
        !back.is_empty() || names[found.flows.len()].len() > 200,
        "{:?}",
        found
    );
    Ok(())
}

fn file(routes: &str) -> String {
    format!(
        "version: 1\nclusters:\n  a: {{ bootstrap_servers: ['a:1'] }}\n  b: {{ bootstrap_servers: ['b:1'] }}\n  c: {{ bootstrap_servers: ['c:1'] }}\nroutes:\n{routes}"
    )
}

fn loops_of(routes: &str) -> Vec<String> {
    let found = said(&file(routes));
    let codes = ["E0410", "W0701", "W0702"];
    let about = |line: &String| codes.iter().any(|code| line.contains(code));
    found.into_iter().filter(about).collect()
}

#[test]
fn two_routes_that_feed_each_other_are_named_with_the_way() {
    let routes = "  r: { source: a, target: b, topics: { include: ['orders.*'] } }\n  s: { source: b, target: a, topics: { include: ['.*s'] } }\n  t: { source: c, target: a, topics: { include: ['.*'] } }\n";
    assert_eq!(
        loops_of(routes),
        [
            "7:27 E0410 the route feeds itself: `orders` of a → `orders` of b → `orders` of a, and is copied again"
        ]
    );
}

#[test]
fn active_active_with_names_of_the_source_is_none() {
    let routes = "  r: { source: a, target: b, topics: { include: ['.+'], exclude: ['b\\..+'] }, handlers: [{ rename: { topic: '{source}.{topic}' } }] }\n  s: { source: b, target: a, topics: { include: ['.+'], exclude: ['a\\..+'] }, handlers: [{ rename: { topic: '{source}.{topic}' } }] }\n";
    assert!(loops_of(routes).is_empty(), "{:?}", loops_of(routes));
    let without = routes.replace(", exclude: ['b\\..+']", "");
    let found = loops_of(&without);
    assert!(found.is_empty(), "{found:?}");
    let neither = without.replace(", exclude: ['a\\..+']", "");
    assert_eq!(
        loops_of(&neither),
        [
            "7:27 E0410 the route feeds itself: `a` of a → `a.a` of b → `b.a.a` of a, and is copied again"
        ]
    );
}

#[test]
fn a_filter_makes_it_depend_on_the_records() {
    let route = |step: &str| {
        format!(
            "  r: {{ source: a, target: b, topics: {{ include: [x] }}, handlers: [{step}] }}\n  s: {{ source: b, target: a, topics: {{ include: [x] }} }}\n"
        )
    };
    let found = loops_of(&route("{ filter: { drop: { header.from: b } } }"));
    assert!(found[0].contains("W0701 the route may feed itself, depending on the records: `x` of a → `x` of b → `x` of a"), "{found:?}");
    let found = loops_of(&route("{ filter: { drop: tombstone } }"));
    assert!(found[0].contains("E0410"), "{found:?}");
}

#[test]
fn dead_letters_that_come_back_are_said() {
    let routes = "  r: { source: a, target: b, topics: { include: ['orders', 'retry\\..+'] }, on_error: dead_letter, dead_letter: { topic: rejected } }\n  s: { source: b, target: a, topics: { include: [rejected] }, handlers: [{ rename: { topic: 'retry.{topic}' } }] }\n";
    assert_eq!(
        loops_of(routes),
        [
            "7:27 W0702 dead letters come back to the route: `orders` of a → `rejected` of b → `retry.rejected` of a"
        ]
    );
}

#[test]
fn one_cluster_under_two_names_is_one() {
    let routes = "  r: { source: a, target: b, topics: { include: [x] } }\n";
    let text = file(routes).replace("'b:1'", "'B2:1', 'A:1'");
    let found = said(&text);
    assert!(
        found.iter().any(|l| l
            .contains("E0410 the route feeds itself: `x` of a → `x` of b, and is copied again")),
        "{found:?}"
    );
}

#[test]
fn a_long_ring_is_found_and_a_large_mesh_ends() {
    let mut ring = String::new();
    for index in 0..12 {
        ring += &format!(
            "  r{index}: {{ source: k{index}, target: k{}, topics: {{ include: ['.+'] }} }}\n",
            (index + 1) % 12
        );
    }
    let clusters: String = (0..12)
        .map(|k| format!("  k{k}: {{ bootstrap_servers: ['k{k}:1'] }}\n"))
        .collect();
    let text = |routes: &str| format!("version: 1\nclusters:\n{clusters}routes:\n{routes}");
    let found = said(&text(&ring));
    assert_eq!(
        found.iter().filter(|l| l.contains("E0410")).count(),
        1,
        "{found:?}"
    );
    let names: Vec<String> = (0..12).map(|k| format!("k{k}")).collect();
    let all = names.join(", ");
    let mesh = format!(
        "  m: {{ source: [{all}], target: [{all}], topics: {{ include: ['.+'], exclude: ['k\\d+\\..+'] }}, handlers: [{{ rename: {{ topic: '{{source}}.{{topic}}' }} }}] }}\n"
    );
    let found = said(&text(&mesh));
    assert!(
        !found
            .iter()
            .any(|l| l.contains("E0410") || l.contains("W0701")),
        "{found:?}"
    );
}
