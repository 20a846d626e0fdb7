//! Pauses that double with each failure in a row.

use std::time::Duration;

/// Between which pauses a back-off moves.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// The first one.
    pub first: Duration,
    /// The longest one.
    pub longest: Duration,
}

/// Failures in a row.
#[derive(Clone, Debug, Default)]
pub struct Backoff {
    failures: u32,
}

impl Backoff {
    /// The pause after one more failure. `jitter` in `0.0..1.0` spreads it over its upper half, so that those who failed
    /// together do not come back together.
    pub fn next(&mut self, span: Span, jitter: f64) -> Duration {
        let doubled = span.first.saturating_mul(1_u32 << self.failures.min(16));
        self.failures = self.failures.saturating_add(1);
        let whole = doubled.min(span.longest);
        whole / 2 + (whole / 2).mul_f64(jitter.clamp(0.0, 1.0))
    }

    /// Forgets the failures.
    pub fn reset(&mut self) {
        self.failures = 0;
    }

    /// Failures in a row.
    pub fn failures(&self) -> u32 {
        self.failures
    }
}

/// A source of jitter that needs no seed: the standard library's hash keys are random.
pub fn jitter() -> f64 {
    use std::hash::{BuildHasher, Hasher};
    let random = std::hash::RandomState::new().build_hasher().finish();
    f64::from((random >> 32) as u32) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_up_to_the_longest_and_starts_again_after_health() {
        let span = Span {
            first: Duration::from_secs(1),
            longest: Duration::from_secs(60),
        };
        let mut backoff = Backoff::default();
        let waits: Vec<u64> = (0..9).map(|_| backoff.next(span, 1.0).as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        backoff.reset();
        assert_eq!(backoff.next(span, 0.0), Duration::from_millis(500));
    }

    #[test]
    fn jitter_stays_in_range() {
        assert!((0..100).map(|_| jitter()).all(|j| (0.0..=1.0).contains(&j)));
    }
}
