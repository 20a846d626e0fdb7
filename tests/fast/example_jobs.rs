//! The usual jobs, each an example with its tests in the file, run by `mirror test`.

use assert_cmd::Command;
use std::path::Path;

const JOBS: [&str; 12] = [
    "drop-tombstones",
    "sample-by-key",
    "header-filter",
    "json-filter",
    "regex-rename",
    "provenance-headers",
    "mask",
    "rekey-repartition",
    "route-by-content",
    "split",
    "timestamp-shift",
    "envelope",
];

#[test]
fn every_job_has_an_example_that_passes_its_tests() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    for job in JOBS {
        let mut command = Command::cargo_bin("mirror").expect("the program");
        command.env_remove("MASK_KEY").arg("test");
        command.arg(folder.join(format!("{job}.yaml")));
        let output = command.output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{job}: {said}");
    }
}

/// The grammar of handlers sentence by sentence: operators, modifiers, and the documented outcome for
/// whatever a step was not made for.
#[test]
fn the_grammar_holds() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/grammar");
    for file in ["filters.yaml", "steps.yaml"] {
        let mut command = Command::cargo_bin("mirror").expect("the program");
        let output = command.arg("test").arg(folder.join(file)).output();
        let output = output.expect("it runs");
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{file}: {said}");
    }
}
