//! What is asked of whom, and when: a thread of its own, in which one loop owns everything.
//!
//! A partition is read from its leader, several at once, one request for each broker at a time (a broker serves one request of a
//! connection at a time, and holds it until there is something). Where the leader's epoch has changed, it is first asked where the
//! epoch of the last record ended (KIP-320). What comes is looked through, not opened; who takes it opens it.

use super::links::Links;
use super::portion::{Portion, measure};
use super::room::{Held, Room};
use super::session::{Asked, Sitting};
use super::view::Absence;
use crate::broker::connection::Connection;
use crate::broker::fault::Fault;
use crate::broker::message::code::Code;
use crate::broker::message::fetch::{self, Fetch, Want};
use crate::broker::message::leader_epoch::{EpochEnd, OffsetForLeaderEpoch};
use crate::broker::message::metadata::Leader;
use crate::plane::{Offset, SourceFault};
use crate::record::TopicPartition;
use crate::wire::aborted::Aborted;
use crossbeam_channel::Sender;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// How long a broker may hold a request until there is something. A partition that is moved waits as long.
const WAIT: Duration = Duration::from_millis(250);
/// How long an answer may take beyond that.
const PATIENCE: Duration = Duration::from_secs(10);
/// The most bytes of one partition in an answer, one batch excepted.
const PARTITION: i32 = 1 << 20;
/// The most bytes of an answer, one batch excepted.
const ANSWER: u64 = 8 << 20;
/// The least that is asked for.
const LEAST: u64 = 64 << 10;
/// Answers of one partition that may wait to be taken.
const AHEAD: usize = 2;
/// The first pause of a partition after a fault.
const PAUSE: Duration = Duration::from_millis(100);
/// The longest.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// What the fetcher is told.
#[derive(Debug)]
pub enum Order {
    /// Read a partition from here on.
    Read {
        /// The partition.
        partition: TopicPartition,
        /// The number of the order.
        turn: u64,
        /// The first offset.
        from: Offset,
        /// The epoch in which the record before it was written; -1 if that is unknown.
        epoch: i32,
    },
    /// Read it no more.
    Stop(TopicPartition),
}

/// What the fetcher says.
#[derive(Debug)]
pub enum Word {
    /// Batches.
    Portion(Portion),
    /// Something else of a partition, under the turn of that number.
    Of(TopicPartition, u64, News),
}

/// What is to be said of a partition.
#[derive(Debug, PartialEq, Eq)]
pub enum News {
    /// It was read to its end, which is this offset.
    End(Offset),
    /// The position is not in its log. It is read no more under this turn.
    OutOfRange,
    /// It cannot be read further. It is read no more under this turn.
    Unreadable(String),
    /// It cannot be read at the moment.
    Trouble(SourceFault, String),
}

/// What a fetcher is made of.
pub struct Parts {
    /// Connections to the cluster.
    pub links: Links,
    /// What it is told.
    pub orders: UnboundedReceiver<Order>,
    /// What it says.
    pub words: Sender<Word>,
    /// Wakes whoever listens.
    pub wake: Box<dyn Fn() + Send>,
    /// Room for what waits.
    pub room: Arc<Room>,
    /// What is served.
    pub subject: Arc<str>,
}

/// Reads until nobody gives orders any more.
///
/// # Errors
/// The system has no descriptors for it.
pub fn run(parts: Parts) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(Fetcher::new(parts).serve());
    Ok(())
}

/// A partition that is read.
struct Reading {
    turn: u64,
    next: Offset,
    /// The epoch of the record before `next`; -1 if unknown.
    epoch: i32,
    /// The leader's epoch under which `next` was in its log.
    checked: i32,
    most: i32,
    state: State,
    not_before: Instant,
    failures: u32,
    /// What was last said of trouble.
    told: Option<Code>,
    /// Whether its end has to be said when it is reached.
    end_is_news: bool,
    /// Held by each answer that waits to be taken.
    token: Arc<()>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Reading,
    /// It was asked whether the position is in the log.
    Checking,
    /// Until another order.
    Stopped,
}

/// A broker that partitions are read from.
#[derive(Default)]
struct Place {
    sitting: Sitting,
    /// Bytes that are asked for in the request that is on its way.
    asked: Option<u64>,
    not_before: Option<Instant>,
}

enum Done {
    Fetched {
        broker: i32,
        connection: Arc<Connection>,
        result: Result<fetch::Fetched, Fault>,
    },
    Checked {
        broker: i32,
        connection: Arc<Connection>,
        partition: TopicPartition,
        turn: u64,
        leader: Leader,
        result: Result<Result<EpochEnd, Code>, Fault>,
    },
}

struct Fetcher {
    links: Links,
    orders: UnboundedReceiver<Order>,
    words: Sender<Word>,
    wake: Box<dyn Fn() + Send>,
    room: Arc<Room>,
    subject: Arc<str>,
    readings: BTreeMap<TopicPartition, Reading>,
    places: BTreeMap<i32, Place>,
    tasks: JoinSet<Done>,
}

impl Fetcher {
    fn new(parts: Parts) -> Self {
        Self {
            links: parts.links,
            orders: parts.orders,
            words: parts.words,
            wake: parts.wake,
            room: parts.room,
            subject: parts.subject,
            readings: BTreeMap::new(),
            places: BTreeMap::new(),
            tasks: JoinSet::new(),
        }
    }

    async fn serve(mut self) {
        loop {
            self.links.step();
            let due = self.step(Instant::now());
            let due = [due, self.links.due()].into_iter().flatten().min();
            let sleep = async {
                match due {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                order = self.orders.recv() => match order {
                    Some(order) => self.take(order),
                    None => return,
                },
                Some(done) = self.tasks.join_next() => match done {
                    Ok(done) => self.done(done),
                    // None is cancelled, and one that panicked is a fault of ours: who listens hears that nobody speaks.
                    Err(_) => return,
                },
                () = self.links.changed() => {}
                () = self.room.freed() => {}
                () = sleep => {}
            }
            // What else is there already.
            while let Ok(order) = self.orders.try_recv() {
                self.take(order);
            }
        }
    }

    fn take(&mut self, order: Order) {
        match order {
            Order::Read {
                partition,
                turn,
                from,
                epoch,
            } => {
                self.links.want(&partition.topic);
                self.readings
                    .insert(partition, Reading::new(turn, from, epoch));
            }
            Order::Stop(partition) => {
                self.readings.remove(&partition);
                if !self.readings.keys().any(|tp| tp.topic == partition.topic) {
                    self.links.forget(&partition.topic);
                }
            }
        }
    }

    /// Asks for what may be asked for now; when to look again, whatever happens.
    fn step(&mut self, now: Instant) -> Option<Instant> {
        let mut due = None;
        let mut wanted: BTreeMap<i32, BTreeMap<TopicPartition, Asked>> = BTreeMap::new();
        let mut checks = Vec::new();
        let mut absent = Vec::new();
        for (tp, reading) in &mut self.readings {
            if reading.state != State::Reading || !reading.has_room() {
                continue;
            }
            if reading.not_before > now {
                due = earlier(due, reading.not_before);
                continue;
            }
            let leader = match self.links.view().leader(tp) {
                Ok(leader) => leader,
                Err(Absence::Untold) => continue,
                Err(Absence::Said(code)) => {
                    absent.push((tp.clone(), code));
                    continue;
                }
            };
            if reading.has_to_be_checked(leader) {
                checks.push((tp.clone(), leader));
            } else {
                wanted
                    .entry(leader.broker)
                    .or_default()
                    .insert(tp.clone(), reading.asked(tp, leader));
            }
        }
        for (tp, code) in absent {
            self.absent(&tp, code, now);
            due = earlier(due, now + PAUSE);
        }
        for (tp, leader) in checks {
            self.check(&tp, leader);
        }
        let brokers = wanted.len() as u64;
        for (broker, wanted) in wanted {
            if let Some(at) = self.fetch(broker, wanted, brokers, now) {
                due = earlier(due, at);
            }
        }
        due
    }

    /// Asks a broker, unless it is asked already, or there is no room; when to look again.
    fn fetch(
        &mut self,
        broker: i32,
        wanted: BTreeMap<TopicPartition, Asked>,
        brokers: u64,
        now: Instant,
    ) -> Option<Instant> {
        let on_their_way: u64 = self.places.values().filter_map(|place| place.asked).sum();
        let place = self.places.entry(broker).or_default();
        if place.asked.is_some() {
            return None;
        }
        if let Some(at) = place.not_before.filter(|at| *at > now) {
            return Some(at);
        }
        let left = self.room.left();
        // Somebody takes what waits; where all room is held by what was taken, it goes on in small steps.
        if left == 0 && !self.words.is_empty() {
            return Some(now + PAUSE);
        }
        let connection = self.links.connection(broker)?;
        let share = (self.room.limit() / brokers.max(1)).min(ANSWER);
        let most = left.saturating_sub(on_their_way).min(share).max(LEAST);
        let large = wanted.values().map(|asked| asked.want.most);
        let large = large.filter(|most| *most > PARTITION).max().unwrap_or(0);
        let most = most.max(u64::from(large.unsigned_abs()));
        place.asked = Some(most);
        let named = place.sitting.ask(wanted);
        self.tasks.spawn(async move {
            let request = Fetch {
                wait: WAIT,
                most: i32::try_from(most).unwrap_or(i32::MAX),
                session: named.session,
                partitions: &named.partitions,
                forgotten: &named.forgotten,
                rack: "",
            };
            let result = connection.ask(&request, WAIT + PATIENCE).await;
            Done::Fetched {
                broker,
                connection,
                result,
            }
        });
        None
    }

    fn check(&mut self, tp: &TopicPartition, leader: Leader) {
        let Some(reading) = self.readings.get_mut(tp) else {
            return;
        };
        let Some(connection) = self.links.connection(leader.broker) else {
            return;
        };
        reading.state = State::Checking;
        let (partition, turn, epoch) = (tp.clone(), reading.turn, reading.epoch);
        self.tasks.spawn(async move {
            let request = OffsetForLeaderEpoch {
                partition: &partition,
                current: leader.epoch,
                epoch,
            };
            let result = connection.ask(&request, PATIENCE).await;
            Done::Checked {
                broker: leader.broker,
                connection,
                partition,
                turn,
                leader,
                result,
            }
        });
    }

    fn done(&mut self, done: Done) {
        let now = Instant::now();
        match done {
            Done::Fetched {
                broker,
                connection,
                result,
            } => {
                if let Some(place) = self.places.get_mut(&broker) {
                    place.asked = None;
                }
                match result {
                    Ok(fetched) => self.fetched(broker, fetched, now),
                    Err(fault) => {
                        self.forget_session(broker);
                        self.links.failed(broker, &connection, &fault);
                    }
                }
            }
            Done::Checked {
                broker,
                connection,
                partition,
                turn,
                leader,
                result,
            } => {
                let Some(reading) = self.reading(&partition, turn) else {
                    return;
                };
                reading.state = State::Reading;
                match result {
                    Ok(Ok(end)) => self.checked(&partition, leader, end),
                    Ok(Err(code)) => self.refused(&partition, code, now),
                    Err(fault) => self.links.failed(broker, &connection, &fault),
                }
            }
        }
    }

    fn reading(&mut self, tp: &TopicPartition, turn: u64) -> Option<&mut Reading> {
        self.readings.get_mut(tp).filter(|r| r.turn == turn)
    }

    fn forget_session(&mut self, broker: i32) {
        if let Some(place) = self.places.get_mut(&broker) {
            place.sitting.forget();
        }
    }

    /// Where the epoch of the last record ended, in the eyes of a new leader: before the position, if its log was cut off.
    fn checked(&mut self, tp: &TopicPartition, leader: Leader, end: EpochEnd) {
        let Some(reading) = self.readings.get_mut(tp) else {
            return;
        };
        let is_cut = end.end >= 0 && end.end < reading.next.0;
        if !is_cut {
            reading.checked = leader.epoch;
            return;
        }
        tracing::warn!(event = "log_truncated", subject = %self.subject, topic = %tp.topic, partition = tp.partition,
            position = reading.next.0, epoch = reading.epoch, end = end.end, leader_epoch = leader.epoch,
            "the new leader's log ends before what was read of the old one's");
        reading.state = State::Stopped;
        self.say(tp, News::OutOfRange);
    }

    fn fetched(&mut self, broker: i32, fetched: fetch::Fetched, now: Instant) {
        let Some(place) = self.places.get_mut(&broker) else {
            return;
        };
        if !fetched.throttle.is_zero() {
            place.not_before = Some(now + fetched.throttle);
        }
        match fetched.session {
            Ok(id) => place.sitting.answered(id),
            Err(code) => {
                // It remembers less than we thought, or something is wrong with all of it.
                place.sitting.forget();
                if !matches!(
                    code,
                    FETCH_SESSION_ID_NOT_FOUND | INVALID_FETCH_SESSION_EPOCH
                ) {
                    tracing::warn!(event = "fetch_refused", subject = %self.subject, broker, %code);
                    place.not_before = Some(now + LONGEST_PAUSE);
                }
                return;
            }
        }
        let size = |p: &fetch::Portion| p.read.as_ref().map_or(0, |read| read.batches.len() as u64);
        let held = self.room.hold(fetched.partitions.iter().map(size).sum());
        let portions = fetched.partitions.into_iter();
        let asked = portions.filter_map(|portion| {
            let asked = place.sitting.asked(&portion.partition)?.clone();
            Some((portion, asked))
        });
        for (portion, asked) in asked.collect::<Vec<_>>() {
            self.portion(portion, &asked, &held, now);
        }
    }

    fn portion(&mut self, portion: fetch::Portion, asked: &Asked, held: &Arc<Held>, now: Instant) {
        let tp = portion.partition;
        // It may have been moved or let go of meanwhile.
        let is_meant = |r: &&mut Reading| r.turn == asked.turn && r.next.0 == asked.want.from;
        let Some(reading) = self.readings.get_mut(&tp).filter(is_meant) else {
            return;
        };
        if reading.state != State::Reading {
            return;
        }
        let read = match portion.read {
            Ok(read) => read,
            Err(code) => return self.refused(&tp, code, now),
        };
        (reading.failures, reading.told) = (0, None);
        let measured = measure(&read.batches, reading.next);
        reading.most = PARTITION;
        if let Some((last, epoch)) = measured.last.filter(|(last, _)| *last >= reading.next) {
            reading.next = last.next();
            reading.epoch = epoch;
            reading.end_is_news = true;
            let waiting = self.room.waiting(&reading.token);
            let portion = Portion {
                partition: tp.clone(),
                turn: reading.turn,
                batches: read.batches.slice(..measured.whole),
                aborted: read.aborted.iter().map(aborted).collect(),
                reached: reading.next,
                held: held.clone(),
                waiting,
            };
            self.tell(Word::Portion(portion));
        } else if let Some(whole) = measured.cut_off {
            // More than is asked for of a partition.
            reading.most = i32::try_from(whole).unwrap_or(i32::MAX).max(PARTITION);
        } else if measured.whole > 0 && measured.fault.is_none() {
            // What ends before the position again and again would be read again and again.
            reading.failures += 1;
            reading.not_before = now + LONGEST_PAUSE;
        }
        self.after(&tp, measured.fault.map(|f| f.to_string()), read.last_stable);
    }

    /// What is to be said behind the batches of an answer.
    fn after(&mut self, tp: &TopicPartition, fault: Option<String>, last_stable: i64) {
        let Some(reading) = self.readings.get_mut(tp) else {
            return;
        };
        if let Some(detail) = fault {
            reading.state = State::Stopped;
            return self.say(tp, News::Unreadable(detail));
        }
        if reading.end_is_news && last_stable >= 0 && reading.next.0 >= last_stable {
            reading.end_is_news = false;
            let end = reading.next;
            self.say(tp, News::End(end));
        }
    }

    /// A partition is not read now, for this reason.
    fn refused(&mut self, tp: &TopicPartition, code: Code, now: Instant) {
        let Some(reading) = self.readings.get_mut(tp) else {
            return;
        };
        match code {
            OFFSET_OUT_OF_RANGE => {
                reading.state = State::Stopped;
                self.say(tp, News::OutOfRange);
            }
            // A leader that has just been made does not know yet that it is one; what is gone the cluster says.
            UNKNOWN_TOPIC_OR_PARTITION => self.put_off(tp, code, None, now),
            code => self.absent(tp, code, now),
        }
    }

    /// Nobody leads a partition, or its leader does not give it, for this reason.
    fn absent(&mut self, tp: &TopicPartition, code: Code, now: Instant) {
        // Leaders move: that is no trouble.
        let fault = match code {
            UNKNOWN_TOPIC_OR_PARTITION => Some(SourceFault::Gone),
            TOPIC_AUTHORIZATION_FAILED => Some(SourceFault::Refused),
            code if PASSING.contains(&code) => None,
            _ => Some(SourceFault::Other),
        };
        self.put_off(tp, code, fault, now);
    }

    /// A partition is asked for again after a pause. A fault is told once.
    fn put_off(
        &mut self,
        tp: &TopicPartition,
        code: Code,
        fault: Option<SourceFault>,
        now: Instant,
    ) {
        let Some(reading) = self.readings.get_mut(tp) else {
            return;
        };
        let pause = PAUSE.saturating_mul(1 << reading.failures.min(8));
        reading.failures += 1;
        reading.not_before = now + pause.min(LONGEST_PAUSE);
        reading.end_is_news = true;
        let is_news = reading.told.replace(code) != Some(code);
        self.links.refresh();
        if let Some(fault) = fault
            && is_news
        {
            self.say(tp, News::Trouble(fault, code.to_string()));
        }
    }

    fn say(&self, tp: &TopicPartition, news: News) {
        if let Some(reading) = self.readings.get(tp) {
            self.tell(Word::Of(tp.clone(), reading.turn, news));
        }
    }

    fn tell(&self, word: Word) {
        // Who listens no more drops the orders as well, and the loop ends.
        let _ = self.words.send(word);
        (self.wake)();
    }
}

const OFFSET_OUT_OF_RANGE: Code = Code(1);
const UNKNOWN_TOPIC_OR_PARTITION: Code = Code(3);
const TOPIC_AUTHORIZATION_FAILED: Code = Code(29);
const FETCH_SESSION_ID_NOT_FOUND: Code = Code(70);
const INVALID_FETCH_SESSION_EPOCH: Code = Code(71);
/// Leaders that move, and logs that are about to be there: LEADER_NOT_AVAILABLE, NOT_LEADER_OR_FOLLOWER, REPLICA_NOT_AVAILABLE,
/// KAFKA_STORAGE_ERROR, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, OFFSET_NOT_AVAILABLE.
const PASSING: [Code; 7] = [
    Code(5),
    Code(6),
    Code(9),
    Code(56),
    Code(74),
    Code(75),
    Code(78),
];

fn aborted((producer_id, first_offset): &(i64, i64)) -> Aborted {
    Aborted {
        producer_id: *producer_id,
        first_offset: *first_offset,
    }
}

fn earlier(one: Option<Instant>, other: Instant) -> Option<Instant> {
    Some(one.map_or(other, |one| one.min(other)))
}

impl Reading {
    fn new(turn: u64, from: Offset, epoch: i32) -> Self {
        Self {
            turn,
            next: from,
            epoch,
            checked: -1,
            most: PARTITION,
            state: State::Reading,
            not_before: Instant::now(),
            failures: 0,
            told: None,
            end_is_news: true,
            token: Arc::default(),
        }
    }

    /// Whether more of it may wait.
    fn has_room(&self) -> bool {
        Arc::strong_count(&self.token) <= AHEAD
    }

    fn has_to_be_checked(&mut self, leader: Leader) -> bool {
        if self.epoch < 0 || self.epoch == leader.epoch {
            self.checked = self.checked.max(leader.epoch);
        }
        leader.epoch > self.checked
    }

    fn asked(&self, partition: &TopicPartition, leader: Leader) -> Asked {
        Asked {
            turn: self.turn,
            want: Want {
                partition: partition.clone(),
                epoch: leader.epoch,
                from: self.next.0,
                most: self.most,
            },
        }
    }
}
