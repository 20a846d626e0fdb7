//! Brokers that are played: they keep logs of batches, elect whom the test says, and fail as it says.

use crate::broker::address::Address;
use crate::broker::message::Api;
use crate::broker::message::api_versions::all_of_ours;
use crate::record::TopicPartition;
use crate::wire::codec::{Codec, Compression, Compressor};
use crate::wire::cut::{Cut, Cuts};
use crate::wire::header::Stamp;
use crate::wire::writer::{Piece, Writer, Written};
use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::fetch_response::{
    AbortedTransaction, FetchableTopicResponse, PartitionData,
};
use kafka_protocol::messages::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use kafka_protocol::messages::offset_for_leader_epoch_response::{
    EpochEndOffset, OffsetForLeaderTopicResult,
};
use kafka_protocol::messages::{self as theirs, BrokerId, TopicName};
use kafka_protocol::protocol::{Decodable, Encodable, StrBytes};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// What becomes of the next request of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The connection ends instead of an answer.
    Close,
    /// The whole answer has this code.
    Code(i16),
    /// Every partition has this code.
    Partitions(i16),
    /// A byte of every batch is another one.
    Spoil,
}

/// A partition's log.
#[derive(Clone, Debug, Default)]
pub struct Log {
    pub leader: i32,
    pub epoch: i32,
    pub begin: i64,
    pub batches: Vec<Bytes>,
    pub end: i64,
    /// The end, where no transaction is open.
    pub stable: Option<i64>,
    pub aborted: Vec<(i64, i64)>,
    /// Where earlier epochs ended.
    pub ends: BTreeMap<i32, i64>,
    /// The replica that consumers are sent to.
    pub nearer: Option<i32>,
}

/// All that the brokers know.
#[derive(Default)]
pub struct State {
    ports: BTreeMap<i32, u16>,
    pub logs: BTreeMap<TopicPartition, Log>,
    pub faults: VecDeque<(Api, Fault)>,
    /// Requests so far: kind, broker.
    pub heard: Vec<(i16, i32)>,
    /// The most bytes that a fetch asked for, of each.
    pub asked: Vec<i32>,
    /// How long a fetch would have waited, in milliseconds, of each.
    pub waits: Vec<i32>,
    /// By number.
    sessions: BTreeMap<i32, Session>,
}

/// What a broker remembers.
#[derive(Default)]
struct Session {
    epoch: i32,
    /// First offset, epoch of the leader, bytes.
    wanted: BTreeMap<TopicPartition, (i64, i32, i32)>,
    /// Said to be in trouble last: the next answer names them, whatever it is.
    owed: BTreeSet<TopicPartition>,
}

/// Brokers of one cluster.
pub struct Played {
    state: Arc<Mutex<State>>,
    first: u16,
}

impl Played {
    /// Starts brokers 1 to `brokers`; their threads end with the test's process.
    pub fn start(brokers: i32) -> Self {
        let state = Arc::new(Mutex::new(State::default()));
        for broker in 1..=brokers {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
            let port = listener.local_addr().expect("an address").port();
            state.lock().expect("state").ports.insert(broker, port);
            let shared = state.clone();
            std::thread::spawn(move || {
                for stream in listener.incoming().map_while(Result::ok) {
                    let shared = shared.clone();
                    std::thread::spawn(move || while serve(&stream, broker, &shared).is_some() {});
                }
            });
        }
        let first = state.lock().expect("state").ports[&1];
        Self { state, first }
    }

    pub fn bootstrap(&self) -> Address {
        Address::new("127.0.0.1", self.first)
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("state")
    }

    /// A new partition, led by `leader` in epoch 0.
    pub fn create(&self, partition: &TopicPartition, leader: i32) {
        let log = Log {
            leader,
            ..Log::default()
        };
        self.state().logs.insert(partition.clone(), log);
    }

    /// Appends a batch of these values.
    pub fn append(&self, partition: &TopicPartition, values: &[&str]) {
        let mut state = self.state();
        let log = state.logs.get_mut(partition).expect("a log");
        let batch = batch(log.end, log.epoch, values, Codec::None);
        log.end += values.len() as i64;
        log.batches.push(batch);
    }

    /// Another broker leads from now on, its log as long as the last one's.
    pub fn elect(&self, partition: &TopicPartition, leader: i32) {
        let mut state = self.state();
        let log = state.logs.get_mut(partition).expect("a log");
        log.ends.insert(log.epoch, log.end);
        (log.leader, log.epoch) = (leader, log.epoch + 1);
    }

    /// How many requests of one kind came.
    pub fn heard(&self, api: Api) -> usize {
        let state = self.state();
        state
            .heard
            .iter()
            .filter(|(key, _)| *key == api.key())
            .count()
    }

    pub fn fail(&self, api: Api, fault: Fault) {
        self.state().faults.push_back((api, fault));
    }
}

/// A batch as a broker has it in its log.
pub fn batch(base: i64, epoch: i32, values: &[&str], codec: Codec) -> Bytes {
    let compression = Compression { codec, level: None };
    let mut writer = Writer::default();
    let none = crate::record::Headers::Changed(Vec::new());
    for value in values {
        writer.push(&Piece {
            timestamp: Some(1000),
            key: None,
            value: Some(value.as_bytes()),
            headers: Written::Each(&none),
        });
    }
    finished(writer, compression, base, epoch)
}

fn finished(mut writer: Writer, compression: Compression, base: i64, epoch: i32) -> Bytes {
    let stamp = Stamp {
        producer_id: -1,
        producer_epoch: -1,
        base_sequence: -1,
    };
    let mut compressor = Compressor::new(compression).expect("a codec");
    let finished = writer.finish(&mut compressor, stamp);
    let mut bytes = finished.expect("a batch");
    bytes[..8].copy_from_slice(&base.to_be_bytes());
    bytes[12..16].copy_from_slice(&epoch.to_be_bytes());
    bytes.into()
}

/// A marker that ends a transaction, aborted.
pub fn abort(base: i64, producer: i64) -> Bytes {
    let compression = Compression {
        codec: Codec::None,
        level: None,
    };
    let mut writer = Writer::default();
    let none = crate::record::Headers::Changed(Vec::new());
    writer.push(&Piece {
        timestamp: Some(1000),
        // Version 0, type 0.
        key: Some(&[0; 4]),
        value: Some(&[0; 6]),
        headers: Written::Each(&none),
    });
    let control = 0x30;
    marked(&finished(writer, compression, base, 0), control, producer)
}

/// The same, of a transaction; with attributes and producer of the test's choice.
pub fn marked(batch: &Bytes, attributes: i16, producer: i64) -> Bytes {
    let mut bytes = batch.to_vec();
    bytes[21..23].copy_from_slice(&attributes.to_be_bytes());
    bytes[43..51].copy_from_slice(&producer.to_be_bytes());
    let checksum = crc32c::crc32c(&bytes[21..]);
    bytes[17..21].copy_from_slice(&checksum.to_be_bytes());
    bytes.into()
}

fn serve(mut stream: &TcpStream, broker: i32, state: &Mutex<State>) -> Option<()> {
    let mut length = [0; 4];
    stream.read_exact(&mut length).ok()?;
    let mut frame = vec![0; u32::from_be_bytes(length) as usize];
    stream.read_exact(&mut frame).ok()?;
    let mut body = Bytes::from(frame);
    let key = i16::from_be_bytes(body[..2].try_into().ok()?);
    let version = i16::from_be_bytes(body[2..4].try_into().ok()?);
    let correlation = body.slice(4..8);
    let client = i16::from_be_bytes(body[8..10].try_into().ok()?);
    body = body.slice(10 + client.max(0) as usize..);
    let answer = {
        let mut state = state.lock().expect("state");
        state.heard.push((key, broker));
        let is_meant = |(api, _): &(Api, Fault)| api.key() == key;
        let fault = state.faults.iter().position(is_meant);
        let fault = fault.and_then(|at| state.faults.remove(at)).map(|(_, f)| f);
        if fault == Some(Fault::Close) {
            return None;
        }
        state.answer(key, version, body, broker, fault)
    };
    // A broker holds a fetch until there is something; here it does so for a moment.
    if answer.len() < 40 && key == Api::Fetch.key() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let length = u32::try_from(answer.len() + 4).ok()?;
    stream.write_all(&length.to_be_bytes()).ok()?;
    stream.write_all(&correlation).ok()?;
    stream.write_all(&answer).ok()
}

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

fn encoded(answer: &impl Encodable, version: i16) -> Bytes {
    let mut bytes = BytesMut::new();
    answer.encode(&mut bytes, version).expect("it is encoded");
    bytes.freeze()
}

impl State {
    fn answer(
        &mut self,
        key: i16,
        version: i16,
        mut body: Bytes,
        broker: i32,
        fault: Option<Fault>,
    ) -> Bytes {
        match key {
            18 => match version {
                0 => all_of_ours().into(),
                // In the form of version 0: who asked reads that and asks again.
                _ => [&35i16.to_be_bytes()[..], &all_of_ours()[2..]]
                    .concat()
                    .into(),
            },
            3 => encoded(&self.metadata(fault), version),
            23 => {
                let asked = theirs::OffsetForLeaderEpochRequest::decode(&mut body, version);
                encoded(&self.epoch_ends(&asked.expect("a request"), fault), version)
            }
            1 => {
                let asked = theirs::FetchRequest::decode(&mut body, version);
                encoded(
                    &self.fetch(&asked.expect("a request"), broker, fault),
                    version,
                )
            }
            other => panic!("nobody plays {other}"),
        }
    }

    fn metadata(&self, fault: Option<Fault>) -> theirs::MetadataResponse {
        let brokers = self.ports.iter().map(|(id, port)| {
            MetadataResponseBroker::default()
                .with_node_id(BrokerId(*id))
                .with_host(text("127.0.0.1"))
                .with_port(i32::from(*port))
        });
        let mut topics: BTreeMap<&str, Vec<MetadataResponsePartition>> = BTreeMap::new();
        for (tp, log) in &self.logs {
            let partition = MetadataResponsePartition::default()
                .with_partition_index(tp.partition)
                .with_leader_id(BrokerId(log.leader))
                .with_leader_epoch(log.epoch);
            topics.entry(&tp.topic).or_default().push(partition);
        }
        let topics = topics.into_iter().map(|(name, partitions)| {
            let code = match fault {
                Some(Fault::Code(code) | Fault::Partitions(code)) => code,
                _ => 0,
            };
            MetadataResponseTopic::default()
                .with_name(Some(TopicName(text(name))))
                .with_error_code(code)
                .with_partitions(partitions)
        });
        theirs::MetadataResponse::default()
            .with_brokers(brokers.collect())
            .with_topics(topics.collect())
    }

    fn epoch_ends(
        &self,
        asked: &theirs::OffsetForLeaderEpochRequest,
        fault: Option<Fault>,
    ) -> theirs::OffsetForLeaderEpochResponse {
        let topics = asked.topics.iter().map(|topic| {
            let ends = topic.partitions.iter().map(|p| {
                let tp = TopicPartition::new(&*topic.topic.0, p.partition);
                let log = &self.logs[&tp];
                let end = log.ends.get(&p.leader_epoch).copied().unwrap_or(log.end);
                let code = match fault {
                    Some(Fault::Code(code) | Fault::Partitions(code)) => code,
                    _ => 0,
                };
                EpochEndOffset::default()
                    .with_error_code(code)
                    .with_partition(p.partition)
                    .with_leader_epoch(p.leader_epoch)
                    .with_end_offset(end)
            });
            OffsetForLeaderTopicResult::default()
                .with_topic(topic.topic.clone())
                .with_partitions(ends.collect())
        });
        theirs::OffsetForLeaderEpochResponse::default().with_topics(topics.collect())
    }

    fn fetch(
        &mut self,
        asked: &theirs::FetchRequest,
        broker: i32,
        fault: Option<Fault>,
    ) -> theirs::FetchResponse {
        self.asked.push(asked.max_bytes);
        self.waits.push(asked.max_wait_ms);
        let whole = |code| theirs::FetchResponse::default().with_error_code(code);
        if let Some(Fault::Code(code)) = fault {
            return whole(code);
        }
        let id = match asked.session_id {
            0 => 100 + broker,
            id => id,
        };
        let session = self.sessions.entry(id).or_default();
        // -1: in no session at all.
        if asked.session_epoch <= 0 {
            *session = Session {
                epoch: asked.session_epoch,
                ..Session::default()
            };
        }
        if session.epoch != asked.session_epoch {
            return whole(71);
        }
        session.epoch += 1;
        for topic in &asked.topics {
            for p in &topic.partitions {
                let tp = TopicPartition::new(&*topic.topic.0, p.partition);
                let want = (
                    p.fetch_offset,
                    p.current_leader_epoch,
                    p.partition_max_bytes,
                );
                session.wanted.insert(tp, want);
            }
        }
        for topic in &asked.forgotten_topics_data {
            for partition in &topic.partitions {
                let tp = TopicPartition::new(&*topic.topic.0, *partition);
                session.wanted.remove(&tp);
            }
        }
        let mut topics = Vec::new();
        let incremental = asked.session_epoch > 0;
        for (tp, (from, epoch, most)) in &session.wanted {
            let answer = self.logs.get(tp).map_or_else(
                || PartitionData::default().with_error_code(3),
                |log| portion(log, broker, *from, *epoch, *most, fault),
            );
            let is_owed = match answer.error_code {
                0 => session.owed.remove(tp),
                _ => session.owed.insert(tp.clone()),
            };
            let is_news = is_owed
                || answer.error_code != 0
                || answer.preferred_read_replica.0 >= 0
                || answer.records.as_ref().is_some_and(|r| !r.is_empty())
                || !incremental
                || asked.topics.iter().any(|t| *t.topic.0 == *tp.topic);
            if is_news {
                topics.push(
                    FetchableTopicResponse::default()
                        .with_topic(TopicName(text(&tp.topic)))
                        .with_partitions(vec![answer.with_partition_index(tp.partition)]),
                );
            }
        }
        theirs::FetchResponse::default()
            .with_session_id(id)
            .with_responses(topics)
    }
}

fn portion(
    log: &Log,
    broker: i32,
    from: i64,
    epoch: i32,
    most: i32,
    fault: Option<Fault>,
) -> PartitionData {
    let refused = |code| PartitionData::default().with_error_code(code);
    match () {
        () if log.leader != broker && log.nearer != Some(broker) => return refused(6),
        () if epoch >= 0 && epoch < log.epoch => return refused(74),
        () if epoch > log.epoch => return refused(75),
        () if from < log.begin || from > log.end => return refused(1),
        () => {}
    }
    if let Some(Fault::Partitions(code)) = fault {
        return refused(code);
    }
    if let Some(nearer) = log.nearer.filter(|nearer| *nearer != broker) {
        return PartitionData::default().with_preferred_read_replica(BrokerId(nearer));
    }
    let stable = log.stable.unwrap_or(log.end);
    let mut bytes = BytesMut::new();
    for batch in &log.batches {
        let last = match Cuts::of(batch).next() {
            Some(Ok(Cut::Batch(raw))) => raw.header().last_offset(),
            Some(Ok(Cut::Message(raw))) => raw.offset(),
            other => panic!("no batch: {other:?}"),
        };
        if last < from || last >= stable {
            continue;
        }
        if !bytes.is_empty() && bytes.len() + batch.len() > most as usize {
            break;
        }
        let at = bytes.len();
        bytes.extend_from_slice(batch);
        if fault == Some(Fault::Spoil) {
            bytes[at + 30] ^= 1;
        }
    }
    let aborted = log.aborted.iter().map(|(producer, first)| {
        AbortedTransaction::default()
            .with_producer_id((*producer).into())
            .with_first_offset(*first)
    });
    PartitionData::default()
        .with_high_watermark(log.end)
        .with_last_stable_offset(stable)
        .with_log_start_offset(log.begin)
        .with_aborted_transactions(Some(aborted.collect()))
        .with_records(Some(bytes.freeze()))
}
