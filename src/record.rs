//! What moves along the path: a [`Record`], borrowed from what was fetched.
//!
//! Nothing here knows a Kafka client. The data plane lends a record's bytes, handlers replace what
//! they change and leave the rest borrowed, the data plane writes the result. A record that no
//! handler touches is never copied before it is produced.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// A partition of a topic, on a cluster that the context names.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicPartition {
    /// The topic's name.
    pub topic: Arc<str>,
    /// The partition's number, from 0.
    pub partition: i32,
}

impl TopicPartition {
    /// Names `partition` of `topic`.
    pub fn new(topic: impl Into<Arc<str>>, partition: i32) -> Self {
        Self {
            topic: topic.into(),
            partition,
        }
    }
}

impl fmt::Display for TopicPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}]", self.topic, self.partition)
    }
}

impl fmt::Debug for TopicPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Where a record was read. Never changes on its way, whatever handlers do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin<'a> {
    /// The source cluster's name in the file.
    pub source: &'a str,
    /// The source topic.
    pub topic: &'a str,
    /// The source partition.
    pub partition: i32,
    /// The record's offset in the source partition.
    pub offset: i64,
    /// The record's timestamp at the source in milliseconds, `None` where it has none.
    pub timestamp: Option<i64>,
}

/// One header: a name that need not be UTF-8, and a value that may be null.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header<'a> {
    /// The name's bytes.
    pub name: Cow<'a, [u8]>,
    /// The value; `None` is Kafka's null, which is not the empty value.
    pub value: Option<Cow<'a, [u8]>>,
}

/// Headers as they were fetched, read one by one and only when somebody asks.
///
/// The data plane implements it over the bytes it holds, so that a chain that reads no header
/// costs nothing for a record that has many.
pub trait HeaderSource {
    /// The header at `index` in fetched order, `None` past the last.
    fn get(&self, index: usize) -> Option<(&[u8], Option<&[u8]>)>;

    /// The source itself, for a data plane that can copy its own headers as a whole.
    fn as_any(&self) -> Option<&dyn std::any::Any> {
        None
    }
}

/// No headers at all.
impl HeaderSource for () {
    fn get(&self, _index: usize) -> Option<(&[u8], Option<&[u8]>)> {
        None
    }
}

/// Headers of a list, for tests and for records that are made rather than fetched.
impl HeaderSource for Vec<(Vec<u8>, Option<Vec<u8>>)> {
    fn get(&self, index: usize) -> Option<(&[u8], Option<&[u8]>)> {
        self.as_slice()
            .get(index)
            .map(|(name, value)| (name.as_slice(), value.as_deref()))
    }
}

/// The headers of a record: order, repeats, null values and odd names are kept (KIP-82).
#[derive(Clone)]
pub enum Headers<'a> {
    /// As fetched. The data plane copies them as a whole.
    Untouched(&'a dyn HeaderSource),
    /// Changed by a handler: this is the whole list.
    Changed(Vec<Header<'a>>),
}

impl<'a> Headers<'a> {
    /// The header at `index`, `None` past the last.
    pub fn get(&self, index: usize) -> Option<(&[u8], Option<&[u8]>)> {
        match self {
            Headers::Untouched(source) => source.get(index),
            Headers::Changed(list) => list
                .get(index)
                .map(|h| (h.name.as_ref(), h.value.as_deref())),
        }
    }

    /// The value of the last header called `name`: outer `None` if there is none, inner `None` if
    /// it is null.
    #[inline]
    pub fn last(&self, name: &[u8]) -> Option<Option<&[u8]>> {
        let mut found = None;
        let mut index = 0;
        while let Some((candidate, value)) = self.get(index) {
            if candidate == name {
                found = Some(value);
            }
            index += 1;
        }
        found
    }

    /// The list to change. Untouched headers become a list of borrows first.
    pub fn make_mut(&mut self) -> &mut Vec<Header<'a>> {
        if let Headers::Untouched(source) = *self {
            let mut list = Vec::new();
            while let Some((name, value)) = source.get(list.len()) {
                list.push(Header {
                    name: Cow::Borrowed(name),
                    value: value.map(Cow::Borrowed),
                });
            }
            *self = Headers::Changed(list);
        }
        match self {
            Headers::Changed(list) => list,
            Headers::Untouched(_) => unreachable!("made a list above"),
        }
    }
}

impl fmt::Debug for Headers<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut list = f.debug_list();
        let mut index = 0;
        while let Some((name, value)) = self.get(index) {
            list.entry(&(name.escape_ascii().to_string(), value.map(<[u8]>::len)));
            index += 1;
        }
        list.finish()
    }
}

/// A record on its way: what it will be at the target, and where it came from.
#[derive(Clone, Debug)]
pub struct Record<'a> {
    /// Where it was read.
    pub origin: Origin<'a>,
    /// The target topic as named so far; the source topic until a `rename`.
    pub topic: Cow<'a, str>,
    /// The key; `None` is null, which is not empty.
    pub key: Option<Cow<'a, [u8]>>,
    /// The value; `None` is null (a tombstone), which is not empty.
    pub value: Option<Cow<'a, [u8]>>,
    /// The headers.
    pub headers: Headers<'a>,
    /// The timestamp in milliseconds, `None` where it has none.
    pub timestamp: Option<i64>,
}

impl Record<'_> {
    /// An upper estimate of the bytes that this record takes in a target batch: key, value,
    /// headers and the record's own framing (varints at their longest). Compared with the target
    /// topic's `max.message.bytes` before it is sent (`flow::isolate`).
    pub fn size_estimate(&self) -> usize {
        /// Attributes, five varints at their longest, and the batch's header.
        const FRAMING: usize = 61 + 36;
        let mut size = FRAMING
            + self.key.as_ref().map_or(0, |k| k.len())
            + self.value.as_ref().map_or(0, |v| v.len());
        let mut index = 0;
        while let Some((name, value)) = self.headers.get(index) {
            size += name.len() + value.map_or(0, <[u8]>::len) + 10;
            index += 1;
        }
        size
    }
}
