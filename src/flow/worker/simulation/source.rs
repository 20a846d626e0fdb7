//! The source as its topic's owner and its brokers make it: records come and go, so does the topic; and what is fetched.

use super::PARTITIONS;
use super::log::{Committed, Entry, Log, Played, committed, is_start, outputs};
use super::rare::Rare;
use super::settings::Settings;
use super::world::{Landing, OnItsWay, Place, Presence, Shared, World};
use crate::config::spec::{OnError, OnGap};
use crate::flow::worker::tests::tp;
use crate::plane::*;
use crate::record::TopicPartition;
use std::time::Duration;

impl World {
    /// Writes one record.
    ///
    /// Where records were cut off that somebody has copied, nothing is written before that was noticed: that a
    /// position beyond the end was overtaken by other records only leader epochs tell, which brokers and clients compare.
    pub(super) fn write(&mut self, partition: i32, hole: i64, is_bad: bool) {
        if self.presence == Presence::Deleted || self.is_overtaken(partition) {
            return;
        }
        let (creation, number) = (self.creation(), self.records.len());
        let offset = self.log_mut(partition).add(hole, number);
        self.records.push(Entry {
            creation,
            offset,
            is_bad,
            ..Entry::default()
        });
    }

    /// Whether somebody's position lies beyond the end.
    fn is_overtaken(&self, partition: i32) -> bool {
        let log = self.log(partition);
        if !log.was_cut {
            return false;
        }
        let sent = self.commits.iter().flat_map(|commit| &commit.entries);
        let sent = sent.filter(|e| e.partition.partition == partition);
        let positions = sent.map(|e| e.offset.0).chain([log.reached()]);
        let fetching = self.fetching.get(&partition).copied();
        positions.chain(fetching).any(|at| at > log.end)
    }

    /// Retention deletes all but the last `keep` offsets.
    pub(super) fn retain(&mut self, partition: i32, keep: i64) {
        let log = self.log_mut(partition);
        log.start = log.start.max(log.end - keep);
    }

    /// A leader without the last `count` offsets is elected.
    pub(super) fn cut(&mut self, partition: i32, count: i64) {
        self.was_cut = true;
        let log = self.log_mut(partition);
        log.was_cut = true;
        log.end = log.start.max(log.end - count);
        let _ = log.at.split_off(&log.end);
    }

    pub(super) fn delete(&mut self) {
        if self.presence == Presence::Deleted {
            return;
        }
        let mut in_flight = self.handles.iter().flat_map(|at| &at.in_flight);
        if in_flight.any(|sent| !self.is_stray(sent.number)) {
            self.seen.note(Rare::TopicDeletedInFlight);
        }
        let is_away = |p: i32| {
            let log = self.log(p);
            let copied = log.begun.is_some_and(|begun| log.reached() > begun);
            self.places[p as usize] == Place::Elsewhere && copied
        };
        if (0..PARTITIONS).any(is_away) {
            self.seen.note(Rare::TopicDeletedBetweenAssignments);
        }
        self.presence = Presence::Deleted;
        self.unnoticed = true;
        for log in &mut self.logs {
            (log.committed, log.before_late) = (None, None);
        }
    }

    pub(super) fn create(&mut self) {
        if self.presence == Presence::Deleted {
            self.presence = Presence::There;
            let fresh = (0..PARTITIONS).map(|_| Log::default()).collect();
            let gone = std::mem::replace(&mut self.logs, fresh);
            self.past.push(gone);
            self.gaps.clear();
        }
    }

    // --- fetching ----------------------------------------------------------------------------

    /// Up to `count` records of a partition that is fetched.
    pub(super) fn fetch(&mut self, partition: i32, count: usize) -> Option<FetchEvent<Played>> {
        let from = *self.fetching.get(&partition)?;
        if self.paused.contains(&partition) || self.ended.contains(&partition) {
            return None;
        }
        if self.presence == Presence::Deleted {
            return Some(FetchEvent::PartitionError {
                partition: tp(partition),
                detail: "simulated".into(),
                kind: SourceFault::Gone,
            });
        }
        let log = self.log(partition);
        if !log.is_within(from) {
            return self.refuse_position(partition);
        }
        let found = log.at.range(from..).take(count);
        let found: Vec<(i64, usize)> = found.map(|(o, n)| (*o, *n)).collect();
        let Some((last, _)) = found.last() else {
            let end = log.end;
            self.fetching.insert(partition, end);
            return Some(FetchEvent::End(tp(partition), Offset(end)));
        };
        self.fetching.insert(partition, last + 1);
        let taken = self.taken;
        let made = |(offset, number): (i64, usize)| {
            self.records[number].fetched_under = Some(taken);
            Played::new(offset, number)
        };
        let records = found.into_iter().map(made).collect();
        Some(FetchEvent::Batch(Batch::new(tp(partition), records)))
    }

    /// Up to `count` records are not read, and fetching goes on behind them.
    pub(super) fn fetch_spoilt(
        &mut self,
        partition: i32,
        count: usize,
    ) -> Option<FetchEvent<Played>> {
        match self.fetch(partition, count)? {
            FetchEvent::Batch(_) => Some(FetchEvent::Unreadable {
                partition: tp(partition),
                detail: "simulated".into(),
            }),
            // Where there is nothing to read, nothing is spoilt.
            other => Some(other),
        }
    }

    /// A position is called out of range, and the client ends fetching from there.
    pub(super) fn refuse_position(&mut self, partition: i32) -> Option<FetchEvent<Played>> {
        let is_fetched =
            self.fetching.contains_key(&partition) && !self.paused.contains(&partition);
        let is_news = is_fetched && self.ended.insert(partition);
        is_news.then(|| FetchEvent::OutOfRange(tp(partition)))
    }

    // --- others ------------------------------------------------------------------------------

    /// Whoever has the partition now copies and commits some of it.
    pub(super) fn copy_elsewhere(&mut self, partition: i32, count: usize) {
        let place = self.places[partition as usize];
        if !matches!(place, Place::Elsewhere | Place::Lost) || self.presence == Presence::Deleted {
            return;
        }
        // They have met another topic, as we have.
        if self.met.is_some_and(|met| met != self.creation()) {
            return;
        }
        if !self.has_started() {
            if self.places[0] != Place::Elsewhere {
                return;
            }
            self.start_elsewhere();
        }
        let Settings {
            on_error, shape, ..
        } = self.settings();
        let log = self.log(partition);
        let Some(committed) = log.committed.clone() else {
            return;
        };
        if !log.is_within(committed.offset) || committed.of != self.creation() {
            return;
        }
        let next: Vec<usize> = log.at.range(committed.offset..).map(|(_, n)| *n).collect();
        if next.is_empty() || count == 0 {
            return;
        }
        let committed = Committed {
            metadata: self.write_elsewhere(partition, &committed.metadata),
            ..committed
        };
        self.log_mut(partition).committed = Some(committed.clone());
        for number in next.into_iter().take(count) {
            let entry = &mut self.records[number];
            if entry.is_bad && outputs(entry.offset, shape) > 0 && on_error == OnError::Stop {
                return;
            }
            entry.is_done_elsewhere = true;
            entry.entered = true;
            let offset = entry.offset + 1;
            let log = self.log_mut(partition);
            log.committed = Some(Committed {
                offset,
                ..committed.clone()
            });
        }
    }

    /// What is to be told of a position, as `on_gap` says.
    pub(super) fn look(&mut self, partition: i32, position: i64, on_gap: OnGap) {
        let log = self.log(partition);
        let (start, end) = (log.start, log.end);
        let is_behind = position < start;
        if log.is_within(position) {
            return;
        }
        self.seen.note(match (is_behind, on_gap) {
            (true, OnGap::Stop) => Rare::BehindStop,
            (true, OnGap::Earliest) => Rare::BehindEarliest,
            (true, OnGap::Latest) => Rare::BehindLatest,
            (false, OnGap::Stop) => Rare::BeyondStop,
            (false, OnGap::Earliest) => Rare::BeyondEarliest,
            (false, OnGap::Latest) => Rare::BeyondLatest,
        });
        let (from, to, at) = match (is_behind, on_gap) {
            (_, OnGap::Stop) => return,
            (true, OnGap::Earliest) => (position, start, start),
            (true, OnGap::Latest) => (position, end, end),
            (false, _) => (end, position, end),
        };
        self.gaps.insert((partition, from, to));
        self.log_mut(partition).resume_at = Some(at);
    }
}

pub(super) struct FakeSource(pub(super) Shared);

impl Source for FakeSource {
    type Record = Played;

    fn poll(&mut self, _: Duration) -> FetchEvent<Played> {
        FetchEvent::Idle
    }
    fn subscribe(&mut self, names: &[String]) -> Result<(), String> {
        self.0.with(|w| w.subscribed = !names.is_empty());
        Ok(())
    }
    fn place(&mut self, at: &[(TopicPartition, Offset)]) -> Result<(), String> {
        self.0.with(|w| {
            for (tp, offset) in at {
                w.placed(tp, offset.0);
            }
        });
        Ok(())
    }
    fn rewind(&mut self, partition: &TopicPartition, to: Offset) -> Result<(), String> {
        self.0.with(|w| {
            if w.ended.contains(&partition.partition) {
                return Err("fetching has ended".to_owned());
            }
            if let Some(at) = w.fetching.get_mut(&partition.partition) {
                *at = to.0;
                w.paused.remove(&partition.partition);
                w.log_mut(partition.partition).next = to.0;
            }
            Ok(())
        })
    }
    fn pause(&mut self, partitions: &[TopicPartition]) {
        let all = partitions.iter().map(|tp| tp.partition);
        self.0.with(|w| w.paused.extend(all));
    }
    fn resume(&mut self, partitions: &[TopicPartition]) {
        self.0.with(|w| {
            w.paused
                .retain(|p| !partitions.iter().any(|tp| tp.partition == *p));
        });
    }
    fn release(&mut self, partitions: &[TopicPartition]) -> Result<(), String> {
        self.0.with(|w| {
            for tp in partitions {
                w.let_go(tp);
            }
            w.rebalancing = false;
        });
        Ok(())
    }
    fn commit(&mut self, entries: &[CommitEntry], id: u64) -> Result<(), String> {
        self.0.with(|w| w.sent(entries, id));
        Ok(())
    }
    fn abandon(&mut self, _: Abandon) {}
    fn renew(&mut self) -> Result<(), String> {
        Ok(())
    }
    fn leave(&mut self, _: Duration) {}
}

impl World {
    fn placed(&mut self, tp: &TopicPartition, offset: i64) {
        let place = self.places[tp.partition as usize];
        self.holds(place != Place::Elsewhere, || {
            format!("placed {tp}, which is not ours")
        });
        self.check_position(tp.partition, offset, place);
        self.fetching.insert(tp.partition, offset);
        self.paused.remove(&tp.partition);
        self.ended.remove(&tp.partition);
        self.log_mut(tp.partition).next = offset;
    }

    /// A partition that is not fetched yet begins where it is known to.
    fn check_position(&mut self, partition: i32, offset: i64, place: Place) {
        let log = self.log(partition);
        let committed = log.committed.as_ref().map(|c| c.offset);
        // It may have been asked before a commit of a former life landed late: the next one of this life puts
        // that right, and what is copied again until then is repeated.
        let known = [committed, log.before_late, log.resume_at];
        let is_position = known.contains(&Some(offset));
        // Nor is it while nobody has heard that the topic is another one.
        let is_current = place == Place::Ours && self.met == Some(self.creation());
        let is_there = self.presence == Presence::There;
        self.holds(!is_current || !is_there || is_position, || {
            format!("{partition} begins at {offset}, known is {known:?}")
        });
    }

    fn let_go(&mut self, tp: &TopicPartition) {
        let in_flight = self.handles.iter().flat_map(|at| &at.in_flight);
        let mut of_it = in_flight.filter(|sent| sent.partition == tp.partition);
        let has_any = of_it.any(|sent| !self.is_stray(sent.number));
        self.holds(!has_any, || {
            format!("I2: {tp} was let go with records in flight")
        });
        self.fetching.remove(&tp.partition);
        // Whoever gets what the group took back copies it again: it is not ours to tell.
        if self.places[tp.partition as usize] == Place::Revoking {
            self.log_mut(tp.partition).life += 1;
        }
        self.places[tp.partition as usize] = Place::Elsewhere;
        self.forget_failures(tp.partition);
    }

    fn sent(&mut self, entries: &[CommitEntry], id: u64) {
        for entry in entries.iter().filter(|e| !is_start(e)) {
            let (partition, offset) = (entry.partition.partition, entry.offset.0);
            let place = self.places[partition as usize];
            self.holds(place != Place::Elsewhere, || {
                format!("I3: {partition}@{offset} is committed after it was let go")
            });
            match self.fetching.get(&partition).copied() {
                Some(next) => self.holds(offset <= next, || {
                    format!("I1: {partition}@{offset} is committed, fetched is up to {next}")
                }),
                // Its writer is committed before it is fetched.
                None => self.check_position(partition, offset, place),
            }
            let (of, verified) = (committed(entry).of, self.verified);
            self.holds(of == verified, || {
                format!("{partition}@{offset} is committed for topic {of}, asked was {verified}")
            });
        }
        // A member that was thrown out and has not heard of it yet.
        let landing = match self.expired || self.places.contains(&Place::Lost) {
            true => Landing::Fenced,
            false => Landing::InTime,
        };
        self.commits.push_back(OnItsWay {
            entries: entries.to_vec(),
            id,
            landing,
        });
    }
}
