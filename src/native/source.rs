//! The source side: a group member that is librdkafka's and fetches nothing, and a fetcher of our own.

use super::fetcher::{self, News, Order, Parts, Word};
use super::lent::Lent;
use super::links::Links;
use super::portion::{More, Opened, cost};
use super::room::Room;
use crate::plane::{
    Abandon, Batch, CommitEntry, FetchEvent, FetchedRecord, Form, Offset, Run, Source,
};
use crate::record::TopicPartition;
use crate::wire::Malformed;
use crate::wire::codec::Decompressor;
use crate::wire::pass::Takes;
use crossbeam_channel::{Receiver, TryRecvError, unbounded};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

/// Records of a batch at most.
const BATCH_RECORDS: usize = 4096;
/// Cost of a batch at most, one record excepted.
const BATCH_COST: u64 = 1 << 20;

/// A member of a group that fetches by itself. `M` is the member; it is never given anything to fetch.
pub struct Fetching<M> {
    member: M,
    orders: UnboundedSender<Order>,
    words: Receiver<Word>,
    placed: HashMap<TopicPartition, Placed>,
    /// Partitions whose batches are handed over whole, as far as their targets take them so.
    whole: HashMap<TopicPartition, Takes>,
    turns: u64,
    opened: Option<Opened>,
    /// Records of `opened` that were not handed over yet.
    ready: VecDeque<Lent>,
    decompressor: Decompressor,
}

/// A partition that is fetched, or paused.
struct Placed {
    turn: Turn,
    /// The first offset that was not handed over.
    next: Offset,
    /// The epoch of the record before it; -1 if unknown.
    epoch: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    Under(u64),
    Paused,
}

impl<M: Source> Fetching<M> {
    /// A source over `links`, with room for so many bytes that wait, in this rack (empty where that is not said). `wake`
    /// makes the member's poll return.
    ///
    /// # Errors
    /// The system refuses a thread.
    pub fn new(
        member: M,
        links: Links,
        room: u64,
        rack: Arc<str>,
        wake: Box<dyn Fn() + Send>,
        subject: Arc<str>,
    ) -> Result<Self, String> {
        let (orders, ordered) = unbounded_channel();
        let (said, words) = unbounded();
        let parts = Parts {
            links,
            orders: ordered,
            words: said,
            wake,
            room: Room::new(room),
            rack,
            subject: subject.clone(),
        };
        std::thread::Builder::new()
            .name("mirror-fetch".into())
            .spawn(move || {
                if let Err(error) = fetcher::run(parts) {
                    tracing::error!(event = "fetcher_failed", subject = %subject, %error);
                }
            })
            .map_err(|e| format!("no thread to fetch: {e}"))?;
        Ok(Self {
            member,
            orders,
            words,
            placed: HashMap::new(),
            whole: HashMap::new(),
            turns: 0,
            opened: None,
            ready: VecDeque::new(),
            decompressor: Decompressor::default(),
        })
    }

    /// Reads a partition from here on, under a new turn.
    fn read(&mut self, partition: &TopicPartition, from: Offset, epoch: i32) {
        self.turns += 1;
        let placed = Placed {
            turn: Turn::Under(self.turns),
            next: from,
            epoch,
        };
        self.placed.insert(partition.clone(), placed);
        self.drop_opened(partition);
        // A fetcher that is gone is found by the next poll.
        let _ = self.orders.send(Order::Read {
            partition: partition.clone(),
            turn: self.turns,
            from,
            epoch,
        });
    }

    fn stop(&mut self, partition: &TopicPartition) {
        self.drop_opened(partition);
        let _ = self.orders.send(Order::Stop(partition.clone()));
    }

    /// Forgets what was not handed over of a partition.
    fn drop_opened(&mut self, partition: &TopicPartition) {
        if self
            .opened
            .as_ref()
            .is_some_and(|o| o.portion.partition == *partition)
        {
            self.opened = None;
            self.ready.clear();
        }
    }

    fn stop_all(&mut self) {
        for partition in std::mem::take(&mut self.placed).into_keys() {
            self.stop(&partition);
        }
    }

    fn has_something(&self) -> bool {
        self.opened.is_some() || !self.words.is_empty()
    }

    /// The next of what was fetched; `None` if there is nothing.
    fn fetched(&mut self) -> Option<FetchEvent<Lent>> {
        loop {
            if let Some(opened) = self.opened.take() {
                match self.open(opened) {
                    Some(event) => return Some(event),
                    None => continue,
                }
            }
            match self.words.try_recv() {
                Ok(Word::Portion(portion)) => {
                    if self.is_under(&portion.partition, portion.turn) {
                        self.opened = Some(Opened::of(portion));
                    }
                }
                Ok(Word::Of(partition, turn, news)) => {
                    if self.is_under(&partition, turn) {
                        return Some(self.news(partition, news));
                    }
                }
                Err(TryRecvError::Empty) => return None,
                Err(TryRecvError::Disconnected) => {
                    let detail = "the thread that fetches has ended".to_owned();
                    return Some(FetchEvent::Fatal(detail));
                }
            }
        }
    }

    fn is_under(&self, partition: &TopicPartition, turn: u64) -> bool {
        let placed = self.placed.get(partition);
        placed.is_some_and(|p| p.turn == Turn::Under(turn))
    }

    /// Hands over the next batches or records of a portion, or what it ends with.
    fn open(&mut self, mut opened: Opened) -> Option<FetchEvent<Lent>> {
        let partition = opened.portion.partition.clone();
        let from = self.placed.get(&partition)?.next;
        let takes = self.whole.get(&partition).copied();
        let run = match takes {
            // What was opened already stands before what is there.
            Some(takes) if self.ready.is_empty() => opened.run(from, takes, BATCH_COST),
            _ => Ok(None),
        };
        let filled = match run {
            Ok(Some(run)) => {
                self.opened = Some(opened);
                return self.run(run);
            }
            Ok(None) => self.fill(&mut opened, from, takes),
            Err(fault) => Err(fault),
        };
        if let Some(event) = self.batch(&partition) {
            // What could not be read stands behind these, and is met again.
            self.opened = Some(opened);
            return Some(event);
        }
        let placed = self.placed.get_mut(&partition)?;
        if let Err(fault) = filled {
            // Nothing more under this turn; whoever hears of it goes back.
            placed.turn = Turn::Paused;
            let detail = format!("at offset {} or behind: {fault}", placed.next);
            self.stop(&partition);
            return Some(FetchEvent::Unreadable { partition, detail });
        }
        // Markers, aborted records and holes have been passed.
        let reached = opened.portion.reached;
        (reached > placed.next).then(|| {
            placed.next = reached;
            FetchEvent::End(partition, reached)
        })
    }

    /// Opens batches until there are enough records for one of ours, or one follows that passes.
    fn fill(
        &mut self,
        opened: &mut Opened,
        from: Offset,
        takes: Option<Takes>,
    ) -> Result<(), Malformed> {
        let mut costs: u64 = self.ready.iter().map(cost).sum();
        while self.ready.len() < BATCH_RECORDS && costs < BATCH_COST {
            let passes = |takes| opened.may_run(from, takes);
            if !self.ready.is_empty() && takes.is_some_and(passes) {
                break;
            }
            let known = self.ready.len();
            let more = opened.next(from, &mut self.decompressor, &mut self.ready)?;
            if more == More::No {
                break;
            }
            costs += self.ready.iter().skip(known).map(cost).sum::<u64>();
        }
        Ok(())
    }

    fn run(&mut self, run: Run) -> Option<FetchEvent<Lent>> {
        let placed = self.placed.get_mut(&run.partition)?;
        (placed.next, placed.epoch) = (run.last().next(), run.leader_epoch());
        Some(FetchEvent::Run(run))
    }

    /// A batch of the records that are ready; `None` if there are none.
    fn batch(&mut self, partition: &TopicPartition) -> Option<FetchEvent<Lent>> {
        let first = self.ready.front()?.offset();
        let mut costs = 0;
        let enough = |record: &Lent| {
            let fits = costs < BATCH_COST && record.offset().distance(first).is_some();
            costs += cost(record);
            !fits
        };
        let count = self.ready.iter().position(enough);
        let count = count.unwrap_or(self.ready.len()).min(BATCH_RECORDS);
        let records: Vec<Lent> = self.ready.drain(..count).collect();
        let last = records.last()?;
        let placed = self.placed.get_mut(partition)?;
        (placed.next, placed.epoch) = (last.offset().next(), last.leader_epoch());
        Some(FetchEvent::Batch(Batch::new(partition.clone(), records)))
    }

    fn news(&mut self, partition: TopicPartition, news: News) -> FetchEvent<Lent> {
        match news {
            News::End(offset) => {
                if let Some(placed) = self.placed.get_mut(&partition) {
                    placed.next = placed.next.max(offset);
                }
                FetchEvent::End(partition, offset)
            }
            News::OutOfRange => FetchEvent::OutOfRange(partition),
            News::Unreadable(detail) => FetchEvent::Unreadable { partition, detail },
            News::Trouble(kind, detail) => FetchEvent::PartitionError {
                partition,
                detail,
                kind,
            },
        }
    }
}

/// What the member says. It fetches nothing.
fn of_member<R>(event: FetchEvent<R>) -> FetchEvent<Lent> {
    match event {
        FetchEvent::Assigned(partitions) => FetchEvent::Assigned(partitions),
        FetchEvent::Revoked(partitions) => FetchEvent::Revoked(partitions),
        FetchEvent::Lost(partitions) => FetchEvent::Lost(partitions),
        FetchEvent::Committed(answer) => FetchEvent::Committed(answer),
        FetchEvent::PartitionError {
            partition,
            detail,
            kind,
        } => FetchEvent::PartitionError {
            partition,
            detail,
            kind,
        },
        FetchEvent::Fatal(detail) => FetchEvent::Fatal(detail),
        FetchEvent::Batch(_)
        | FetchEvent::Run(_)
        | FetchEvent::End(..)
        | FetchEvent::OutOfRange(_)
        | FetchEvent::Unreadable { .. }
        | FetchEvent::Idle => FetchEvent::Idle,
    }
}

impl<M: Source> Source for Fetching<M> {
    type Record = Lent;

    /// The group is heard first: it does not wait behind records.
    fn poll(&mut self, timeout: Duration) -> FetchEvent<Lent> {
        let timeout = match self.has_something() {
            true => Duration::ZERO,
            false => timeout,
        };
        match of_member(self.member.poll(timeout)) {
            FetchEvent::Idle => self.fetched().unwrap_or(FetchEvent::Idle),
            event => event,
        }
    }

    fn subscribe(&mut self, topics: &[String]) -> Result<(), String> {
        self.member.subscribe(topics)
    }

    fn place(&mut self, at: &[(TopicPartition, Offset)]) -> Result<(), String> {
        // The member is given nothing; it says whether what the group gave is lost.
        self.member.place(&[])?;
        for (partition, offset) in at {
            self.read(partition, *offset, -1);
        }
        Ok(())
    }

    fn rewind(&mut self, partition: &TopicPartition, to: Offset) -> Result<(), String> {
        self.read(partition, to, -1);
        Ok(())
    }

    /// What was fetched and not handed over is dropped: nobody knows how long it would wait, and the others need the room.
    fn pause(&mut self, partitions: &[TopicPartition]) {
        for partition in partitions {
            if let Some(placed) = self.placed.get_mut(partition)
                && placed.turn != Turn::Paused
            {
                placed.turn = Turn::Paused;
                self.stop(partition);
            }
        }
    }

    fn resume(&mut self, partitions: &[TopicPartition]) {
        for partition in partitions {
            let placed = self.placed.get(partition);
            if let Some(paused) = placed.filter(|p| p.turn == Turn::Paused) {
                let (next, epoch) = (paused.next, paused.epoch);
                self.read(partition, next, epoch);
            }
        }
    }

    fn hand_over(&mut self, partition: &TopicPartition, form: Form) {
        match form {
            Form::Records => self.whole.remove(partition),
            Form::Whole(takes) => self.whole.insert(partition.clone(), takes),
        };
    }

    fn release(&mut self, partitions: &[TopicPartition]) -> Result<(), String> {
        for partition in partitions {
            self.whole.remove(partition);
            if self.placed.remove(partition).is_some() {
                self.stop(partition);
            }
        }
        self.member.release(partitions)
    }

    fn commit(&mut self, entries: &[CommitEntry], id: u64) -> Result<(), String> {
        self.member.commit(entries, id)
    }

    fn leave(&mut self, deadline: Duration) {
        self.stop_all();
        self.member.leave(deadline);
    }

    fn renew(&mut self) -> Result<(), String> {
        self.member.renew()?;
        self.stop_all();
        Ok(())
    }

    /// Records are not the member's here, so none keeps it.
    fn abandon(&mut self, why: Abandon) {
        self.stop_all();
        self.member.abandon(why);
    }
}

#[cfg(test)]
#[path = "source_tests.rs"]
mod tests;
