//! The seam to the engine: whoever starts flows, and a flow that runs.

use super::event::{Event, EventSender};
use crate::config::spec::{Name, RouteSpec};
use crate::flow::{FlowExit, FlowHandle, FlowSpec, OnTaken};
use crate::observe::{FlowView, Reason};
use std::sync::Arc;
use std::time::Instant;

/// Called once by a flow that ended, from any thread.
pub type OnExit = Box<dyn FnOnce(FlowExit) + Send>;

/// Starts flows. Must return at once: building clients and threads is the flow's own work, and
/// its failure is an exit.
pub trait Flows: Send + Sync {
    /// Starts a flow; `on_exit` follows when it has ended.
    fn start(&self, spec: FlowSpec, on_exit: OnExit) -> Arc<dyn RunningFlow>;
}

/// The engine as a function.
impl<F> Flows for F
where
    F: Fn(FlowSpec, OnExit) -> FlowHandle + Send + Sync,
{
    fn start(&self, spec: FlowSpec, on_exit: OnExit) -> Arc<dyn RunningFlow> {
        Arc::new(self(spec, on_exit))
    }
}

/// A flow that was started. Dropping it aborts the flow.
pub trait RunningFlow: Send + Sync {
    /// What is seen of it.
    fn view(&self) -> Arc<FlowView>;
    /// Asks it to stop gently until `deadline`.
    fn drain(&self, deadline: Instant);
    /// Asks it to stop at once.
    fn abort(&self);
    /// Gives it new settings of its route; `on_taken` follows when they hold.
    fn change(&self, route: Arc<RouteSpec>, on_taken: OnTaken);
}

impl RunningFlow for FlowHandle {
    fn view(&self) -> Arc<FlowView> {
        Arc::clone(&self.view)
    }

    fn drain(&self, deadline: Instant) {
        FlowHandle::drain(self, deadline);
    }

    fn abort(&self) {
        FlowHandle::abort(self);
    }

    fn change(&self, route: Arc<RouteSpec>, on_taken: OnTaken) {
        FlowHandle::change(self, route, on_taken);
    }
}

/// An `on_exit` that speaks exactly once.
///
/// A flow thread that panics unwinds past the line that would have called `on_exit`. The closure
/// is then dropped uncalled, and without this guard the route would wait for that exit for ever:
/// never restarted, and every later reload and shutdown would run into its deadline.
pub(super) fn exit_to(events: EventSender, route: Name, run: u64) -> OnExit {
    let guard = ExitGuard {
        events,
        route,
        run,
        spoken: Spoken::No,
    };
    Box::new(move |exit| {
        let mut guard = guard;
        guard.speak(exit);
    })
}

/// An `on_taken` that brings the word to the supervisor.
pub(super) fn taken_to(events: EventSender, route: Name, run: u64) -> OnTaken {
    Box::new(move || events.send(Event::SettingsTaken { route, run }))
}

struct ExitGuard {
    events: EventSender,
    route: Name,
    run: u64,
    spoken: Spoken,
}

#[derive(PartialEq, Eq)]
enum Spoken {
    Yes,
    No,
}

impl ExitGuard {
    fn speak(&mut self, exit: FlowExit) {
        self.spoken = Spoken::Yes;
        self.events.send(Event::FlowExited {
            route: self.route.clone(),
            run: self.run,
            exit,
        });
    }
}

impl Drop for ExitGuard {
    fn drop(&mut self) {
        if self.spoken == Spoken::No {
            self.speak(FlowExit::Failed(Reason::Panic {
                detail: "the flow ended without saying how".into(),
            }));
        }
    }
}
