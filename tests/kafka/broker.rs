//! Brokers spoken to without a client: through every listener, and what they say to batches of ours.

use crate::support::cluster::{Admin, pair, settings};
use crate::support::reader::Reader;
use crate::support::wait::PATIENCE;
use crate::support::workload::{field, fill};
use bytes::Bytes;
use kafka_harness::Cluster;
use mirror::broker::address::Address;
use mirror::broker::connection::{Connection, Manner};
use mirror::broker::fault::{Fault, Trouble};
use mirror::broker::message::code::Code;
use mirror::broker::message::fetch::{Fetch, Fetched, Portion, Session, Want};
use mirror::broker::message::leader_epoch::OffsetForLeaderEpoch;
use mirror::broker::message::metadata::{Leader, Metadata};
use mirror::broker::message::produce::{Parcel, Place, Produce};
use mirror::broker::message::producer_id::{InitProducerId, ProducerId};
use mirror::broker::security::{Credentials, Login, Mechanism, Security};
use mirror::config::secret::Secret;
use mirror::config::spec::{TlsSpec, VerifyHostname};
use mirror::record::Headers;
use mirror::record::TopicPartition;
use mirror::wire::codec::{Codec, Compression, Compressor};
use mirror::wire::cut::{Cut, Cuts};
use mirror::wire::header::Stamp;
use mirror::wire::writer::{Piece, Writer, Written};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

fn plain() -> Security {
    Security {
        tls: None,
        sasl: None,
    }
}

fn run(work: impl Future<Output = ()>) {
    tokio::runtime::Runtime::new()
        .expect("a runtime")
        .block_on(work);
}

async fn open(bootstrap: &str, security: Security) -> Result<Connection, Fault> {
    let manner = Manner {
        security: Arc::new(security),
        client: "mirror".into(),
        patience: PATIENCE,
    };
    let first = bootstrap.split(',').next().expect("an address");
    let broker: Address = first.parse().expect("an address");
    Connection::open(&broker, &manner).await
}

fn as_user(mechanism: Mechanism, username: &str, password: &str) -> Option<Credentials> {
    Some(Credentials::Login(Login {
        mechanism,
        username: username.into(),
        password: Secret::new(password),
    }))
}

/// The cluster's id, asked through a listener.
async fn cluster_id(bootstrap: &str, security: Security) -> Result<String, Fault> {
    let connection = open(bootstrap, security).await?;
    let map = connection.ask(&Metadata { topics: &[] }, PATIENCE).await?;
    Ok(map.cluster_id.expect("a cluster has an id"))
}

#[tokio::test]
async fn every_listener_is_spoken_to() {
    let secure = settings(
        Cluster::builder("spoken-to")
            .tls()
            .sasl_plain("alice", "plain \"secret\"")
            .scram("bob", "scram-secret"),
    );
    let secure = secure.start().expect("a cluster");
    let expected = cluster_id(&secure.bootstrap(), plain())
        .await
        .expect("an id");
    let trusting = || TlsSpec {
        ca: Some(PathBuf::from(secure.ca_pem())),
        ..TlsSpec::default()
    };
    let mutual = TlsSpec {
        certificate: Some(PathBuf::from(secure.client_cert_pem())),
        key: Some(PathBuf::from(secure.client_key_pem())),
        ..trusting()
    };
    let any_name = TlsSpec {
        verify_hostname: VerifyHostname::No,
        ..trusting()
    };
    let alice = || as_user(Mechanism::Plain, "alice", "plain \"secret\"");
    let bob = |mechanism| as_user(mechanism, "bob", "scram-secret");
    let (tls, sasl_tls) = (secure.bootstrap_tls(), secure.bootstrap_sasl_tls());
    for (listener, tls, sasl) in [
        (&tls, Some(trusting()), None),
        (&tls, Some(mutual), None),
        (&tls, Some(any_name), None),
        (&secure.bootstrap_sasl_plain(), None, alice()),
        (&secure.bootstrap_scram(), None, bob(Mechanism::ScramSha256)),
        (&secure.bootstrap_scram(), None, bob(Mechanism::ScramSha512)),
        (&sasl_tls, Some(trusting()), alice()),
        (&sasl_tls, Some(trusting()), bob(Mechanism::ScramSha512)),
    ] {
        let words = format!("{tls:?} {sasl:?}");
        let found = cluster_id(listener, Security { tls, sasl }).await;
        assert_eq!(found.as_ref(), Ok(&expected), "{words}");
    }

    let wrong = |mechanism| as_user(mechanism, "bob", "guessed");
    for mechanism in [Mechanism::Plain, Mechanism::ScramSha256] {
        let listener = match mechanism {
            Mechanism::Plain => secure.bootstrap_sasl_plain(),
            _ => secure.bootstrap_scram(),
        };
        let sasl = wrong(mechanism);
        let refused = cluster_id(&listener, Security { tls: None, sasl }).await;
        let fault = refused.expect_err("a guessed password");
        assert!(matches!(fault.trouble, Trouble::Refused { .. }), "{fault}");
        assert!(!fault.to_string().contains("guessed"), "{fault}");
    }
    let untrusted = Security {
        tls: Some(TlsSpec::default()),
        sasl: None,
    };
    let fault = cluster_id(&tls, untrusted).await.expect_err("a stranger");
    assert!(matches!(fault.trouble, Trouble::Tls(_)), "{fault}");
}

/// Some records as one batch.
fn batch(values: &[&str], producer: ProducerId, sequence: i32) -> Bytes {
    let compression = Compression {
        codec: Codec::Lz4,
        level: None,
    };
    let mut compressor = Compressor::new(compression).expect("a codec");
    let mut writer = Writer::default();
    let none = Headers::Changed(Vec::new());
    for value in values {
        writer.push(&Piece {
            timestamp: Some(1000),
            key: None,
            value: Some(value.as_bytes()),
            headers: Written::Each(&none),
        });
    }
    let stamp = Stamp {
        producer_id: producer.id,
        producer_epoch: producer.epoch,
        base_sequence: sequence,
    };
    let finished = writer.finish(&mut compressor, stamp);
    finished.expect("a batch").into()
}

/// A new id; a broker that has just started has none to give yet.
async fn producer_id(connection: &Connection) -> ProducerId {
    const COORDINATOR_LOAD_IN_PROGRESS: Code = Code(14);
    let asking = async {
        loop {
            let asked = connection.ask(&InitProducerId, PATIENCE).await;
            match asked.expect("an answer") {
                Ok(id) => return id,
                Err(code) => assert_eq!(code, COORDINATOR_LOAD_IN_PROGRESS),
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
    };
    timeout(PATIENCE, asking).await.expect("an id in time")
}

async fn produce(
    connection: &Connection,
    to: &TopicPartition,
    batch: &Bytes,
) -> Result<Place, Code> {
    let parcel = Parcel {
        partition: to.clone(),
        batch,
    };
    let request = Produce {
        patience: PATIENCE,
        batches: &[parcel],
    };
    let mut produced = connection.ask(&request, PATIENCE).await.expect("an answer");
    let receipt = produced.partitions.pop().expect("a receipt");
    assert_eq!(receipt.partition, *to);
    receipt.taken.map_err(|refusal| refusal.code)
}

async fn leader(connection: &Connection, of: &TopicPartition) -> Leader {
    let topics = [&*of.topic];
    let map = connection
        .ask(&Metadata { topics: &topics }, PATIENCE)
        .await;
    let mut map = map.expect("a map");
    let topic = map.topics.pop().expect("the topic");
    topic.partitions.expect("partitions")[0]
        .leader
        .expect("a leader")
}

#[test]
fn a_broker_takes_each_batch_once_and_nothing_of_a_lower_epoch() {
    let source = pair().source.bootstrap();
    Admin::new(&source).create("broker-writes", 1, &[]);
    // The admin has a runtime of its own, and none may be within another.
    run(write_and_be_fenced(&source));
}

async fn write_and_be_fenced(source: &str) {
    const INVALID_PRODUCER_EPOCH: Code = Code(47);
    const OUT_OF_ORDER_SEQUENCE: Code = Code(45);
    let to = TopicPartition::new("broker-writes", 0);
    let connection = open(source, plain()).await.expect("a connection");
    let first = producer_id(&connection).await;
    assert_ne!(producer_id(&connection).await.id, first.id);

    let two = batch(&["a", "b"], first, 0);
    let there = |base, time| Ok(Place { base, time });
    assert_eq!(produce(&connection, &to, &two).await, there(0, None));
    assert_eq!(
        produce(&connection, &to, &two).await,
        there(0, Some(1000)),
        "once more: as before, and it says so by the records' time"
    );
    let gap = batch(&["z"], first, 5);
    assert_eq!(
        produce(&connection, &to, &gap).await,
        Err(OUT_OF_ORDER_SEQUENCE)
    );
    let next = ProducerId {
        epoch: first.epoch + 1,
        ..first
    };
    let three = batch(&["c"], next, 0);
    assert_eq!(produce(&connection, &to, &three).await, there(2, None));
    let late = batch(&["late"], first, 2);
    assert_eq!(
        produce(&connection, &to, &late).await,
        Err(INVALID_PRODUCER_EPOCH)
    );

    // Another client reads the same.
    let mut reader = Reader::new(source, ["broker-writes"]).keeping();
    reader.catch_up();
    let values = reader.records("broker-writes", 0).iter();
    let values: Vec<_> = values.map(|record| record.value.as_deref()).collect();
    assert_eq!(values, [Some(&b"a"[..]), Some(b"b"), Some(b"c")]);

    let epoch = leader(&connection, &to).await.epoch;
    let asked = OffsetForLeaderEpoch {
        partition: &to,
        current: epoch,
        epoch,
    };
    let end = connection.ask(&asked, PATIENCE).await.expect("an answer");
    assert_eq!(end.expect("no code").end, 3);
}

fn want(partition: &TopicPartition, from: i64) -> Want {
    Want {
        partition: partition.clone(),
        epoch: -1,
        from,
        most: 1 << 20,
    }
}

async fn fetch(connection: &Connection, session: Session, partitions: &[Want]) -> Fetched {
    let request = Fetch {
        wait: Duration::from_millis(10),
        most: 16 << 20,
        session,
        partitions,
        forgotten: &[],
        rack: "",
    };
    connection.ask(&request, PATIENCE).await.expect("an answer")
}

const RECORDS: u64 = 2000;

#[test]
fn a_session_brings_every_record_and_names_only_what_changes() {
    let source = pair().source.bootstrap();
    Admin::new(&source).create("broker-reads", 1, &[]);
    fill(&source, &[field("broker-reads", 1)], RECORDS);
    run(read_in_a_session(&source));
}

async fn read_in_a_session(source: &str) {
    const OFFSET_OUT_OF_RANGE: Code = Code(1);
    let from = TopicPartition::new("broker-reads", 0);
    let connection = open(source, plain()).await.expect("a connection");
    let (mut session, mut next, mut records) = (Session::NEW, 0, 0);
    let end = i64::try_from(RECORDS).expect("a number");
    while next < end {
        let fetched = fetch(&connection, session, &[want(&from, next)]).await;
        session = session.next(fetched.session.expect("a session"));
        let portion = fetched.partitions.first().expect("something is there");
        let read = portion.read.as_ref().expect("no code");
        assert_eq!((read.high_watermark, read.last_stable), (end, end));
        for cut in Cuts::of(&read.batches) {
            let Ok(Cut::Batch(batch)) = cut else { break };
            batch.check().expect("the checksum is right");
            next = batch.header().last_offset() + 1;
            records += batch.header().count;
        }
    }
    assert_eq!(i64::from(records), end);
    assert!(session.epoch > 0, "the broker keeps a session");

    // Nothing changed since the last request, so nothing is said about the partition, and nothing has to be asked.
    let fetched = fetch(&connection, session, &[want(&from, next)]).await;
    session = session.next(fetched.session.expect("a session"));
    let is_news = |p: &Portion| p.read.as_ref().is_ok_and(|read| !read.batches.is_empty());
    assert!(!fetched.partitions.iter().any(is_news));
    let fetched = fetch(&connection, session, &[]).await;
    session = session.next(fetched.session.expect("a session"));
    assert_eq!(fetched.partitions, []);

    let fetched = fetch(&connection, session, &[want(&from, end + 1)]).await;
    assert_eq!(fetched.partitions[0].read, Err(OFFSET_OUT_OF_RANGE));
}
