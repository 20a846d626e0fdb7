use super::*;
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
        schema: || "{}".into(),
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
