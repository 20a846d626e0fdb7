//! Tests on real Apache Kafka: what a copy has to be, whatever happens to it.
//!
//! A fault counts only if records were in flight when it hit; each test says how many. How much is done where the full
//! number is too slow for every day: `MIRROR_TEST_RECORDS`, `MIRROR_TEST_KILLS`, `MIRROR_TEST_OUTAGE`.

mod support;

mod brokers;
mod copy;
mod growth;
mod islands;
mod java;
mod kills;
mod listener;
mod log_events;
mod members;
mod oversize;
mod positions;
mod reloads;
mod security;
mod target_away;
mod verify;
