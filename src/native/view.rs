//! What a cluster said of its leaders, last.

use crate::broker::address::Address;
use crate::broker::message::code::Code;
use crate::broker::message::metadata::{ClusterMap, Leader};
use crate::record::TopicPartition;
use std::collections::{BTreeMap, HashMap};

/// Nobody leads at the moment.
const LEADER_NOT_AVAILABLE: Code = Code(5);
/// There is no such topic, or no such partition.
const UNKNOWN_TOPIC_OR_PARTITION: Code = Code(3);

type Leaders = BTreeMap<i32, Result<Leader, Code>>;

/// Brokers, and who leads what.
#[derive(Debug, Default)]
pub struct View {
    /// Counts up whenever something is another way than before.
    version: u64,
    brokers: BTreeMap<i32, Address>,
    topics: HashMap<String, Result<Leaders, Code>>,
}

/// Why nobody is known to lead a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absence {
    /// Nothing was said of the topic yet.
    Untold,
    /// What was said.
    Said(Code),
}

impl View {
    /// Takes over what a broker said. One that its controller has dropped for a moment says that there are no brokers: that is
    /// no news.
    ///
    /// # Errors
    /// It named no broker; nothing is taken over.
    pub fn absorb(&mut self, map: ClusterMap) -> Result<(), NoBrokers> {
        if map.brokers.is_empty() {
            return Err(NoBrokers);
        }
        let brokers = map.brokers.into_iter();
        let brokers = brokers.map(|node| (node.id, node.address)).collect();
        let mut is_news = self.brokers != brokers;
        self.brokers = brokers;
        for topic in map.topics {
            let leaders = topic.partitions.map(|partitions| {
                let leaders = partitions.into_iter();
                leaders.map(|p| (p.partition, p.leader)).collect()
            });
            is_news |= self.topics.get(&topic.name) != Some(&leaders);
            self.topics.insert(topic.name, leaders);
        }
        self.version += u64::from(is_news);
        Ok(())
    }

    /// Another number than before if something is another way.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Who leads a partition, if a broker of that number is there.
    ///
    /// # Errors
    /// Why that is not known.
    pub fn leader(&self, of: &TopicPartition) -> Result<Leader, Absence> {
        let topic = self.topics.get(&*of.topic).ok_or(Absence::Untold)?;
        let leaders = topic.as_ref().map_err(|code| Absence::Said(*code))?;
        let leader = leaders
            .get(&of.partition)
            .ok_or(Absence::Said(UNKNOWN_TOPIC_OR_PARTITION))?
            .map_err(Absence::Said)?;
        match self.brokers.contains_key(&leader.broker) {
            true => Ok(leader),
            false => Err(Absence::Said(LEADER_NOT_AVAILABLE)),
        }
    }

    /// Where a broker listens.
    pub fn address(&self, broker: i32) -> Option<&Address> {
        self.brokers.get(&broker)
    }

    /// All brokers, by number.
    pub fn brokers(&self) -> impl Iterator<Item = i32> + '_ {
        self.brokers.keys().copied()
    }

    /// Where they listen.
    pub fn addresses(&self) -> impl Iterator<Item = &Address> {
        self.brokers.values()
    }
}

/// A map of a cluster without brokers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it says that there are no brokers")]
pub struct NoBrokers;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::broker::message::metadata::{Node, PartitionMap, TopicMap};

    fn node(id: i32) -> Node {
        Node {
            id,
            address: Address::new("broker", 9092),
            rack: None,
        }
    }

    fn led(partition: i32, broker: i32, epoch: i32) -> PartitionMap {
        PartitionMap {
            partition,
            leader: Ok(Leader { broker, epoch }),
        }
    }

    fn map(brokers: &[i32], partitions: Result<Vec<PartitionMap>, Code>) -> ClusterMap {
        ClusterMap {
            brokers: brokers.iter().map(|id| node(*id)).collect(),
            cluster_id: None,
            topics: vec![TopicMap {
                name: "orders".to_owned(),
                partitions,
            }],
        }
    }

    fn orders(partition: i32) -> TopicPartition {
        TopicPartition::new("orders", partition)
    }

    #[test]
    fn a_leader_is_one_that_is_there() {
        let mut view = View::default();
        assert_eq!(view.leader(&orders(0)), Err(Absence::Untold));
        let partitions = vec![led(0, 1, 4), led(1, 2, 7)];
        view.absorb(map(&[1], Ok(partitions.clone())))
            .expect("brokers");
        let version = view.version();
        view.absorb(map(&[1], Ok(partitions))).expect("brokers");
        assert_eq!(view.version(), version, "nothing new");
        let leader = Leader {
            broker: 1,
            epoch: 4,
        };
        assert_eq!(view.leader(&orders(0)), Ok(leader));
        let away = Err(Absence::Said(LEADER_NOT_AVAILABLE));
        assert_eq!(view.leader(&orders(1)), away);
        let none = Err(Absence::Said(UNKNOWN_TOPIC_OR_PARTITION));
        assert_eq!(view.leader(&orders(2)), none);
    }

    #[test]
    fn a_map_without_brokers_is_no_news() {
        let mut view = View::default();
        view.absorb(map(&[1], Ok(vec![led(0, 1, 4)])))
            .expect("brokers");
        assert_eq!(view.absorb(map(&[], Err(Code(3)))), Err(NoBrokers));
        assert!(view.leader(&orders(0)).is_ok());
        let version = view.version();
        view.absorb(map(&[1], Err(Code(29)))).expect("brokers");
        assert_ne!(view.version(), version, "that is new");
        assert_eq!(view.leader(&orders(0)), Err(Absence::Said(Code(29))));
    }
}
