//! A producer that says nothing of its records is made anew.
//!
//! With an infinite timeout the client waits as long as its broker does not answer, which is what we want of it. But after a
//! broker had stood still until its controller dropped it, and came back, the client was seen to wait for ever, with the
//! broker answering everything else. Whoever is silent for too long while the target answers is therefore purged: every record
//! on it gets an outcome, the partitions go back to their watermarks, and what had arrived unsaid may be copied again.

use super::Worker;
use super::ticket::LaneWord;
use crate::plane::{Sink, Source};
use std::time::{Duration, Instant};

/// How often silence is looked for.
const LOOK: Duration = Duration::from_millis(500);
/// The longest time that a producer is given.
const LONGEST: Duration = Duration::from_secs(600);

/// How long a producer may say nothing, and when that is looked at next.
#[derive(Debug)]
pub(super) struct Silence {
    first: Duration,
    patience: Duration,
    next_look: Instant,
    /// When the target was last seen away: the client has to find its way back first.
    away: Instant,
    renewed: Option<Instant>,
}

impl Silence {
    pub(super) fn new(first: Duration, now: Instant) -> Self {
        Self {
            first,
            patience: first,
            next_look: now,
            away: now,
            renewed: None,
        }
    }

    /// A target partition may be without leader for hours, and making producers anew would not help it: the next
    /// one gets twice the time. Long after that it is another story.
    fn renew(&mut self, now: Instant) -> Duration {
        let waited = self.patience;
        self.patience = waited.saturating_mul(2).min(LONGEST);
        self.renewed = Some(now);
        waited
    }

    fn forget(&mut self, now: Instant) {
        if self
            .renewed
            .is_some_and(|at| now.duration_since(at) > 2 * LONGEST)
        {
            self.patience = self.first;
            self.renewed = None;
        }
    }
}

impl<S: Source, K: Sink> Worker<S, K> {
    /// Purges a producer that holds records and has said nothing of them for too long. A drain and a release have deadlines
    /// of their own.
    pub(super) fn look_for_silence(&mut self, now: Instant) {
        if now < self.silence.next_look {
            return;
        }
        self.silence.next_look = now + LOOK;
        self.silence.forget(now);
        if self.troubles.target_is_away() {
            self.silence.away = now;
        }
        if self.draining.is_some() || self.release.is_some() {
            return;
        }
        let (patience, away) = (self.silence.patience, self.silence.away);
        let silent = self.owned.values().find(|o| {
            o.in_flight > 0
                && now.duration_since(o.last_progress.max(away)) > patience
                && self.tickets.lane_word(&o.id) == Some(LaneWord::Given)
        });
        let Some((owned, sink)) = silent.and_then(|o| Some((o, o.sink.clone()?))) else {
            return;
        };
        tracing::warn!(event = "producer_renewed", subject = %self.subject, worker = self.index,
            topic = %owned.id.topic, partition = owned.id.partition, watermark = owned.tracker.watermark().0,
            after_ms = self.silence.renew(now).as_millis() as u64,
            "the target answers, but not to the producer; it is made anew, and what was in flight may be copied twice");
        self.purge(&sink);
    }
}
