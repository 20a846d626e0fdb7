//! Batches against the ones that another implementation makes and reads, and against bytes that are none.

use super::aborted::{Aborted, Fate, Transactions};
use super::codec::{Codec, Compression, Compressor, Decompressor};
use super::cut::{Cut, Cuts, RawBatch};
use super::header::Stamp;
use super::pass::{Codecs, Opened, Takes};
use super::writer::{Piece, Writer, Written};
use super::*;
use crate::record::Headers;
use bytes::{Bytes, BytesMut};
use kafka_protocol::indexmap::IndexMap;
use kafka_protocol::protocol::StrBytes;
use kafka_protocol::records::{self as reference, RecordBatchDecoder, RecordBatchEncoder};
use proptest::prelude::*;

type List = Vec<(Vec<u8>, Option<Vec<u8>>)>;
const LIMIT: usize = 1 << 20;
const STAMP: Stamp = Stamp {
    producer_id: 7,
    producer_epoch: 3,
    base_sequence: 40,
};

/// A record with everything of its own.
#[derive(Clone, Debug, PartialEq)]
struct Owned {
    timestamp: Option<i64>,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    headers: List,
}

fn field() -> impl Strategy<Value = Option<Vec<u8>>> {
    proptest::option::of(proptest::collection::vec(any::<u8>(), 0..300))
}

fn owned() -> impl Strategy<Value = Owned> {
    let header = (proptest::collection::vec(any::<u8>(), 0..9), field());
    let timestamp = prop_oneof![Just(None), (0..i64::MAX / 2).prop_map(Some)];
    (
        timestamp,
        field(),
        field(),
        proptest::collection::vec(header, 0..4),
    )
        .prop_map(|(timestamp, key, value, headers)| Owned {
            timestamp,
            key,
            value,
            headers,
        })
}

/// So many records at most, and one that any codec makes smaller.
fn batch(most: usize) -> impl Strategy<Value = Vec<Owned>> {
    proptest::collection::vec(owned(), 1..=most).prop_map(|mut records| {
        records.push(plain(&[7; 4000]));
        records
    })
}

fn codec() -> impl Strategy<Value = Codec> {
    proptest::sample::select(&Codec::ALL[..])
}

fn written(codec: Codec, records: &[Owned]) -> Vec<u8> {
    let compressor = Compressor::new(Compression { codec, level: None });
    let mut writer = Writer::default();
    for record in records {
        let headers = Headers::Untouched(&record.headers);
        writer.push(&Piece {
            timestamp: record.timestamp,
            key: record.key.as_deref(),
            value: record.value.as_deref(),
            headers: Written::Each(&headers),
        });
    }
    let mut compressor = compressor.expect("a compressor");
    let finished = writer.finish(&mut compressor, STAMP);
    assert_eq!(writer.count(), 0);
    finished.expect("a batch")
}

fn only(bytes: &[u8]) -> RawBatch<'_> {
    let mut cuts = Cuts::of(bytes);
    let Some(Ok(Cut::Batch(batch))) = cuts.next() else {
        panic!("no batch");
    };
    assert!(cuts.next().is_none());
    batch
}

/// Each record with its offset, or why there is none.
fn read(batch: &RawBatch<'_>) -> Result<Vec<(i64, Owned)>, Malformed> {
    let mut buffer = Vec::new();
    let records = batch.open(&mut Decompressor::default(), LIMIT, &mut buffer)?;
    records
        .map(|view| {
            let view = view?;
            let headers = view.headers.iter();
            let owned = Owned {
                timestamp: view.timestamp,
                key: view.key.map(<[u8]>::to_vec),
                value: view.value.map(<[u8]>::to_vec),
                headers: headers
                    .map(|(n, v)| (n.to_vec(), v.map(<[u8]>::to_vec)))
                    .collect(),
            };
            Ok((view.offset, owned))
        })
        .collect()
}

fn numbered(records: &[Owned]) -> Vec<(i64, Owned)> {
    (0..).zip(records.iter().cloned()).collect()
}

fn reference_codec(codec: Codec) -> reference::Compression {
    match codec {
        Codec::None => reference::Compression::None,
        Codec::Gzip => reference::Compression::Gzip,
        Codec::Snappy => reference::Compression::Snappy,
        Codec::Lz4 => reference::Compression::Lz4,
        Codec::Zstd => reference::Compression::Zstd,
    }
}

/// As the other implementation has it: its headers have one value a name, and names are text.
fn reference_record(offset: i64, of: &Owned) -> reference::Record {
    let headers: IndexMap<StrBytes, Option<Bytes>> = of
        .headers
        .iter()
        .enumerate()
        .map(|(index, (_, value))| {
            let name = StrBytes::from_string(format!("h{index}"));
            (name, value.clone().map(Bytes::from))
        })
        .collect();
    reference::Record {
        transactional: false,
        control: false,
        delete_horizon: false,
        partition_leader_epoch: -1,
        producer_id: STAMP.producer_id,
        producer_epoch: STAMP.producer_epoch,
        timestamp_type: reference::TimestampType::Creation,
        offset,
        sequence: STAMP.base_sequence + offset as i32,
        timestamp: of.timestamp.unwrap_or(-1),
        key: of.key.clone().map(Bytes::from),
        value: of.value.clone().map(Bytes::from),
        headers,
    }
}

/// The same record with names that the other implementation can have.
fn with_plain_names(of: &Owned) -> Owned {
    let headers = of.headers.iter().enumerate();
    Owned {
        headers: headers
            .map(|(index, (_, value))| (format!("h{index}").into_bytes(), value.clone()))
            .collect(),
        ..of.clone()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read(codec in codec(), records in batch(19)) {
        let bytes = written(codec, &records);
        let batch = only(&bytes);
        prop_assert_eq!(batch.check(), Ok(()));
        prop_assert_eq!(batch.header().stamp, STAMP);
        prop_assert_eq!(batch.header().codec(), Ok(codec));
        prop_assert_eq!(batch.header().last_offset(), records.len() as i64 - 1);
        let max = records.iter().map(|r| r.timestamp.unwrap_or(-1)).max();
        prop_assert_eq!(Some(batch.header().max_timestamp), max);
        prop_assert_eq!(read(&batch), Ok(numbered(&records)));
    }

    #[test]
    fn another_implementation_reads_what_is_written(codec in codec(), records in batch(19)) {
        let records: Vec<Owned> = records.iter().map(with_plain_names).collect();
        let mut bytes = Bytes::from(written(codec, &records));
        let read = RecordBatchDecoder::decode(&mut bytes).expect("a batch").records;
        let expected: Vec<_> = (0..).zip(&records).map(|(o, r)| reference_record(o, r)).collect();
        prop_assert_eq!(read, expected);
    }

    #[test]
    fn what_another_implementation_writes_is_read(codec in codec(), records in batch(19)) {
        let records: Vec<Owned> = records.iter().map(with_plain_names).collect();
        let theirs: Vec<_> = (0..).zip(&records).map(|(o, r)| reference_record(o, r)).collect();
        let options = reference::RecordEncodeOptions { version: 2, compression: reference_codec(codec) };
        let mut bytes = BytesMut::new();
        RecordBatchEncoder::encode(&mut bytes, &theirs, &options).expect("a batch");
        let (mut read_back, mut answer) = (Vec::new(), Cuts::of(&bytes));
        while let Some(Ok(Cut::Batch(batch))) = answer.next() {
            prop_assert_eq!(batch.check(), Ok(()));
            read_back.extend(read(&batch).expect("records"));
        }
        prop_assert_eq!(read_back, numbered(&records));
    }

    #[test]
    fn a_changed_byte_is_seen_and_harms_nobody(
        codec in codec(), records in batch(5), at: prop::sample::Index, to: u8, cut: prop::sample::Index
    ) {
        let whole = written(codec, &records);
        let mut bytes = whole.clone();
        let at = at.index(bytes.len());
        bytes[at] = to;
        // Offset, length, leader epoch and format are not covered by the checksum.
        if let Some(Ok(Cut::Batch(batch))) = Cuts::of(&bytes).next() && at >= 17 && bytes != whole {
            prop_assert!(batch.check().is_err());
        }
        read_all(&bytes);
        bytes.truncate(cut.index(bytes.len()));
        read_all(&bytes);
    }

    #[test]
    fn bytes_that_are_none_end_in_words(mut bytes in proptest::collection::vec(any::<u8>(), 0..400), codec in codec()) {
        read_all(&bytes);
        // The same as the body of a batch whose header is right.
        let mut batch = written(codec, &[]);
        batch.truncate(super::header::LENGTH);
        batch[21..23].copy_from_slice(&codec.number().to_be_bytes());
        batch.append(&mut bytes);
        let length = batch.len() as i32 - 12;
        batch[8..12].copy_from_slice(&length.to_be_bytes());
        batch[23..27].copy_from_slice(&9i32.to_be_bytes());
        batch[57..61].copy_from_slice(&10i32.to_be_bytes());
        read_all(&batch);
    }

    #[test]
    fn a_passed_batch_is_the_same_records(codec in codec(), records in batch(8), other: i64) {
        let bytes = written(codec, &records);
        let mut passed = Vec::new();
        let stamp = Stamp { producer_id: other, producer_epoch: 1, base_sequence: 9 };
        only(&bytes).pass(stamp, &mut passed);
        let frame = Bytes::from(bytes);
        let kept = only(&frame).keep(&frame);
        prop_assert_eq!(&kept.stamped(stamp)[..], &passed[..]);
        let batch = only(&passed);
        prop_assert_eq!(batch.check(), Ok(()));
        prop_assert_eq!(batch.header().stamp, stamp);
        prop_assert_eq!(read(&batch), Ok(numbered(&records)));
    }

    #[test]
    fn a_batch_reads_the_same_whether_it_passes_or_is_written_anew(
        one in codec(),
        other in codec(),
        records in batch(8),
    ) {
        let bytes = written(one, &records);
        let mut passed = Vec::new();
        only(&bytes).pass(STAMP, &mut passed);
        let mut buffer = Vec::new();
        let opened = only(&bytes).open(&mut Decompressor::default(), LIMIT, &mut buffer);
        let mut writer = Writer::default();
        for view in opened.expect("records") {
            let view = view.expect("a record");
            writer.push(&Piece {
                timestamp: view.timestamp,
                key: view.key,
                value: view.value,
                headers: Written::AsRead(view.headers),
            });
        }
        let compression = Compression { codec: other, level: None };
        let mut compressor = Compressor::new(compression).expect("a compressor");
        let anew = writer.finish(&mut compressor, STAMP).expect("a batch");
        let (passed, anew) = (only(&passed), only(&anew));
        prop_assert_eq!(read(&passed), read(&anew));
        prop_assert_eq!(passed.header().stamp, anew.header().stamp);
        prop_assert_eq!(passed.header().max_timestamp, anew.header().max_timestamp);
    }
}

#[test]
fn what_a_codec_makes_larger_goes_as_it_is() {
    // Bytes without any order, by a generator of a line.
    let mut state = 1u32;
    let noise: Vec<u8> = (0..2000)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        })
        .collect();
    let records = [plain(&noise)];
    let plainly = written(Codec::None, &records);
    for codec in Codec::ALL {
        assert_eq!(written(codec, &records), plainly, "{}", codec.as_str());
    }
}

/// Reads whatever there is to its end.
fn read_all(bytes: &[u8]) {
    for cut in Cuts::of(bytes) {
        if let Ok(Cut::Batch(batch)) = cut {
            let _ = (batch.check(), read(&batch));
            let _ = Transactions::default().fate(&batch);
        }
    }
}

fn plain(value: &[u8]) -> Owned {
    Owned {
        timestamp: Some(5),
        key: None,
        value: Some(value.to_vec()),
        headers: List::new(),
    }
}

/// A batch with other attributes.
fn with_attributes(attributes: i16) -> Vec<u8> {
    let mut bytes = written(Codec::None, &[plain(b"a"), plain(b"b")]);
    bytes[21..23].copy_from_slice(&attributes.to_be_bytes());
    super::pass::seal(&mut bytes);
    bytes
}

#[test]
fn what_grows_beyond_the_limit_is_refused_before_it_fills_memory() {
    let bomb = vec![0u8; 64 << 20];
    for codec in Codec::ALL {
        let bytes = written(codec, &[plain(&bomb)]);
        let mut buffer = Vec::new();
        let opened = only(&bytes).open(&mut Decompressor::default(), LIMIT, &mut buffer);
        assert_eq!(
            opened.err(),
            Some(Malformed::TooLarge(LIMIT)),
            "{}",
            codec.as_str()
        );
        assert!(
            buffer.capacity() <= 4 * LIMIT,
            "{}: {}",
            codec.as_str(),
            buffer.capacity()
        );
    }
}

#[test]
fn snappy_in_one_block_is_read_too() {
    let whole = written(Codec::None, &[plain(b"abcabcabcabcabcabc")]);
    let (header, body) = whole.split_at(super::header::LENGTH);
    let mut bytes = header.to_vec();
    bytes.extend(
        snap::raw::Encoder::new()
            .compress_vec(body)
            .expect("compressed"),
    );
    let length = bytes.len() as i32 - 12;
    bytes[8..12].copy_from_slice(&length.to_be_bytes());
    bytes[21..23].copy_from_slice(&2i16.to_be_bytes());
    super::pass::seal(&mut bytes);
    assert_eq!(
        read(&only(&bytes)),
        Ok(numbered(&[plain(b"abcabcabcabcabcabc")]))
    );
}

#[test]
fn an_answer_is_cut_into_what_is_whole() {
    let one = written(Codec::Lz4, &[plain(b"one")]);
    let two = written(Codec::None, &[plain(b"two"), plain(b"three")]);
    let answer = [one.clone(), two.clone()].concat();
    let whole = Cuts::of(&answer).filter(|cut| matches!(cut, Ok(Cut::Batch(_))));
    assert_eq!(whole.count(), 2);
    let mut cuts = Cuts::of(&answer[..answer.len() - 1]);
    assert!(matches!(cuts.next(), Some(Ok(Cut::Batch(_)))));
    let partial = cuts.next();
    assert!(matches!(partial, Some(Ok(Cut::Partial { whole: Some(n) })) if n == two.len()));
    assert!(cuts.next().is_none());
    let mut old = one;
    old[16] = 3;
    assert!(matches!(
        Cuts::of(&old).next(),
        Some(Err(Malformed::Magic(3)))
    ));
}

#[test]
fn the_number_of_records_has_to_be_right() {
    for (stated, more) in [(1, 0), (3, 1)] {
        let mut bytes = written(Codec::None, &[plain(b"a"), plain(b"b")]);
        bytes[57..61].copy_from_slice(&i32::to_be_bytes(stated));
        bytes[23..27].copy_from_slice(&i32::to_be_bytes(1 + more));
        assert_eq!(read(&only(&bytes)), Err(Malformed::Count { stated }));
    }
}

#[test]
fn with_append_time_all_records_have_the_batches() {
    let mut bytes = with_attributes(0x08);
    bytes[35..43].copy_from_slice(&99i64.to_be_bytes());
    let records = read(&only(&bytes)).expect("records");
    assert!(records.iter().all(|(_, r)| r.timestamp == Some(99)));
}

#[test]
fn what_may_pass_is_what_any_producer_could_have_sent() {
    let takes = Takes {
        bytes: 1000,
        codecs: Codecs::Any,
    };
    let fate = |attributes: i16| only(&with_attributes(attributes)).may_pass(0, takes);
    assert_eq!(fate(0), Ok(()));
    assert_eq!(
        fate(0x10),
        Ok(()),
        "a committed transaction's records are records"
    );
    assert_eq!(fate(0x20), Err(Opened::Control));
    assert_eq!(fate(0x08), Err(Opened::AppendTime));
    assert_eq!(fate(0x40), Err(Opened::DeleteHorizon));
    assert_eq!(fate(0x80), Err(Opened::Unknown));
    let bytes = with_attributes(0);
    let batch = only(&bytes);
    assert_eq!(
        batch.may_pass(1, takes),
        Err(Opened::Gaps),
        "begins before the position"
    );
    assert_eq!(
        batch.may_pass(0, Takes { bytes: 9, ..takes }),
        Err(Opened::Size)
    );
    assert_eq!(
        batch.may_pass(
            0,
            Takes {
                codecs: Codecs::Only(Codec::Zstd),
                ..takes
            }
        ),
        Err(Opened::Codec)
    );
    let mut compacted = with_attributes(0);
    compacted[23..27].copy_from_slice(&5i32.to_be_bytes());
    assert_eq!(only(&compacted).may_pass(0, takes), Err(Opened::Gaps));
    let mut passed = Vec::new();
    only(&with_attributes(0x10)).pass(STAMP, &mut passed);
    assert!(!only(&passed).header().is_transactional());
}

/// A batch of a producer at an offset; a marker if it has a type.
fn of_producer(producer_id: i64, at: i64, marker: Option<i16>) -> Vec<u8> {
    let mut record = plain(b"v");
    record.key = marker.map(|kind| [0i16.to_be_bytes(), kind.to_be_bytes()].concat());
    let mut bytes = written(Codec::None, &[record]);
    bytes[..8].copy_from_slice(&at.to_be_bytes());
    bytes[43..51].copy_from_slice(&producer_id.to_be_bytes());
    let attributes: i16 = if marker.is_some() { 0x30 } else { 0x10 };
    bytes[21..23].copy_from_slice(&attributes.to_be_bytes());
    bytes
}

#[test]
fn what_was_aborted_is_left_out_and_nothing_else() {
    let list = [
        Aborted {
            producer_id: 1,
            first_offset: 10,
        },
        Aborted {
            producer_id: 2,
            first_offset: 12,
        },
        Aborted {
            producer_id: 1,
            first_offset: 20,
        },
    ];
    let mut transactions = Transactions::of(&list);
    let mut fate = |producer, at, marker| {
        let bytes = of_producer(producer, at, marker);
        transactions.fate(&only(&bytes)).expect("a fate")
    };
    assert_eq!(
        fate(1, 8, None),
        Fate::Committed,
        "an earlier transaction of the same producer"
    );
    assert_eq!(fate(1, 9, Some(1)), Fate::Marker);
    assert_eq!(fate(1, 10, None), Fate::Aborted);
    assert_eq!(fate(3, 11, None), Fate::Committed);
    assert_eq!(fate(2, 12, None), Fate::Aborted);
    assert_eq!(fate(1, 13, Some(0)), Fate::Marker);
    assert_eq!(fate(1, 14, None), Fate::Committed);
    assert_eq!(fate(2, 15, None), Fate::Aborted);
    assert_eq!(fate(1, 21, None), Fate::Aborted);
}
