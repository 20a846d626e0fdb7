//! What only shows when patterns, renames and routes are thought through: what is said, and what is not.

use super::config_tests::{self, file, route};

/// What is said, but for clusters that a test has and does not use.
fn said(text: &str) -> Vec<String> {
    let mut said = config_tests::said(text);
    said.retain(|line| !line.contains("W0603"));
    said
}

#[track_caller]
fn assert_said(text: &str, expected: &[&str]) {
    let said = said(text);
    let same =
        said.len() == expected.len() && said.iter().zip(expected).all(|(s, e)| s.starts_with(e));
    assert!(same, "{text}\nsaid:\n{said:#?}\nexpected:\n{expected:#?}");
}

/// Routes between the clusters `a`, `b` and `c`.
fn routes(routes: &str) -> String {
    format!(
        "version: 1\nclusters:\n  a: {{ bootstrap_servers: ['a:1'] }}\n  b: {{ bootstrap_servers: ['b:1'] }}\n  c: {{ bootstrap_servers: ['c:1'] }}\nroutes:\n{routes}"
    )
}

fn topics(include: &str, rest: &str) -> String {
    let text = file("", &format!("    {rest}\n"), "");
    text.replace("{ include: [orders] }", include)
}

#[test]
fn patterns_that_select_nothing() {
    let with = |include: &str| topics(include, "about: x");
    assert_said(
        &with("{ include: ['orders/eu'] }"),
        &["9:25 E0419 the route can select no topic: no topic can be called so"],
    );
    assert_said(&with("{ include: ['[a-z]{250}'] }"), &["9:25 E0419"]);
    assert_said(
        &with(r"{ include: ['__.+'] }"),
        &["9:25 E0419 the route can select no topic: topics that Kafka"],
    );
    assert_said(&with(r"{ include: ['a\bb'] }"), &["9:25 E0419"]);
    assert_said(
        &with(r"{ include: [orders, 'pay ments', 'tmp-.+'], exclude: ['tmp.*', 'a b'] }"),
        &[
            "9:33 W0707 this pattern selects no topic: no topic can be called so",
            "9:46 W0707 this pattern selects no topic: `exclude` takes out",
            "9:76 W0707 this pattern excludes no topic",
        ],
    );
    assert_said(
        &with(r"{ include: ['[ab]+'], exclude: ['a+', '[ab]*b[ab]*'] }"),
        &["9:25 E0419 the route can select no topic: `exclude` takes out"],
    );
    for fine in [
        "{ include: ['.*'] }",
        "{ include: ['__consumer_offsets'] }",
        r"{ include: ['\w+'] }",
        r"{ include: ['orders|or ders'] }",
        r"{ include: ['[^a]+'], exclude: ['b.*'] }",
        r"{ include: ['(?i)orders'], exclude: ['orders'] }",
    ] {
        assert_said(&with(fine), &[]);
    }
}

#[test]
fn names_that_no_topic_can_have() {
    let with = |include: &str, name: &str| {
        topics(
            include,
            &format!("handlers: [{{ rename: {{ topic: '{name}' }} }}]"),
        )
    };
    let captures = "{ include: ['(?<team>[a-z]+)-x'] }";
    assert_said(
        &with(captures, "a b"),
        &["10:35 E0415 no topic can be called `a b`"],
    );
    assert_said(
        &with(captures, "eu/{topic}"),
        &["10:36 E0415 no topic can be called `eu/`"],
    );
    assert_said(&with(captures, ".."), &["10:35 E0415"]);
    assert_said(
        &with(captures, "{taem}"),
        &["10:36 E0415 `{taem}` is no placeholder"],
    );
    let long = "x".repeat(230);
    assert_said(
        &with("{ include: ['[a-z]{30,}'] }", &format!("{long}{{topic}}")),
        &["10:"],
    );
    assert_said(
        &with("{ include: ['[a-z]+'] }", &format!("{long}{{topic}}")),
        &[],
    );
    assert_said(
        &with("{ include: ['(?<topic>[a-z]+)-x'] }", "y-{topic}"),
        &["9:29 E0415"],
    );
    assert_said(&with(captures, "{team}"), &[]);
}

#[test]
fn topics_that_become_one() {
    let with = |include: &str, name: &str| {
        topics(
            include,
            &format!("handlers: [{{ rename: {{ topic: '{name}' }} }}]"),
        )
    };
    let clicks = r"{ include: ['(?<team>[a-z]+)\.clicks\.v(?<major>\d+)'] }";
    assert_said(
        &with(clicks, "clicks-{team}"),
        &[
            "10:35 W0705 several topics become one: `a.clicks.v0` and `a.clicks.v1` are both `clicks-a`",
        ],
    );
    assert_said(&with("{ include: ['orders.*'] }", "all"), &["10:35 W0705"]);
    assert_said(&with("{ include: [x, y] }", "all"), &["10:35 W0705"]);
    let numbers = r"{ include: ['(?<a>\d+)-(?<b>\d+)'] }";
    assert_said(&with(numbers, "t{a}{b}"), &["10:35 W0705"]);
    let accepted =
        with(clicks, "clicks-{team}").replace("about: x", "") + "    accept: [reorder]\n";
    assert_said(&accepted, &[]);
    for (include, name) in [
        (clicks, "clicks-{team}-{major}"),
        ("{ include: [orders] }", "all"),
        ("{ include: ['.+'] }", "{source}.{topic}"),
        (numbers, "t{a}-{b}"),
    ] {
        assert_said(&with(include, name), &[]);
    }
}

#[test]
fn two_routes_and_one_target_topic() {
    let two = |first: &str, second: &str| routes(&format!("  r: {first}\n  s: {second}\n"));
    assert_said(
        &two(
            "{ source: a, target: c, topics: { include: ['orders.*'] } }",
            "{ source: a, target: c, topics: { include: ['.*-eu'] } }",
        ),
        &[
            "8:27 W0704 `orders-eu` of a is copied twice to `orders-eu` of c: by this route and by `r`",
        ],
    );
    let mixed = two(
        "{ source: a, target: c, topics: { include: [orders] } }",
        "{ source: b, target: c, topics: { include: ['orders|bills'] } }",
    );
    assert_said(
        &mixed,
        &["8:27 W0704 `orders` of c is written by route `r` too: their records are mixed"],
    );
    assert_said(
        &mixed.replace("orders|bills'] }", "orders|bills'] }, accept: [reorder]"),
        &[],
    );
    let captures = two(
        r"{ source: a, target: c, topics: { include: ['(?<n>[a-z])\.x'] }, handlers: [{ rename: { topic: 'x-{n}' } }] }",
        "{ source: b, target: c, topics: { include: ['x-.+'] } }",
    );
    assert_said(&captures, &["8:27 W0704 `x-a` of c"]);
    for (first, second) in [
        (
            "{ source: a, target: c, topics: { include: ['orders.*'] } }",
            "{ source: b, target: c, topics: { include: ['bills.*'] } }",
        ),
        (
            "{ source: a, target: b, topics: { include: ['orders.*'] } }",
            "{ source: a, target: c, topics: { include: ['orders.*'] } }",
        ),
        (
            "{ source: a, target: c, topics: { include: ['.+'] }, handlers: [{ rename: { topic: '{source}.{topic}' } }] }",
            "{ source: b, target: c, topics: { include: ['.+'] }, handlers: [{ rename: { topic: '{source}.{topic}' } }] }",
        ),
        (
            "{ source: a, target: c, topics: { include: ['o.*'] }, on_error: dead_letter, dead_letter: { topic: rejected } }",
            "{ source: b, target: c, topics: { include: ['p.*'] }, on_error: dead_letter, dead_letter: { topic: rejected } }",
        ),
    ] {
        let found = said(&two(first, second));
        assert!(!found.iter().any(|l| l.contains("W0704")), "{found:?}");
    }
}

#[test]
fn names_that_differ_in_dots_and_lines() {
    let one = |include: &str| {
        routes(&format!(
            "  r: {{ source: a, target: b, topics: {{ include: {include} }} }}\n"
        ))
    };
    let found = said(&one(r"['orders\.eu', orders_eu]"));
    assert_eq!(
        found,
        ["7:64 W0706 `orders.eu` and `orders_eu` of b differ only in `.` and `_`"]
    );
    let two = routes(
        "  r: { source: a, target: c, topics: { include: ['.+'] }, handlers: [{ rename: { topic: 'in.{topic}' } }] }\n  s: { source: b, target: c, topics: { include: ['.+'] }, handlers: [{ rename: { topic: 'in_{topic}' } }] }\n",
    );
    let found = said(&two);
    assert_eq!(
        found,
        ["8:50 W0706 `in.a` and `in_a` of c differ only in `.` and `_`"]
    );
    for fine in [
        r"['orders\.eu', orders-eu]",
        "['.+']",
        r"['a\..+', 'b_.+']",
        r"['a\.x', 'a_y']",
    ] {
        assert_said(&one(fine), &[]);
    }
}

#[test]
fn dead_letters_that_are_copied_on() {
    let with = |include: &str| {
        routes(&format!(
            "  r: {{ source: a, target: b, topics: {{ include: [o] }}, on_error: dead_letter, dead_letter: {{ topic: o.dead }} }}\n  s: {{ source: b, target: c, topics: {{ include: {include} }} }}\n"
        ))
    };
    assert_said(
        &with("['o.*']"),
        &["8:50 W0703 this pattern selects the dead letters of route `r`: they are copied on to c"],
    );
    assert_said(&with(r"['o\.dead']"), &[]);
    assert_said(&with("['o']"), &[]);
    assert_said(&with(r"['o.*'], exclude: ['.*\.dead']"), &[]);
}

#[test]
fn one_cluster_under_two_names() {
    let text = route("about: x").replace(
        "b: { bootstrap_servers: ['b:1'] }",
        "b: { bootstrap_servers: ['c:1', 'A:1'] }",
    );
    let text = text.replace(
        "    about: x\n",
        "    handlers: [{ rename: { topic: 'x.{topic}' } }]\n",
    );
    assert_said(
        &text,
        &["4:3 W0710 `b` is the same cluster as `a`: both are reached at a:1"],
    );
    assert_said(&text.replace("'A:1'] }", "'A:1'], tls: {} }"), &[]);
}

#[test]
fn what_was_put_in_is_not_repeated() {
    for text in [
        route("handlers: [{ rename: { topic: '${CANARY}-{topic}' } }]")
            .replace("target: b", "target: a")
            .replace("[orders]", "['.+']"),
        route("handlers: [{ rename: { topic: '${CANARY}' } }]").replace("[orders]", "[x, y]"),
        route("about: x").replace("[orders]", "['${CANARY}', '${CANARY}/x']"),
        route("handlers: [{ rename: { topic: '{nothing}' } }]")
            .replace("[orders]", "['${CANARY}']"),
    ] {
        let found = said(&text);
        assert!(
            !found.is_empty() && !found.concat().contains("canary"),
            "{found:?}"
        );
    }
}
