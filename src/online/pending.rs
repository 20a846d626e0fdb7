//! A question on a thread of its own, and how long its answer is waited for.
//!
//! A thread whose question does not end is left behind: resolving a name or a frozen broker may hold
//! a client's thread far longer than anybody wants to wait.

use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// What a question may take beyond its own deadline: the client keeps that deadline itself and says
/// more than we could.
const GRACE: Duration = Duration::from_millis(500);

/// An answer that is waited for.
pub(super) struct Pending<T> {
    answer: Receiver<T>,
    deadline: Instant,
}

impl<T: Send + 'static> Pending<T> {
    /// Asks `question`, which keeps to `patience` itself as well as it can.
    pub(super) fn ask(patience: Duration, question: impl FnOnce() -> T + Send + 'static) -> Self {
        let (tell, answer) = channel();
        // Without a thread there is no answer, which is what the waiting one finds.
        let _ = std::thread::Builder::new()
            .name("mirror-question".into())
            .spawn(move || {
                let _ = tell.send(question());
            });
        Self {
            answer,
            deadline: Instant::now() + patience + GRACE,
        }
    }

    /// The answer, `None` if there was none in time.
    pub(super) fn wait(self) -> Option<T> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        self.answer.recv_timeout(left).ok()
    }

    /// The answer, if it comes within `span`.
    pub(super) fn wait_a_little(&self, span: Duration) -> Wait<T> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        match self.answer.recv_timeout(left.min(span)) {
            Ok(answer) => Wait::Answered(answer),
            Err(RecvTimeoutError::Timeout) if left > span => Wait::NotYet,
            Err(_) => Wait::Never,
        }
    }
}

impl<T> Pending<T> {
    /// The same answer, waited for no longer than `span` from now.
    pub(super) fn at_most(self, span: Duration) -> Self {
        Self {
            deadline: self.deadline.min(Instant::now() + span),
            ..self
        }
    }
}

/// What a little waiting brought.
pub(super) enum Wait<T> {
    /// The answer.
    Answered(T),
    /// Nothing so far.
    NotYet,
    /// Nothing, and the time is up.
    Never,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_that_never_ends_holds_nobody() {
        let (keep, never) = channel::<()>();
        let pending = Pending::ask(Duration::from_millis(10), move || never.recv());
        assert!(pending.wait().is_none(), "still asking");
        drop(keep);
        assert_eq!(Pending::ask(Duration::from_secs(60), || 7).wait(), Some(7));
    }

    #[test]
    fn a_question_that_dies_is_not_waited_for() {
        let pending = Pending::ask(Duration::from_secs(3600), || {
            std::panic::resume_unwind(Box::new("dies"));
        });
        assert!(matches!(
            pending.wait_a_little(Duration::from_secs(60)),
            Wait::<()>::Never
        ));
    }
}
