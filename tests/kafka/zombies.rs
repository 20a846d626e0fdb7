//! An instance is frozen with records in flight, another one takes its partitions over, and it wakes up.
//!
//! Natively it writes nothing more to a partition of the target to which its successor has written: the brokers say so. With
//! librdkafka it delivers what it had, and how much that is, and for how long, is measured. Either way nothing is lost, and
//! the order of first appearances is the source's.

use crate::support::checker::{Sight, Sights, check};
use crate::support::cluster::{Admin, pair};
use crate::support::process::{Mirror, Setup, cluster, route};
use crate::support::reader::Reader;
use crate::support::wait::{self, PATIENCE};
use crate::support::workload::{Field, Writer, field};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Instant;

const ROUTE: &str = "zombies";
const PARTITIONS: i32 = 8;
/// Records in each partition when the first instance begins: too many for what it has in flight.
const BACKLOG: u64 = 40_000;
/// And so many when both are awake.
const MORE: u64 = 500;

fn is_native() -> bool {
    std::env::var("MIRROR_TEST_DATA_PLANE").is_ok_and(|plane| plane == "native")
}

/// Who runs a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// The one that is frozen. Natively it sleeps for less than half its session, and wakes before it is time to say that it
    /// lives, or to commit: it has not heard that it lost its partitions when it goes on. So it is the brokers of the target
    /// who have to stop it.
    Zombie,
    /// The one that takes over.
    Successor,
}

impl Role {
    fn setup(self, topic: &str) -> Setup {
        let pair = pair();
        let mut source = cluster(&pair.source.bootstrap());
        let target = in_small_batches(&pair.target.bootstrap());
        let mut copy = route("source", "target", topic);
        if self == Role::Zombie && is_native() {
            source["properties"] =
                json!({ "session.timeout.ms": 240_000, "heartbeat.interval.ms": 60_000 });
            copy["commit_interval"] = json!("60s");
        }
        let clusters = json!({ "source": source, "target": target });
        Setup::new(clusters, json!({ ROUTE: copy }))
    }
}

/// The target, in batches that are small: what is in flight is more than what is on its way.
fn in_small_batches(bootstrap: &str) -> Value {
    let mut target = cluster(bootstrap);
    target["properties"]["batch.size"] = json!(16_384);
    target
}

/// How often each partition of the target has the same record, from a place of each on.
fn repeats_from(sights: &Sights, from: &[usize]) -> u64 {
    let mut repeats = 0;
    for ((_, partition), all) in sights {
        let from = from[usize::try_from(*partition).expect("a number")];
        let mut seen = BTreeSet::new();
        for (at, sight) in all.iter().enumerate() {
            if let Sight::Stamped { sequence, .. } = sight
                && !seen.insert(*sequence)
                && at >= from
            {
                repeats += 1;
            }
        }
    }
    repeats
}

/// How many records each partition of the target has.
fn lengths(sights: &Sights, topic: &str) -> Vec<usize> {
    let length = |partition| {
        sights
            .get(&(topic.to_owned(), partition))
            .map_or(0, Vec::len)
    };
    (0..PARTITIONS).map(length).collect()
}

struct Stand {
    topic: &'static str,
    fields: [Field; 1],
    first: Setup,
    second: Setup,
    writer: Writer,
    reader: Reader,
}

impl Stand {
    fn new(topic: &'static str) -> Self {
        let pair = pair();
        let (source, target) = (pair.source.bootstrap(), pair.target.bootstrap());
        Admin::new(&source).create(topic, PARTITIONS, &[]);
        Admin::new(&target).create(topic, PARTITIONS, &[]);
        let fields = [field(topic, PARTITIONS)];
        let mut writer = Writer::new(&source);
        writer.fill(&fields, BACKLOG);
        writer.settle(PATIENCE);
        Self {
            topic,
            fields,
            first: Role::Zombie.setup(topic),
            second: Role::Successor.setup(topic),
            writer,
            reader: Reader::new(&target, [topic]),
        }
    }

    /// The first instance stands still with records in flight, its group goes on without it, and the second one copies
    /// everything.
    fn freeze(&self) -> (Mirror, Mirror) {
        let mut first = self.first.run(&[]);
        first.wait_delivered(ROUTE, BACKLOG / 4);
        let in_flight = first.wait_in_flight(ROUTE);
        first.signal(libc::SIGSTOP);
        println!("{}: frozen with about {in_flight} in flight", self.topic);
        if is_native() {
            let source = Admin::new(&pair().source.bootstrap());
            source.expel(&format!("mirror.default.{ROUTE}.source.target"));
        }
        let mut second = self.second.run(&[]);
        wait::until("the second one has all partitions", PATIENCE, || {
            second.assert_running();
            second.number(ROUTE, "partitions") == PARTITIONS as u64
        });
        // It begins at the last commit: every partition has got something from it.
        second.wait_no_lag(ROUTE);
        (first, second)
    }

    /// It wakes up; what it still delivers, and for how long.
    fn wake(&mut self, first: &mut Mirror) -> u64 {
        let before = lengths(self.reader.catch_up(), self.topic);
        first.signal(libc::SIGCONT);
        let (woke, mut last) = (Instant::now(), None);
        // Whatever it has it delivers before it joins its group again.
        let mut repeats = 0;
        wait::until("it is a member again", PATIENCE, || {
            first.assert_running();
            let now = repeats_from(self.reader.catch_up(), &before);
            if now > repeats {
                (repeats, last) = (now, Some(woke.elapsed()));
            }
            first.number(ROUTE, "partitions") > 0 && self.is_shared(first)
        });
        let repeats = repeats_from(self.reader.catch_up(), &before);
        let fenced = first.number(ROUTE, "fenced_partitions");
        println!(
            "{}: awake, it delivered {repeats} records that its successor had passed, the last within {last:?}; \
             it was refused in {fenced} partitions",
            self.topic
        );
        repeats
    }

    /// Whether the one that woke has its share, and no more.
    fn is_shared(&self, first: &Mirror) -> bool {
        (1..PARTITIONS as u64).contains(&first.number(ROUTE, "partitions"))
    }
}

#[test]
fn a_zombie_writes_nothing_more_behind_its_successor() {
    let topic = "zombies";
    let mut stand = Stand::new(topic);
    let (mut first, mut second) = stand.freeze();
    let repeats = stand.wake(&mut first);
    if is_native() {
        assert_eq!(repeats, 0, "the brokers refuse what it still has");
        // They have said so.
        let said = stand.first.logged("partition_fenced");
        let fenced = first.number(ROUTE, "fenced_partitions");
        assert!(fenced > 0 && !said.is_empty(), "{fenced} {said:#?}");
    }

    // Both copy on.
    let (fields, mut writer) = (stand.fields.clone(), stand.writer);
    writer.fill(&fields, MORE);
    let expected = writer.finish();
    for mirror in [&mut first, &mut second] {
        mirror.wait_no_lag(ROUTE);
    }
    let target = Admin::new(&pair().target.bootstrap());
    wait::until("all is there", PATIENCE, || {
        target.end_sum(topic) as u64 >= expected.total()
    });
    assert!(first.terminate().success());
    assert!(second.terminate().success());
    let verdict = check(&expected, stand.reader.catch_up(), str::to_owned);
    println!("{topic}: {verdict}");
    verdict.assert_complete();
    assert!(
        verdict.repeated > 0,
        "it had nothing in flight: nothing was tried"
    );
}
