//! The question between taking a watermark and committing it: are these topics still the same?
//!
//! On a thread of its own beside the scout's, with the same client: a revoke has seconds for its
//! commit, and the scout may just be waiting for a partition without leader.

use crate::client::admin::Observer;
use crate::flow::scout::{Finding, identities};
use crossbeam_channel::Receiver;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// How long the question may take.
const ASK: Duration = Duration::from_secs(10);

/// Are these topics still the same?
#[derive(Debug)]
pub(crate) struct Verify {
    pub(crate) worker: u8,
    pub(crate) id: u64,
    pub(crate) topics: Vec<Arc<str>>,
}

/// Answers until nobody is left to ask.
pub(crate) fn run(
    questions: &Receiver<Verify>,
    observer: &OnceLock<Arc<Observer>>,
    tell: impl Fn(u8, Finding),
) {
    for Verify { worker, id, topics } in questions {
        let ids = match observer.get() {
            Some(observer) => identities(observer, &topics, ASK),
            None => Err("the source has not answered yet".to_owned()),
        };
        tell(worker, Finding::Verified { id, ids });
    }
}
