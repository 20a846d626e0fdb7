use super::*;
use crate::config::config_tests::load_text;
use crate::config::render::Colour;
use proptest::prelude::*;
use serde_json::json;

fn load(text: &str) -> Box<Loaded> {
    match load_text(text) {
        Ok(loaded) => Box::new(loaded),
        Err(rejected) => panic!("{text}\n{}", rejected.render(Colour::Never)),
    }
}

#[test]
fn everything_is_written_out_and_secrets_are_not() {
    let loaded = load(
        "version: 1\nclusters:\n  a: { bootstrap_servers: ['a:1'], sasl: { mechanism: PLAIN, username: u, password: literal-canary } }\n  b: { bootstrap_servers: ['${B:-b:1}'], properties: { sasl.oauthbearer.client.secret: '${CANARY}' } }\ndefaults: { workers: 3, limits: { record: 1MiB } }\nroutes:\n  r: { source: a, target: b, about: 'cost $${X}', topics: { include: [o] } }\n",
    );
    let text = effective(&loaded).unwrap();
    let value: Value = serde_yaml::from_str(&text).unwrap();
    assert_eq!(value["routes"]["r"]["workers"], 3);
    assert_eq!(
        value["routes"]["r"]["limits"],
        json!({"in_flight": "64MiB", "record": "1MiB"})
    );
    assert_eq!(value["routes"]["r"]["about"], "cost $${X}");
    assert_eq!(value["clusters"]["b"]["bootstrap_servers"][0], "b:1");
    assert_eq!(value["clusters"]["a"]["sasl"]["password"], "***");
    let properties = &value["clusters"]["b"]["properties"];
    assert_eq!(properties["sasl.oauthbearer.client.secret"], "${CANARY}");
    assert_eq!(value["reload"]["settle"], "500ms");
    assert!(!text.contains("canary") && value.get("defaults").is_none());
}

#[test]
fn references_to_files_mean_the_same_from_anywhere() {
    assert_eq!(
        absolute_references("a${file:x/y}b${N}${file:/z}", Path::new("/etc")),
        "a${file:/etc/x/y}b${N}${file:/z}"
    );
}

fn word() -> impl Strategy<Value = Value> {
    "[a-z]{1,6}".prop_map(Value::from)
}

fn of(values: &[Value]) -> impl Strategy<Value = Value> + use<> {
    prop::sample::select(values.to_vec())
}

/// Some of the members, each with some value.
fn some(members: Vec<(&'static str, BoxedStrategy<Value>)>) -> impl Strategy<Value = Value> {
    let members: Vec<_> = members
        .into_iter()
        .map(|(name, value)| {
            prop::option::of(value).prop_map(move |v| v.map(|v| (name.to_owned(), v)))
        })
        .collect();
    members.prop_map(|members| Value::Object(members.into_iter().flatten().collect()))
}

fn durations() -> BoxedStrategy<Value> {
    (1..90u32, prop::sample::select(vec!["ms", "s", "m", "h"]))
        .prop_map(|(n, unit)| Value::from(format!("{n}{unit}")))
        .boxed()
}

fn sizes() -> BoxedStrategy<Value> {
    (
        1..900u32,
        prop::sample::select(vec!["KiB", "MiB", "kB", "MB"]),
    )
        .prop_map(|(n, unit)| Value::from(format!("{n}{unit}")))
        .boxed()
}

fn steps() -> BoxedStrategy<Value> {
    let step = of(&[
        json!({"filter": {"drop": "tombstone"}, "name": "no: deletes"}),
        json!({"filter": {"keep": {"value.amount": {"gt": 1.5, "lte": 9}, "header.x": ["a", "no", "012"]}}}),
        json!({"filter": {"sample": "1%", "by": "key", "seed": "~"}}),
        json!({"rename": {"topic": "{source}.{topic}"}}),
        json!({"rename": {"header": {"a": "b"}}}),
        json!({"reformat": {"set": {"header.x-dc": "{source}", "value.seen": true, "value.n": null}, "unset": ["header.y-*"]}}),
        json!({"reformat": {"rekey": {"from": ["value.a", "value.b"], "as": "json"}}}),
        json!({"use": "tidy"}),
    ]);
    prop::collection::vec(step, 0..4)
        .prop_map(Value::Array)
        .boxed()
}

fn settings() -> Vec<(&'static str, BoxedStrategy<Value>)> {
    let limits = some(vec![("in_flight", sizes()), ("record", sizes())]).boxed();
    let creation = some(vec![
        ("enabled", any::<bool>().prop_map(Value::from).boxed()),
        ("replication_factor", (1..5).prop_map(Value::from).boxed()),
        (
            "configs",
            prop::collection::vec(word(), 0..3)
                .prop_map(Value::Array)
                .boxed(),
        ),
    ]);
    vec![
        ("start", of(&[json!("earliest"), json!("latest")]).boxed()),
        (
            "on_gap",
            of(&[json!("stop"), json!("earliest"), json!("latest")]).boxed(),
        ),
        (
            "on_error",
            of(&[json!("stop"), json!("skip"), json!("abort_route")]).boxed(),
        ),
        ("handlers", steps()),
        (
            "partitions",
            of(&[
                json!("match"),
                json!({"policy": "match", "on_fewer": "modulo"}),
                json!({"fixed": 0}),
                json!({"by": "value.id"}),
                json!("key_hash"),
            ])
            .boxed(),
        ),
        ("workers", (1..9).prop_map(Value::from).boxed()),
        ("handler_threads", (1..9).prop_map(Value::from).boxed()),
        ("producers", (1..9).prop_map(Value::from).boxed()),
        ("topic_creation", creation.boxed()),
        ("limits", limits),
        ("commit_interval", durations()),
        ("discovery_interval", durations()),
        (
            "rebalance_listener",
            of(&[json!("log"), json!({"exec": ["notify", "a b", "$HOME"]})]).boxed(),
        ),
        ("until", of(&[json!("end"), json!("stopped")]).boxed()),
    ]
}

fn file() -> impl Strategy<Value = Value> {
    let about = of(&[
        json!("no"),
        json!("a: b # c"),
        json!("'"),
        json!("x\ny\n"),
        json!("$${X} 100%"),
        json!("é🦀"),
        json!(" 12 "),
    ]);
    let mut route = settings();
    route.push(("about", about.boxed()));
    let sasl =
        of(&[json!({"mechanism": "SCRAM-SHA-512", "username": "012", "password": "${CANARY}"})]);
    let tls = some(vec![
        ("ca", word().boxed()),
        (
            "verify_hostname",
            any::<bool>().prop_map(Value::from).boxed(),
        ),
    ]);
    let cluster = some(vec![
        ("sasl", sasl.boxed()),
        ("tls", tls.boxed()),
        ("expect_cluster_id", word().boxed()),
    ]);
    let top = some(vec![
        ("group", word().boxed()),
        ("limits", some(vec![("memory", sizes())]).boxed()),
        (
            "reload",
            some(vec![
                ("watch", any::<bool>().prop_map(Value::from).boxed()),
                ("settle", durations()),
            ])
            .boxed(),
        ),
        ("shutdown", some(vec![("grace", durations())]).boxed()),
        ("defaults", some(settings()).boxed()),
    ]);
    (top, prop::collection::vec(some(route), 1..4), cluster).prop_map(
        |(mut top, routes, cluster)| {
            top["version"] = json!(1);
            top["clusters"] = json!({"a": cluster, "b": {}, "c": {}});
            for (name, cluster) in top["clusters"].as_object_mut().into_iter().flatten() {
                cluster["bootstrap_servers"] = json!([format!("{name}:9092")]);
            }
            top["handlers"] = json!({"tidy": [{"filter": {"drop": "empty"}}]});
            for (index, mut route) in routes.into_iter().enumerate() {
                route["source"] = json!(["a", "c"][index % 2]);
                route["target"] = json!("b");
                route["topics"] = json!({"include": [format!("t{index}"), r"x\d+"]});
                top["routes"][format!("r{index}")] = route;
            }
            top
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    /// parse → spec → printed → parse gives the same spec.
    #[test]
    fn what_is_printed_loads_as_the_same(file in file()) {
        let text = serde_yaml::to_string(&file).unwrap();
        // What is generated may clash in its meaning, which is not the matter here.
        let Ok(first) = load_text(&text) else { return Ok(()) };
        let printed = effective(&first).unwrap();
        let again = load(&printed);
        prop_assert_eq!(&first.spec, &again.spec, "{}", printed);
        prop_assert_eq!(effective(&again).unwrap(), printed);
    }
}
