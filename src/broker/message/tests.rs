//! Our messages against those of another implementation, and against bytes that are none.

use super::api_versions::{ApiVersions, Versions};
use super::code::Code;
use super::fetch::{Fetch, Session, Want};
use super::leader_epoch::{EpochEnd, OffsetForLeaderEpoch};
use super::metadata::{Leader, Metadata};
use super::produce::{Parcel, Place, Produce, Refusal};
use super::producer_id::{InitProducerId, ProducerId};
use super::sasl::{SaslAuthenticate, SaslHandshake, Step};
use super::*;
use crate::record::TopicPartition;
use crate::wire;
use bytes::{Buf, BytesMut};
use kafka_protocol::messages as theirs;
use kafka_protocol::messages::{RequestHeader, TopicName};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, StrBytes};
use proptest::prelude::*;
use std::time::Duration;

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

fn topic(name: &str) -> TopicName {
    TopicName(text(name))
}

/// Our request as they read it.
fn read_by_them<Q: Request, T: Decodable + HeaderVersion>(request: &Q, version: i16) -> T {
    let mut frame = frame(request, version, 7, "mirror");
    let frame = frame.copy_to_bytes(frame.remaining());
    let length = u32::from_be_bytes(frame[..4].try_into().expect("a length"));
    assert_eq!(length as usize, frame.len() - 4);
    let mut body = frame.slice(4..);
    let header = RequestHeader::decode(&mut body, T::header_version(version)).expect("a header");
    assert_eq!(
        (header.request_api_key, header.request_api_version),
        (Q::API.key(), version)
    );
    assert_eq!(header.correlation_id, 7);
    assert_eq!(header.client_id.as_deref(), Some("mirror"));
    let request = T::decode(&mut body, version).expect("a request");
    assert!(body.is_empty(), "{} bytes are left", body.len());
    request
}

/// Their answer as we read it.
fn read_by_us<Q: Request>(answer_of_theirs: &impl Encodable, version: i16) -> Q::Answer {
    answer::<Q>(version, &encoded(answer_of_theirs, version)).expect("an answer")
}

fn encoded(answer: &impl Encodable, version: i16) -> Bytes {
    let mut bytes = BytesMut::new();
    answer.encode(&mut bytes, version).expect("it is encoded");
    bytes.freeze()
}

#[test]
fn answers_have_a_plain_header() {
    for api in Api::ALL {
        let key = theirs::ApiKey::try_from(api.key()).expect("a key");
        let (first, last) = api.speaks();
        for version in first..=last {
            assert_eq!(key.request_header_version(version), 1, "{api:?}");
            assert_eq!(key.response_header_version(version), 0, "{api:?}");
        }
        assert_eq!(format!("{key:?}"), api.as_str());
    }
}

#[test]
fn versions_are_the_newest_that_both_speak() {
    use theirs::api_versions_response::ApiVersion;
    let _: theirs::ApiVersionsRequest = read_by_them(&ApiVersions, 0);
    let speaks = |api: Api, min, max| {
        ApiVersion::default()
            .with_api_key(api.key())
            .with_min_version(min)
            .with_max_version(max)
    };
    let answer = theirs::ApiVersionsResponse::default().with_api_keys(vec![
        speaks(Api::Fetch, 4, 18),
        speaks(Api::Produce, 0, 7),
        speaks(Api::Metadata, 8, 13),
    ]);
    let versions: Versions = read_by_us::<ApiVersions>(&answer, 0).expect("no code");
    assert_eq!(versions.common(Api::Fetch), Ok(11));
    assert_eq!(versions.common(Api::Produce), Ok(7));
    assert_eq!(versions.common(Api::Metadata), Err((8, 13)), "too new");
    assert_eq!(versions.common(Api::SaslHandshake), Err((0, -1)));
    let refused = answer.with_error_code(35);
    assert_eq!(read_by_us::<ApiVersions>(&refused, 0), Err(Code(35)));
}

#[test]
fn metadata_names_leaders_and_their_epochs() {
    use theirs::metadata_response::{
        MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
    };
    let asked: theirs::MetadataRequest = read_by_them(
        &Metadata {
            topics: &["orders", "bills"],
        },
        7,
    );
    let names: Vec<_> = asked.topics.expect("topics").into_iter().collect();
    assert_eq!(names.len(), 2);
    assert_eq!(names[1].name, Some(topic("bills")));
    assert!(!asked.allow_auto_topic_creation);

    let partition = |index, code, leader| {
        MetadataResponsePartition::default()
            .with_partition_index(index)
            .with_error_code(code)
            .with_leader_id(theirs::BrokerId(leader))
            .with_leader_epoch(4)
            .with_replica_nodes(vec![theirs::BrokerId(1), theirs::BrokerId(2)])
    };
    let told = |name: &str, code, partitions| {
        MetadataResponseTopic::default()
            .with_name(Some(topic(name)))
            .with_error_code(code)
            .with_partitions(partitions)
    };
    let answer = theirs::MetadataResponse::default()
        .with_cluster_id(Some(text("cluster")))
        .with_brokers(vec![
            MetadataResponseBroker::default()
                .with_node_id(theirs::BrokerId(1))
                .with_host(text("::1"))
                .with_port(9093)
                .with_rack(Some(text("a"))),
        ])
        .with_topics(vec![
            told(
                "orders",
                0,
                vec![partition(0, 0, 1), partition(1, 5, -1), partition(2, 9, 2)],
            ),
            told("bills", 3, Vec::new()),
        ]);
    let map = read_by_us::<Metadata<'_>>(&answer, 7);
    assert_eq!(map.cluster_id.as_deref(), Some("cluster"));
    assert_eq!(map.brokers[0].address.to_string(), "[::1]:9093");
    assert_eq!(map.brokers[0].rack.as_deref(), Some("a"));
    let leaders = map.topics[0].partitions.as_ref().expect("partitions");
    let leaders: Vec<_> = leaders.iter().map(|p| p.leader).collect();
    let led = |broker| Ok(Leader { broker, epoch: 4 });
    assert_eq!(leaders, [led(1), Err(Code(5)), led(2)]);
    assert_eq!(map.topics[1].partitions, Err(Code(3)));
}

#[test]
fn sasl_is_carried() {
    let asked: theirs::SaslHandshakeRequest =
        read_by_them(&SaslHandshake { mechanism: "PLAIN" }, 1);
    assert_eq!(&*asked.mechanism, "PLAIN");
    let answer = theirs::SaslHandshakeResponse::default()
        .with_error_code(33)
        .with_mechanisms(vec![text("GSSAPI")]);
    let others = read_by_us::<SaslHandshake>(&answer, 1).expect_err("another one");
    assert_eq!(
        (others.code, others.mechanisms),
        (Code(33), vec!["GSSAPI".into()])
    );
    for version in 0..=1 {
        let asked: theirs::SaslAuthenticateRequest =
            read_by_them(&SaslAuthenticate { bytes: b"me" }, version);
        assert_eq!(asked.auth_bytes, "me");
        let mut answer = theirs::SaslAuthenticateResponse::default().with_auth_bytes("you".into());
        if version == 1 {
            answer = answer.with_session_lifetime_ms(3000);
        }
        let step = Step {
            bytes: "you".into(),
            session: (version == 1).then_some(Duration::from_secs(3)),
        };
        let read = read_by_us::<SaslAuthenticate<'_>>(&answer, version);
        assert_eq!(read, Ok(step));
        let refused = answer
            .with_error_code(58)
            .with_error_message(Some(text("no")));
        let read = read_by_us::<SaslAuthenticate<'_>>(&refused, version);
        assert_eq!(read, Err("no".into()));
    }
}

#[test]
fn a_producer_id_and_the_end_of_an_epoch_come_back() {
    let asked: theirs::InitProducerIdRequest = read_by_them(&InitProducerId, 1);
    assert_eq!(asked.transactional_id, None);
    let answer = theirs::InitProducerIdResponse::default()
        .with_producer_id(theirs::ProducerId(9))
        .with_producer_epoch(2);
    let producer = ProducerId { id: 9, epoch: 2 };
    assert_eq!(read_by_us::<InitProducerId>(&answer, 1), Ok(producer));

    use theirs::offset_for_leader_epoch_response as epochs;
    let partition = TopicPartition::new("orders", 3);
    for version in 2..=3 {
        let request = OffsetForLeaderEpoch {
            partition: &partition,
            current: 7,
            epoch: 5,
        };
        let asked: theirs::OffsetForLeaderEpochRequest = read_by_them(&request, version);
        let of = &asked.topics[0].partitions[0];
        let numbers = (of.partition, of.current_leader_epoch, of.leader_epoch);
        assert_eq!(numbers, (3, 7, 5));
        let end = epochs::EpochEndOffset::default()
            .with_partition(3)
            .with_leader_epoch(4)
            .with_end_offset(100);
        let answer = theirs::OffsetForLeaderEpochResponse::default().with_topics(vec![
            epochs::OffsetForLeaderTopicResult::default()
                .with_topic(topic("orders"))
                .with_partitions(vec![end]),
        ]);
        let end = EpochEnd { epoch: 4, end: 100 };
        assert_eq!(
            read_by_us::<OffsetForLeaderEpoch<'_>>(&answer, version),
            Ok(end)
        );
    }
}

#[test]
fn a_fetch_names_what_changes_and_lends_its_batches_from_the_frame() {
    use theirs::fetch_response::{AbortedTransaction, FetchableTopicResponse, PartitionData};
    let want = |name: &str, partition, from| Want {
        partition: TopicPartition::new(name, partition),
        epoch: 2,
        from,
        most: 1000,
    };
    let partitions = [want("a", 0, 5), want("a", 1, 6), want("b", 0, 7)];
    let forgotten = [TopicPartition::new("c", 4)];
    for version in 10..=11 {
        let request = Fetch {
            wait: Duration::from_millis(500),
            most: 4000,
            session: Session { id: 3, epoch: 8 },
            partitions: &partitions,
            forgotten: &forgotten,
            rack: "here",
        };
        let asked: theirs::FetchRequest = read_by_them(&request, version);
        assert_eq!((asked.replica_id.0, asked.isolation_level), (-1, 1));
        assert_eq!(
            (asked.max_wait_ms, asked.min_bytes, asked.max_bytes),
            (500, 1, 4000)
        );
        assert_eq!((asked.session_id, asked.session_epoch), (3, 8));
        assert_eq!(asked.topics.len(), 2);
        let second = &asked.topics[0].partitions[1];
        assert_eq!((second.partition, second.fetch_offset), (1, 6));
        assert_eq!(
            (second.current_leader_epoch, second.partition_max_bytes),
            (2, 1000)
        );
        assert_eq!(asked.forgotten_topics_data[0].partitions, [4]);
        assert_eq!(&*asked.rack_id, if version == 11 { "here" } else { "" });

        let mut good = PartitionData::default()
            .with_partition_index(1)
            .with_high_watermark(90)
            .with_last_stable_offset(80)
            .with_log_start_offset(3)
            .with_aborted_transactions(Some(vec![
                AbortedTransaction::default()
                    .with_producer_id(theirs::ProducerId(11))
                    .with_first_offset(60),
            ]))
            .with_records(Some("batches".into()));
        if version == 11 {
            good = good.with_preferred_read_replica(theirs::BrokerId(2));
        }
        let bad = PartitionData::default()
            .with_partition_index(0)
            .with_error_code(6)
            .with_records(None);
        let answer = theirs::FetchResponse::default()
            .with_throttle_time_ms(20)
            .with_session_id(3)
            .with_responses(vec![
                FetchableTopicResponse::default()
                    .with_topic(topic("a"))
                    .with_partitions(vec![good, bad]),
            ]);
        let frame = encoded(&answer, version);
        let fetched = super::answer::<Fetch<'_>>(version, &frame).expect("an answer");
        assert_eq!(fetched.throttle, Duration::from_millis(20));
        assert_eq!(fetched.session, Ok(3));
        let read = fetched.partitions[0].read.as_ref().expect("no code");
        assert_eq!(
            (read.high_watermark, read.last_stable, read.log_start),
            (90, 80, 3)
        );
        assert_eq!(read.aborted, [(11, 60)]);
        assert_eq!(read.nearer, (version == 11).then_some(2));
        assert_eq!(read.batches, "batches");
        assert!(
            frame.as_ptr_range().contains(&read.batches.as_ptr()),
            "not copied"
        );
        assert_eq!(fetched.partitions[1].partition, TopicPartition::new("a", 0));
        assert_eq!(fetched.partitions[1].read, Err(Code(6)));
    }
}

#[test]
fn a_session_goes_on_and_round() {
    let begun = Session::NEW.next(5);
    assert_eq!(begun, Session { id: 5, epoch: 1 });
    assert_eq!(begun.next(5), Session { id: 5, epoch: 2 });
    let last = Session {
        id: 5,
        epoch: i32::MAX,
    };
    assert_eq!(last.next(5), Session { id: 5, epoch: 1 });
    assert_eq!(begun.next(0), Session::NEW, "the broker keeps none");
}

#[test]
fn a_produce_carries_batches_and_its_answer_names_records() {
    use theirs::produce_response::{
        BatchIndexAndErrorMessage, PartitionProduceResponse, TopicProduceResponse,
    };
    // Longer ones are lent to the frame, shorter ones copied.
    let contents = [5, 70_000, 4096].map(|length| Bytes::from(vec![length as u8; length]));
    let places = [("a", 0), ("a", 2), ("b", 0)];
    let parcels = places.iter().zip(&contents);
    let parcels = parcels.map(|((name, partition), batch)| Parcel {
        partition: TopicPartition::new(*name, *partition),
        batch,
    });
    let batches: Vec<Parcel<'_>> = parcels.collect();
    for version in 7..=8 {
        let request = Produce {
            patience: Duration::from_secs(30),
            batches: &batches,
        };
        let asked: theirs::ProduceRequest = read_by_them(&request, version);
        assert_eq!((asked.acks, asked.timeout_ms), (-1, 30_000));
        assert_eq!(asked.transactional_id, None);
        let topics = asked.topic_data.iter();
        let read = topics.flat_map(|t| t.partition_data.iter().map(|p| (&t.name, p)));
        let read: Vec<_> = read.map(|(t, p)| (t, p.index, p.records.clone())).collect();
        let [a, b] = [topic("a"), topic("b")];
        let [first, second, third] = contents.clone().map(Some);
        assert_eq!(read, [(&a, 0, first), (&a, 2, second), (&b, 0, third)]);

        let good = PartitionProduceResponse::default()
            .with_index(0)
            .with_base_offset(70);
        // The broker had it from before.
        let twice = good.clone().with_index(1).with_log_append_time_ms(1000);
        let mut bad = PartitionProduceResponse::default()
            .with_index(2)
            .with_error_code(87);
        if version == 8 {
            let blamed = BatchIndexAndErrorMessage::default()
                .with_batch_index(4)
                .with_batch_index_error_message(Some(text("null key")));
            bad = bad
                .with_record_errors(vec![blamed])
                .with_error_message(Some(text("invalid")));
        }
        let answer = theirs::ProduceResponse::default()
            .with_throttle_time_ms(5)
            .with_responses(vec![
                TopicProduceResponse::default()
                    .with_name(topic("a"))
                    .with_partition_responses(vec![good, bad, twice]),
            ]);
        let produced = read_by_us::<Produce<'_>>(&answer, version);
        assert_eq!(produced.throttle, Duration::from_millis(5));
        let there = |time| Ok(Place { base: 70, time });
        assert_eq!(produced.partitions[0].taken, there(None));
        let refusal = match version {
            8 => Refusal {
                code: Code(87),
                records: vec![(4, Some("null key".into()))],
                words: Some("invalid".into()),
            },
            _ => Refusal {
                code: Code(87),
                records: Vec::new(),
                words: None,
            },
        };
        assert_eq!(produced.partitions[1].taken, Err(refusal));
        assert_eq!(produced.partitions[2].taken, there(Some(1000)));
    }
}

#[test]
fn a_count_is_not_believed() {
    let mut frame = vec![0; 4];
    frame.extend_from_slice(&i32::MAX.to_be_bytes());
    let short = wire::Malformed::Short {
        wanted: i32::MAX as usize,
        left: 0,
    };
    let read = answer::<Metadata<'_>>(7, &frame.into());
    assert_eq!(read, Err(short.into()));
}

/// Any bytes as each answer: an answer or an error, whatever they are.
fn read_as_each(bytes: &Bytes) {
    let _ = answer::<ApiVersions>(0, bytes);
    let _ = answer::<Metadata<'_>>(7, bytes);
    let _ = answer::<SaslHandshake>(1, bytes);
    let _ = answer::<SaslAuthenticate<'_>>(1, bytes);
    let _ = answer::<InitProducerId>(1, bytes);
    let _ = answer::<OffsetForLeaderEpoch<'_>>(3, bytes);
    for version in 10..=11 {
        let _ = answer::<Fetch<'_>>(version, bytes);
    }
    for version in 7..=8 {
        let _ = answer::<Produce<'_>>(version, bytes);
    }
}

proptest! {
    #[test]
    fn any_bytes_end_in_an_answer_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        read_as_each(&bytes.into());
    }

    #[test]
    fn so_does_a_damaged_answer(at in 0usize..200, to: u8, cut in 0usize..200) {
        use theirs::fetch_response::{FetchableTopicResponse, PartitionData};
        let partition = PartitionData::default().with_records(Some("batches".into()));
        let responses = vec![
            FetchableTopicResponse::default()
                .with_topic(topic("orders"))
                .with_partitions(vec![partition; 3]),
        ];
        let answer = theirs::FetchResponse::default().with_responses(responses);
        let mut bytes = encoded(&answer, 11).to_vec();
        let length = bytes.len();
        bytes[at % length] = to;
        bytes.truncate(length - cut % length);
        read_as_each(&bytes.into());
    }
}
