//! The program from a shell: a first file, a picture, completions.

use std::path::Path;
use std::process::{Command, Output};

fn mirror(folder: &Path, args: &[&str]) -> Output {
    let program = Path::new(env!("CARGO_BIN_EXE_mirror"));
    let mut command = Command::new(program);
    command.args(args).current_dir(folder);
    command.env_remove("MIRROR_FROM").env_remove("MIRROR_TO");
    command.output().unwrap()
}

fn words(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn a_first_file_is_written_once_and_passes() {
    let folder = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| mirror(folder.path(), args);
    let asked = [
        "init",
        "--from",
        "a:9092",
        "--to",
        "b:9092,c:9092",
        "--topics",
        "orders",
    ];
    let first = run(&asked);
    assert_eq!(first.status.code(), Some(0), "{}", words(&first.stderr));
    assert!(words(&first.stderr).contains("mirror check"));
    let path = folder.path().join("mirror.yaml");
    let written = std::fs::read_to_string(&path).unwrap();
    let again = run(&["init"]);
    assert_eq!(again.status.code(), Some(1));
    assert!(
        words(&again.stderr).contains("is there already"),
        "{}",
        words(&again.stderr)
    );
    assert_eq!(std::fs::read_to_string(&path).unwrap(), written);
    let printed = run(&[&asked[..], &["--stdout"]].concat());
    assert_eq!(words(&printed.stdout), written);
    assert_eq!(run(&["check", "--deny-warnings"]).status.code(), Some(0));
    assert_eq!(
        run(&["init", "x.yaml", "--from", "nowhere"]).status.code(),
        Some(2)
    );
}

#[test]
fn a_file_without_addresses_says_where_to_put_them() {
    let folder = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| mirror(folder.path(), args);
    assert_eq!(run(&["init", "new.yaml"]).status.code(), Some(0));
    let checked = run(&["check", "new.yaml"]);
    assert_eq!(checked.status.code(), Some(1));
    let said = words(&checked.stderr);
    for part in ["MIRROR_FROM", "MIRROR_TO", "put it here", "2 errors"] {
        assert!(said.contains(part), "{part} is not in\n{said}");
    }
}

#[test]
fn pictures_are_drawn_and_mistakes_are_said() {
    let folder = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| mirror(folder.path(), args);
    run(&["init", "--from", "a:9092", "--to", "b:9092"]);
    for (format, part) in [
        ("text", "copy: source → target"),
        ("mermaid", "flowchart LR"),
        ("dot", "digraph mirror"),
        ("svg", "</svg>"),
        ("json", "\"routes\""),
    ] {
        let drawn = run(&["graph", "--format", format]);
        assert_eq!(drawn.status.code(), Some(0));
        assert!(words(&drawn.stdout).contains(part), "{format}");
    }
    std::fs::write(
        folder.path().join("mirror.yaml"),
        "version: 1\nclusters: {}\nroutes: []\n",
    )
    .unwrap();
    let refused = run(&["graph"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(words(&refused.stderr).contains("error[E0303]") && refused.stdout.is_empty());
}

/// Bash is there wherever these tests run; other shells are asked where they are.
#[test]
fn completions_load_in_their_shells() {
    let folder = tempfile::tempdir().unwrap();
    for (shell, check) in [
        ("bash", "source ./bash && complete -p mirror"),
        (
            "zsh",
            "autoload -U compinit && compinit -u -d ./dump && source ./zsh",
        ),
        (
            "fish",
            "source ./fish && complete -C 'mirror che' | grep -q check",
        ),
    ] {
        let script = mirror(folder.path(), &["completions", shell]);
        assert_eq!(script.status.code(), Some(0));
        std::fs::write(folder.path().join(shell), &script.stdout).unwrap();
        let loaded = Command::new(shell)
            .args(["-c", check])
            .current_dir(folder.path())
            .output();
        match loaded {
            Ok(output) => assert!(
                output.status.success(),
                "{shell}: {}",
                words(&output.stderr)
            ),
            Err(error) => assert!(shell != "bash", "{shell}: {error}"),
        }
    }
}

#[test]
fn a_file_that_is_missing_is_a_diagnostic() {
    let folder = tempfile::tempdir().unwrap();
    let checked = mirror(
        folder.path(),
        &["check", "nowhere.yaml", "--format", "json"],
    );
    assert_eq!(checked.status.code(), Some(1));
    let result: serde_json::Value = serde_json::from_slice(&checked.stdout).unwrap();
    assert_eq!(result["diagnostics"][0]["code"], "E0101");
    assert_eq!(result["diagnostics"][0]["place"]["file"], "nowhere.yaml");
    let checked = mirror(folder.path(), &["plan", "nowhere.yaml"]);
    assert_eq!(checked.status.code(), Some(1));
    assert!(words(&checked.stderr).contains("nowhere.yaml"));
}
