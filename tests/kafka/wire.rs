//! Batches as Apache Kafka itself has them: what a broker keeps in its files is what it answers to a fetch.

use crate::support::cluster::{Admin, pair};
use crate::support::reader::Reader;
use crate::support::record::Record;
use crate::support::transaction::Transaction;
use crate::support::wait::{self, PATIENCE};
use crate::support::workload::{field, fill};
use kafka_harness::Cluster;
use mirror::wire::aborted::{Aborted, Fate, Transactions};
use mirror::wire::codec::{Codec, Decompressor};
use mirror::wire::cut::{Cut, Cuts, RawBatch};
use std::fs;

const EACH: u64 = 500;
const LIMIT: usize = 16 << 20;

/// The log of partition 0 of a source's topic, as it lies on the broker's disk.
fn log(topic: &str) -> Vec<u8> {
    log_of(&pair().source, topic).expect("the partition's log")
}

/// The log of partition 0 of a topic; `None` where it is just being written anew.
pub fn log_of(cluster: &Cluster, topic: &str) -> Option<Vec<u8>> {
    let folder = cluster.brokers()[0].data().join(format!("{topic}-0"));
    let files = fs::read_dir(&folder).ok()?;
    let mut segments: Vec<_> = files
        .map(|file| file.expect("a file").path())
        .filter(|path| path.extension().is_some_and(|e| e == "log"))
        .collect();
    segments.sort();
    let read: Option<Vec<_>> = segments.iter().map(|path| fs::read(path).ok()).collect();
    Some(read?.concat())
}

/// All batches of a log.
pub fn batches(log: &[u8]) -> Vec<RawBatch<'_>> {
    let batch = |cut| match cut {
        Ok(Cut::Batch(batch)) => batch,
        other => panic!("no batch: {other:?}"),
    };
    Cuts::of(log).map(batch).collect()
}

/// What is in a batch.
pub fn records(batch: &RawBatch<'_>) -> Vec<Record> {
    batch.check().expect("the checksum is right");
    let mut buffer = Vec::new();
    let opened = batch.open(&mut Decompressor::default(), LIMIT, &mut buffer);
    let owned = |bytes: &[u8]| bytes.to_vec();
    opened
        .expect("it opens")
        .map(|view| {
            let view = view.expect("a record");
            let headers = view.headers.iter();
            Record {
                key: view.key.map(owned),
                value: view.value.map(owned),
                headers: headers.map(|(n, v)| (owned(n), v.map(owned))).collect(),
                timestamp: view.timestamp.expect("a timestamp"),
            }
        })
        .collect()
}

#[test]
fn every_codec_of_a_broker_is_read() {
    let pair = pair();
    let source = pair.source.bootstrap();
    let admin = Admin::new(&source);
    for codec in Codec::ALL {
        let topic = format!("wire-{}", codec.as_str());
        // The broker compresses anew, with Java's codecs.
        let setting = match codec {
            Codec::None => "uncompressed",
            other => other.as_str(),
        };
        admin.create(&topic, 1, &[("compression.type", setting)]);
        fill(&source, &[field(&topic, 1)], EACH);
        let mut reader = Reader::new(&source, [topic.as_str()]).keeping();
        reader.catch_up();
        let log = log(&topic);
        let batches = batches(&log);
        assert!(
            batches
                .iter()
                .all(|batch| batch.header().codec() == Ok(codec))
        );
        let read: Vec<Record> = batches.iter().flat_map(records).collect();
        assert_eq!(read.len() as u64, EACH);
        assert!(
            read == reader.records(&topic, 0),
            "{topic}: not the same records"
        );
    }
}

#[test]
fn an_aborted_transaction_is_left_out() {
    let source = pair().source.bootstrap();
    let topic = "wire-aborted";
    Admin::new(&source).create(topic, 1, &[]);
    fill(&source, &[field(topic, 1)], 5);
    let stranger = Record {
        key: None,
        value: Some(b"never".to_vec()),
        headers: Vec::new(),
        timestamp: 1,
    };
    Transaction::open(
        &source,
        topic,
        &[(0, stranger.clone()), (0, stranger.clone())],
    )
    .abort();
    Transaction::open(&source, topic, &[(0, stranger)]).commit();
    // A marker is written after the client was told that its transaction is over.
    let fates = wait::find("two markers", PATIENCE, || {
        let fates = fates(&log(topic));
        (fates.iter().filter(|fate| **fate == Fate::Marker).count() == 2).then_some(fates)
    });
    let (after, aborted) = (&fates[fates.len() - 2..], &fates[..fates.len() - 3]);
    assert_eq!(after, [Fate::Committed, Fate::Marker]);
    assert!(!aborted.is_empty() && aborted.iter().all(|fate| *fate == Fate::Aborted));
}

/// What becomes of each batch in a transaction, if the first of these was aborted.
fn fates(log: &[u8]) -> Vec<Fate> {
    let mut batches = batches(log);
    batches.retain(|batch| batch.header().is_transactional());
    let first = batches.first().expect("one").header();
    // What a fetch's answer lists.
    let mut transactions = Transactions::of(&[Aborted {
        producer_id: first.stamp.producer_id,
        first_offset: first.base_offset,
    }]);
    let fate = |batch| transactions.fate(batch).expect("a fate");
    batches.iter().map(fate).collect()
}
