//! The target side of the native plane: an idempotent producer that gathers records into batches of its own
//! ([`wire`](crate::wire)), and sends them over connections of its own ([`broker`](crate::broker)).
//!
//! - `manner`: sizes, times and codec
//! - `queue`: what one writer has on its way to one target partition, and in which order
//! - `strand`: the same as the threads that enqueue and the one that sends share it
//! - `target`: a target partition, at which writers take turns
//! - `writers`: all of a sink's; `known`: those of one topic and thread; `ids`: producer ids for them
//! - `sender`: batches out, answers in
//! - `verdict`: what an answer means
//!
//! Enqueueing is done by the one thread that owns the source partition, and waits for no broker. Each source partition has a
//! *writer* of its own: a producer id with an epoch, which the flow sees to ([`Numbers::OfWriters`](crate::plane::Numbers)). The order of a writer
//! at a target partition is that of its queue; a batch that is not taken ends the writer at all of its targets, so that
//! nothing can overtake what was behind it (`engine.md` rule 4), and touches no other. What is sent and not answered then is
//! waited for, unless the sink is purged.

mod ids;
mod known;
mod manner;
mod queue;
mod sender;
mod strand;
mod target;
mod verdict;
mod writers;

use super::links::Links;
use crate::broker::address::Address;
use crate::broker::connection;
use crate::plane::outcomes::Deliver;
use crate::plane::{ProduceFault, Sink, Token, Writer};
use crate::record::{Record, TopicPartition};
use crate::wire::codec::Compressor;
use crate::wire::pass::Whole;
use known::Known;
pub use manner::Manner;
use sender::Sender;
use std::cell::RefCell;
use std::sync::Arc;
use strand::Strand;
use writers::{Loss, Writers};

/// An idempotent producer of many writers.
pub struct NativeSink {
    writers: Arc<Writers>,
}

/// A topic of one sink, for one thread.
pub struct NativeTopic {
    name: Arc<str>,
    known: RefCell<Known>,
}

impl NativeSink {
    /// Starts one, with a thread of its own. `subject` is what it serves.
    ///
    /// # Errors
    /// The codec's, or the system's words.
    pub fn start(
        bootstrap: Vec<Address>,
        connections: connection::Manner,
        manner: &Manner,
        subject: Arc<str>,
        deliver: Deliver,
    ) -> Result<Self, String> {
        let compressor = Compressor::new(manner.compression);
        let compressor = compressor.map_err(|error| format!("compression: {error}"))?;
        let writers = Arc::new(Writers::new(manner.batch_bytes, deliver));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| format!("no thread to produce: {error}"))?;
        let (shared, manner) = (writers.clone(), manner.clone());
        std::thread::Builder::new()
            .name("mirror-produce".into())
            .spawn(move || {
                runtime.block_on(async {
                    let links = Links::new(connections, bootstrap, subject.clone());
                    let sender = Sender::new(shared, links, subject, &manner, compressor);
                    sender.run().await;
                });
                // Connections that still open are not waited for.
                runtime.shutdown_background();
            })
            .map_err(|error| format!("no thread to produce: {error}"))?;
        Ok(Self { writers })
    }
}

impl Sink for NativeSink {
    type Topic = NativeTopic;

    fn topic(&self, name: &str) -> Result<NativeTopic, ProduceFault> {
        Ok(NativeTopic {
            name: name.into(),
            known: RefCell::default(),
        })
    }

    fn enqueue(
        &self,
        topic: &NativeTopic,
        partition: i32,
        record: &Record<'_>,
        writer: Writer,
        token: Token,
    ) -> Result<(), ProduceFault> {
        topic.with(&self.writers, partition, writer, |strand| {
            self.writers.push(strand, record, token)
        })
    }

    fn pass(
        &self,
        topic: &NativeTopic,
        partition: i32,
        batch: &Whole,
        writer: Writer,
        first: Token,
    ) -> Result<(), ProduceFault> {
        topic.with(&self.writers, partition, writer, |strand| {
            self.writers.pass(strand, batch, first)
        })
    }

    fn fresh_ids(&self, count: usize) -> Result<Vec<i64>, ProduceFault> {
        let ids = self.writers.ids.take(count);
        self.writers.wake.notify_one();
        ids
    }

    fn retire(&self, id: i64) {
        self.writers.retire(id);
    }

    fn is_usable(&self) -> bool {
        self.writers.is_open()
    }

    fn purge(&self) {
        self.writers.end(Loss::All);
    }
}

impl NativeTopic {
    /// Hands something to a writer's strand to a partition, which may take nothing any more.
    fn with(
        &self,
        of: &Writers,
        partition: i32,
        writer: Writer,
        hand: impl FnOnce(&Arc<Strand>) -> Option<()>,
    ) -> Result<(), ProduceFault> {
        if partition < 0 || writer.id < 0 {
            let nobody = format!("partition {partition}, producer id {}", writer.id);
            return Err(verdict::worlds(nobody));
        }
        let look_up = || of.strand(&TopicPartition::new(self.name.clone(), partition), writer);
        let mut known = self.known.borrow_mut();
        let strand = known.get(partition, writer, look_up);
        strand.and_then(hand).ok_or_else(verdict::collateral)
    }
}

impl Drop for NativeSink {
    /// What is still queued is thrown away: whoever drops a sink has given its records up, and their offsets are not
    /// committed (B069).
    fn drop(&mut self) {
        self.writers.end(Loss::All);
    }
}

#[cfg(test)]
mod tests;
