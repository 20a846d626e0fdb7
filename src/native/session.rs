//! What a broker remembers of the last fetch request (KIP-227): the next one names what is different.

use crate::broker::message::fetch::{Session, Want};
use crate::record::TopicPartition;
use std::collections::BTreeMap;

/// A session with one broker.
#[derive(Debug)]
pub struct Sitting {
    session: Session,
    remembered: BTreeMap<TopicPartition, Asked>,
}

/// What was asked of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Under which turn.
    pub turn: u64,
    /// What.
    pub want: Want,
}

/// What a request has to name.
#[derive(Debug, PartialEq, Eq)]
pub struct Named {
    /// The session.
    pub session: Session,
    /// Partitions that are new, or read from elsewhere.
    pub partitions: Vec<Want>,
    /// Partitions that leave.
    pub forgotten: Vec<TopicPartition>,
}

impl Default for Sitting {
    fn default() -> Self {
        Self {
            session: Session::NEW,
            remembered: BTreeMap::new(),
        }
    }
}

impl Sitting {
    /// The next request, for exactly these partitions.
    pub fn ask(&mut self, wanted: BTreeMap<TopicPartition, Asked>) -> Named {
        if self.session == Session::NEW {
            self.remembered.clear();
        }
        let is_new =
            |(tp, asked): &(&TopicPartition, &Asked)| self.remembered.get(*tp) != Some(*asked);
        let partitions = wanted.iter().filter(is_new);
        let partitions = partitions.map(|(_, asked)| asked.want.clone()).collect();
        let is_gone = |tp: &&TopicPartition| !wanted.contains_key(*tp);
        let forgotten = self.remembered.keys().filter(is_gone).cloned().collect();
        self.remembered = wanted;
        Named {
            session: self.session,
            partitions,
            forgotten,
        }
    }

    /// The broker answered within the session `id`.
    pub fn answered(&mut self, id: i32) {
        self.session = self.session.next(id);
    }

    /// Begins anew: the broker has forgotten it, or the connection is gone.
    pub fn forget(&mut self) {
        *self = Self::default();
    }

    /// What was asked of a partition in the last request.
    pub fn asked(&self, of: &TopicPartition) -> Option<&Asked> {
        self.remembered.get(of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(partition: i32, from: i64) -> (TopicPartition, Asked) {
        let partition = TopicPartition::new("orders", partition);
        let want = Want {
            partition: partition.clone(),
            epoch: 3,
            from,
            most: 100,
        };
        (partition, Asked { turn: 1, want })
    }

    fn named(named: &Named) -> (i32, Vec<(i32, i64)>, Vec<i32>) {
        let partitions = named.partitions.iter();
        (
            named.session.epoch,
            partitions
                .map(|w| (w.partition.partition, w.from))
                .collect(),
            named.forgotten.iter().map(|tp| tp.partition).collect(),
        )
    }

    #[test]
    fn only_what_changes_is_named() {
        let mut sitting = Sitting::default();
        let first = sitting.ask([asked(0, 5), asked(1, 9)].into());
        assert_eq!(named(&first), (0, vec![(0, 5), (1, 9)], vec![]));
        sitting.answered(77);
        let second = sitting.ask([asked(0, 8), asked(1, 9)].into());
        assert_eq!(named(&second), (1, vec![(0, 8)], vec![]));
        sitting.answered(77);
        let third = sitting.ask([asked(0, 8)].into());
        assert_eq!(named(&third), (2, vec![], vec![1]));
    }

    #[test]
    fn a_broker_that_keeps_none_is_told_everything() {
        let mut sitting = Sitting::default();
        sitting.ask([asked(0, 5), asked(1, 9)].into());
        sitting.answered(0);
        let again = sitting.ask([asked(0, 5)].into());
        assert_eq!(named(&again), (0, vec![(0, 5)], vec![]));
        sitting.answered(77);
        sitting.forget();
        let anew = sitting.ask([asked(0, 5)].into());
        assert_eq!(named(&anew), (0, vec![(0, 5)], vec![]));
    }

    #[test]
    fn another_turn_is_named_again() {
        let mut sitting = Sitting::default();
        sitting.ask([asked(0, 5)].into());
        sitting.answered(77);
        let (tp, mut again) = asked(0, 5);
        again.turn = 2;
        let again = sitting.ask([(tp, again)].into());
        assert_eq!(named(&again), (1, vec![(0, 5)], vec![]));
    }
}
