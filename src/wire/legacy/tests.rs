//! Old messages against those that Kafka itself makes, and against bytes that are none.

use super::super::cut::{Cut, Cuts};
use super::written::{CODECS, Plain, compressed, message, row, seal, set, wrapper};
use super::*;
use proptest::prelude::*;

const LIMIT: usize = 1 << 20;

/// All messages in a log, or why they cannot be read.
fn read(log: &[u8]) -> Result<Vec<Plain>, Malformed> {
    let mut all = Vec::new();
    for cut in Cuts::of(log) {
        let message = match cut? {
            Cut::Message(message) => message,
            Cut::Batch(_) => return Err(Malformed::Magic(2)),
            Cut::Partial { .. } => break,
        };
        message.check()?;
        let mut buffer = Vec::new();
        let messages = message.open(&mut Decompressor::default(), LIMIT, &mut buffer)?;
        for view in messages {
            all.push(owned(&view?));
        }
    }
    Ok(all)
}

fn owned(view: &View<'_>) -> Plain {
    assert_eq!(view.headers.count(), 0);
    Plain {
        offset: view.offset,
        timestamp: view.timestamp.unwrap_or(-1),
        key: view.key.map(<[u8]>::to_vec),
        value: view.value.map(<[u8]>::to_vec),
    }
}

fn plain(offset: i64, value: &[u8]) -> Plain {
    Plain {
        offset,
        timestamp: 5,
        key: None,
        value: Some(value.to_vec()),
    }
}

/// What a record of the sets that Kafka made has in it (`tests/harness/kafka/OldFormats.java`).
fn of_kafka(offset: i64, timestamp: i64) -> Plain {
    let key = match (offset % 3, offset % 7) {
        (2, _) => None,
        (_, 1) => Some(String::new()),
        _ => Some(format!("key {offset}")),
    };
    let value = format!("value {offset} ").repeat(offset as usize % 4 * 5);
    Plain {
        offset,
        timestamp,
        key: key.map(String::into_bytes),
        value: (offset % 5 != 4).then(|| value.into_bytes()),
    }
}

/// The sets as Kafka's own code wrote them: format, codec, whose timestamps, first offset, bytes.
fn sets_of_kafka() -> impl Iterator<Item = (Vec<&'static str>, Vec<u8>)> {
    let lines = include_str!("kafka.txt").lines();
    lines.map(|line| {
        let mut words: Vec<&str> = line.split(' ').collect();
        let bytes = words.pop().expect("bytes");
        (words, hex::decode(bytes).expect("hexadecimal"))
    })
}

#[test]
fn what_kafka_wrote_is_read() {
    let mut log = Vec::new();
    let mut all = Vec::new();
    for (words, bytes) in sets_of_kafka() {
        let [magic, _, times, first] = words[..] else {
            panic!("{words:?}");
        };
        let first: i64 = first.parse().expect("an offset");
        let timestamp = |offset| match (magic, times) {
            ("0", _) => -1,
            (_, "CreateTime") => 1_500_000_000_000 + offset,
            _ => 1_600_000_000_000 + first,
        };
        let offsets = [0, 1, 4, 5].map(|distance| first + distance);
        let expected = offsets.map(|offset| of_kafka(offset, timestamp(offset)));
        assert_eq!(read(&bytes), Ok(expected.to_vec()), "{words:?}");
        log.extend(bytes);
        all.extend(expected);
    }
    assert_eq!(read(&log), Ok(all));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read(set in set(), first in 0..1i64 << 40) {
        let (bytes, expected) = set.at(first);
        prop_assert_eq!(read(&bytes), Ok(expected));
    }

    #[test]
    fn a_bit_that_is_another_is_found(set in set(), first in 0..1i64 << 40, at: usize, bit in 0u8..8) {
        let (mut damaged, expected) = set.at(first);
        let at = at % damaged.len();
        damaged[at] ^= 1 << bit;
        // Offsets are the broker's, and no checksum covers them; a length that is too long is that of a message that did not fit.
        let untouched = |found: Vec<Plain>| found.iter().all(|m| expected.iter().any(|e| {
            Plain { offset: e.offset, ..m.clone() } == *e
        }));
        prop_assert!(read(&damaged).map_or(true, untouched));
    }

    #[test]
    fn hostile_bytes_inside_of_a_wrapper_end_in_an_error(
        magic in 0u8..2, codec in proptest::sample::select(&CODECS[..]), set in set(),
        changes in proptest::collection::vec((any::<usize>(), any::<u8>()), 0..6), cut: usize
    ) {
        // Whoever makes them can make checksums.
        let (mut row, _) = set.at(7);
        for (at, to) in changes {
            let at = at % row.len();
            row[at] = to;
        }
        row.truncate(cut % (row.len() + 1));
        if row.len() > 16 {
            seal(&mut row);
        }
        let _ = read(&row);
        let mut wrapped = plain(1 << 41, b"");
        wrapped.value = Some(compressed(magic, codec, &row));
        let _ = read(&message(magic, codec.number() as u8, &wrapped));
        wrapped.value = Some(row);
        let _ = read(&message(magic, codec.number() as u8, &wrapped));
    }
}

#[test]
fn what_grows_beyond_the_limit_is_refused_before_it_fills_memory() {
    let bomb = [plain(3, &vec![0; 64 << 20])];
    for (magic, codec) in [0, 1]
        .into_iter()
        .flat_map(|m| CODECS[1..].iter().map(move |c| (m, *c)))
    {
        let bytes = wrapper(magic, codec, None, &bomb);
        let Some(Ok(Cut::Message(message))) = Cuts::of(&bytes).next() else {
            panic!("no message");
        };
        let mut buffer = Vec::new();
        let opened = message.open(&mut Decompressor::default(), LIMIT, &mut buffer);
        assert_eq!(
            opened.err(),
            Some(Malformed::TooLarge(LIMIT)),
            "{magic} {codec:?}"
        );
        assert!(buffer.capacity() <= 4 * LIMIT, "{}", buffer.capacity());
    }
}

/// A wrapper of format 1 around this row, at this offset.
fn around(offset: i64, row: &[u8]) -> Vec<u8> {
    let value = compressed(1, Codec::Gzip, row);
    message(1, Codec::Gzip.number() as u8, &plain(offset, &value))
}

#[test]
fn what_no_producer_wraps_is_refused() {
    let two = |first, second| row(1, &[plain(first, b"a"), plain(second, b"b")]);
    assert!(read(&around(9, &two(0, 1))).is_ok());
    assert_eq!(
        read(&around(9, &two(1, 1))),
        Err(Malformed::Offset(1)),
        "they rise"
    );
    assert_eq!(
        read(&around(9, &two(3, 1))),
        Err(Malformed::Offset(3)),
        "they rise"
    );
    assert_eq!(
        read(&around(9, &two(0, 10))),
        Err(Malformed::Offset(10)),
        "before the log"
    );
    assert_eq!(
        read(&around(9, b"")),
        Err(Malformed::Short { wanted: 8, left: 0 }),
        "nothing"
    );
    let cut_off = &two(0, 1)[..30];
    assert!(matches!(
        read(&around(9, cut_off)),
        Err(Malformed::Short { .. })
    ));
    let once_more = around(1, &around(1, &two(0, 1)));
    assert_eq!(read(&once_more), Err(Malformed::Nested));
    let nothing = Plain {
        value: None,
        ..plain(3, b"")
    };
    assert_eq!(read(&message(0, 1, &nothing)), Err(Malformed::Length(-1)));
    assert_eq!(
        read(&message(1, 4, &plain(3, b"zstd"))),
        Err(Malformed::Codec(4)),
        "came with batches"
    );
    assert_eq!(
        read(&message(1, 5, &plain(3, b"?"))),
        Err(Malformed::Codec(5))
    );
    for offset in [-1, i64::MIN, i64::MAX] {
        assert_eq!(
            read(&row(0, &[plain(offset, b"a")])),
            Err(Malformed::Offset(offset))
        );
    }
}

#[test]
fn a_checksum_inside_of_a_wrapper_is_compared() {
    let mut inside = row(1, &[plain(0, b"a"), plain(1, b"b")]);
    *inside.last_mut().expect("bytes") ^= 1;
    assert!(matches!(
        read(&around(9, &inside)),
        Err(Malformed::Checksum { .. })
    ));
}

#[test]
fn a_message_that_did_not_fit_is_no_fault() {
    let bytes = row(0, &[plain(0, b"a"), plain(1, b"b")]);
    let first = Plain {
        timestamp: -1,
        ..plain(0, b"a")
    };
    for short in [1, 10, 20] {
        let cut_off = &bytes[..bytes.len() - short];
        assert_eq!(read(cut_off), Ok(vec![first.clone()]));
    }
}
