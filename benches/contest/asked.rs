//! What is asked of `mirror`, beside what was got.

use crate::contender::{Contender, Plane, Shape};
use crate::cost::Round;
use crate::idle::Idle;
use crate::latency::Delay;
use crate::memory::{LIMIT_MB, Peak};

/// One thing asked: not more than that.
pub struct Asked {
    pub what: String,
    pub limit: f64,
    pub got: f64,
    pub unit: &'static str,
}

impl Asked {
    /// Whether it is so. What could not be measured is not so.
    pub fn is_met(&self) -> bool {
        self.got <= self.limit
    }
}

const LIBRDKAFKA: Contender = Contender::Mirror(Plane::Librdkafka, Shape::Worker);
const NATIVE: Contender = Contender::Mirror(Plane::Native, Shape::Worker);
const PASSING: Contender = Contender::Mirror(Plane::NativePassing, Shape::Worker);

/// CPU of each against the bare loop.
const RATIOS: [(&str, [(Contender, f64); 3]); 3] = [
    ("1k", [(LIBRDKAFKA, 1.15), (NATIVE, 0.6), (PASSING, 0.6)]),
    (
        "1k-lz4",
        [(LIBRDKAFKA, 1.15), (NATIVE, 0.85), (PASSING, 0.2)],
    ),
    (
        "70b-lz4",
        [(LIBRDKAFKA, 1.15), (NATIVE, 0.4), (PASSING, 0.1)],
    ),
];
/// Memory of the native plane on these loads.
const RSS_MB: f64 = 150.0;
/// Cost of a record, many against few: data that lie in more partitions, or in more routes.
const GROWTH: f64 = 1.2;
const GROWN: [(&str, &str); 3] = [
    ("wide", "wide-100-routes"),
    ("wide", "wide-200-routes"),
    ("parts-10", "parts-5000"),
];
/// Beside the limit of the file.
const OVERHEAD_MB: f64 = 64.0;
const IDLE_PERCENT: f64 = 0.1;
const P99_MS: f64 = 10.0;

/// What these rounds have to say.
pub fn of_rounds(rounds: &[Round]) -> Vec<Asked> {
    let mut all = Vec::new();
    for (workload, ratios) in RATIOS {
        let Some(round) = rounds.iter().find(|r| r.workload.name == workload) else {
            continue;
        };
        for (contender, limit) in ratios {
            all.extend(against_bare(round, contender, limit));
        }
        for contender in [NATIVE, PASSING] {
            all.extend(round.of(contender).map(|entry| Asked {
                what: format!("{workload}: resident memory of {}", contender.name()),
                limit: RSS_MB,
                got: entry.rss_mb(),
                unit: "MB",
            }));
        }
    }
    for (few, many) in GROWN {
        for contender in [LIBRDKAFKA, NATIVE, PASSING] {
            all.extend(growth(rounds, few, many, contender));
        }
    }
    all
}

fn against_bare(round: &Round, contender: Contender, limit: f64) -> Option<Asked> {
    Some(Asked {
        what: format!(
            "{}: CPU of {} against the bare loop",
            round.workload.name,
            contender.name()
        ),
        limit,
        got: round.ratio(contender, Contender::Bare)?,
        unit: "×",
    })
}

fn growth(rounds: &[Round], few: &str, many: &str, contender: Contender) -> Option<Asked> {
    let micros = |name: &str| {
        let round = rounds.iter().find(|r| r.workload.name == name)?;
        round.micros(round.of(contender)?)
    };
    Some(Asked {
        what: format!("{many} against {few}: CPU of {}", contender.name()),
        limit: GROWTH,
        got: micros(many)? / micros(few)?,
        unit: "×",
    })
}

/// What is asked of memory.
pub fn of_peaks(peaks: &[Peak]) -> Vec<Asked> {
    let asked = |peak: &Peak| Asked {
        what: format!(
            "backlog: resident memory of {}, limits.memory {LIMIT_MB}MiB",
            peak.plane
        ),
        limit: LIMIT_MB as f64 + OVERHEAD_MB,
        got: peak.rss_mb,
        unit: "MB",
    };
    peaks.iter().map(asked).collect()
}

/// What is asked of routes with nothing to do.
pub fn of_idles(idles: &[Idle]) -> Vec<Asked> {
    let mut all = Vec::new();
    for idle in idles {
        let mut ask = |what: &str, limit, got, unit| {
            all.push(Asked {
                what: format!("idle routes: {what}, {}", idle.plane),
                limit,
                got,
                unit,
            });
        };
        ask(
            "CPU of each",
            IDLE_PERCENT,
            idle.core_percent,
            "% of a core",
        );
        let (threads, descriptors) = (idle.threads, idle.descriptors);
        ask(
            "threads, as `check` said",
            threads.said as f64,
            threads.got as f64,
            "",
        );
        ask(
            "descriptors, as `check` said",
            descriptors.said as f64,
            descriptors.got as f64,
            "",
        );
    }
    all
}

/// What is asked of the delay, where the pace is a thousand a second.
pub fn of_delays(delays: &[Delay]) -> Vec<Asked> {
    let asked = |delay: &Delay| Asked {
        what: format!(
            "{} records/s: p99 of {}",
            delay.pace.per_second,
            delay.contender.name()
        ),
        limit: P99_MS,
        got: delay.percentile(99.0),
        unit: "ms",
    };
    let native = delays.iter().filter(|d| d.contender == PASSING);
    native.map(asked).collect()
}
