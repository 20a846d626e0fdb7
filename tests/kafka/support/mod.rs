//! What the tests are made of.
//!
//! A [`workload`] writes records that say who they are, a [`flow`] or a [`process`] copies them, a [`reader`] reads
//! the whole target, and the [`checker`] compares, partition by partition and in order.

pub mod cluster;
pub mod flow;
pub mod process;
pub mod pulse;
mod raw;
pub mod reader;
pub mod route;
pub mod transaction;
pub mod wait;
pub mod workload;

pub use proof::{checker, expected, record, stamp};
