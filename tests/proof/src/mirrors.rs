//! Mirrors that are wrong on purpose, and right ones with all that may happen to them: a checker that cannot see a fault
//! proves nothing, and one that sees faults where there are none would be switched off.

use super::checker::{Sight, Sights, Verdict, check};
use super::expected::Expected;
use super::record::Record;
use super::stamp::Stamp;
use proptest::collection::vec;
use proptest::prelude::*;

const PARTITIONS: usize = 3;
const EACH: usize = 200;

/// A mirror in memory: what each partition has at the source and at the target, and how far it is.
struct Mirror {
    source: Vec<Vec<Record>>,
    target: Vec<Vec<Record>>,
    /// The next record to deliver.
    position: Vec<usize>,
    /// Where the next owner of the partition begins.
    committed: Vec<usize>,
}

/// What may happen to a right mirror.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// Delivers so many records of a partition.
    Deliver(usize, usize),
    /// Commits what it has delivered.
    Commit(usize),
    /// `kill -9`, or a rebalance that does not wait: every partition begins again where it is committed.
    Die,
    /// A member that was frozen wakes up and delivers what it had in flight: up to so many records before the position.
    Wake(usize, usize),
}

/// What is wrong with a mirror.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// Passes over one record.
    SkipOne,
    /// Delivers two in the wrong order.
    SwapTwo,
    /// Commits so many records that it has not delivered, and dies.
    CommitEarly(usize),
    /// Delivers one twice.
    Duplicate,
    /// Forgets a header.
    DropHeader,
    /// Ends so many records before the end.
    LoseEnd(usize),
    /// A member whose partition another one has taken over commits how far it had fetched; then the new owner dies.
    CommitOfAnother(usize),
    /// Delivers one into another partition.
    Move,
    /// Delivers one that nobody wrote.
    Invent,
}

impl Mirror {
    fn new() -> Self {
        let record = |partition, sequence| stamp(partition, sequence).record(40);
        let partition = |partition| (0..EACH).map(|n| record(partition, n)).collect();
        Self {
            source: (0..PARTITIONS).map(partition).collect(),
            target: vec![Vec::new(); PARTITIONS],
            position: vec![0; PARTITIONS],
            committed: vec![0; PARTITIONS],
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Deliver(p, records) => (0..records).for_each(|_| self.deliver(p)),
            Event::Commit(p) => self.committed[p] = self.position[p],
            Event::Die => self.position.clone_from(&self.committed),
            Event::Wake(p, records) => {
                let to = self.position[p];
                let again = &self.source[p][to.saturating_sub(records)..to];
                self.target[p].extend_from_slice(again);
            }
        }
    }

    fn deliver(&mut self, p: usize) {
        if let Some(record) = self.source[p].get(self.position[p]) {
            self.target[p].push(record.clone());
            self.position[p] += 1;
        }
    }

    /// Does it wrong, in partition `p`, which has some records left.
    fn fail(&mut self, fault: Fault, p: usize) {
        let at = self.position[p];
        match fault {
            Fault::SkipOne => self.position[p] += 1,
            Fault::SwapTwo => {
                let two = [&self.source[p][at + 1], &self.source[p][at]].map(Record::clone);
                self.target[p].extend(two);
                self.position[p] += 2;
            }
            Fault::CommitEarly(records) | Fault::CommitOfAnother(records) => {
                self.committed[p] = at + records;
                self.happen(Event::Die);
            }
            Fault::Duplicate => {
                self.deliver(p);
                self.happen(Event::Wake(p, 1));
            }
            Fault::DropHeader => {
                while self.source[p][self.position[p]].headers.len() < 2 {
                    self.deliver(p);
                }
                self.deliver(p);
                self.target[p].last_mut().map(|record| record.headers.pop());
            }
            Fault::LoseEnd(records) => self.source[p].truncate(EACH - records),
            Fault::Move => {
                let record = self.source[p][at].clone();
                self.target[(p + 1) % PARTITIONS].push(record);
                self.position[p] += 1;
            }
            Fault::Invent => self.target[p].push(stamp(p, EACH).record(40)),
        }
    }

    /// Comes to the end and is checked.
    fn finish(mut self) -> Verdict {
        (0..PARTITIONS).for_each(|p| self.happen(Event::Deliver(p, EACH)));
        let mut expected = Expected::default();
        for (p, records) in Self::new().source.iter().enumerate() {
            let lane = (stamp(p, 0).label, p as i32);
            records
                .iter()
                .for_each(|r| expected.push(&lane, r.fingerprint()));
        }
        let target = self.target.iter().enumerate();
        let sights: Sights = target
            .map(|(p, records)| {
                (
                    ("t".to_owned(), p as i32),
                    records.iter().map(sight).collect(),
                )
            })
            .collect();
        check(&expected, &sights, str::to_owned)
    }
}

fn stamp(partition: usize, sequence: usize) -> Stamp {
    Stamp {
        label: "t".to_owned(),
        partition: partition as i32,
        sequence: sequence as u64,
    }
}

fn sight(record: &Record) -> Sight {
    let stamp = Stamp::of(record).expect("every record says who it is");
    Sight::Stamped {
        lane: (stamp.label, stamp.partition),
        sequence: stamp.sequence,
        fingerprint: record.fingerprint(),
    }
}

/// What the checker says of a mirror with this fault: lost, reordered, repeated, altered, invented, moved.
fn seen(fault: Fault) -> [u64; 6] {
    let mut mirror = Mirror::new();
    for p in 0..PARTITIONS {
        mirror.happen(Event::Deliver(p, 50));
        mirror.happen(Event::Commit(p));
    }
    mirror.fail(fault, 1);
    counts(&mirror.finish())
}

fn counts(v: &Verdict) -> [u64; 6] {
    [
        v.lost,
        v.reordered,
        v.repeated,
        v.altered,
        v.invented,
        v.moved,
    ]
}

#[test]
fn one_that_skips_one_loses_it() {
    assert_eq!(seen(Fault::SkipOne), [1, 0, 0, 0, 0, 0]);
}

#[test]
fn one_that_swaps_two_reorders_one() {
    assert_eq!(seen(Fault::SwapTwo), [0, 1, 0, 0, 0, 0]);
}

#[test]
fn one_that_commits_early_and_dies_loses_what_lay_between() {
    assert_eq!(seen(Fault::CommitEarly(7)), [7, 0, 0, 0, 0, 0]);
}

#[test]
fn one_that_duplicates_repeats() {
    assert_eq!(seen(Fault::Duplicate), [0, 0, 1, 0, 0, 0]);
}

#[test]
fn one_that_drops_a_header_alters() {
    assert_eq!(seen(Fault::DropHeader), [0, 0, 0, 1, 0, 0]);
}

#[test]
fn one_that_loses_the_end_only_loses_it() {
    assert_eq!(seen(Fault::LoseEnd(1)), [1, 0, 0, 0, 0, 0]);
    assert_eq!(seen(Fault::LoseEnd(9)), [9, 0, 0, 0, 0, 0]);
}

#[test]
fn one_that_commits_what_it_no_longer_owns_loses_what_the_owner_had_not_delivered() {
    assert_eq!(seen(Fault::CommitOfAnother(5)), [5, 0, 0, 0, 0, 0]);
}

#[test]
fn one_that_mistakes_a_partition_moves() {
    assert_eq!(seen(Fault::Move), [0, 0, 0, 0, 0, 1]);
}

#[test]
fn one_that_makes_a_record_up_invents() {
    assert_eq!(seen(Fault::Invent), [0, 0, 0, 0, 1, 0]);
}

fn event() -> impl Strategy<Value = Event> {
    let partition = 0..PARTITIONS;
    prop_oneof![
        6 => (partition.clone(), 1..20usize).prop_map(|(p, n)| Event::Deliver(p, n)),
        3 => partition.clone().prop_map(Event::Commit),
        1 => Just(Event::Die),
        1 => (partition, 1..10usize).prop_map(|(p, n)| Event::Wake(p, n)),
    ]
}

fn fault() -> impl Strategy<Value = (Fault, [u64; 6])> {
    prop_oneof![
        Just((Fault::SkipOne, [1, 0, 0, 0, 0, 0])),
        Just((Fault::SwapTwo, [0, 1, 0, 0, 0, 0])),
        (1..20u64).prop_map(|n| (Fault::CommitEarly(n as usize), [n, 0, 0, 0, 0, 0])),
        Just((Fault::Duplicate, [0, 0, 1, 0, 0, 0])),
        Just((Fault::DropHeader, [0, 0, 0, 1, 0, 0])),
        (1..20u64).prop_map(|n| (Fault::LoseEnd(n as usize), [n, 0, 0, 0, 0, 0])),
        (1..20u64).prop_map(|n| (Fault::CommitOfAnother(n as usize), [n, 0, 0, 0, 0, 0])),
        Just((Fault::Move, [0, 0, 0, 0, 0, 1])),
        Just((Fault::Invent, [0, 0, 0, 0, 1, 0])),
    ]
}

/// Lives through the events; at their end everything that was delivered is committed.
fn lived_through(events: &[Event]) -> Mirror {
    let mut mirror = Mirror::new();
    events.iter().for_each(|event| mirror.happen(*event));
    // What was repeated is delivered again, so that the position is where the target ends.
    for p in 0..PARTITIONS {
        let seen = mirror.target[p].iter().map(sight);
        let highest = seen.filter_map(|s| match s {
            Sight::Stamped { sequence, .. } => Some(sequence as usize + 1),
            Sight::Strange => None,
        });
        let highest = highest.max().unwrap_or(0);
        mirror.happen(Event::Deliver(p, highest - mirror.position[p]));
        mirror.happen(Event::Commit(p));
    }
    mirror
}

proptest! {
    #[test]
    fn a_right_mirror_raises_nothing_whatever_happens_to_it(events in vec(event(), 0..80)) {
        let mut mirror = Mirror::new();
        events.iter().for_each(|event| mirror.happen(*event));
        let verdict = mirror.finish();
        prop_assert_eq!(verdict.faults(), 0, "{} {:?}", verdict, verdict.examples);
        prop_assert_eq!(verdict.arrived, (PARTITIONS * EACH) as u64);
    }

    #[test]
    fn a_fault_is_found_and_named_whatever_happened_before(
        events in vec(event(), 0..30),
        (fault, wanted) in fault(),
        p in 0..PARTITIONS,
    ) {
        let mut mirror = lived_through(&events);
        prop_assume!(mirror.position[p] + 40 < EACH);
        let mut right = lived_through(&events);
        (0..PARTITIONS).for_each(|p| right.happen(Event::Deliver(p, EACH)));
        let repeats = right.finish().repeated;
        mirror.fail(fault, p);
        let mut found = counts(&mirror.finish());
        found[2] -= repeats;
        prop_assert_eq!(found, wanted, "{:?}", fault);
    }
}
