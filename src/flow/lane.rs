//! A lane: the one thread that handles and enqueues the batches of its partitions, in offset order
//! (I2). With `workers` the lane runs on the worker's own thread (KIP-3's Proposal 2), with
//! `handler_threads` on a thread of its own behind a bounded queue (Proposal 1).
//!
//! handlers → partition → produce, for each record of a batch; what became of the batch goes back
//! to the worker as [`Handled`].

use crate::config::spec::{OnError, RouteSpec};
use crate::flow::dead_letter::{self, DeadLetter};
use crate::flow::gate::Gate;
use crate::flow::target::{TargetTopic, TargetView};
use crate::handler::{BoundChain, Failure, FailureCode, StepFailure};
use crate::partition::{Choice, Policy};
use crate::plane::{Batch, FaultKind, FetchedRecord, Offset, ProduceFault, Sink, Token};
use crate::record::Record;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The poll thread's sign of life (`engine.md` rule 6). After a long stop of the process the group
/// may have moved on: nobody enqueues until the poll thread has asked it again.
#[derive(Debug)]
pub(crate) struct Lease {
    stamped_ms: AtomicU64,
    length: Duration,
}

/// What the poll thread finds when it stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeaseState {
    /// The last stamp was recent.
    Current,
    /// It was too long ago.
    Lapsed,
}

/// The boot clock goes on while the machine is suspended; the monotonic one does not.
fn boot_ms() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    u64::try_from(now.tv_sec).unwrap_or(0) * 1000
        + u64::try_from(now.tv_nsec).unwrap_or(0) / 1_000_000
}

impl Lease {
    pub(crate) fn new(length: Duration) -> Self {
        Self {
            stamped_ms: AtomicU64::new(boot_ms()),
            length,
        }
    }

    /// Stamps after a poll, and says whether the stamp before it had lapsed: what that poll brought
    /// may have been fetched before a long stop.
    pub(crate) fn stamp(&self) -> LeaseState {
        let now = boot_ms();
        let before = self.stamped_ms.swap(now, Ordering::AcqRel);
        if Duration::from_millis(now.saturating_sub(before)) < self.length {
            LeaseState::Current
        } else {
            LeaseState::Lapsed
        }
    }

    fn is_current(&self) -> bool {
        let age = boot_ms().saturating_sub(self.stamped_ms.load(Ordering::Acquire));
        Duration::from_millis(age) < self.length
    }
}

/// How careful a batch is produced.
#[derive(Clone, Debug)]
pub(crate) enum Care {
    /// As fast as it goes; a record that looks too large for its topic stops the batch before it.
    Normal,
    /// On the quarantine handle: sizes are the broker's to judge.
    Isolated,
    /// The single record of this batch cannot be delivered: its dead letter is produced instead.
    DeadLetter(Failure),
}

/// One batch to handle and produce.
pub(crate) struct Job<R, K> {
    pub(crate) batch: Batch<R>,
    /// The source cluster's name.
    pub(crate) source: Arc<str>,
    pub(crate) ticket: u32,
    pub(crate) epoch: u32,
    pub(crate) gate: Arc<Gate>,
    pub(crate) chain: Arc<BoundChain>,
    pub(crate) rules: Arc<Rules>,
    pub(crate) sink: Arc<K>,
    pub(crate) care: Care,
}

/// What became of a batch in the lane. Its outputs' outcomes follow from the sink.
#[derive(Debug, Default)]
pub(crate) struct Handled {
    /// Records enqueued.
    pub(crate) outputs: u32,
    /// Source records with at least one output.
    pub(crate) forwarded: u32,
    /// Source records dropped by a handler.
    pub(crate) dropped: u32,
    /// Source records left out by `on_error: skip`.
    pub(crate) skipped: u32,
    /// Source records of which a dead letter was enqueued.
    pub(crate) dead_lettered: u32,
    /// Failures of records seen.
    pub(crate) failed: u32,
    /// Bytes enqueued.
    pub(crate) output_bytes: u64,
    /// Where and why it stopped before the end.
    pub(crate) stop: Option<Stop>,
}

/// Why a lane stopped within a batch; the record at `offset` and all after it were not enqueued
/// (of a record with several outputs, some may have been).
#[derive(Debug)]
pub(crate) struct Stop {
    pub(crate) offset: Offset,
    pub(crate) cause: StopCause,
}

/// Causes of a stop.
#[derive(Debug)]
pub(crate) enum StopCause {
    /// The record failed, and `on_error` holds the partition.
    Poison(Failure),
    /// The record failed, and `on_error` aborts the route.
    Abort(Failure),
    /// The record looks too large for its topic: it goes alone.
    Oversize,
    /// The sink did not take it.
    Refused(ProduceFault),
    /// The target topic is not there.
    Missing(String),
    /// The target topic has fewer partitions than the policy needs.
    TooFew { topic: String, has: i32, needs: i32 },
    /// The epoch ended, or the lease did.
    Stale,
}

/// What a route says of its records, as it stood when a batch was taken.
#[derive(Debug)]
pub(crate) struct Rules {
    pub(crate) on_error: OnError,
    pub(crate) dead_letter: Option<Arc<str>>,
    pub(crate) record_bytes: Option<u64>,
}

impl Rules {
    pub(crate) fn of(route: &RouteSpec) -> Self {
        Self {
            on_error: route.on_error,
            dead_letter: route.dead_letter.as_deref().map(Into::into),
            record_bytes: route.record_bytes,
        }
    }

    /// `limits.record`: an output larger than the user allows is a failure of the record.
    fn check_limit(&self, outputs: &[Record<'_>]) -> Result<(), Failure> {
        over_limit(self.record_bytes, outputs)
    }
}

/// What is constant for all batches of a flow.
#[derive(Clone)]
pub(crate) struct LaneSpec {
    pub(crate) worker: u8,
    pub(crate) route: Arc<str>,
    pub(crate) targets: Arc<TargetView>,
    pub(crate) lease: Arc<Lease>,
}

/// `limits.record`: an output larger than the user allows is a failure of the record. A step that
/// makes one fails by itself; what is found here was fetched so large.
pub(crate) fn over_limit(limit: Option<u64>, outputs: &[Record<'_>]) -> Result<(), Failure> {
    let Some(limit) = limit else {
        return Ok(());
    };
    let size = |r: &Record<'_>| {
        (r.key.as_ref().map_or(0, |k| k.len()) + r.value.as_ref().map_or(0, |v| v.len())) as u64
    };
    match outputs.iter().map(size).find(|size| *size > limit) {
        None => Ok(()),
        Some(size) => Err(Failure {
            code: FailureCode::TooLarge,
            detail: format!("{size} bytes, limits.record is {limit}"),
        }),
    }
}

/// How many records go between two looks at the clock, for the lease.
const LEASE_STRIDE: usize = 256;

/// A topic as one sink knows it, with what the target said of it.
struct KnownTopic<T> {
    name: Arc<str>,
    handle: T,
    target: TargetTopic,
}

/// Handles and enqueues batches.
pub(crate) struct Lane<K: Sink> {
    spec: LaneSpec,
    policy: Policy,
    /// The sink that `known` belongs to.
    sink: Option<Arc<K>>,
    known: Vec<KnownTopic<K::Topic>>,
    by_name: HashMap<Arc<str>, usize, foldhash::fast::FixedState>,
    /// The last one used: most records go where the one before went.
    last: usize,
    generation: u64,
}

impl<K: Sink> Lane<K> {
    pub(crate) fn new(spec: LaneSpec, policy: Policy) -> Self {
        Self {
            spec,
            policy,
            sink: None,
            known: Vec::new(),
            by_name: HashMap::default(),
            last: 0,
            generation: 0,
        }
    }

    /// Handles and enqueues one batch.
    pub(crate) fn run<R: FetchedRecord>(&mut self, job: &Job<R, K>) -> Handled {
        self.refresh(&job.sink);
        let handled = self.records(job);
        if handled.stop.is_some() {
            job.gate.stop(job.epoch);
        }
        handled
    }

    /// Handles and enqueues record by record, up to a stop.
    fn records<R: FetchedRecord>(&mut self, job: &Job<R, K>) -> Handled {
        let mut handled = Handled::default();
        let mut outputs = Vec::new();
        for index in 0..job.batch.records.len() {
            let lapsed = index % LEASE_STRIDE == 0 && !self.spec.lease.is_current();
            if lapsed || !job.gate.is_open(job.epoch) {
                handled.stop = Some(Stop {
                    offset: job.batch.records[index].offset(),
                    cause: StopCause::Stale,
                });
                break;
            }
            outputs.clear();
            if let Err(cause) = self.one(job, index, &mut outputs, &mut handled) {
                let offset = job.batch.records[index].offset();
                handled.stop = Some(Stop { offset, cause });
                break;
            }
        }
        handled
    }

    /// Forgets topics when the sink is another one, or the target said something new.
    fn refresh(&mut self, sink: &Arc<K>) {
        let generation = self.spec.targets.generation();
        let same = self.sink.as_ref().is_some_and(|s| Arc::ptr_eq(s, sink));
        if !same || generation != self.generation {
            self.known.clear();
            self.by_name.clear();
            self.sink = Some(sink.clone());
            self.generation = generation;
        }
    }

    /// Handles one record and enqueues its outputs.
    fn one<'a, R: FetchedRecord>(
        &mut self,
        job: &'a Job<R, K>,
        index: usize,
        outputs: &mut Vec<Record<'a>>,
        handled: &mut Handled,
    ) -> Result<(), StopCause> {
        let Some(mut record) = job.batch.record(index, &job.source) else {
            return Ok(());
        };
        if let Care::DeadLetter(failure) = &job.care {
            return self.dead_letter(job, index, &record, failure, handled);
        }
        if let Some(topic) = job.chain.pass_through() {
            record.topic = Cow::Borrowed(topic);
            if let Err(failure) = job.rules.check_limit(std::slice::from_ref(&record)) {
                return self.settle(job, index, failure, job.rules.on_error, handled);
            }
            self.produce(job, index, &record, handled)?;
            handled.forwarded += 1;
            return Ok(());
        }
        match job.chain.apply(record, outputs) {
            Ok(_) if outputs.is_empty() => {
                handled.dropped += 1;
                Ok(())
            }
            Ok(_) => {
                // Before the first output is enqueued: a failure settles the whole record.
                if let Err(failure) = job.rules.check_limit(outputs) {
                    return self.settle(job, index, failure, job.rules.on_error, handled);
                }
                for output in outputs.iter() {
                    self.produce(job, index, output, handled)?;
                }
                handled.forwarded += 1;
                Ok(())
            }
            Err(StepFailure {
                failure, on_error, ..
            }) => {
                let on_error = on_error.unwrap_or(job.rules.on_error);
                self.settle(job, index, failure, on_error, handled)
            }
        }
    }

    /// This record failed: `on_error` decides at once, since nothing of it was enqueued.
    fn settle<R: FetchedRecord>(
        &mut self,
        job: &Job<R, K>,
        index: usize,
        failure: Failure,
        on_error: OnError,
        handled: &mut Handled,
    ) -> Result<(), StopCause> {
        handled.failed += 1;
        match on_error {
            OnError::Stop => Err(StopCause::Poison(failure)),
            OnError::AbortRoute => Err(StopCause::Abort(failure)),
            OnError::Skip => {
                handled.skipped += 1;
                Ok(())
            }
            OnError::DeadLetter => {
                let Some(record) = job.batch.record(index, &job.source) else {
                    return Ok(());
                };
                self.dead_letter(job, index, &record, &failure, handled)
            }
        }
    }

    /// partition → produce.
    fn produce<R: FetchedRecord>(
        &mut self,
        job: &Job<R, K>,
        index: usize,
        record: &Record<'_>,
        handled: &mut Handled,
    ) -> Result<(), StopCause> {
        let known = self.topic(&job.sink, &record.topic)?;
        let target = self.known[known].target;
        let source_partition = job.batch.partition.partition;
        let partition = match self
            .policy
            .choose(record, source_partition, target.partitions)
        {
            Choice::Partition(partition) => partition,
            Choice::TooFew { needs } => {
                return Err(StopCause::TooFew {
                    topic: record.topic.to_string(),
                    has: target.partitions,
                    needs,
                });
            }
        };
        self.check_size(job, record, target)?;
        self.enqueue(job, index, known, partition, record, handled)
    }

    fn check_size<R>(
        &self,
        job: &Job<R, K>,
        record: &Record<'_>,
        target: TargetTopic,
    ) -> Result<(), StopCause> {
        /// What headers and framing may add before the exact sum is worth its cost.
        const SLACK: usize = 16 * 1024;
        let body = record.key.as_ref().map_or(0, |k| k.len())
            + record.value.as_ref().map_or(0, |v| v.len());
        if matches!(job.care, Care::Isolated)
            || body.saturating_add(SLACK) as u64 <= target.record_bytes
        {
            return Ok(());
        }
        if record.size_estimate() as u64 > target.record_bytes {
            return Err(StopCause::Oversize);
        }
        Ok(())
    }

    fn enqueue<R: FetchedRecord>(
        &self,
        job: &Job<R, K>,
        index: usize,
        known: usize,
        partition: i32,
        record: &Record<'_>,
        handled: &mut Handled,
    ) -> Result<(), StopCause> {
        let first = job.batch.records[0].offset();
        let token = Token {
            worker: self.spec.worker,
            ticket: job.ticket,
            distance: job.batch.records[index]
                .offset()
                .distance(first)
                .unwrap_or(0),
        };
        job.sink
            .enqueue(&self.known[known].handle, partition, record, token)
            .map_err(|fault| match fault.kind {
                FaultKind::Missing => StopCause::Missing(record.topic.to_string()),
                _ => StopCause::Refused(fault),
            })?;
        handled.outputs += 1;
        handled.output_bytes += (record.key.as_ref().map_or(0, |k| k.len())
            + record.value.as_ref().map_or(0, |v| v.len())) as u64;
        Ok(())
    }

    fn dead_letter<R: FetchedRecord>(
        &mut self,
        job: &Job<R, K>,
        index: usize,
        record: &Record<'_>,
        failure: &Failure,
        handled: &mut Handled,
    ) -> Result<(), StopCause> {
        let Some(topic) = job.rules.dead_letter.clone() else {
            return Err(StopCause::Poison(failure.clone()));
        };
        let known = self.topic(&job.sink, &topic)?;
        let target = self.known[known].target;
        let letter = dead_letter::letter(&DeadLetter {
            topic: &topic,
            route: &self.spec.route,
            record,
            failure,
            record_bytes: target.record_bytes,
        });
        let partition = record.origin.partition.rem_euclid(target.partitions.max(1));
        self.enqueue(job, index, known, partition, &letter, handled)?;
        handled.dead_lettered += 1;
        Ok(())
    }

    /// The index in `known` of a topic, looked up at the target's view when it is new here.
    fn topic(&mut self, sink: &Arc<K>, name: &str) -> Result<usize, StopCause> {
        if self.known.get(self.last).is_some_and(|k| *k.name == *name) {
            return Ok(self.last);
        }
        if let Some(found) = self.by_name.get(name) {
            self.last = *found;
            return Ok(*found);
        }
        let target = self
            .spec
            .targets
            .get(name)
            .ok_or_else(|| StopCause::Missing(name.to_owned()))?;
        let handle = sink.topic(name).map_err(StopCause::Refused)?;
        let name: Arc<str> = name.into();
        self.last = self.known.len();
        self.by_name.insert(name.clone(), self.last);
        self.known.push(KnownTopic {
            name,
            handle,
            target,
        });
        Ok(self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i2_what_is_queued_behind_a_stop_is_stale_until_the_worker_begins_a_new_epoch() {
        let gate = Gate::default();
        let epoch = gate.epoch();
        assert!(gate.is_open(epoch));
        gate.stop(epoch);
        assert!(!gate.is_open(epoch), "the worker has not heard of it yet");
        gate.close();
        assert!(!gate.is_open(epoch) && gate.is_open(gate.epoch()));
    }
}
