//! What a fault did.

use crate::support::transaction::Transaction;
use kafka_harness::Toll;
use proof::plan::Strike;
use std::collections::BTreeSet;
use std::fmt;

/// A fault that was struck, and what was seen of it.
pub struct Hit {
    pub strike: Strike,
    /// Fetched and not settled, by all instances together, just before.
    pub in_flight: u64,
    /// What showed that it was one.
    pub effect: Option<String>,
    /// Reasons that `mirror status` gave until it was healed.
    pub said: BTreeSet<String>,
    pub healed: bool,
}

impl Hit {
    /// Whether it may be called a test: it hit something, and that was seen.
    pub fn counts(&self) -> bool {
        self.in_flight > 0 && self.effect.is_some()
    }
}

impl fmt::Display for Hit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let effect = self.effect.as_deref().unwrap_or("no effect was seen");
        let weight = if self.counts() {
            ""
        } else {
            " (does not count)"
        };
        let (strike, in_flight) = (self.strike, self.in_flight);
        write!(f, "{strike}; {in_flight} in flight; {effect}{weight}")?;
        if self.said.is_empty() {
            return Ok(());
        }
        let said: Vec<&str> = self.said.iter().map(String::as_str).collect();
        write!(f, "; status said {}", said.join(", "))
    }
}

/// What healing has to know.
pub enum Memory {
    Nothing,
    /// What the proxies had done before.
    Tolls(Vec<Toll>),
    /// It stays open until then.
    Open(Transaction),
    /// A topic, and the partitions that the target should have of it.
    Topic(String, i32),
    /// A count before.
    Count(u64),
}
