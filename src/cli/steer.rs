//! `mirror pause` and `mirror resume`.

use super::{OutputFormat, Program, SteerArgs, ask, text};
use crate::admin::client::Method;
use crate::exit::Exit;
use serde_json::json;
use std::path::PathBuf;

/// What the route shall do.
#[derive(Clone, Copy)]
pub(super) enum Verb {
    Pause,
    Resume,
}

impl Verb {
    fn as_str(self) -> &'static str {
        match self {
            Verb::Pause => "pause",
            Verb::Resume => "resume",
        }
    }

    /// What becomes of the route, or became of it before.
    fn outcome(self, done: Done) -> &'static str {
        match (self, done) {
            (Verb::Pause, Done::Now) => "pausing: what is in flight is confirmed first",
            (Verb::Pause, Done::Before) => "paused already",
            (Verb::Resume, Done::Now) => "going on",
            (Verb::Resume, Done::Before) => "not paused",
        }
    }
}

/// When the route was told.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Done {
    /// By this command.
    Now,
    /// Before: there was nothing to do.
    Before,
}

pub(super) fn steer(args: &SteerArgs, verb: Verb, config: Vec<PathBuf>, program: &Program) -> Exit {
    if crate::config::spec::Name::new(&args.route).is_none() {
        return text::fail("a route's name has only a-z, 0-9, _ and -", Exit::Usage);
    }
    let path = format!("/api/v1/routes/{}/{}", args.route, verb.as_str());
    match ask::ask(&args.ask, &config, program, Method::Post, &path) {
        Ok(answer) if answer.code == 202 => show(args, verb, Done::Now),
        Ok(answer) if answer.code < 300 => show(args, verb, Done::Before),
        Ok(answer) if answer.code == 404 => text::fail(answer.body.trim(), Exit::No),
        Ok(answer) => text::fail(answer.body.trim(), Exit::Unreachable),
        Err(exit) => exit,
    }
}

fn show(args: &SteerArgs, verb: Verb, done: Done) -> Exit {
    let (route, outcome) = (&args.route, verb.outcome(done));
    let answer = json!({ "route": route, "told": verb.as_str(), "changed": done == Done::Now });
    let answer = answer.to_string();
    match args.ask.format {
        OutputFormat::Text => text::out(&format!("{route}: {outcome}")),
        OutputFormat::Json => text::out(&answer),
        OutputFormat::Yaml => text::out(&text::as_yaml(&answer)),
    }
    Exit::Done
}
