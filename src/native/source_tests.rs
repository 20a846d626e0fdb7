//! The source against brokers that are played.

use super::*;
use crate::broker::connection::Manner;
use crate::broker::message::Api;
use crate::broker::security::Security;
use crate::native::played::{Fault, Played, abort, batch, marked};
use crate::plane::SourceFault;
use crate::wire::codec::Codec;
use std::time::Instant;

#[path = "old_tests.rs"]
mod old;
#[path = "whole_tests.rs"]
mod whole;

/// How long a test waits for what must come.
const LONG: Duration = Duration::from_secs(20);
/// Room that no test fills by chance.
const ROOMY: u64 = 64 << 20;

/// A member of no group, woken by the fetcher.
struct Alone {
    woken: Receiver<()>,
    lost: bool,
}

impl Source for Alone {
    type Record = Lent;

    fn poll(&mut self, timeout: Duration) -> FetchEvent<Lent> {
        let _ = self.woken.recv_timeout(timeout);
        FetchEvent::Idle
    }
    fn subscribe(&mut self, _: &[String]) -> Result<(), String> {
        Ok(())
    }
    fn place(&mut self, at: &[(TopicPartition, Offset)]) -> Result<(), String> {
        assert_eq!(at, [], "it is given nothing to fetch");
        match self.lost {
            true => Err("lost".to_owned()),
            false => Ok(()),
        }
    }
    fn rewind(&mut self, _: &TopicPartition, _: Offset) -> Result<(), String> {
        unreachable!("it fetches nothing")
    }
    fn pause(&mut self, _: &[TopicPartition]) {}
    fn resume(&mut self, _: &[TopicPartition]) {}
    fn release(&mut self, _: &[TopicPartition]) -> Result<(), String> {
        Ok(())
    }
    fn commit(&mut self, _: &[CommitEntry], _: u64) -> Result<(), String> {
        Ok(())
    }
    fn leave(&mut self, _: Duration) {}
    fn renew(&mut self) -> Result<(), String> {
        Ok(())
    }
    fn abandon(&mut self, _: Abandon) {}
}

fn source(of: &Played, room: u64) -> Fetching<Alone> {
    let manner = Manner {
        security: Arc::new(Security {
            tls: None,
            sasl: None,
        }),
        client: "mirror".into(),
        patience: LONG,
    };
    let subject: Arc<str> = "test".into();
    let links = Links::new(manner, vec![of.bootstrap()], subject.clone());
    let (wake, woken) = crossbeam_channel::bounded(1);
    let member = Alone { woken, lost: false };
    let wake = Box::new(move || {
        let _ = wake.try_send(());
    });
    Fetching::new(member, links, room, RACK.into(), wake, subject).expect("a source")
}

/// Where the consumers are.
const RACK: &str = "here";

fn orders(partition: i32) -> TopicPartition {
    TopicPartition::new("orders", partition)
}

fn from(partition: i32, offset: i64) -> (TopicPartition, Offset) {
    (orders(partition), Offset(offset))
}

/// What a source said, in short.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Heard {
    Record(i32, i64, String),
    End(i32, i64),
    OutOfRange(i32),
    Unreadable(i32),
    Trouble(i32, String),
}

fn heard(event: FetchEvent<Lent>) -> Vec<Heard> {
    match event {
        FetchEvent::Batch(batch) => {
            let of = batch.partition.partition;
            let value =
                |r: &Lent| String::from_utf8_lossy(r.value().unwrap_or_default()).into_owned();
            let records = batch.records.iter();
            records
                .map(|r| Heard::Record(of, r.offset().0, value(r)))
                .collect()
        }
        FetchEvent::End(tp, offset) => vec![Heard::End(tp.partition, offset.0)],
        FetchEvent::OutOfRange(tp) => vec![Heard::OutOfRange(tp.partition)],
        FetchEvent::Unreadable { partition, .. } => vec![Heard::Unreadable(partition.partition)],
        FetchEvent::PartitionError {
            partition, kind, ..
        } => vec![Heard::Trouble(partition.partition, format!("{kind:?}"))],
        FetchEvent::Idle => Vec::new(),
        other => panic!("{other:?}"),
    }
}

/// All that is said up to `last`.
fn until(source: &mut Fetching<Alone>, last: &Heard) -> Vec<Heard> {
    let deadline = Instant::now() + LONG;
    let mut all = Vec::new();
    while !all.contains(last) {
        assert!(Instant::now() < deadline, "no {last:?} in {all:?}");
        all.extend(heard(source.poll(Duration::from_millis(50))));
    }
    all
}

fn record(partition: i32, offset: i64, value: &str) -> Heard {
    Heard::Record(partition, offset, value.to_owned())
}

fn cluster() -> Played {
    let played = Played::start(2);
    played.create(&orders(0), 1);
    played.create(&orders(1), 2);
    played
}

#[test]
fn partitions_of_several_brokers_are_read_in_order_to_their_ends() {
    let played = cluster();
    played.append(&orders(0), &["a", "b"]);
    played.append(&orders(0), &["c"]);
    played.append(&orders(1), &["x"]);
    let mut source = source(&played, ROOMY);
    source.place(&[from(0, 1), from(1, 0)]).expect("placed");
    let mut all = until(&mut source, &Heard::End(0, 3));
    if !all.contains(&Heard::End(1, 1)) {
        all.extend(until(&mut source, &Heard::End(1, 1)));
    }
    let of = |partition: i32| {
        let is_of = move |h: &&Heard| matches!(h, Heard::Record(p, ..) | Heard::End(p, _) if *p == partition);
        all.iter().filter(is_of).collect::<Vec<_>>()
    };
    // Where a batch is read from its midst, what stands before is left out.
    assert_eq!(
        of(0),
        [&record(0, 1, "b"), &record(0, 2, "c"), &Heard::End(0, 3)]
    );
    assert_eq!(of(1), [&record(1, 0, "x"), &Heard::End(1, 1)]);

    // What comes later comes as well.
    played.append(&orders(1), &["y"]);
    let later = until(&mut source, &Heard::End(1, 2));
    assert_eq!(later, [record(1, 1, "y"), Heard::End(1, 2)]);
}

#[test]
fn a_new_leader_is_asked_where_the_old_epoch_ended_and_read_on_from() {
    let played = cluster();
    played.append(&orders(0), &["a"]);
    let mut source = source(&played, ROOMY);
    source.place(&[from(0, 0)]).expect("placed");
    until(&mut source, &Heard::End(0, 1));
    played.elect(&orders(0), 2);
    played.append(&orders(0), &["b"]);
    let later = until(&mut source, &Heard::End(0, 2));
    assert_eq!(later, [record(0, 1, "b"), Heard::End(0, 2)]);
    assert_eq!(played.heard(Api::OffsetForLeaderEpoch), 1);
}

#[test]
fn a_log_that_was_cut_off_is_out_of_range_and_not_read_on() {
    let played = cluster();
    played.append(&orders(0), &["a", "b", "c"]);
    let mut source = source(&played, ROOMY);
    source.place(&[from(0, 0)]).expect("placed");
    until(&mut source, &Heard::End(0, 3));
    // The new leader had one record only, and has written others since.
    played.elect(&orders(0), 2);
    {
        let mut state = played.state();
        let log = state.logs.get_mut(&orders(0)).expect("a log");
        log.ends.insert(0, 1);
        log.batches = vec![
            batch(0, 0, &["a"], Codec::None),
            batch(1, 1, &["B", "C", "D"], Codec::None),
        ];
        log.end = 4;
    }
    let later = until(&mut source, &Heard::OutOfRange(0));
    assert_eq!(later, [Heard::OutOfRange(0)]);
    // Until it is told where to go on.
    source.rewind(&orders(0), Offset(1)).expect("moved");
    let again = until(&mut source, &Heard::End(0, 4));
    assert_eq!(again[0], record(0, 1, "B"));
}

#[test]
fn a_new_leader_that_knows_nothing_of_the_last_epoch_was_cut_off() {
    let played = cluster();
    played.append(&orders(0), &["a", "b"]);
    let mut source = source(&played, ROOMY);
    source.place(&[from(0, 0)]).expect("placed");
    until(&mut source, &Heard::End(0, 2));
    played.elect(&orders(0), 2);
    {
        let mut state = played.state();
        let log = state.logs.get_mut(&orders(0)).expect("a log");
        log.ends.insert(0, -1);
    }
    assert_eq!(
        until(&mut source, &Heard::OutOfRange(0)),
        [Heard::OutOfRange(0)]
    );
}

#[test]
fn a_replica_that_is_nearer_is_read_until_it_fails() {
    let played = cluster();
    let near = |nearer| {
        let mut state = played.state();
        state.logs.get_mut(&orders(0)).expect("a log").nearer = nearer;
    };
    near(Some(2));
    played.append(&orders(0), &["a"]);
    let mut source = source(&played, ROOMY);
    source.place(&[from(0, 0)]).expect("placed");
    until(&mut source, &Heard::End(0, 1));
    let of_two = |played: &Played| {
        let fetches = Api::Fetch.key();
        let heard = played.state().heard.clone();
        heard.iter().filter(|h| **h == (fetches, 2)).count()
    };
    assert!(of_two(&played) > 0, "the leader sent us to it");
    // It is a replica no more, and says so.
    near(None);
    played.append(&orders(0), &["b"]);
    assert_eq!(
        until(&mut source, &Heard::End(0, 2)),
        [record(0, 1, "b"), Heard::End(0, 2)]
    );
}

#[test]
fn what_is_full_is_not_kept_waiting_by_what_has_nothing() {
    let played = cluster();
    played.create(&orders(2), 1);
    let mut source = source(&played, ROOMY);
    source.place(&[from(0, 0)]).expect("placed");
    until(&mut source, &Heard::End(0, 0));
    let alone: Vec<i32> = std::mem::take(&mut played.state().waits);
    assert!(alone.iter().all(|wait| *wait == 250), "{alone:?}");
    // Two answers of it wait to be taken; the other one, of the same broker, has nothing.
    source.place(&[from(2, 0)]).expect("placed");
    let is_short = |played: &Played| played.state().waits.contains(&20);
    while !is_short(&played) {
        played.append(&orders(0), &["b"]);
        std::thread::yield_now();
    }
}

#[test]
fn a_position_that_no_log_has_is_out_of_range() {
    let played = cluster();
    let mut source = source(&played, ROOMY);
    source.place(&[from(0, 7)]).expect("placed");
    assert_eq!(
        until(&mut source, &Heard::OutOfRange(0)),
        [Heard::OutOfRange(0)]
    );
}

#[test]
fn what_passes_is_no_news_and_loses_nothing() {
    let passing = [3, 5, 6, 9, 56, 74, 75, 78].map(Fault::Partitions);
    let whole = [
        Fault::Close,
        Fault::Code(70),
        Fault::Code(71),
        Fault::Code(-1),
    ];
    for fault in passing.into_iter().chain(whole) {
        let played = cluster();
        played.append(&orders(0), &["a"]);
        let mut source = source(&played, ROOMY);
        source.place(&[from(0, 0)]).expect("placed");
        until(&mut source, &Heard::End(0, 1));
        played.fail(Api::Fetch, fault);
        played.append(&orders(0), &["b"]);
        let later = until(&mut source, &record(0, 1, "b"));
        // The end is said again where something was in the way.
        let news = later.iter().filter(|h| **h != Heard::End(0, 1));
        assert_eq!(news.collect::<Vec<_>>(), [&record(0, 1, "b")], "{fault:?}");
    }
}

#[test]
fn trouble_is_told_once_and_over_with_the_next_end() {
    for (code, kind) in [
        (29, SourceFault::Refused),
        (2, SourceFault::Other),
        (-1, SourceFault::Other),
    ] {
        let played = cluster();
        let mut source = source(&played, ROOMY);
        for _ in 0..3 {
            played.fail(Api::Fetch, Fault::Partitions(code));
        }
        source.place(&[from(0, 0)]).expect("placed");
        let said = until(&mut source, &Heard::End(0, 0));
        let trouble = Heard::Trouble(0, format!("{kind:?}"));
        assert_eq!(said, [trouble, Heard::End(0, 0)], "{code}");
    }
}

#[test]
fn a_topic_that_the_cluster_does_not_know_is_gone_until_it_does() {
    let played = cluster();
    for _ in 0..2 {
        played.fail(Api::Metadata, Fault::Code(3));
    }
    let mut source = source(&played, ROOMY);
    source.place(&[from(0, 0)]).expect("placed");
    let said = until(&mut source, &Heard::End(0, 0));
    let gone = Heard::Trouble(0, "Gone".to_owned());
    assert_eq!(said, [gone, Heard::End(0, 0)]);
}

#[test]
fn leaders_that_are_not_known_are_asked_for_until_they_are() {
    let played = cluster();
    played.append(&orders(0), &["a"]);
    for fault in [Fault::Close, Fault::Code(5), Fault::Close] {
        played.fail(Api::Metadata, fault);
    }
    let mut source = source(&played, ROOMY);
    source.place(&[from(0, 0)]).expect("placed");
    let said = until(&mut source, &Heard::End(0, 1));
    assert_eq!(said, [record(0, 0, "a"), Heard::End(0, 1)]);
}

#[test]
fn a_checksum_that_is_wrong_stops_the_partition_until_it_is_moved() {
    let played = cluster();
    played.append(&orders(0), &["a"]);
    played.fail(Api::Fetch, Fault::Spoil);
    let mut source = source(&played, ROOMY);
    source.place(&[from(0, 0)]).expect("placed");
    assert_eq!(
        until(&mut source, &Heard::Unreadable(0)),
        [Heard::Unreadable(0)]
    );
    let asked = played.heard(Api::Fetch);
    source.rewind(&orders(0), Offset(0)).expect("moved");
    let again = until(&mut source, &Heard::End(0, 1));
    assert_eq!(again, [record(0, 0, "a"), Heard::End(0, 1)]);
    assert!(played.heard(Api::Fetch) > asked);
}

#[test]
fn what_cannot_be_opened_comes_behind_what_could() {
    let played = cluster();
    played.append(&orders(0), &["a"]);
    {
        let mut state = played.state();
        let log = state.logs.get_mut(&orders(0)).expect("a log");
        // It says LZ4, and is not.
        log.batches
            .push(marked(&batch(1, 0, &["b"], Codec::None), 3, -1));
        log.end = 2;
    }
    let mut source = source(&played, ROOMY);
    source.place(&[from(0, 0)]).expect("placed");
    let said = until(&mut source, &Heard::Unreadable(0));
    assert_eq!(said, [record(0, 0, "a"), Heard::Unreadable(0)]);
    source.rewind(&orders(0), Offset(0)).expect("moved");
    let again = until(&mut source, &Heard::Unreadable(0));
    assert_eq!(again, [record(0, 0, "a"), Heard::Unreadable(0)]);
}

#[test]
fn aborted_records_and_markers_are_passed_by_an_end() {
    let played = cluster();
    played.append(&orders(0), &["a"]);
    {
        let mut state = played.state();
        let log = state.logs.get_mut(&orders(0)).expect("a log");
        let transactional = 0x10;
        log.batches.push(marked(
            &batch(1, 0, &["x", "y"], Codec::None),
            transactional,
            9,
        ));
        log.batches.push(abort(3, 9));
        log.aborted = vec![(9, 1)];
        log.end = 4;
    }
    let mut source = source(&played, ROOMY);
    source.place(&[from(0, 0)]).expect("placed");
    let said = until(&mut source, &Heard::End(0, 4));
    assert_eq!(said[..2], [record(0, 0, "a"), Heard::End(0, 4)]);
}

#[test]
fn an_open_transaction_is_waited_for() {
    let played = cluster();
    played.append(&orders(0), &["a"]);
    played.append(&orders(0), &["open"]);
    played
        .state()
        .logs
        .get_mut(&orders(0))
        .expect("a log")
        .stable = Some(1);
    let mut source = source(&played, ROOMY);
    source.place(&[from(0, 0)]).expect("placed");
    let said = until(&mut source, &Heard::End(0, 1));
    assert_eq!(said, [record(0, 0, "a"), Heard::End(0, 1)]);
    played
        .state()
        .logs
        .get_mut(&orders(0))
        .expect("a log")
        .stable = None;
    let said = until(&mut source, &Heard::End(0, 2));
    assert_eq!(said, [record(0, 1, "open"), Heard::End(0, 2)]);
}

#[test]
fn a_pause_drops_what_was_fetched_and_a_resume_goes_on_behind_what_was_taken() {
    let played = cluster();
    for value in ["a", "b", "c"] {
        played.append(&orders(0), &[value]);
    }
    let mut source = source(&played, ROOMY);
    source.place(&[from(0, 0), from(1, 0)]).expect("placed");
    until(&mut source, &Heard::End(1, 0));
    source.pause(&[orders(0)]);
    source.resume(&[orders(0)]);
    source.resume(&[orders(0)]);
    // What had been taken before the pause is not known here; nothing comes twice, nothing is left out.
    played.append(&orders(0), &["d"]);
    source.pause(&[orders(0)]);
    played.append(&orders(1), &["x"]);
    let said = until(&mut source, &Heard::End(1, 1));
    assert_eq!(said, [record(1, 0, "x"), Heard::End(1, 1)]);
    source.resume(&[orders(0)]);
    let said = until(&mut source, &Heard::End(0, 4));
    assert_eq!(said.last(), Some(&Heard::End(0, 4)));
    assert_eq!(said[said.len() - 2], record(0, 3, "d"));
}

#[test]
fn nothing_comes_of_what_was_moved_or_let_go_of() {
    let played = cluster();
    played.append(&orders(0), &["a", "b"]);
    let mut source = source(&played, ROOMY);
    source.place(&[from(0, 0)]).expect("placed");
    let deadline = Instant::now() + LONG;
    while source.words.is_empty() {
        assert!(Instant::now() < deadline);
        std::thread::yield_now();
    }
    source.rewind(&orders(0), Offset(1)).expect("moved");
    let said = until(&mut source, &Heard::End(0, 2));
    assert_eq!(said, [record(0, 1, "b"), Heard::End(0, 2)]);
    source.rewind(&orders(0), Offset(0)).expect("moved");
    while source.words.is_empty() {
        assert!(Instant::now() < deadline);
        std::thread::yield_now();
    }
    source.release(&[orders(0)]).expect("let go");
    source.place(&[from(1, 0)]).expect("placed");
    assert_eq!(until(&mut source, &Heard::End(1, 0)), [Heard::End(1, 0)]);
}

#[test]
fn no_more_is_asked_for_than_there_is_room_for() {
    let played = cluster();
    let large = "x".repeat(50_000);
    for _ in 0..20 {
        played.append(&orders(0), &[&large]);
    }
    let mut source = source(&played, 100_000);
    source.place(&[from(0, 0)]).expect("placed");
    // Nobody takes anything: it stops by itself.
    let deadline = Instant::now() + LONG;
    while source.words.len() < AHEAD_IN_TEST {
        assert!(Instant::now() < deadline);
        std::thread::yield_now();
    }
    let asked = played.heard(Api::Fetch);
    assert!(asked <= AHEAD_IN_TEST, "{asked} requests");
    assert!(played.state().asked.iter().all(|most| *most <= 100_000));
    let said = until(&mut source, &Heard::End(0, 20));
    assert_eq!(said.len(), 21);
}

/// Answers of a partition that wait at most.
const AHEAD_IN_TEST: usize = 2;

#[test]
fn what_is_lost_is_not_placed() {
    let played = cluster();
    let mut source = source(&played, ROOMY);
    source.member.lost = true;
    assert!(source.place(&[from(0, 0)]).is_err());
    assert!(source.placed.is_empty());
}
