//! `mirror` copies topics between Kafka clusters and proves what it copied before it commits.
//!
//! **One record:** fetch → register → handlers → partition → produce → ack → resolve → watermark →
//! commit: [`plane`] is the seam to a Kafka client, [`client`] the librdkafka plane behind it,
//! [`flow`] the path itself, [`handler`] and [`mod@partition`] what decides about a record.
//!
//! **One configuration:** file → parse with positions → schema → validate → spec → plan →
//! supervisor → flows: [`config`], [`plan`], [`supervisor`].
//!
//! `ARCHITECTURE.md` walks both through the tree.
#![deny(unsafe_code)]
// Whoever prints by himself writes past the redactor (`redact`).
#![deny(clippy::print_stdout, clippy::print_stderr, clippy::dbg_macro)]
#![warn(missing_docs)]

// The record path, in the order in which a record meets it.
pub mod record;

pub mod plane;

pub mod client;

pub mod wire;

pub mod broker;

pub mod native;

pub mod flow;

pub mod handler;

pub mod partition;

// The control path, in the order in which a configuration meets it.
pub mod config;

pub mod plan;

pub mod online;

pub mod supervisor;

pub mod backoff;
pub mod shutdown;
pub mod systemd;

// Records through a route without a mirror.
pub mod trial;

pub mod case;

// What is seen from outside.
pub mod observe;

pub mod admin;

pub mod estimate;
pub mod graph;

pub mod redact;

pub mod logging;

pub mod cli;

pub mod exit;

pub mod verify;
pub mod version;

#[cfg(test)]
mod seen;

#[cfg(feature = "sandbox")]
pub mod sandbox;
