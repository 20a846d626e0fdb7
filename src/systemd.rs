//! What the service manager is told (`Type=notify`, `Type=notify-reload`): that the process runs, loads its files, stops, and a line
//! for `systemctl status`.
//!
//! Running is not copying: a cluster that is away must not make the manager kill the process. Whether it copies is said by
//! `/readyz` and `mirror status`.

use crate::observe::State;
use crate::supervisor::Board;
use crate::supervisor::board::{Phase, ProcessView, Snapshot};
use sd_notify::NotifyState;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// How often it is looked whether there is something new to tell.
const EVERY: Duration = Duration::from_millis(500);

/// Tells the service manager, if one wants to hear, from now on. Must be called inside a tokio runtime.
pub fn tell(board: Arc<Board>) {
    if std::env::var_os("NOTIFY_SOCKET").is_none() {
        return;
    }
    tokio::spawn(async move {
        let mut told = None;
        let mut ticks = tokio::time::interval(EVERY);
        loop {
            ticks.tick().await;
            let now = Word::of(&board.snapshot());
            if told.as_ref() == Some(&now) {
                continue;
            }
            if let Err(error) = now.send(told.as_ref()) {
                tracing::warn!(event = "notify_failed", %error, "the service manager does not hear");
            }
            told = Some(now);
        }
    });
}

/// Tells that the process ends: where nothing is to be drained it would be over before anybody looks.
pub fn stopping() {
    if let Err(error) = sd_notify::notify(&[NotifyState::Stopping]) {
        tracing::debug!(event = "notify_failed", %error, "the service manager does not hear");
    }
}

/// What is told at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Word {
    phase: Phase,
    /// When the files were loaded last.
    loaded: Option<SystemTime>,
    /// The line for `systemctl status`.
    line: String,
}

impl Word {
    fn of(snapshot: &Snapshot) -> Self {
        let process = &snapshot.process;
        Self {
            phase: process.phase,
            loaded: process.last_reload.as_ref().map(|(at, _)| *at),
            line: format!("{}{}", runs(snapshot), rejected(process)),
        }
    }

    fn send(&self, before: Option<&Self>) -> std::io::Result<()> {
        let line = NotifyState::Status(&self.line);
        match self.phase {
            Phase::Starting => sd_notify::notify(&[line]),
            Phase::Draining | Phase::Aborting => sd_notify::notify(&[NotifyState::Stopping, line]),
            Phase::Running => {
                // `Type=notify-reload` waits for both, in this order.
                if before.is_some_and(|before| before.loaded != self.loaded) {
                    let now = NotifyState::monotonic_usec_now()?;
                    sd_notify::notify(&[NotifyState::Reloading, now])?;
                }
                sd_notify::notify(&[NotifyState::Ready, line])
            }
        }
    }
}

/// `generation 3 (52bf3b2717ab): 2 routes, 1 failed`.
fn runs(snapshot: &Snapshot) -> String {
    let process = &snapshot.process;
    let routes = snapshot.routes.len();
    let count = |state| {
        let all = snapshot.routes.values();
        all.filter(|route| route.condition().state == state).count()
    };
    let mut line = format!(
        "generation {} ({}): {routes} {}",
        process.generation,
        short(&process.hash),
        if routes == 1 { "route" } else { "routes" },
    );
    for state in [State::Failed, State::Stalled, State::Paused] {
        let count = count(state);
        if count > 0 {
            line += &format!(", {count} {state}");
        }
    }
    line
}

/// The file that may not run, with its first error and when.
fn rejected(process: &ProcessView) -> String {
    let Some(rejected) = &process.rejected else {
        return String::new();
    };
    let hash = rejected
        .hash
        .as_deref()
        .map_or(String::new(), |hash| format!(" ({})", short(hash)));
    let at = jiff::Timestamp::from_second(rejected.at as i64).unwrap_or_default();
    format!(
        "; the file{hash} was rejected at {at} and does not run: {}",
        rejected.error
    )
}

fn short(hash: &str) -> &str {
    hash.get(..12).unwrap_or(hash)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::supervisor::board::Rejection;

    #[test]
    fn the_line_says_what_runs_and_what_does_not() {
        let board = Board::default();
        let mut snapshot = board.snapshot().as_ref().clone();
        snapshot.process.generation = 3;
        snapshot.process.hash = "52bf3b2717abbd96".into();
        assert_eq!(
            Word::of(&snapshot).line,
            "generation 3 (52bf3b2717ab): 0 routes"
        );
        snapshot.process.rejected = Some(Rejection {
            error: "mirror.yaml:3:1: error[E0301]: unknown key `routs`".into(),
            hash: Some("7bc4ec40bb20730a".into()),
            at: 1_796_050_299.871,
        });
        assert_eq!(
            Word::of(&snapshot).line,
            "generation 3 (52bf3b2717ab): 0 routes; the file (7bc4ec40bb20) was rejected at 2026-11-30T14:51:39Z and does not run: \
             mirror.yaml:3:1: error[E0301]: unknown key `routs`"
        );
    }
}
