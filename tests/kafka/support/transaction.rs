//! Transactions at a source.

use super::raw;
use super::record::Record;
use rdkafka::ClientConfig;
use rdkafka::producer::{BaseProducer, Producer};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(30);

/// A transaction that is open until it is committed or aborted.
pub struct Transaction(BaseProducer);

impl Transaction {
    /// Begins one and writes these records in it.
    pub fn open(bootstrap: &str, topic: &str, records: &[(i32, Record)]) -> Self {
        let producer: BaseProducer = ClientConfig::new()
            .set("bootstrap.servers", bootstrap)
            .set("transactional.id", format!("tests-{topic}"))
            .create()
            .expect("a producer");
        producer.init_transactions(PATIENCE).expect("transactions");
        producer.begin_transaction().expect("a transaction");
        let to = raw::name(topic);
        for (partition, record) in records {
            raw::produce(producer.client().native_ptr(), &to, *partition, record)
                .expect("enqueued");
        }
        producer.flush(PATIENCE).expect("written");
        Self(producer)
    }

    /// Commits it.
    pub fn commit(self) {
        self.0.commit_transaction(PATIENCE).expect("committed");
    }

    /// Aborts it.
    pub fn abort(self) {
        self.0.abort_transaction(PATIENCE).expect("aborted");
    }
}
