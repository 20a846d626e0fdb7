//! Batches that go on as they came: the records inside are not looked at, and not decompressed.

use super::codec::Codec;
use super::cut::RawBatch;
use super::header::{CHECKSUM, COVERED, Header, Stamp};
use bytes::Bytes;
use std::ops::Range;

/// Why a batch has to be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opened {
    /// It holds markers of the broker's: these never go on.
    Control,
    /// Compaction has taken records, or the fetch begins in its midst: offsets and number do not agree.
    Gaps,
    /// The broker wrote its own time: a target would take it for the records'.
    AppendTime,
    /// When its tombstones go is written into it: the target's cleaner would take them at once.
    DeleteHorizon,
    /// A flag that is not known.
    Unknown,
    /// It is larger than the target takes.
    Size,
    /// The target does not take its codec.
    Codec,
}

/// What a target takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Takes {
    /// Bytes of a batch at most.
    pub bytes: usize,
    /// These codecs.
    pub codecs: Codecs,
}

/// Codecs that a target takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codecs {
    /// Whatever the source has.
    Any,
    /// This one.
    Only(Codec),
}

impl Codecs {
    fn contain(self, codec: Codec) -> bool {
        match self {
            Codecs::Any => true,
            Codecs::Only(one) => one == codec,
        }
    }
}

impl RawBatch<'_> {
    /// Whether it may pass to a target that takes this, if everything from offset `from` on is to go there.
    ///
    /// # Errors
    /// Why it may not.
    pub fn may_pass(&self, from: i64, target: Takes) -> Result<(), Opened> {
        let header = self.header();
        let is_whole = i64::from(header.count) == i64::from(header.last_offset_delta) + 1;
        match () {
            () if header.is_control() => Err(Opened::Control),
            () if header.unknown_attributes() != 0 => Err(Opened::Unknown),
            () if header.has_delete_horizon() => Err(Opened::DeleteHorizon),
            () if header.has_append_time() => Err(Opened::AppendTime),
            () if !is_whole || header.base_offset < from => Err(Opened::Gaps),
            () if self.bytes().len() > target.bytes => Err(Opened::Size),
            () if !header
                .codec()
                .is_ok_and(|codec| target.codecs.contain(codec)) =>
            {
                Err(Opened::Codec)
            }
            () => Ok(()),
        }
    }

    /// The batch, kept with the `frame` that it stands in.
    pub fn keep(&self, frame: &Bytes) -> Whole {
        Whole {
            header: *self.header(),
            bytes: frame.slice_ref(self.bytes()),
        }
    }

    /// Appends the batch as another producer writes it: with his stamp, outside of any transaction, offsets from 0, and a
    /// checksum of its own.
    pub fn pass(&self, stamp: Stamp, into: &mut Vec<u8>) {
        let at = into.len();
        into.extend_from_slice(self.bytes());
        if let Some(batch) = into.get_mut(at..) {
            let mut put = |place: Range<usize>, bytes: &[u8]| {
                if let Some(place) = batch.get_mut(place) {
                    place.copy_from_slice(bytes);
                }
            };
            put(0..8, &0i64.to_be_bytes());
            put(12..16, &(-1i32).to_be_bytes());
            put(21..23, &self.header().own_attributes().to_be_bytes());
            put(43..51, &stamp.producer_id.to_be_bytes());
            put(51..53, &stamp.producer_epoch.to_be_bytes());
            put(53..57, &stamp.base_sequence.to_be_bytes());
            seal(batch);
        }
    }
}

/// A batch that is kept as it came.
#[derive(Clone, Debug)]
pub struct Whole {
    header: Header,
    bytes: Bytes,
}

impl Whole {
    /// What it says of itself.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// How many records it has.
    pub fn count(&self) -> u32 {
        // A header with fewer than none is not read.
        self.header.count.unsigned_abs()
    }

    /// How many bytes it has.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// The batch as another producer writes it.
    pub fn stamped(&self, stamp: Stamp) -> Bytes {
        let mut written = Vec::with_capacity(self.bytes.len());
        RawBatch {
            header: self.header,
            bytes: &self.bytes,
        }
        .pass(stamp, &mut written);
        written.into()
    }
}

/// Writes the checksum of a batch into it.
pub(super) fn seal(batch: &mut [u8]) {
    let checksum = crc32c::crc32c(batch.get(COVERED..).unwrap_or_default());
    if let Some(place) = batch.get_mut(CHECKSUM..COVERED) {
        place.copy_from_slice(&checksum.to_be_bytes());
    }
}
