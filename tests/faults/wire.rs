//! Kafka's frames, as far as somebody between client and broker has to understand them: who asks what, and how an
//! answer says no.

use bytes::{Bytes, BytesMut};
use kafka_protocol::ResponseError;
use kafka_protocol::messages::fetch_response::{FetchableTopicResponse, PartitionData};
use kafka_protocol::messages::find_coordinator_response::Coordinator;
use kafka_protocol::messages::list_offsets_response::{
    ListOffsetsPartitionResponse, ListOffsetsTopicResponse,
};
use kafka_protocol::messages::metadata_response::MetadataResponseBroker;
use kafka_protocol::messages::offset_commit_response::{
    OffsetCommitResponsePartition, OffsetCommitResponseTopic,
};
use kafka_protocol::messages::offset_fetch_response::OffsetFetchResponseGroup;
use kafka_protocol::messages::produce_request::PartitionProduceData;
use kafka_protocol::messages::produce_response::{PartitionProduceResponse, TopicProduceResponse};
use kafka_protocol::messages::*;
use kafka_protocol::protocol::{Decodable, Encodable, StrBytes};
use kafka_protocol::records::RecordBatchDecoder;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Where the node ids of a front begin.
const FIRST_NODE: i32 = 1;
/// The longest session that a broker takes, in milliseconds.
const LONGEST: i32 = 1_800_000;

/// One frame, without its length; `None` at the end.
pub fn read_frame(mut from: &TcpStream) -> io::Result<Option<Bytes>> {
    let mut length = [0; 4];
    match from.read_exact(&mut length) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        other => other?,
    }
    let mut frame = vec![0; u32::from_be_bytes(length) as usize];
    from.read_exact(&mut frame)?;
    Ok(Some(frame.into()))
}

/// One frame, with its length.
pub fn write_frame(mut to: &TcpStream, frame: &[u8]) -> io::Result<()> {
    let mut bytes = Vec::with_capacity(4 + frame.len());
    bytes.extend((frame.len() as u32).to_be_bytes());
    bytes.extend(frame);
    to.write_all(&bytes)
}

/// A request.
pub struct Asked {
    pub api: ApiKey,
    version: i16,
    correlation: i32,
    header: RequestHeader,
    body: Bytes,
}

fn invalid(error: impl std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error.to_string())
}

impl Asked {
    pub fn read(frame: &Bytes) -> io::Result<Self> {
        let number = |at: usize| {
            let bytes = frame.get(at..at + 2);
            bytes.map(|b| i16::from_be_bytes([b[0], b[1]]))
        };
        let (Some(key), Some(version)) = (number(0), number(2)) else {
            return Err(invalid("a frame without a header"));
        };
        let api = ApiKey::try_from(key).map_err(|()| invalid(format!("api {key}")))?;
        let mut body = frame.clone();
        // A version that nobody speaks has a header that nobody reads; the broker answers it.
        let header = RequestHeader::decode(&mut body, api.request_header_version(version));
        let header = header.map_err(invalid)?;
        Ok(Self {
            api,
            version,
            correlation: header.correlation_id,
            header,
            body,
        })
    }

    fn request<T: Decodable>(&self) -> io::Result<T> {
        T::decode(&mut self.body.clone(), self.version).map_err(invalid)
    }

    fn answer<T: Encodable>(&self, body: &T) -> io::Result<Bytes> {
        let mut bytes = BytesMut::new();
        let header = ResponseHeader::default().with_correlation_id(self.correlation);
        header
            .encode(&mut bytes, self.api.response_header_version(self.version))
            .and_then(|()| body.encode(&mut bytes, self.version))
            .map_err(invalid)?;
        Ok(bytes.freeze())
    }

    fn answered<T: Decodable>(&self, mut frame: Bytes) -> io::Result<T> {
        let header = self.api.response_header_version(self.version);
        ResponseHeader::decode(&mut frame, header).map_err(invalid)?;
        T::decode(&mut frame, self.version).map_err(invalid)
    }

    /// Whether some record that it brings to a topic has this text in it.
    pub fn carries(&self, topic: &str, text: &str) -> bool {
        let Ok(asked) = self.request::<ProduceRequest>() else {
            return false;
        };
        let topics = asked.topic_data.iter().filter(|t| t.name.as_str() == topic);
        let mut partitions = topics.flat_map(|t| &t.partition_data);
        partitions.any(|partition| brings(partition, text))
    }

    /// The same request without the partitions to which it brings such a record; `None` if there are no others.
    pub fn without(&self, topic: &str, text: &str) -> io::Result<Option<Bytes>> {
        let mut asked: ProduceRequest = self.request()?;
        for data in &mut asked.topic_data {
            let is_meant = data.name.as_str() == topic;
            data.partition_data
                .retain(|partition| !(is_meant && brings(partition, text)));
        }
        asked.topic_data.retain(|t| !t.partition_data.is_empty());
        match asked.topic_data.is_empty() {
            true => Ok(None),
            false => self.asking(&asked).map(Some),
        }
    }

    /// The answer to that, with the other partitions refused.
    pub fn refused_beside(&self, answer: Bytes, error: ResponseError) -> io::Result<Bytes> {
        let mut told: ProduceResponse = self.answered(answer)?;
        let refused = refused_produce(&self.request()?, error.code());
        for mut topic in refused.responses {
            let Some(same) = told.responses.iter_mut().find(|t| t.name == topic.name) else {
                told.responses.push(topic);
                continue;
            };
            let is_told = |index| same.partition_responses.iter().any(|p| p.index == index);
            topic.partition_responses.retain(|p| !is_told(p.index));
            same.partition_responses
                .append(&mut topic.partition_responses);
        }
        self.answer(&told)
    }

    fn asking<T: Encodable>(&self, body: &T) -> io::Result<Bytes> {
        let mut bytes = BytesMut::new();
        let header = self.api.request_header_version(self.version);
        self.header
            .encode(&mut bytes, header)
            .and_then(|()| body.encode(&mut bytes, self.version))
            .map_err(invalid)?;
        Ok(bytes.freeze())
    }

    /// What it is in the life of a member.
    pub fn membership(&self) -> io::Result<Membership> {
        let member = |group, id| Member { group, id };
        Ok(match self.api {
            ApiKey::JoinGroup => {
                let asked: JoinGroupRequest = self.request()?;
                if asked.member_id.is_empty() {
                    // It is given a name first, and asks again.
                    return Ok(Membership::Nothing);
                }
                let session = Duration::from_millis(asked.session_timeout_ms as u64);
                Membership::Joins(member(asked.group_id, asked.member_id), session)
            }
            ApiKey::SyncGroup => {
                let asked: SyncGroupRequest = self.request()?;
                Membership::Asks(member(asked.group_id, asked.member_id))
            }
            ApiKey::Heartbeat => {
                let asked: HeartbeatRequest = self.request()?;
                Membership::Asks(member(asked.group_id, asked.member_id))
            }
            ApiKey::OffsetCommit => {
                let asked: OffsetCommitRequest = self.request()?;
                Membership::Asks(member(asked.group_id, asked.member_id))
            }
            ApiKey::LeaveGroup => {
                let asked: LeaveGroupRequest = self.request()?;
                let ids = asked.members.into_iter().map(|m| m.member_id);
                let ids = ids.chain([asked.member_id]);
                Membership::Leaves(ids.map(|id| member(asked.group_id.clone(), id)).collect())
            }
            _ => Membership::Nothing,
        })
    }

    /// Whether the answer to somebody who joins or is in a group says that it is not.
    pub fn is_no_member(&self, answer: &Bytes) -> io::Result<bool> {
        let answer = answer.clone();
        let code = match self.api {
            ApiKey::JoinGroup => self.answered::<JoinGroupResponse>(answer)?.error_code,
            ApiKey::SyncGroup => self.answered::<SyncGroupResponse>(answer)?.error_code,
            ApiKey::Heartbeat => self.answered::<HeartbeatResponse>(answer)?.error_code,
            _ => return Ok(false),
        };
        Ok(code == ResponseError::UnknownMemberId.code())
    }

    /// The same request, with a session and a patience that never end.
    pub fn without_end(&self) -> io::Result<Bytes> {
        let asked: JoinGroupRequest = self.request()?;
        let asked = asked
            .with_session_timeout_ms(LONGEST)
            .with_rebalance_timeout_ms(LONGEST);
        self.asking(&asked)
    }

    /// What a broker answers that does not do it.
    pub fn refusal(&self, error: ResponseError) -> io::Result<Bytes> {
        let code = error.code();
        match self.api {
            ApiKey::Produce => self.answer(&refused_produce(&self.request()?, code)),
            ApiKey::Fetch => self.answer(&refused_fetch(&self.request()?, code)),
            ApiKey::ListOffsets => self.answer(&refused_list(&self.request()?, code)),
            ApiKey::OffsetCommit => self.answer(&refused_commit(&self.request()?, code)),
            ApiKey::OffsetFetch => self.answer(&refused_positions(&self.request()?, code)),
            ApiKey::FindCoordinator => self.answer(&refused_search(&self.request()?, code)),
            ApiKey::InitProducerId => {
                let none = InitProducerIdResponse::default().with_producer_id(ProducerId(-1));
                self.answer(&none.with_error_code(code))
            }
            ApiKey::JoinGroup => self.answer(&JoinGroupResponse::default().with_error_code(code)),
            ApiKey::SyncGroup => self.answer(&SyncGroupResponse::default().with_error_code(code)),
            ApiKey::Heartbeat => self.answer(&HeartbeatResponse::default().with_error_code(code)),
            other => Err(invalid(format!("no test refuses {other:?}"))),
        }
    }

    /// What the nodes of a front tell of themselves, in place of the broker behind them.
    pub fn placed(&self, answer: Bytes, nodes: &Nodes) -> io::Result<Bytes> {
        match self.api {
            ApiKey::Metadata => {
                let mut told: MetadataResponse = self.answered(answer)?;
                told.brokers = nodes.brokers();
                told.controller_id = BrokerId(FIRST_NODE);
                for partition in told.topics.iter_mut().flat_map(|t| &mut t.partitions) {
                    partition.leader_id = BrokerId(nodes.leads);
                    partition.replica_nodes = nodes.ids();
                    partition.isr_nodes = nodes.ids();
                }
                self.answer(&told)
            }
            ApiKey::FindCoordinator => {
                let mut told: FindCoordinatorResponse = self.answered(answer)?;
                let node = nodes.address(nodes.coordinates);
                let host = StrBytes::from_string(node.ip().to_string());
                let id = BrokerId(nodes.coordinates);
                (told.node_id, told.host, told.port) = (id, host.clone(), node.port().into());
                for found in &mut told.coordinators {
                    (found.node_id, found.host, found.port) = (id, host.clone(), told.port);
                }
                self.answer(&told)
            }
            _ => Ok(answer),
        }
    }

    /// The answer with one byte of the first batch of records changed, if it carries several.
    pub fn spoilt(&self, answer: &Bytes) -> io::Result<Option<Bytes>> {
        let mut told: FetchResponse = self.answered(answer.clone())?;
        let partitions = told.responses.iter_mut().flat_map(|t| &mut t.partitions);
        for partition in partitions {
            let Some(records) = &partition.records else {
                continue;
            };
            let first = first_batch(records);
            if first == 0 || first >= records.len() {
                continue;
            }
            let mut bytes = records.to_vec();
            bytes[first - 1] ^= 0xff;
            partition.records = Some(bytes.into());
            return self.answer(&told).map(Some);
        }
        Ok(None)
    }
}

/// Somebody in a group.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Member {
    pub group: GroupId,
    pub id: StrBytes,
}

/// What a request is in the life of a member.
pub enum Membership {
    /// It comes, or comes again, with a session that lasts so long.
    Joins(Member, Duration),
    /// It says that it is there.
    Asks(Member),
    /// They go.
    Leaves(Vec<Member>),
    Nothing,
}

/// The request by which a member leaves its group.
pub fn leave(member: &Member) -> io::Result<Bytes> {
    const VERSION: i16 = 0;
    let leave = LeaveGroupRequest::default()
        .with_group_id(member.group.clone())
        .with_member_id(member.id.clone());
    let header = RequestHeader::default()
        .with_request_api_key(ApiKey::LeaveGroup as i16)
        .with_request_api_version(VERSION);
    let mut bytes = BytesMut::new();
    header
        .encode(
            &mut bytes,
            ApiKey::LeaveGroup.request_header_version(VERSION),
        )
        .and_then(|()| leave.encode(&mut bytes, VERSION))
        .map_err(invalid)?;
    Ok(bytes.freeze())
}

fn has(bytes: &[u8], text: &str) -> bool {
    let mut windows = bytes.windows(text.len());
    windows.any(|window| window == text.as_bytes())
}

/// How long the first batch is.
fn first_batch(records: &[u8]) -> usize {
    let length = records.get(8..12).and_then(|b| b.try_into().ok());
    length.map_or(0, |b| 12 + i32::from_be_bytes(b) as usize)
}

/// Whether some record that goes to a partition has this text in it.
fn brings(partition: &PartitionProduceData, text: &str) -> bool {
    let decoded = partition
        .records
        .clone()
        .map(|mut bytes| RecordBatchDecoder::decode(&mut bytes));
    let Some(Ok(set)) = decoded else {
        return false;
    };
    set.records.iter().any(|record| {
        let headers = record.headers.values().flatten();
        let mut places = [&record.key, &record.value].into_iter().flatten();
        places.any(|bytes| has(bytes, text)) || headers.clone().any(|bytes| has(bytes, text))
    })
}

fn refused_produce(asked: &ProduceRequest, code: i16) -> ProduceResponse {
    let topics = asked.topic_data.iter().map(|topic| {
        let partitions = topic.partition_data.iter().map(|partition| {
            PartitionProduceResponse::default()
                .with_index(partition.index)
                .with_error_code(code)
                .with_base_offset(-1)
                .with_log_append_time_ms(-1)
        });
        TopicProduceResponse::default()
            .with_name(topic.name.clone())
            .with_partition_responses(partitions.collect())
    });
    ProduceResponse::default().with_responses(topics.collect())
}

fn refused_fetch(asked: &FetchRequest, code: i16) -> FetchResponse {
    let topics = asked.topics.iter().map(|topic| {
        let partitions = topic.partitions.iter().map(|partition| {
            PartitionData::default()
                .with_partition_index(partition.partition)
                .with_error_code(code)
                .with_high_watermark(-1)
                .with_records(Some(Bytes::new()))
        });
        FetchableTopicResponse::default()
            .with_topic(topic.topic.clone())
            .with_topic_id(topic.topic_id)
            .with_partitions(partitions.collect())
    });
    FetchResponse::default().with_responses(topics.collect())
}

fn refused_list(asked: &ListOffsetsRequest, code: i16) -> ListOffsetsResponse {
    let topics = asked.topics.iter().map(|topic| {
        let partitions = topic.partitions.iter().map(|partition| {
            ListOffsetsPartitionResponse::default()
                .with_partition_index(partition.partition_index)
                .with_error_code(code)
        });
        ListOffsetsTopicResponse::default()
            .with_name(topic.name.clone())
            .with_partitions(partitions.collect())
    });
    ListOffsetsResponse::default().with_topics(topics.collect())
}

fn refused_commit(asked: &OffsetCommitRequest, code: i16) -> OffsetCommitResponse {
    let topics = asked.topics.iter().map(|topic| {
        let partitions = topic.partitions.iter().map(|partition| {
            OffsetCommitResponsePartition::default()
                .with_partition_index(partition.partition_index)
                .with_error_code(code)
        });
        OffsetCommitResponseTopic::default()
            .with_name(topic.name.clone())
            .with_partitions(partitions.collect())
    });
    OffsetCommitResponse::default().with_topics(topics.collect())
}

fn refused_positions(asked: &OffsetFetchRequest, code: i16) -> OffsetFetchResponse {
    let groups = asked.groups.iter().map(|group| {
        OffsetFetchResponseGroup::default()
            .with_group_id(group.group_id.clone())
            .with_error_code(code)
    });
    let none = OffsetFetchResponse::default().with_groups(groups.collect());
    none.with_error_code(code)
}

fn refused_search(asked: &FindCoordinatorRequest, code: i16) -> FindCoordinatorResponse {
    let keys = asked.coordinator_keys.iter().map(|key| {
        Coordinator::default()
            .with_key(key.clone())
            .with_node_id(BrokerId(-1))
            .with_error_code(code)
    });
    FindCoordinatorResponse::default()
        .with_coordinators(keys.collect())
        .with_node_id(BrokerId(-1))
        .with_error_code(code)
}

/// The brokers that a front says there are, all of them doors to the one behind it.
#[derive(Clone, Debug)]
pub struct Nodes {
    doors: Vec<SocketAddr>,
    /// The node that leads every partition.
    pub leads: i32,
    /// The node that coordinates every group.
    pub coordinates: i32,
}

impl Nodes {
    pub fn new(doors: Vec<SocketAddr>) -> Self {
        Self {
            doors,
            leads: FIRST_NODE,
            coordinates: FIRST_NODE,
        }
    }

    pub fn with_doors(&self) -> impl Iterator<Item = (i32, SocketAddr)> {
        (FIRST_NODE..).zip(self.doors.iter().copied())
    }

    fn ids(&self) -> Vec<BrokerId> {
        self.with_doors().map(|(id, _)| BrokerId(id)).collect()
    }

    fn address(&self, node: i32) -> SocketAddr {
        self.doors[(node - FIRST_NODE) as usize]
    }

    fn brokers(&self) -> Vec<MetadataResponseBroker> {
        let broker = |(id, door): (i32, SocketAddr)| {
            MetadataResponseBroker::default()
                .with_node_id(BrokerId(id))
                .with_host(StrBytes::from_string(door.ip().to_string()))
                .with_port(door.port().into())
        };
        self.with_doors().map(broker).collect()
    }

    /// What a node says of a request that is another's to answer.
    pub fn not_mine(&self, node: i32, api: ApiKey) -> Option<ResponseError> {
        match api {
            ApiKey::Produce | ApiKey::Fetch | ApiKey::ListOffsets => {
                (node != self.leads).then_some(ResponseError::NotLeaderOrFollower)
            }
            ApiKey::OffsetCommit
            | ApiKey::OffsetFetch
            | ApiKey::JoinGroup
            | ApiKey::SyncGroup
            | ApiKey::Heartbeat => {
                (node != self.coordinates).then_some(ResponseError::NotCoordinator)
            }
            _ => None,
        }
    }
}
