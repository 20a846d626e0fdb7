//! Messages as they were before there were batches: the formats 0 and 1, which producers wrote before Kafka 0.11 and brokers of
//! today still give where they lie in their logs (KIP-724).
//!
//! Each message stands by itself. One that is compressed is a wrapper: its value is a row of messages that are not, and its
//! offset is that of the last of them. In format 0 those have offsets of their own, in format 1 they are counted from the
//! wrapper's first (KIP-31). Format 1 has timestamps (KIP-32); a wrapper with the broker's time has it for all that is inside.
//! Headers, transactions and the leader's epoch came with batches.

use super::Malformed;
use super::codec::{Codec, Decompressor};
use super::cursor::{Cursor, size};
use super::records::{HeaderBytes, View};
use std::borrow::Cow;
use twox_hash::XxHash32;

const CODEC: u8 = 0x07;
const LOG_APPEND_TIME: u8 = 0x08;
/// Neither a timestamp nor a place for one.
const NONE: i64 = -1;

/// A message as it came, not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawMessage<'a> {
    offset: i64,
    checksum: u32,
    /// What the checksum covers: all behind it, and so not the offset, which brokers write.
    covered: &'a [u8],
    magic: u8,
    attributes: u8,
    timestamp: i64,
    key: Option<&'a [u8]>,
    value: Option<&'a [u8]>,
    bytes: &'a [u8],
}

impl<'a> RawMessage<'a> {
    /// Takes the one at the front of `from`.
    pub(super) fn take(from: &mut Cursor<'a>) -> Result<Self, Malformed> {
        let before = from.0;
        let offset = i64::from_be_bytes(from.array()?);
        let length = size(i32::from_be_bytes(from.array()?))?;
        let mut inside = Cursor(from.take(length)?);
        let checksum = u32::from_be_bytes(inside.array()?);
        let covered = inside.0;
        let [magic, attributes] = inside.array()?;
        let timestamp = match magic {
            0 => NONE,
            1 => i64::from_be_bytes(inside.array()?),
            other => return Err(Malformed::Magic(other as i8)),
        };
        let (key, value) = (field(&mut inside)?, field(&mut inside)?);
        if !inside.0.is_empty() {
            return Err(Malformed::Short {
                wanted: length,
                left: length - inside.0.len(),
            });
        }
        // There is one behind each.
        if !(0..i64::MAX).contains(&offset) {
            return Err(Malformed::Offset(offset));
        }
        Ok(Self {
            offset,
            checksum,
            covered,
            magic,
            attributes,
            timestamp,
            key,
            value,
            bytes: before
                .get(..before.len() - from.0.len())
                .unwrap_or_default(),
        })
    }

    /// Its offset; that of the last message inside, if it is a wrapper.
    pub fn offset(&self) -> i64 {
        self.offset
    }

    /// All of it.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Compares its checksum (CRC-32) with its bytes. Those inside a wrapper have their own, which are compared when they are read.
    ///
    /// # Errors
    /// They differ.
    pub fn check(&self) -> Result<(), Malformed> {
        let mut found = flate2::Crc::new();
        found.update(self.covered);
        match found.sum() == self.checksum {
            true => Ok(()),
            false => Err(Malformed::Checksum {
                stated: self.checksum,
                found: found.sum(),
            }),
        }
    }

    /// How the messages inside are compressed; [`Codec::None`] if it is no wrapper.
    ///
    /// # Errors
    /// A codec that was not known then.
    pub fn codec(&self) -> Result<Codec, Malformed> {
        match Codec::of(self.attributes & CODEC)? {
            Codec::Zstd => Err(Malformed::Codec(self.attributes & CODEC)),
            known => Ok(known),
        }
    }

    /// What is in it: itself, or the messages inside, decompressed into `buffer`: at most `limit` bytes.
    ///
    /// # Errors
    /// It cannot be decompressed, is larger than that, or has nothing inside.
    pub fn open<'b>(
        &self,
        decompressor: &mut Decompressor,
        limit: usize,
        buffer: &'b mut Vec<u8>,
    ) -> Result<Messages<'b>, Malformed>
    where
        'a: 'b,
    {
        let codec = self.codec()?;
        if codec == Codec::None {
            return Ok(Messages::only(self));
        }
        let value = self.value.ok_or(Malformed::Length(-1))?;
        let value = match (self.magic, codec) {
            (0, Codec::Lz4) => mended(value),
            _ => Cow::Borrowed(value),
        };
        decompressor.decompress(codec, &value, limit, buffer)?;
        Messages::within(self, buffer)
    }

    /// The time of all that is inside, where the broker wrote it.
    fn append_time(&self) -> Option<i64> {
        (self.attributes & LOG_APPEND_TIME != 0 && self.magic > 0).then_some(self.timestamp)
    }
}

/// Bytes behind their length; `None` where it is -1.
fn field<'a>(from: &mut Cursor<'a>) -> Result<Option<&'a [u8]>, Malformed> {
    match i32::from_be_bytes(from.array()?) {
        -1 => Ok(None),
        length => from.take(size(length)?).map(Some),
    }
}

/// An LZ4 frame of format 0 with the checksum of its header put right: those who wrote it took it over the frame's magic number
/// as well (KAFKA-3160).
fn mended(frame: &[u8]) -> Cow<'_, [u8]> {
    const MAGIC: usize = 4;
    const CONTENT_SIZE: u8 = 0x08;
    const DICTIONARY: u8 = 0x01;
    let flags = frame.get(MAGIC).copied().unwrap_or_default();
    let has = |flag: u8| usize::from(flags & flag != 0);
    let end = MAGIC + 2 + 8 * has(CONTENT_SIZE) + 4 * has(DICTIONARY);
    let mut frame = Cow::Borrowed(frame);
    if let Some(header) = frame.get(MAGIC..end) {
        let checksum = (XxHash32::oneshot(0, header) >> 8) as u8;
        if let Some(place) = frame.to_mut().get_mut(end) {
            *place = checksum;
        }
    }
    frame
}

/// The messages of a wrapper, or the one that is none, in their order. Ends after the first that is malformed.
pub struct Messages<'a> {
    left: Cursor<'a>,
    /// From where the offsets that stand there are counted.
    base: i64,
    /// The next one is not before that.
    least: i64,
    /// And none is behind that.
    last: i64,
    append_time: Option<i64>,
}

impl<'a> Messages<'a> {
    fn only(message: &RawMessage<'a>) -> Self {
        Self {
            left: Cursor(message.bytes),
            base: 0,
            least: message.offset,
            last: message.offset,
            append_time: None,
        }
    }

    fn within(wrapper: &RawMessage<'_>, body: &'a [u8]) -> Result<Self, Malformed> {
        let last = last(body)?;
        if !(0..=wrapper.offset).contains(&last) {
            return Err(Malformed::Offset(last));
        }
        let base = match wrapper.magic {
            0 => 0,
            _ => wrapper.offset - last,
        };
        Ok(Self {
            left: Cursor(body),
            base,
            least: base,
            last: wrapper.offset,
            append_time: wrapper.append_time(),
        })
    }

    /// The bytes of the messages that were not read yet.
    pub fn left(&self) -> &'a [u8] {
        self.left.0
    }

    fn message(&mut self) -> Result<View<'a>, Malformed> {
        let message = RawMessage::take(&mut self.left)?;
        message.check()?;
        if message.codec()? != Codec::None {
            return Err(Malformed::Nested);
        }
        let offset = self.base.saturating_add(message.offset);
        if !(self.least..=self.last).contains(&offset) {
            return Err(Malformed::Offset(message.offset));
        }
        self.least = offset + 1;
        let timestamp = self.append_time.unwrap_or(message.timestamp);
        Ok(View {
            offset,
            timestamp: Some(timestamp).filter(|at| *at >= 0),
            key: message.key,
            value: message.value,
            headers: HeaderBytes::of(0, &[]),
        })
    }
}

/// The offset that stands at the last message of a row.
fn last(row: &[u8]) -> Result<i64, Malformed> {
    let mut from = Cursor(row);
    loop {
        let offset = i64::from_be_bytes(from.array()?);
        let length = size(i32::from_be_bytes(from.array()?))?;
        from.take(length)?;
        if from.0.is_empty() {
            return Ok(offset);
        }
    }
}

impl<'a> Iterator for Messages<'a> {
    type Item = Result<View<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.left.0.is_empty() {
            return None;
        }
        let message = self.message();
        if message.is_err() {
            self.left.0 = &[];
        }
        Some(message)
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) mod written;
