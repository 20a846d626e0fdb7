//! A partition that is read, and what is to be done for it next.

use super::session::Asked;
use super::view::{Absence, View};
use crate::backoff::{Backoff, Span, jitter};
use crate::broker::message::code::Code;
use crate::broker::message::fetch::Want;
use crate::broker::message::metadata::Leader;
use crate::plane::Offset;
use crate::record::TopicPartition;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// The most bytes of one partition in an answer, one batch excepted.
pub const USUAL: i32 = 1 << 20;
/// Answers of one partition that may wait to be taken.
const AHEAD: usize = 2;
/// After a fault.
pub const PAUSES: Span = Span {
    first: Duration::from_millis(100),
    longest: Duration::from_secs(1),
};
/// How long a replica is read that its leader has named, before the leader is asked again (KIP-392).
const LEASE: Duration = Duration::from_secs(300);

/// A partition that is read.
pub struct Reading {
    /// The number of the order.
    pub turn: u64,
    /// The first offset that was not read yet.
    pub next: Offset,
    /// The epoch of the record before it; -1 if unknown.
    pub epoch: i32,
    /// The leader's epoch under which `next` was in its log.
    pub checked: i32,
    /// The most bytes to ask for.
    pub most: i32,
    /// What becomes of it.
    pub state: State,
    /// Where it stands.
    pub standing: Standing,
    /// What was last said of trouble.
    pub told: Option<Code>,
    /// Whether its end has to be said when it is reached.
    pub end_is_news: bool,
    /// Held by each answer that waits to be taken.
    pub token: Arc<()>,
    /// The replica that its leader has sent us to, and for how long.
    nearer: Option<(i32, Instant)>,
    not_before: Instant,
    failures: Backoff,
}

/// What becomes of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It is read.
    Reading,
    /// It was asked whether the position is in the log.
    Checking,
    /// Until another order.
    Stopped,
}

/// Where a partition stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Nowhere.
    Nowhere,
    /// Among those that this broker is asked for.
    Asked(i32),
    /// This broker would be asked if as much as may wait were not waiting already.
    Full(i32),
}

/// What is to be done for a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// This broker is asked for it, under the epoch of its leader.
    Ask {
        /// The leader, or a replica that is nearer.
        broker: i32,
        /// The leader's.
        epoch: i32,
    },
    /// The same, as soon as something of it was taken.
    Full(i32),
    /// Its leader is asked whether the position is in its log (KIP-320).
    Check(Leader),
    /// Nothing until then.
    Later(Instant),
    /// The cluster says this of its leader.
    Absent(Code),
    /// Nothing, until something changes.
    Nothing,
}

impl Reading {
    /// From offset `next` on; `epoch` is that of the record before it.
    pub fn new(turn: u64, next: Offset, epoch: i32) -> Self {
        Self {
            turn,
            next,
            epoch,
            checked: -1,
            most: USUAL,
            state: State::Reading,
            standing: Standing::Nowhere,
            told: None,
            end_is_news: true,
            token: Arc::default(),
            nearer: None,
            not_before: Instant::now(),
            failures: Backoff::default(),
        }
    }

    /// What is to be done.
    pub fn next_step(&mut self, of: &TopicPartition, view: &View, now: Instant) -> Next {
        if self.state != State::Reading {
            return Next::Nothing;
        }
        if self.not_before > now {
            return Next::Later(self.not_before);
        }
        let leader = match view.leader(of) {
            Ok(leader) => leader,
            Err(Absence::Untold) => return Next::Nothing,
            Err(Absence::Said(code)) => return Next::Absent(code),
        };
        if self.has_to_be_checked(leader) {
            return Next::Check(leader);
        }
        let broker = self.nearest(leader, view, now);
        let epoch = leader.epoch;
        match self.has_room() {
            true => Next::Ask { broker, epoch },
            false => Next::Full(broker),
        }
    }

    /// Whether more of it may wait.
    fn has_room(&self) -> bool {
        Arc::strong_count(&self.token) <= AHEAD
    }

    fn has_to_be_checked(&mut self, leader: Leader) -> bool {
        if self.epoch < 0 || self.epoch == leader.epoch {
            self.checked = self.checked.max(leader.epoch);
        }
        leader.epoch > self.checked
    }

    fn nearest(&mut self, leader: Leader, view: &View, now: Instant) -> i32 {
        self.nearer
            .filter(|(broker, until)| *until > now && view.address(*broker).is_some())
            .map_or(leader.broker, |(broker, _)| broker)
    }

    /// Its leader says that this replica is nearer; until when it is believed.
    pub fn go_nearer(&mut self, broker: i32, now: Instant) -> Instant {
        let until = now + LEASE;
        self.nearer = Some((broker, until));
        until
    }

    /// Back to the leader; whether it was elsewhere. A replica that does not serve is no trouble, and does not know what
    /// is out of range.
    pub fn go_back(&mut self) -> bool {
        self.nearer.take().is_some()
    }

    /// What to ask for.
    pub fn asked(&self, partition: &TopicPartition, epoch: i32) -> Asked {
        Asked {
            turn: self.turn,
            want: Want {
                partition: partition.clone(),
                epoch,
                from: self.next.0,
                most: self.most,
            },
        }
    }

    /// It was read.
    pub fn be_well(&mut self) {
        self.failures.reset();
        self.told = None;
    }

    /// Another failure in a row: until when it is left alone.
    pub fn put_off(&mut self, now: Instant) -> Instant {
        self.not_before = now + self.failures.next(PAUSES, jitter());
        self.not_before
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::broker::address::Address;
    use crate::broker::message::metadata::{ClusterMap, Node, PartitionMap, TopicMap};

    fn orders() -> TopicPartition {
        TopicPartition::new("orders", 0)
    }

    fn view(brokers: &[i32]) -> View {
        let node = |id: &i32| Node {
            id: *id,
            address: Address::new("broker", 9092),
            rack: None,
        };
        let leader = Ok(Leader {
            broker: 1,
            epoch: 4,
        });
        let mut view = View::default();
        let absorbed = view.absorb(ClusterMap {
            brokers: brokers.iter().map(node).collect(),
            cluster_id: None,
            topics: vec![TopicMap {
                name: "orders".to_owned(),
                partitions: Ok(vec![PartitionMap {
                    partition: 0,
                    leader,
                }]),
            }],
        });
        absorbed.expect("brokers");
        view
    }

    fn ask(broker: i32) -> Next {
        Next::Ask { broker, epoch: 4 }
    }

    #[test]
    fn a_replica_that_is_nearer_is_read_while_it_is_there_and_its_lease_lasts() {
        let (now, both) = (Instant::now(), view(&[1, 2]));
        let mut reading = Reading::new(1, Offset(0), -1);
        let later = now + Duration::from_secs(1);
        assert_eq!(reading.next_step(&orders(), &both, later), ask(1));
        let until = reading.go_nearer(2, later);
        assert_eq!(reading.next_step(&orders(), &both, later), ask(2));
        assert_eq!(reading.next_step(&orders(), &view(&[1]), later), ask(1));
        assert_eq!(reading.next_step(&orders(), &both, until), ask(1));
        assert!(reading.go_back());
        assert_eq!(reading.next_step(&orders(), &both, later), ask(1));
        assert!(!reading.go_back());
    }

    #[test]
    fn no_more_is_asked_for_than_may_wait() {
        let mut reading = Reading::new(1, Offset(0), -1);
        let later = Instant::now() + Duration::from_secs(1);
        let waiting: Vec<_> = (0..AHEAD).map(|_| reading.token.clone()).collect();
        let next = reading.next_step(&orders(), &view(&[1]), later);
        assert_eq!(next, Next::Full(1));
        drop(waiting);
        assert_eq!(reading.next_step(&orders(), &view(&[1]), later), ask(1));
    }

    #[test]
    fn what_failed_is_left_alone_for_a_while() {
        let mut reading = Reading::new(1, Offset(0), -1);
        let now = Instant::now() + Duration::from_secs(1);
        let until = reading.put_off(now);
        let next = reading.next_step(&orders(), &view(&[1]), now);
        assert_eq!(next, Next::Later(until));
        assert_eq!(reading.next_step(&orders(), &view(&[1]), until), ask(1));
    }
}
