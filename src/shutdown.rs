//! Signals, and the one budget that stopping has.

use crate::supervisor::{Event, EventSender, Signal};
use std::io;
use std::time::{Duration, Instant};
use tokio::signal::unix::{SignalKind, signal};

/// When what happens while stopping. The whole of it fits into the user's grace, so that an
/// orchestrator that kills at the end of its own never kills in the middle of a commit (B153).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Draining ends here; what is left is told to stop at once.
    pub abort_at: Instant,
    /// The process ends here, whatever still runs.
    pub give_up_at: Instant,
}

impl Budget {
    /// What is kept of the grace for stopping at once: closing clients, leaving groups.
    pub const RESERVE: Duration = Duration::from_secs(2);

    /// Splits `grace`, which begins `now`.
    pub fn new(grace: Duration, now: Instant) -> Self {
        let reserve = Self::RESERVE.min(grace / 5);
        Self {
            abort_at: now + grace.saturating_sub(reserve),
            give_up_at: now + grace,
        }
    }
}

/// Brings signals to the supervisor from now on: HUP, TERM, INT, USR1.
///
/// Must be called inside a tokio runtime. The handlers are installed before it returns, so that a
/// signal that comes right after the start is not lost to its default action.
///
/// # Errors
/// The operating system refuses a handler.
pub fn listen(events: EventSender) -> io::Result<()> {
    let mut hangup = signal(SignalKind::hangup())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut snapshot = signal(SignalKind::user_defined1())?;
    tokio::spawn(async move {
        loop {
            let signal = tokio::select! {
                Some(()) = hangup.recv() => Signal::Reload,
                Some(()) = terminate.recv() => Signal::Stop,
                Some(()) = interrupt.recv() => Signal::Stop,
                Some(()) = snapshot.recv() => Signal::Snapshot,
                else => return,
            };
            tracing::debug!(event = "signal", ?signal, "signal received");
            events.send(Event::Signal(signal));
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_ends_with_the_grace() {
        let now = Instant::now();
        let long = Budget::new(Duration::from_secs(25), now);
        assert_eq!(long.abort_at - now, Duration::from_secs(23));
        assert_eq!(long.give_up_at - now, Duration::from_secs(25));
        let short = Budget::new(Duration::from_secs(1), now);
        assert_eq!(short.abort_at - now, Duration::from_millis(800));
    }
}
