//! Sends what was gathered: one batch of each partition in a request, several requests on their way to each broker.
//!
//! ```text
//! take in hand → whose leader is known → ripe batches → request → answer → verdict → outcomes
//!                                             ↑                              │
//!                                             └────────── again ─────────────┘
//! ```
//!
//! A thread of its own, so that nothing but its own target can hold it up.

use super::Manner;
use super::queue::{Outgoing, Standing};
use super::target::{Loss, Target, Targets};
use super::verdict::{Again, Verdict, collateral, missing, refused_by_name, verdict, worlds};
use crate::broker::connection::Connection;
use crate::broker::fault::Fault;
use crate::broker::message::code::Code;
use crate::broker::message::produce::{Parcel, Produce, Produced, Receipt, Refusal};
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
/// How long a broker may wait for its replicas.
const REPLICAS: Duration = Duration::from_secs(10);
/// How long its answer may take: it is made anew otherwise, and whoever leads by then is asked.
const PATIENCE: Duration = Duration::from_secs(15);

/// Sends for one sink.
pub(super) struct Sender {
    targets: Arc<Targets>,
    links: Links,
    subject: Arc<str>,
    linger: Duration,
    batch_bytes: usize,
    compressor: Compressor,
    identity: Identity,
    in_hand: Vec<Arc<Target>>,
    brokers: HashMap<i32, Busy>,
    answers: JoinSet<Answer>,
    /// When to look again, if nothing happens.
    look: Look,
}

/// Who we are to the brokers.
#[derive(Clone, Copy)]
enum Identity {
    /// Nobody, and it may be asked for from then on.
    None(Instant),
    Asked,
    Known(ProducerId),
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
    target: Arc<Target>,
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
    Identity(Peer, Result<Result<ProducerId, Code>, Fault>),
}

impl Sender {
    pub(super) fn new(
        targets: Arc<Targets>,
        links: Links,
        subject: Arc<str>,
        manner: &Manner,
        compressor: Compressor,
    ) -> Self {
        Self {
            targets,
            links,
            subject,
            linger: manner.linger,
            batch_bytes: manner.batch_bytes,
            compressor,
            identity: Identity::None(Instant::now()),
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
            match self.identity {
                Identity::Known(producer) => self.send(producer).await,
                Identity::None(from) => self.introduce(from).await,
                Identity::Asked => {}
            }
            self.wait().await;
        }
    }

    fn is_over(&self) -> bool {
        self.targets.is_purged() || (!self.targets.is_open() && self.in_hand.is_empty())
    }

    fn take_in_hand(&mut self) {
        self.in_hand.retain(|target| !target.let_go());
        for target in self.targets.take_fresh() {
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
            () = self.targets.wake.notified() => {}
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
            Err(_) => drop(self.targets.end(Loss::All)),
        }
    }

    /// Asks for a producer's number: any broker gives one.
    async fn introduce(&mut self, from: Instant) {
        if from > Instant::now() {
            return self.look.at(from);
        }
        let Some(Ready { peer, .. }) = self.ready().into_values().next() else {
            return;
        };
        self.identity = Identity::Asked;
        match peer.connection.begin(&InitProducerId, PATIENCE).await {
            Ok(pending) => {
                let answer = async move { Answer::Identity(peer, pending.answer().await) };
                self.answers.spawn(answer);
            }
            Err(fault) => self.take(Answer::Identity(peer, Err(fault))),
        }
    }

    /// Sends what is ripe and may be sent.
    async fn send(&mut self, producer: ProducerId) {
        for (broker, ready) in self.ready() {
            while self.brokers.entry(broker).or_default().requests < REQUESTS {
                let (sent, batches) = self.gather(&ready.targets, producer);
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
            let mut state = target.state();
            if let Some(until) = state.until.filter(|until| *until > now) {
                self.look.at(until);
                continue;
            }
            let leader = match self.links.view().leader(&target.partition) {
                Ok(leader) => leader,
                Err(absence) => {
                    match without_leader(absence, &mut state.missing, now) {
                        Some(fault) => failed.push((target.clone(), fault)),
                        // Leaders are asked for all the time; this is for the end of patience.
                        None => {
                            if let Some(since) = state.missing {
                                self.look.at(since + MISSING);
                            }
                        }
                    }
                    continue;
                }
            };
            state.missing = None;
            drop(state);
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
            self.fail(&target, &fault);
        }
        ready
    }

    /// One batch of each of these partitions that has one, for one request.
    fn gather(
        &mut self,
        targets: &[Arc<Target>],
        producer: ProducerId,
    ) -> (Vec<Sent>, Vec<Outgoing>) {
        let (mut sent, mut batches, mut bytes) = (Vec::new(), Vec::new(), 0);
        let stamp = Stamp {
            producer_id: producer.id,
            producer_epoch: producer.epoch,
            base_sequence: 0,
        };
        let now = Instant::now();
        let begun = now.checked_sub(self.linger).unwrap_or(now);
        for target in targets {
            if bytes >= REQUEST_BYTES {
                // The rest goes with the next request.
                self.look.at(now);
                break;
            }
            let mut state = target.state();
            if let Some(until) = state.until.filter(|until| *until > now) {
                drop(state);
                self.look.at(until);
                continue;
            }
            let next = state
                .queue
                .next(begun, self.batch_bytes, stamp, &mut self.compressor);
            let oldest = state.queue.oldest();
            drop(state);
            match next {
                Ok(Some(batch)) => {
                    bytes += batch.bytes.len();
                    sent.push(Sent {
                        target: target.clone(),
                        first_sequence: batch.first_sequence,
                    });
                    batches.push(batch);
                }
                Ok(None) => {
                    // What is not ripe yet; what waits for answers is looked at when they come.
                    let ripens = oldest.map(|since| since + self.linger);
                    if let Some(moment) = ripens.filter(|moment| *moment > now) {
                        self.look.at(moment);
                    }
                }
                Err(error) => self.fail(target, &worlds(format!("no batch: {error}"))),
            }
        }
        (sent, batches)
    }

    async fn produce(&mut self, peer: Peer, sent: Vec<Sent>, batches: &[Outgoing]) -> Went {
        let mut parcels: Vec<Parcel<'_>> = sent
            .iter()
            .zip(batches)
            .map(|(sent, batch)| Parcel {
                partition: sent.target.partition.clone(),
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
            Answer::Identity(peer, Err(fault)) => {
                self.links.failed(peer.broker, &peer.connection, &fault);
                self.identity = Identity::None(Instant::now());
            }
            Answer::Identity(_, Ok(answer)) => self.identified(answer),
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

    fn identified(&mut self, answer: Result<ProducerId, Code>) {
        match answer {
            Ok(producer) => self.identity = Identity::Known(producer),
            Err(code) if is_passing(code) => {
                let later = Instant::now() + super::target::AGAIN.first;
                self.identity = Identity::None(later);
                self.look.at(later);
            }
            Err(code) => {
                let fault = worlds(format!("no producer id: {code}"));
                for target in self.in_hand.clone() {
                    self.targets.fail(&target, &fault);
                }
                self.die(&fault);
            }
        }
    }

    fn produced(&mut self, broker: i32, sent: Vec<Sent>, produced: Produced) {
        if !produced.throttle.is_zero() {
            let until = Instant::now() + produced.throttle;
            self.brokers.entry(broker).or_default().until = Some(until);
        }
        let mut receipts: HashMap<_, _> = produced
            .partitions
            .into_iter()
            .map(|Receipt { partition, base }| (partition, base))
            .collect();
        let mut arrived = Outcomes::default();
        for Sent {
            target,
            first_sequence,
        } in sent
        {
            match receipts.remove(&target.partition) {
                Some(answer) => self.answered(&target, first_sequence, answer, &mut arrived),
                None => self.again(&target, first_sequence),
            }
        }
        self.targets.tell(arrived);
    }

    /// The connection ended before the answer: nobody knows what arrived. The broker does, by the numbers.
    fn cut_off(&mut self, peer: &Peer, sent: &[Sent], fault: &Fault) {
        self.links.failed(peer.broker, &peer.connection, fault);
        for sent in sent {
            self.again(&sent.target, sent.first_sequence);
        }
    }

    fn answered(
        &mut self,
        target: &Arc<Target>,
        first_sequence: i32,
        answer: Result<i64, Refusal>,
        arrived: &mut Outcomes,
    ) {
        let (standing, maker) = {
            let queue = &target.state().queue;
            (queue.standing(first_sequence), queue.maker(first_sequence))
        };
        // Thrown away while it was on its way.
        if standing == Standing::Unknown {
            return;
        }
        match verdict(answer, standing, maker) {
            Verdict::Arrived => {
                if let Some(tokens) = target.arrived(first_sequence) {
                    arrived.arrive(&tokens);
                }
            }
            Verdict::Again(why) => {
                self.again(target, first_sequence);
                match why {
                    Again::Later => {}
                    Again::Elsewhere => self.links.refresh(),
                    Again::IfItExists => {
                        target.state().queue.be_unknown();
                        self.links.refresh();
                    }
                }
            }
            Verdict::Refused { fault, records } => {
                let tokens = target.state().queue.settle(first_sequence);
                self.targets.tell(blame(tokens, &fault, &records));
                self.die(&fault);
            }
        }
    }

    /// Once more, unless the sink takes nothing more: then nobody waits for it in its order.
    fn again(&mut self, target: &Arc<Target>, first_sequence: i32) {
        if self.targets.is_open() {
            return target.again(first_sequence);
        }
        let tokens = target.state().queue.settle(first_sequence);
        self.targets.tell(blame(tokens, &collateral(), &[]));
    }

    fn fail(&mut self, target: &Target, fault: &ProduceFault) {
        self.targets.fail(target, fault);
        self.die(fault);
    }

    /// A batch that is not taken leaves a gap in the numbers, and its records a gap in the order: whatever is behind it
    /// goes back to where it came from, and another producer begins.
    fn die(&mut self, fault: &ProduceFault) {
        if self.targets.end(Loss::Unsent) {
            tracing::warn!(event = "producer_fatal", subject = %self.subject, detail = fault.detail,
                "the producer is replaced; partitions with records in it go back to their watermark");
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
