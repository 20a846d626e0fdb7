//! Holding back: when fetching waits for want of budget, and when it goes on (I4, `engine.md` rules 6
//! and 11).

use super::Worker;
use crate::observe::Counters;
use crate::plane::{Sink, Source};
use crate::record::TopicPartition;
use crossbeam_channel::RecvTimeoutError;
use std::time::{Duration, Instant};

/// How long one wait for acknowledgements takes while fetching is held.
const HOLD_WAIT: Duration = Duration::from_millis(20);
/// How long fetching is held by not polling, before partitions are paused: a pause throws away what
/// the client has fetched ahead, and a resume takes about a second.
const HOLD_LIMIT: Duration = Duration::from_secs(1);
/// How often partitions with nothing in flight are let in while fetching is paused.
const TRICKLE: Duration = Duration::from_secs(1);
/// Without an acknowledgement for so long, a partition that holds something is stuck.
const STUCK: Duration = Duration::from_secs(1);
/// How often that is looked for.
const STUCK_LOOK: Duration = Duration::from_millis(250);

impl<S: Source, K: Sink> Worker<S, K> {
    /// Whether fetching is held for want of budget or of room in a handler's queue. A release is
    /// never held up: nothing new is taken in it.
    pub(super) fn is_held(&mut self) -> bool {
        if self.release.is_some() || self.paused_all {
            self.resume_if_room();
            return false;
        }
        let full = self.budget.is_spent() || self.stage.is_full();
        if !full {
            self.held_since = None;
            return false;
        }
        let since = *self.held_since.get_or_insert_with(Instant::now);
        if since.elapsed() > HOLD_LIMIT {
            self.pause_all();
            return false;
        }
        true
    }

    /// Holds by not polling: what the client has fetched ahead stays there. Short enough for the
    /// group, since heartbeats go on by themselves.
    pub(super) fn wait_for_room(&mut self) {
        let before = Instant::now();
        match self.inbox.recv_timeout(HOLD_WAIT) {
            Ok(note) => self.take(note),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                self.finish(self.stopped());
            }
        }
        let waited = before.elapsed().as_millis() as u64;
        Counters::add(&self.view.counters.blocked_ms, waited);
    }

    pub(super) fn pause_all(&mut self) {
        let placed = self.placed();
        self.source.pause(&placed);
        self.paused_all = true;
        Counters::add(&self.view.counters.pauses, placed.len() as u64);
        tracing::debug!(event = "paused", subject = %self.subject, in_flight_bytes = self.budget.used());
    }

    pub(super) fn resume_if_room(&mut self) {
        if !self.paused_all {
            return;
        }
        if !self.budget.has_room() || self.stage.is_full() {
            return self.trickle();
        }
        self.paused_all = false;
        self.held_since = None;
        let flowing: Vec<TopicPartition> = self
            .owned
            .values()
            .filter(|o| o.wants_records())
            .map(|o| o.id.clone())
            .collect();
        self.source.resume(&flowing);
    }

    /// Progress before budget: a partition with nothing in flight may always have one batch (rule 11).
    /// It is paused again with that batch (`pause_if_held`).
    pub(super) fn trickle(&mut self) {
        let now = Instant::now();
        if now < self.next_trickle {
            return;
        }
        self.next_trickle = now + TRICKLE;
        let idle: Vec<TopicPartition> = self
            .owned
            .values()
            .filter(|o| o.wants_records() && o.in_flight == 0)
            .map(|o| o.id.clone())
            .collect();
        if !idle.is_empty() {
            self.source.resume(&idle);
        }
    }

    /// While fetching is paused, a partition was let in for one batch only.
    pub(super) fn pause_if_held(&mut self, tp: &TopicPartition) {
        if self.paused_all && self.owned.get(tp).is_some_and(|o| o.placed) {
            self.source.pause(std::slice::from_ref(tp));
        }
    }

    /// Partitions that hold something and make no progress: paused alone once they hold a share, and
    /// left out of the flow's thresholds, so that a target partition without leader does not starve
    /// the others (B072). What they hold still counts towards the limit.
    pub(super) fn look_for_stuck(&mut self, now: Instant) {
        if now < self.next_stuck_look {
            return;
        }
        self.next_stuck_look = now + STUCK_LOOK;
        let share = self.budget.partition_share();
        let mut aside = 0;
        let mut pause = Vec::new();
        for owned in self.owned.values_mut() {
            if owned.cost == 0 || owned.last_progress.elapsed() < STUCK {
                continue;
            }
            aside += owned.cost;
            if owned.cost >= share && !owned.paused_alone && owned.placed {
                owned.paused_alone = true;
                pause.push(owned.id.clone());
            }
        }
        self.budget.set_aside(aside);
        if !pause.is_empty() {
            Counters::add(&self.view.counters.pauses, pause.len() as u64);
            self.source.pause(&pause);
        }
    }
}
