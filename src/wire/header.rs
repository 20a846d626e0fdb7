//! The 61 bytes before the records of a batch: everything that can be known of it without opening it.

use super::codec::Codec;
use super::cursor::Cursor;
use super::{Malformed, cut};

/// Bytes of a header.
pub const LENGTH: usize = 61;
/// Where the checksum stands. It covers everything behind it: not the offset and the leader epoch, which brokers write.
pub(super) const CHECKSUM: usize = 17;
/// Where the covered part begins.
pub(super) const COVERED: usize = 21;

/// None of its records has one.
pub(super) const NO_TIMESTAMP: i64 = -1;

const CODEC: i16 = 0x07;
const LOG_APPEND_TIME: i16 = 0x08;
pub(super) const TRANSACTIONAL: i16 = 0x10;
const CONTROL: i16 = 0x20;
const DELETE_HORIZON: i16 = 0x40;

/// Who wrote a batch, and which of his it is: what makes a broker drop repeats and refuse gaps (KIP-98).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The producer's number; -1 without idempotence.
    pub producer_id: i64,
    /// Its epoch: a lower one is fenced off.
    pub producer_epoch: i16,
    /// The number of the batch's first record among all that this producer wrote to the partition.
    pub base_sequence: i32,
}

/// The header of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The offset of the first record that the batch had; compaction may have taken that.
    pub base_offset: i64,
    /// Under which leader it was appended; -1 if unknown.
    pub leader_epoch: i32,
    /// The checksum that the batch states (CRC-32C).
    pub checksum: u32,
    /// Codec and flags as they stand there.
    pub attributes: i16,
    /// How far behind the first the last record is that the batch had.
    pub last_offset_delta: i32,
    /// The timestamp that the records' are relative to, in milliseconds.
    pub base_timestamp: i64,
    /// The largest timestamp of its records, in milliseconds; that of all of them with LogAppendTime.
    pub max_timestamp: i64,
    /// Who wrote it.
    pub stamp: Stamp,
    /// How many records follow.
    pub count: i32,
}

impl Header {
    /// Reads the header at the front of `batch`, whose format is known to be 2.
    pub(super) fn read(batch: &[u8]) -> Result<Self, Malformed> {
        let mut from = Cursor(batch);
        let base_offset = i64::from_be_bytes(from.array()?);
        let _length: [u8; 4] = from.array()?;
        let leader_epoch = i32::from_be_bytes(from.array()?);
        let [magic] = from.array()?;
        if magic != cut::MAGIC {
            return Err(Malformed::Magic(magic as i8));
        }
        let header = Self {
            base_offset,
            leader_epoch,
            checksum: u32::from_be_bytes(from.array()?),
            attributes: i16::from_be_bytes(from.array()?),
            last_offset_delta: i32::from_be_bytes(from.array()?),
            base_timestamp: i64::from_be_bytes(from.array()?),
            max_timestamp: i64::from_be_bytes(from.array()?),
            stamp: Stamp {
                producer_id: i64::from_be_bytes(from.array()?),
                producer_epoch: i16::from_be_bytes(from.array()?),
                base_sequence: i32::from_be_bytes(from.array()?),
            },
            count: i32::from_be_bytes(from.array()?),
        };
        if header.last_offset_delta < 0 {
            return Err(Malformed::Offset(i64::from(header.last_offset_delta)));
        }
        // As many as there are offsets at most; compaction takes some, or all.
        if !(0..=i64::from(header.last_offset_delta) + 1).contains(&i64::from(header.count)) {
            return Err(Malformed::Count {
                stated: header.count,
            });
        }
        if header
            .base_offset
            .checked_add(i64::from(header.last_offset_delta) + 1)
            .is_none()
        {
            return Err(Malformed::Offset(header.base_offset));
        }
        Ok(header)
    }

    /// How its records are compressed.
    ///
    /// # Errors
    /// A codec that is not known.
    pub fn codec(&self) -> Result<Codec, Malformed> {
        Codec::of((self.attributes & CODEC) as u8)
    }

    /// Whether the broker wrote the time of the append over the records' own.
    pub fn has_append_time(&self) -> bool {
        self.attributes & LOG_APPEND_TIME != 0
    }

    /// Whether it belongs to a transaction.
    pub fn is_transactional(&self) -> bool {
        self.attributes & TRANSACTIONAL != 0
    }

    /// Whether it holds markers of the broker's instead of records.
    pub fn is_control(&self) -> bool {
        self.attributes & CONTROL != 0
    }

    /// Whether compaction has written into the base timestamp when its tombstones may go (KIP-534).
    pub fn has_delete_horizon(&self) -> bool {
        self.attributes & DELETE_HORIZON != 0
    }

    /// The largest timestamp of its records, if one of them has any.
    pub fn latest(&self) -> Option<i64> {
        (self.max_timestamp != NO_TIMESTAMP).then_some(self.max_timestamp)
    }

    /// The offset of the last record that the batch had.
    pub fn last_offset(&self) -> i64 {
        self.base_offset + i64::from(self.last_offset_delta)
    }

    /// Attributes without any but those that a producer may send.
    pub(super) fn own_attributes(&self) -> i16 {
        self.attributes & CODEC
    }

    /// Attributes that mean nothing that is known here.
    pub(super) fn unknown_attributes(&self) -> i16 {
        self.attributes & !(CODEC | LOG_APPEND_TIME | TRANSACTIONAL | CONTROL | DELETE_HORIZON)
    }
}
