//! Who leads which partition.

use super::code::Code;
use super::read::{Malformed, Reader};
use super::write::Writer;
use super::{Api, Request};
use crate::broker::address::Address;

/// Asks about topics by name. None is created for it.
pub struct Metadata<'a> {
    /// The topics.
    pub topics: &'a [&'a str],
}

/// What a broker knows of its cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterMap {
    /// The brokers that are there.
    pub brokers: Vec<Node>,
    /// The cluster's id.
    pub cluster_id: Option<String>,
    /// The topics that were asked for.
    pub topics: Vec<TopicMap>,
}

/// A broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its number.
    pub id: i32,
    /// Where it listens, on the listener that was asked.
    pub address: Address,
    /// Its rack.
    pub rack: Option<String>,
}

/// A topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicMap {
    /// Its name.
    pub name: String,
    /// Its partitions, or why they are not told.
    pub partitions: Result<Vec<PartitionMap>, Code>,
}

/// A partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionMap {
    /// Its number.
    pub partition: i32,
    /// Who leads it, or why nobody does.
    pub leader: Result<Leader, Code>,
}

/// Who leads a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leader {
    /// The broker's number.
    pub broker: i32,
    /// How often leaders were chosen before it (KIP-320); -1 if unknown.
    pub epoch: i32,
}

impl Request for Metadata<'_> {
    const API: Api = Api::Metadata;
    type Answer = ClusterMap;

    fn size(&self) -> usize {
        16 + self
            .topics
            .iter()
            .map(|topic| topic.len() + 2)
            .sum::<usize>()
    }

    fn write(&self, _: i16, into: &mut Writer) {
        into.list(self.topics.iter(), |into, topic| into.string(topic));
        // Nothing is created by asking.
        into.int8(0);
    }

    fn read(_: i16, from: &mut Reader<'_>) -> Result<ClusterMap, Malformed> {
        let _throttle = from.int32()?;
        let brokers = from.list(node)?;
        let cluster_id = from.nullable_string()?;
        let _controller = from.int32()?;
        Ok(ClusterMap {
            brokers,
            cluster_id,
            topics: from.list(topic)?,
        })
    }
}

fn node(from: &mut Reader<'_>) -> Result<Node, Malformed> {
    let (id, host, port) = (from.int32()?, from.string()?, from.int32()?);
    let port = u16::try_from(port).map_err(|_| Malformed::Strange(format!("port {port}")))?;
    Ok(Node {
        id,
        address: Address::new(&host, port),
        rack: from.nullable_string()?,
    })
}

fn topic(from: &mut Reader<'_>) -> Result<TopicMap, Malformed> {
    let code = from.int16()?;
    let name = from.string()?;
    let _is_internal = from.boolean()?;
    let partitions = from.list(partition)?;
    Ok(TopicMap {
        name,
        partitions: Code::check(code).map(|()| partitions),
    })
}

fn partition(from: &mut Reader<'_>) -> Result<PartitionMap, Malformed> {
    let code = from.int16()?;
    let partition = from.int32()?;
    let leader = Leader {
        broker: from.int32()?,
        epoch: from.int32()?,
    };
    let [_replicas, _in_sync, _offline] = [
        from.list(Reader::int32)?,
        from.list(Reader::int32)?,
        from.list(Reader::int32)?,
    ];
    // A replica that is away is no fault of the leader.
    const REPLICA_NOT_AVAILABLE: i16 = 9;
    Ok(PartitionMap {
        partition,
        leader: match code {
            0 | REPLICA_NOT_AVAILABLE => Ok(leader),
            code => Err(Code(code)),
        },
    })
}
