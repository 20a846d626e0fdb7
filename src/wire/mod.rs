//! Records as they stand on the wire: the batch format v2 (KIP-98), read and written without a client, and the formats before it, read.
//!
//! What a broker answers to a fetch is a row of batches: [`cut`](cut::Cuts) finds them, [`header`] says what is in one without
//! opening it, [`pass`] whether it may go on as it is, [`records`] lends its records from the bytes, decompressed by [`codec`]
//! into a buffer that is used again, and [`writer`] makes a batch of them. Nothing here is allocated for a record. What is older
//! than batches [`legacy`] reads: it is never passed on as it is.
//!
//! Whatever the bytes say, reading them ends with records or with [`Malformed`]: no length is believed before it is
//! compared with what is there, and nothing grows beyond the limit that the caller gives.

pub mod aborted;
pub mod codec;
pub(crate) mod cursor;
pub mod cut;
pub mod header;
pub mod legacy;
pub mod pass;
pub mod records;
pub mod writer;

use codec::Codec;

/// Why bytes are no batch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Something ends before it should.
    #[error("{wanted} bytes are announced and {left} are left")]
    Short {
        /// What was announced.
        wanted: usize,
        /// What there is.
        left: usize,
    },
    /// A length that nothing can have.
    #[error("a length of {0}")]
    Length(i64),
    /// A number that does not end.
    #[error("a number of more bytes than it may have")]
    Number,
    /// A format that is not known.
    #[error("batch format {0}, which is not known")]
    Magic(i8),
    /// The checksum says that something was changed on the way.
    #[error("the checksum is {stated:08x}, that of the bytes {found:08x}")]
    Checksum {
        /// What the batch says.
        stated: u32,
        /// What it is.
        found: u32,
    },
    /// A codec that is not known.
    #[error("codec {0}, which is not known")]
    Codec(u8),
    /// The compressed bytes are not of the codec that the batch names.
    #[error("not {}: {detail}", codec.as_str())]
    Compressed {
        /// What it says.
        codec: Codec,
        /// What is wrong, in the codec's words.
        detail: String,
    },
    /// Decompressed it is larger than is allowed: damaged, or made to fill memory.
    #[error("more than {0} bytes when decompressed")]
    TooLarge(usize),
    /// The header and what follows do not have the same number of records.
    #[error("{stated} records are announced, and it is not so many")]
    Count {
        /// What the header says.
        stated: i32,
    },
    /// A compressed message inside of a compressed one, which there never was.
    #[error("a compressed message inside of a compressed one")]
    Nested,
    /// Offsets do not rise, or pass what the header says.
    #[error("a record at {0} behind its batch's first, where none can be")]
    Offset(i64),
}

#[cfg(test)]
mod tests;
