//! Writers at their targets, without a broker: who has the next turn, and what becomes of whom when one ends.

use super::*;
use crate::broker::connection::Manner as Connections;
use crate::broker::security::Security;
use crate::plane::{Claim, Outcome, Token, Writer};
use crate::record::{Headers, Origin, Record, TopicPartition};
use crate::wire::codec::{Codec, Compression};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// Outcomes by ticket: arrived, failed.
type Told = Arc<Mutex<BTreeMap<u32, (u32, u32)>>>;

/// A sender that nobody has started, and what it has told.
struct Stand {
    sender: Sender,
    told: Told,
}

impl Stand {
    /// Batches of one record.
    fn new() -> Self {
        let told = Told::default();
        let heard = told.clone();
        let deliver = move |_, outcomes: Vec<Outcome>| {
            let mut told = heard.lock().unwrap();
            for outcome in outcomes {
                match outcome {
                    Outcome::Acked { ticket, count, .. } => {
                        told.entry(ticket).or_default().0 += count;
                    }
                    Outcome::Failed { ticket, .. } => told.entry(ticket).or_default().1 += 1,
                    Outcome::Refused { ticket, count, .. } => {
                        told.entry(ticket).or_default().1 += count;
                    }
                }
            }
        };
        let compression = Compression {
            codec: Codec::None,
            level: None,
        };
        let manner = Manner {
            batch_bytes: 0,
            linger: Duration::ZERO,
            compression,
        };
        let connections = Connections {
            security: Arc::new(Security {
                tls: None,
                sasl: None,
            }),
            client: "test".into(),
            patience: Duration::from_secs(1),
        };
        let writers = Arc::new(Writers::new(0, Arc::new(deliver)));
        let links = Links::new(connections, Vec::new(), "test".into());
        let compressor = Compressor::new(compression).unwrap();
        let sender = Sender::new(writers, links, "test".into(), &manner, compressor);
        Self { sender, told }
    }

    /// Hands a record of a writer over; whether it was taken.
    fn push(&self, writer: Writer, partition: i32) -> bool {
        let at = TopicPartition::new("t", partition);
        let Some(strand) = self.sender.writers.strand(&at, writer) else {
            return false;
        };
        let record = Record {
            origin: Origin {
                source: "a",
                topic: "t",
                partition,
                offset: 0,
                timestamp: None,
            },
            topic: Cow::Borrowed("t"),
            key: None,
            value: None,
            headers: Headers::Untouched(&()),
            timestamp: Some(1),
        };
        let token = Token {
            worker: 0,
            // Which writer's it was.
            ticket: u32::try_from(writer.id).unwrap(),
            distance: 0,
        };
        self.sender.writers.push(&strand, &record, token).is_some()
    }

    /// Whose batches the next request has, by partition.
    fn request(&mut self) -> Vec<(i32, i64)> {
        self.sender.take_in_hand();
        let targets = self.sender.in_hand.clone();
        let (sent, _) = self.sender.gather(&targets);
        let of = |sent: &Sent| {
            let partition = sent.strand.target.partition.partition;
            (partition, sent.strand.pen.writer.id)
        };
        let mut of: Vec<_> = sent.iter().map(of).collect();
        of.sort_unstable();
        of
    }

    /// An answer to the first batch of a writer at a partition.
    fn answers(&mut self, writer: Writer, partition: i32, code: i16) {
        let at = TopicPartition::new("t", partition);
        let strand = self.sender.writers.strand(&at, writer).expect("a strand");
        let answer = match code {
            0 => Ok(Place {
                base: 0,
                time: None,
            }),
            code => Err(Refusal {
                code: Code(code),
                records: Vec::new(),
                words: None,
            }),
        };
        let mut arrived = Outcomes::default();
        self.sender.answered(&strand, 0, answer, &mut arrived);
        self.sender.writers.tell(arrived);
    }

    fn told(&self, writer: Writer) -> (u32, u32) {
        let told = self.told.lock().unwrap();
        told.get(&(writer.id as u32)).copied().unwrap_or_default()
    }
}

const fn writer(id: i64, epoch: i16) -> Writer {
    Writer {
        id,
        epoch,
        claim: Claim::Sole,
    }
}

#[test]
fn a_request_has_one_batch_of_a_partition_and_writers_take_turns() {
    let mut stand = Stand::new();
    let writers = [1, 2, 3].map(|id| writer(id, 0));
    for by in writers {
        (0..3).for_each(|_| assert!(stand.push(by, 0)));
    }
    assert!(stand.push(writers[0], 1));
    assert_eq!(stand.request(), [(0, 1), (1, 1)]);
    assert_eq!(stand.request(), [(0, 2)]);
    assert_eq!(stand.request(), [(0, 3)]);
    assert_eq!(stand.request(), [], "the first batch of each goes alone");
    for by in writers {
        stand.answers(by, 0, 0);
    }
    let turns: Vec<_> = (0..6).map(|_| stand.request()[0].1).collect();
    assert_eq!(turns, [1, 2, 3, 1, 2, 3]);
}

#[test]
fn a_refusal_ends_one_writer_everywhere_and_no_other() {
    let mut stand = Stand::new();
    let (one, other) = (writer(1, 0), writer(2, 0));
    for by in [one, other] {
        for partition in [0, 0, 1] {
            assert!(stand.push(by, partition));
        }
    }
    while !stand.request().is_empty() {}
    stand.answers(one, 0, 47);
    assert_eq!(
        stand.told(one),
        (0, 2),
        "what is not on its way goes with it"
    );
    assert!(!stand.push(one, 0) && !stand.push(one, 1));
    stand.answers(one, 1, 0);
    assert_eq!(stand.told(one), (1, 2), "what is on its way may arrive");
    assert!(stand.push(other, 0));
    assert!(
        stand.push(writer(1, 1), 0),
        "with the next epoch it goes on"
    );
    assert_eq!(stand.told(other), (0, 0));
}

#[test]
fn what_is_on_its_way_of_whoever_is_let_go_has_an_outcome() {
    let mut stand = Stand::new();
    let one = writer(1, 0);
    (0..2).for_each(|_| assert!(stand.push(one, 0)));
    assert_eq!(stand.request(), [(0, 1)]);
    stand.sender.writers.retire(one.id);
    assert_eq!(stand.told(one), (0, 1));
    stand.sender.writers.end(Loss::All);
    assert_eq!(stand.told(one), (0, 2));
    assert!(!stand.push(writer(1, 1), 0), "it takes nothing more");
}

#[test]
fn an_epoch_that_is_over_is_not_taken_up_again() {
    let stand = Stand::new();
    assert!(stand.push(writer(1, 5), 0));
    assert!(stand.push(writer(1, 6), 0));
    assert_eq!(stand.told(writer(1, 0)), (0, 1), "what was left goes back");
    assert!(!stand.push(writer(1, 5), 0));
}
