//! `mirror reload`: asks, waits, prints the verdict.

use super::{AskArgs, OutputFormat, Program, ask, text};
use crate::admin::client::Method;
use crate::exit::Exit;
use crate::supervisor::{ReloadVerdict, RouteResult};
use std::path::PathBuf;

pub(super) fn reload(args: &AskArgs, config: Vec<PathBuf>, program: &Program) -> Exit {
    let answer = match ask::ask(args, &config, program, Method::Post, "/api/v1/reload") {
        Ok(answer) => answer,
        Err(exit) => return exit,
    };
    let Ok(verdict) = serde_json::from_str::<ReloadVerdict>(&answer.body) else {
        return text::fail(answer.body.trim(), Exit::Unreachable);
    };
    match args.format {
        OutputFormat::Text => text::out(&verdict.to_string()),
        OutputFormat::Json => text::out(&answer.body),
        OutputFormat::Yaml => text::out(&text::as_yaml(&answer.body)),
    }
    exit_of(&verdict)
}

fn exit_of(verdict: &ReloadVerdict) -> Exit {
    match verdict {
        ReloadVerdict::Rejected { .. } => Exit::No,
        ReloadVerdict::Unchanged { .. } => Exit::Done,
        ReloadVerdict::Applied { routes, .. } => {
            let late = [RouteResult::StillStopping, RouteResult::StillChanging];
            let late = routes.values().any(|r| late.contains(r));
            if late { Exit::No } else { Exit::Done }
        }
    }
}
