//! A flow between two embedded clusters, each behind a front, and the checker over what it makes of what it meets.

use super::front::Front;
use crate::embedded::{Cluster, PATIENCE, Rec, wait_until};
use crate::embedded_running::{File, Running, copy};
use mirror::config::spec::Until;
use mirror::flow::{FlowExit, Unconfirmed};
use mirror::record::TopicPartition;
use proof::checker::{Cause, Report, Sight, Sights, Verdict, check_all};
use proof::expected::{Expected, Fate, Lane};
use proof::record::Record;
use proof::stamp::Stamp;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

pub const TOPIC: &str = "orders";
const GROUP: &str = "mirror.default.copy.a.b";
const PARTITIONS: i32 = 2;

/// Which cluster answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Source,
    Target,
}

pub struct Rig {
    source: Cluster,
    target: Cluster,
    fronts: [Front; 2],
    file: File,
    flow: Option<Running>,
    written: Expected,
    reports: Vec<Report>,
}

impl Rig {
    /// `more` is what the route says beside that.
    pub fn new(more: &str) -> Self {
        let (source, target) = (Cluster::start(), Cluster::start());
        // The records are of a year that is long over.
        source.create_topic(TOPIC, PARTITIONS, &[("retention.ms", "-1")]);
        let fronts = [&source, &target].map(|cluster| Front::of(&cluster.bootstrap));
        let [a, b] = [&fronts[0], &fronts[1]].map(|front| Cluster {
            bootstrap: front.bootstrap().to_owned(),
        });
        let plane = std::env::var("MIRROR_TEST_DATA_PLANE").unwrap_or_else(|_| "auto".to_owned());
        let more = &format!("{more}    data_plane: {plane}\n");
        // The group waits for a member that could not take its leave until its session ends.
        let text = copy(&a, &b, more).replacen(
            "'] }",
            "'], properties: { session.timeout.ms: 6000, heartbeat.interval.ms: 500 } }",
            1,
        );
        let file = File::new(&text);
        Self {
            source,
            target,
            fronts,
            file,
            flow: None,
            written: Expected::default(),
            reports: Vec::new(),
        }
    }

    /// A topic of the target that keeps what is older than its records.
    pub fn keeps(&self, topic: &str) {
        self.target
            .create_topic(topic, 1, &[("retention.ms", "-1")]);
    }

    pub fn front(&self, side: Side) -> &Front {
        &self.fronts[usize::from(side == Side::Target)]
    }

    pub fn start(&mut self) {
        self.flow = self.file.start(Until::Stopped).pop();
    }

    /// Another member of the group comes, is given something, and leaves again.
    pub fn another_comes_and_goes(&self, what: &str) {
        let another = self.file.start(Until::Stopped).pop().expect("a flow");
        let looks = || format!("something is given to another: {what}");
        waits(looks, || !another.handle.view.partitions().is_empty());
        let of_this = || self.flow.as_ref().expect("a flow").handle.view.partitions();
        waits(looks, || of_this().len() < PARTITIONS as usize);
        another.drain();
        let looks = || format!("all is given back: {what}");
        waits(looks, || of_this().len() == PARTITIONS as usize);
    }

    /// The flow cannot go on; whoever watches over it starts it again.
    pub fn fails(&mut self, what: &str) {
        let exit = self.flow.take().expect("a flow").exit();
        assert!(matches!(exit, FlowExit::Failed(_)), "{what}: {exit:?}");
    }

    /// So many records into each partition, in one batch each.
    pub fn write(&mut self, count: usize) {
        let mut records = Vec::new();
        for partition in 0..PARTITIONS {
            for _ in 0..count {
                let record = self.next(partition);
                self.written.push(&lane(partition), record.fingerprint());
                records.push(sent(partition, record));
            }
        }
        self.source.produce(TOPIC, &records);
    }

    /// One record that need not arrive, if the flow names it; its offset.
    pub fn write_refused(&mut self, partition: i32) -> i64 {
        let record = self.next(partition);
        self.written.note(&lane(partition), Fate::Refused);
        self.source.produce(TOPIC, &[sent(partition, record)]);
        self.written.len_of(&lane(partition)) as i64 - 1
    }

    fn next(&mut self, partition: i32) -> Record {
        let sequence = self.written.len_of(&lane(partition));
        // The source has nothing but these records.
        self.written.placed(&lane(partition), sequence as i64);
        plain(stamp(partition, sequence).record(40))
    }

    fn ends(&self) -> impl Iterator<Item = (TopicPartition, i64)> {
        let lanes = self.written.lanes();
        lanes.map(|((topic, partition), records)| {
            (TopicPartition::new(&**topic, *partition), records as i64)
        })
    }

    /// Everything is acknowledged and committed, as the flow sees it.
    fn is_copied(&self) -> bool {
        let Some(flow) = &self.flow else {
            return false;
        };
        let view = flow.handle.view.partitions();
        let mut ends = self.ends();
        ends.all(|(tp, end)| view.get(&tp).is_some_and(|v| v.committed == Some(end)))
    }

    pub fn copies(&self, what: &str) {
        let looks = || format!("all is copied: {what}; {:#?}", self.view());
        waits(looks, || self.is_copied());
    }

    fn view(&self) -> Option<String> {
        let flow = self.flow.as_ref()?;
        Some(format!("{:#?}", flow.handle.view.partitions()))
    }

    /// What the flow and its partitions say is wrong.
    pub fn reasons(&self) -> Vec<&'static str> {
        let Some(flow) = &self.flow else {
            return Vec::new();
        };
        let view = &flow.handle.view;
        let partitions = view.partitions().into_values();
        let conditions = partitions.map(|p| p.condition).chain([view.condition()]);
        let mut codes: Vec<_> = conditions
            .filter_map(|c| c.reason)
            .map(|r| r.code())
            .collect();
        codes.sort_unstable();
        codes.dedup();
        codes
    }

    /// Nothing is said to be wrong any more: what the flow says of itself is a little late.
    pub fn is_calm(&self, what: &str) {
        let looks = || format!("nothing is wrong: {what}; {:?}", self.reasons());
        waits(looks, || self.reasons().is_empty());
    }

    pub fn says(&self, code: &str, what: &str) {
        let looks = || format!("`{code}` is said: {what}; {:?}", self.reasons());
        waits(looks, || self.reasons().contains(&code));
    }

    /// The offsets at which partitions are held for a record.
    pub fn held_at(&self) -> Vec<i64> {
        use mirror::observe::Reason;
        let flow = self.flow.as_ref().expect("a flow");
        let partitions = flow.handle.view.partitions().into_values();
        let reasons = partitions.filter_map(|p| p.condition.reason);
        let offset = |reason| match reason {
            Reason::PoisonRecord { offset, .. } => Some(offset),
            _ => None,
        };
        reasons.filter_map(offset).collect()
    }

    /// The coordinates of the dead letters in a topic: partition and offset at the source.
    pub fn letters(&self, topic: &str) -> Vec<(i32, i64)> {
        let number = |rec: &Rec, name: &str| {
            let header = rec.headers.iter().find(|(n, _)| n == name);
            let text = header.and_then(|(_, v)| v.as_deref()).unwrap_or_default();
            let text = std::str::from_utf8(text).expect("text");
            text.parse::<i64>().expect("a number")
        };
        let letters = self.target.read(topic).into_iter();
        letters
            .map(|rec| {
                let partition = number(&rec, "mirror.source.partition");
                (partition as i32, number(&rec, "mirror.source.offset"))
            })
            .collect()
    }

    /// Records of which the flow says that it left them out.
    pub fn skipped(&self) -> u64 {
        let flow = self.flow.as_ref().expect("a flow");
        let counters = &flow.handle.view.counters;
        counters.skipped_records.load(Ordering::Relaxed)
    }

    /// How often partitions went back to their watermarks.
    pub fn rewinds(&self) -> u64 {
        let flow = self.flow.as_ref().expect("a flow");
        flow.handle.view.counters.rewinds.load(Ordering::Relaxed)
    }

    /// Takes the flow's word that these are not delivered.
    pub fn is_told(&mut self, partition: i32, offset: i64) {
        self.reports.push(Report {
            lane: lane(partition),
            offsets: offset..offset + 1,
            cause: Cause::Refused,
        });
    }

    pub fn begins_to_stop(&self, within: Duration) {
        let flow = self.flow.as_ref().expect("a flow");
        flow.handle.drain(Instant::now() + within);
    }

    /// The end of a stop. What it says may be copied again is held against what is committed and what is there.
    pub fn ends_stopping(&mut self, what: &str) -> FlowExit {
        let flow = self.flow.take().expect("a flow");
        let exit = flow.exit();
        let left = match &exit {
            FlowExit::Drained => Vec::new(),
            FlowExit::Unconfirmed(left) => left.clone(),
            other => panic!("{what}: {other:?}"),
        };
        self.is_exact(&left, what);
        exit
    }

    /// Of each partition: what is said to be committed is committed, and what is there and not committed is named.
    fn is_exact(&self, left: &[Unconfirmed], what: &str) {
        for (tp, _) in self.ends() {
            let committed = self.source.committed(GROUP, TOPIC, tp.partition);
            let committed = committed.map_or(0, |(offset, _)| offset);
            let arrived = self.arrived_to(tp.partition);
            match left.iter().find(|u| u.partition == tp) {
                None => assert!(
                    arrived <= committed,
                    "{what}: {tp} has arrived up to {arrived}, committed is {committed}, and nothing is said"
                ),
                Some(said) => {
                    // A commit whose answer never came may have been taken.
                    assert!(
                        said.committed <= Some(committed),
                        "{what}: {tp} is committed up to {committed}, said is {said:?}"
                    );
                    assert!(
                        arrived <= said.next,
                        "{what}: {tp} has arrived up to {arrived}, said is {said:?}"
                    );
                }
            }
        }
    }

    /// Behind the last record of a source partition that is at the target.
    fn arrived_to(&self, partition: i32) -> i64 {
        let sights = self.sights().remove(&lane(partition));
        let sequences = sights.into_iter().flatten().filter_map(|s| match s {
            Sight::Stamped { sequence, .. } => Some(sequence as i64 + 1),
            Sight::Strange => None,
        });
        sequences.max().unwrap_or(0)
    }

    pub fn stops(&mut self, what: &str) {
        self.begins_to_stop(PATIENCE);
        assert_eq!(self.ends_stopping(what), FlowExit::Drained, "{what}");
    }

    fn sights(&self) -> Sights {
        let mut sights = Sights::new();
        for rec in self.target.read(TOPIC) {
            sights
                .entry(lane(rec.partition))
                .or_default()
                .push(sight(rec));
        }
        sights
    }

    /// The checker's word.
    pub fn verdict(&self) -> Verdict {
        let stays = |lane: &Lane, _| lane.clone();
        check_all(&self.written, &self.sights(), &self.reports, stays)
    }

    /// Nothing is lost, reordered, altered, invented or moved; how much came twice.
    pub fn is_right(&self, what: &str) -> u64 {
        let verdict = self.verdict();
        assert_eq!(
            verdict.faults(),
            0,
            "{what}: {verdict}\n{:#?}",
            verdict.examples
        );
        verdict.repeated
    }
}

fn lane(partition: i32) -> Lane {
    (TOPIC.to_owned(), partition)
}

/// The identity of a record.
fn stamp(partition: i32, sequence: u64) -> Stamp {
    Stamp {
        label: TOPIC.to_owned(),
        partition,
        sequence,
    }
}

/// What is in every record that says who it is.
pub fn mark(partition: i32, sequence: i64) -> String {
    format!("~{TOPIC}/{partition}/{sequence}~")
}

/// Waits for something, and says what was seen if it never comes.
fn waits(looks: impl Fn() -> String, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    let mut last = String::new();
    let seen = std::panic::AssertUnwindSafe(|| {
        wait_until("it holds", || {
            if Instant::now() > deadline - Duration::from_secs(1) {
                last = looks();
            }
            holds()
        });
    });
    if std::panic::catch_unwind(seen).is_err() {
        panic!("still waiting until {last}");
    }
}

/// Without the headers whose names the reading client does not bear.
fn plain(mut record: Record) -> Record {
    let is_text = |name: &[u8]| !name.is_empty() && std::str::from_utf8(name).is_ok();
    record.headers.retain(|(name, _)| is_text(name));
    record
}

fn sent(partition: i32, record: Record) -> Rec {
    let name = |name: Vec<u8>| String::from_utf8(name).expect("text");
    let headers = record.headers.into_iter();
    Rec {
        partition,
        key: record.key,
        value: record.value,
        headers: headers.map(|(n, value)| (name(n), value)).collect(),
        timestamp: record.timestamp,
    }
}

fn sight(rec: Rec) -> Sight {
    let headers = rec.headers.into_iter();
    let record = Record {
        key: rec.key,
        value: rec.value,
        headers: headers.map(|(n, value)| (n.into_bytes(), value)).collect(),
        timestamp: rec.timestamp,
    };
    let fingerprint = record.fingerprint();
    Stamp::of(&record).map_or(Sight::Strange, |stamp| Sight::Stamped {
        lane: (stamp.label, stamp.partition),
        sequence: stamp.sequence,
        fingerprint,
    })
}
