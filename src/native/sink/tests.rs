//! Queues against a broker that is played by KIP-98's rules: whatever is refused, cut off or answered late, what the broker
//! has of a writer is always the beginning of what was enqueued, each record once. And two writers that have the same producer
//! id: of a lower epoch nothing is taken behind a higher one, and of the same one only what is its own counts as arrived.

use super::queue::{Case, Maker, NoBatch, Outgoing, Proof, Queue, Standing};
use super::verdict::{Again, Verdict, verdict};
use crate::broker::message::code::Code;
use crate::broker::message::produce::{Place, Refusal};
use crate::plane::outcomes::Tokens;
use crate::plane::{Claim, FaultKind, Token};
use crate::record::{Headers, Origin, Record};
use crate::wire::codec::{Codec, Compression, Compressor, Decompressor};
use crate::wire::cut::{Cut, Cuts};
use crate::wire::header::Stamp;
use crate::wire::pass::Whole;
use crate::wire::writer::{Piece, Writer, Written};
use bytes::Bytes;
use proptest::prelude::*;
use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::time::Instant;

const PRODUCER: Stamp = Stamp {
    producer_id: 7,
    producer_epoch: 0,
    base_sequence: 0,
};

fn compressor() -> Compressor {
    let compression = Compression {
        codec: Codec::Lz4,
        level: None,
    };
    Compressor::new(compression).expect("a compressor")
}

fn record(value: &[u8]) -> Record<'_> {
    Record {
        origin: Origin {
            source: "source",
            topic: "orders",
            partition: 0,
            offset: 0,
            timestamp: None,
        },
        topic: Cow::Borrowed("orders"),
        key: None,
        value: Some(Cow::Borrowed(value)),
        headers: Headers::Untouched(&()),
        timestamp: Some(1),
    }
}

fn token(distance: u32) -> Token {
    Token {
        worker: 0,
        ticket: 1,
        distance,
    }
}

/// Records of these numbers in a batch of somebody else's.
fn whole(from: u32, to: u32) -> Whole {
    let mut writer = Writer::default();
    let none = Headers::Changed(Vec::new());
    for number in from..to {
        writer.push(&Piece {
            timestamp: Some(1),
            key: None,
            value: Some(&number.to_be_bytes()),
            headers: Written::Each(&none),
        });
    }
    let stamp = Stamp {
        producer_id: 99,
        producer_epoch: 3,
        base_sequence: 70,
    };
    let finished = writer.finish(&mut compressor(), stamp);
    let frame = Bytes::from(finished.expect("a batch"));
    let Some(Ok(Cut::Batch(batch))) = Cuts::of(&frame).next() else {
        panic!("no batch");
    };
    batch.keep(&frame)
}

/// The numbers that records of a batch hold.
fn numbers(batch: &[u8]) -> Vec<i32> {
    let Some(Ok(Cut::Batch(raw))) = Cuts::of(batch).next() else {
        panic!("no batch");
    };
    assert_eq!(raw.check(), Ok(()));
    let mut buffer = Vec::new();
    let records = raw.open(&mut Decompressor::default(), 1 << 20, &mut buffer);
    let value = |view: crate::wire::records::View<'_>| view.value.map(<[u8]>::to_vec);
    let values = records
        .expect("records")
        .map(|view| value(view.expect("a record")));
    let number = |value: Option<Vec<u8>>| i32::from_be_bytes(value?.try_into().ok()?).into();
    values.filter_map(number).collect()
}

/// Whose records these are.
fn distances(of: impl IntoIterator<Item = Tokens>) -> Vec<u32> {
    let each = |tokens| match tokens {
        Tokens::Each(tokens) => tokens.iter().map(|token| token.distance).collect(),
        Tokens::Whole { first, count } => {
            (first.distance..first.distance + count).collect::<Vec<_>>()
        }
    };
    of.into_iter().flat_map(each).collect()
}

fn refused(code: i16) -> Result<Place, Refusal> {
    Err(Refusal {
        code: Code(code),
        records: Vec::new(),
        words: None,
    })
}

/// The largest timestamp of all records here.
const TIME: i64 = 1;

/// A batch on its way: the first number, how many records, and the numbers that they hold.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Batch {
    epoch: i16,
    first: i32,
    count: i32,
    holds: Vec<i32>,
}

/// A broker's log of one partition, and what it remembers of one producer id.
#[derive(Default)]
struct Log {
    /// The highest epoch that it has seen; `None` while it knows nothing.
    epoch: Option<i16>,
    /// Number of the next record in that epoch.
    next: i32,
    /// The last batches of that epoch: first number and number of records.
    last: VecDeque<(i32, i32)>,
    /// What the records hold as they stand.
    records: Vec<i32>,
}

impl Log {
    fn append(&mut self, batch: &Batch) -> Result<Place, Refusal> {
        let range = (batch.first, batch.count);
        match self.epoch {
            Some(epoch) if batch.epoch < epoch => return refused(47),
            Some(epoch) if batch.epoch == epoch => {
                if self.last.contains(&range) {
                    return Ok(Place {
                        base: 0,
                        time: Some(TIME),
                    });
                }
                if self.next != batch.first {
                    return refused(45);
                }
            }
            Some(_) if batch.first != 0 => return refused(45),
            Some(_) => self.last.clear(),
            // Of a producer that it does not know it takes any number.
            None => {}
        }
        self.epoch = Some(batch.epoch);
        self.next = batch.first + batch.count;
        self.last.push_back(range);
        if self.last.len() > 5 {
            self.last.pop_front();
        }
        self.records.extend(&batch.holds);
        Ok(Place {
            base: 0,
            time: None,
        })
    }
}

/// What happens next.
#[derive(Clone, Debug)]
enum Step {
    /// So many records are enqueued.
    Push(u32),
    /// A batch of so many records passes.
    Pass(u32),
    /// What is ripe is sent.
    Send,
    /// The broker takes the first request on its way.
    Arrive,
    /// It refuses it, for now.
    Refuse(i16),
    /// The first answer comes.
    Answer,
    /// The connection ends: the broker still gets so many of the requests on their way.
    Cut(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (1u32..8).prop_map(Step::Push),
        2 => (1u32..8).prop_map(Step::Pass),
        4 => Just(Step::Send),
        3 => Just(Step::Arrive),
        1 => prop::sample::select(vec![2i16, 3, 5, 6, 7, 19, 20, 56]).prop_map(Step::Refuse),
        3 => Just(Step::Answer),
        1 => (0usize..6).prop_map(Step::Cut),
    ]
}

/// A queue and its connection.
struct Sender {
    stamp: Stamp,
    queue: Queue,
    /// How many records were enqueued; the next one holds this.
    pushed: u32,
    under_way: VecDeque<Batch>,
    answers: VecDeque<(i32, Result<Place, Refusal>)>,
    /// Bytes of each batch when it was sent first.
    bytes: HashMap<i32, Outgoing>,
    acknowledged: Vec<u32>,
    /// What ended it.
    fault: Option<FaultKind>,
}

impl Sender {
    fn new(epoch: i16, claim: Claim) -> Self {
        Self {
            stamp: Stamp {
                producer_epoch: epoch,
                ..PRODUCER
            },
            queue: Queue::new(claim),
            pushed: 0,
            under_way: VecDeque::new(),
            answers: VecDeque::new(),
            bytes: HashMap::new(),
            acknowledged: Vec::new(),
            fault: None,
        }
    }

    fn take(&mut self, step: &Step, log: &mut Log, compressor: &mut Compressor) {
        match step {
            Step::Push(count) => self.push(*count),
            Step::Pass(count) => {
                let batch = whole(self.pushed, self.pushed + count);
                let _ = self.queue.pass(batch, token(self.pushed));
                self.pushed += count;
            }
            Step::Send => self.send(compressor),
            Step::Arrive => {
                if let Some(batch) = self.under_way.pop_front() {
                    let answer = log.append(&batch);
                    self.answers.push_back((batch.first, answer));
                }
            }
            Step::Refuse(code) => {
                if let Some(batch) = self.under_way.pop_front() {
                    let answer = self.refuse(*code, &batch, log);
                    self.answers.push_back((batch.first, answer));
                }
            }
            Step::Answer => self.answer(),
            Step::Cut(arrive) => self.cut(*arrive, log),
        }
    }

    fn refuse(&self, code: i16, batch: &Batch, log: &mut Log) -> Result<Place, Refusal> {
        let maker = self.queue.case(batch.first).map(|case| case.maker);
        // Of a batch of somebody else's it is no refusal for now.
        let code = match (code, maker) {
            (2, Some(Maker::Another)) => 7,
            _ => code,
        };
        // After the append: it has it all the same.
        if code == 20
            && let refusal @ Err(_) = log.append(batch)
        {
            return refusal;
        }
        refused(code)
    }

    fn push(&mut self, count: u32) {
        for _ in 0..count {
            let value = self.pushed.to_be_bytes();
            // Three records fill a batch.
            let record = record(&value);
            let _ = self.queue.push(&record, token(self.pushed), 61 + 30);
            self.pushed += 1;
        }
    }

    fn send(&mut self, compressor: &mut Compressor) {
        let next = self
            .queue
            .next(Instant::now(), 61 + 30, self.stamp, compressor);
        let Some(batch) = next.expect("a codec").filter(|_| self.fault.is_none()) else {
            return;
        };
        let known = self.bytes.entry(batch.first_sequence);
        let first = known.or_insert_with(|| batch.clone());
        assert_eq!(first.bytes, batch.bytes, "the same bytes again");
        let Some(Ok(Cut::Batch(raw))) = Cuts::of(&batch.bytes).next() else {
            panic!("no batch");
        };
        let stamp = Stamp {
            base_sequence: batch.first_sequence,
            ..self.stamp
        };
        assert_eq!(raw.header().stamp, stamp);
        self.under_way.push_back(Batch {
            epoch: stamp.producer_epoch,
            first: batch.first_sequence,
            count: raw.header().count,
            holds: numbers(&batch.bytes),
        });
        assert!(self.under_way.len() + self.answers.len() <= 5);
    }

    fn answer(&mut self) {
        let Some((first, answer)) = self.answers.pop_front() else {
            return;
        };
        // What is behind the one that ended it.
        let Some(case) = self.queue.case(first).filter(|_| self.fault.is_none()) else {
            return;
        };
        match verdict(answer, case) {
            Verdict::Arrived => {
                let tokens = self.queue.acknowledge(first);
                self.acknowledged.extend(distances(tokens));
            }
            Verdict::Again(_) => self.queue.again(first),
            Verdict::Refused { fault, .. } => self.fault = Some(fault.kind),
        }
    }

    fn cut(&mut self, arrive: usize, log: &mut Log) {
        for _ in 0..arrive {
            self.take(&Step::Arrive, log, &mut compressor());
        }
        let under_way = self.under_way.drain(..).map(|batch| batch.first);
        let answers = self.answers.drain(..).map(|(first, _)| first);
        for first in under_way.chain(answers).collect::<Vec<_>>() {
            self.queue.again(first);
        }
    }

    fn is_done(&self) -> bool {
        self.fault.is_some() || self.queue.is_idle()
    }
}

/// One queue, the connection and the broker.
struct World {
    sender: Sender,
    log: Log,
}

impl Default for World {
    fn default() -> Self {
        Self {
            sender: Sender::new(0, Claim::Sole),
            log: Log::default(),
        }
    }
}

impl World {
    fn take(&mut self, step: &Step, compressor: &mut Compressor) {
        self.sender.take(step, &mut self.log, compressor);
        assert_eq!(self.sender.fault, None);
        let wanted: Vec<i32> = (0..self.log.records.len() as i32).collect();
        assert_eq!(self.log.records, wanted, "in order, each once");
        let has = |distance: &u32| self.log.records.contains(&(*distance as i32));
        assert!(self.sender.acknowledged.iter().all(has));
    }

    fn push(&mut self, count: u32) {
        self.sender.push(count);
    }

    fn send(&mut self, compressor: &mut Compressor) {
        self.take(&Step::Send, compressor);
    }

    fn firsts(&self) -> Vec<(i32, i32)> {
        let under_way = self.sender.under_way.iter();
        under_way.map(|batch| (batch.first, batch.count)).collect()
    }
}

proptest! {
    #[test]
    fn what_the_broker_has_is_the_beginning_of_what_was_enqueued(
        steps in prop::collection::vec(step(), 1..120),
    ) {
        let mut compressor = compressor();
        let mut world = World::default();
        for step in &steps {
            world.take(step, &mut compressor);
        }
        // Nothing goes wrong any more: everything arrives.
        while !world.sender.is_done() {
            for step in [Step::Send, Step::Arrive, Step::Answer] {
                world.take(&step, &mut compressor);
            }
        }
        let sender = &mut world.sender;
        prop_assert_eq!(world.log.records.len(), sender.pushed as usize);
        sender.acknowledged.sort_unstable();
        prop_assert_eq!(&sender.acknowledged, &(0..sender.pushed).collect::<Vec<_>>());
    }

    /// Two lives of one partition, each with an epoch of one id, at one target partition, at any interleaving. What one of them
    /// is told has arrived has arrived from it, in its order, each record once; behind the first batch of the higher epoch
    /// there is nothing of the lower one. With the same epoch one of them at most gets anywhere.
    #[test]
    fn two_writers_of_one_id_never_take_each_others_records_for_theirs(
        epochs in (0i16..3, 0i16..3),
        steps in prop::collection::vec((prop::bool::ANY, step()), 1..160),
    ) {
        let mut compressor = compressor();
        let mut log = Log::default();
        let mut lives = [epochs.0, epochs.1].map(|epoch| Sender::new(epoch, Claim::Shared));
        // What the second one writes is told from what the first one does.
        lives[1].pushed = SECOND;
        for (is_second, step) in &steps {
            lives[usize::from(*is_second)].take(step, &mut log, &mut compressor);
        }
        while let Some(life) = lives.iter_mut().find(|life| !life.is_done()) {
            for step in [Step::Send, Step::Arrive, Step::Answer] {
                life.take(&step, &mut log, &mut compressor);
            }
        }
        let of = |begin: u32| {
            let own = log.records.iter().map(|holds| *holds as u32);
            own.filter(move |holds| (*holds >= SECOND) == (begin == SECOND)).collect::<Vec<_>>()
        };
        for (life, begin) in lives.iter().zip([0, SECOND]) {
            let there = of(begin);
            prop_assert_eq!(&there, &(begin..begin + there.len() as u32).collect::<Vec<_>>());
            prop_assert!(life.acknowledged.iter().all(|record| there.contains(record)));
            if life.fault.is_none() {
                let count = life.acknowledged.len() as u32;
                prop_assert_eq!(count, life.pushed - begin, "all of it, if nothing was said");
            }
        }
        let both = !of(0).is_empty() && !of(SECOND).is_empty();
        let (higher, first_of_it) = match epochs.0 > epochs.1 {
            true => (0, 0),
            false => (SECOND, SECOND as i32),
        };
        if epochs.0 == epochs.1 {
            prop_assert!(!both, "{:?}", log.records);
        } else if let Some(at) = log.records.iter().position(|holds| *holds == first_of_it) {
            let behind = log.records[at..].iter();
            let mut stray = behind.filter(|holds| (**holds as u32 >= SECOND) != (higher == SECOND));
            prop_assert_eq!(stray.next(), None, "of a zombie: {:?}", log.records);
        }
    }
}

/// What the second of two lives writes begins here.
const SECOND: u32 = 1_000_000;

#[test]
fn the_first_batch_goes_alone_and_five_at_a_time_after_it() {
    let (mut world, mut compressor) = (World::default(), compressor());
    world.push(60);
    (0..9).for_each(|_| world.send(&mut compressor));
    assert_eq!(
        world.firsts().len(),
        1,
        "the broker knows nothing of it yet"
    );
    world.take(&Step::Arrive, &mut compressor);
    world.take(&Step::Answer, &mut compressor);
    (0..9).for_each(|_| world.send(&mut compressor));
    assert_eq!(world.firsts().len(), 5);
}

/// A batch of ours that stands here, of which there is no doubt.
fn case(standing: Standing) -> Case {
    Case {
        standing,
        maker: Maker::Ourselves,
        proof: Proof::Had,
    }
}

fn kind(answer: Result<Place, Refusal>, of: Case) -> Option<FaultKind> {
    match verdict(answer, of) {
        Verdict::Refused { fault, .. } => Some(fault.kind),
        _ => None,
    }
}

#[test]
fn a_gap_is_the_fault_of_what_is_before_it_or_else_the_end() {
    let (first, behind) = (case(Standing::First), case(Standing::Behind));
    assert_eq!(verdict(refused(45), behind), Verdict::Again(Again::Later));
    assert_eq!(kind(refused(45), first), Some(FaultKind::Collateral));
    assert_eq!(verdict(refused(46), first), Verdict::Arrived);
}

#[test]
fn only_a_short_list_of_codes_is_the_records_fault() {
    let kind = |code| kind(refused(code), case(Standing::First));
    for code in [10, 18, 32, 87] {
        assert!(matches!(kind(code), Some(FaultKind::Record(_))), "{code}");
    }
    for code in [-1, 13, 17, 21, 29, 31, 43, 44, 76, 89, 999] {
        assert_eq!(kind(code), Some(FaultKind::World), "{code}");
    }
    assert_eq!(kind(59), Some(FaultKind::Collateral));
    for code in [47, 90] {
        assert_eq!(kind(code), Some(FaultKind::Fenced), "{code}");
    }
}

#[test]
fn a_first_batch_under_numbers_that_another_may_have_has_to_be_proven() {
    let owes = Case {
        proof: Proof::Owed,
        ..case(Standing::First)
    };
    let there = |time| Ok(Place { base: 7, time });
    assert_eq!(verdict(there(None), owes), Verdict::Arrived);
    assert_eq!(kind(there(Some(TIME)), owes), Some(FaultKind::Doubtful));
    let sure = case(Standing::First);
    assert_eq!(verdict(there(Some(TIME)), sure), Verdict::Arrived);
    for code in [45, 46, 59] {
        assert_eq!(kind(refused(code), owes), Some(FaultKind::Doubtful));
    }
    assert_eq!(kind(refused(47), owes), Some(FaultKind::Fenced));
}

#[test]
fn a_first_batch_that_could_not_be_proven_is_not_sent() {
    let (mut queue, mut compressor) = (Queue::new(Claim::Shared), compressor());
    let mut next = |queue: &mut Queue| queue.next(Instant::now(), 1000, PRODUCER, &mut compressor);
    let timeless = Record {
        timestamp: None,
        ..record(b"0000")
    };
    let _ = queue.push(&timeless, token(0), 1000);
    assert!(matches!(next(&mut queue), Err(NoBatch::Unprovable)));
    let _ = queue.push(&record(b"0001"), token(1), 1000);
    let first = next(&mut queue).expect("a batch").expect("a batch");
    let _ = queue.acknowledge(first.first_sequence);
    let _ = queue.push(&timeless, token(2), 1000);
    assert!(
        next(&mut queue).expect("a batch").is_some(),
        "not the first"
    );
    let mut sole = Queue::new(Claim::Sole);
    let _ = sole.push(&timeless, token(0), 1000);
    assert!(next(&mut sole).expect("a batch").is_some());
}

#[test]
fn what_is_thrown_away_leaves_what_is_on_its_way() {
    let (mut world, mut compressor) = (World::default(), compressor());
    world.push(9);
    world.send(&mut compressor);
    world.take(&Step::Pass(4), &mut compressor);
    let distances = distances(world.sender.queue.drop_unsent());
    let on_its_way = 13 - distances.len() as u32;
    assert_eq!(distances, (on_its_way..13).collect::<Vec<_>>());
    world.take(&Step::Arrive, &mut compressor);
    world.take(&Step::Answer, &mut compressor);
    assert_eq!(world.sender.acknowledged.len() as u32, on_its_way);
    assert!(world.sender.is_done());
}

#[test]
fn a_batch_that_passes_keeps_its_place_its_numbers_and_its_bytes() {
    let (mut world, mut compressor) = (World::default(), compressor());
    world.push(1);
    world.take(&Step::Pass(5), &mut compressor);
    world.push(1);
    world.send(&mut compressor);
    world.take(&Step::Arrive, &mut compressor);
    world.take(&Step::Answer, &mut compressor);
    (0..2).for_each(|_| world.send(&mut compressor));
    assert_eq!(world.firsts(), [(1, 5), (6, 1)], "neither joined nor split");
    let body = |bytes: &Bytes| bytes.slice(61..);
    let as_it_came = whole(1, 6).stamped(PRODUCER);
    assert_eq!(body(&world.sender.bytes[&1].bytes), body(&as_it_came));
    // `send` compares the bytes of the second try with those of the first.
    world.take(&Step::Cut(0), &mut compressor);
    (0..2).for_each(|_| world.send(&mut compressor));
    assert_eq!(world.firsts(), [(1, 5), (6, 1)]);
}

#[test]
fn a_batch_of_somebody_elses_that_is_called_damaged_is_not_sent_for_ever() {
    let ours = case(Standing::First);
    assert_eq!(verdict(refused(2), ours), Verdict::Again(Again::Later));
    let passed = Case {
        maker: Maker::Another,
        ..ours
    };
    assert!(matches!(
        verdict(refused(2), passed),
        Verdict::Refused { .. }
    ));
}
