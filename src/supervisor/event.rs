//! Everything that can happen to the supervisor, as one closed set.

use super::verdict::ReloadVerdict;
use super::{LoadedConfig, RejectedConfig};
use crate::config::spec::Name;
use crate::flow::FlowExit;
use tokio::sync::{mpsc, oneshot};

/// What the control loop reacts to. The clock is the one thing beside it.
#[derive(Debug)]
pub enum Event {
    /// The operating system's word.
    Signal(Signal),
    /// A watched file may have changed.
    FileChanged,
    /// Changes of the files will be seen late, or not at all.
    WatchTrouble(String),
    /// Somebody asks for a reload and waits for its verdict.
    Reload {
        /// Where the verdict goes.
        reply: oneshot::Sender<ReloadVerdict>,
    },
    /// A load that was begun has ended.
    Loaded(Result<LoadedConfig, RejectedConfig>),
    /// A flow ended. `run` tells apart the flows that had this place one after the other.
    FlowExited {
        /// Its route.
        route: Name,
        /// The number of its start.
        run: u64,
        /// How it ended.
        exit: FlowExit,
    },
    /// A flow has taken new settings over.
    SettingsTaken {
        /// Its route.
        route: Name,
        /// The number of its start.
        run: u64,
    },
    /// The user holds a route.
    Pause {
        /// The route.
        route: Name,
        /// Whether it is known.
        reply: oneshot::Sender<Steered>,
    },
    /// The user lets a held route go on.
    Resume {
        /// The route.
        route: Name,
        /// Whether it is known.
        reply: oneshot::Sender<Steered>,
    },
}

/// The operating system's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGHUP.
    Reload,
    /// SIGTERM or SIGINT: gently the first time, at once the second.
    Stop,
    /// SIGUSR1.
    Snapshot,
}

/// The answer to pausing or resuming.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steered {
    /// It is under way.
    Accepted,
    /// It is so already.
    Already,
    /// No route has this name.
    Unknown,
    /// The process is stopping.
    Stopping,
}

/// Brings events to the control loop from any thread, without waiting.
///
/// Unbounded on purpose: a flow thread that ends must never wait for the loop, and there is at
/// most one event per flow start, signal, file change and request. No record passes here.
#[derive(Clone, Debug)]
pub struct EventSender(mpsc::UnboundedSender<Event>);

impl EventSender {
    /// A sender and the loop's end.
    pub fn channel() -> (Self, mpsc::UnboundedReceiver<Event>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Self(sender), receiver)
    }

    /// Brings `event`; nothing happens if the loop has ended.
    pub fn send(&self, event: Event) {
        let _ = self.0.send(event);
    }
}
