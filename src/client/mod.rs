//! librdkafka behind safe types: the reference data plane, group membership, commits and admin.
//!
//! - [`settings`]: the client settings that carry our promises, and those a user may add
//! - [`native`]: the one module with `unsafe`; calls what the `rdkafka` crate does not wrap
//! - [`consumer`]: a group member that fetches batches and reports rebalances as events
//! - `leaving`: a member takes its leave, within a time
//! - [`producer`]: enqueue in order, one outcome per record
//! - [`properties`]: the client library's properties, and which kind of client reads each
//! - [`reader`]: reads partitions without a group
//! - [`admin`]: bounded questions to a cluster and changes of its topics
//!
//! In this plane (de)compression happens on librdkafka's own threads (KIP-3's wish to keep it off
//! the handler threads).

pub mod admin;
pub mod asker;
pub mod consumer;
mod door;
mod introduction;
mod leaving;
pub mod native;
pub mod producer;
pub mod properties;
pub mod reader;
pub mod settings;

/// What threads share, for the modules whose interleavings are tried: `tests/threads/main.rs` compiles them with others in the
/// place of these.
mod sync {
    pub(crate) use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    pub(crate) use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};
}
