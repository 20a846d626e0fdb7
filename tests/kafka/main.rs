//! Tests on real Apache Kafka: what a copy has to be, whatever happens to it.
//!
//! A fault counts only if records were in flight when it hit; each test says how many. What is too slow for every day:
//!
//! - `MIRROR_TEST_SHAPES=all` (or some, as `w1,h3`): each test runs with 1, 2 and 4 workers and with 3 handler threads, and not
//!   only in the few shapes that it names
//! - `MIRROR_TEST_KILLS=10`: kills and signals in a row; `MIRROR_TEST_OUTAGE=60`: seconds for which a target is away
//! - `MIRROR_TEST_DATA_PLANE=native`: flows that run within a test, and programs that it starts, fetch and produce by the native data plane
//! - `MIRROR_TEST_RECORDS`: records of the plain copy, 200,000 unless said otherwise

mod support;

mod broker;
mod brokers;
mod copy;
mod file_events;
mod first_batch;
mod growth;
mod islands;
mod java;
mod kills;
mod listener;
mod log_events;
mod members;
mod native;
mod old_formats;
mod online;
mod oversize;
mod pass;
mod positions;
mod reloads;
mod security;
mod target_away;
mod tries;
mod verify;
mod wire;
mod zombies;
