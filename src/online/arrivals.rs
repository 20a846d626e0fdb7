//! What would arrive at the target: records that were looked at, taken through the flow's handlers.
//! Pure; the same chain that a running flow applies.

use crate::handler::{BoundChain, Verdict};
use crate::online::needs::FlowNeeds;
use crate::record::{Headers, Origin, Record};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A record that was looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SampledRecord {
    /// Its partition.
    pub partition: i32,
    /// Its offset.
    pub offset: i64,
    /// Its key.
    pub key: Option<Vec<u8>>,
    /// Its value.
    pub value: Option<Vec<u8>>,
    /// Its headers.
    pub headers: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    /// Its timestamp in milliseconds.
    pub timestamp: Option<i64>,
}

impl SampledRecord {
    /// Bytes of key, value and headers.
    pub fn bytes(&self) -> u64 {
        let size = |part: &Option<Vec<u8>>| part.as_ref().map_or(0, Vec::len);
        let headers = self.headers.iter();
        let headers: usize = headers.map(|(name, value)| name.len() + size(value)).sum();
        (size(&self.key) + size(&self.value) + headers) as u64
    }
}

/// Records that were looked at, by source topic.
pub type Samples = HashMap<String, Vec<SampledRecord>>;

/// What would arrive in one target topic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arrivals {
    /// How many records.
    pub records: u64,
    /// Those without a key.
    pub without_key: u64,
    /// The smallest timestamp, in milliseconds.
    pub oldest: Option<i64>,
    /// The largest timestamp, in milliseconds.
    pub youngest: Option<i64>,
    /// The source topics that they come from.
    pub sources: BTreeSet<String>,
}

/// What would arrive in each target topic of `flow`.
pub fn arrivals(flow: &FlowNeeds, samples: &Samples) -> BTreeMap<String, Arrivals> {
    let mut arrivals: BTreeMap<String, Arrivals> = BTreeMap::new();
    for (topic, source) in &flow.sources {
        for sampled in samples.get(topic).into_iter().flatten() {
            let mut out = Vec::new();
            let record = record(flow, topic, sampled);
            // What fails is `on_error`'s business: it does not arrive.
            if source.chain.apply(record, &mut out).is_err() {
                continue;
            }
            for record in out {
                let arrived = arrivals.entry(record.topic.to_string()).or_default();
                arrived.take(&record);
            }
        }
    }
    arrivals
}

/// Whether a tombstone is dropped on its way.
pub fn drops_tombstones(flow: &FlowNeeds, topic: &str, chain: &BoundChain) -> bool {
    let tombstone = SampledRecord {
        key: Some(b"key".to_vec()),
        ..SampledRecord::default()
    };
    let verdict = chain.apply(record(flow, topic, &tombstone), &mut Vec::new());
    matches!(verdict, Ok(Verdict::Dropped { .. }))
}

fn record<'a>(flow: &'a FlowNeeds, topic: &'a str, of: &'a SampledRecord) -> Record<'a> {
    Record {
        origin: Origin {
            source: flow.source.name.as_str(),
            topic,
            partition: of.partition,
            offset: of.offset,
            timestamp: of.timestamp,
        },
        topic: Cow::Borrowed(topic),
        key: of.key.as_deref().map(Cow::Borrowed),
        value: of.value.as_deref().map(Cow::Borrowed),
        headers: Headers::Untouched(&of.headers),
        timestamp: of.timestamp,
    }
}

impl Arrivals {
    fn take(&mut self, record: &Record<'_>) {
        self.records += 1;
        self.without_key += u64::from(record.key.is_none());
        self.sources.insert(record.origin.topic.to_owned());
        if let Some(at) = record.timestamp {
            self.oldest = Some(self.oldest.map_or(at, |oldest| oldest.min(at)));
            self.youngest = Some(self.youngest.map_or(at, |youngest| youngest.max(at)));
        }
    }
}
