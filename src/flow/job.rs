//! What a lane is given, and what it says of it.

use crate::config::spec::{OnError, RouteSpec};
use crate::flow::gate::Gate;
use crate::handler::{BoundChain, Failure, FailureCode};
use crate::plane::{Batch, FetchedRecord, Offset, ProduceFault, Run, Writer};
use crate::record::{Record, TopicPartition};
use std::sync::Arc;

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

/// One batch, or one run of whole batches, to handle and produce.
pub(crate) struct Job<R, K> {
    pub(crate) input: Input<R>,
    /// The source cluster's name.
    pub(crate) source: Arc<str>,
    pub(crate) ticket: u32,
    pub(crate) epoch: u32,
    pub(crate) gate: Arc<Gate>,
    pub(crate) chain: Arc<BoundChain>,
    pub(crate) rules: Arc<Rules>,
    pub(crate) sink: Arc<K>,
    /// Who writes what becomes of it.
    pub(crate) writer: Writer,
    pub(crate) care: Care,
}

/// In what form records go through a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// One by one.
    Records,
    /// In batches as they came.
    Whole,
}

/// What a job is about.
#[derive(Debug)]
pub(crate) enum Input<R> {
    /// Records, for the handlers.
    Records(Batch<R>),
    /// Batches that pass as they came.
    Whole(Run),
}

impl<R: FetchedRecord> Input<R> {
    pub(crate) fn partition(&self) -> &TopicPartition {
        match self {
            Input::Records(batch) => &batch.partition,
            Input::Whole(run) => &run.partition,
        }
    }

    pub(crate) fn form(&self) -> Form {
        match self {
            Input::Records(_) => Form::Records,
            Input::Whole(_) => Form::Whole,
        }
    }

    /// The first and the last offset; `None` if there is no record.
    pub(crate) fn range(&self) -> Option<(Offset, Offset)> {
        match self {
            Input::Records(batch) => Some((batch.first()?, batch.last()?)),
            Input::Whole(run) => Some((run.first(), run.last())),
        }
    }

    pub(crate) fn records(&self) -> u64 {
        match self {
            Input::Records(batch) => batch.records.len() as u64,
            Input::Whole(run) => u64::from(run.records()),
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Input::Records(batch) => batch.bytes(),
            Input::Whole(run) => run.bytes(),
        }
    }

    /// Memory that it takes while it is in flight.
    pub(crate) fn cost(&self) -> u64 {
        match self {
            Input::Records(batch) => batch.cost(),
            Input::Whole(run) => run.cost(),
        }
    }

    pub(crate) fn leader_epoch(&self) -> i32 {
        match self {
            Input::Records(batch) => batch.records.last().map_or(-1, R::leader_epoch),
            Input::Whole(run) => run.leader_epoch(),
        }
    }

    /// How far each record lies behind the first, if some offsets between them have no record.
    pub(crate) fn sparse(&self) -> Vec<u32> {
        match self {
            Input::Records(batch) => sparse(&batch.records),
            Input::Whole(_) => Vec::new(),
        }
    }
}

fn sparse<R: FetchedRecord>(records: &[R]) -> Vec<u32> {
    let (Some(first), Some(last)) = (records.first(), records.last()) else {
        return Vec::new();
    };
    let first = first.offset();
    let span = last.offset().distance(first).map(|d| d as usize);
    if span == records.len().checked_sub(1) {
        return Vec::new();
    }
    let distance = |r: &R| r.offset().distance(first).unwrap_or(u32::MAX);
    records.iter().map(distance).collect()
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
    pub(crate) fn check_limit(&self, outputs: &[Record<'_>]) -> Result<(), Failure> {
        over_limit(self.record_bytes, outputs)
    }
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
