//! Finds the batches in what a broker answered, and the messages that are older than batches.

use super::codec::Decompressor;
use super::header::{self, COVERED, Header};
use super::legacy::RawMessage;
use super::records::Records;
use super::{Malformed, cursor};

/// The format that is read and written here.
pub(super) const MAGIC: u8 = 2;
/// What stands before the length's count begins: offset and length.
pub(super) const BEFORE_LENGTH: usize = 12;
/// Up to the format's number, which stands at one place in all of them.
const TO_MAGIC: usize = 17;

/// What stands next.
#[derive(Clone, Copy, Debug)]
pub enum Cut<'a> {
    /// A batch, whole.
    Batch(RawBatch<'a>),
    /// A message of the formats before batches, whole.
    Message(RawMessage<'a>),
    /// The beginning of a batch that did not fit: brokers cut answers at their size. The next fetch brings it.
    Partial {
        /// Bytes of the whole, once so much of it is there that it says so.
        whole: Option<usize>,
    },
}

/// The batches of an answer, one after the other. Ends after the first that is malformed or partial.
#[derive(Clone, Debug)]
pub struct Cuts<'a> {
    left: &'a [u8],
}

impl<'a> Cuts<'a> {
    /// Those in `answer`.
    pub fn of(answer: &'a [u8]) -> Self {
        Self { left: answer }
    }

    fn cut(&mut self) -> Result<Cut<'a>, Malformed> {
        let left = std::mem::take(&mut self.left);
        let Some(front) = left.first_chunk::<TO_MAGIC>() else {
            return Ok(Cut::Partial { whole: None });
        };
        let mut from = cursor::Cursor(front);
        let _offset: [u8; 8] = from.array()?;
        let length = i32::from_be_bytes(from.array()?);
        let magic = front[TO_MAGIC - 1];
        let least = match magic {
            MAGIC => header::LENGTH - BEFORE_LENGTH,
            0 | 1 => TO_MAGIC - BEFORE_LENGTH,
            _ => return Err(Malformed::Magic(magic as i8)),
        };
        let size = cursor::size(length)?;
        if size < least {
            return Err(Malformed::Length(i64::from(length)));
        }
        let whole = BEFORE_LENGTH + size;
        let Some((bytes, rest)) = left.split_at_checked(whole) else {
            return Ok(Cut::Partial { whole: Some(whole) });
        };
        self.left = rest;
        match magic {
            MAGIC => Ok(Cut::Batch(RawBatch {
                header: Header::read(bytes)?,
                bytes,
            })),
            _ => RawMessage::take(&mut cursor::Cursor(bytes)).map(Cut::Message),
        }
    }
}

impl<'a> Iterator for Cuts<'a> {
    type Item = Result<Cut<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.left.is_empty() {
            return None;
        }
        let cut = self.cut();
        if cut.is_err() {
            self.left = &[];
        }
        Some(cut)
    }
}

/// A batch as it came, not opened.
#[derive(Clone, Copy, Debug)]
pub struct RawBatch<'a> {
    pub(super) header: Header,
    pub(super) bytes: &'a [u8],
}

impl<'a> RawBatch<'a> {
    /// What it says of itself.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// All of it.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Its records as they came, compressed or not.
    pub(super) fn body(&self) -> &'a [u8] {
        self.bytes.get(header::LENGTH..).unwrap_or_default()
    }

    /// Compares its checksum with its bytes. A batch that is opened or passed without was not checked.
    ///
    /// # Errors
    /// They differ.
    pub fn check(&self) -> Result<(), Malformed> {
        let found = crc32c::crc32c(self.bytes.get(COVERED..).unwrap_or_default());
        match found == self.header.checksum {
            true => Ok(()),
            false => Err(Malformed::Checksum {
                stated: self.header.checksum,
                found,
            }),
        }
    }

    /// Its records, decompressed into `buffer` where they are compressed: at most `limit` bytes.
    ///
    /// # Errors
    /// It cannot be decompressed, or is larger than that.
    pub fn open<'b>(
        &self,
        decompressor: &mut Decompressor,
        limit: usize,
        buffer: &'b mut Vec<u8>,
    ) -> Result<Records<'b>, Malformed>
    where
        'a: 'b,
    {
        let codec = self.header.codec()?;
        let body = decompressor.decompress(codec, self.body(), limit, buffer)?;
        Ok(Records::of(&self.header, body))
    }
}
