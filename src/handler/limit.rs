//! How large what a chain makes of a record may be.

use super::{Failure, FailureCode};
use crate::record::{Headers, Record};

/// The most that one output of a step may take: `limits.record`, known when a chain is bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordLimit {
    bytes: usize,
}

impl Default for RecordLimit {
    /// Where `limits.record` is absent, the target topic decides; this only keeps a step from
    /// growing a record without bound before it gets there.
    fn default() -> Self {
        Self { bytes: 64 << 20 }
    }
}

impl RecordLimit {
    /// The limit of `limits.record`.
    pub(crate) fn of(record_bytes: Option<u64>) -> Self {
        match record_bytes {
            None => Self::default(),
            Some(bytes) => Self {
                bytes: usize::try_from(bytes).unwrap_or(usize::MAX),
            },
        }
    }

    /// The limit in bytes.
    pub(crate) fn bytes(self) -> usize {
        self.bytes
    }

    /// Whether `record` fits. Headers count where a handler made them; those that were fetched
    /// fitted into their topic.
    ///
    /// # Errors
    /// [`FailureCode::TooLarge`].
    pub(crate) fn check(self, record: &Record<'_>) -> Result<(), Failure> {
        self.check_bytes(bytes_of(record))
    }

    /// Whether `bytes` are not too many.
    ///
    /// # Errors
    /// [`FailureCode::TooLarge`].
    pub(crate) fn check_bytes(self, bytes: usize) -> Result<(), Failure> {
        match bytes <= self.bytes {
            true => Ok(()),
            false => Err(self.passed()),
        }
    }

    /// The failure of an output that would pass the limit.
    pub(crate) fn passed(self) -> Failure {
        let detail = format!("the record would take more than {} bytes", self.bytes);
        Failure::new(FailureCode::TooLarge, detail)
    }
}

/// Bytes that all outputs of one record may take together.
const MAX_TOGETHER: usize = 256 << 20;

/// Whether the outputs of one record together are not too many bytes.
///
/// # Errors
/// [`FailureCode::TooLarge`].
pub(crate) fn check_together(bytes: usize) -> Result<(), Failure> {
    match bytes <= MAX_TOGETHER {
        true => Ok(()),
        false => {
            let detail =
                format!("the outputs of the record would take more than {MAX_TOGETHER} bytes");
            Err(Failure::new(FailureCode::TooLarge, detail))
        }
    }
}

/// What a record's content takes: key, value, and headers that a handler made.
pub(crate) fn bytes_of(record: &Record<'_>) -> usize {
    let headers = match &record.headers {
        Headers::Untouched(_) => 0,
        Headers::Changed(list) => list
            .iter()
            .map(|h| h.name.len() + h.value.as_ref().map_or(0, |v| v.len()))
            .sum(),
    };
    let bytes =
        |content: &Option<std::borrow::Cow<'_, [u8]>>| content.as_ref().map_or(0, |c| c.len());
    bytes(&record.key) + bytes(&record.value) + headers
}
