//! A member takes its leave: it answers what the group still asks, says that it goes, and its client ends.
//!
//! On a thread of its own, since a call of the client may wait for ever: what it is asked while its membership ends it
//! may throw away without an answer. Whoever lets a member go waits no longer than it wants to (B101).

use super::consumer::{LogContext, list};
use super::native::{self, Queue, Said};
use crate::config::spec::GroupProtocol;
use crate::record::TopicPartition;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::topic_partition_list::TopicPartitionList;
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Between two looks whether a member has left.
const LOOK: Duration = Duration::from_millis(10);

/// How a member's leave ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// The group knows, and the client has ended.
    Closed,
    /// It is still at it, and left to itself.
    Behind,
}

/// A member that leaves.
pub(super) struct Leaving {
    /// Dropped only where it is closed: dropping one whose coordinator is away waits for it.
    pub(super) client: ManuallyDrop<BaseConsumer<LogContext>>,
    pub(super) queue: Arc<Queue>,
    pub(super) protocol: GroupProtocol,
    /// What it fetches.
    pub(super) placed: Vec<TopicPartition>,
    pub(super) subject: Arc<str>,
}

impl Leaving {
    /// Leaves, or is left to itself past the deadline. Its memory goes with the process then; closing a handle whose
    /// coordinator is away may block, or worse (B105).
    pub(super) fn within(self, patience: Duration) -> Left {
        let begun = Instant::now();
        let (tell, told) = crossbeam_channel::bounded(1);
        let subject = self.subject.clone();
        let spawned = std::thread::Builder::new()
            .name("mirror-leave".into())
            .spawn(move || {
                if self.leave(begun, patience) {
                    drop(ManuallyDrop::into_inner(self.client));
                    let _ = tell.send(());
                } else {
                    native::Doomed::of(&*self.client).destroy();
                }
            });
        if let Err(error) = spawned {
            tracing::warn!(event = "client_leaked", %subject, %error);
            return Left::Behind;
        }
        match told.recv_timeout(patience) {
            Ok(()) => Left::Closed,
            Err(_) => Left::Behind,
        }
    }

    /// Whether it has left in time.
    fn leave(&self, begun: Instant, patience: Duration) -> bool {
        self.unassign();
        if self.protocol == GroupProtocol::Classic {
            // librdkafka closes a cooperative member that has no partitions without a word to the
            // group, which then waits for it until its session ends. Unsubscribing does say it; in a
            // rebalance it waits for its end.
            self.client.unsubscribe();
            self.serve(begun + patience * 3 / 4, |c| !native::is_member(c));
        }
        // Nothing is asked of the client behind this but what the group waits for.
        native::close_consumer(&*self.client, &self.queue);
        self.serve(begun + patience, native::is_closed);
        native::is_closed(&*self.client)
    }

    /// Fetches no more; answers a revoke that was read and is still open, since the close would wait for that.
    fn unassign(&self) {
        if let Err(error) = self.client.incremental_unassign(&list(&self.placed)) {
            tracing::debug!(event = "unassign_failed", subject = %self.subject, %error);
        }
    }

    /// Answers what the group still asks, until it is done.
    fn serve(&self, until: Instant, done: impl Fn(&BaseConsumer<LogContext>) -> bool) {
        while !done(&self.client) && Instant::now() < until {
            let Some(event) = self.queue.poll(LOOK) else {
                continue;
            };
            let answered = match event.read() {
                // Nothing is taken any more; an assignment has to be answered all the same.
                Said::Assign(_) => self.client.incremental_assign(&TopicPartitionList::new()),
                Said::Revoke(_) => self.client.incremental_unassign(&TopicPartitionList::new()),
                _ => continue,
            };
            if let Err(error) = answered {
                tracing::debug!(event = "leaving_answer_failed", subject = %self.subject, %error);
            }
        }
    }
}

/// Ends a client that could not leave its group, on a thread of its own: it may take long, and
/// closing one whose coordinator is away may crash (B105), so it is not closed again.
pub(super) fn destroy_aside(client: BaseConsumer<LogContext>) {
    let client = ManuallyDrop::new(client);
    let handle = native::Doomed::of(&*client);
    let spawned = std::thread::Builder::new()
        .name("mirror-destroy".into())
        .spawn(move || handle.destroy());
    if let Err(error) = spawned {
        tracing::warn!(event = "client_leaked", %error);
    }
}
