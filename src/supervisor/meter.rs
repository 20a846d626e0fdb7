//! How fast a flow is: its progress over the last seconds, and how long a record takes.

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
    /// From fetch to acknowledgement, on average over batches; `null` if none was acknowledged lately.
    #[serde(default)]
    pub delay_seconds: Option<f64>,
}

/// Growing totals at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample {
    /// Source records resolved.
    pub records: u64,
    /// Bytes acknowledged by the target.
    pub bytes: u64,
    /// Batches acknowledged.
    pub batches: u64,
    /// What they took from fetch to acknowledgement, together.
    pub delay: Duration,
}

/// Samples, and the rate between the oldest and the newest.
#[derive(Clone, Debug, Default)]
pub struct Meter {
    samples: VecDeque<(Instant, Sample)>,
}

impl Meter {
    /// Takes one sample; those older than the window are forgotten.
    pub fn sample(&mut self, now: Instant, sample: Sample) {
        self.samples.push_back((now, sample));
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
        let (first, last) = (first.1, last.1);
        let batches = last.batches.saturating_sub(first.batches);
        let delay = last.delay.saturating_sub(first.delay).as_secs_f64();
        Rate {
            records_per_second: last.records.saturating_sub(first.records) as f64 / seconds,
            bytes_per_second: last.bytes.saturating_sub(first.bytes) as f64 / seconds,
            delay_seconds: (batches > 0).then(|| delay / batches as f64),
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
            let sample = Sample {
                records,
                bytes: records * 10,
                batches: second,
                delay: Duration::from_millis(if second < 30 { 0 } else { (second - 30) * 20 }),
            };
            meter.sample(start + Duration::from_secs(second), sample);
        }
        assert_eq!(meter.rate().records_per_second, 100.0);
        assert_eq!(meter.rate().bytes_per_second, 1000.0);
        assert_eq!(meter.rate().delay_seconds, Some(0.02));
        assert_eq!(Meter::default().rate().delay_seconds, None);
    }
}
