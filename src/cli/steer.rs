//! `mirror pause` and `mirror resume`.

use super::{Program, SteerArgs, ask, text};
use crate::admin::client::Method;
use crate::exit::Exit;
use std::path::PathBuf;

/// What the route shall do.
#[derive(Clone, Copy)]
pub(super) enum Verb {
    Pause,
    Resume,
}

pub(super) fn steer(args: &SteerArgs, verb: Verb, config: Vec<PathBuf>, program: &Program) -> Exit {
    let verb = match verb {
        Verb::Pause => "pause",
        Verb::Resume => "resume",
    };
    if crate::config::spec::Name::new(&args.route).is_none() {
        return text::fail("a route's name has only a-z, 0-9, _ and -", Exit::Usage);
    }
    let path = format!("/api/v1/routes/{}/{verb}", args.route);
    match ask::ask(&args.ask, &config, program, Method::Post, &path) {
        Ok(answer) if answer.code < 300 => {
            text::out(&format!("{} {verb}: {}", args.route, answer.body.trim()));
            Exit::Done
        }
        Ok(answer) if answer.code == 404 => text::fail(answer.body.trim(), Exit::No),
        Ok(answer) => text::fail(answer.body.trim(), Exit::Unreachable),
        Err(exit) => exit,
    }
}
