//! Reads partitions from given positions, without a group: nothing is joined and nothing is committed.

use crate::client::consumer::{LogContext, write_log};
use crate::client::native::{Fetched, Queue, Said, Severity};
use crate::client::settings::{self, Isolation};
use crate::config::spec::ClusterSpec;
use crate::plane::Offset;
use crate::record::TopicPartition;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::topic_partition_list::TopicPartitionList;
use rdkafka::types::RDKafkaErrorCode;
use std::sync::Arc;
use std::time::Duration;

/// Reads partitions of one cluster.
pub struct Reader {
    client: BaseConsumer<LogContext>,
    queue: Queue,
    subject: Arc<str>,
}

/// What reading brings.
pub enum Read {
    /// A record, in the order of its partition.
    Record(Fetched),
    /// Nothing is left below this offset, for now.
    End(TopicPartition, Offset),
    /// The position is not in the log (any more).
    OutOfRange(TopicPartition),
    /// The cluster does not give this partition to us, in its words.
    Refused(TopicPartition, String),
    /// Nothing for now.
    Idle,
}

impl Reader {
    /// Builds the client. `group` is a name that may be asked for at the cluster; it is not joined.
    ///
    /// # Errors
    /// The client's words.
    pub fn new(
        cluster: &ClusterSpec,
        group: &str,
        isolation: Isolation,
        subject: Arc<str>,
    ) -> Result<Self, String> {
        let context = LogContext {
            subject: subject.clone(),
        };
        let client: BaseConsumer<LogContext> = settings::reader(cluster, group, isolation)
            .create_with_context(context)
            .map_err(|e| e.to_string())?;
        let queue = Queue::of_consumer(&client).ok_or("no consumer queue")?;
        Ok(Self {
            client,
            queue,
            subject,
        })
    }

    /// Reads these partitions from now on, each from its position, and no others.
    ///
    /// # Errors
    /// The client's words.
    pub fn read_from(&self, positions: &[(TopicPartition, Offset)]) -> Result<(), String> {
        let mut list = TopicPartitionList::with_capacity(positions.len());
        for (tp, offset) in positions {
            list.add_partition_offset(&tp.topic, tp.partition, rdkafka::Offset::Offset(offset.0))
                .map_err(|e| e.to_string())?;
        }
        self.client.assign(&list).map_err(|e| e.to_string())
    }

    /// The next thing that there is, after `timeout` at most.
    ///
    /// # Errors
    /// The client is dead, in its words.
    pub fn next(&self, timeout: Duration) -> Result<Read, String> {
        let Some(event) = self.queue.poll(timeout) else {
            return Ok(Read::Idle);
        };
        match event.read() {
            Said::Fetched(record) => Ok(Read::Record(record)),
            Said::EndOfPartition(tp, offset) => Ok(Read::End(tp, Offset(offset))),
            Said::Error {
                code,
                partition,
                detail,
                severity,
            } => fault(code, partition, detail, severity),
            Said::Log {
                level,
                facility,
                line,
            } => {
                write_log(&self.subject, level, &facility, &line);
                Ok(Read::Idle)
            }
            _ => Ok(Read::Idle),
        }
    }
}

fn fault(
    code: RDKafkaErrorCode,
    partition: Option<TopicPartition>,
    detail: String,
    severity: Severity,
) -> Result<Read, String> {
    use RDKafkaErrorCode as Code;
    if severity == Severity::Fatal {
        return Err(detail);
    }
    match (code, partition) {
        (Code::AutoOffsetReset | Code::OffsetOutOfRange, Some(tp)) => Ok(Read::OutOfRange(tp)),
        (
            Code::UnknownTopicOrPartition
            | Code::UnknownTopic
            | Code::UnknownPartition
            | Code::TopicAuthorizationFailed,
            Some(tp),
        ) => Ok(Read::Refused(tp, detail)),
        // Connections come and go: no progress in the caller's time tells, not this (B148).
        _ => Ok(Read::Idle),
    }
}
