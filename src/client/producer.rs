//! The target side of this plane: [`Sink`] over one librdkafka producer.
//!
//! Enqueueing is synchronous and done by the one thread that owns the source partition; never the
//! crate's `FutureProducer::send`, which sleeps and retries on a full queue so that two sends swap
//! (B061). A thread of its own reads the delivery reports, from the handle's birth to its end.

use crate::client::consumer::{LogContext, write_log};
use crate::client::door::Door;
use crate::client::introduction::{Introduction, Introductions};
use crate::client::native::{self, Deliveries, Queue, Said, Severity, TopicHandle};
use crate::handler::FailureCode;
use crate::plane::known::Known;
use crate::plane::outcomes::{Deliver, Outcomes};
use crate::plane::{FaultKind, ProduceFault, Sink, Token, Writer};
use crate::record::{HeaderSource, Headers, Record};
use rdkafka::ClientConfig;
use rdkafka::client::Client;
use rdkafka::config::FromClientConfigAndContext;
use rdkafka::producer::{
    BaseProducer, DeliveryResult, NoCustomPartitioner, Producer as _, ProducerContext,
};
use rdkafka::types::{RDKafka, RDKafkaErrorCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// How long the report thread waits for an event before it looks whether it is done.
const REPORT_WAIT: Duration = Duration::from_millis(100);

/// The crate's own delivery callback is never used: reports are read as events.
impl ProducerContext for LogContext {
    type DeliveryOpaque = ();
    fn delivery(&self, _: &DeliveryResult<'_>, (): ()) {}
}

type NativeProducer = BaseProducer<LogContext, NoCustomPartitioner>;

impl native::Handle for NativeProducer {
    fn handle(&self) -> *mut RDKafka {
        let client: &Client<LogContext> = self.client();
        client.native_ptr()
    }
}

/// One idempotent producer of one flow.
pub struct Producer {
    shared: Arc<Shared>,
}

struct Shared {
    client: NativeProducer,
    queue: Queue,
    subject: Arc<str>,
    /// Enqueued and without report.
    outstanding: AtomicU64,
    /// Shut once it takes no more records.
    door: Door,
    /// Which partitions know it.
    introductions: Introductions<Kept>,
    /// Nobody enqueues any more.
    retired: AtomicBool,
}

impl Producer {
    /// Builds a producer and starts its report thread.
    ///
    /// # Errors
    /// The client's words.
    pub fn new(config: &ClientConfig, subject: Arc<str>, deliver: Deliver) -> Result<Self, String> {
        let context = LogContext {
            subject: subject.clone(),
        };
        let client =
            NativeProducer::from_config_and_context(config, context).map_err(|e| e.to_string())?;
        let queue = Queue::main(&client);
        let shared = Arc::new(Shared {
            client,
            queue,
            subject,
            outstanding: AtomicU64::new(0),
            door: Door::new(),
            introductions: Introductions::default(),
            retired: AtomicBool::new(false),
        });
        let reader = shared.clone();
        std::thread::Builder::new()
            .name("mirror-acks".into())
            .spawn(move || read_reports(&reader, &deliver))
            .map_err(|e| format!("no thread for delivery reports: {e}"))?;
        Ok(Self { shared })
    }
}

/// Serves a handle until nobody can enqueue and every report came. The handle is destroyed here
/// and not by the last topic's owner: that may be a thread that must not block.
fn read_reports(shared: &Arc<Shared>, deliver: &Deliver) {
    loop {
        match shared.queue.poll(REPORT_WAIT).map(native::Event::read) {
            Some(Said::Delivered(reports)) => shared.deliver(&reports, deliver),
            Some(Said::Error {
                severity: Severity::Fatal,
                detail,
                ..
            }) => shared.die(&detail),
            Some(Said::Log {
                level,
                facility,
                line,
            }) => write_log(&shared.subject, level, &facility, &line),
            Some(_) => {}
            None => shared.let_go(),
        }
        shared.give_up(deliver);
        let retired = shared.retired.load(Ordering::Acquire)
            && shared.outstanding.load(Ordering::Acquire) == 0;
        if retired && Arc::strong_count(shared) == 1 {
            return;
        }
    }
}

/// A topic of one producer; keeps the producer's handle alive.
pub struct ProducerTopic {
    handle: TopicHandle,
    name: Box<str>,
    /// Partitions by number, as far as they were written to.
    known: Known<Arc<Introduction<Kept>>>,
    _client: Arc<Shared>,
}

/// A record that waits for the one before it.
#[derive(Debug)]
struct Kept {
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    headers: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    timestamp: Option<i64>,
    token: Token,
}

impl Kept {
    fn of(record: &Record<'_>, token: Token) -> Self {
        let mut headers = Vec::new();
        while let Some((name, value)) = record.headers.get(headers.len()) {
            headers.push((name.to_vec(), value.map(<[u8]>::to_vec)));
        }
        Self {
            key: record.key.as_deref().map(<[u8]>::to_vec),
            value: record.value.as_deref().map(<[u8]>::to_vec),
            headers,
            timestamp: record.timestamp,
            token,
        }
    }
}

impl Shared {
    fn die(&self, detail: &str) {
        if self.door.shut() {
            tracing::warn!(event = "producer_fatal", subject = %self.subject, detail,
                "the producer handle is replaced; partitions with records in it go back to their watermark");
        }
    }

    /// A dead handle sends nothing any more. What comes back to its queue after its death, on its way behind the record that
    /// it died of, it would keep without a word (seen with batches of one record).
    fn let_go(&self) {
        if !self.door.is_open() && self.outstanding.load(Ordering::Acquire) > 0 {
            native::purge_queued(&self.client);
        }
    }

    /// A handle that died of the world's doing takes its records down for that reason: as mere
    /// company of another record's failure they would be sent again at once, for ever and unseen.
    fn fault(&self, code: RDKafkaErrorCode) -> ProduceFault {
        let fault = fault_of(code);
        if fault.kind != FaultKind::Collateral {
            return fault;
        }
        match native::fatal_error(&self.client) {
            Some((cause, detail)) if is_the_worlds(cause) => ProduceFault {
                kind: FaultKind::World,
                detail,
            },
            _ => fault,
        }
    }

    /// Groups the reports of one event by ticket, so that the worker pays once a group.
    fn deliver(&self, reports: &Deliveries, deliver: &Deliver) {
        let mut outcomes = Outcomes::default();
        let mut count = 0;
        let (mut failures, mut is_broken) = (false, false);
        reports.for_each(|report| {
            count += 1;
            let error = report.error();
            failures |= error.is_some();
            outcomes.add(
                Token::unpack(report.opaque()),
                error.map(|code| self.fault(code)),
            );
            // Rarely: a name is not read for each report of those that are known.
            if self.introductions.are_pending() {
                let (topic, partition) = report.place();
                if let Some(at) = self.introductions.pending(topic, partition) {
                    match error {
                        None => self.introduced(&at, topic, partition),
                        Some(_) => is_broken = true,
                    }
                }
            }
        });
        if failures && let Some((_, detail)) = native::fatal_error(&self.client) {
            self.die(&detail);
        }
        if is_broken {
            // Who comes now would overtake a first record.
            self.door.shut();
        }
        outcomes.send(deliver);
        self.outstanding.fetch_sub(count, Ordering::AcqRel);
    }

    /// A partition has taken the first record: those behind it are sent.
    fn introduced(&self, at: &Introduction<Kept>, topic: &str, partition: i32) {
        let sent = self.door.pass(|| {
            let handle = TopicHandle::new(&self.client, topic).ok_or(RDKafkaErrorCode::Fatal)?;
            let send = |kept: &Kept| self.send(&handle, partition, kept);
            self.introductions.arrived(at, send)
        });
        if let Some(Err(code)) = sent {
            // Some of them went, the others are given up: nothing may follow them.
            self.die(&code.to_string());
        }
    }

    fn send(
        &self,
        topic: &TopicHandle,
        partition: i32,
        kept: &Kept,
    ) -> Result<(), RDKafkaErrorCode> {
        let headers: &dyn HeaderSource = &kept.headers;
        let parts = native::Parts {
            key: kept.key.as_deref(),
            value: kept.value.as_deref(),
            headers: &Headers::Untouched(headers),
            timestamp: kept.timestamp,
        };
        native::enqueue(&self.client, topic, partition, &parts, kept.token.pack())
    }

    /// A handle that is shut sends none of those that wait behind a first record.
    fn give_up(&self, deliver: &Deliver) {
        if self.door.is_open() || !self.introductions.are_pending() {
            return;
        }
        let waiting = self.introductions.all_failed();
        let count = waiting.len() as u64;
        let mut outcomes = Outcomes::default();
        let fault = fault_of(RDKafkaErrorCode::PurgeQueue);
        for kept in waiting {
            outcomes.add(kept.token, Some(fault.clone()));
        }
        outcomes.send(deliver);
        self.outstanding.fetch_sub(count, Ordering::AcqRel);
    }
}

/// The table of delivery errors (`engine.md` rule 4): a short list is the record's own fault, all
/// else is the world's (B076).
pub fn fault_of(code: RDKafkaErrorCode) -> ProduceFault {
    use RDKafkaErrorCode as Code;
    let kind = match code {
        Code::MessageSizeTooLarge => FaultKind::Record(FailureCode::RecordTooLarge),
        Code::InvalidRecord | Code::InvalidMessage => FaultKind::Record(FailureCode::InvalidRecord),
        Code::InvalidTimestamp => FaultKind::Record(FailureCode::InvalidTimestamp),
        Code::PurgeQueue
        | Code::PurgeInflight
        | Code::Fatal
        | Code::GaplessGuarantee
        | Code::InvalidDifferentRecord => FaultKind::Collateral,
        Code::UnknownTopic | Code::UnknownPartition | Code::UnknownTopicOrPartition => {
            FaultKind::Missing
        }
        _ => FaultKind::World,
    };
    ProduceFault {
        kind,
        detail: code.to_string(),
    }
}

/// Causes of a handle's death that the next handle meets as well, until somebody acts: no right to
/// write anything at all, a cluster that knows no idempotent producers.
fn is_the_worlds(cause: RDKafkaErrorCode) -> bool {
    use RDKafkaErrorCode as Code;
    matches!(
        cause,
        Code::ClusterAuthorizationFailed
            | Code::TopicAuthorizationFailed
            | Code::UnsupportedVersion
            | Code::UnsupportedFeature
    )
}

impl Sink for Producer {
    type Topic = ProducerTopic;

    fn topic(&self, name: &str) -> Result<ProducerTopic, ProduceFault> {
        let handle = TopicHandle::new(&self.shared.client, name).ok_or_else(|| ProduceFault {
            kind: FaultKind::World,
            detail: format!("the client refuses topic name {name:?}"),
        })?;
        Ok(ProducerTopic {
            handle,
            name: name.into(),
            known: Known::default(),
            _client: self.shared.clone(),
        })
    }

    fn enqueue(
        &self,
        topic: &ProducerTopic,
        partition: i32,
        record: &Record<'_>,
        _: Writer,
        token: Token,
    ) -> Result<(), ProduceFault> {
        let look_up = || self.shared.introductions.of(&topic.name, partition);
        let enter = |at: &Arc<Introduction<Kept>>| self.enter(topic, partition, record, token, at);
        let entered = topic.known.with(partition, look_up, enter);
        entered.unwrap_or_else(|| {
            Err(ProduceFault {
                kind: FaultKind::World,
                detail: format!("partition {partition}"),
            })
        })
    }

    fn is_usable(&self) -> bool {
        self.shared.door.is_open()
    }

    fn purge(&self) {
        let client = &self.shared.client;
        self.shared.door.shut_and(|| native::purge(client));
    }
}

impl Producer {
    fn enter(
        &self,
        topic: &ProducerTopic,
        partition: i32,
        record: &Record<'_>,
        token: Token,
        at: &Introduction<Kept>,
    ) -> Result<(), ProduceFault> {
        let send = || {
            let parts = native::Parts::of(record);
            let (client, topic) = (&self.shared.client, &topic.handle);
            native::enqueue(client, topic, partition, &parts, token.pack())
        };
        let enter = || {
            // Counted first: the report may come before the call returns.
            self.shared.outstanding.fetch_add(1, Ordering::AcqRel);
            let introductions = &self.shared.introductions;
            let entered = introductions.enter(at, send, || Kept::of(record, token));
            entered.unwrap_or(Err(RDKafkaErrorCode::PurgeQueue))
        };
        // A purged handle takes nothing: what it took before is being thrown away, and a later record
        // must not arrive in its place.
        let Some(entered) = self.shared.door.pass(enter) else {
            return Err(fault_of(RDKafkaErrorCode::PurgeQueue));
        };
        entered.map_err(|code| {
            self.shared.outstanding.fetch_sub(1, Ordering::AcqRel);
            if code == RDKafkaErrorCode::Fatal {
                self.shared.die("the handle is dead");
            }
            self.shared.fault(code)
        })
    }
}

impl Drop for Producer {
    /// What is still queued is thrown away: whoever drops a producer has given its records up, and
    /// their offsets are not committed (B069). The report thread ends when the last report came.
    fn drop(&mut self) {
        self.shared.door.shut();
        if self.shared.outstanding.load(Ordering::Acquire) > 0 {
            native::purge(&self.shared.client);
        }
        self.shared.retired.store(true, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_short_list_of_errors_is_the_records_fault() {
        let own = [
            RDKafkaErrorCode::MessageSizeTooLarge,
            RDKafkaErrorCode::InvalidRecord,
            RDKafkaErrorCode::InvalidTimestamp,
        ];
        for code in own {
            assert!(
                matches!(fault_of(code).kind, FaultKind::Record(_)),
                "{code}"
            );
        }
        let world = [
            RDKafkaErrorCode::TopicAuthorizationFailed,
            RDKafkaErrorCode::PolicyViolation,
            RDKafkaErrorCode::NotEnoughReplicas,
            RDKafkaErrorCode::ThrottlingQuotaExceeded,
            RDKafkaErrorCode::Unknown,
        ];
        for code in world {
            assert_eq!(fault_of(code).kind, FaultKind::World, "{code}");
        }
    }
}
