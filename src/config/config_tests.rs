//! Whole files in, diagnostics out: at least one test for each code.

use super::*;

pub(crate) fn load_text(text: &str) -> Result<Loaded, Box<Rejected>> {
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

pub(crate) fn load_paths(paths: &[PathBuf]) -> Result<Loaded, Box<Rejected>> {
    load_with(paths, &Variables::default())
}

pub(crate) fn load_with(paths: &[PathBuf], variables: &Variables) -> Result<Loaded, Box<Rejected>> {
    load_beside(paths, variables, None)
}

fn load_beside(
    paths: &[PathBuf],
    variables: &Variables,
    running: Option<&Spec>,
) -> Result<Loaded, Box<Rejected>> {
    let (registry, listeners) = (Registry::default(), Listeners::default());
    let environment = |name: &str| match name {
        "N" => Some("4".to_owned()),
        "ON" => Some("true".to_owned()),
        "CANARY" => Some("canary-value".to_owned()),
        _ => None,
    };
    let options = LoadOptions {
        environment: &environment,
        variables,
        registry: &registry,
        listeners: &listeners,
        running,
    };
    load(paths, &options)
}

/// A sound file with a setting of the route, a member of the cluster `a`, and top-level lines.
pub(crate) fn file(cluster: &str, route: &str, top: &str) -> String {
    format!(
        "version: 1\nclusters:\n  a: {{ bootstrap_servers: ['a:1']{cluster} }}\n  b: {{ bootstrap_servers: ['b:1'] }}\nroutes:\n  r:\n    source: a\n    target: b\n    topics: {{ include: [orders] }}\n{route}{top}"
    )
}

pub(crate) fn lines(found: &[Diagnostic]) -> Vec<String> {
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
pub(crate) fn said(text: &str) -> Vec<String> {
    match load_text(text) {
        Ok(loaded) => lines(&loaded.warnings),
        Err(rejected) => lines(&rejected.diagnostics),
    }
}

#[track_caller]
pub(crate) fn assert_said(text: &str, expected: &[&str]) {
    let said = said(text);
    let same =
        said.len() == expected.len() && said.iter().zip(expected).all(|(s, e)| s.starts_with(e));
    assert!(same, "{text}\nsaid:\n{said:#?}\nexpected:\n{expected:#?}");
}

pub(crate) fn route(setting: &str) -> String {
    file("", &format!("    {setting}\n"), "")
}

pub(crate) fn cluster(setting: &str) -> String {
    file(&format!(", {setting}"), "", "")
}

#[test]
fn what_two_generations_have_in_common_is_held_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.yaml");
    let load = |port: u16, text: &str, running: Option<&Spec>| {
        let route = |name: &str, text: &str| {
            format!(
                "  {name}:\n    source: a\n    target: b\n    topics: {{ include: [{name}] }}\n    handlers:\n      - filter: {{ drop: tombstone }}\n      - reformat: {{ set: {{ header.x: '{text}' }} }}\n"
            )
        };
        let clusters = format!(
            "version: 1\nclusters:\n  a: {{ bootstrap_servers: ['a:1'] }}\n  b: {{ bootstrap_servers: ['b:{port}'] }}\nroutes:\n"
        );
        let routes = [route("one", "x"), route("two", text)].concat();
        std::fs::write(&path, clusters + &routes).unwrap();
        let loaded = load_beside(std::slice::from_ref(&path), &Variables::default(), running);
        loaded.map_err(|r| r.render(Colour::Never)).unwrap().spec
    };
    let running = load(1, "x", None);
    let [one, two] = ["one", "two"].map(|name| spec::Name::new(name).unwrap());
    let held =
        |wanted: &Spec, name| std::sync::Arc::ptr_eq(&running.routes[name], &wanted.routes[name]);
    let same = load(1, "x", Some(&running));
    assert!(held(&same, &one) && held(&same, &two));
    let changed = load(1, "y", Some(&running));
    assert!(held(&changed, &one) && !held(&changed, &two));
    let steps = |spec: &Spec| -> Vec<*const crate::handler::StepSpec> {
        spec.routes[&two]
            .chain
            .specs()
            .map(std::ptr::from_ref)
            .collect()
    };
    let (before, now) = (steps(&running), steps(&changed));
    assert!(before[0] == now[0] && before[1] != now[1]);
    let moved = load(2, "x", Some(&running));
    assert!(!held(&moved, &one), "its target is another one");
    assert_eq!(moved.routes[&one].targets[0].bootstrap_servers, ["b:2"]);
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
fn a_misspelt_key_is_one_mistake() {
    let text = file("", "", "").replace("source: a", "sorce: a");
    assert_said(&text, &["7:5 E0301 unknown key `sorce`"]);
    let text = file("", "", "").replace("    source: a\n", "");
    assert_said(&text, &["6:3 E0302 `r` has no `source`"]);
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

#[test]
fn a_mistake_in_an_expression_is_shown_inside_its_text_however_it_is_written() {
    for (written, place) in [
        ("{ keep: value.a == 1 && bad }", "12:41"),
        ("{ keep: 'value.a == ''x'' && bad' }", "12:46"),
        (r#"{ keep: "value.a == \"x\" && bad" }"#, "12:46"),
        (
            "\n          keep: |\n            value.a == 1\n            && bad\n",
            "15:16",
        ),
        (
            "\n          keep: >-\n            value.a == 1\n            && bad\n",
            "15:16",
        ),
        (
            "\n          keep: value.a == 1\n              && bad\n",
            "14:18",
        ),
        ("{ keep: bad }", "12:25"),
        ("{ keep: 'value.a ${N}' }", "12:25"),
    ] {
        let handlers = format!("    handlers:\n      - name: x\n        filter: {written}\n");
        let said = said(&file("", &handlers, ""));
        assert_eq!(said.len(), 1, "{written}: {said:?}");
        assert!(said[0].starts_with(place), "{written}: {said:?}");
    }
}
