//! `mirror run`: logging, load, admin, supervisor, watch, and an honest exit.

use super::program::LoadFiles;
use super::{ColorChoice, LoadRequest, Program, RunArgs, files, progress, text};
use crate::admin::{Admin, Desk};
use crate::config::spec::{Name, Spec, Until};
use crate::config::watch::{FileWatch, Pace, Seen};
use crate::exit::Exit;
use crate::logging::{self, Format, Screen};
use crate::shutdown;
use crate::supervisor::{
    self, Board, Event, EventSender, Leftover, Limits, Load, LoadOrder, LoadedConfig, Outcome,
    RejectedConfig, Supervisor,
};
use crate::systemd;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// After the outcome is known, threads that still run are not waited for longer than this.
const LINGER: Duration = Duration::from_millis(200);

pub(super) fn run(
    args: RunArgs,
    config: Vec<PathBuf>,
    color: ColorChoice,
    program: &Program,
) -> Exit {
    let screen = Arc::new(Screen::default());
    let format = args.log_format.unwrap_or_else(Format::fitting_stderr);
    let colour = text::colour_of_stderr(color);
    if let Err(bad) = logging::init(format, &args.log_level, colour, &screen) {
        return text::fail(&bad.to_string(), Exit::Usage);
    }
    let files = match files::find(args.files.clone(), config) {
        Ok(files) => files,
        Err(missing) => return text::fail(&missing, Exit::No),
    };
    let narrow = match Narrow::from_args(&args) {
        Ok(narrow) => narrow,
        Err(bad) => return text::fail(&bad, Exit::Usage),
    };
    let request = LoadRequest {
        files,
        variables: program.variables.clone(),
        no_data_loss: args.no_data_loss.into(),
        colour,
        running: None,
    };
    let load = narrowed(Arc::clone(&program.load), request, narrow);
    let first = match load(LoadOrder::default()) {
        Ok(first) => first,
        Err(rejected) => {
            text::err(rejected.words());
            return Exit::No;
        }
    };
    if args.no_data_loss {
        text::show_enforced();
    }
    if !first.warnings.is_empty() {
        text::err(first.warnings.trim_end());
    }
    let show = std::io::stderr().is_terminal() && !args.no_progress;
    serve(first, load, program, show.then_some(screen))
}

/// Runs until the supervisor is done, inside a runtime made for it.
fn serve(first: LoadedConfig, load: Load, program: &Program, screen: Option<Arc<Screen>>) -> Exit {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("mirror-control")
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return text::fail(&format!("no runtime: {error}"), Exit::No),
    };
    let board = Arc::new(Board::default());
    let progress = screen.map(|screen| progress::start(Arc::clone(&board), screen));
    let outcome = runtime.block_on(supervise(first, load, program, board));
    // What an outcome leaves running is a thread that does not even abort; it ends with us.
    runtime.shutdown_timeout(LINGER);
    drop(progress);
    match outcome {
        Ok(outcome) => account(&outcome),
        Err(message) => text::fail(&message, Exit::No),
    }
}

async fn supervise(
    first: LoadedConfig,
    load: Load,
    program: &Program,
    board: Arc<Board>,
) -> Result<Outcome, String> {
    let (events, inbox) = EventSender::channel();
    // Before anything is started: a signal that comes now must find a handler.
    shutdown::listen(events.clone()).map_err(|error| format!("no signal handlers: {error}"))?;
    let desk = Desk {
        board: Arc::clone(&board),
        events: events.clone(),
        load: Arc::clone(&load),
    };
    let admin = Admin::start(&first.spec.admin, &first.spec.group, desk)
        .map_err(|error| error.to_string())?;
    tracing::info!(event = "admin_listening", http = admin.address().map(|at| at.to_string()),
        socket = %admin.socket().display(), "admin interface");
    systemd::tell(Arc::clone(&board));
    let watch = watch(first.spec.reload.settle, events.clone());
    let flows = Arc::clone(&program.flows);
    let mut supervisor = Supervisor::new(flows, events, board, Limits::default());
    supervisor.begin(first, Instant::now());
    let follow = |files, settle| {
        if let Some(watch) = &watch {
            watch.follow(files, settle);
        }
    };
    let outcome = supervisor::run(supervisor, inbox, load, follow).await;
    systemd::stopping();
    Ok(outcome)
}

/// Watches the files and brings changes to the supervisor; says so where it cannot.
pub(crate) fn watch(settle: Duration, events: EventSender) -> Option<FileWatch> {
    let seen = move |seen| match seen {
        Seen::Changed => events.send(Event::FileChanged),
        Seen::Unsettled { file, why } => {
            tracing::warn!(event = "config_unsettled", file = %file.display(), why,
                "not loaded until it settles; what runs goes on");
        }
        Seen::OnlyPolling { why } => {
            let words = format!("looked at every few seconds, there are no file events: {why}");
            tracing::warn!(event = "watch_polls", why, "{words}");
            events.send(Event::WatchTrouble(words));
        }
        Seen::Undelivered { file, why } => {
            let words = format!("{}: {why}", file.display());
            tracing::warn!(event = "watch_undelivered", file = %file.display(), "{words}");
            events.send(Event::WatchTrouble(words));
        }
    };
    let watch = FileWatch::start(Pace::settling(settle), seen);
    let failed = |error: &std::io::Error| {
        tracing::warn!(event = "watch_failed", %error,
            "the files are not watched; SIGHUP and `mirror reload` reload");
    };
    watch.inspect_err(failed).ok()
}

/// Prints how it ended and gives the exit code.
fn account(outcome: &Outcome) -> Exit {
    let list = |left: &[Leftover]| left.iter().for_each(|left| text::err(&format!("  {left}")));
    match outcome {
        Outcome::Drained => Exit::Done,
        Outcome::CaughtUp => {
            tracing::info!(
                event = "caught_up",
                "every route has reached the ends captured at start"
            );
            Exit::Done
        }
        Outcome::NotCaughtUp(left) => {
            text::err("mirror: not caught up:");
            list(left);
            Exit::No
        }
        Outcome::Unconfirmed(left) => {
            text::err(
                "mirror: stopped before everything was confirmed; after a restart these may be copied again:",
            );
            list(left);
            Exit::Unconfirmed
        }
    }
}

/// What the command line takes away from the file; the same at every reload.
struct Narrow {
    only: Vec<Name>,
    until: Option<Until>,
}

impl Narrow {
    fn from_args(args: &RunArgs) -> Result<Self, String> {
        let only = args.only.iter().map(|name| {
            Name::new(name).ok_or_else(|| format!("--only {name}: not the name of a route"))
        });
        Ok(Self {
            only: only.collect::<Result<_, _>>()?,
            until: args.until_caught_up.then_some(Until::End),
        })
    }

    /// The spec with only what is asked for.
    fn apply(&self, spec: &Spec) -> Result<Spec, String> {
        let mut narrowed = spec.clone();
        if let Some(unknown) = self
            .only
            .iter()
            .find(|name| !spec.routes.contains_key(*name))
        {
            let known: Vec<&str> = spec.routes.keys().map(Name::as_str).collect();
            return Err(format!(
                "--only {unknown}: no such route; there are: {}",
                known.join(", ")
            ));
        }
        if !self.only.is_empty() {
            narrowed.routes.retain(|name, _| self.only.contains(name));
        }
        if let Some(until) = self.until {
            for route in narrowed.routes.values_mut() {
                Arc::make_mut(route).until = until;
            }
        }
        Ok(narrowed)
    }
}

fn narrowed(load: LoadFiles, request: LoadRequest, narrow: Narrow) -> Load {
    Arc::new(move |order| {
        let loaded = load(&request.with(order))?;
        match narrow.apply(&loaded.spec) {
            Ok(spec) => Ok(LoadedConfig {
                spec: Arc::new(spec),
                ..loaded
            }),
            Err(message) => Err(RejectedConfig {
                first_error: message,
                rendered: String::new(),
                hash: Some(loaded.hash),
                files: loaded.files,
            }),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::supervisor::testing::{name, route, spec};

    #[test]
    fn only_and_until_narrow_the_file() {
        let narrow = Narrow {
            only: vec![name("b")],
            until: Some(Until::End),
        };
        let narrowed = narrow.apply(&spec(vec![route("a"), route("b")])).unwrap();
        assert_eq!(narrowed.routes.keys().collect::<Vec<_>>(), [&name("b")]);
        assert_eq!(narrowed.routes[&name("b")].until, Until::End);
        let error = narrow.apply(&spec(vec![route("a")])).unwrap_err();
        assert_eq!(error, "--only b: no such route; there are: a");
    }
}
