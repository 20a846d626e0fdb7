//! A group member that fetches: [`Source`] over one librdkafka consumer.
//!
//! The member never blocks in a rebalance: librdkafka reports it as an event, the engine drains at
//! its own pace and answers with [`Source::release`]. An assignment is acknowledged at once with an
//! *empty* list; partitions are added one by one as their position and target topic are known
//! ([`Source::place`]), so that nothing is ever fetched from a place that we did not choose (B028).

use crate::client::leaving::{Leaving, Left, destroy_aside};
use crate::client::native::{self, Event, Fetched, Queue, Said, Severity};
use crate::client::settings::{self, MemberSettings};
use crate::config::spec::GroupProtocol;
use crate::plane::{
    Abandon, Batch, CommitAnswer, CommitEntry, FetchEvent, FetchedRecord, Offset, RECORD_OVERHEAD,
    Source, SourceFault,
};
use crate::record::{HeaderSource, TopicPartition};
use rdkafka::ClientConfig;
use rdkafka::client::ClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext};
use rdkafka::topic_partition_list::TopicPartitionList;
use rdkafka::types::{RDKafka, RDKafkaErrorCode};
use std::collections::HashSet;
use std::mem::ManuallyDrop;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Records of a batch at most.
const BATCH_RECORDS: usize = 4096;
/// Cost of a batch at most, one record excepted.
const BATCH_COST: u64 = 1 << 20;
/// How long the client may take to move a position.
const SEEK_TIMEOUT: Duration = Duration::from_secs(2);

/// Routes librdkafka's lines into the program's log (they vanish otherwise).
#[derive(Clone, Debug)]
pub struct LogContext {
    /// What the client serves, as `route/source→target`.
    pub subject: Arc<str>,
}

impl ClientContext for LogContext {
    fn log(&self, level: rdkafka::config::RDKafkaLogLevel, facility: &str, line: &str) {
        write_log(&self.subject, level as i32, facility, line);
    }

    fn error(&self, error: rdkafka::error::KafkaError, reason: &str) {
        tracing::debug!(event = "client_error", subject = %self.subject, %error, reason);
    }
}

impl ConsumerContext for LogContext {}

/// Writes one of librdkafka's lines. Its "errors" are mostly passing connection troubles: they are
/// warnings here, and states say what matters.
pub(crate) fn write_log(subject: &str, level: i32, facility: &str, line: &str) {
    // What the settings are is ours to know (`enable.gapless.guarantee` is called experimental at
    // each start of a producer).
    let level = if facility == "CONFWARN" { 7 } else { level };
    match level {
        0..=4 => tracing::warn!(event = "client_log", subject, facility, "{line}"),
        5 => tracing::info!(event = "client_log", subject, facility, "{line}"),
        _ => tracing::debug!(event = "client_log", subject, facility, "{line}"),
    }
}

impl native::Handle for BaseConsumer<LogContext> {
    fn handle(&self) -> *mut RDKafka {
        self.client().native_ptr()
    }
}

impl FetchedRecord for Fetched {
    fn offset(&self) -> Offset {
        Offset(Fetched::offset(self))
    }
    fn key(&self) -> Option<&[u8]> {
        Fetched::key(self)
    }
    fn value(&self) -> Option<&[u8]> {
        Fetched::value(self)
    }
    fn timestamp(&self) -> Option<i64> {
        Fetched::timestamp(self)
    }
    fn bytes(&self) -> u64 {
        self.len() as u64
    }
    fn leader_epoch(&self) -> i32 {
        Fetched::leader_epoch(self)
    }
    fn headers(&self) -> &dyn HeaderSource {
        self
    }
}

/// Wakes a member that waits in [`Source::poll`].
#[derive(Clone)]
pub struct Waker {
    /// The queue of the member's present client.
    queue: Arc<Mutex<Arc<Queue>>>,
}

impl Waker {
    /// Makes the current, or else the next, poll return.
    pub fn wake(&self) {
        let queue = self.queue.lock();
        queue.unwrap_or_else(PoisonError::into_inner).wake();
    }

    fn follow(&self, queue: &Arc<Queue>) {
        let mut followed = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        *followed = queue.clone();
    }
}

/// A member of a flow's group.
pub struct Member {
    /// What its client is made with, to make it anew.
    config: ClientConfig,
    client: Option<BaseConsumer<LogContext>>,
    queue: Arc<Queue>,
    waker: Waker,
    subject: Arc<str>,
    protocol: GroupProtocol,
    /// The first record of the next batch, met while the last one was collected.
    ahead: Option<Fetched>,
    /// An event met while a batch was collected.
    waiting: Option<FetchEvent<Fetched>>,
    /// What librdkafka fetches for us now.
    placed: HashSet<TopicPartition>,
}

impl Member {
    /// Builds a member; it joins with its first subscription.
    ///
    /// # Errors
    /// The client's words.
    pub fn new(of: &MemberSettings<'_>, subject: Arc<str>) -> Result<Self, String> {
        let config = settings::member(of);
        let (client, queue) = connect(&config, &subject)?;
        Ok(Self {
            config,
            client: Some(client),
            waker: Waker {
                queue: Arc::new(Mutex::new(queue.clone())),
            },
            queue,
            subject,
            protocol: of.protocol,
            ahead: None,
            waiting: None,
            placed: HashSet::new(),
        })
    }

    /// A handle that wakes this member from other threads.
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    fn client(&self) -> Result<&BaseConsumer<LogContext>, String> {
        self.client
            .as_ref()
            .ok_or_else(|| "left the group".to_owned())
    }

    /// Collects records of one partition: what is there already, up to the batch's limits.
    fn collect(&mut self, first: Fetched) -> FetchEvent<Fetched> {
        let partition = first.topic_partition();
        let start = FetchedRecord::offset(&first);
        let mut cost = first.bytes() + RECORD_OVERHEAD;
        let mut records = Vec::with_capacity(64);
        records.push(first);
        while records.len() < BATCH_RECORDS && cost < BATCH_COST {
            let Some(event) = self.queue.poll(Duration::ZERO) else {
                break;
            };
            match event.read() {
                Said::Fetched(next)
                    if records.last().is_some_and(|r| r.same_partition(&next))
                        && FetchedRecord::offset(&next).distance(start).is_some() =>
                {
                    cost += next.bytes() + RECORD_OVERHEAD;
                    records.push(next);
                }
                Said::Fetched(next) => {
                    self.ahead = Some(next);
                    break;
                }
                said => {
                    // Served after the batch that it came after.
                    self.waiting = self.translate(said);
                    if self.waiting.is_some() {
                        break;
                    }
                }
            }
        }
        FetchEvent::Batch(Batch::new(partition, records))
    }

    fn read(&mut self, event: Event) -> FetchEvent<Fetched> {
        match event.read() {
            Said::Fetched(first) => self.collect(first),
            said => self.translate(said).unwrap_or(FetchEvent::Idle),
        }
    }

    fn translate(&mut self, said: Said) -> Option<FetchEvent<Fetched>> {
        match said {
            Said::Assign(partitions) => Some(self.assigned(partitions)),
            Said::Revoke(partitions) => Some(self.revoked(partitions)),
            Said::Committed { id, results, error } => Some(FetchEvent::Committed(CommitAnswer {
                id,
                results: results
                    .into_iter()
                    .map(|(tp, r)| (tp, r.map(Offset).map_err(|e| e.to_string())))
                    .collect(),
                error: error.map(|e| e.to_string()),
            })),
            Said::EndOfPartition(tp, offset) => Some(FetchEvent::End(tp, Offset(offset))),
            Said::Error {
                code,
                partition,
                detail,
                severity,
            } => self.fault(code, partition, detail, severity),
            Said::Log {
                level,
                facility,
                line,
            } => {
                write_log(&self.subject, level, &facility, &line);
                None
            }
            Said::Fetched(_) | Said::Delivered(_) | Said::Other => None,
        }
    }

    fn assigned(&mut self, partitions: Vec<TopicPartition>) -> FetchEvent<Fetched> {
        // Acknowledged with nothing: positions first (see the module's head).
        if let Ok(client) = self.client()
            && let Err(error) = client.incremental_assign(&TopicPartitionList::new())
        {
            tracing::warn!(event = "assign_failed", subject = %self.subject, %error);
        }
        FetchEvent::Assigned(partitions)
    }

    fn revoked(&mut self, partitions: Vec<TopicPartition>) -> FetchEvent<Fetched> {
        match self.client() {
            Ok(client) if client.assignment_lost() => FetchEvent::Lost(partitions),
            _ => FetchEvent::Revoked(partitions),
        }
    }

    fn fault(
        &self,
        code: RDKafkaErrorCode,
        partition: Option<TopicPartition>,
        detail: String,
        severity: Severity,
    ) -> Option<FetchEvent<Fetched>> {
        use RDKafkaErrorCode as Code;
        if severity == Severity::Fatal {
            return Some(FetchEvent::Fatal(detail));
        }
        match (code, partition) {
            (Code::AutoOffsetReset | Code::OffsetOutOfRange, Some(tp)) => {
                Some(FetchEvent::OutOfRange(tp))
            }
            // Checksum, compression, format: what is behind such records comes all the same.
            (Code::BadMessage | Code::BadCompression | Code::NotImplemented, Some(partition)) => {
                Some(FetchEvent::Unreadable { partition, detail })
            }
            // librdkafka says so and rejoins by itself (B026).
            (Code::PollExceeded, _) => {
                tracing::warn!(event = "poll_exceeded", subject = %self.subject, "{detail}");
                None
            }
            (code, Some(partition)) => Some(FetchEvent::PartitionError {
                partition,
                detail,
                kind: match code {
                    Code::UnknownTopicOrPartition | Code::UnknownTopic | Code::UnknownPartition => {
                        SourceFault::Gone
                    }
                    Code::TopicAuthorizationFailed | Code::GroupAuthorizationFailed => {
                        SourceFault::Refused
                    }
                    _ => SourceFault::Other,
                },
            }),
            // "All brokers down" and its like: progress tells, not this (B148).
            (_, None) => {
                tracing::debug!(event = "client_error", subject = %self.subject, "{detail}");
                None
            }
        }
    }
}

pub(super) fn list(partitions: &[TopicPartition]) -> TopicPartitionList {
    let mut list = TopicPartitionList::with_capacity(partitions.len());
    for tp in partitions {
        list.add_partition(&tp.topic, tp.partition);
    }
    list
}

impl Source for Member {
    type Record = Fetched;

    fn poll(&mut self, timeout: Duration) -> FetchEvent<Fetched> {
        if let Some(first) = self.ahead.take() {
            // An event that was met before `ahead` would be in `waiting`; both are never set.
            return self.collect(first);
        }
        if let Some(event) = self.waiting.take() {
            return event;
        }
        match self.queue.poll(timeout) {
            Some(event) => self.read(event),
            None => FetchEvent::Idle,
        }
    }

    fn subscribe(&mut self, topics: &[String]) -> Result<(), String> {
        let client = self.client()?;
        let names: Vec<&str> = topics.iter().map(String::as_str).collect();
        if names.is_empty() {
            client.unsubscribe();
            return Ok(());
        }
        client.subscribe(&names).map_err(|e| e.to_string())
    }

    fn place(&mut self, at: &[(TopicPartition, Offset)]) -> Result<(), String> {
        let mut list = TopicPartitionList::with_capacity(at.len());
        for (tp, offset) in at {
            list.add_partition_offset(&tp.topic, tp.partition, rdkafka::Offset::Offset(offset.0))
                .map_err(|e| e.to_string())?;
        }
        let client = self.client()?;
        // An assign would clear the mark of a loss whose event we have not read yet, and the loss
        // would be read as a revoke: drained and committed, although somebody else owns it (I3).
        if client.assignment_lost() {
            return Err("the assignment is lost".to_owned());
        }
        client
            .incremental_assign(&list)
            .map_err(|e| e.to_string())?;
        let placed: Vec<TopicPartition> = at.iter().map(|(tp, _)| tp.clone()).collect();
        self.placed.extend(placed.iter().cloned());
        // A pause outlives its assignment: what was paused when it left would never be fetched again.
        self.resume(&placed);
        Ok(())
    }

    /// Seeks rather than unassigns and assigns: an unassign while the group waits for the answer to
    /// a revoke, whose event we have not read yet, would be taken for that answer, and the revoked
    /// partitions would be given away while we still write their records.
    fn rewind(&mut self, partition: &TopicPartition, to: Offset) -> Result<(), String> {
        self.drop_popped(std::slice::from_ref(partition));
        let client = self.client()?;
        // Resumed first: a seek while paused is undone by the resume, which goes back to the
        // position before it (B030). What is fetched in between is outdated by the seek.
        client
            .resume(&list(std::slice::from_ref(partition)))
            .map_err(|e| e.to_string())?;
        let mut target = TopicPartitionList::new();
        target
            .add_partition_offset(
                &partition.topic,
                partition.partition,
                rdkafka::Offset::Offset(to.0),
            )
            .map_err(|e| e.to_string())?;
        let done = client
            .seek_partitions(target, SEEK_TIMEOUT)
            .map_err(|e| e.to_string())?;
        done.elements()
            .iter()
            .try_for_each(|e| e.error().map_err(|e| e.to_string()))
    }

    fn pause(&mut self, partitions: &[TopicPartition]) {
        let placed: Vec<_> = self.only_placed(partitions);
        if let Ok(client) = self.client()
            && let Err(error) = client.pause(&list(&placed))
        {
            tracing::warn!(event = "pause_failed", subject = %self.subject, %error);
        }
    }

    fn resume(&mut self, partitions: &[TopicPartition]) {
        let placed: Vec<_> = self.only_placed(partitions);
        if let Ok(client) = self.client()
            && let Err(error) = client.resume(&list(&placed))
        {
            tracing::warn!(event = "resume_failed", subject = %self.subject, %error);
        }
    }

    fn release(&mut self, partitions: &[TopicPartition]) -> Result<(), String> {
        self.drop_popped(partitions);
        let placed = self.only_placed(partitions);
        for tp in &placed {
            self.placed.remove(tp);
        }
        // Also with an empty list: it is the answer that the group waits for.
        self.client()?
            .incremental_unassign(&list(&placed))
            .map_err(|e| e.to_string())
    }

    fn commit(&mut self, entries: &[CommitEntry], id: u64) -> Result<(), String> {
        let entries: Vec<_> = entries
            .iter()
            .map(|e| native::CommitEntry {
                partition: &e.partition,
                offset: e.offset.0,
                leader_epoch: e.leader_epoch,
                metadata: &e.metadata,
            })
            .collect();
        native::commit(self.client()?, &self.queue, &entries, id).map_err(|e| e.to_string())
    }

    /// Bounded (B101): past the deadline the handle is left to itself.
    fn leave(&mut self, deadline: Duration) {
        if self.left(deadline) == Some(Left::Behind) {
            tracing::warn!(event = "leave_abandoned", subject = %self.subject,
                "the group's coordinator did not answer in time; the member is left to its session timeout");
        }
    }

    fn renew(&mut self) -> Result<(), String> {
        let (client, queue) = connect(&self.config, &self.subject)?;
        self.waker.follow(&queue);
        self.queue = queue;
        self.ahead = None;
        self.waiting = None;
        self.placed.clear();
        if let Some(old) = self.client.replace(client) {
            destroy_aside(old);
        }
        Ok(())
    }

    /// The library's answer to a leave that cannot be sent touches a broker that may be gone, and takes
    /// the process with it (B105): a client whose cluster is away is not closed.
    fn abandon(&mut self, why: Abandon) {
        let Some(client) = self.client.take() else {
            return;
        };
        match why {
            Abandon::RecordsHeld => std::mem::forget(client),
            Abandon::ClusterAway => {
                self.ahead = None;
                self.waiting = None;
                destroy_aside(client);
            }
        }
    }
}

fn connect(
    config: &ClientConfig,
    subject: &Arc<str>,
) -> Result<(BaseConsumer<LogContext>, Arc<Queue>), String> {
    let context = LogContext {
        subject: subject.clone(),
    };
    let client: BaseConsumer<LogContext> = config
        .create_with_context(context)
        .map_err(|e| e.to_string())?;
    let queue = Queue::of_consumer(&client).ok_or("no consumer queue")?;
    Ok((client, Arc::new(queue)))
}

impl Member {
    /// How its leave ended; `None` if it had left before.
    fn left(&mut self, deadline: Duration) -> Option<Left> {
        let client = self.client.take()?;
        self.ahead = None;
        self.waiting = None;
        let leaving = Leaving {
            client: ManuallyDrop::new(client),
            queue: self.queue.clone(),
            protocol: self.protocol,
            placed: self.placed.drain().collect(),
            subject: self.subject.clone(),
        };
        Some(leaving.within(deadline))
    }

    /// Forgets what was popped and not handed over of these partitions. The client's own barrier
    /// does not reach it: an end that was seen before a rewind would cover records that are about
    /// to be fetched again.
    fn drop_popped(&mut self, partitions: &[TopicPartition]) {
        if self
            .ahead
            .as_ref()
            .is_some_and(|r| partitions.contains(&r.topic_partition()))
        {
            self.ahead = None;
        }
        if let Some(
            FetchEvent::End(tp, _)
            | FetchEvent::OutOfRange(tp)
            | FetchEvent::Unreadable { partition: tp, .. }
            | FetchEvent::PartitionError { partition: tp, .. },
        ) = &self.waiting
            && partitions.contains(tp)
        {
            self.waiting = None;
        }
    }

    fn only_placed(&self, partitions: &[TopicPartition]) -> Vec<TopicPartition> {
        partitions
            .iter()
            .filter(|tp| self.placed.contains(*tp))
            .cloned()
            .collect()
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.leave(Duration::from_secs(2));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::supervisor::testing;

    /// What the client is asked when its membership has just ended, it never answers.
    #[test]
    fn a_member_leaves_however_soon_its_client_ends() {
        let cluster = testing::cluster("a", "127.0.0.1:1");
        let settings = |protocol| MemberSettings {
            cluster: &cluster,
            group: "g",
            protocol,
            discovery_interval: Duration::from_secs(60),
            prefetch_bytes: 1 << 20,
        };
        for _ in 0..50 {
            for protocol in [GroupProtocol::Classic, GroupProtocol::Consumer] {
                let member = Member::new(&settings(protocol), "r/a→b".into());
                let left = member.unwrap().left(Duration::from_secs(60));
                assert_eq!(left, Some(Left::Closed), "{protocol:?}");
            }
        }
    }
}
