//! The native data plane: batches fetched and produced over connections of our own ([`broker`](crate::broker)), read and written by ourselves
//! ([`wire`](crate::wire)), behind the seam of [`plane`](crate::plane).
//!
//! Group membership, assignment, commits and administration stay with librdkafka, which is never given a partition to fetch.
//!
//! - [`view`]: what a cluster said of its leaders
//! - [`links`]: the connections of one flow to one cluster, made again with growing pauses
//! - [`session`]: what a broker remembers of the last fetch request
//! - [`room`]: how many bytes may wait
//! - [`reading`]: a partition that is read, and what is to be done for it next
//! - [`fetcher`]: what is asked of whom, and when; a thread of its own
//! - [`portion`]: what an answer holds, opened batch by batch
//! - [`lent`]: a record, lent from the bytes it came in
//! - [`source`]: all of that as a [`plane::Source`](crate::plane::Source)
//! - [`sink`]: batches written over connections of its own, a [`plane::Sink`](crate::plane::Sink)
//!
//! The fetcher is told where to read and says what it read; both sides name the *turn*, the number of that order. A partition
//! that is paused, moved or let go gets another turn, or none: whatever is still on its way under the old one is nobody's.

pub mod fetcher;
pub mod lent;
pub mod links;
pub mod portion;
pub mod reading;
pub mod room;
pub mod session;
pub mod sink;
pub mod source;
pub mod view;

#[cfg(test)]
mod played;
