//! How fast a flow is: its progress over the last seconds.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The window that a rate is taken over.
const WINDOW: Duration = Duration::from_secs(10);

/// Progress per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    /// Source records resolved per second.
    pub records_per_second: f64,
    /// Bytes acknowledged by the target per second.
    pub bytes_per_second: f64,
}

/// Samples of two growing totals, and the rate between the oldest and the newest.
#[derive(Clone, Debug, Default)]
pub struct Meter {
    samples: VecDeque<(Instant, u64, u64)>,
}

impl Meter {
    /// Takes one sample; those older than the window are forgotten.
    pub fn sample(&mut self, now: Instant, records: u64, bytes: u64) {
        self.samples.push_back((now, records, bytes));
        // The oldest stays until a younger one covers the whole window.
        while self.samples.len() > 2 && now.duration_since(self.samples[1].0) >= WINDOW {
            self.samples.pop_front();
        }
    }

    /// The rate over the window, 0 until there are two samples.
    pub fn rate(&self) -> Rate {
        let (Some(first), Some(last)) = (self.samples.front(), self.samples.back()) else {
            return Rate::default();
        };
        let seconds = last.0.duration_since(first.0).as_secs_f64();
        if seconds <= 0.0 {
            return Rate::default();
        }
        Rate {
            records_per_second: last.1.saturating_sub(first.1) as f64 / seconds,
            bytes_per_second: last.2.saturating_sub(first.2) as f64 / seconds,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_is_of_the_last_ten_seconds() {
        let start = Instant::now();
        let mut meter = Meter::default();
        for second in 0..60 {
            let records = if second < 40 { 0 } else { (second - 40) * 100 };
            meter.sample(start + Duration::from_secs(second), records, records * 10);
        }
        assert_eq!(meter.rate().records_per_second, 100.0);
        assert_eq!(meter.rate().bytes_per_second, 1000.0);
    }
}
