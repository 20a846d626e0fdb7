//! `mirror test` and `mirror try --in` as programs: what they print, and how they end.

use crate::embedded_examples::custom_handler;
use std::path::Path;
use std::process::{Command, Output};

const FILE: &str = "version: 1
clusters: { eu: { bootstrap_servers: ['eu:1'] }, hub: { bootstrap_servers: ['hub:1'] } }
routes:
  r:
    source: eu
    target: hub
    topics: { include: [orders] }
    handlers:
      - filter: { drop: tombstone }
      - reformat: { set: { value.seen: true } }
tests:
  - name: marked # so it is
    route: r
    in: [{ topic: orders, key: k, value: { id: 7 } }]
    out: [{ key: k, value: { id: 8, seen: true } }]
  - { name: gone, route: r, in: [{ topic: orders }], dropped: filter }
";

fn mirror(folder: &Path, args: &[&str]) -> (Output, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_mirror"))
        .args(args)
        .current_dir(folder)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    (output, text)
}

#[test]
fn a_failing_test_is_shown_updated_and_passes() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mirror.yaml");
    std::fs::write(&file, FILE).unwrap();
    let (output, text) = mirror(folder.path(), &["test"]);
    assert_eq!(output.status.code(), Some(1));
    let expected = "FAIL  r: marked  mirror.yaml:12:5
      record 1, value (- expected, + got)
          {
        -   \"id\": 8,
        +   \"id\": 7,
            \"seen\": true,
          }
      input 1 (eu orders[0]@0) goes through, 1 record
ok    r: gone
2 tests: 1 passed, 1 failed
";
    assert_eq!(text, expected);
    let (output, text) = mirror(folder.path(), &["test", "--only", "gone", "--coverage"]);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(
        text.contains("step 2 (reformat) at mirror.yaml:10:9: no record came to it"),
        "{text}"
    );
    let (_, xml) = mirror(folder.path(), &["test", "--format", "junit"]);
    assert!(
        xml.contains("<testcase name=\"marked\" classname=\"r\""),
        "{xml}"
    );
    assert!(xml.contains("failures=\"1\""), "{xml}");
    let (output, _) = mirror(folder.path(), &["test", "--update"]);
    assert_eq!(output.status.code(), Some(0));
    let updated = std::fs::read_to_string(&file).unwrap();
    assert_eq!(updated, FILE.replace("id: 8", "id: 7"));
    assert_eq!(
        mirror(folder.path(), &["test", "--only", "none"])
            .0
            .status
            .code(),
        Some(1)
    );
}

#[test]
fn test_files_stand_beside_the_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let (configuration, tests) = FILE.split_once("tests:").unwrap();
    std::fs::write(folder.path().join("mirror.yaml"), configuration).unwrap();
    assert_eq!(
        mirror(folder.path(), &["test"]).0.status.code(),
        Some(1),
        "no tests"
    );
    let tests = format!("tests:{}", tests.replace("id: 8", "id: 7"));
    std::fs::write(folder.path().join("orders.test.yaml"), tests).unwrap();
    for args in [
        vec!["test"],
        vec!["test", "orders.test.yaml"],
        vec!["test", "."],
    ] {
        let (output, text) = mirror(folder.path(), &args);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {text}");
        assert!(text.contains("2 tests: all passed"), "{text}");
    }
}

#[test]
fn records_of_a_file_are_tried_without_a_cluster() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("mirror.yaml"), FILE).unwrap();
    let lines =
        "{\"topic\":\"orders\",\"partition\":3,\"offset\":9,\"key\":\"k\",\"payload\":\"{}\"}\n";
    std::fs::write(folder.path().join("r.jsonl"), lines).unwrap();
    let (output, text) = mirror(folder.path(), &["try", "r", "--in", "r.jsonl"]);
    assert_eq!(output.status.code(), Some(0), "{text}");
    for part in [
        "eu orders[3]@9\n",
        "step 1 (filter) at mirror.yaml:9:9",
        "=> hub orders[3]\n",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    std::fs::write(folder.path().join("r.jsonl"), lines.replace("{}", "x")).unwrap();
    let (output, text) = mirror(folder.path(), &["try", "r", "--in", "r.jsonl"]);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("not_json"), "{text}");
}

/// What remembers and what samples: over the records of a case, per partition, through a rewind.
const MEMORY: &str = "version: 1
clusters: { eu: { bootstrap_servers: ['eu:1'] }, us: { bootstrap_servers: ['us:1'] }, hub: { bootstrap_servers: ['hub:1'] } }
routes:
  once:
    source: [eu, us]
    target: hub
    topics: { include: [orders, returns] }
    handlers: [{ filter: { dedupe: value.id, window: 1m, max: 2 } }]
  some:
    source: eu
    target: hub
    topics: { include: [clicks] }
    handlers: [{ filter: { sample: 50%, by: key, seed: clicks } }]
tests:
  - name: the second of a partition goes, and what has no id stays
    route: once
    in:
      - { topic: orders, key: a, value: { id: 1 } }
      - { topic: orders, key: b, value: { id: 1 } }
      - { topic: orders, key: c, value: {} }
      - { topic: orders, key: d, value: {} }
      - { topic: orders, key: e, value: { id: 1 }, at: { partition: 1 } }
      - { topic: returns, key: f, value: { id: 1 } }
      - { topic: orders, key: g, value: { id: 1 }, source: us }
    out: [{ key: a }, { key: c }, { key: d }, { key: e, target_partition: 1 }, { key: f, topic: returns }, { key: g }]
  - name: no memory of the case before
    route: once
    in: [{ topic: orders, value: { id: 1 } }]
    out: 1
  - name: after a rewind the first comes again, and the second goes again
    route: once
    in:
      - { topic: orders, key: a, value: { id: 1 }, at: { offset: 5 } }
      - { topic: orders, key: b, value: { id: 1 }, at: { offset: 6 } }
      - { topic: orders, key: a, value: { id: 1 }, at: { offset: 5 } }
      - { topic: orders, key: b, value: { id: 1 }, at: { offset: 6 } }
    out: [{ key: a }, { key: a }]
    dropped: filter
  - name: the window ends, and so does the room
    route: once
    in:
      - { topic: orders, key: a, value: { id: 1 }, timestamp: 1000 }
      - { topic: orders, key: b, value: { id: 1 }, timestamp: 61000 }
      - { topic: orders, key: c, value: { id: 1 }, timestamp: 61001 }
      - { topic: orders, key: d, value: { id: 2 }, timestamp: 61001 }
      - { topic: orders, key: e, value: { id: 3 }, timestamp: 61001 }
      - { topic: orders, key: f, value: { id: 1 }, timestamp: 61001 }
    out: [{ key: a }, { key: c }, { key: d }, { key: e }, { key: f }]
  - name: each partition has its own room
    route: once
    in:
      - { topic: orders, key: a, value: { id: 1 } }
      - { topic: orders, value: { id: 2 }, at: { partition: 1 } }
      - { topic: orders, value: { id: 3 }, at: { partition: 1 } }
      - { topic: returns, value: { id: 4 } }
      - { topic: orders, key: b, value: { id: 1 } }
    out: 4
  - name: the same keys, wherever they stand
    route: some
    in:
      - { topic: clicks, key: k1 }
      - { topic: clicks, key: k2 }
      - { topic: clicks, key: k3 }
      - { topic: clicks, key: k4 }
      - { topic: clicks, key: k4, at: { partition: 7, offset: 99 }, value: x, timestamp: 5 }
    out: [{ key: k4, target_partition: 0 }, { key: k4, target_partition: 7 }]
";

#[test]
fn memory_and_samples_last_for_a_case() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("mirror.yaml"), MEMORY).unwrap();
    let (output, text) = mirror(folder.path(), &["test"]);
    assert_eq!(output.status.code(), Some(0), "{text}");
}

/// A program that embeds the library has `test` and `try` with its own handlers; `mirror` says that
/// it does not know them.
#[test]
fn registered_handlers_are_tested_too() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mirror.yaml");
    let text = FILE.replace("reformat: { set: { value.seen: true } }", "use: iban");
    let (head, _) = text.split_once("tests:").unwrap();
    let tests = "tests:
  - { name: masked, route: r, in: [{ topic: orders, value: 'PT50123456789012345678901 x' }], out: [{ value: 'PT**01 x' }] }
  - { name: bytes, route: r, in: [{ topic: orders, value_hex: ff }], failed: wrong_type }
";
    std::fs::write(&file, format!("{head}{tests}")).unwrap();
    let test = |args: &[&str]| {
        let environment = custom_handler::environment().unwrap();
        let args = ["mirror"].iter().chain(args).map(|a| (*a).into());
        let program = mirror::cli::link::embedding(environment);
        mirror::cli::main(args.chain([file.clone().into()]).collect(), program)
    };
    assert_eq!(test(&["test"]), mirror::exit::Exit::Done);
    assert_eq!(
        test(&["test", "--coverage", "--format", "junit"]),
        mirror::exit::Exit::Done
    );
    std::fs::write(&file, format!("{head}{}", tests.replace("**", "99"))).unwrap();
    assert_eq!(test(&["test"]), mirror::exit::Exit::No);
    let (output, _) = mirror(folder.path(), &["test"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains("unknown chain `iban`"), "{said}");
}
