//! Sends what was gathered: one batch of each partition in a request, several requests on their way to each broker.
//!
//! ```text
//! take in hand → whose leader is known → ripe batches → request → answer → verdict → outcomes
//!                                             ↑                              │
//!                                             └────────── again ─────────────┘
//! ```
//!
//! A batch is of one writer, and a request has one batch of a partition: writers of one partition take turns. Producer ids
//! for writers are asked for beside that.
//!
//! A thread of its own, so that nothing but its own target can hold it up.

use super::Manner;
use super::queue::{NoBatch, Outgoing};
use super::strand::Strand;
use super::target::{AGAIN, Target};
use super::verdict::{
    Again, Verdict, collateral, doubtful, missing, refused_by_name, verdict, worlds,
};
use super::writers::{Loss, Writers};
use crate::broker::connection::Connection;
use crate::broker::fault::Fault;
use crate::broker::message::code::Code;
use crate::broker::message::produce::{Parcel, Place, Produce, Produced, Receipt, Refusal};
use crate::broker::message::producer_id::{InitProducerId, ProducerId};
use crate::native::links::Links;
use crate::native::view::Absence;
use crate::plane::outcomes::{Outcomes, Tokens};
use crate::plane::{FaultKind, ProduceFault};
use crate::wire::codec::Compressor;
use crate::wire::header::Stamp;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// Requests that may be on their way to a broker.
const REQUESTS: usize = 5;
/// Bytes of a request; one batch may be larger.
const REQUEST_BYTES: usize = 8 << 20;
/// How long a topic may be unknown before its records fail for that (as `topic.metadata.propagation.max.ms`).
const MISSING: Duration = Duration::from_secs(10);
/// Producer ids that are asked for at a time.
const IDS: usize = 64;
/// Before they are asked for again where the target gives none.
const IDS_AGAIN: Duration = Duration::from_secs(1);
/// How long a broker may wait for its replicas.
const REPLICAS: Duration = Duration::from_secs(10);
/// How long its answer may take: it is made anew otherwise, and whoever leads by then is asked.
const PATIENCE: Duration = Duration::from_secs(15);

/// Sends for one sink.
pub(super) struct Sender {
    writers: Arc<Writers>,
    links: Links,
    subject: Arc<str>,
    linger: Duration,
    batch_bytes: usize,
    compressor: Compressor,
    ids: Asked,
    in_hand: Vec<Arc<Target>>,
    brokers: HashMap<i32, Busy>,
    answers: JoinSet<Answer>,
    /// When to look again, if nothing happens.
    look: Look,
}

/// Producer ids that are asked for.
#[derive(Default)]
struct Asked {
    under_way: usize,
    /// None is asked for until then.
    until: Option<Instant>,
}

/// What a broker has of us.
#[derive(Default)]
struct Busy {
    requests: usize,
    /// It wants to be left alone until then.
    until: Option<Instant>,
}

/// A batch on its way.
struct Sent {
    strand: Arc<Strand>,
    first_sequence: i32,
}

/// Whom something was asked of.
#[derive(Clone)]
struct Peer {
    broker: i32,
    connection: Arc<Connection>,
}

/// The earliest moment at which somebody wants to be looked at again.
#[derive(Default)]
struct Look(Option<Instant>);

impl Look {
    fn at(&mut self, moment: Instant) {
        self.0 = Some(self.0.map_or(moment, |look| look.min(moment)));
    }
}

/// Whether a request is on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Went {
    Out,
    /// The connection had ended.
    Nowhere,
}

/// What a task ends with.
enum Answer {
    Produced(Peer, Vec<Sent>, Result<Produced, Fault>),
    Id(Peer, Result<Result<ProducerId, Code>, Fault>),
}

impl Sender {
    pub(super) fn new(
        writers: Arc<Writers>,
        links: Links,
        subject: Arc<str>,
        manner: &Manner,
        compressor: Compressor,
    ) -> Self {
        Self {
            writers,
            links,
            subject,
            linger: manner.linger,
            batch_bytes: manner.batch_bytes,
            compressor,
            ids: Asked::default(),
            in_hand: Vec::new(),
            brokers: HashMap::new(),
            answers: JoinSet::new(),
            look: Look::default(),
        }
    }

    /// Until nothing more is taken, and all that was sent is answered or matters no more.
    pub(super) async fn run(mut self) {
        loop {
            self.take_in_hand();
            if self.is_over() {
                return;
            }
            self.look = Look::default();
            self.links.step();
            self.ask_for_ids().await;
            self.send().await;
            self.wait().await;
        }
    }

    fn is_over(&self) -> bool {
        self.writers.is_purged() || (!self.writers.is_open() && self.in_hand.is_empty())
    }

    fn take_in_hand(&mut self) {
        self.in_hand.retain(|target| !target.let_go());
        for target in self.writers.take_fresh() {
            self.links.want(&target.partition.topic);
            self.in_hand.push(target);
        }
    }

    async fn wait(&mut self) {
        let due = [
            self.look.0,
            self.links.due().map(tokio::time::Instant::into_std),
        ];
        let due = due.into_iter().flatten().min();
        let time = async {
            match due {
                Some(due) => tokio::time::sleep_until(due.into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.writers.wake.notified() => {}
            Some(answer) = self.answers.join_next() => self.joined(answer),
            () = self.links.changed() => {}
            () = time => {}
        }
        while let Some(answer) = self.answers.try_join_next() {
            self.joined(answer);
        }
    }

    fn joined(&mut self, answer: Result<Answer, tokio::task::JoinError>) {
        match answer {
            Ok(answer) => self.take(answer),
            // One that panicked will never say what became of its records: all go back.
            Err(_) => self.writers.end(Loss::All),
        }
    }

    /// Asks for producer ids: any broker gives them.
    async fn ask_for_ids(&mut self) {
        if let Some(until) = self.ids.until.filter(|until| *until > Instant::now()) {
            return self.look.at(until);
        }
        while self.ids.under_way < self.writers.ids.lacking().min(IDS) {
            let Some((broker, connection)) = self.links.any() else {
                return;
            };
            let peer = Peer { broker, connection };
            self.ids.under_way += 1;
            match peer.connection.begin(&InitProducerId, PATIENCE).await {
                Ok(pending) => {
                    let answer = async move { Answer::Id(peer, pending.answer().await) };
                    self.answers.spawn(answer);
                }
                Err(fault) => {
                    self.take(Answer::Id(peer, Err(fault)));
                    return;
                }
            }
        }
    }

    /// Sends what is ripe and may be sent.
    async fn send(&mut self) {
        for (broker, ready) in self.ready() {
            while self.brokers.entry(broker).or_default().requests < REQUESTS {
                let (sent, batches) = self.gather(&ready.targets);
                if batches.is_empty() {
                    break;
                }
                let went = self.produce(ready.peer.clone(), sent, &batches).await;
                if went == Went::Nowhere {
                    break;
                }
                // What was written goes out, and others are served, while the next one is compressed.
                tokio::task::yield_now().await;
            }
        }
    }

    /// Partitions that may be sent to, by the broker that leads them. Those whose leader is not known, or that are to be
    /// left alone, are looked at later.
    fn ready(&mut self) -> BTreeMap<i32, Ready> {
        let now = Instant::now();
        let mut ready = BTreeMap::<i32, Ready>::new();
        let mut failed = Vec::new();
        for target in &self.in_hand {
            let mut turns = target.turns();
            if let Some(until) = turns.until.filter(|until| *until > now) {
                self.look.at(until);
                continue;
            }
            let leader = match self.links.view().leader(&target.partition) {
                Ok(leader) => leader,
                Err(absence) => {
                    match without_leader(absence, &mut turns.missing, now) {
                        Some(fault) => failed.push((target.clone(), fault)),
                        // Leaders are asked for all the time; this is for the end of patience.
                        None => {
                            if let Some(since) = turns.missing {
                                self.look.at(since + MISSING);
                            }
                        }
                    }
                    continue;
                }
            };
            turns.missing = None;
            drop(turns);
            if let Some(known) = ready.get_mut(&leader.broker) {
                known.targets.push(target.clone());
                continue;
            }
            let busy = self.brokers.entry(leader.broker).or_default();
            if let Some(until) = busy.until.filter(|until| *until > now) {
                self.look.at(until);
                continue;
            }
            if let Some(connection) = self.links.connection(leader.broker) {
                let peer = Peer {
                    broker: leader.broker,
                    connection,
                };
                let targets = vec![target.clone()];
                ready.insert(leader.broker, Ready { peer, targets });
            }
        }
        for (target, fault) in failed {
            let strands: Vec<_> = target.turns().strands.iter().cloned().collect();
            for strand in strands {
                self.fail(&strand, &fault);
            }
        }
        ready
    }

    /// One batch of each of these partitions that has one, for one request.
    fn gather(&mut self, targets: &[Arc<Target>]) -> (Vec<Sent>, Vec<Outgoing>) {
        let (mut sent, mut batches, mut bytes) = (Vec::new(), Vec::new(), 0);
        let now = Instant::now();
        for target in targets {
            if bytes >= REQUEST_BYTES {
                // The rest goes with the next request.
                self.look.at(now);
                break;
            }
            if let Some((strand, batch)) = self.turn(target, now) {
                bytes += batch.bytes.len();
                sent.push(Sent {
                    strand,
                    first_sequence: batch.first_sequence,
                });
                batches.push(batch);
            }
        }
        (sent, batches)
    }

    /// The next batch for a partition, of the first writer in turn that has one.
    fn turn(&mut self, target: &Target, now: Instant) -> Option<(Arc<Strand>, Outgoing)> {
        let mut failed = Vec::new();
        let mut found = None;
        {
            let mut turns = target.turns();
            if let Some(until) = turns.until.filter(|until| *until > now) {
                self.look.at(until);
                return None;
            }
            for _ in 0..turns.strands.len() {
                let Some(strand) = turns.strands.pop_front() else {
                    break;
                };
                turns.strands.push_back(strand.clone());
                match self.next(&strand, now) {
                    Ok(None) => {}
                    Ok(Some(batch)) => {
                        found = Some((strand, batch));
                        break;
                    }
                    Err(fault) => failed.push((strand, fault)),
                }
            }
        }
        for (strand, fault) in failed {
            self.fail(&strand, &fault);
        }
        found
    }

    /// The next batch of a strand, if one may be sent.
    fn next(&mut self, strand: &Strand, now: Instant) -> Result<Option<Outgoing>, ProduceFault> {
        let writer = strand.pen.writer;
        let stamp = Stamp {
            producer_id: writer.id,
            producer_epoch: writer.epoch,
            base_sequence: 0,
        };
        let begun = now.checked_sub(self.linger).unwrap_or(now);
        let queue = &mut strand.state().queue;
        let next = queue.next(begun, self.batch_bytes, stamp, &mut self.compressor);
        if let Ok(None) = next {
            // What is not ripe yet; what waits for answers is looked at when they come.
            let ripens = queue.oldest().map(|since| since + self.linger);
            if let Some(moment) = ripens.filter(|moment| *moment > now) {
                self.look.at(moment);
            }
        }
        next.map_err(|none| match none {
            NoBatch::Codec(_) => worlds(none.to_string()),
            NoBatch::Unprovable => doubtful(none.to_string()),
        })
    }

    async fn produce(&mut self, peer: Peer, sent: Vec<Sent>, batches: &[Outgoing]) -> Went {
        let mut parcels: Vec<Parcel<'_>> = sent
            .iter()
            .zip(batches)
            .map(|(sent, batch)| Parcel {
                partition: sent.strand.target.partition.clone(),
                batch: &batch.bytes,
            })
            .collect();
        // Those of a topic stand side by side.
        parcels.sort_by(|a, b| a.partition.cmp(&b.partition));
        let request = Produce {
            patience: REPLICAS,
            batches: &parcels,
        };
        self.brokers.entry(peer.broker).or_default().requests += 1;
        match peer.connection.begin(&request, PATIENCE).await {
            Ok(pending) => {
                let answer = async move { Answer::Produced(peer, sent, pending.answer().await) };
                self.answers.spawn(answer);
                Went::Out
            }
            Err(fault) => {
                self.take(Answer::Produced(peer, sent, Err(fault)));
                Went::Nowhere
            }
        }
    }

    fn take(&mut self, answer: Answer) {
        match answer {
            Answer::Id(peer, answer) => {
                self.ids.under_way = self.ids.under_way.saturating_sub(1);
                match answer {
                    Ok(answer) => self.given(answer),
                    Err(fault) => self.links.failed(peer.broker, &peer.connection, &fault),
                }
            }
            Answer::Produced(peer, sent, produced) => {
                let busy = self.brokers.entry(peer.broker).or_default();
                busy.requests = busy.requests.saturating_sub(1);
                match produced {
                    Ok(produced) => self.produced(peer.broker, sent, produced),
                    Err(fault) => self.cut_off(&peer, &sent, &fault),
                }
            }
        }
    }

    fn given(&mut self, answer: Result<ProducerId, Code>) {
        let pause = match answer {
            Ok(producer) => return self.writers.ids.add(producer.id),
            Err(code) if is_passing(code) => AGAIN.first,
            Err(code) => {
                self.writers
                    .ids
                    .refuse(worlds(format!("no producer id: {code}")));
                IDS_AGAIN
            }
        };
        self.ids.until = Some(Instant::now() + pause);
    }

    fn produced(&mut self, broker: i32, sent: Vec<Sent>, produced: Produced) {
        if !produced.throttle.is_zero() {
            let until = Instant::now() + produced.throttle;
            self.brokers.entry(broker).or_default().until = Some(until);
        }
        let mut receipts: HashMap<_, _> = produced
            .partitions
            .into_iter()
            .map(|Receipt { partition, taken }| (partition, taken))
            .collect();
        let mut arrived = Outcomes::default();
        for Sent {
            strand,
            first_sequence,
        } in sent
        {
            match receipts.remove(&strand.target.partition) {
                Some(answer) => self.answered(&strand, first_sequence, answer, &mut arrived),
                None => self.again(&strand, first_sequence),
            }
        }
        self.writers.tell(arrived);
    }

    /// The connection ended before the answer: nobody knows what arrived. The broker does, by the numbers.
    fn cut_off(&mut self, peer: &Peer, sent: &[Sent], fault: &Fault) {
        self.links.failed(peer.broker, &peer.connection, fault);
        for sent in sent {
            self.again(&sent.strand, sent.first_sequence);
        }
    }

    fn answered(
        &mut self,
        strand: &Arc<Strand>,
        first_sequence: i32,
        answer: Result<Place, Refusal>,
        arrived: &mut Outcomes,
    ) {
        // It was thrown away while it was on its way.
        let Some(case) = strand.state().queue.case(first_sequence) else {
            return;
        };
        match verdict(answer, case) {
            Verdict::Arrived => {
                strand.target.arrived();
                if let Some(tokens) = strand.state().queue.acknowledge(first_sequence) {
                    arrived.arrive(&tokens);
                }
            }
            Verdict::Again(why) => {
                self.again(strand, first_sequence);
                match why {
                    Again::Later => {}
                    Again::Elsewhere => self.links.refresh(),
                    Again::IfItExists => {
                        strand.state().queue.be_unknown();
                        self.links.refresh();
                    }
                }
            }
            Verdict::Refused { fault, records } => {
                let tokens = strand.state().queue.settle(first_sequence);
                // Closed first: whoever hears of it finds that nothing follows.
                let was_open = self.writers.close(&strand.pen);
                self.writers.tell(blame(tokens, &fault, &records));
                self.say(strand, was_open, &fault);
            }
        }
    }

    /// Once more, unless its writer writes nothing more: then nobody waits for it in its order.
    fn again(&mut self, strand: &Strand, first_sequence: i32) {
        if self.writers.is_open() && strand.pen.is_open() {
            strand.state().queue.again(first_sequence);
            return strand.target.again();
        }
        let tokens = strand.state().queue.settle(first_sequence);
        self.writers.tell(blame(tokens, &collateral(), &[]));
    }

    fn fail(&mut self, strand: &Strand, fault: &ProduceFault) {
        let was_open = self.writers.fail(strand, fault);
        self.say(strand, was_open, fault);
    }

    /// A batch that is not taken leaves a gap in the numbers, and its records a gap in the order: whatever is behind it
    /// goes back to where it came from, and is written with a higher epoch.
    fn say(&self, strand: &Strand, was_open: bool, fault: &ProduceFault) {
        if was_open {
            let (writer, at) = (strand.pen.writer, &strand.target.partition);
            tracing::warn!(event = "writer_ended", subject = %self.subject, producer_id = writer.id, epoch = writer.epoch,
                topic = %at.topic, partition = at.partition, detail = fault.detail,
                "a batch is not taken; its source partition goes back to its watermark");
        }
    }
}

/// Partitions that may be sent to over one connection.
struct Ready {
    peer: Peer,
    targets: Vec<Arc<Target>>,
}

/// What is to be said of a partition without a leader: nothing, while one may come.
fn without_leader(
    absence: Absence,
    since: &mut Option<Instant>,
    now: Instant,
) -> Option<ProduceFault> {
    let Absence::Said(code) = absence else {
        return None;
    };
    match refused_by_name(code) {
        Some(FaultKind::Missing) => {
            let since = *since.get_or_insert(now);
            (now.duration_since(since) >= MISSING).then(|| missing(code))
        }
        Some(_) => Some(worlds(code.to_string())),
        None => None,
    }
}

/// Codes of a broker that will give a number later.
fn is_passing(code: Code) -> bool {
    matches!(code.0, 7 | 8 | 13 | 14 | 15 | 16 | 89)
}

/// Outcomes of the records of a refused batch: those that are to blame have failed of it, the others with them. One that was
/// to pass has failed as a whole.
fn blame(tokens: Option<Tokens>, fault: &ProduceFault, records: &[i32]) -> Outcomes {
    let mut outcomes = Outcomes::default();
    let tokens = match tokens {
        Some(Tokens::Each(tokens)) => tokens,
        Some(whole) => {
            outcomes.fail(&whole, fault);
            return outcomes;
        }
        None => return outcomes,
    };
    for (number, token) in (0..).zip(tokens) {
        let is_blamed = records.is_empty() || records.contains(&number);
        let fault = match is_blamed {
            true => fault.clone(),
            false => collateral(),
        };
        outcomes.add(token, Some(fault));
    }
    outcomes
}

#[cfg(test)]
#[path = "sender_tests.rs"]
mod tests;
