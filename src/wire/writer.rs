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

/// Gathers the records of one batch, behind the place of its header: one that is not compressed is finished where it stands.
#[derive(Debug)]
pub struct Writer {
    /// Room for the header, then the records.
    batch: Vec<u8>,
    count: i32,
    base_timestamp: i64,
    max_timestamp: i64,
}

const NONE: i64 = header::NO_TIMESTAMP;

impl Default for Writer {
    fn default() -> Self {
        Self::with_room(header::LENGTH)
    }
}

impl Writer {
    /// With room for a batch of so many bytes, so that it need not move while it grows to that.
    pub fn with_room(bytes: usize) -> Self {
        let mut batch = Vec::with_capacity(bytes.max(header::LENGTH));
        batch.resize(header::LENGTH, 0);
        Self {
            batch,
            count: 0,
            base_timestamp: NONE,
            max_timestamp: NONE,
        }
    }

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
        self.batch.len()
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
        let batch = &mut self.batch;
        put_varint(batch, length as i64);
        batch.push(0);
        put_varint(batch, timestamp_delta);
        put_varint(batch, offset_delta);
        put_field(batch, piece.key);
        put_field(batch, piece.value);
        put_varint(batch, headers);
        piece.headers.put(batch);
        self.count += 1;
    }

    /// The batch, as it stands on the wire; no records are left here.
    ///
    /// # Errors
    /// The codec's. The records are still here then.
    pub fn finish(&mut self, compressor: &mut Compressor, stamp: Stamp) -> io::Result<Vec<u8>> {
        let compressed = self.compressed(compressor)?;
        let length = compressed.as_ref().map_or(self.batch.len(), Vec::len) - BEFORE_LENGTH;
        let length = i32::try_from(length).map_err(io::Error::other)?;
        let Self {
            batch,
            count,
            base_timestamp,
            max_timestamp,
        } = std::mem::take(self);
        let (mut batch, codec) = match compressed {
            Some(compressed) => (compressed, compressor.codec()),
            None => (tight(batch), Codec::None),
        };
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
        put(&(count - 1).max(0).to_be_bytes());
        put(&base_timestamp.to_be_bytes());
        put(&max_timestamp.to_be_bytes());
        put(&stamp.producer_id.to_be_bytes());
        put(&stamp.producer_epoch.to_be_bytes());
        put(&stamp.base_sequence.to_be_bytes());
        put(&count.to_be_bytes());
        seal(&mut batch);
        Ok(batch)
    }

    /// The records compressed, behind the place of a header. `None`: they go as they are, since there is no codec, or since
    /// it makes them larger, and the target would refuse a record that it takes.
    fn compressed(&self, compressor: &mut Compressor) -> io::Result<Option<Vec<u8>>> {
        if compressor.codec() == Codec::None {
            return Ok(None);
        }
        let records = self.batch.get(header::LENGTH..).unwrap_or_default();
        let mut compressed = Vec::with_capacity(self.batch.len() / 2);
        compressed.resize(header::LENGTH, 0);
        compressor.compress(records, &mut compressed)?;
        Ok((compressed.len() < self.batch.len()).then_some(compressed))
    }
}

/// Without the room that it grew by and does not need: it is held until it is acknowledged.
fn tight(mut batch: Vec<u8>) -> Vec<u8> {
    if batch.capacity() - batch.len() > batch.len() / 8 {
        batch.shrink_to_fit();
    }
    batch
}
