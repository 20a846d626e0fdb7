//! Whole files with `tests:`, and what comes of them.

use super::*;
use crate::config::diagnostic::{Diagnostic, Severity};
use crate::config::render::Colour;
use crate::config::{self, LoadOptions, Loaded};
use crate::flow::listener::Listeners;
use crate::handler::Registry;
use std::path::Path;

const HEAD: &str = "version: 1
clusters: { eu: { bootstrap_servers: ['e:1'] }, us: { bootstrap_servers: ['u:1'] }, hub: { bootstrap_servers: ['h:1'] } }
routes:
  r:
    source: [eu, us]
    target: hub
    topics: { include: ['orders'] }
    on_error: skip
    handlers:
      - filter: { drop: tombstone }
        name: no-tombstones
      - reformat: { split: { array: value.items } }
        when: { value.items: { exists: true } }
      - reformat: { unset: [value.secret] }
      - reformat: { set: { header.x: '{source}' } }
";

fn load_in(folder: &Path, tests: &str) -> Result<Loaded, Vec<String>> {
    let path = folder.join("m.yaml");
    std::fs::write(&path, format!("{HEAD}tests:\n{tests}")).unwrap();
    let (registry, listeners) = (Registry::default(), Listeners::default());
    let options = LoadOptions {
        environment: &|_| None,
        variables: &crate::config::interpolate::Variables::default(),
        registry: &registry,
        listeners: &listeners,
        running: None,
    };
    config::load(&[path], &options).map_err(|rejected| {
        let line = |d: &Diagnostic| {
            let at = d.place.position.as_ref().map_or(0, |p| p.line);
            format!("{at} {}: {}", d.code.as_str(), d.message)
        };
        let errors = rejected.diagnostics.iter();
        let errors = errors.filter(|d| d.severity() == Severity::Error);
        errors.map(line).collect()
    })
}

fn load(tests: &str) -> Result<Loaded, Vec<String>> {
    load_in(tempfile::tempdir().unwrap().path(), tests)
}

/// The differences of the only test, each as `what: expected | got`.
fn differences(test: &str) -> Vec<String> {
    let loaded = load(&format!("  - {{ route: r, {test} }}\n")).unwrap();
    let report = run(&loaded, &|_| true);
    match &report.results[0].verdict {
        Verdict::Passed => Vec::new(),
        Verdict::Failed(found) => found
            .iter()
            .map(|d| format!("{}: {} | {}", d.what, d.expected, d.got))
            .collect(),
        Verdict::Broken(found) => found.iter().map(|d| d.message.clone()).collect(),
    }
}

#[test]
fn what_is_as_wanted_passes() {
    for test in [
        "in: [{ topic: orders, value: { a: 1.0, secret: x } }], out: [{ value: { a: 1 } }]",
        "in: [{ topic: orders, value: { a: 1.0 } }], out: [{ value: '{\"a\":1.0}' }]",
        "in: [{ topic: orders, value: { a: 123456789012345678901234567890 } }], out: [{ value: '{\"a\":123456789012345678901234567890}' }]",
        "in: [{ topic: orders, value: {}, key: null }], out: [{ key: null, topic: orders, target_partition: 0 }]",
        "in: [{ topic: orders, value: {}, key: '' }], out: [{ key: '' }]",
        "in: [{ topic: orders, value: {}, key: true }], out: [{ key: 'true' }]",
        "in: [{ topic: orders, value: {}, key_hex: 'ff 00' }], out: [{ key_hex: ff00 }]",
        "in: [{ topic: orders, value_base64: e30= }], out: [{ value: {} }]",
        "in: [{ topic: orders, value: {}, source: us }], out: [{ headers: { x: us } }]",
        "in: [{ topic: orders, value: {}, headers: [[a, 1], [a, null], [b, c]] }], out: [{ headers: [[a, 1], [a, null]] }]",
        "in: [{ topic: orders, value: {}, headers: [[a, 1], [a, 2]] }], out: [{ headers: { a: 2 } }]",
        "in: [{ topic: orders, value: {}, headers: { a: { b: 1 } } }], out: [{ headers_exactly: [[a, { b: 1.0 }], [x, eu]] }]",
        "in: [{ topic: orders, value: { items: [1, 2] }, timestamp: 5 }], out: [{ value: 1, timestamp: 5 }, { value: 2.0 }]",
        "in: [{ topic: orders, value: { items: [1, 2, 3] } }], out: 3",
        "in: [{ topic: orders, value: {} }, { topic: orders }], dropped: filter",
        "in: [{ topic: orders }], dropped: no-tombstones, out: []",
        "in: [{ topic: orders, value: '{' }, { topic: orders, value: {} }], out: 1",
        "in: [{ topic: orders, value: '{' }], failed: not_json, out: 0",
        "in: [{ topic: x }], dropped: topics",
        "in: [{ topic: orders, value: {}, at: { partition: 40 } }], out: [{ target_partition: 40 }]",
        "in: [{ kcat: '{\"topic\":\"orders\",\"partition\":3,\"payload\":\"{}\",\"ts\":9}' }], out: [{ target_partition: 3, timestamp: 9 }]",
    ] {
        assert_eq!(differences(test), Vec::<String>::new(), "{test}");
    }
}

#[test]
fn what_is_not_as_wanted_says_what_it_is() {
    for (test, said) in [
        (
            "in: [{ topic: orders, value: { a: 1 } }], out: [{ value: { a: 2 } }]",
            "record 1, value: {\n  \"a\": 2\n} | {\n  \"a\": 1\n}",
        ),
        (
            "in: [{ topic: orders, value: { a: 1.0 } }], out: [{ value: '{\"a\":1}' }]",
            "record 1, value (the same JSON, spelled otherwise: a text compares by its bytes, a map by value): {\"a\":1} | {\"a\":1.0}",
        ),
        (
            "in: [{ topic: orders, value: {}, key: '' }], out: [{ key: null }]",
            "record 1, key: (null) | (empty)",
        ),
        (
            "in: [{ topic: orders, value: {} }], out: [{ headers: { y: 1 } }]",
            "record 1, headers: y: 1 | ",
        ),
        (
            "in: [{ topic: orders, value: {} }], out: [{ headers_exactly: [] }]",
            "record 1, headers_exactly:  | x: eu",
        ),
        ("in: [{ topic: orders }], out: 1", "records out: 1 | 0"),
        (
            "in: [{ topic: orders }], out: [{ topic: orders }]",
            "record 1 is missing: topic: orders | ",
        ),
        (
            "in: [{ topic: x }], out: 0",
            "input 1: goes through | the route does not copy its topic",
        ),
        (
            "in: [{ topic: orders, value: {} }], failed: absent",
            "the last input: failed: absent | goes through",
        ),
        (
            "target_partitions: 2, in: [{ topic: orders, value: {}, at: { partition: 3 } }], out: 0",
            "input 1: goes through | the partition would halt: `orders` has 2 partitions, 4 are needed",
        ),
        (
            "in: [{ topic: orders, value_file: nowhere.bin }], out: 1",
            "nowhere.bin cannot be read: No such file or directory (os error 2)",
        ),
    ] {
        let found = differences(test);
        let trimmed: Vec<&str> = found
            .iter()
            .map(|line| match line.find("/nowhere.bin") {
                Some(at) => &line[at + 1..],
                None => line.as_str(),
            })
            .collect();
        assert_eq!(trimmed, [said], "{test}");
    }
}

#[test]
fn files_are_read_from_the_folder_of_the_test() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("v.bin"), r#"{"a":1}"#).unwrap();
    let lines = "{\"topic\":\"orders\",\"payload\":\"{}\"}\n\n{\"topic\":\"orders\"}\n";
    std::fs::write(folder.path().join("r.jsonl"), lines).unwrap();
    let test = "  - { name: files, route: r, in: [{ topic: orders, value_file: v.bin }, { kcat_file: r.jsonl }], out: [{ value_file: v.bin }, { value: {} }], dropped: filter }\n";
    let loaded = load_in(folder.path(), test).unwrap();
    let report = run(&loaded, &|_| true);
    assert_eq!(
        report.failed(),
        0,
        "{}",
        text::report(&report, Colour::Never)
    );
}

#[test]
fn mistakes_are_found_when_the_file_is_loaded() {
    for (test, said) in [
        (
            "route: q, in: [{ topic: t }], out: 1",
            "17 E0701: unknown route `q`",
        ),
        (
            "route: r, in: [{ topic: t }]",
            "17 E0302: the test expects nothing",
        ),
        (
            "route: r, in: [], out: 1",
            "17 E0304: `in` must not be empty",
        ),
        (
            "route: r, in: [{ value: 1 }], out: 1",
            "17 E0302: the record has no `topic`",
        ),
        (
            "route: r, in: [{ topic: t, valeu: 1 }], out: 1",
            "17 E0301: unknown key `valeu`",
        ),
        (
            "route: r, in: [{ topic: t, value_hex: xx }], out: 1",
            "17 E0702: not hexadecimal: invalid character 'x' at position 0",
        ),
        (
            "route: r, in: [{ topic: t, value: 1, value_hex: ff }], out: 1",
            "17 E0413: `value` cannot stand here: `value_hex` stands beside it",
        ),
        (
            "route: r, in: [{ topic: t, kcat: '{}' }], out: 1",
            "17 E0413: `topic` cannot stand here: `kcat` says everything of its records",
        ),
        (
            "route: r, in: [{ kcat: '{}' }], out: 1",
            "17 E0702: line 1: not a line of `kcat -J`: missing field `topic` at line 1 column 2",
        ),
        (
            "route: r, in: [{ topic: t, source: hub }], out: 1",
            "17 E0402: unknown source of the route: `hub`",
        ),
        (
            "route: r, in: [{ topic: t }], dropped: no-tombstone",
            "17 E0703: no step is `no-tombstone`",
        ),
        (
            "route: r, in: [{ topic: t }], failed: not_jsno",
            "17 E0304: `failed` cannot be `not_jsno`",
        ),
        (
            "route: r, in: [{ topic: t }], dropped: filter, failed: absent",
            "17 E0413: `failed` cannot stand here: the last record was `dropped`",
        ),
        (
            "route: r, in: [{ topic: t, headers: [[1, 2]] }], out: 1",
            "17 E0303: a header is `[name, value]`, and its name is a text",
        ),
    ] {
        let found = load(&format!("  - {{ {test} }}\n")).map(drop).unwrap_err();
        assert_eq!(found, [said], "{test}");
    }
}

#[test]
fn coverage_says_what_no_test_reached() {
    let loaded = load("  - { route: r, in: [{ topic: orders, value: {} }], out: 1 }\n").unwrap();
    let report = run(&loaded, &|_| true);
    let (_, route) = report.coverage.routes().next().unwrap();
    let gaps = route.gaps();
    let gaps: Vec<(usize, Way)> = gaps.iter().map(|g| (g.step.number, g.way)).collect();
    assert_eq!(gaps, [(1, Way::Dropped), (2, Way::WhenTrue)]);
    assert_eq!(route.count(), (8, 6));
}

/// The `tests:` after an update. Run again, they pass.
fn updated(tests: &str) -> String {
    let loaded = load(tests).unwrap();
    let update = update::update(&run(&loaded, &|_| true), &loaded.document);
    assert_eq!(update.left, [], "{tests}");
    let (_, text) = update.files.first().expect("a change");
    let (_, after) = text.split_once("tests:\n").expect("tests");
    let again = load(after).unwrap_or_else(|found| panic!("{found:?}\n{after}"));
    let report = run(&again, &|_| true);
    assert_eq!(
        report.failed(),
        0,
        "{after}\n{}",
        text::report(&report, Colour::Never)
    );
    after.to_owned()
}

#[test]
fn an_update_changes_what_differs_and_nothing_else() {
    let before = "  - name: block # a name
    route: r
    in:
      - { topic: orders, key: k, value: { a: 1.50, b: { c: 'x', d: 2 }, gone: 1 } } # in
    out:
      # the record
      - topic: order # its topic
        key: j
        value:
          a: 2 # changes
          b: { c: y, d: 2.0 }
          lost: 1 # goes
        headers: { x: us, y: 1 } # headers
        target_partition: 1
";
    let after = "  - name: block # a name
    route: r
    in:
      - { topic: orders, key: k, value: { a: 1.50, b: { c: 'x', d: 2 }, gone: 1 } } # in
    out:
      # the record
      - topic: orders # its topic
        key: k
        value:
          a: 1.50 # changes
          b: { c: x, d: 2.0 }
          gone: 1
        headers: { x: eu } # headers
        target_partition: 0
";
    assert_eq!(updated(before), after);
}

#[test]
fn an_update_adds_and_takes_records() {
    let head = "  - { route: r, in: [{ topic: orders, value: { items: [1, 2] } }], ";
    for (before, after) in [
        ("out: 7 }", "out: 2 }"),
        (
            "out: [{ value: 1 }] } # end",
            "out: [{ value: 1 }, { topic: orders, key: null, value: '2', headers_exactly: [[x, eu]] }] } # end",
        ),
        (
            "out: [{ value: 3 }, {}, {}, {}] }",
            "out: [{ value: 1 }, {}] }",
        ),
        (
            "dropped: filter }",
            "out: [{ topic: orders, key: null, value: '1', headers_exactly: [[x, eu]] }, { topic: orders, key: null, value: '2', headers_exactly: [[x, eu]] }] }",
        ),
        ("out: 2, failed: absent }", "out: 2 }"),
    ] {
        assert_eq!(
            updated(&format!("{head}{before}\n")),
            format!("{head}{after}\n")
        );
    }
    let block = "  - route: r
    in: [{ topic: orders, value: { items: [1, 2] } }]
    out:
      - value: 1
";
    let more = "      - { topic: orders, key: null, value: '2', headers_exactly: [[x, eu]] }\n";
    assert_eq!(updated(block), format!("{block}{more}"));
    let fewer = format!("{block}      - value: 2\n      - value: 3\n");
    assert_eq!(updated(&fewer), format!("{block}      - value: 2\n"));
}

#[test]
fn an_update_says_what_became_of_the_last_record() {
    let head = "  - { route: r, in: [{ topic: orders, value: '{' }], ";
    for (before, after) in [
        ("failed: absent }", "failed: not_json }"),
        ("dropped: filter }", "failed: not_json }"),
        (
            "out: [{ topic: orders }], failed: absent }",
            "out: [], failed: not_json }",
        ),
    ] {
        assert_eq!(
            updated(&format!("{head}{before}\n")),
            format!("{head}{after}\n")
        );
    }
    let dropped = "  - { route: r, in: [{ topic: orders }], dropped: reformat }\n";
    let named = dropped.replace("reformat", "no-tombstones");
    assert_eq!(updated(dropped), named);
}

#[test]
fn an_update_leaves_what_it_cannot_write() {
    let shared = "  - { route: r, in: [{ topic: orders, value: &v { a: 1, secret: 2 } }], out: [{ value: *v }] }\n";
    let holds = "  - { route: r, in: [{ topic: x, value: 1 }], out: 0 }\n";
    for test in [shared, holds] {
        let loaded = load(test).unwrap();
        let update = update::update(&run(&loaded, &|_| true), &loaded.document);
        assert_eq!((update.files, update.left.len()), (Vec::new(), 1), "{test}");
    }
}
