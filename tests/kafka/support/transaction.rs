//! Transactions at a source.

use super::raw;
use super::record::Record;
use rdkafka::ClientConfig;
use rdkafka::producer::{BaseProducer, Producer};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(30);

fn write(bootstrap: &str, topic: &str, records: &[(i32, Record)]) -> BaseProducer {
    let producer: BaseProducer = ClientConfig::new()
        .set("bootstrap.servers", bootstrap)
        .set("transactional.id", format!("tests-{topic}"))
        .create()
        .expect("a producer");
    producer.init_transactions(PATIENCE).expect("transactions");
    producer.begin_transaction().expect("a transaction");
    for (partition, record) in records {
        raw::produce(
            producer.client().native_ptr(),
            &raw::name(topic),
            *partition,
            record,
        )
        .expect("enqueued");
    }
    producer.flush(PATIENCE).expect("written");
    producer
}

/// Writes these records in a transaction, and commits it.
pub fn commit(bootstrap: &str, topic: &str, records: &[(i32, Record)]) {
    write(bootstrap, topic, records)
        .commit_transaction(PATIENCE)
        .expect("committed");
}

/// Writes these records in a transaction, and aborts it.
pub fn abort(bootstrap: &str, topic: &str, records: &[(i32, Record)]) {
    write(bootstrap, topic, records)
        .abort_transaction(PATIENCE)
        .expect("aborted");
}
