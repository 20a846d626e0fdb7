//! Tests that need no Kafka: everything here runs in this process, embedded clusters included.

mod allocations;
mod broken;
mod cases;
mod command_line;
mod config;
mod embedded;
mod embedded_examples;
mod embedded_flow;
mod embedded_handlers;
mod embedded_reload;
mod embedded_running;
mod example_jobs;
mod reload_memory;
#[cfg(feature = "sandbox")]
mod sandbox;
mod secrets;
mod service;
