//! The state machine over fake flows, with a clock that the test moves.

use super::testing::{Fakes, Told, changed, cluster, name, route, route_until_end, spec, tuned};
use super::*;
use crate::config::spec::{RouteSpec, Spec};
use crate::flow::{FlowExit, Unconfirmed};
use crate::observe::{Reason, State};
use crate::record::TopicPartition;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::oneshot;

/// A supervisor over fakes, with a clock that the test moves.
struct Bench {
    supervisor: Supervisor,
    events: UnboundedReceiver<Event>,
    flows: Arc<Fakes>,
    board: Arc<Board>,
    now: Instant,
}

fn config(spec: Spec, hash: &str) -> LoadedConfig {
    LoadedConfig {
        spec: Arc::new(spec),
        hash: hash.to_owned(),
        files: vec!["mirror.yaml".into()],
        warnings: String::new(),
    }
}

impl Bench {
    fn with(routes: Vec<Arc<RouteSpec>>) -> Self {
        let (sender, events) = EventSender::channel();
        let flows = Arc::new(Fakes::default());
        let board = Arc::new(Board::default());
        let limits = Limits {
            jitter: || 1.0,
            ..Limits::default()
        };
        let supervisor = Supervisor::new(flows.clone(), sender, board.clone(), limits);
        let mut bench = Self {
            supervisor,
            events,
            flows,
            board,
            now: Instant::now(),
        };
        bench
            .supervisor
            .begin(config(spec(routes), "first"), bench.now);
        bench
    }

    /// Handles what the fakes have sent.
    fn pump(&mut self) {
        while let Ok(event) = self.events.try_recv() {
            self.supervisor.handle(event, self.now);
        }
    }

    /// Moves the clock, stopping at each deadline on the way.
    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            let next = self
                .supervisor
                .deadline(self.now)
                .max(self.now + Duration::from_millis(1));
            if next > end {
                break;
            }
            self.now = next;
            self.supervisor.tick(self.now);
            self.pump();
        }
        self.now = end;
    }

    fn end(&mut self, route: &str, exit: FlowExit) {
        self.flows.last(route).exit(exit);
        self.pump();
    }

    /// Asks for a reload that loads `result`.
    fn reload(
        &mut self,
        result: Result<LoadedConfig, RejectedConfig>,
    ) -> oneshot::Receiver<ReloadVerdict> {
        let (reply, verdict) = oneshot::channel();
        self.supervisor.handle(Event::Reload { reply }, self.now);
        assert!(self.supervisor.take_effects().contains(&Effect::Load));
        self.supervisor.handle(Event::Loaded(result), self.now);
        verdict
    }

    fn state(&self, of: &str) -> State {
        self.board.snapshot().routes[&name(of)].condition().state
    }

    fn signal(&mut self, signal: Signal) {
        self.supervisor.handle(Event::Signal(signal), self.now);
    }
}

fn unreachable() -> FlowExit {
    FlowExit::Failed(Reason::NoTopics)
}

fn rejected() -> RejectedConfig {
    RejectedConfig {
        first_error: "mirror.yaml:3:1: unknown key".into(),
        rendered: String::new(),
        hash: Some("bad".into()),
        files: Vec::new(),
    }
}

fn results(verdict: ReloadVerdict) -> Vec<(String, RouteResult)> {
    match verdict {
        ReloadVerdict::Applied { routes, .. } => routes.into_iter().collect(),
        other => panic!("{other}"),
    }
}

mod endings;
mod model;
mod reloads;
mod restarts;
