//! A record, lent from the bytes it came in.

use crate::plane::{FetchedRecord, Offset};
use crate::record::HeaderSource;
use crate::wire::records::{HeaderBytes, View};
use bytes::Bytes;
use std::any::Any;
use std::sync::Arc;

/// Bytes that records are lent from.
#[derive(Debug)]
pub enum Body {
    /// As they came, with the room that they hold.
    Frame(Bytes),
    /// Decompressed.
    Own(Vec<u8>),
}

impl Body {
    fn bytes(&self) -> &[u8] {
        match self {
            Body::Frame(bytes) => bytes,
            Body::Own(bytes) => bytes,
        }
    }
}

/// Where some bytes stand in a body.
#[derive(Clone, Copy, Debug)]
struct Span {
    from: u32,
    length: u32,
}

impl Span {
    /// Where `part` stands in `body`, which it is a part of.
    fn of(part: &[u8], body: &[u8]) -> Self {
        let from = (part.as_ptr() as usize).wrapping_sub(body.as_ptr() as usize);
        Self {
            // No body has more than an answer may have, or a decompressed batch: both are below 4 GiB.
            from: from as u32,
            length: part.len() as u32,
        }
    }

    fn within(self, body: &[u8]) -> &[u8] {
        let from = self.from as usize;
        body.get(from..from + self.length as usize)
            .unwrap_or_default()
    }
}

/// A record whose body is still being read.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    offset: i64,
    timestamp: Option<i64>,
    leader_epoch: i32,
    key: Option<Span>,
    value: Option<Span>,
    headers: Span,
    header_count: i32,
}

impl Place {
    /// Where the parts of `view` stand in `body`.
    pub fn of(view: &View<'_>, leader_epoch: i32, body: &[u8]) -> Self {
        Self {
            offset: view.offset,
            timestamp: view.timestamp,
            leader_epoch,
            key: view.key.map(|key| Span::of(key, body)),
            value: view.value.map(|value| Span::of(value, body)),
            headers: Span::of(view.headers.as_bytes(), body),
            header_count: view.headers.count(),
        }
    }

    /// The record, of the body that it stands in.
    pub fn lend(self, body: &Arc<Body>) -> Lent {
        Lent {
            body: body.clone(),
            place: self,
        }
    }
}

/// A fetched record.
#[derive(Debug)]
pub struct Lent {
    body: Arc<Body>,
    place: Place,
}

impl Lent {
    /// Its headers as they stand on the wire.
    pub fn header_bytes(&self) -> HeaderBytes<'_> {
        let bytes = self.place.headers.within(self.body.bytes());
        HeaderBytes::of(self.place.header_count, bytes)
    }

    fn part(&self, span: Option<Span>) -> Option<&[u8]> {
        span.map(|span| span.within(self.body.bytes()))
    }
}

impl FetchedRecord for Lent {
    fn offset(&self) -> Offset {
        Offset(self.place.offset)
    }
    fn key(&self) -> Option<&[u8]> {
        self.part(self.place.key)
    }
    fn value(&self) -> Option<&[u8]> {
        self.part(self.place.value)
    }
    fn timestamp(&self) -> Option<i64> {
        self.place.timestamp
    }
    fn bytes(&self) -> u64 {
        let length = |span: Option<Span>| span.map_or(0, |span| u64::from(span.length));
        length(self.place.key) + length(self.place.value)
    }
    fn leader_epoch(&self) -> i32 {
        self.place.leader_epoch
    }
    fn headers(&self) -> &dyn HeaderSource {
        self
    }
}

impl HeaderSource for Lent {
    fn get(&self, index: usize) -> Option<(&[u8], Option<&[u8]>)> {
        self.header_bytes().iter().nth(index)
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}
