//! Both clusters and the group, as slow and obvious as can be: what is written, what has arrived, what
//! is committed, and who owns what. Everything that the worker does is held against it at once.

use super::fence::Fences;
use super::log::{Entry, Log, Played, committed, is_start, outputs, topic_id};
use super::rare::Rare;
use super::settings::{Settings, Shape};
use super::target::Handle;
use super::{PARTITIONS, Start};
use crate::config::spec::OnError;
use crate::flow::position::{CommitMetadata, StartMark};
use crate::flow::worker::tests::tp;
use crate::plane::*;
use crate::record::TopicPartition;
use crate::seen::Seen;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};

/// Whose a partition is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Elsewhere,
    Ours,
    /// The group wants it back and has no answer yet.
    Revoking,
    /// The group has given it away, and the worker has not heard.
    Lost,
}

/// A commit on its way.
pub(super) struct OnItsWay {
    pub(super) entries: Vec<CommitEntry>,
    pub(super) id: u64,
    pub(super) landing: Landing,
}

/// When a commit may land.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Landing {
    /// While its partitions are here.
    InTime,
    /// Whenever it wants: the worker's deadline for it is over.
    Late,
    /// Never: the group has given its partitions away.
    Fenced,
}

/// What a broker makes of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CommitFate {
    Taken,
    Refused,
    /// It is taken, and the answer gets lost.
    TakenInSilence,
    /// It is taken, and the answer names an error for each partition.
    PartlyRefused,
}

/// Whether the source topic is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Presence {
    There,
    Deleted,
}

pub(super) struct World {
    pub(super) records: Vec<Entry>,
    pub(super) logs: Vec<Log>,
    /// The logs of each creation of the topic before this one.
    pub(super) past: Vec<Vec<Log>>,
    pub(super) presence: Presence,
    /// The creation of the topic that the running flow has met first.
    pub(super) met: Option<u32>,
    pub(super) places: Vec<Place>,
    /// The group waits for the answer to what it said last.
    pub(super) rebalancing: bool,
    /// The member's session is over, of which it hears when its revoke has ended.
    pub(super) expired: bool,
    pub(super) subscribed: bool,
    /// The group has not noticed yet that the topic is another one.
    pub(super) unnoticed: bool,
    pub(super) events: VecDeque<FetchEvent<Played>>,
    pub(super) fetching: BTreeMap<i32, i64>,
    pub(super) paused: BTreeSet<i32>,
    /// Of these the client has ended fetching: their position was refused.
    pub(super) ended: BTreeSet<i32>,
    pub(super) handles: Vec<Handle>,
    pub(super) commits: VecDeque<OnItsWay>,
    /// Failures that lie in the worker's inbox, by producer.
    pub(super) posted: Vec<(usize, Option<i32>)>,
    pub(super) fences: Fences,
    /// What the next enqueue is told.
    pub(super) refusal: Option<FaultKind>,
    /// Every file of the route so far.
    pub(super) settings: Vec<Settings>,
    /// Which of them the worker has taken over.
    pub(super) taken: usize,
    /// The gaps that the scout has seen: partition, from, to.
    pub(super) gaps: BTreeSet<(i32, i64, i64)>,
    /// Which creation of the topic it was when that was asked before a commit.
    pub(super) verified: u32,
    /// Whether a leader without the last offsets was ever elected.
    pub(super) was_cut: bool,
    /// Which flow runs.
    pub(super) flow: u32,
    /// Whether the one before said that it left nothing.
    pub(super) has_drained: bool,
    /// What must never happen, and did.
    pub(super) violations: Vec<String>,
    pub(super) seen: Seen<Rare>,
}

impl World {
    pub(super) fn new(first: Settings, numbers: Numbers, start: Start) -> Self {
        let mut world = Self {
            records: Vec::new(),
            logs: (0..PARTITIONS).map(|_| Log::default()).collect(),
            past: Vec::new(),
            presence: Presence::There,
            met: None,
            places: vec![Place::Elsewhere; PARTITIONS as usize],
            rebalancing: false,
            expired: false,
            subscribed: false,
            unnoticed: false,
            events: VecDeque::new(),
            fetching: BTreeMap::new(),
            paused: BTreeSet::new(),
            ended: BTreeSet::new(),
            handles: Vec::new(),
            commits: VecDeque::new(),
            posted: Vec::new(),
            fences: Fences::new(numbers),
            refusal: None,
            settings: vec![first],
            taken: 0,
            gaps: BTreeSet::new(),
            verified: 0,
            was_cut: false,
            flow: 0,
            has_drained: false,
            violations: Vec::new(),
            seen: Seen::default(),
        };
        if start == Start::Behind {
            world.start_elsewhere();
        }
        world
    }

    pub(super) fn holds(&mut self, holds: bool, says: impl FnOnce() -> String) {
        if !holds {
            self.violations.push(says());
        }
    }

    /// Which creation of the topic this is.
    pub(super) fn creation(&self) -> u32 {
        self.past.len() as u32
    }

    pub(super) fn log(&self, partition: i32) -> &Log {
        &self.logs[partition as usize]
    }

    pub(super) fn log_mut(&mut self, partition: i32) -> &mut Log {
        &mut self.logs[partition as usize]
    }

    fn log_of(&self, creation: u32, partition: i32) -> Option<&Log> {
        let logs = match creation == self.creation() {
            true => Some(&self.logs),
            false => self.past.get(creation as usize),
        };
        logs.and_then(|logs| logs.get(partition as usize))
    }

    pub(super) fn settings(&self) -> Settings {
        self.settings[self.settings.len() - 1]
    }

    /// Whether a record is none of the running flow's business: it is of a topic that the flow has not met, or that is gone.
    pub(super) fn is_stray(&self, number: usize) -> bool {
        let creation = self.records[number].creation;
        creation != self.creation() || self.met != Some(creation)
    }

    // --- what became of records --------------------------------------------------------------

    /// The settings that may have decided about a record since it was fetched last.
    fn decided_by(&self, entry: &Entry) -> &[Settings] {
        match entry.fetched_under {
            Some(first) => &self.settings[first..=self.taken.max(first)],
            None => &[],
        }
    }

    /// Whether some chain that may have had the record makes nothing of it.
    pub(super) fn is_dropped(&self, number: usize) -> bool {
        let entry = &self.records[number];
        let decided_by = self.decided_by(entry);
        decided_by
            .iter()
            .any(|s| outputs(entry.offset, s.shape) == 0)
    }

    pub(super) fn was_to(&self, number: usize, on_error: OnError) -> bool {
        let decided_by = self.decided_by(&self.records[number]);
        decided_by.iter().any(|s| s.on_error == on_error)
    }

    /// All outputs that one chain makes of it are there.
    fn is_delivered(&self, entry: &Entry) -> bool {
        let chains = entry.arrived.iter().map(|(chain, _)| *chain);
        chains.collect::<BTreeSet<_>>().into_iter().any(|chain| {
            let shape = self.settings.iter().find(|s| s.chain == chain);
            let outputs = outputs(entry.offset, shape.map_or(Shape::Whole, |s| s.shape));
            (0..outputs).all(|k| entry.arrived.contains(&(chain, k)))
        })
    }

    /// Whether nobody needs to copy this record any more.
    fn is_settled(&self, number: usize) -> bool {
        let entry = &self.records[number];
        let is_skipped = entry.is_bad && self.was_to(number, OnError::Skip);
        entry.is_done_elsewhere
            || entry.is_named
            || entry.is_letter
            || is_skipped
            || self.is_dropped(number)
            || self.is_delivered(entry)
    }

    /// The first record below `until` that would be lost.
    fn unsettled(&self, log: &Log, until: i64) -> Option<i64> {
        let below = log.at.range(log.begun?.min(until)..until);
        let mut unsettled = below.filter(|(_, number)| !self.is_settled(**number));
        unsettled.next().map(|(offset, _)| *offset)
    }

    /// The worker says that offsets are missing. What is named so may be missing, and nothing else.
    pub(super) fn told_gap(&mut self, partition: i32, from: i64, to: i64) {
        if self.met != Some(self.creation()) {
            return;
        }
        let is_seen = self.gaps.contains(&(partition, from, to));
        self.holds(is_seen, || {
            format!("{partition}: {from} to {to} are called missing, and are not")
        });
        let named = self.log(partition).at.range(from..to.max(from));
        for number in named.map(|(_, n)| *n).collect::<Vec<_>>() {
            self.records[number].is_named = true;
        }
    }

    // --- the group ---------------------------------------------------------------------------

    fn chosen(&self, mask: u8, is: Place) -> Vec<TopicPartition> {
        let all = (0..PARTITIONS).filter(|p| mask & (1 << p) != 0);
        all.filter(|p| self.places[*p as usize] == is)
            .map(tp)
            .collect()
    }

    fn rebalance(&mut self, mask: u8, from: Place, to: Place) -> Option<Vec<TopicPartition>> {
        let chosen = self.chosen(mask, from);
        if self.rebalancing || chosen.is_empty() {
            return None;
        }
        for tp in &chosen {
            self.places[tp.partition as usize] = to;
        }
        self.rebalancing = true;
        Some(chosen)
    }

    pub(super) fn assign(&mut self, mask: u8) {
        if !self.subscribed || self.presence == Presence::Deleted {
            return;
        }
        if let Some(chosen) = self.rebalance(mask, Place::Elsewhere, Place::Ours) {
            self.events.push_back(FetchEvent::Assigned(chosen));
            // Whoever has the others copies again what was left there: it is not ours to tell.
            let others = self.logs.iter_mut().zip(&self.places);
            for (log, _) in others.filter(|(_, place)| **place == Place::Elsewhere) {
                log.life += 1;
            }
        }
    }

    pub(super) fn revoke(&mut self, mask: u8) {
        if let Some(chosen) = self.rebalance(mask, Place::Ours, Place::Revoking) {
            self.events.push_back(FetchEvent::Revoked(chosen));
        }
    }

    /// The session ends. While the group waits for the answer to a revoke, the member hears of it after that.
    pub(super) fn lose(&mut self) {
        let is_revoking = self.places.contains(&Place::Revoking);
        if is_revoking && !self.expired {
            self.expired = true;
            self.seen.note(Rare::LossInRevoke);
        }
        let chosen = self.rebalance(0xff, Place::Ours, Place::Lost);
        if self.expired || chosen.is_some() {
            // Nobody knows the member any more, whoever waited for what it sent.
            for commit in &mut self.commits {
                commit.landing = Landing::Fenced;
            }
        }
        if let Some(chosen) = chosen {
            self.events.push_back(FetchEvent::Lost(chosen));
        }
    }

    /// What the group does by itself: a member that has left, or whose session is over, keeps nothing.
    pub(super) fn group_goes_on(&mut self) {
        if self.expired && !self.rebalancing {
            self.expired = false;
            self.lose();
        }
        if !self.subscribed {
            self.revoke(0xff);
        }
    }

    /// The group notices that the topic is gone, or another one.
    pub(super) fn notice(&mut self) {
        if self.unnoticed && !self.rebalancing {
            self.unnoticed = false;
            self.revoke(0xff);
        }
    }

    /// The member is gone, gently or not.
    pub(super) fn leave(&mut self) {
        self.places.fill(Place::Elsewhere);
        (self.rebalancing, self.expired, self.subscribed) = (false, false, false);
        self.events.clear();
        self.fetching.clear();
        self.paused.clear();
        self.ended.clear();
        self.posted.clear();
        self.commits.clear();
        self.flow += 1;
        self.met = None;
        self.taken = self.settings.len() - 1;
    }

    // --- commits -----------------------------------------------------------------------------

    pub(super) fn has_started(&self) -> bool {
        let says_so = |log: &Log| {
            let committed = log.committed.as_ref()?;
            Some(CommitMetadata::decode(committed.metadata.as_bytes()).start == StartMark::Started)
        };
        self.logs.iter().any(|log| says_so(log) == Some(true))
    }

    /// The start of every partition; what has a position keeps it.
    pub(super) fn start_entries(&self) -> Vec<CommitEntry> {
        let now = topic_id(self.creation());
        let entry = |(partition, log): (i32, &Log)| {
            let known = log.committed.as_ref();
            let said = known.map(|c| CommitMetadata::decode(c.metadata.as_bytes()));
            let metadata = CommitMetadata {
                topic_id: Some(known.map_or(now.clone(), |c| topic_id(c.of))),
                writer: said.and_then(|said| said.writer),
                ..CommitMetadata::default()
            };
            CommitEntry {
                partition: tp(partition),
                offset: Offset(log.committed.as_ref().map_or(log.start, |c| c.offset)),
                leader_epoch: -1,
                metadata: metadata.encode(),
            }
        };
        let mut entries: Vec<CommitEntry> = (0..).zip(&self.logs).map(entry).collect();
        if let Some(last) = entries.last_mut() {
            last.metadata.push_str(";s");
        }
        entries
    }

    /// Another instance commits the start.
    pub(super) fn start_elsewhere(&mut self) {
        for mut entry in self.start_entries() {
            entry.metadata = entry.metadata.trim_end_matches(";s").to_owned() + ";s";
            let log = self.log_mut(entry.partition.partition);
            log.begun.get_or_insert(entry.offset.0);
            log.committed.get_or_insert(committed(&entry));
        }
    }

    /// What is on its way lands whenever it wants, unless nobody knows its member.
    pub(super) fn commits_may_be_late(&mut self) {
        let in_time = |c: &&mut OnItsWay| c.landing == Landing::InTime;
        for commit in self.commits.iter_mut().filter(in_time) {
            commit.landing = Landing::Late;
        }
    }

    /// The broker takes the oldest commit that it was sent, or answers with an error; either way the
    /// answer is one.
    pub(super) fn answer_commit(&mut self, how: CommitFate) {
        let Some(OnItsWay {
            entries,
            id,
            landing,
        }) = self.commits.pop_front()
        else {
            return;
        };
        let lost = |e: &CommitEntry| self.places[e.partition.partition as usize] == Place::Lost;
        let is_fenced = landing == Landing::Fenced
            || self.presence == Presence::Deleted
            || entries.iter().any(lost);
        if how != CommitFate::Refused && !is_fenced {
            for entry in &entries {
                self.apply(entry, landing);
            }
        }
        let taken = how == CommitFate::Taken && !is_fenced;
        let results = entries.iter().map(|e| {
            let word = match how {
                CommitFate::PartlyRefused => Err("partly refused".to_owned()),
                _ => Ok(e.offset),
            };
            (e.partition.clone(), word)
        });
        let answer = CommitAnswer {
            id,
            results: results.collect(),
            error: (!taken && how != CommitFate::PartlyRefused).then(|| "refused".to_owned()),
        };
        self.events.push_back(FetchEvent::Committed(answer));
    }

    fn apply(&mut self, entry: &CommitEntry, landing: Landing) {
        let (partition, offset) = (entry.partition.partition, entry.offset.0);
        // The start is committed for all by whoever has the first partition.
        let owner = if is_start(entry) { 0 } else { partition };
        let in_time = self.places[owner as usize] != Place::Elsewhere || landing == Landing::Late;
        self.holds(in_time, || {
            format!("I3: {partition}@{offset} was committed after it was let go")
        });
        if landing == Landing::Late {
            self.seen.note(Rare::CommitLandsLate);
        }
        self.fences.claim(partition, &entry.metadata);
        let of = committed(entry).of;
        let creation = self.creation();
        if of != creation {
            self.seen.note(Rare::CommitOfAFormerTopic);
        }
        let log = self.log_mut(partition);
        let before = log.committed.replace(committed(entry));
        // What it said of another topic means nothing, nor does a position beyond the end.
        let before = before.filter(|c| c.of == creation);
        let before = before.map_or(i64::MIN, |c| c.offset);
        let was_late = log.before_late.is_some();
        log.before_late = (landing == Landing::Late && before > i64::MIN).then_some(before);
        if landing != Landing::Late {
            log.resume_at = None;
        }
        log.begun.get_or_insert(offset);
        // What a late commit said the next one puts right.
        let is_late = was_late || landing == Landing::Late;
        let is_forward = offset >= before || is_late || before > log.end;
        self.holds(is_forward, || {
            format!("{partition} was committed back from {before} to {offset}")
        });
        let Some(log) = self.log_of(of, partition) else {
            return;
        };
        let (unsettled, furthest) = (self.unsettled(log, offset), log.furthest.max(log.start));
        self.holds(unsettled.is_none(), || {
            format!("lost: {partition}@{unsettled:?} lies below the commit {offset}")
        });
        self.holds(offset <= furthest, || {
            format!("{partition}@{offset} was committed for a topic that ended at {furthest}")
        });
    }
}

#[derive(Clone)]
pub(super) struct Shared(Arc<Mutex<World>>);

impl Shared {
    pub(super) fn new(world: World) -> Self {
        Self(Arc::new(Mutex::new(world)))
    }

    pub(super) fn with<T>(&self, f: impl FnOnce(&mut World) -> T) -> T {
        f(&mut self.0.lock().unwrap())
    }
}
