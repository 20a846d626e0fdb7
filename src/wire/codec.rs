//! The five codecs, with a limit for what comes out.

use super::Malformed;
use std::io::{self, Read, Write};

/// How the records of a batch are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    /// Not at all.
    None,
    /// gzip.
    Gzip,
    /// Snappy, in blocks as snappy-java frames them, or as one.
    Snappy,
    /// LZ4, in its own frame.
    Lz4,
    /// Zstandard (KIP-110).
    Zstd,
}

impl Codec {
    /// All of them.
    pub const ALL: [Codec; 5] = [
        Codec::None,
        Codec::Gzip,
        Codec::Snappy,
        Codec::Lz4,
        Codec::Zstd,
    ];

    /// The one of this number.
    pub(super) fn of(number: u8) -> Result<Self, Malformed> {
        let known = Self::ALL.get(usize::from(number));
        known.copied().ok_or(Malformed::Codec(number))
    }

    /// Its number in a batch.
    pub(super) fn number(self) -> i16 {
        match self {
            Codec::None => 0,
            Codec::Gzip => 1,
            Codec::Snappy => 2,
            Codec::Lz4 => 3,
            Codec::Zstd => 4,
        }
    }

    /// Its name in settings: `compression.type`.
    pub fn as_str(self) -> &'static str {
        match self {
            Codec::None => "none",
            Codec::Gzip => "gzip",
            Codec::Snappy => "snappy",
            Codec::Lz4 => "lz4",
            Codec::Zstd => "zstd",
        }
    }
}

/// What snappy-java writes before its blocks: a name, its version, and the oldest that can read it.
const SNAPPY_JAVA: [u8; 16] = [
    0x82, b'S', b'N', b'A', b'P', b'P', b'Y', 0, 0, 0, 0, 1, 0, 0, 0, 1,
];
const SNAPPY_NAME: usize = 8;
/// Bytes of a block before it is compressed, as snappy-java has them.
const SNAPPY_BLOCK: usize = 32 * 1024;

/// Decompresses; what Snappy needs is kept from one batch to the next.
pub struct Decompressor {
    snappy: snap::raw::Decoder,
}

impl Default for Decompressor {
    fn default() -> Self {
        Self {
            snappy: snap::raw::Decoder::new(),
        }
    }
}

impl Decompressor {
    /// What is in `body`: itself where nothing is compressed, else `into`, which is emptied first.
    pub(super) fn decompress<'b>(
        &mut self,
        codec: Codec,
        body: &'b [u8],
        limit: usize,
        into: &'b mut Vec<u8>,
    ) -> Result<&'b [u8], Malformed> {
        into.clear();
        match codec {
            Codec::None => return within(body.len(), limit).map(|()| body),
            Codec::Gzip => read(codec, flate2::read::MultiGzDecoder::new(body), limit, into)?,
            Codec::Snappy => self.snappy(body, limit, into)?,
            Codec::Lz4 => read(codec, lz4_flex::frame::FrameDecoder::new(body), limit, into)?,
            Codec::Zstd => {
                let reader = zstd::stream::read::Decoder::with_buffer(body);
                read(
                    codec,
                    reader.map_err(|e| compressed(codec, &e))?,
                    limit,
                    into,
                )?;
            }
        }
        Ok(into)
    }

    fn snappy(&mut self, body: &[u8], limit: usize, into: &mut Vec<u8>) -> Result<(), Malformed> {
        if body.get(..SNAPPY_NAME) != Some(&SNAPPY_JAVA[..SNAPPY_NAME]) {
            return self.snappy_block(body, limit, into);
        }
        let mut left = super::cursor::Cursor(body);
        left.take(SNAPPY_JAVA.len())?;
        while !left.0.is_empty() {
            let length = i32::from_be_bytes(left.array()?);
            let block = left.take(super::cursor::size(length)?)?;
            self.snappy_block(block, limit, into)?;
        }
        Ok(())
    }

    fn snappy_block(
        &mut self,
        block: &[u8],
        limit: usize,
        into: &mut Vec<u8>,
    ) -> Result<(), Malformed> {
        let wrong = |error| compressed(Codec::Snappy, &error);
        let from = into.len();
        let size = snap::raw::decompress_len(block).map_err(wrong)?;
        // Before memory is taken for it: the length is only announced.
        within(from.saturating_add(size), limit)?;
        into.resize(from + size, 0);
        let room = into.get_mut(from..).unwrap_or_default();
        let written = self.snappy.decompress(block, room).map_err(wrong)?;
        into.truncate(from + written);
        Ok(())
    }
}

fn within(size: usize, limit: usize) -> Result<(), Malformed> {
    match size <= limit {
        true => Ok(()),
        false => Err(Malformed::TooLarge(limit)),
    }
}

/// Reads to the end, or to one byte more than is allowed.
fn read(
    codec: Codec,
    reader: impl Read,
    limit: usize,
    into: &mut Vec<u8>,
) -> Result<(), Malformed> {
    let bound = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    let read = reader.take(bound).read_to_end(into);
    read.map_err(|error| compressed(codec, &error))?;
    within(into.len(), limit)
}

fn compressed(codec: Codec, error: &dyn std::error::Error) -> Malformed {
    Malformed::Compressed {
        codec,
        detail: error.to_string(),
    }
}

/// A codec with the level that `compression.*.level` gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compression {
    /// The codec.
    pub codec: Codec,
    /// Its level; `None` is the codec's own. LZ4 and Snappy have none here.
    pub level: Option<i32>,
}

/// Compresses; what Zstandard and Snappy need is kept from one batch to the next.
pub struct Compressor {
    compression: Compression,
    zstd: Option<zstd::bulk::Compressor<'static>>,
    snappy: snap::raw::Encoder,
}

impl Compressor {
    /// One for this codec.
    ///
    /// # Errors
    /// The codec takes no such level, in its words.
    pub fn new(compression: Compression) -> io::Result<Self> {
        let zstd = match compression.codec {
            Codec::Zstd => {
                let level = compression.level.unwrap_or(zstd::DEFAULT_COMPRESSION_LEVEL);
                Some(zstd::bulk::Compressor::new(level)?)
            }
            _ => None,
        };
        Ok(Self {
            compression,
            zstd,
            snappy: snap::raw::Encoder::new(),
        })
    }

    /// Which codec it is for.
    pub fn codec(&self) -> Codec {
        self.compression.codec
    }

    /// Appends `body`, compressed.
    pub(super) fn compress(&mut self, body: &[u8], into: &mut Vec<u8>) -> io::Result<()> {
        match self.compression.codec {
            Codec::None => into.extend_from_slice(body),
            Codec::Gzip => {
                let level = self.compression.level.and_then(|l| u32::try_from(l).ok());
                let level = level.map_or(flate2::Compression::default(), flate2::Compression::new);
                let mut writer = flate2::write::GzEncoder::new(into, level);
                writer.write_all(body)?;
                writer.finish()?;
            }
            Codec::Snappy => self.snappy(body, into)?,
            Codec::Lz4 => {
                let mut writer = lz4_flex::frame::FrameEncoder::new(into);
                writer.write_all(body)?;
                writer.finish().map_err(io::Error::other)?;
            }
            Codec::Zstd => {
                if let Some(zstd) = &mut self.zstd {
                    into.extend_from_slice(&zstd.compress(body)?);
                }
            }
        }
        Ok(())
    }

    fn snappy(&mut self, body: &[u8], into: &mut Vec<u8>) -> io::Result<()> {
        into.extend_from_slice(&SNAPPY_JAVA);
        for block in body.chunks(SNAPPY_BLOCK) {
            let at = into.len() + size_of::<i32>();
            into.resize(at + snap::raw::max_compress_len(block.len()), 0);
            let room = into.get_mut(at..).unwrap_or_default();
            let written = self.snappy.compress(block, room)?;
            into.truncate(at + written);
            let length = i32::try_from(written).map_err(io::Error::other)?;
            if let Some(place) = into.get_mut(at - size_of::<i32>()..at) {
                place.copy_from_slice(&length.to_be_bytes());
            }
        }
        Ok(())
    }
}
