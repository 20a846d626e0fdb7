//! Answers that are read from the front of a frame.

use crate::wire::{self, cursor::Cursor, cursor::size};
use bytes::Bytes;

/// Why a frame is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// It ends before it should, or a length is none.
    #[error(transparent)]
    Cut(#[from] wire::Malformed),
    /// Text that is not UTF-8.
    #[error("text that is not UTF-8")]
    Text,
    /// It is larger than an answer may be.
    #[error("{0} bytes, more than an answer may have")]
    TooLarge(i64),
    /// It answers something else.
    #[error("it answers request {found}, and {wanted} is the next to be answered")]
    Correlation {
        /// The oldest request without an answer.
        wanted: i32,
        /// What it answers.
        found: i32,
    },
    /// It has parts that were not asked for, or lacks what was.
    #[error("it is about something else: {0}")]
    Strange(String),
}

/// What is left of a frame.
pub struct Reader<'a> {
    frame: &'a Bytes,
    rest: Cursor<'a>,
}

impl<'a> Reader<'a> {
    /// From the front of `frame`.
    pub fn new(frame: &'a Bytes) -> Self {
        Self {
            frame,
            rest: Cursor(frame),
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        Ok(self.rest.array()?)
    }

    /// One byte as a truth.
    pub fn boolean(&mut self) -> Result<bool, Malformed> {
        Ok(self.array::<1>()? != [0])
    }

    /// A number of 16 bits.
    pub fn int16(&mut self) -> Result<i16, Malformed> {
        self.array().map(i16::from_be_bytes)
    }

    /// A number of 32 bits.
    pub fn int32(&mut self) -> Result<i32, Malformed> {
        self.array().map(i32::from_be_bytes)
    }

    /// A number of 64 bits.
    pub fn int64(&mut self) -> Result<i64, Malformed> {
        self.array().map(i64::from_be_bytes)
    }

    /// Text.
    pub fn string(&mut self) -> Result<String, Malformed> {
        let length = self.int16()?;
        self.text(length)
    }

    /// Text; `None` where its length is -1.
    pub fn nullable_string(&mut self) -> Result<Option<String>, Malformed> {
        match self.int16()? {
            -1 => Ok(None),
            length => self.text(length).map(Some),
        }
    }

    fn text(&mut self, length: i16) -> Result<String, Malformed> {
        let text = self.rest.take(size(length.into())?)?;
        let text = std::str::from_utf8(text).map_err(|_| Malformed::Text)?;
        Ok(text.to_owned())
    }

    /// Bytes, which stay those of the frame; none where their length is -1.
    pub fn bytes(&mut self) -> Result<Bytes, Malformed> {
        match self.int32()? {
            -1 => Ok(Bytes::new()),
            length => {
                let taken = self.rest.take(size(length)?)?;
                Ok(self.frame.slice_ref(taken))
            }
        }
    }

    /// A list; an absent one is empty. Memory grows with what is there, whatever its count says.
    pub fn list<T>(
        &mut self,
        mut next: impl FnMut(&mut Self) -> Result<T, Malformed>,
    ) -> Result<Vec<T>, Malformed> {
        let count = match self.int32()? {
            -1 => 0,
            count => size(count)?,
        };
        // Nothing in a list takes less than a byte.
        let mut ahead = self.rest;
        ahead.take(count)?;
        let mut list = Vec::new();
        for _ in 0..count {
            list.push(next(self)?);
        }
        Ok(list)
    }
}
