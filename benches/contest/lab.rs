//! What contenders cost when the project began, on another machine of two cores: CPU seconds for the whole of each load, start
//! included, with both brokers on the same cores, Apache Kafka 4.3.1, read as ± 15 %. A contender that costs much more here
//! is set up wrongly, or the machine is slower or busy: the run says so with both figures.

use crate::contender::Contender;
use crate::cost::Round;
use crate::maker::Tuning;

/// How much more is too much.
const MORE: f64 = 1.15;

/// 1.5 M × 944 B uncompressed; the same, LZ4; 5 M × 70 B, LZ4. Those of the relay for compressed loads are scaled by bytes.
const WORKLOADS: [(&str, f64); 3] = [("1k", 1.5e6), ("1k-lz4", 1.5e6), ("70b-lz4", 5e6)];
const SECONDS: [(Contender, [f64; 3]); 6] = [
    (Contender::Maker(Tuning::Defaults), [38.1, 25.8, 34.3]),
    (Contender::Maker(Tuning::Tuned), [19.9, 20.5, 30.2]),
    (Contender::Franz, [3.3, 10.6, 6.6]),
    (Contender::Bare, [3.4, 5.5, 6.25]),
    (Contender::Probe, [1.8, 0.9, 0.38]),
    (Contender::Relay, [0.9, 0.35, 0.13]),
];

/// Microseconds for a record of this load, if it was measured.
pub fn micros(workload: &str, contender: Contender) -> Option<f64> {
    let load = WORKLOADS.iter().position(|(name, _)| *name == workload)?;
    let (_, seconds) = SECONDS.iter().find(|(who, _)| *who == contender)?;
    Some(seconds[load] / WORKLOADS[load].1 * 1e6)
}

/// A word on every contender that costs too much.
pub fn warnings(rounds: &[Round]) -> Vec<String> {
    let mut warnings = Vec::new();
    for round in rounds {
        for entry in &round.entries {
            let lab = micros(round.workload.name, entry.contender);
            let (Some(lab), Some(here)) = (lab, round.micros(entry)) else {
                continue;
            };
            if here > lab * MORE {
                warnings.push(format!(
                    "{} on {} costs {here:.2} µs a record here and cost {lab:.2} µs in the lab: it is set up wrongly, or the machine is slower or busy",
                    entry.contender.name(),
                    round.workload.name
                ));
            }
        }
    }
    warnings
}
