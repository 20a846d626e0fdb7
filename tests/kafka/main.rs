//! Tests on real Apache Kafka.
mod smoke;
