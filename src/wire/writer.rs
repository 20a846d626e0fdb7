//! Makes a batch of records.

use super::codec::{Codec, Compressor};
use super::cursor::{put_varint, varint_size};
use super::cut::BEFORE_LENGTH;
use super::header::{self, Stamp};
use super::pass::seal;
use super::records::HeaderBytes;
use crate::record::{Headers, Record};
use std::io;

/// A record as it is to be written.
#[derive(Clone, Debug)]
pub struct Piece<'a> {
    /// Its timestamp in milliseconds; `None` for none.
    pub timestamp: Option<i64>,
    /// Its key; `None` is null.
    pub key: Option<&'a [u8]>,
    /// Its value; `None` is null.
    pub value: Option<&'a [u8]>,
    /// Its headers.
    pub headers: Written<'a>,
}

/// Headers as they are to be written.
#[derive(Clone, Debug)]
pub enum Written<'a> {
    /// As they stand in a batch that was read: copied as a whole.
    AsRead(HeaderBytes<'a>),
    /// One by one.
    Each(&'a Headers<'a>),
}

impl<'a> Piece<'a> {
    /// Bytes that it takes in a batch at most.
    pub fn most(&self) -> usize {
        /// Lengths, deltas and the number of headers, each as long as it can be.
        const NUMBERS: usize = 48;
        let size = |field: Option<&[u8]>| field.map_or(0, <[u8]>::len);
        NUMBERS + size(self.key) + size(self.value) + self.headers.size()
    }

    /// What a record is by now.
    pub fn of(record: &'a Record<'a>) -> Self {
        Self {
            timestamp: record.timestamp,
            key: record.key.as_deref(),
            value: record.value.as_deref(),
            headers: Written::Each(&record.headers),
        }
    }
}

impl Written<'_> {
    fn count(&self) -> i64 {
        match self {
            Written::AsRead(headers) => i64::from(headers.count),
            Written::Each(headers) => each(headers).count() as i64,
        }
    }

    fn size(&self) -> usize {
        match self {
            Written::AsRead(headers) => headers.bytes.len(),
            Written::Each(headers) => each(headers)
                .map(|(name, value)| field_size(Some(name)) + field_size(value))
                .sum(),
        }
    }

    fn put(&self, into: &mut Vec<u8>) {
        match self {
            Written::AsRead(headers) => into.extend_from_slice(headers.bytes),
            Written::Each(headers) => {
                for (name, value) in each(headers) {
                    put_field(into, Some(name));
                    put_field(into, value);
                }
            }
        }
    }
}

fn each<'a>(headers: &'a Headers<'a>) -> impl Iterator<Item = (&'a [u8], Option<&'a [u8]>)> {
    (0..).map_while(|index| headers.get(index))
}

/// Bytes with their length; null has the length -1.
fn field_size(field: Option<&[u8]>) -> usize {
    match field {
        Some(bytes) => varint_size(bytes.len() as i64) + bytes.len(),
        None => varint_size(-1),
    }
}

fn put_field(into: &mut Vec<u8>, field: Option<&[u8]>) {
    match field {
        Some(bytes) => {
            put_varint(into, bytes.len() as i64);
            into.extend_from_slice(bytes);
        }
        None => put_varint(into, -1),
    }
}

/// Gathers the records of one batch.
#[derive(Debug)]
pub struct Writer {
    body: Vec<u8>,
    count: i32,
    base_timestamp: i64,
    max_timestamp: i64,
}

const NONE: i64 = header::NO_TIMESTAMP;

impl Default for Writer {
    fn default() -> Self {
        Self {
            body: Vec::new(),
            count: 0,
            base_timestamp: NONE,
            max_timestamp: NONE,
        }
    }
}

impl Writer {
    /// How many records it holds.
    pub fn count(&self) -> i32 {
        self.count
    }

    /// The largest timestamp of its records, if one of them has any.
    pub fn latest(&self) -> Option<i64> {
        (self.max_timestamp != NONE).then_some(self.max_timestamp)
    }

    /// Bytes of the batch if it ended here and were not compressed.
    pub fn size(&self) -> usize {
        header::LENGTH + self.body.len()
    }

    /// Adds a record.
    pub fn push(&mut self, piece: &Piece<'_>) {
        let timestamp = piece.timestamp.unwrap_or(NONE);
        if self.count == 0 {
            (self.base_timestamp, self.max_timestamp) = (timestamp, timestamp);
        }
        self.max_timestamp = self.max_timestamp.max(timestamp);
        let timestamp_delta = timestamp.wrapping_sub(self.base_timestamp);
        let (offset_delta, headers) = (i64::from(self.count), piece.headers.count());
        let length = 1
            + varint_size(timestamp_delta)
            + varint_size(offset_delta)
            + field_size(piece.key)
            + field_size(piece.value)
            + varint_size(headers)
            + piece.headers.size();
        let body = &mut self.body;
        put_varint(body, length as i64);
        body.push(0);
        put_varint(body, timestamp_delta);
        put_varint(body, offset_delta);
        put_field(body, piece.key);
        put_field(body, piece.value);
        put_varint(body, headers);
        piece.headers.put(body);
        self.count += 1;
    }

    /// Appends the batch to `into`, and is empty again.
    ///
    /// # Errors
    /// The codec's. Nothing is appended then, and the records are still here.
    pub fn finish(
        &mut self,
        compressor: &mut Compressor,
        stamp: Stamp,
        into: &mut Vec<u8>,
    ) -> io::Result<()> {
        let at = into.len();
        into.resize(at + header::LENGTH, 0);
        let compressed = compressor.compress(&self.body, into);
        let mut codec = compressor.codec();
        // What a codec makes larger goes as it is: the target would refuse a record that it takes.
        if compressed.is_ok() && into.len() - at - header::LENGTH >= self.body.len() {
            into.truncate(at + header::LENGTH);
            into.extend_from_slice(&self.body);
            codec = Codec::None;
        }
        let size = compressed.and_then(|()| {
            i32::try_from(into.len() - at - BEFORE_LENGTH).map_err(io::Error::other)
        });
        let length = size.inspect_err(|_| into.truncate(at))?;
        let batch = &mut into[at..];
        let mut left = &mut batch[..header::LENGTH];
        let mut put = |bytes: &[u8]| {
            let (place, rest) = std::mem::take(&mut left).split_at_mut(bytes.len());
            place.copy_from_slice(bytes);
            left = rest;
        };
        put(&0i64.to_be_bytes());
        put(&length.to_be_bytes());
        put(&(-1i32).to_be_bytes());
        put(&[super::cut::MAGIC]);
        put(&[0; 4]);
        put(&codec.number().to_be_bytes());
        put(&(self.count - 1).max(0).to_be_bytes());
        put(&self.base_timestamp.to_be_bytes());
        put(&self.max_timestamp.to_be_bytes());
        put(&stamp.producer_id.to_be_bytes());
        put(&stamp.producer_epoch.to_be_bytes());
        put(&stamp.base_sequence.to_be_bytes());
        put(&self.count.to_be_bytes());
        seal(batch);
        self.clear();
        Ok(())
    }

    fn clear(&mut self) {
        self.body.clear();
        self.count = 0;
        (self.base_timestamp, self.max_timestamp) = (NONE, NONE);
    }
}
