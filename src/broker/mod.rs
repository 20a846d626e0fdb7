//! Brokers spoken to without a client: connections, and the few messages that moving data takes.
//!
//! Group membership, commits and administration stay with librdkafka ([`client`](crate::client)); what is here fetches and
//! produces whole batches ([`wire`](crate::wire)).
//!
//! - [`address`]: where a broker listens
//! - [`security`]: what a cluster wants before it talks, and why some of it is left to librdkafka
//! - [`tls`]: encryption, by rustls
//! - [`sasl`]: who we are
//! - [`connection`]: requests in order and their answers, each with a deadline
//! - [`message`]: requests and answers as bytes
//! - [`fault`]: what goes wrong on the way
//!
//! Whatever a broker sends, reading it ends with an answer or with a [`fault::Fault`]: no count is believed before it is
//! compared with what is there. That is why the messages are our own: the crate that has all of them reserves memory for
//! whatever count a frame names.

pub mod address;
pub mod connection;
pub mod fault;
pub mod message;
pub mod sasl;
pub mod security;
pub mod tls;
pub mod token;
