//! Watches over a flow's threads until every worker has ended: steering, state, exit.

use super::scout::Inquiry;
use super::target::Ask;
use super::worker::{Note, WorkerExit};
use super::{Control, FlowExit};
use crate::client::consumer::Waker;
use crate::observe::{FlowView, PartitionView, Reason, State};
use crossbeam_channel::{Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a flow that cannot go on has for its drain.
const GIVE_UP: Duration = Duration::from_secs(10);
/// How long a flow that is done has for its last drain.
const LAST_DRAIN: Duration = Duration::from_secs(25);

/// Troubles with the two clusters, as scout and keeper see them.
#[derive(Default)]
pub(crate) struct Troubles {
    pub(super) source: Mutex<Option<Reason>>,
    pub(super) target: Mutex<Option<Reason>>,
}

impl Troubles {
    /// Whether the source does not answer.
    pub(crate) fn source_is_away(&self) -> bool {
        let reason = self.source.lock().unwrap_or_else(PoisonError::into_inner);
        matches!(*reason, Some(Reason::Unreachable { .. }))
    }

    /// Whether the target does not answer.
    pub(crate) fn target_is_away(&self) -> bool {
        let reason = self.target.lock().unwrap_or_else(PoisonError::into_inner);
        matches!(*reason, Some(Reason::Unreachable { .. }))
    }

    pub(super) fn set(slot: &Mutex<Option<Reason>>, subject: &str, reason: Option<Reason>) {
        let mut now = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if *now == reason {
            return;
        }
        match &reason {
            Some(reason) => {
                tracing::warn!(
                    event = "cluster_trouble",
                    subject,
                    reason = reason.code(),
                    "{reason}"
                );
            }
            None => tracing::info!(event = "cluster_answers", subject),
        }
        *now = reason;
    }

    fn any(&self) -> Option<Reason> {
        let read = |slot: &Mutex<Option<Reason>>| {
            slot.lock().unwrap_or_else(PoisonError::into_inner).clone()
        };
        read(&self.source).or_else(|| read(&self.target))
    }
}

/// What a thread of the flow says at its end.
pub(super) enum Ended {
    /// A worker has ended.
    Worker(WorkerExit),
    /// Another thread panicked: the flow cannot go on without it.
    Died(Reason),
}

/// A built flow.
pub(super) struct Flow {
    pub(super) view: Arc<FlowView>,
    pub(super) subject: Arc<str>,
    pub(super) inboxes: Vec<Inbox>,
    pub(super) ended: Receiver<Ended>,
    pub(super) scout: Sender<Inquiry>,
    pub(super) keeper: Sender<Ask>,
    pub(super) troubles: Arc<Troubles>,
    pub(super) until: Receiver<Option<Reason>>,
    /// Kept so that `until` is never closed: a closed channel would be ready for ever.
    pub(super) _until: Sender<Option<Reason>>,
}

/// A worker's inbox, with what wakes it from a poll.
#[derive(Clone)]
pub(super) struct Inbox {
    pub(super) notes: Sender<Note>,
    pub(super) waker: Waker,
}

impl Inbox {
    pub(super) fn tell(&self, note: Note) {
        if self.notes.send(note).is_ok() {
            self.waker.wake();
        }
    }
}

impl Flow {
    /// Watches until every worker has ended.
    pub(super) fn watch(self, controls: &Receiver<Control>) -> FlowExit {
        let mut course = Course::default();
        let ticker = crossbeam_channel::tick(Duration::from_millis(500));
        let mut controls = controls.clone();
        while course.exits.len() < self.inboxes.len() {
            crossbeam_channel::select! {
                recv(self.ended) -> ended => match ended {
                    Ok(Ended::Worker(exit)) => self.worker_ended(exit, &mut course),
                    Ok(Ended::Died(reason)) => {
                        course.died = Some(reason);
                        self.steer(Control::Drain { deadline: Instant::now() + GIVE_UP });
                    }
                    Err(_) => break,
                },
                recv(controls) -> control => match control {
                    Ok(control) => self.steer(control),
                    Err(_) => {
                        // Whoever held the handle let go of it.
                        controls = crossbeam_channel::never();
                        self.steer(Control::Abort);
                    }
                },
                recv(self.until) -> done => if let Ok(done) = done {
                    course.until = Some(done);
                    self.steer(Control::Drain { deadline: Instant::now() + LAST_DRAIN });
                },
                recv(ticker) -> _ => self.show(),
            }
        }
        let _ = self.scout.send(Inquiry::Stop);
        let _ = self.keeper.send(Ask::Stop);
        course.exit()
    }

    fn steer(&self, control: Control) {
        match &control {
            Control::Drain { .. } => {
                self.view.become_(State::Draining, None);
            }
            Control::Change(settings) => {
                let _ = self.keeper.send(Ask::Change(settings.route.clone()));
                let _ = self.scout.send(Inquiry::Change(settings.route.clone()));
            }
            Control::Abort => {}
        }
        for inbox in &self.inboxes {
            inbox.tell(Note::Control(control.clone()));
        }
    }

    /// One worker that cannot go on ends the flow: the rest drains.
    fn worker_ended(&self, exit: WorkerExit, course: &mut Course) {
        let bad = matches!(exit, WorkerExit::Failed(_) | WorkerExit::AbortRoute(_));
        course.exits.push(exit);
        if bad {
            self.steer(Control::Drain {
                deadline: Instant::now() + GIVE_UP,
            });
        }
    }

    /// The flow's own condition, from its clusters' and its partitions'.
    fn show(&self) {
        let now = self.view.condition().state;
        if matches!(now, State::Draining | State::Stopped | State::Paused) {
            return;
        }
        let (state, reason) = self.condition();
        if self.view.become_(state, reason.clone()) {
            tracing::info!(event = "flow_state", subject = %self.subject, %state,
                reason = reason.as_ref().map(Reason::code));
        }
    }

    fn condition(&self) -> (State, Option<Reason>) {
        if let Some(reason) = self.troubles.any() {
            return (State::Failed, Some(reason));
        }
        let partitions = self.view.partitions();
        let worst = [
            State::Failed,
            State::Stalled,
            State::Starting,
            State::Lagging,
        ];
        for state in worst {
            if let Some(found) = partitions.values().find(|p| p.condition.state == state) {
                return (state, found.condition.reason.clone());
            }
        }
        let waits =
            |p: &PartitionView| matches!(p.condition.reason, Some(Reason::OpenTransaction { .. }));
        if let Some(found) = partitions.values().find(|p| waits(p)) {
            return (found.condition.state, found.condition.reason.clone());
        }
        if self.view.matches_nothing() {
            return (State::Starting, Some(Reason::NoTopics));
        }
        if partitions.is_empty() && self.view.topics().is_empty() {
            return (State::Starting, None);
        }
        (State::Running, None)
    }
}

/// How the flow's end came about.
#[derive(Default)]
struct Course {
    exits: Vec<WorkerExit>,
    died: Option<Reason>,
    until: Option<Option<Reason>>,
}

impl Course {
    fn exit(self) -> FlowExit {
        let mut unconfirmed = Vec::new();
        let mut failed = self.died;
        for exit in self.exits {
            match exit {
                WorkerExit::AbortRoute(reason) => return FlowExit::AbortRoute(reason),
                WorkerExit::Failed(reason) => failed = Some(reason),
                WorkerExit::Unconfirmed(left) => unconfirmed.extend(left),
                WorkerExit::Drained => {}
            }
        }
        match (failed, self.until) {
            (Some(reason), _) | (None, Some(Some(reason))) => FlowExit::Failed(reason),
            _ if !unconfirmed.is_empty() => FlowExit::Unconfirmed(unconfirmed),
            (None, Some(None)) => FlowExit::CaughtUp,
            (None, None) => FlowExit::Drained,
        }
    }
}
