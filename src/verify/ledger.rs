//! What audits have found, as metrics: totals, and both ends of the newest round.

use super::audit::{Round, Verdict};
use super::compare::{Sum, Tally};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Metrics are floats: this much of a hash is exact in one.
const HASH_BITS: u64 = (1 << 48) - 1;

/// The audits of one process, by route and target. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Ledger(Arc<Mutex<BTreeMap<Account, Entry>>>);

/// Route and target.
type Account = (String, String);

#[derive(Debug, Default)]
struct Entry {
    rounds: BTreeMap<Verdict, u64>,
    tally: Tally,
    newest: Option<Newest>,
}

/// The newest round in which everything was compared.
#[derive(Debug)]
struct Newest {
    at: Duration,
    source: Sum,
    target: Sum,
}

impl Ledger {
    /// Opens an account: its series exist from now on, with 0.
    pub fn open(&self, route: &str, target: &str) {
        let account = (route.to_owned(), target.to_owned());
        self.lock().entry(account).or_default();
    }

    /// Enters a round that ended at `at`, since the epoch.
    pub fn enter(&self, route: &str, target: &str, at: Duration, round: &Round) {
        let mut accounts = self.lock();
        let entry = accounts
            .entry((route.to_owned(), target.to_owned()))
            .or_default();
        *entry.rounds.entry(round.verdict()).or_default() += 1;
        entry.tally.add(&round.tally);
        if round.unasked.is_none() {
            entry.newest = Some(Newest {
                at,
                source: round.ends.source,
                target: round.ends.target,
            });
        }
    }

    /// The text of a scrape now.
    ///
    /// # Errors
    /// Never in practice: writing to a string does not fail.
    pub fn render(&self) -> Result<String, fmt::Error> {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(self.clone()));
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry)?;
        Ok(text)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Account, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Collector for Ledger {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let accounts = self.lock();
        let encoder = &mut encoder;
        rounds(&accounts, encoder)?;
        records(&accounts, encoder)?;
        ends(&accounts, encoder)
    }
}

fn rounds(accounts: &BTreeMap<Account, Entry>, encoder: &mut DescriptorEncoder) -> fmt::Result {
    let help = "Rounds of the audit, by what they say";
    let mut family =
        encoder.encode_descriptor("mirror_audit_rounds", help, None, MetricType::Counter)?;
    for (account, entry) in accounts {
        for verdict in Verdict::ALL {
            let count = entry.rounds.get(&verdict).copied().unwrap_or(0);
            let labels = labels(account, "verdict", verdict.as_str());
            ConstCounter::new(count).encode(family.encode_family(&labels)?)?;
        }
    }
    Ok(())
}

fn records(accounts: &BTreeMap<Account, Entry>, encoder: &mut DescriptorEncoder) -> fmt::Result {
    let help = "Records that the audit judged, by outcome";
    let mut family =
        encoder.encode_descriptor("mirror_audit_records", help, None, MetricType::Counter)?;
    for (account, entry) in accounts {
        for (outcome, count) in outcomes(&entry.tally) {
            let labels = labels(account, "outcome", outcome);
            ConstCounter::new(count).encode(family.encode_family(&labels)?)?;
        }
    }
    Ok(())
}

fn outcomes(tally: &Tally) -> [(&'static str, u64); 11] {
    [
        ("matched", tally.matched),
        ("repeated", tally.repeated),
        ("missing", tally.missing),
        ("extra", tally.extra),
        ("altered", tally.altered),
        ("reordered", tally.reordered),
        ("moved", tally.moved),
        ("compacted", tally.compacted),
        ("expired", tally.expired),
        ("older", tally.older),
        ("before_start", tally.before_start),
    ]
}

type Read = fn(&Sum) -> f64;

fn ends(accounts: &BTreeMap<Account, Entry>, encoder: &mut DescriptorEncoder) -> fmt::Result {
    let gauges: [(&str, &str, Read); 2] = [
        (
            "mirror_audit_round_records",
            "Records of the newest whole round, each once: what the source makes, and what stands at the target",
            |sum| sum.records as f64,
        ),
        (
            "mirror_audit_round_hash",
            "48 bits of the sum of these records' fingerprints: equal where the ends are",
            |sum| (sum.hash & HASH_BITS) as f64,
        ),
    ];
    for (name, help, read) in gauges {
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (account, newest) in newest(accounts) {
            for (end, sum) in [("source", &newest.source), ("target", &newest.target)] {
                let labels = labels(account, "end", end);
                ConstGauge::new(read(sum)).encode(family.encode_family(&labels)?)?;
            }
        }
    }
    let help = "When the newest whole round ended";
    let unit = Unit::Seconds;
    let name = "mirror_audit_round_timestamp";
    let mut family = encoder.encode_descriptor(name, help, Some(&unit), MetricType::Gauge)?;
    for ((route, target), newest) in newest(accounts) {
        let labels = [("route", route.as_str()), ("target", target.as_str())];
        ConstGauge::new(newest.at.as_secs_f64()).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}

fn newest(accounts: &BTreeMap<Account, Entry>) -> impl Iterator<Item = (&Account, &Newest)> {
    let accounts = accounts.iter();
    accounts.filter_map(|(account, entry)| Some((account, entry.newest.as_ref()?)))
}

fn labels<'a>(
    (route, target): &'a Account,
    name: &'static str,
    value: &'a str,
) -> [(&'static str, &'a str); 3] {
    [("route", route), ("target", target), (name, value)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::compare::Ends;

    #[test]
    fn a_round_is_in_the_scrape_and_before_it_zeros() {
        let ledger = Ledger::default();
        ledger.open("r", "t");
        let text = ledger.render().expect("text");
        assert!(
            text.contains(
                "mirror_audit_rounds_total{route=\"r\",target=\"t\",verdict=\"different\"} 0"
            ),
            "{text}"
        );
        assert!(!text.contains("mirror_audit_round_hash{"), "{text}");

        let sum = |hash| Sum { records: 7, hash };
        let round = Round {
            tally: Tally {
                matched: 6,
                altered: 1,
                ..Tally::default()
            },
            ends: Ends {
                source: sum(1 << 50 | 5),
                target: sum(6),
            },
            ..Round::default()
        };
        ledger.enter("r", "t", Duration::from_millis(1500), &round);
        let text = ledger.render().expect("text");
        for line in [
            "mirror_audit_rounds_total{route=\"r\",target=\"t\",verdict=\"different\"} 1",
            "mirror_audit_records_total{route=\"r\",target=\"t\",outcome=\"altered\"} 1",
            "mirror_audit_round_records{route=\"r\",target=\"t\",end=\"source\"} 7",
            "mirror_audit_round_hash{route=\"r\",target=\"t\",end=\"source\"} 5",
            "mirror_audit_round_hash{route=\"r\",target=\"t\",end=\"target\"} 6",
            "mirror_audit_round_timestamp_seconds{route=\"r\",target=\"t\"} 1.5",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }
}
