//! `mirror test` and `mirror try --in` as programs: what they print, and how they end.

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
            \"seen\": true
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
