use super::*;
use crate::config::interpolate::Variables;
use crate::supervisor::RejectedConfig;
use crate::supervisor::testing::Fakes;
use clap::CommandFactory;
use std::sync::Arc;

fn program() -> Program {
    Program {
        flows: Arc::new(Fakes::default()),
        load: Arc::new(|_| {
            Err(RejectedConfig {
                first_error: "no".into(),
                rendered: String::new(),
                hash: None,
                files: Vec::new(),
            })
        }),
        check: Arc::new(|_| panic!("a bug")),
        test: Arc::new(|_| panic!("a bug")),
        try_route: Arc::new(|_| panic!("a bug")),
        schema: || "{}".into(),
        variables: Variables::default(),
    }
}

fn exit(args: &[&str]) -> Exit {
    main(args.iter().map(Into::into).collect(), program())
}

#[test]
fn the_command_line_is_sound() {
    Cli::command().debug_assert();
}

#[test]
fn exits_are_those_of_the_manual() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    assert_eq!(exit(&["mirror", "version"]), Exit::Done);
    assert_eq!(exit(&["mirror", "--help"]), Exit::Done);
    assert_eq!(exit(&["mirror", "no-such-command"]), Exit::Usage);
    assert_eq!(exit(&["mirror"]), Exit::Usage);
    assert_eq!(exit(&["mirror", "plan", "/nowhere.yaml"]), Exit::No);
    assert_eq!(exit(&["mirror", "plan", file]), Exit::No);
    assert_eq!(
        exit(&["mirror", "run", "--log-level", "a=b=c", file]),
        Exit::Usage
    );
    assert_eq!(
        exit(&["mirror", "status", "--socket", "/nowhere.sock"]),
        Exit::Unreachable
    );
    assert_eq!(exit(&["mirror", "reload", "--group", "NO"]), Exit::Usage);
    assert_eq!(exit(&["mirror", "check", file]), Exit::Bug);
}

/// The test below runs this one in a process of its own, where the hook writes to its stderr.
#[test]
fn a_panic_with_a_secret() {
    if std::env::var_os("MIRROR_TEST_PANIC").is_none() {
        return;
    }
    crate::redact::remember(["canary-in-a-panic"]);
    let mut program = program();
    program.check = Arc::new(|_| panic!("refused: canary-in-a-panic"));
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let args = ["mirror", "check", file].map(Into::into).to_vec();
    assert_eq!(main(args, program), Exit::Bug);
}

#[test]
fn a_crash_report_holds_no_secret() {
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args([
            "cli::tests::a_panic_with_a_secret",
            "--exact",
            "--nocapture",
        ])
        .env("MIRROR_TEST_PANIC", "1")
        .output()
        .unwrap();
    let report = String::from_utf8_lossy(&output.stderr);
    assert!(report.contains("refused: ***"), "{report}");
    assert!(!report.contains("canary"), "{report}");
}
