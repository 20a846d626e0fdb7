//! What is asked of whom, and when: a thread of its own, in which one loop owns everything.
//!
//! A partition is read from its leader, several at once, one request for each broker at a time (a broker serves one request of a
//! connection at a time, and holds it until there is something). Where the leader's epoch has changed, it is first asked where the
//! epoch of the last record ended (KIP-320). What comes is looked through, not opened; who takes it opens it.

use super::links::Links;
use super::portion::{Portion, measure};
use super::reading::{Next, PAUSES, Reading, Standing, State, USUAL};
use super::room::{Held, Room};
use super::session::{Asked, Sitting};
use crate::broker::connection::Connection;
use crate::broker::fault::Fault;
use crate::broker::message::code::Code;
use crate::broker::message::fetch::{self, Fetch};
use crate::broker::message::leader_epoch::{EpochEnd, OffsetForLeaderEpoch};
use crate::broker::message::metadata::Leader;
use crate::plane::{Offset, SourceFault};
use crate::record::TopicPartition;
use crate::wire::aborted::Aborted;
use crossbeam_channel::Sender;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// How long a broker may hold a request until there is something. A partition that is moved waits as long.
const WAIT: Duration = Duration::from_millis(250);
/// How long an answer may take beyond that.
const PATIENCE: Duration = Duration::from_secs(10);
/// The same where others of the broker's partitions wait to be asked for.
const SHORT_WAIT: Duration = Duration::from_millis(20);
/// The most bytes of an answer, one batch excepted.
const ANSWER: u64 = 8 << 20;
/// The least that is asked for.
const LEAST: u64 = 64 << 10;
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
    /// The rack that we are in; empty where that is not said (KIP-392).
    pub rack: Arc<str>,
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

/// A broker that partitions are read from.
#[derive(Default)]
struct Place {
    sitting: Sitting,
    /// How many partitions are not asked for because enough of them waits.
    full: usize,
    /// Bytes that are asked for in the request that is on its way.
    asked: Option<u64>,
    not_before: Option<Instant>,
}

impl Place {
    /// How long the broker may hold a request. One of those that are full may soon be asked for again, and has more: it
    /// would wait for as long as the others have nothing.
    fn wait(&self) -> Duration {
        match self.full {
            0 => WAIT,
            _ => SHORT_WAIT,
        }
    }
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
    rack: Arc<str>,
    subject: Arc<str>,
    readings: BTreeMap<TopicPartition, Reading>,
    /// How many partitions of each topic are read.
    topics: BTreeMap<Arc<str>, usize>,
    places: BTreeMap<i32, Place>,
    /// Partitions for which something has changed: only these are looked at, however many there are.
    changed: BTreeSet<TopicPartition>,
    /// Partitions that are to be looked at then.
    later: BTreeSet<(Instant, TopicPartition)>,
    /// The view of the cluster that the partitions stand by.
    version: u64,
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
            rack: parts.rack,
            subject: parts.subject,
            readings: BTreeMap::new(),
            topics: BTreeMap::new(),
            places: BTreeMap::new(),
            changed: BTreeSet::new(),
            later: BTreeSet::new(),
            version: 0,
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
            } => self.read(partition, Reading::new(turn, from, epoch)),
            Order::Stop(partition) => self.stop(&partition),
        }
    }

    fn read(&mut self, partition: TopicPartition, reading: Reading) {
        self.stand(&partition, Standing::Nowhere);
        self.changed.insert(partition.clone());
        let topic = partition.topic.clone();
        if self.readings.insert(partition, reading).is_none() {
            self.links.want(&topic);
            *self.topics.entry(topic).or_default() += 1;
        }
    }

    fn stop(&mut self, partition: &TopicPartition) {
        self.stand(partition, Standing::Nowhere);
        if self.readings.remove(partition).is_none() {
            return;
        }
        if let Some(count) = self.topics.get_mut(&partition.topic) {
            *count -= 1;
            if *count == 0 {
                self.topics.remove(&partition.topic);
                self.links.forget(&partition.topic);
            }
        }
    }

    /// Asks for what may be asked for now; when to look again, whatever happens.
    fn step(&mut self, now: Instant) -> Option<Instant> {
        self.notice(now);
        for tp in std::mem::take(&mut self.changed) {
            self.look(&tp, now);
        }
        let brokers: Vec<i32> = self.places.keys().copied().collect();
        let due = brokers.into_iter().filter_map(|b| self.fetch(b, now));
        let due = due.min();
        let later = self.later.first().map(|(at, _)| *at);
        [due, later].into_iter().flatten().min()
    }

    /// Finds out for which partitions something has changed.
    fn notice(&mut self, now: Instant) {
        self.changed.extend(self.room.taken());
        while let Some((at, tp)) = self.later.pop_first() {
            if at > now {
                self.later.insert((at, tp));
                break;
            }
            self.changed.insert(tp);
        }
        let version = self.links.view().version();
        if version != self.version {
            self.version = version;
            self.changed.extend(self.readings.keys().cloned());
        }
    }

    /// Puts a partition where it belongs now.
    fn look(&mut self, tp: &TopicPartition, now: Instant) {
        let Some(reading) = self.readings.get_mut(tp) else {
            return;
        };
        match reading.next_step(tp, self.links.view(), now) {
            Next::Ask { broker, epoch } => {
                let asked = reading.asked(tp, epoch);
                self.stand(tp, Standing::Asked(broker));
                let place = self.places.entry(broker).or_default();
                place.sitting.want(tp, asked, USUAL);
            }
            Next::Full(broker) => self.stand(tp, Standing::Full(broker)),
            Next::Check(leader) => {
                self.stand(tp, Standing::Nowhere);
                self.check(tp, leader);
            }
            Next::Later(at) => {
                self.stand(tp, Standing::Nowhere);
                self.later.insert((at, tp.clone()));
            }
            Next::Absent(code) => self.absent(tp, code, now),
            Next::Nothing => self.stand(tp, Standing::Nowhere),
        }
    }

    fn stand(&mut self, tp: &TopicPartition, standing: Standing) {
        let Some(reading) = self.readings.get_mut(tp) else {
            return;
        };
        let before = std::mem::replace(&mut reading.standing, standing);
        if before == standing {
            return;
        }
        match before {
            Standing::Nowhere => {}
            Standing::Asked(broker) => self.places.entry(broker).or_default().sitting.leave(tp),
            Standing::Full(broker) => self.places.entry(broker).or_default().full -= 1,
        }
        if let Standing::Full(broker) = standing {
            self.places.entry(broker).or_default().full += 1;
        }
    }

    /// Asks a broker, unless it is asked already, or there is no room; when to look again.
    fn fetch(&mut self, broker: i32, now: Instant) -> Option<Instant> {
        let on_their_way: u64 = self.places.values().filter_map(|place| place.asked).sum();
        let wanting = |place: &&Place| place.sitting.wants_something();
        let brokers = self.places.values().filter(wanting).count() as u64;
        let place = self.places.get_mut(&broker)?;
        if place.asked.is_some() || !place.sitting.wants_something() {
            return None;
        }
        if let Some(at) = place.not_before.filter(|at| *at > now) {
            return Some(at);
        }
        let left = self.room.left();
        // Somebody takes what waits; where all room is held by what was taken, it goes on in small steps.
        if left == 0 && !self.words.is_empty() {
            return Some(now + PAUSES.first);
        }
        let connection = self.links.connection(broker)?;
        let share = (self.room.limit() / brokers.max(1)).min(ANSWER);
        let most = left.saturating_sub(on_their_way).min(share).max(LEAST);
        let large = place.sitting.largest().unwrap_or(0);
        let most = most.max(u64::from(large.unsigned_abs()));
        place.asked = Some(most);
        let (named, wait) = (place.sitting.ask(), place.wait());
        let rack = self.rack.clone();
        self.tasks.spawn(async move {
            let request = Fetch {
                wait,
                most: i32::try_from(most).unwrap_or(i32::MAX),
                session: named.session,
                partitions: &named.partitions,
                forgotten: &named.forgotten,
                rack: &rack,
            };
            let result = connection.ask(&request, wait + PATIENCE).await;
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
            // Looked at again with the next thing that happens: it may be there then.
            self.changed.insert(tp.clone());
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
                        self.cut_off(broker);
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
                self.changed.insert(partition.clone());
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

    /// The connection to a broker has ended: its session as well, and who was sent there by a leader goes back to it.
    fn cut_off(&mut self, broker: i32) {
        let Some(place) = self.places.get_mut(&broker) else {
            return;
        };
        place.sitting.forget();
        for tp in place.sitting.wanted() {
            let reading = self.readings.get_mut(tp);
            if reading.is_some_and(Reading::go_back) {
                self.changed.insert(tp.clone());
            }
        }
    }

    /// Where the epoch of the last record ended, in the eyes of a new leader: before the position, if its log was cut off.
    fn checked(&mut self, tp: &TopicPartition, leader: Leader, end: EpochEnd) {
        let Some(reading) = self.readings.get_mut(tp) else {
            return;
        };
        // -1: the new leader knows nothing of that epoch, so its log was cut off before it.
        let is_cut = end.end < reading.next.0;
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
                    place.not_before = Some(now + PAUSES.longest);
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
        self.changed.insert(tp.clone());
        reading.be_well();
        if let Some(nearer) = read.nearer {
            let until = match self.links.view().address(nearer) {
                Some(_) => reading.go_nearer(nearer, now),
                None => reading.put_off(now),
            };
            self.later.insert((until, tp.clone()));
        }
        let measured = measure(&read.batches, reading.next);
        reading.most = USUAL;
        if let Some((last, epoch)) = measured.last.filter(|(last, _)| *last >= reading.next) {
            reading.next = last.next();
            reading.epoch = epoch;
            reading.end_is_news = true;
            let waiting = self.room.waiting(&tp, &reading.token);
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
            reading.most = i32::try_from(whole).unwrap_or(i32::MAX).max(USUAL);
        } else if measured.whole > 0 && measured.fault.is_none() {
            // What ends before the position again and again would be read again and again.
            reading.put_off(now);
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
        self.changed.insert(tp.clone());
        if reading.go_back() {
            return;
        }
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
        let until = reading.put_off(now);
        reading.end_is_news = true;
        let is_news = reading.told.replace(code) != Some(code);
        self.stand(tp, Standing::Nowhere);
        self.later.insert((until, tp.clone()));
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
