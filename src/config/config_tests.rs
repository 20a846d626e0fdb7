//! Whole files in, diagnostics out: at least one test for each code.

use super::*;
use std::collections::BTreeSet;
use std::path::Path;

fn load_text(text: &str) -> Result<Loaded, Box<Rejected>> {
    load_files(&[("m.yaml", text)])
}

fn load_files(files: &[(&str, &str)]) -> Result<Loaded, Box<Rejected>> {
    let folder = tempfile::tempdir().unwrap();
    let mut paths = Vec::new();
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        paths.push(path);
    }
    load_paths(&paths)
}

fn load_paths(paths: &[PathBuf]) -> Result<Loaded, Box<Rejected>> {
    let (registry, listeners) = (Registry::default(), Listeners::default());
    let environment = |name: &str| match name {
        "N" => Some("4".to_owned()),
        "ON" => Some("true".to_owned()),
        "CANARY" => Some("canary-value".to_owned()),
        _ => None,
    };
    let options = LoadOptions {
        environment: &environment,
        registry: &registry,
        listeners: &listeners,
    };
    load(paths, &options)
}

/// A sound file with a setting of the route, a member of the cluster `a`, and top-level lines.
fn file(cluster: &str, route: &str, top: &str) -> String {
    format!(
        "version: 1\nclusters:\n  a: {{ bootstrap_servers: ['a:1']{cluster} }}\n  b: {{ bootstrap_servers: ['b:1'] }}\nroutes:\n  r:\n    source: a\n    target: b\n    topics: {{ include: [orders] }}\n{route}{top}"
    )
}

fn lines(found: &[Diagnostic]) -> Vec<String> {
    let short = |d: &Diagnostic| {
        let at = d
            .place
            .position
            .as_ref()
            .map_or((0, 0), |p| (p.line, p.column));
        format!("{}:{} {} {}", at.0, at.1, d.code.as_str(), d.message)
    };
    found.iter().map(short).collect()
}

/// What is said about a text, errors and warnings.
fn said(text: &str) -> Vec<String> {
    match load_text(text) {
        Ok(loaded) => lines(&loaded.warnings),
        Err(rejected) => lines(&rejected.diagnostics),
    }
}

#[track_caller]
fn assert_said(text: &str, expected: &[&str]) {
    let said = said(text);
    let same =
        said.len() == expected.len() && said.iter().zip(expected).all(|(s, e)| s.starts_with(e));
    assert!(same, "{text}\nsaid:\n{said:#?}\nexpected:\n{expected:#?}");
}

fn route(setting: &str) -> String {
    file("", &format!("    {setting}\n"), "")
}

fn cluster(setting: &str) -> String {
    file(&format!(", {setting}"), "", "")
}

#[test]
fn a_small_file_gets_every_default() {
    let loaded = load_text(&file("", "", ""))
        .map_err(|r| r.render(Colour::Never))
        .unwrap();
    let spec = &loaded.spec;
    let route = spec.routes.values().next().unwrap();
    assert_eq!(spec.group.as_str(), "default");
    assert_eq!(spec.memory_bytes, 1 << 30);
    assert_eq!(spec.grace.as_secs(), 25);
    assert_eq!(spec.reload.settle.as_millis(), 500);
    assert_eq!(spec.admin.listen.unwrap().to_string(), "127.0.0.1:8787");
    assert_eq!(route.start, spec::Start::Earliest);
    assert_eq!(route.on_gap, spec::OnGap::Stop);
    assert_eq!(route.on_error, spec::OnError::Stop);
    assert_eq!(route.in_flight_bytes, 64 << 20);
    assert_eq!(route.threads.queue_records, 100_000);
    assert_eq!(route.threads.queue_bytes, 32 << 20);
    assert_eq!(
        (route.threads.workers.get(), route.threads.producers.get()),
        (1, 1)
    );
    assert_eq!(route.threads.handlers, None);
    assert_eq!(route.commit_interval.as_secs(), 1);
    assert_eq!(route.discovery_interval.as_secs(), 5);
    assert_eq!(route.topic_creation.replication_factor, None);
    assert_eq!(route.topic_creation.configs.len(), 3);
    assert_eq!(loaded.hash.len(), 64);
    assert!(loaded.warnings.is_empty());
}

#[test]
fn defaults_merge_key_by_key_and_the_route_wins() {
    let text = file(
        "",
        "    topic_creation: { configs: [retention.ms] }\n    partitions: { fixed: 2 }\n",
        "defaults:\n  workers: 3\n  partitions: { policy: match, on_fewer: modulo }\n  topic_creation: { replication_factor: 2 }\n",
    );
    let loaded = load_text(&text)
        .map_err(|r| r.render(Colour::Never))
        .unwrap();
    let route = loaded.spec.routes.values().next().unwrap();
    assert_eq!(route.threads.workers.get(), 3);
    assert_eq!(route.topic_creation.replication_factor, Some(2));
    assert_eq!(route.topic_creation.configs, ["retention.ms"]);
    assert_eq!(route.policy, crate::partition::PolicySpec::Fixed(2));
}

#[test]
fn five_mistakes_are_five_errors_at_their_places() {
    let text = "\
version: 1
clusters:
  lisbon: { bootstrap_servers: ['l:1'] }
  hub: { bootstrap_servers: ['h:1'], bootstrap_server: x }
routes:
  orders:
    source: lisbn
    target: hub
    topics: { include: ['orders('] }
    commit_interval: 5
  orders:
    source: lisbon
";
    let rejected = load_text(text).unwrap_err();
    assert_eq!(
        lines(&rejected.diagnostics),
        [
            "4:38 E0301 unknown key `bootstrap_server`",
            "7:13 E0402 unknown cluster `lisbn`",
            "9:32 E0405 not a regex: unclosed group",
            "10:22 E0305 `commit_interval`: a duration without a unit",
            "11:3 E0105 `orders` stands twice in one map",
        ]
    );
    let text = rejected.render(Colour::Never);
    for help in [
        "did you mean `bootstrap_servers`?",
        "did you mean `lisbon`?",
        "write `5s` or `5ms`",
    ] {
        assert!(text.contains(help), "{help} is not in\n{text}");
    }
    assert!(rejected.first_error().contains("m.yaml:4:38: error[E0301]"));
}

#[test]
fn keys_types_and_values() {
    assert_said("[]\n", &["1:1 E0303 the file is not a map"]);
    assert_said(
        "version: 1\nclusters: {}\n",
        &["1:1 E0302 the file has no `routes`"],
    );
    assert_said(
        &file("", "", "routs: {}\n"),
        &["10:1 E0301 unknown key `routs`"],
    );
    assert_said(
        &route("on_gap: skip"),
        &["10:13 E0304 `on_gap` cannot be `skip`"],
    );
    assert_said(&route("on_gap: [x]"), &["10:13 E0304 `on_gap` takes"]);
    assert_said(
        &route("workers: two"),
        &["10:14 E0303 `workers` must be a whole number, not a text"],
    );
    assert_said(
        &route("workers: 0"),
        &["10:14 E0304 `workers` must be at least 1"],
    );
    assert_said(
        &route("about: 12"),
        &["10:12 E0303 `about` must be a text, not a whole number"],
    );
    assert_said(&route("about:"), &["10:5 E0303 `about` has no value"]);
    assert_said(
        &route("limits: { in_flight: 64 }"),
        &["10:26 E0305 `in_flight`: a size without a unit"],
    );
    assert_said(
        &route("commit_interval: 5 s"),
        &["10:22 E0305 `commit_interval`: not a duration"],
    );
    assert_said(
        &route("delivery: exactly_once"),
        &["10:15 E0304 `delivery` cannot be"],
    );
    assert_said(
        &route("accept: [reorder, gaps]"),
        &["10:23 E0304 an item of `accept` cannot be `gaps`"],
    );
    assert_said(
        &file("", "", "group: A.b\n"),
        &["10:8 E0401 `A.b` is not a name"],
    );
    assert_said(
        "version: 2\nclusters: {}\nroutes: {}\n",
        &["1:10 E0304 `version` must be at most 1"],
    );
}

#[test]
fn partitions_have_four_forms() {
    for form in [
        "match",
        "{ policy: match, on_fewer: modulo }",
        "{ fixed: 0 }",
        "key_hash",
        "{ by: key }",
    ] {
        assert_said(&route(&format!("partitions: {form}")), &[]);
    }
    assert_said(
        &route("partitions: keyhash"),
        &["10:17 E0304 `partitions` cannot be `keyhash`"],
    );
    assert_said(
        &route("partitions: { fixed: -1 }"),
        &["10:26 E0304 `fixed` must be at least 0"],
    );
    assert_said(
        &route("partitions: { policy: mach }"),
        &["10:27 E0304 `policy` cannot be `mach`"],
    );
    assert_said(
        &route("partitions: { policy: match, on_fever: stop }"),
        &["10:34 E0301 unknown key `on_fever`"],
    );
    assert_said(
        &route("partitions: 5"),
        &["10:17 E0303 `partitions` must be a text or a map"],
    );
    assert_said(
        &route("partitions: { policy: modulo, on_fewer: stop }"),
        &["10:35 E0413"],
    );
    assert_said(&route("partitions: { by: offset }"), &["10:23 E0304"]);
    assert_said(&route("partitions: round_robin"), &["10:17 W0605"]);
    assert_said(
        &route("partitions: round_robin\n    accept: [reorder]"),
        &[],
    );
}

#[test]
fn clusters_and_names() {
    let doubled = route("x: 1")
        .replace("    x: 1\n", "")
        .replace("source: a", "source: [a, a]");
    assert_said(&doubled, &["7:17 E0413 `a` stands twice in `source`"]);
    assert_said(
        &file("", "", "").replace("target: b", "target: [b, c]"),
        &["8:17 E0402 unknown cluster `c`"],
    );
    assert_said(
        &file("", "", "").replace("  r:", "  R.x:"),
        &["6:3 E0401 `R.x` is not a name"],
    );
    assert_said(
        &cluster("access: read")
            .replace("target: b", "target: a")
            .replace("source: a", "source: b"),
        &["8:13 E0412"],
    );
    assert_said(
        &file("", "", "").replace("target: b", "target: a"),
        &["8:13 E0410"],
    );
    assert_said(&cluster("data_plane: native"), &["3:48 E0414"]);
    assert_said(&route("data_plane: native"), &["10:17 E0414"]);
    assert_said(
        &file("", "", "").replace("'a:1'", "localhost"),
        &["3:28 E0416"],
    );
    assert_said(
        &file("", "", "admin: { listen: localhost }\n"),
        &["10:18 E0416"],
    );
    assert_said(&file("", "", "admin: { listen: 'off' }\n"), &[]);
    assert_said(&cluster("tls: { key: k.pem }"), &["3:41 E0413"]);
    assert_said(
        &cluster("sasl: { mechanism: PLAIN }"),
        &["3:36 E0413", "3:36 E0413"],
    );
    assert_said(
        &cluster("sasl: { mechanism: plain }"),
        &["3:55 E0304 `mechanism` cannot be `plain`"],
    );
    assert_said(&route("was: r"), &["10:10 E0413"]);
    assert_said(&route("was: older"), &[]);
    assert_said(&route("rebalance_listener: lgo"), &["10:25 E0417"]);
    assert_said(&route("rebalance_listener: { exec: [notify, now] }"), &[]);
    assert_said(&route("rebalance_listener: { exec: [] }"), &["10:33 E0304"]);
}

#[test]
fn dead_letters_need_a_topic() {
    assert_said(&route("on_error: dead_letter"), &["10:15 E0411"]);
    assert_said(
        &route("dead_letter: { topic: mirror.rejected }"),
        &["10:5 W0606"],
    );
    assert_said(
        &route("on_error: dead_letter\n    dead_letter: { topic: 'a b' }"),
        &["11:27 E0418"],
    );
    assert_said(&route("queue: { records: 5 }"), &["10:5 W0606"]);
}

#[test]
fn patterns() {
    let with = |pattern: &str| file("", "", "").replace("[orders]", &format!("[{pattern}]"));
    assert_said(&with("'^(?!test).*'"), &["9:27 E0406"]);
    assert_said(&with(r"'(a)\1'"), &["9:29 E0406"]);
    assert_said(&with("orders.eu"), &["9:31 W0601"]);
    assert_said(&with(r#""a\b""#), &["9:25 W0602"]);
    assert_said(&with("'a[z-a]'"), &["9:28 E0405"]);
    assert_said(&with(r#""\d""#), &["9:"]);
    assert_said(
        &with("012"),
        &["9:25 E0303 an item of `include` must be a text"],
    );
    assert_said(
        &with(""),
        &["9:24 E0304 `include` must have at least 1 item"],
    );
}

#[test]
fn client_properties() {
    let with = |p: &str| cluster(&format!("properties: {{ {p} }}"));
    assert_said(&with("socket.keepalive.enable: true, linger.ms: 5"), &[]);
    assert_said(&with("'enable.idempotence': false"), &["3:50 E0407"]);
    assert_said(&with("plugin.library.paths: x"), &["3:50 E0407"]);
    assert_said(&with("no.such.thing: 1"), &["3:50 E0408"]);
    assert_said(&with("linger.ms: many"), &["3:61 E0409"]);
    assert_said(&with("acks: 1, group.id: g"), &["3:50 E0407", "3:59 E0407"]);
    let typed = cluster("tls: {}, properties: { security.protocol: SSL }");
    assert_said(&typed, &["3:59 E0407"]);
}

#[test]
fn chains_are_resolved_and_their_mistakes_found() {
    let with = |handlers: &str, steps: &str| {
        file(
            "",
            &format!("    handlers: [{steps}]\n"),
            &format!("handlers: {handlers}\n"),
        )
    };
    assert_said(&with("{ h: [{ use: g }], g: [] }", "{ use: h }"), &[]);
    assert_said(&with("{ h: [] }", "{ use: hh }"), &["10:23 E0403"]);
    assert_said(&with("{ h: [{ use: h }] }", "{ use: h }"), &["11:24 E0404"]);
    assert_said(&with("{ h: [] }", ""), &["11:13 W0604"]);
    assert_said(&with("{ h: [] }", "{ use: h, name: x }"), &["10:32 E0413"]);
    assert_said(&with("{ H: [] }", "{ use: H }"), &["11:13 E0401"]);
}

#[test]
fn variables_are_typed_by_the_field_and_never_repeated() {
    let loaded = load_text(&route(
        "workers: '${N}'\n    topic_creation: { enabled: '${ON}' }",
    ));
    let loaded = loaded.map_err(|r| r.render(Colour::Never)).unwrap();
    let route_spec = loaded.spec.routes.values().next().unwrap();
    assert_eq!(route_spec.threads.workers.get(), 4);
    assert_said(&route("about: '${N}'"), &[]);
    assert_said(&route("workers: '${NO_SUCH}'"), &["10:15 E0202"]);
    assert_said(&route("about: '${oops'"), &["10:13 E0201"]);
    assert_said(&route("about: '${file:/no/such/file}'"), &["10:13 E0203"]);
    for setting in [
        "workers: '${CANARY}'",
        "on_gap: '${CANARY}'",
        "was: 'X${CANARY}'",
        "commit_interval: '${CANARY}'",
        "partitions: '${CANARY}'",
        "rebalance_listener: '${CANARY}'",
        "accept: ['${CANARY}']",
        "topic_creation: '${CANARY}'",
        "partitions: { by: '${CANARY}' }",
    ] {
        let rejected = load_text(&route(setting)).unwrap_err();
        let text = rejected.render(Colour::Never);
        let json: Vec<_> = rejected
            .diagnostics
            .iter()
            .map(|d| d.to_json().to_string())
            .collect();
        assert!(!text.contains("canary-value"), "{text}");
        assert!(!json.concat().contains("canary-value"));
    }
    let secrets = cluster(
        "sasl: { mechanism: OOPS, password: canary-literal }, properties: { linger.ms: '${CANARY}', sasl.password: canary-literal }",
    );
    let rejected = load_text(&secrets).unwrap_err();
    let text = rejected.render(Colour::Never) + &format!("{:?}", rejected.diagnostics);
    assert!(!text.contains("canary-"), "{text}");
}

#[test]
fn several_files_are_one_configuration() {
    let main = file("", "", "include: [more-*.yaml]\n");
    let more = "routes:\n  s: { source: b, target: a, topics: { include: [x] } }\n";
    let loaded = load_files(&[("m.yaml", &main), ("more-1.yaml", more)]).unwrap();
    assert_eq!(loaded.spec.routes.len(), 2);
    assert_eq!(loaded.files.len(), 2);
    let again = more.replace("  s:", "  r:");
    let rejected = load_files(&[("m.yaml", &main), ("more-1.yaml", &again)]).unwrap_err();
    assert_eq!(
        lines(&rejected.diagnostics),
        ["2:3 E0108 `r` is defined in two files"]
    );
    let text = rejected.render(Colour::Never);
    assert!(
        text.contains("m.yaml:6:3") && text.contains("more-1.yaml:2:3"),
        "{text}"
    );
}

#[test]
fn relative_paths_start_at_their_file() {
    let loaded = load_text(&cluster("tls: { ca: tls/ca.pem }")).unwrap();
    let cluster = loaded.spec.clusters.values().next().unwrap();
    let ca = cluster.tls.as_ref().unwrap().ca.clone().unwrap();
    assert!(ca.is_absolute() && ca.ends_with("tls/ca.pem"));
}

#[test]
fn a_broken_file_hides_no_names_of_the_others() {
    let main = file("", "", "");
    let rejected = load_files(&[
        ("m.yaml", &main.replace("  b:", "  c:")),
        ("broken.yaml", "a: ["),
    ]);
    assert_eq!(rejected.unwrap_err().diagnostics.len(), 1);
    let none = load_paths(&[]).unwrap_err();
    assert_eq!(none.diagnostics[0].code, Code::Empty);
}

fn examples() -> Vec<(PathBuf, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut examples = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "yaml") {
            let text = std::fs::read_to_string(&path).unwrap();
            examples.push((path, text));
        }
    }
    assert!(examples.len() >= 4);
    examples
}

#[test]
fn every_example_is_sound_and_without_warnings() {
    for (path, _) in examples() {
        match load_paths(&[path]) {
            Ok(loaded) => assert!(
                loaded.warnings.is_empty(),
                "{}",
                loaded.render(Colour::Never)
            ),
            Err(rejected) => panic!("{}", rejected.render(Colour::Never)),
        }
    }
}

/// Keys of the file's own grammar: not names, not properties, not inside steps.
fn is_grammar(pointer: &str) -> bool {
    let steps: Vec<&str> = pointer.split('/').skip(1).collect();
    !matches!(
        steps.as_slice(),
        ["clusters" | "routes" | "handlers", _] | ["handlers", ..]
    ) && !steps.contains(&"handlers")
        && !pointer.contains("/properties/")
}

#[test]
fn every_key_of_the_examples_with_one_letter_changed_is_refused() {
    for (path, text) in examples() {
        let mut sources = Sources::default();
        let index = sources.add(path.clone(), text.clone());
        let tree = tree::parse(&sources, index, &mut Vec::new()).unwrap();
        let mut seen = BTreeSet::new();
        for (pointer, spot) in &tree.spots {
            let Some(key) = spot.key.filter(|_| is_grammar(pointer)) else {
                continue;
            };
            if !seen.insert(key) {
                continue;
            }
            let mut mutated = text.clone();
            mutated.replace_range(key.end - 1..key.end, "q");
            let place = sources.place(key);
            let rejected = load_text(&mutated).err();
            let rejected = rejected.unwrap_or_else(|| panic!("accepted: {pointer} of {place}"));
            assert!(
                rejected
                    .diagnostics
                    .iter()
                    .any(|d| d.code == Code::UnknownKey),
                "{pointer}: {:?}",
                lines(&rejected.diagnostics)
            );
        }
    }
}

mod any_input {
    use super::*;
    use proptest::prelude::*;

    fn never_panics(bytes: &[u8]) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.yaml");
        std::fs::write(&path, bytes).unwrap();
        if let Err(rejected) = load_paths(&[path]) {
            assert!(!rejected.first_error().is_empty());
            rejected.render(Colour::Never);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            never_panics(&bytes);
        }

        #[test]
        fn yaml_like(text in "[a-z${}\\[\\]:,&*<>!|'\"#%\\\\ \n\tü0-9~-]{0,120}") {
            never_panics(text.as_bytes());
        }

        #[test]
        fn mutilated(at in 0usize..900, with in "[\\[\\]{}:'\"$\n -]{1,3}") {
            let mut text = file(", sasl: { mechanism: PLAIN, username: u, password: p }", "    partitions: { fixed: 1 }\n    handlers: [{ use: h }]\n", "handlers: { h: [] }\ninclude: ['x*.yaml']\n");
            let at = at.min(text.len());
            text.insert_str(at, &with);
            never_panics(text.as_bytes());
        }
    }
}
