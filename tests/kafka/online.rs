//! `mirror check --online`: what the clusters say about a file, each finding both ways, and that nothing is touched.

use crate::support::cluster::{Admin, pair, settings};
use crate::support::process::{Setup, cluster, route};
use crate::support::wait;
use crate::support::workload::{Field, Writer, field};
use kafka_harness::Cluster;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpListener;
use std::time::Duration;

const ASK: Duration = Duration::from_secs(20);

/// What `check --online` found.
struct Found {
    exit: Option<i32>,
    /// Codes of online findings by what they speak of: a cluster's or a route's name.
    codes: BTreeMap<String, BTreeSet<String>>,
    json: Value,
}

impl Found {
    fn by(setup: &Setup, args: &[&str]) -> Self {
        let all = [&["check", "--online", "--format", "json"], args].concat();
        let output = setup.ask(&all);
        let text = String::from_utf8_lossy(&output.stdout);
        let json: Value = serde_json::from_str(&text)
            .unwrap_or_else(|e| panic!("{e}: {text}{}", String::from_utf8_lossy(&output.stderr)));
        let mut codes: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for diagnostic in json["diagnostics"].as_array().expect("diagnostics") {
            let message = diagnostic["message"].as_str().expect("a message");
            println!(
                "{}: {message}",
                diagnostic["code"].as_str().expect("a code")
            );
            let subject = message.split([' ', ':']).find(|w| *w != "cluster");
            let subject = subject.unwrap_or_default().trim_matches('`').to_owned();
            let code = diagnostic["code"].as_str().expect("a code").to_owned();
            // What is said offline has tests of its own.
            if code[1..].starts_with("08") {
                codes.entry(subject).or_default().insert(code);
            }
        }
        Self {
            exit: output.status.code(),
            codes,
            json,
        }
    }

    /// The codes about a cluster or route.
    fn about(&self, subject: &str) -> Vec<&str> {
        let codes = self.codes.get(subject).into_iter().flatten();
        codes.map(String::as_str).collect()
    }

    /// What is said of one flow.
    fn flow(&self, route: &str) -> &Value {
        let flows = self.json["online"]["flows"].as_array().expect("flows");
        let flow = flows.iter().find(|f| f["route"] == route);
        flow.unwrap_or_else(|| panic!("no flow of {route}"))
    }
}

/// Topics with their partitions, groups, and positions of some of them.
type Everything = (BTreeMap<String, usize>, BTreeSet<String>, Vec<String>);

/// Nothing is there that was not there before. A group of another test may be gone: every ten minutes a broker forgets those
/// that are empty.
fn assert_untouched(before: &Everything, after: &Everything, what: &str) {
    assert_eq!((&before.0, &before.2), (&after.0, &after.2), "{what}");
    let new: Vec<_> = after.1.difference(&before.1).collect();
    assert!(new.is_empty(), "{what}: {new:?}");
}

fn everything(bootstrap: &str, groups: &[String]) -> Everything {
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", bootstrap)
        .create()
        .expect("a client");
    let metadata = consumer.fetch_metadata(None, ASK).expect("metadata");
    let topics: BTreeMap<String, usize> = metadata
        .topics()
        .iter()
        .map(|t| (t.name().to_owned(), t.partitions().len()))
        .collect();
    let list = consumer.fetch_group_list(None, ASK).expect("groups");
    let names = list.groups().iter().map(|g| g.name().to_owned()).collect();
    let mut all = TopicPartitionList::new();
    for (topic, partitions) in topics.iter().filter(|(t, _)| t.starts_with("on-")) {
        all.add_partition_range(topic, 0, i32::try_from(*partitions).unwrap() - 1);
    }
    // Each looks for its group's coordinator: not on a cluster that is to stay untouched.
    let committed = groups.iter().map(|group| {
        let member = simple(bootstrap, group);
        let answer = member
            .committed_offsets(all.clone(), ASK)
            .expect("positions");
        let places = answer.elements().into_iter();
        let there: Vec<String> = places
            .filter(|e| matches!(e.offset(), Offset::Offset(_)))
            .map(|e| format!("{}[{}] {:?}", e.topic(), e.partition(), e.offset()))
            .collect();
        format!("{group} {there:?}")
    });
    let positions = committed.collect();
    (topics, names, positions)
}

#[test]
fn why_a_cluster_does_not_answer_is_said_and_nothing_hangs() {
    let secure = settings(
        Cluster::builder("online")
            .tls()
            .sasl_plain("alice", "secret"),
    );
    let (pair, secure) = (pair(), secure.start().unwrap());
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    let mute = mute.local_addr().unwrap().to_string();
    let with = |bootstrap: &str, tls: Option<Value>, sasl: Option<Value>| {
        let mut cluster = cluster(bootstrap);
        for (key, value) in [("tls", tls), ("sasl", sasl)] {
            if let Some(value) = value {
                cluster[key] = value;
            }
        }
        cluster
    };
    let ca = || Some(json!({ "ca": secure.ca_pem() }));
    let alice = |mechanism: &str, password: &str| {
        Some(json!({ "mechanism": mechanism, "username": "alice", "password": password }))
    };
    let tls = secure.bootstrap_tls();
    let sasl = secure.bootstrap_sasl_plain();
    let mut clusters = json!({
        "hub": cluster(&pair.target.bootstrap()),
        "trusted": with(&tls, ca(), None),
        "both": with(&secure.bootstrap_sasl_tls(), ca(), alice("PLAIN", "secret")),
        "untrusted": with(&tls, Some(json!({})), None),
        "tls-to-plain": with(&secure.bootstrap(), ca(), None),
        "plain-to-tls": with(&tls, None, None),
        "sasl-to-plain": with(&secure.bootstrap(), None, alice("PLAIN", "secret")),
        "plain-to-sasl": with(&sasl, None, None),
        "bad-password": with(&sasl, None, alice("PLAIN", "wrong")),
        "bad-mechanism": with(&sasl, None, alice("SCRAM-SHA-256", "secret")),
        "refused": with("127.0.0.1:1", None, None),
        "unknown": with("no-such-host.invalid:9092", None, None),
        "mute": with(&mute, None, None),
        "mute-tls": with(&mute, ca(), None),
        "no-file": with(&tls, Some(json!({ "ca": "nowhere.pem" })), None),
    });
    let names: Vec<String> = clusters
        .as_object()
        .unwrap()
        .keys()
        .filter(|n| *n != "hub")
        .cloned()
        .collect();
    let mut all = route("trusted", "hub", "on-nothing");
    all["source"] = json!(names);
    let setup = Setup::new(clusters.clone(), json!({ "all": all }));
    let before = everything(&secure.bootstrap(), &[]);
    let found = Found::by(&setup, &["--timeout", "4"]);
    let expected = [
        ("hub", None),
        ("trusted", None),
        ("both", Some("W0801")),
        ("untrusted", Some("E0804")),
        ("tls-to-plain", Some("E0805")),
        ("plain-to-tls", Some("E0805")),
        ("sasl-to-plain", Some("E0805")),
        ("plain-to-sasl", Some("E0805")),
        ("bad-password", Some("E0806")),
        ("bad-mechanism", Some("E0806")),
        ("refused", Some("E0802")),
        ("unknown", Some("E0801")),
        ("mute", Some("E0803")),
        ("mute-tls", Some("E0803")),
        ("no-file", Some("E0819")),
    ];
    for (cluster, code) in expected {
        let code: Vec<&str> = code.into_iter().filter(|c| *c != "W0801").collect();
        let errors: Vec<&str> = found
            .about(cluster)
            .into_iter()
            .filter(|c| c.starts_with('E'))
            .collect();
        assert_eq!(errors, code, "{cluster}");
    }
    assert_eq!(found.exit, Some(1), "a definite no");
    let after = everything(&secure.bootstrap(), &[]);
    assert_untouched(&before, &after, "nobody made the topic for positions");

    // A broker whose clock stands still takes connections and says nothing.
    secure.broker(1).freeze().unwrap();
    clusters
        .as_object_mut()
        .unwrap()
        .retain(|name, _| ["hub", "trusted"].contains(&name.as_str()));
    let frozen = Setup::new(
        clusters,
        json!({ "r": route("trusted", "hub", "on-nothing") }),
    );
    let found = Found::by(&frozen, &["--timeout", "2"]);
    assert_eq!(
        (found.about("trusted"), found.exit),
        (vec!["E0803"], Some(5))
    );
    assert_eq!(found.json["online"]["clusters"]["hub"]["answered"], true);
    secure.broker(1).thaw().unwrap();
    wait::until("the broker answers again", ASK, || {
        Found::by(&frozen, &["--deny-warnings"]).exit == Some(3)
    });
}

#[test]
fn rights_are_asked_for_on_both_sides() {
    let pair = pair();
    let admin = Admin::new(&pair.target.bootstrap());
    let source = Admin::new(&pair.source.bootstrap());
    admin.create("on-rights-there", 1, &[]);
    admin.create("on-rights-back", 1, &[]);
    for topic in ["on-rights-there", "on-rights-new"] {
        source.create(topic, 1, &[]);
    }
    let mut limited = cluster(&pair.target.bootstrap_sasl_plain());
    limited["sasl"] = json!({ "mechanism": "PLAIN", "username": "mirror", "password": "secret" });
    let clusters = json!({ "source": cluster(&pair.source.bootstrap()), "limited": limited });
    let mut out = route("source", "limited", "on-rights-(there|new)");
    out["topic_creation"] = json!({ "replication_factor": 1 });
    let back = route("limited", "source", "on-rights-back");
    let setup = Setup::new(clusters, json!({ "out": out, "back": back }));

    let said = |found: &Found| -> Vec<String> {
        let all = found.json["diagnostics"].as_array().unwrap();
        let lines = all.iter().map(|d| {
            format!(
                "{} {}",
                d["code"].as_str().unwrap(),
                d["message"].as_str().unwrap()
            )
        });
        lines.collect()
    };
    let has = |lines: &[String], parts: [&str; 3]| {
        lines
            .iter()
            .any(|line| parts.iter().all(|p| line.contains(p)))
    };

    let found = Found::by(&setup, &[]);
    let lines = said(&found);
    for parts in [
        ["E0809 out", "Describe", "on-rights-there"],
        ["E0809 out", "Create", "on-rights-new"],
        [
            "E0809 back",
            "Read",
            "group mirror.default.back.limited.source",
        ],
        ["E0809 back", "Describe", "on-rights-back"],
    ] {
        assert!(has(&lines, parts), "{parts:?} in {lines:#?}");
    }
    assert_eq!(found.exit, Some(1));

    let grant = |args: &[&str]| {
        let who = ["--allow-principal", "User:mirror"];
        pair.target.acl_add(&[&who, args].concat()).unwrap();
    };
    grant(&[
        "--operation",
        "Describe",
        "--topic",
        "on-rights-",
        "--resource-pattern-type",
        "prefixed",
    ]);
    let lines = said(&Found::by(&setup, &[]));
    for parts in [
        ["E0809 out", "Write", "on-rights-there"],
        ["W0816 out", "Alter", "on-rights-there"],
        ["W0813 out", "DescribeConfigs", "on-rights-there"],
        ["E0809 back", "Read", "topic on-rights-back"],
    ] {
        assert!(has(&lines, parts), "{parts:?} in {lines:#?}");
    }

    grant(&[
        "--operation",
        "All",
        "--topic",
        "on-rights-",
        "--resource-pattern-type",
        "prefixed",
    ]);
    grant(&[
        "--operation",
        "Read",
        "--group",
        "mirror.",
        "--resource-pattern-type",
        "prefixed",
    ]);
    wait::until("every right is granted", ASK, || {
        let found = Found::by(&setup, &["--deny-warnings"]);
        (found.about("out"), found.about("back"), found.exit) == (vec![], vec![], Some(0))
    });
}

/// A topic at the source and one at the target, with settings, and a few old records.
struct Topics<'a> {
    source: &'a Admin,
    target: &'a Admin,
    writer: Writer,
}

impl Topics<'_> {
    fn pair(&mut self, name: &str, source: &[(&str, &str)], target: &[(&str, &str)]) -> Field {
        self.source.create(name, 1, source);
        self.target.create(name, 1, target);
        let field = field(name, 1);
        for _ in 0..20 {
            self.writer
                .write(&field, 0, |record| record.key = Some(b"key".to_vec()));
        }
        field
    }
}

#[test]
fn what_topics_groups_and_positions_say_is_found_and_found_no_more() {
    let pair = pair();
    let (from, to) = (pair.source.bootstrap(), pair.target.bootstrap());
    let (source, target) = (Admin::new(&from), Admin::new(&to));
    let mut topics = Topics {
        source: &source,
        target: &target,
        writer: Writer::new(&from),
    };
    topics.pair("on-fine", &[], &[]);
    topics.pair("on-sizes", &[("max.message.bytes", "2000000")], &[]);
    topics.pair(
        "on-stamp",
        &[],
        &[("message.timestamp.type", "LogAppendTime")],
    );
    topics.pair(
        "on-range",
        &[],
        &[("message.timestamp.before.max.ms", "60000")],
    );
    topics.pair("on-codec", &[], &[("compression.type", "zstd")]);
    topics.pair("on-kept", &[], &[("retention.ms", "60000")]);
    // Old enough to be deleted within the hour, and not yet.
    source.create("on-expires", 1, &[("retention.ms", "36000000")]);
    target.create("on-expires", 1, &[]);
    let hours_ago = now_ms() - 34_200_000;
    topics.writer.write(&field("on-expires", 1), 0, |record| {
        record.timestamp = hours_ago;
    });
    topics.pair("on-insync", &[], &[("min.insync.replicas", "2")]);
    let compact = [("cleanup.policy", "compact")];
    topics.pair("on-deletes", &compact, &compact);
    let keyless = topics.pair("on-keys", &[], &compact);
    topics.writer.write(&keyless, 0, |record| record.key = None);
    source.create("on-few", 6, &[]);
    target.create("on-few", 3, &[]);
    source.create("on-new", 4, &[]);
    let taken = topics.pair("on-taken", &[], &[]);
    let gap = topics.pair("on-gap", &[], &[]);
    topics.writer.settle(ASK);

    // By another address: offline nobody can tell that it is the source.
    let alias = from.replace("127.0.0.1", "localhost");
    let plain = |topic: &str| route("source", "target", topic);
    let changed = |topic: &str, changes: Value| {
        let mut route = plain(topic);
        for (key, value) in changes.as_object().unwrap() {
            route[key] = value.clone();
        }
        route
    };
    let clusters =
        || json!({ "source": cluster(&from), "target": cluster(&to), "alias": cluster(&alias) });
    // Positions of our own, and then records that are gone before they were copied.
    let ours = json!({ "gap": plain("on-gap"), "skip": changed("on-gap", json!({ "on_gap": "earliest" })) });
    let first = Setup::new(clusters(), ours);
    assert_eq!(
        first
            .run(&["--until-caught-up"])
            .wait(wait::PATIENCE)
            .code(),
        Some(0)
    );
    topics.writer.fill(&[gap], 20);
    topics.writer.settle(ASK);
    source.delete_records("on-gap", 0, 30);
    let group = |route: &str| format!("mirror.default.{route}.source.target");
    commit(&from, &group("foreign"), "on-fine", 7);
    let member = join(&from, &group("taken"), &taken.topic);

    let routes = json!({
        "fine": plain("on-fine"),
        "nothing": plain("on-not-there"),
        "sizes": plain("on-sizes"),
        "stamp": plain("on-stamp"),
        "range": plain("on-range"),
        "codec": plain("on-codec"),
        "kept": plain("on-kept"),
        "expires": plain("on-expires"),
        "insync": plain("on-insync"),
        "keys": plain("on-keys"),
        "keys-given": changed("on-keys", json!({ "handlers": [{ "reformat": { "set": { "key": "{topic}" } } }] })),
        "deletes": changed("on-deletes", json!({ "handlers": [{ "filter": { "drop": "tombstone" } }] })),
        "deletes-kept": plain("on-deletes"),
        "few": changed("on-few", json!({ "topic_creation": { "enabled": false } })),
        "few-shared": changed("on-few", json!({ "topic_creation": { "enabled": false }, "partitions": { "policy": "match", "on_fewer": "modulo" } })),
        "few-grown": plain("on-few"),
        "missing": changed("on-new", json!({ "topic_creation": { "enabled": false } })),
        "missing-made": changed("on-new", json!({ "on_error": "dead_letter", "dead_letter": { "topic": "on-letters" } })),
        "factor": changed("on-new", json!({ "topic_creation": { "replication_factor": 3 } })),
        "gap": plain("on-gap"),
        "skip": changed("on-gap", json!({ "on_gap": "earliest" })),
        "foreign": plain("on-fine"),
        "taken": plain("on-taken"),
        "latest": changed("on-fine", json!({ "start": "latest" })),
        "itself": changed("on-fine", json!({ "target": "alias" })),
    });
    let groups: Vec<String> = routes
        .as_object()
        .unwrap()
        .keys()
        .map(|r| group(r))
        .collect();
    let setup = Setup::new(clusters(), routes.clone());
    let before = (everything(&from, &groups), everything(&to, &[]));
    let found = Found::by(&setup, &["--timeout", "20"]);
    assert_untouched(&before.0, &everything(&from, &groups), "a check");
    assert_untouched(&before.1, &everything(&to, &[]), "a check");

    let expected: &[(&str, &[&str])] = &[
        ("fine", &[]),
        ("nothing", &["W0802"]),
        ("sizes", &["W0804"]),
        ("stamp", &["W0805"]),
        ("range", &["E0815"]),
        ("codec", &["W0808"]),
        ("kept", &["W0809"]),
        ("expires", &["W0810"]),
        ("insync", &["E0814"]),
        ("keys", &["E0816", "W0806"]),
        ("keys-given", &["W0806"]),
        ("deletes", &["W0807"]),
        ("deletes-kept", &[]),
        ("few", &["E0812"]),
        ("few-shared", &["W0803"]),
        ("few-grown", &[]),
        ("missing", &["E0810"]),
        ("missing-made", &[]),
        ("factor", &["E0813"]),
        ("gap", &["E0818"]),
        ("skip", &["W0812"]),
        ("foreign", &["W0811"]),
        ("taken", &["E0817"]),
        ("latest", &[]),
        ("itself", &["E0808"]),
        ("source", &["W0801"]),
        ("target", &[]),
    ];
    for (subject, codes) in expected {
        assert_eq!(found.about(subject), *codes, "{subject}");
    }
    assert_eq!(found.exit, Some(1));
    assert_eq!(found.flow("fine")["begins"]["earliest"], 1);
    assert_eq!(found.flow("fine")["behind"]["records"], 20);
    assert_eq!(found.flow("latest")["begins"]["latest"], 1);
    assert_eq!(found.flow("foreign")["begins"]["committed"], 1);
    assert_eq!(found.flow("foreign")["behind"]["records"], 13);
    assert_eq!(found.flow("gap")["begins"]["halted"], 1);
    assert_eq!(
        found.flow("few-grown")["grows"],
        json!([{ "topic": "on-few", "from": 3, "to": 6 }])
    );
    let made = &found.flow("missing-made")["creates"];
    let made: Vec<&str> = made
        .as_array()
        .unwrap()
        .iter()
        .map(|t| t["topic"].as_str().unwrap())
        .collect();
    assert_eq!(made, ["on-letters", "on-new"]);

    // The same as a plan has it: of the routes that are new only.
    let was = first.file();
    let plan = setup.ask(&[
        "plan",
        "--online",
        "--format",
        "json",
        "--against",
        was.to_str().unwrap(),
    ]);
    let plan: Value = serde_json::from_slice(&plan.stdout).expect("a plan");
    let flows = plan["online"]["flows"].as_array().expect("flows");
    let flow = |route: &str| flows.iter().find(|f| f["route"] == route);
    assert_eq!(flow("gap"), None, "{plan:#}");
    assert_eq!(flow("fine").unwrap()["behind"]["records"], 20);
    assert!(flow("fine").unwrap()["behind"]["bytes"].as_u64() > Some(20));
    assert_eq!(flow("few-grown").unwrap()["grows"][0]["to"], 6);

    // And against a process, which asks by itself.
    let idle = Setup::new(clusters(), json!({ "idle": plain("on-not-there") }));
    let process = idle.run(&[]);
    wait::until("the process answers", ASK, || process.status().is_some());
    idle.write(
        clusters(),
        json!({ "idle": plain("on-not-there"), "fine": plain("on-fine"), "made": plain("on-new") }),
    );
    let plan = idle.ask(&["plan", "--online", "--exit-code", "--format", "json"]);
    assert_eq!(plan.status.code(), Some(4));
    let plan: Value = serde_json::from_slice(&plan.stdout).expect("a plan");
    let online = &plan["online"];
    assert_eq!(online["complete"], true, "{plan:#}");
    let (fine, made) = (&online["flows"][0], &online["flows"][1]);
    assert_eq!(fine["behind"]["records"], 20, "{plan:#}");
    let created = json!([{ "topic": "on-new", "partitions": 4, "replication_factor": null }]);
    assert_eq!(made["creates"], created, "{plan:#}");
    assert_eq!(process.terminate().code(), Some(0));
    assert_untouched(&before.0, &everything(&from, &groups), "plans");
    assert_untouched(&before.1, &everything(&to, &[]), "plans");

    // Put right, nothing of it is found any more.
    member.unsubscribe();
    drop(member);
    for topic in [
        "on-stamp",
        "on-range",
        "on-codec",
        "on-kept",
        "on-insync",
        "on-keys",
    ] {
        target.set(topic, "retention.bytes", "-1");
    }
    for topic in ["on-sizes", "on-expires"] {
        source.set(topic, "retention.bytes", "-1");
    }
    target.grow("on-few", 6);
    target.create("on-new", 4, &[]);
    let subjects = [
        "sizes",
        "stamp",
        "range",
        "codec",
        "kept",
        "expires",
        "insync",
        "keys",
        "few",
        "few-shared",
        "missing",
        "factor",
        "taken",
    ];
    wait::until("everything is put right", ASK, || {
        let found = Found::by(&setup, &["--timeout", "20"]);
        subjects
            .iter()
            .all(|subject| found.about(subject).is_empty())
    });
    let mut other = clusters();
    other["target"]["expect_cluster_id"] = json!("another-cluster");
    let found = Found::by(&Setup::new(other, json!({ "fine": plain("on-fine") })), &[]);
    assert_eq!(
        (found.about("target"), found.exit),
        (vec!["E0807"], Some(1))
    );
}

fn now_ms() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    i64::try_from(now.expect("after 1970").as_millis()).expect("a time")
}

/// A client that may speak of a group and is not in it.
fn simple(bootstrap: &str, group: &str) -> BaseConsumer {
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", bootstrap)
        .set("group.id", group);
    config.create().expect("a consumer")
}

/// Commits a position without joining the group.
fn commit(bootstrap: &str, group: &str, topic: &str, offset: i64) {
    let mut list = TopicPartitionList::new();
    list.add_partition_offset(topic, 0, Offset::Offset(offset))
        .expect("an offset");
    simple(bootstrap, group)
        .commit(&list, CommitMode::Sync)
        .expect("committed");
}

/// Somebody else in the group.
fn join(bootstrap: &str, group: &str, topic: &str) -> BaseConsumer {
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", bootstrap)
        .set("group.id", group)
        .set("client.id", "stranger")
        .set("enable.auto.commit", "false")
        .create()
        .expect("a consumer");
    consumer.subscribe(&[topic]).expect("subscribed");
    wait::until("the stranger is a member", ASK, || {
        let _ = consumer.poll(Duration::from_millis(200));
        consumer.assignment().expect("an assignment").count() > 0
    });
    consumer
}
