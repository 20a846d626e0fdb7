//! A queue against a broker that is played by KIP-98's rules: whatever is refused, cut off or answered late, what the broker
//! has is always the beginning of what was enqueued, each record once.

use super::queue::{Maker, Outgoing, Queue, Standing};
use super::verdict::{Again, Verdict, verdict};
use crate::broker::message::code::Code;
use crate::broker::message::produce::Refusal;
use crate::plane::outcomes::Tokens;
use crate::plane::{FaultKind, Token};
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

fn refused(code: i16) -> Result<i64, Refusal> {
    Err(Refusal {
        code: Code(code),
        records: Vec::new(),
        words: None,
    })
}

/// A broker's log of one partition, and what it remembers of the producer.
#[derive(Default)]
struct Log {
    /// Number of the next record; `None` while nothing was written.
    next: Option<i32>,
    /// The last batches: first number and number of records.
    last: VecDeque<(i32, i32)>,
    /// Numbers of the records as they stand.
    records: Vec<i32>,
}

impl Log {
    fn append(&mut self, first: i32, count: i32) -> Result<i64, Refusal> {
        if self.last.contains(&(first, count)) {
            return Ok(-1);
        }
        // Of a producer that it does not know it takes any number.
        if self.next.is_some_and(|next| next != first) {
            return refused(45);
        }
        self.next = Some(first + count);
        self.last.push_back((first, count));
        if self.last.len() > 5 {
            self.last.pop_front();
        }
        self.records.extend(first..first + count);
        Ok(i64::from(first))
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

/// A queue, the connection and the broker.
#[derive(Default)]
struct World {
    queue: Queue,
    pushed: u32,
    under_way: VecDeque<(i32, i32)>,
    answers: VecDeque<(i32, Result<i64, Refusal>)>,
    log: Log,
    /// Bytes of each batch when it was sent first.
    bytes: HashMap<i32, Outgoing>,
    acknowledged: Vec<u32>,
}

impl World {
    fn take(&mut self, step: &Step, compressor: &mut Compressor) {
        match step {
            Step::Push(count) => self.push(*count),
            Step::Pass(count) => {
                let batch = whole(self.pushed, self.pushed + count);
                let _ = self.queue.pass(batch, token(self.pushed));
                self.pushed += count;
            }
            Step::Send => self.send(compressor),
            Step::Arrive => {
                if let Some((first, count)) = self.under_way.pop_front() {
                    let answer = self.log.append(first, count);
                    self.answers.push_back((first, answer));
                }
            }
            Step::Refuse(code) => {
                if let Some((first, count)) = self.under_way.pop_front() {
                    // Of a batch of somebody else's it is no refusal for now.
                    let code = match (*code, self.queue.maker(first)) {
                        (2, Maker::Another) => &7,
                        _ => code,
                    };
                    // After the append: it has it all the same.
                    if *code == 20 && self.log.append(first, count).is_err() {
                        return self.answers.push_back((first, refused(45)));
                    }
                    self.answers.push_back((first, refused(*code)));
                }
            }
            Step::Answer => self.answer(),
            Step::Cut(arrive) => self.cut(*arrive),
        }
        let wanted: Vec<i32> = (0..self.log.records.len() as i32).collect();
        assert_eq!(self.log.records, wanted, "in order, each once");
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
            .next(Instant::now(), 61 + 30, PRODUCER, compressor);
        let Some(batch) = next.expect("a codec") else {
            return;
        };
        let known = self.bytes.entry(batch.first_sequence);
        let first = known.or_insert_with(|| batch.clone());
        assert_eq!(first.bytes, batch.bytes, "the same bytes again");
        let Some(Ok(Cut::Batch(raw))) = Cuts::of(&batch.bytes).next() else {
            panic!("no batch");
        };
        assert_eq!(raw.header().stamp.base_sequence, batch.first_sequence);
        assert_eq!(raw.header().stamp.producer_id, PRODUCER.producer_id);
        let of_it = batch.first_sequence..batch.first_sequence + raw.header().count;
        assert_eq!(numbers(&batch.bytes), of_it.collect::<Vec<_>>());
        self.under_way
            .push_back((batch.first_sequence, raw.header().count));
        assert!(self.under_way.len() + self.answers.len() <= 5);
    }

    fn answer(&mut self) {
        let Some((first, answer)) = self.answers.pop_front() else {
            return;
        };
        let standing = self.queue.standing(first);
        assert_ne!(standing, Standing::Unknown);
        match verdict(answer, standing, self.queue.maker(first)) {
            Verdict::Arrived => {
                for distance in distances(self.queue.acknowledge(first)) {
                    assert!(self.log.records.contains(&(distance as i32)));
                    self.acknowledged.push(distance);
                }
            }
            Verdict::Again(_) => self.queue.again(first),
            Verdict::Refused { fault, .. } => panic!("{fault:?}"),
        }
    }

    fn cut(&mut self, arrive: usize) {
        for _ in 0..arrive {
            self.take(&Step::Arrive, &mut compressor());
        }
        let under_way = self.under_way.drain(..).map(|(first, _)| first);
        let answers = self.answers.drain(..).map(|(first, _)| first);
        for first in under_way.chain(answers).collect::<Vec<_>>() {
            self.queue.again(first);
        }
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
        while !world.queue.is_idle() {
            for step in [Step::Send, Step::Arrive, Step::Answer] {
                world.take(&step, &mut compressor);
            }
        }
        prop_assert_eq!(world.log.records.len(), world.pushed as usize);
        world.acknowledged.sort_unstable();
        prop_assert_eq!(world.acknowledged, (0..world.pushed).collect::<Vec<_>>());
    }
}

#[test]
fn the_first_batch_goes_alone_and_five_at_a_time_after_it() {
    let (mut world, mut compressor) = (World::default(), compressor());
    world.push(60);
    (0..9).for_each(|_| world.send(&mut compressor));
    assert_eq!(
        world.under_way.len(),
        1,
        "the broker knows nothing of it yet"
    );
    world.take(&Step::Arrive, &mut compressor);
    world.take(&Step::Answer, &mut compressor);
    (0..9).for_each(|_| world.send(&mut compressor));
    assert_eq!(world.under_way.len(), 5);
}

#[test]
fn a_gap_is_the_fault_of_what_is_before_it_or_else_the_end() {
    let behind = verdict(refused(45), Standing::Behind, Maker::Ourselves);
    assert_eq!(behind, Verdict::Again(Again::Later));
    let Verdict::Refused { fault, .. } = verdict(refused(45), Standing::First, Maker::Ourselves)
    else {
        panic!("nothing is before it");
    };
    assert_eq!(fault.kind, FaultKind::Collateral);
    assert_eq!(
        verdict(refused(46), Standing::First, Maker::Ourselves),
        Verdict::Arrived
    );
}

#[test]
fn only_a_short_list_of_codes_is_the_records_fault() {
    let kind = |code| match verdict(refused(code), Standing::First, Maker::Ourselves) {
        Verdict::Refused { fault, .. } => Some(fault.kind),
        _ => None,
    };
    for code in [10, 18, 32, 87] {
        assert!(matches!(kind(code), Some(FaultKind::Record(_))), "{code}");
    }
    for code in [-1, 13, 17, 21, 29, 31, 43, 44, 76, 89, 999] {
        assert_eq!(kind(code), Some(FaultKind::World), "{code}");
    }
    for code in [47, 59, 90] {
        assert_eq!(kind(code), Some(FaultKind::Collateral), "{code}");
    }
}

#[test]
fn what_is_thrown_away_leaves_what_is_on_its_way() {
    let (mut world, mut compressor) = (World::default(), compressor());
    world.push(9);
    world.send(&mut compressor);
    world.take(&Step::Pass(4), &mut compressor);
    let distances = distances(world.queue.drop_unsent());
    let on_its_way = 13 - distances.len() as u32;
    assert_eq!(distances, (on_its_way..13).collect::<Vec<_>>());
    world.take(&Step::Arrive, &mut compressor);
    world.take(&Step::Answer, &mut compressor);
    assert_eq!(world.acknowledged.len() as u32, on_its_way);
    assert!(world.queue.is_idle());
}

#[test]
fn a_batch_that_passes_keeps_its_place_its_numbers_and_its_bytes() {
    let (mut world, mut compressor) = (World::default(), compressor());
    world.push(1);
    world.take(&Step::Pass(5), &mut compressor);
    world.push(1);
    let firsts = |world: &World| world.under_way.iter().copied().collect::<Vec<_>>();
    world.send(&mut compressor);
    world.take(&Step::Arrive, &mut compressor);
    world.take(&Step::Answer, &mut compressor);
    (0..2).for_each(|_| world.send(&mut compressor));
    assert_eq!(firsts(&world), [(1, 5), (6, 1)], "neither joined nor split");
    let body = |bytes: &Bytes| bytes.slice(61..);
    let as_it_came = whole(1, 6).stamped(PRODUCER);
    assert_eq!(body(&world.bytes[&1].bytes), body(&as_it_came));
    // `send` compares the bytes of the second try with those of the first.
    world.take(&Step::Cut(0), &mut compressor);
    (0..2).for_each(|_| world.send(&mut compressor));
    assert_eq!(firsts(&world), [(1, 5), (6, 1)]);
}

#[test]
fn a_batch_of_somebody_elses_that_is_called_damaged_is_not_sent_for_ever() {
    let again = verdict(refused(2), Standing::First, Maker::Ourselves);
    assert_eq!(again, Verdict::Again(Again::Later));
    let passed = verdict(refused(2), Standing::First, Maker::Another);
    assert!(matches!(passed, Verdict::Refused { .. }));
}
