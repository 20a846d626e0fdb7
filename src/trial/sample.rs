//! A record that goes into a trial, with bytes of its own.

use crate::config::spec::Name;
use crate::record::{self, Origin, Record};
use std::borrow::Cow;

/// A key, a value or a header's value; `None` is null, which is not empty.
pub type Bytes = Option<Vec<u8>>;

/// Headers in their order, with repeats.
pub type Headers = Vec<(Vec<u8>, Bytes)>;

/// A record as it would be fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The source cluster.
    pub source: Name,
    /// The source topic.
    pub topic: String,
    /// The source partition.
    pub partition: i32,
    /// Its offset.
    pub offset: i64,
    /// Its timestamp in milliseconds.
    pub timestamp: Option<i64>,
    /// Its key.
    pub key: Bytes,
    /// Its value.
    pub value: Bytes,
    /// Its headers.
    pub headers: Headers,
}

impl Sample {
    /// The record as handlers see it.
    pub fn record(&self) -> Record<'_> {
        Record {
            origin: Origin {
                source: self.source.as_str(),
                topic: &self.topic,
                partition: self.partition,
                offset: self.offset,
                timestamp: self.timestamp,
            },
            topic: Cow::Borrowed(&self.topic),
            key: self.key.as_deref().map(Cow::Borrowed),
            value: self.value.as_deref().map(Cow::Borrowed),
            headers: record::Headers::Untouched(&self.headers),
            timestamp: self.timestamp,
        }
    }
}
