//! A lane: the one thread that handles and enqueues the batches of its partitions, in offset order
//! (I2). With `workers` the lane runs on the worker's own thread (KIP-3's Proposal 2), with
//! `handler_threads` on a thread of its own behind a bounded queue (Proposal 1).
//!
//! handlers → partition → produce, for each record of a batch; what became of the batch goes back
//! to the worker as [`Handled`].

use crate::config::spec::OnError;
use crate::flow::dead_letter::{self, DeadLetter};
pub(crate) use crate::flow::job::{Care, Form, Handled, Input, Job, Rules, Stop, StopCause};
use crate::flow::target::{TargetTopic, TargetView};
use crate::handler::{Failure, StepFailure};
use crate::partition::{Choice, Policy};
use crate::plane::{Batch, FaultKind, FetchedRecord, ProduceFault, Run, Sink, Token};
use crate::record::Record;
use crate::wire::pass::Whole;
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

/// What is constant for all batches of a flow.
#[derive(Clone)]
pub(crate) struct LaneSpec {
    pub(crate) worker: u8,
    pub(crate) route: Arc<str>,
    pub(crate) targets: Arc<TargetView>,
    pub(crate) lease: Arc<Lease>,
}

/// How many records go between two looks at the clock, for the lease.
const LEASE_STRIDE: usize = 256;

/// A topic as one sink knows it, with what the target said of it.
struct KnownTopic<T> {
    name: Arc<str>,
    handle: T,
    target: TargetTopic,
}

/// A job with the records that it is about.
struct Work<'a, R, K> {
    job: &'a Job<R, K>,
    batch: &'a Batch<R>,
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
        let handled = match &job.input {
            Input::Records(batch) => self.records(&Work { job, batch }),
            Input::Whole(run) => self.whole(job, run),
        };
        if handled.stop.is_some() {
            job.gate.stop(job.epoch);
        }
        handled
    }

    /// Handles and enqueues record by record, up to a stop.
    fn records<R: FetchedRecord>(&mut self, work: &Work<'_, R, K>) -> Handled {
        let mut handled = Handled::default();
        let mut outputs = Vec::new();
        for index in 0..work.batch.records.len() {
            let lapsed = index % LEASE_STRIDE == 0 && !self.spec.lease.is_current();
            if lapsed || !work.job.gate.is_open(work.job.epoch) {
                handled.stop = Some(Stop {
                    offset: work.batch.records[index].offset(),
                    cause: StopCause::Stale,
                });
                break;
            }
            outputs.clear();
            if let Err(cause) = self.one(work, index, &mut outputs, &mut handled) {
                let offset = work.batch.records[index].offset();
                handled.stop = Some(Stop { offset, cause });
                break;
            }
        }
        handled
    }

    /// Enqueues batch by batch, up to a stop. Whoever handed them over knows that no step and no policy looks at their
    /// records; where that is not so any more, they are fetched again.
    fn whole<R>(&mut self, job: &Job<R, K>, run: &Run) -> Handled {
        let mut handled = Handled::default();
        for (distance, batch) in run.batches() {
            let token = Token {
                worker: self.spec.worker,
                ticket: job.ticket,
                distance,
            };
            if let Err(cause) = self.pass(job, run.partition.partition, batch, token) {
                let offset = run.first().at_distance(distance);
                handled.stop = Some(Stop { offset, cause });
                break;
            }
            handled.outputs += batch.count();
            handled.forwarded += batch.count();
            handled.output_bytes += batch.size() as u64;
        }
        handled
    }

    fn pass<R>(
        &mut self,
        job: &Job<R, K>,
        source_partition: i32,
        batch: &Whole,
        token: Token,
    ) -> Result<(), StopCause> {
        if !self.spec.lease.is_current() || !job.gate.is_open(job.epoch) {
            return Err(StopCause::Stale);
        }
        let topic = job.chain.pass_through().ok_or(StopCause::Stale)?;
        let known = self.topic(&job.sink, topic)?;
        let has = self.known[known].target.partitions;
        let choice = self.policy.for_all(source_partition, has);
        let partition = choice
            .ok_or(StopCause::Stale)
            .and_then(|choice| placed(choice, topic, has))?;
        let passed = job.sink.pass(
            &self.known[known].handle,
            partition,
            batch,
            job.writer,
            token,
        );
        passed.map_err(|fault| refused(fault, topic))
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
        work: &Work<'a, R, K>,
        index: usize,
        outputs: &mut Vec<Record<'a>>,
        handled: &mut Handled,
    ) -> Result<(), StopCause> {
        let Some(mut record) = work.batch.record(index, &work.job.source) else {
            return Ok(());
        };
        if let Care::DeadLetter(failure) = &work.job.care {
            return self.dead_letter(work, index, &record, failure, handled);
        }
        if let Some(topic) = work.job.chain.pass_through() {
            record.topic = Cow::Borrowed(topic);
            if let Err(failure) = work.job.rules.check_limit(std::slice::from_ref(&record)) {
                return self.settle(work, index, failure, work.job.rules.on_error, handled);
            }
            self.produce(work, index, &record, handled)?;
            handled.forwarded += 1;
            return Ok(());
        }
        match work.job.chain.apply(record, outputs) {
            Ok(_) if outputs.is_empty() => {
                handled.dropped += 1;
                Ok(())
            }
            Ok(_) => {
                // Before the first output is enqueued: a failure settles the whole record.
                if let Err(failure) = work.job.rules.check_limit(outputs) {
                    return self.settle(work, index, failure, work.job.rules.on_error, handled);
                }
                for output in outputs.iter() {
                    self.produce(work, index, output, handled)?;
                }
                handled.forwarded += 1;
                Ok(())
            }
            Err(StepFailure {
                failure, on_error, ..
            }) => {
                let on_error = on_error.unwrap_or(work.job.rules.on_error);
                self.settle(work, index, failure, on_error, handled)
            }
        }
    }

    /// This record failed: `on_error` decides at once, since nothing of it was enqueued.
    fn settle<R: FetchedRecord>(
        &mut self,
        work: &Work<'_, R, K>,
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
                let Some(record) = work.batch.record(index, &work.job.source) else {
                    return Ok(());
                };
                self.dead_letter(work, index, &record, &failure, handled)
            }
        }
    }

    /// partition → produce.
    fn produce<R: FetchedRecord>(
        &mut self,
        work: &Work<'_, R, K>,
        index: usize,
        record: &Record<'_>,
        handled: &mut Handled,
    ) -> Result<(), StopCause> {
        let known = self.topic(&work.job.sink, &record.topic)?;
        let target = self.known[known].target;
        let source_partition = work.batch.partition.partition;
        let has = target.partitions;
        let choice = self.policy.choose(record, source_partition, has);
        let partition = placed(choice, &record.topic, has)?;
        self.check_size(work, record, target)?;
        self.enqueue(work, index, known, partition, record, handled)
    }

    fn check_size<R>(
        &self,
        work: &Work<'_, R, K>,
        record: &Record<'_>,
        target: TargetTopic,
    ) -> Result<(), StopCause> {
        /// What headers and framing may add before the exact sum is worth its cost.
        const SLACK: usize = 16 * 1024;
        let body = record.key.as_ref().map_or(0, |k| k.len())
            + record.value.as_ref().map_or(0, |v| v.len());
        if matches!(work.job.care, Care::Isolated)
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
        work: &Work<'_, R, K>,
        index: usize,
        known: usize,
        partition: i32,
        record: &Record<'_>,
        handled: &mut Handled,
    ) -> Result<(), StopCause> {
        let first = work.batch.records[0].offset();
        let token = Token {
            worker: self.spec.worker,
            ticket: work.job.ticket,
            distance: work.batch.records[index]
                .offset()
                .distance(first)
                .unwrap_or(0),
        };
        let (topic, writer) = (&self.known[known].handle, work.job.writer);
        work.job
            .sink
            .enqueue(topic, partition, record, writer, token)
            .map_err(|fault| refused(fault, &record.topic))?;
        handled.outputs += 1;
        handled.output_bytes += (record.key.as_ref().map_or(0, |k| k.len())
            + record.value.as_ref().map_or(0, |v| v.len())) as u64;
        Ok(())
    }

    fn dead_letter<R: FetchedRecord>(
        &mut self,
        work: &Work<'_, R, K>,
        index: usize,
        record: &Record<'_>,
        failure: &Failure,
        handled: &mut Handled,
    ) -> Result<(), StopCause> {
        let Some(topic) = work.job.rules.dead_letter.clone() else {
            return Err(StopCause::Poison(failure.clone()));
        };
        let known = self.topic(&work.job.sink, &topic)?;
        let target = self.known[known].target;
        let letter = dead_letter::letter(&DeadLetter {
            topic: &topic,
            route: &self.spec.route,
            record,
            failure,
            record_bytes: target.record_bytes,
        });
        let partition = record.origin.partition.rem_euclid(target.partitions.max(1));
        self.enqueue(work, index, known, partition, &letter, handled)?;
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

/// The partition of a choice.
fn placed(choice: Choice, topic: &str, has: i32) -> Result<i32, StopCause> {
    match choice {
        Choice::Partition(partition) => Ok(partition),
        Choice::TooFew { needs } => Err(StopCause::TooFew {
            topic: topic.to_owned(),
            has,
            needs,
        }),
    }
}

/// What the sink says of something that it does not take.
fn refused(fault: ProduceFault, topic: &str) -> StopCause {
    match fault.kind {
        FaultKind::Missing => StopCause::Missing(topic.to_owned()),
        _ => StopCause::Refused(fault),
    }
}

#[cfg(test)]
mod tests {
    use crate::flow::gate::Gate;

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
