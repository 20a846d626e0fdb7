//! Answers that are read from the front of a frame.

use bytes::Bytes;

/// Why a frame is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// It ends before it should.
    #[error("{wanted} bytes are announced and {left} are left")]
    Short {
        /// What was announced.
        wanted: usize,
        /// What there is.
        left: usize,
    },
    /// A length that nothing can have.
    #[error("a length of {0}")]
    Length(i32),
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
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// From the front of `frame`.
    pub fn new(frame: &'a Bytes) -> Self {
        Self { frame, rest: frame }
    }

    /// The next `count` bytes.
    fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let Some((taken, rest)) = self.rest.split_at_checked(count) else {
            return Err(Malformed::Short {
                wanted: count,
                left: self.rest.len(),
            });
        };
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let Some((taken, rest)) = self.rest.split_first_chunk::<N>() else {
            return Err(Malformed::Short {
                wanted: N,
                left: self.rest.len(),
            });
        };
        self.rest = rest;
        Ok(*taken)
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
        let size = usize::try_from(length).map_err(|_| Malformed::Length(length.into()))?;
        let text = std::str::from_utf8(self.take(size)?).map_err(|_| Malformed::Text)?;
        Ok(text.to_owned())
    }

    /// Bytes, which stay those of the frame; none where their length is -1.
    pub fn bytes(&mut self) -> Result<Bytes, Malformed> {
        match self.int32()? {
            -1 => Ok(Bytes::new()),
            length => {
                let size = usize::try_from(length).map_err(|_| Malformed::Length(length))?;
                let taken = self.take(size)?;
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
            count => usize::try_from(count).map_err(|_| Malformed::Length(count))?,
        };
        // Nothing in a list takes less than a byte.
        if count > self.rest.len() {
            return Err(Malformed::Short {
                wanted: count,
                left: self.rest.len(),
            });
        }
        let mut list = Vec::new();
        for _ in 0..count {
            list.push(next(self)?);
        }
        Ok(list)
    }
}
