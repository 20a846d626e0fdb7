//! The pass-through probe: batches go from fetch to produce as they are, only their heads are rewritten. No idempotence, no
//! group, no tracker, one request at a time: what is left is what the protocol itself costs.

use crate::job::Job;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::{
    ApiKey, FetchRequest, FetchResponse, MetadataRequest, MetadataResponse, ProduceRequest,
    ProduceResponse, RequestHeader, ResponseHeader, TopicName,
};
use kafka_protocol::protocol::{Decodable, Encodable, StrBytes};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;

/// Versions that need no topic ids.
const METADATA: i16 = 8;
const FETCH: i16 = 11;
const PRODUCE: i16 = 9;
/// What one answer may hold, in all and of a partition.
const FETCH_BYTES: i32 = 16 << 20;
const PARTITION_BYTES: i32 = 1 << 20;
/// Where things stand in a batch.
const LENGTH: usize = 8;
const LEADER_EPOCH: std::ops::Range<usize> = 12..16;
const CHECKSUM: std::ops::Range<usize> = 17..21;
const ATTRIBUTES: std::ops::Range<usize> = 21..23;
const LAST_DELTA: usize = 23;
/// Producer id, its epoch, the first sequence number: all unset.
const PRODUCER: std::ops::Range<usize> = 43..57;
const COUNT: usize = 57;
const HEAD: usize = 61;
const TRANSACTIONAL: i16 = 0x10;
const CONTROL: i16 = 0x20;

type Place = (String, i32);

/// Copies, in this process.
pub fn run(job: &Job) {
    let mut source = Broker::connect(&job.source);
    let mut target = Broker::connect(&job.target);
    let mut next: BTreeMap<Place, i64> = source
        .partitions(&job.topics)
        .into_iter()
        .map(|place| (place, 0))
        .collect();
    let mut seen = 0;
    while seen < job.records {
        let mut waiting: BTreeMap<Place, Vec<Bytes>> = BTreeMap::new();
        for (place, records) in source.fetch(&next) {
            let position = next.get_mut(&place).expect("asked for");
            seen += take(records, position, waiting.entry(place).or_default());
        }
        // A request takes one batch of a partition: so many rounds as the longest row has batches.
        waiting.values_mut().for_each(|row| row.reverse());
        loop {
            let round: Vec<(&Place, Bytes)> = waiting
                .iter_mut()
                .filter_map(|(place, row)| Some((place, row.pop()?)))
                .collect();
            if round.is_empty() {
                break;
            }
            target.produce(round);
        }
    }
    assert_eq!(seen, job.records, "as many as there are");
}

/// Cuts batches, makes them fit to be sent, and moves the position behind them. How many records they hold.
fn take(mut records: Bytes, position: &mut i64, row: &mut Vec<Bytes>) -> u64 {
    let mut count = 0;
    while records.len() >= HEAD {
        let length = (&records[LENGTH..]).get_i32() as usize + LENGTH + 4;
        if records.len() < length {
            break;
        }
        let batch = records.split_to(length);
        let (base, attributes) = ((&batch[..]).get_i64(), (&batch[ATTRIBUTES]).get_i16());
        let checksum = (&batch[CHECKSUM]).get_u32();
        assert_eq!(checksum, crc32c::crc32c(&batch[ATTRIBUTES.start..]));
        *position = base + i64::from((&batch[LAST_DELTA..]).get_i32()) + 1;
        if attributes & CONTROL == 0 {
            count += u64::from((&batch[COUNT..]).get_u32());
            row.push(fit(&batch, attributes & !TRANSACTIONAL));
        }
    }
    count
}

fn fit(batch: &[u8], attributes: i16) -> Bytes {
    let mut own = BytesMut::from(batch);
    own[..LENGTH].fill(0);
    own[LEADER_EPOCH].fill(0xff);
    own[ATTRIBUTES].copy_from_slice(&attributes.to_be_bytes());
    own[PRODUCER].fill(0xff);
    let checksum = crc32c::crc32c(&own[ATTRIBUTES.start..]);
    own[CHECKSUM].copy_from_slice(&checksum.to_be_bytes());
    own.freeze()
}

/// A connection to the one broker of a cluster.
struct Broker {
    stream: TcpStream,
    asked: i32,
}

impl Broker {
    fn connect(at: &str) -> Self {
        let stream = TcpStream::connect(at).expect("the broker listens");
        stream.set_nodelay(true).expect("a socket's option");
        Self { stream, asked: 0 }
    }

    fn partitions(&mut self, topics: &[String]) -> Vec<Place> {
        let wanted = topics
            .iter()
            .map(|topic| MetadataRequestTopic::default().with_name(Some(name(topic))))
            .collect();
        let request = MetadataRequest::default().with_topics(Some(wanted));
        let answer: MetadataResponse = self.ask(ApiKey::Metadata, METADATA, &request);
        let of = |topic: &kafka_protocol::messages::metadata_response::MetadataResponseTopic| {
            let name = topic.name.as_ref().expect("by name").to_string();
            let numbers = topic.partitions.iter().map(|p| p.partition_index);
            numbers.map(|n| (name.clone(), n)).collect::<Vec<Place>>()
        };
        answer.topics.iter().flat_map(of).collect()
    }

    fn fetch(&mut self, next: &BTreeMap<Place, i64>) -> Vec<(Place, Bytes)> {
        let mut topics: BTreeMap<&str, Vec<FetchPartition>> = BTreeMap::new();
        for ((topic, partition), offset) in next {
            let wanted = FetchPartition::default()
                .with_partition(*partition)
                .with_fetch_offset(*offset)
                .with_current_leader_epoch(-1)
                .with_partition_max_bytes(PARTITION_BYTES);
            topics.entry(topic).or_default().push(wanted);
        }
        let topics = topics.into_iter().map(|(topic, partitions)| {
            FetchTopic::default()
                .with_topic(name(topic))
                .with_partitions(partitions)
        });
        let request = FetchRequest::default()
            .with_max_wait_ms(100)
            .with_min_bytes(1)
            .with_max_bytes(FETCH_BYTES)
            .with_isolation_level(1)
            .with_topics(topics.collect());
        let answer: FetchResponse = self.ask(ApiKey::Fetch, FETCH, &request);
        let mut found = Vec::new();
        for topic in answer.responses {
            for partition in topic.partitions {
                assert_eq!(partition.error_code, 0, "{}", *topic.topic);
                let place = (topic.topic.to_string(), partition.partition_index);
                found.push((place, partition.records.unwrap_or_default()));
            }
        }
        found
    }

    fn produce(&mut self, batches: Vec<(&Place, Bytes)>) {
        let mut topics: BTreeMap<&str, Vec<PartitionProduceData>> = BTreeMap::new();
        for ((topic, partition), batch) in batches {
            let data = PartitionProduceData::default()
                .with_index(*partition)
                .with_records(Some(batch));
            topics.entry(topic).or_default().push(data);
        }
        let topics = topics.into_iter().map(|(topic, partitions)| {
            TopicProduceData::default()
                .with_name(name(topic))
                .with_partition_data(partitions)
        });
        let request = ProduceRequest::default()
            .with_acks(-1)
            .with_timeout_ms(30_000)
            .with_topic_data(topics.collect());
        let answer: ProduceResponse = self.ask(ApiKey::Produce, PRODUCE, &request);
        for partition in answer.responses.iter().flat_map(|t| &t.partition_responses) {
            assert_eq!(partition.error_code, 0, "partition {}", partition.index);
        }
    }

    fn ask<A: Decodable>(&mut self, key: ApiKey, version: i16, request: &impl Encodable) -> A {
        self.asked += 1;
        let mut frame = BytesMut::new();
        frame.put_i32(0);
        RequestHeader::default()
            .with_request_api_key(key as i16)
            .with_request_api_version(version)
            .with_correlation_id(self.asked)
            .with_client_id(Some(StrBytes::from_static_str("probe")))
            .encode(&mut frame, key.request_header_version(version))
            .expect("a header");
        request.encode(&mut frame, version).expect("a request");
        let length = u32::try_from(frame.len() - 4).expect("not that long");
        frame[..4].copy_from_slice(&length.to_be_bytes());
        self.stream.write_all(&frame).expect("the broker reads");
        let mut length = [0; 4];
        self.stream.read_exact(&mut length).expect("an answer");
        let mut answer = vec![0; u32::from_be_bytes(length) as usize];
        self.stream.read_exact(&mut answer).expect("all of it");
        let mut answer = Bytes::from(answer);
        ResponseHeader::decode(&mut answer, key.response_header_version(version))
            .expect("a header");
        A::decode(&mut answer, version).expect("an answer")
    }
}

fn name(topic: &str) -> TopicName {
    TopicName(StrBytes::from_string(topic.to_owned()))
}
