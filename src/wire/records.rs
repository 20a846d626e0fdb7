//! The records of a batch, lent from its bytes.

use super::Malformed;
use super::cursor::{Cursor, size};
use super::header::Header;
use crate::record::HeaderSource;

/// A record where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View<'a> {
    /// Its offset.
    pub offset: i64,
    /// Its timestamp in milliseconds; `None` where it has none.
    pub timestamp: Option<i64>,
    /// Its key; `None` is null.
    pub key: Option<&'a [u8]>,
    /// Its value; `None` is null.
    pub value: Option<&'a [u8]>,
    /// Its headers.
    pub headers: HeaderBytes<'a>,
}

/// The headers of a record, in order, as they stand there. They were walked through once: all of them can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderBytes<'a> {
    pub(super) count: i32,
    pub(super) bytes: &'a [u8],
}

impl<'a> HeaderBytes<'a> {
    /// So many headers in bytes that were read before. What cannot be read ends them.
    pub fn of(count: i32, bytes: &'a [u8]) -> Self {
        Self { count, bytes }
    }

    /// How many.
    pub fn count(&self) -> i32 {
        self.count
    }

    /// As they stand there.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Each name and value.
    pub fn iter(&self) -> impl Iterator<Item = (&'a [u8], Option<&'a [u8]>)> + use<'a> {
        let mut left = Cursor(self.bytes);
        (0..self.count).map_while(move |_| header(&mut left).ok())
    }
}

impl HeaderSource for HeaderBytes<'_> {
    fn get(&self, index: usize) -> Option<(&[u8], Option<&[u8]>)> {
        self.iter().nth(index)
    }
}

/// A name, which is not null, and a value, which may be.
fn header<'a>(from: &mut Cursor<'a>) -> Result<(&'a [u8], Option<&'a [u8]>), Malformed> {
    Ok((from.bytes()?, from.nullable()?))
}

/// The records of a batch, in their order. Ends after the first that is malformed.
pub struct Records<'a> {
    left: Cursor<'a>,
    base_offset: i64,
    last_offset_delta: i64,
    base_timestamp: i64,
    /// The one that all have, with LogAppendTime.
    append_time: Option<i64>,
    stated: i32,
    read: i32,
    /// The next one is not before that, from the batch's first.
    least: i64,
}

impl<'a> Records<'a> {
    pub(super) fn of(header: &Header, body: &'a [u8]) -> Self {
        Self {
            left: Cursor(body),
            base_offset: header.base_offset,
            last_offset_delta: i64::from(header.last_offset_delta),
            base_timestamp: header.base_timestamp,
            append_time: header.has_append_time().then_some(header.max_timestamp),
            stated: header.count,
            read: 0,
            least: 0,
        }
    }

    /// The bytes of the records that were not read yet.
    pub fn left(&self) -> &'a [u8] {
        self.left.0
    }

    fn record(&mut self) -> Result<View<'a>, Malformed> {
        let length = size(self.left.varint()?)?;
        let mut from = Cursor(self.left.take(length)?);
        let _attributes: [u8; 1] = from.array()?;
        let timestamp_delta = from.varlong()?;
        let offset_delta = i64::from(from.varint()?);
        if !(self.least..=self.last_offset_delta).contains(&offset_delta) {
            return Err(Malformed::Offset(offset_delta));
        }
        self.least = offset_delta + 1;
        let view = View {
            // Neither passes the last offset, which was looked at with the header.
            offset: self.base_offset + offset_delta,
            timestamp: self.timestamp(timestamp_delta),
            key: from.nullable()?,
            value: from.nullable()?,
            headers: headers(&mut from)?,
        };
        match from.0.len() {
            0 => Ok(view),
            left => Err(Malformed::Short {
                wanted: length,
                left: length - left,
            }),
        }
    }

    fn timestamp(&self, delta: i64) -> Option<i64> {
        let own = || self.base_timestamp.wrapping_add(delta);
        Some(self.append_time.unwrap_or_else(own)).filter(|at| *at >= 0)
    }
}

/// Walks through the headers: what is lent afterwards can be read.
fn headers<'a>(from: &mut Cursor<'a>) -> Result<HeaderBytes<'a>, Malformed> {
    let count = from.varint()?;
    size(count)?;
    let begin = from.0;
    for _ in 0..count {
        header(from)?;
    }
    let bytes = begin.get(..begin.len() - from.0.len()).unwrap_or_default();
    Ok(HeaderBytes { count, bytes })
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<View<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.read == self.stated {
            // What stands behind the last one is no record, and there must be none.
            let is_over = std::mem::take(&mut self.left.0).is_empty();
            let stated = self.stated;
            return (!is_over).then_some(Err(Malformed::Count { stated }));
        }
        let record = match self.left.0.is_empty() {
            true => Err(Malformed::Count {
                stated: self.stated,
            }),
            false => self.record(),
        };
        self.read += 1;
        if record.is_err() {
            self.read = self.stated;
            self.left.0 = &[];
        }
        Some(record)
    }
}
