//! What a broker remembers of the last fetch request (KIP-227): the next one names what is different.

use crate::broker::message::fetch::{Session, Want};
use crate::record::TopicPartition;
use std::collections::{BTreeMap, BTreeSet};

/// A session with one broker.
#[derive(Debug)]
pub struct Sitting {
    session: Session,
    /// What the next request has to ask for.
    wanted: BTreeMap<TopicPartition, Asked>,
    /// What the broker remembers, so that nothing has to be said of what did not change.
    remembered: BTreeMap<TopicPartition, Asked>,
    /// Where the two may differ: a request costs what has changed, however many partitions there are.
    changed: BTreeSet<TopicPartition>,
    /// Partitions of which more is wanted than of others, since a batch of theirs is larger.
    large: BTreeMap<TopicPartition, i32>,
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
            wanted: BTreeMap::new(),
            remembered: BTreeMap::new(),
            changed: BTreeSet::new(),
            large: BTreeMap::new(),
        }
    }
}

impl Sitting {
    /// Asks for a partition from now on, or for something else of it. `usual` is what is wanted of most.
    pub fn want(&mut self, partition: &TopicPartition, asked: Asked, usual: i32) {
        match asked.want.most > usual {
            true => self.large.insert(partition.clone(), asked.want.most),
            false => self.large.remove(partition),
        };
        self.wanted.insert(partition.clone(), asked);
        self.changed.insert(partition.clone());
    }

    /// Asks for it no more.
    pub fn leave(&mut self, partition: &TopicPartition) {
        if self.wanted.remove(partition).is_some() {
            self.large.remove(partition);
            self.changed.insert(partition.clone());
        }
    }

    /// Whether there is anything to ask for.
    pub fn wants_something(&self) -> bool {
        !self.wanted.is_empty()
    }

    /// The partitions that are asked for.
    pub fn wanted(&self) -> impl Iterator<Item = &TopicPartition> {
        self.wanted.keys()
    }

    /// The most bytes that are wanted of a partition, if that is more than usual.
    pub fn largest(&self) -> Option<i32> {
        self.large.values().copied().max()
    }

    /// The next request.
    pub fn ask(&mut self) -> Named {
        if self.session == Session::NEW {
            self.remembered.clear();
            self.changed = self.wanted.keys().cloned().collect();
        }
        let (mut partitions, mut forgotten) = (Vec::new(), Vec::new());
        for partition in std::mem::take(&mut self.changed) {
            match self.wanted.get(&partition) {
                Some(asked) => {
                    if self.remembered.get(&partition) != Some(asked) {
                        partitions.push(asked.want.clone());
                        self.remembered.insert(partition, asked.clone());
                    }
                }
                None => {
                    if self.remembered.remove(&partition).is_some() {
                        forgotten.push(partition);
                    }
                }
            }
        }
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
        self.session = Session::NEW;
    }

    /// What was asked of a partition in the last request.
    pub fn asked(&self, of: &TopicPartition) -> Option<&Asked> {
        self.remembered.get(of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USUAL: i32 = 100;

    fn orders(partition: i32) -> TopicPartition {
        TopicPartition::new("orders", partition)
    }

    fn want(sitting: &mut Sitting, partition: i32, from: i64) {
        want_under(sitting, partition, from, 1);
    }

    fn want_under(sitting: &mut Sitting, partition: i32, from: i64, turn: u64) {
        let partition = orders(partition);
        let want = Want {
            partition: partition.clone(),
            epoch: 3,
            from,
            most: USUAL,
        };
        sitting.want(&partition, Asked { turn, want }, USUAL);
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
        want(&mut sitting, 0, 5);
        want(&mut sitting, 1, 9);
        assert_eq!(named(&sitting.ask()), (0, vec![(0, 5), (1, 9)], vec![]));
        sitting.answered(77);
        want(&mut sitting, 0, 8);
        want(&mut sitting, 1, 9);
        assert_eq!(named(&sitting.ask()), (1, vec![(0, 8)], vec![]));
        sitting.answered(77);
        sitting.leave(&orders(1));
        assert_eq!(named(&sitting.ask()), (2, vec![], vec![1]));
        sitting.answered(77);
        // Who leaves and comes back between two requests has changed nothing.
        sitting.leave(&orders(0));
        want(&mut sitting, 0, 8);
        assert_eq!(named(&sitting.ask()), (3, vec![], vec![]));
    }

    #[test]
    fn a_broker_that_keeps_none_is_told_everything() {
        let mut sitting = Sitting::default();
        want(&mut sitting, 0, 5);
        want(&mut sitting, 1, 9);
        sitting.ask();
        sitting.answered(0);
        sitting.leave(&orders(1));
        assert_eq!(named(&sitting.ask()), (0, vec![(0, 5)], vec![]));
        sitting.answered(77);
        sitting.forget();
        assert_eq!(named(&sitting.ask()), (0, vec![(0, 5)], vec![]));
    }

    #[test]
    fn another_turn_is_named_again() {
        let mut sitting = Sitting::default();
        want(&mut sitting, 0, 5);
        sitting.ask();
        sitting.answered(77);
        want_under(&mut sitting, 0, 5, 2);
        assert_eq!(named(&sitting.ask()), (1, vec![(0, 5)], vec![]));
    }

    #[test]
    fn the_largest_is_known_for_as_long_as_it_is_wanted() {
        let mut sitting = Sitting::default();
        want(&mut sitting, 0, 5);
        assert_eq!(sitting.largest(), None);
        let want = Want {
            partition: orders(1),
            epoch: 3,
            from: 0,
            most: USUAL * 7,
        };
        sitting.want(&orders(1), Asked { turn: 1, want }, USUAL);
        assert_eq!(sitting.largest(), Some(USUAL * 7));
        sitting.leave(&orders(1));
        assert_eq!(sitting.largest(), None);
    }
}
