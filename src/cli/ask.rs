//! Asking the running process, for every command that does.

use super::{AskArgs, Program, files, text};
use crate::admin::client::{self, Answer, Method};
use crate::admin::socket;
use crate::config::door::{self, Door};
use crate::config::interpolate::Outside;
use crate::config::process_environment;
use crate::config::spec::Name;
use crate::exit::Exit;
use std::path::PathBuf;
use std::time::Duration;

/// Asks, and turns "nobody answers" into its exit.
pub(super) fn ask(
    args: &AskArgs,
    config: &[PathBuf],
    program: &Program,
    method: Method<'_>,
    path: &str,
) -> Result<Answer, Exit> {
    let places = places(args, config, program)?;
    let patience = Duration::from_secs(args.timeout.max(1));
    client::ask(&places, method, path, patience)
        .map_err(|error| text::fail(&error.to_string(), Exit::Unreachable))
}

/// Where the process may listen: as told, as the file says, as the group's defaults are.
fn places(args: &AskArgs, config: &[PathBuf], program: &Program) -> Result<Vec<PathBuf>, Exit> {
    if let Some(socket) = &args.socket {
        return Ok(vec![socket.clone()]);
    }
    if let Some(group) = &args.group {
        let usage = || text::fail("--group: a name has only a-z, 0-9, _ and -", Exit::Usage);
        return Ok(socket::candidates(&Name::new(group).ok_or_else(usage)?));
    }
    // A broken file must not keep its user from asking the process that runs an older one.
    let outside = Outside {
        environment: &process_environment,
        variables: &program.variables,
    };
    let files = files::find(Vec::new(), config.to_vec()).ok();
    match files.and_then(|files| door::door(&files, &outside)) {
        Some(Door::Socket(path)) => Ok(vec![path]),
        Some(Door::Group(group)) => Ok(socket::candidates(&group)),
        None => only_process(),
    }
}

/// Without a readable file, the process that is meant can only be the only one.
fn only_process() -> Result<Vec<PathBuf>, Exit> {
    let mut all = socket::all();
    match all.len() {
        0 => Ok(Name::new("default").map_or_else(Vec::new, |group| socket::candidates(&group))),
        1 => Ok(vec![all.remove(0)]),
        _ => {
            let paths: Vec<String> = all.iter().map(|p| p.display().to_string()).collect();
            let message = format!(
                "several mirror processes run and no readable file says which is meant: {}; \
                 name one with --socket or --group",
                paths.join(", ")
            );
            Err(text::fail(&message, Exit::Usage))
        }
    }
}
