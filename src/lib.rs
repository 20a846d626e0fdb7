//! `mirror` copies topics between Kafka clusters and proves what it copied before it commits.
//!
//! **One record:** fetch → register → handlers → partition → produce → ack → resolve → watermark →
//! commit (`flow`, in that order).
//!
//! **One configuration:** file → parse with positions → schema → validate → spec → plan →
//! supervisor → routes (`config`, `plan`, `supervisor`).

pub mod admin;
pub mod cli;
pub mod client;
#![deny(unsafe_code)]
#![warn(missing_docs)]

pub mod config;
pub mod exit;
pub mod flow;
pub mod handler;
pub mod logging;
pub mod observe;
pub mod partition;
pub mod plan;
pub mod plane;
pub mod record;
#[cfg(feature = "sandbox")]
pub mod sandbox;
pub mod shutdown;
pub mod supervisor;
pub mod version;
