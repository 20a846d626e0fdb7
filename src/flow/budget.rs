//! How much may be in flight (I4), in two thresholds: above the upper one fetching is held, below
//! the lower one it goes on (Brooklin's way; a resumed partition takes about a second to its first
//! record, so the distance is wide).
//!
//! The upper threshold is the configured budget, or less: what the target acknowledges in about two
//! seconds, so that a rebalance drains in time (`engine.md` rule 5).

use std::time::{Duration, Instant};

/// The rate's cap never goes below this.
const FLOOR: u64 = 4 << 20;
/// The cap in time.
const SECONDS: f64 = 2.0;
/// How often the rate is taken.
const WINDOW: Duration = Duration::from_millis(250);

/// The budget of one worker.
#[derive(Debug)]
pub(crate) struct Budget {
    limit: u64,
    used: u64,
    /// Of `used`, what belongs to partitions that make no progress.
    aside: u64,
    acked: u64,
    since: Instant,
    rate: Option<f64>,
}

impl Budget {
    pub(crate) fn new(limit: u64, now: Instant) -> Self {
        Self {
            limit: limit.max(1),
            used: 0,
            aside: 0,
            acked: 0,
            since: now,
            rate: None,
        }
    }

    /// Keeps to another limit from now on.
    pub(crate) fn keep_to(&mut self, limit: u64) {
        self.limit = limit.max(1);
    }

    /// A batch enters.
    pub(crate) fn take(&mut self, cost: u64) {
        self.used += cost;
    }

    /// A batch is resolved or given up.
    pub(crate) fn give(&mut self, cost: u64) {
        self.used = self.used.saturating_sub(cost);
        self.acked += cost;
    }

    /// What is in flight.
    pub(crate) fn used(&self) -> u64 {
        self.used
    }

    /// Says how much of what is in flight belongs to partitions that make no progress: the cap by
    /// rate is about the others.
    pub(crate) fn set_aside(&mut self, aside: u64) {
        self.aside = aside;
    }

    /// Takes the acked rate; called often.
    pub(crate) fn tick(&mut self, now: Instant) {
        let elapsed = now.saturating_duration_since(self.since);
        if elapsed < WINDOW {
            return;
        }
        let rate = self.acked as f64 / elapsed.as_secs_f64();
        // Only what flows says how fast the target is: an idle window is no slow target.
        if self.acked > 0 || self.used > 0 {
            self.rate = Some(self.rate.map_or(rate, |before| (before + rate) / 2.0));
        }
        self.acked = 0;
        self.since = now;
    }

    fn upper(&self) -> u64 {
        let by_rate = self
            .rate
            .map_or(u64::MAX, |r| ((r * SECONDS) as u64).max(FLOOR));
        self.limit.min(by_rate)
    }

    /// Whether fetching is to be held.
    pub(crate) fn is_spent(&self) -> bool {
        self.used >= self.limit || self.used.saturating_sub(self.aside) >= self.upper()
    }

    /// Whether held fetching may go on.
    pub(crate) fn has_room(&self) -> bool {
        self.used < self.limit / 4 * 3 && self.used.saturating_sub(self.aside) < self.upper() / 2
    }

    /// What one partition may hold without progress before it is paused alone.
    pub(crate) fn partition_share(&self) -> u64 {
        self.upper() / 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_thresholds_apart() {
        let mut budget = Budget::new(100, Instant::now());
        budget.take(99);
        assert!(!budget.is_spent());
        budget.take(1);
        assert!(budget.is_spent());
        budget.give(40);
        assert!(
            !budget.is_spent() && !budget.has_room(),
            "between the two nothing changes"
        );
        budget.give(11);
        assert!(budget.has_room());
    }

    #[test]
    fn a_slow_target_lowers_the_threshold_to_the_floor_and_no_further() {
        let start = Instant::now();
        let mut budget = Budget::new(1 << 30, start);
        budget.take(100 << 20);
        for i in 1..40u32 {
            budget.give(1000);
            budget.tick(start + WINDOW * i);
        }
        budget.used = FLOOR - 1;
        assert!(!budget.is_spent());
        budget.used = FLOOR;
        assert!(budget.is_spent());
    }

    #[test]
    fn an_idle_flow_is_not_a_slow_one() {
        let start = Instant::now();
        let mut budget = Budget::new(1 << 30, start);
        for i in 1..10u32 {
            budget.tick(start + WINDOW * i);
        }
        budget.take(500 << 20);
        assert!(!budget.is_spent());
    }
}
