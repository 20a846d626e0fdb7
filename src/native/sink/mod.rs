//! The target side of the native plane: an idempotent producer that gathers records into batches of its own
//! ([`wire`](crate::wire)), and sends them over connections of its own ([`broker`](crate::broker)).
//!
//! - `manner`: sizes, times and codec
//! - `queue`: what is on its way to one target partition, and in which order
//! - `target`: a target partition as the threads that enqueue and the one that sends share it
//! - `sender`: batches out, answers in
//! - `verdict`: what an answer means
//!
//! Enqueueing is done by the one thread that owns the source partition, and waits for no broker. The order of a target partition
//! is that of its queue; a batch that is not taken ends the whole producer, so that nothing can overtake what was behind it
//! (`engine.md` rule 4). What is sent and not answered when it ends is waited for, unless it is purged.

mod manner;
mod queue;
mod sender;
mod target;
mod verdict;

use super::links::Links;
use crate::broker::address::Address;
use crate::broker::connection;
use crate::plane::known::Known;
use crate::plane::outcomes::Deliver;
use crate::plane::{ProduceFault, Sink, Token};
use crate::record::{Record, TopicPartition};
use crate::wire::codec::Compressor;
use crate::wire::pass::Whole;
pub use manner::Manner;
use sender::Sender;
use std::sync::Arc;
use target::{Loss, Target, Targets};

/// An idempotent producer.
pub struct NativeSink {
    targets: Arc<Targets>,
}

/// A topic of one sink, for one thread.
pub struct NativeTopic {
    name: Arc<str>,
    /// Partitions by number, as far as they were written to.
    known: Known<Arc<Target>>,
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
        let targets = Arc::new(Targets::new(manner.batch_bytes, deliver));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| format!("no thread to produce: {error}"))?;
        let (shared, manner) = (targets.clone(), manner.clone());
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
        Ok(Self { targets })
    }
}

impl Sink for NativeSink {
    type Topic = NativeTopic;

    fn topic(&self, name: &str) -> Result<NativeTopic, ProduceFault> {
        Ok(NativeTopic {
            name: name.into(),
            known: Known::default(),
        })
    }

    fn enqueue(
        &self,
        topic: &NativeTopic,
        partition: i32,
        record: &Record<'_>,
        token: Token,
    ) -> Result<(), ProduceFault> {
        topic.with(&self.targets, partition, |target| {
            self.targets.push(target, record, token)
        })
    }

    fn pass(
        &self,
        topic: &NativeTopic,
        partition: i32,
        batch: &Whole,
        first: Token,
    ) -> Result<(), ProduceFault> {
        topic.with(&self.targets, partition, |target| {
            self.targets.pass(target, batch, first)
        })
    }

    fn is_usable(&self) -> bool {
        self.targets.is_open()
    }

    fn purge(&self) {
        self.targets.end(Loss::All);
    }
}

impl NativeTopic {
    /// Hands something to a partition, which may take nothing any more.
    fn with(
        &self,
        of: &Targets,
        partition: i32,
        hand: impl FnOnce(&Arc<Target>) -> Option<()>,
    ) -> Result<(), ProduceFault> {
        let look_up = || of.get(TopicPartition::new(self.name.clone(), partition));
        let handed = self.known.with(partition, look_up, hand);
        let handed = handed.ok_or_else(|| verdict::worlds(format!("partition {partition}")))?;
        handed.ok_or_else(verdict::collateral)
    }
}

impl Drop for NativeSink {
    /// What is still queued is thrown away: whoever drops a sink has given its records up, and their offsets are not
    /// committed (B069).
    fn drop(&mut self) {
        self.targets.end(Loss::All);
    }
}

#[cfg(test)]
mod tests;
