//! Batches in flight: what a token in an outcome points to.

use crate::flow::lane::Form;
use crate::flow::tracker::BatchId;
use crate::plane::{FaultKind, Offset, ProduceFault};
use crate::record::TopicPartition;
use std::time::Instant;

/// One batch in flight.
#[derive(Debug)]
pub(super) struct Ticket {
    pub(super) partition: TopicPartition,
    /// The life of the partition here; an outcome of an older life is stale.
    pub(super) life: u64,
    pub(super) batch: BatchId,
    pub(super) first: Offset,
    pub(super) records: u64,
    pub(super) form: Form,
    /// How far each record lies behind the first, if some offsets between them have no record.
    pub(super) sparse: Vec<u32>,
    pub(super) cost: u64,
    pub(super) since: Instant,
    /// Outputs enqueued and not settled. Below zero while outcomes come before the lane's word.
    pub(super) open: i64,
    pub(super) lane: LaneWord,
    /// The lowest offset that failed, with its fault.
    pub(super) failure: Option<(Offset, ProduceFault)>,
    /// Where the lane stopped within the batch.
    pub(super) stopped_at: Option<Offset>,
    /// Source records by their end, counted when the batch resolves.
    pub(super) counts: Counts,
}

/// Whether the lane has said what became of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LaneWord {
    Awaited,
    Given,
}

/// Source records of a batch by outcome (I7).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) forwarded: u64,
    pub(super) dropped: u64,
    pub(super) skipped: u64,
    pub(super) dead_lettered: u64,
}

impl Ticket {
    /// Whether nothing more will be heard of it.
    pub(super) fn is_settled(&self) -> bool {
        self.lane == LaneWord::Given && self.open == 0
    }

    /// The lowest offset of the batch that is not settled well, if any.
    pub(super) fn cut_at(&self) -> Option<Offset> {
        let failed = self.failure.as_ref().map(|(offset, _)| *offset);
        match (failed, self.stopped_at) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// How many of the batch's records lie before `offset`.
    pub(super) fn records_before(&self, offset: Offset) -> u64 {
        let distance = offset.distance(self.first).unwrap_or(0);
        if self.sparse.is_empty() {
            return u64::from(distance).min(self.records);
        }
        self.sparse.partition_point(|d| *d < distance) as u64
    }

    /// Notes a failed output; the lowest one counts, and of the outputs of one record the one that
    /// failed for what it is: it may have taken the others down.
    pub(super) fn fail(&mut self, offset: Offset, fault: ProduceFault) {
        let is_own = |fault: &ProduceFault| matches!(fault.kind, FaultKind::Record(_));
        let counts = match &self.failure {
            None => true,
            Some((lowest, noted)) if offset == *lowest => is_own(&fault) && !is_own(noted),
            Some((lowest, _)) => offset < *lowest,
        };
        if counts {
            self.failure = Some((offset, fault));
        }
    }
}

/// All batches in flight of one worker. A number is used again only after its batch settled, and
/// every enqueued record settles exactly once, so that no outcome can meet a stranger.
#[derive(Debug, Default)]
pub(super) struct Tickets {
    slots: Vec<Option<Ticket>>,
    free: Vec<u32>,
}

impl Tickets {
    pub(super) fn issue(&mut self, ticket: Ticket) -> u32 {
        match self.free.pop() {
            Some(number) => {
                self.slots[number as usize] = Some(ticket);
                number
            }
            None => {
                self.slots.push(Some(ticket));
                (self.slots.len() - 1) as u32
            }
        }
    }

    pub(super) fn get(&mut self, number: u32) -> Option<&mut Ticket> {
        self.slots.get_mut(number as usize)?.as_mut()
    }

    pub(super) fn retire(&mut self, number: u32) -> Option<Ticket> {
        let ticket = self.slots.get_mut(number as usize)?.take()?;
        self.free.push(number);
        Some(ticket)
    }

    /// Whether some lane still holds a batch.
    pub(super) fn is_lane_busy(&self) -> bool {
        let mut tickets = self.slots.iter().flatten();
        tickets.any(|t| t.lane == LaneWord::Awaited)
    }

    /// The lane's word on the oldest batch in flight of one partition; `None` if there is none.
    pub(super) fn lane_word(&self, partition: &TopicPartition) -> Option<LaneWord> {
        self.slots
            .iter()
            .flatten()
            .filter(|t| t.partition == *partition)
            .min_by_key(|t| t.since)
            .map(|t| t.lane)
    }
}
