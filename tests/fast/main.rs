//! Tests that need no Kafka: everything here runs in this process, embedded clusters included.

mod embedded;
mod embedded_flow;
