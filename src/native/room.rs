//! How many fetched bytes may wait.
//!
//! What was fetched holds its room until the last of its bytes is let go of, whoever has it by then. So what is asked for next is
//! bounded before it is asked for.

use crate::record::TopicPartition;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;

/// The room of one source.
#[derive(Debug)]
pub struct Room {
    limit: u64,
    held: AtomicU64,
    /// Partitions of which something was taken, since somebody asked.
    taken: Mutex<Vec<TopicPartition>>,
    freed: Notify,
}

impl Room {
    /// Room for so many bytes.
    pub fn new(limit: u64) -> Arc<Self> {
        Arc::new(Self {
            limit,
            held: AtomicU64::new(0),
            taken: Mutex::default(),
            freed: Notify::new(),
        })
    }

    /// All of it.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// What is left of it.
    pub fn left(&self) -> u64 {
        self.limit.saturating_sub(self.held.load(Ordering::Acquire))
    }

    /// Takes room for bytes that have come; it may be more than is left, since one batch comes however large it is.
    pub fn hold(self: &Arc<Self>, bytes: u64) -> Arc<Held> {
        self.held.fetch_add(bytes, Ordering::AcqRel);
        Arc::new(Held {
            room: self.clone(),
            bytes,
        })
    }

    /// One of those that wait at the room's door: whoever waits for it hears when it is gone.
    pub fn waiting(self: &Arc<Self>, partition: &TopicPartition, token: &Arc<()>) -> Waiting {
        Waiting {
            room: self.clone(),
            partition: partition.clone(),
            token: Some(token.clone()),
        }
    }

    /// Partitions of which something was taken since this was asked last.
    pub fn taken(&self) -> Vec<TopicPartition> {
        std::mem::take(&mut *self.taken.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits until something was let go of.
    pub async fn freed(&self) {
        self.freed.notified().await;
    }
}

/// Room that is taken; given back when it is dropped.
#[derive(Debug)]
pub struct Held {
    room: Arc<Room>,
    bytes: u64,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.room.held.fetch_sub(self.bytes, Ordering::AcqRel);
        self.room.freed.notify_one();
    }
}

/// Something of a partition that waits to be taken.
#[derive(Debug)]
pub struct Waiting {
    room: Arc<Room>,
    partition: TopicPartition,
    token: Option<Arc<()>>,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        // Before the word: who hears it counts the tokens.
        self.token.take();
        let taken = self.room.taken.lock();
        let mut taken = taken.unwrap_or_else(PoisonError::into_inner);
        taken.push(self.partition.clone());
        drop(taken);
        self.room.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_comes_back_with_the_last_of_its_holders() {
        let room = Room::new(100);
        let held = room.hold(70);
        let other = held.clone();
        assert_eq!(room.left(), 30);
        drop(held);
        assert_eq!(room.left(), 30);
        drop(other);
        assert_eq!(room.left(), 100);
        let _large = room.hold(1000);
        assert_eq!(room.left(), 0);
    }
}
