//! What is older than batches, among batches: read as librdkafka reads it of the same broker.

use super::*;
use crate::wire::legacy::written::{Plain, Set, apart, message, row, set, wrapper};
use bytes::Bytes;
use proptest::prelude::*;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::{ClientConfig, Message, TopicPartitionList};
use std::collections::BTreeMap;

/// By partition.
type Records = BTreeMap<i32, Vec<Plain>>;

/// A part of a log.
#[derive(Clone, Debug)]
enum Part {
    Old(Set),
    Batch(Codec, usize),
}

fn part() -> impl Strategy<Value = Part> {
    let codec = proptest::sample::select(&Codec::ALL[..]);
    prop_oneof![
        3 => set().prop_map(Part::Old),
        1 => (codec, 1usize..5).prop_map(|(codec, count)| Part::Batch(codec, count)),
    ]
}

/// A log of these parts, and what is in it.
fn log(parts: &[Part]) -> (Vec<Bytes>, Vec<Plain>) {
    let (mut batches, mut all) = (Vec::new(), Vec::<Plain>::new());
    for part in parts {
        let next = all.last().map_or(0, |last| last.offset + 1);
        match part {
            Part::Old(set) => {
                let (bytes, expected) = set.at(next);
                batches.extend(apart(&bytes));
                all.extend(expected);
            }
            Part::Batch(codec, count) => {
                batches.push(batch(next, 0, &vec!["new"; *count], *codec));
                all.extend((0..*count as i64).map(|distance| Plain {
                    offset: next + distance,
                    timestamp: 1000,
                    key: None,
                    value: Some(b"new".to_vec()),
                }));
            }
        }
    }
    (batches, all)
}

fn hold(played: &Played, partition: i32, batches: Vec<Bytes>, end: i64) {
    played.create(&orders(partition), 1);
    let mut state = played.state();
    let log = state.logs.get_mut(&orders(partition)).expect("a log");
    (log.batches, log.end) = (batches, end);
}

fn by_librdkafka(played: &Played, at: &[(TopicPartition, Offset)]) -> Records {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", played.bootstrap().to_string());
    config
        .set("group.id", "none")
        .set("enable.auto.commit", "false");
    config
        .set("check.crcs", "true")
        .set("enable.partition.eof", "true");
    let consumer: BaseConsumer = config.create().expect("a consumer");
    let mut list = TopicPartitionList::new();
    for (tp, offset) in at {
        let added =
            list.add_partition_offset(&tp.topic, tp.partition, rdkafka::Offset::Offset(offset.0));
        added.expect("an offset");
    }
    consumer.assign(&list).expect("assigned");
    let (mut records, mut ends) = (Records::new(), 0);
    let deadline = Instant::now() + LONG;
    while ends < at.len() {
        assert!(Instant::now() < deadline, "{ends} ends");
        match consumer.poll(Duration::from_millis(100)) {
            Some(Ok(message)) => records.entry(message.partition()).or_default().push(Plain {
                offset: message.offset(),
                timestamp: message.timestamp().to_millis().unwrap_or(-1),
                key: message.key().map(<[u8]>::to_vec),
                value: message.payload().map(<[u8]>::to_vec),
            }),
            Some(Err(KafkaError::PartitionEOF(_))) => ends += 1,
            Some(Err(error)) => panic!("{error}"),
            None => {}
        }
    }
    records
}

fn natively(played: &Played, at: &[(TopicPartition, Offset)], end: &BTreeMap<i32, i64>) -> Records {
    let mut source = source(played, ROOMY);
    source.place(at).expect("placed");
    let (mut records, mut left) = (Records::new(), end.clone());
    let deadline = Instant::now() + LONG;
    while !left.is_empty() {
        assert!(Instant::now() < deadline, "{left:?}");
        match source.poll(Duration::from_millis(50)) {
            FetchEvent::Batch(batch) => {
                let of = records.entry(batch.partition.partition).or_default();
                of.extend(batch.records.iter().map(|record| Plain {
                    offset: record.offset().0,
                    timestamp: record.timestamp().unwrap_or(-1),
                    key: record.key().map(<[u8]>::to_vec),
                    value: record.value().map(<[u8]>::to_vec),
                }));
            }
            FetchEvent::End(tp, offset) => {
                let is_end = left.get(&tp.partition) == Some(&offset.0);
                is_end.then(|| left.remove(&tp.partition));
            }
            FetchEvent::Idle => {}
            other => panic!("{other:?}"),
        }
    }
    records
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, failure_persistence: None, ..ProptestConfig::default() })]

    /// Each partition has another log and is read from somewhere in it.
    #[test]
    fn what_is_older_than_batches_is_read_as_librdkafka_reads_it(
        logs in proptest::collection::vec((proptest::collection::vec(part(), 1..8), any::<usize>()), 12)
    ) {
        let played = Played::start(1);
        let (mut at, mut ends, mut expected) = (Vec::new(), BTreeMap::new(), Records::new());
        for (partition, (parts, begin)) in (0..).zip(&logs) {
            let (batches, mut all) = log(parts);
            let begin = all[begin % all.len()].offset;
            let end = all.last().expect("a record").offset + 1;
            hold(&played, partition, batches, end);
            all.retain(|record| record.offset >= begin);
            at.push(from(partition, begin));
            ends.insert(partition, end);
            expected.insert(partition, all);
        }
        prop_assert_eq!(&by_librdkafka(&played, &at), &expected);
        prop_assert_eq!(&natively(&played, &at, &ends), &expected);
    }
}

fn plain(offset: i64, value: &str) -> Plain {
    Plain {
        offset,
        timestamp: 1000,
        key: None,
        value: Some(value.as_bytes().to_vec()),
    }
}

#[test]
fn a_wrapper_that_cannot_be_opened_is_met_again_and_never_passed() {
    let played = cluster();
    let mut spoilt = plain(3, "");
    // It says gzip, and is not.
    spoilt.value = Some(b"not gzip".to_vec());
    let batches = vec![
        row(0, &[plain(0, "a")]).into(),
        wrapper(1, Codec::Lz4, None, &[plain(1, "b"), plain(2, "c")]).into(),
        message(1, 1, &spoilt).into(),
        row(1, &[plain(4, "d")]).into(),
    ];
    hold(&played, 0, batches, 5);
    let mut source = source(&played, ROOMY);
    source.place(&[from(0, 0)]).expect("placed");
    let readable = [record(0, 0, "a"), record(0, 1, "b"), record(0, 2, "c")];
    for again in 0..=readable.len() {
        let said = until(&mut source, &Heard::Unreadable(0));
        let (last, records) = said.split_last().expect("something");
        assert_eq!(records, &readable[again..]);
        assert_eq!(*last, Heard::Unreadable(0));
        let next = Offset(again as i64 + 1);
        source.rewind(&orders(0), next).expect("moved");
    }
}

#[test]
fn a_message_with_another_checksum_stops_the_partition() {
    let played = cluster();
    let mut spoilt = row(0, &[plain(1, "b")]);
    *spoilt.last_mut().expect("bytes") ^= 1;
    hold(
        &played,
        0,
        vec![row(0, &[plain(0, "a")]).into(), spoilt.into()],
        2,
    );
    let mut source = source(&played, ROOMY);
    source.place(&[from(0, 0)]).expect("placed");
    let said = until(&mut source, &Heard::Unreadable(0));
    assert_eq!(said, [record(0, 0, "a"), Heard::Unreadable(0)]);
}

/// Whole batches pass beside them, and what is older is opened in its place.
#[test]
fn what_is_older_than_batches_never_passes_as_it_is() {
    let played = cluster();
    let batches = vec![
        wrapper(1, Codec::Gzip, None, &[plain(0, "a"), plain(1, "b")]).into(),
        batch(2, 0, &["x"; 40], Codec::None),
        row(1, &[plain(42, "c")]).into(),
    ];
    hold(&played, 0, batches, 43);
    let mut source = source(&played, ROOMY);
    let takes = Takes {
        bytes: 1 << 20,
        codecs: crate::wire::pass::Codecs::Any,
    };
    source.hand_over(&orders(0), Form::Whole(takes));
    source.place(&[from(0, 0)]).expect("placed");
    let mut handed = Vec::new();
    let deadline = Instant::now() + LONG;
    while handed.last() != Some(&("records", 42, 42)) {
        assert!(Instant::now() < deadline, "{handed:?}");
        match source.poll(Duration::from_millis(50)) {
            FetchEvent::Batch(of) => {
                let (first, last) = (of.first().expect("one"), of.last().expect("one"));
                handed.push(("records", first.0, last.0));
            }
            FetchEvent::Run(run) => handed.push(("whole", run.first().0, run.last().0)),
            FetchEvent::End(..) | FetchEvent::Idle => {}
            other => panic!("{other:?}"),
        }
    }
    let expected = [("records", 0, 1), ("whole", 2, 41), ("records", 42, 42)];
    assert_eq!(handed, expected);
}
