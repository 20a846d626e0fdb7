//! Requests as they go out.

use super::frame::Frame;
use bytes::Bytes;

/// Shorter bytes are copied: a piece of its own costs more.
const LENT_FROM: usize = 4096;

/// A frame that is being written: the length comes first, and is known last.
pub struct Writer {
    bytes: Vec<u8>,
    /// What is lent, each with the number of bytes written before it.
    lent: Vec<(usize, Bytes)>,
}

impl Writer {
    /// A frame with room for `size` bytes.
    pub fn with_capacity(size: usize) -> Self {
        let mut bytes = Vec::with_capacity(size + 4);
        bytes.extend_from_slice(&[0; 4]);
        let lent = Vec::new();
        Self { bytes, lent }
    }

    /// One byte.
    pub fn int8(&mut self, value: i8) {
        self.bytes.extend_from_slice(&value.to_be_bytes());
    }

    /// A number of 16 bits.
    pub fn int16(&mut self, value: i16) {
        self.bytes.extend_from_slice(&value.to_be_bytes());
    }

    /// A number of 32 bits.
    pub fn int32(&mut self, value: i32) {
        self.bytes.extend_from_slice(&value.to_be_bytes());
    }

    /// A number of 64 bits.
    pub fn int64(&mut self, value: i64) {
        self.bytes.extend_from_slice(&value.to_be_bytes());
    }

    /// Text: names, which Kafka keeps far below the 32 KiB that fit.
    pub fn string(&mut self, text: &str) {
        let length = i16::try_from(text.len()).unwrap_or(i16::MAX);
        self.int16(length);
        self.bytes
            .extend_from_slice(&text.as_bytes()[..length.unsigned_abs().into()]);
    }

    /// No text.
    pub fn null_string(&mut self) {
        self.int16(-1);
    }

    /// Bytes behind their length.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.size(bytes.len());
        self.bytes.extend_from_slice(bytes);
    }

    /// The same, lent to the frame if they are many.
    pub fn lend(&mut self, bytes: &Bytes) {
        if bytes.len() < LENT_FROM {
            return self.bytes(bytes);
        }
        self.size(bytes.len());
        self.lent.push((self.bytes.len(), bytes.clone()));
    }

    /// A list.
    pub fn list<T>(
        &mut self,
        items: impl ExactSizeIterator<Item = T>,
        mut write: impl FnMut(&mut Self, T),
    ) {
        self.size(items.len());
        items.for_each(|item| write(self, item));
    }

    fn size(&mut self, size: usize) {
        self.int32(i32::try_from(size).unwrap_or(i32::MAX));
    }

    /// The whole frame, its length in front.
    pub fn frame(mut self) -> Frame {
        let lent: usize = self.lent.iter().map(|(_, bytes)| bytes.len()).sum();
        let length = u32::try_from(self.bytes.len() - 4 + lent).unwrap_or(u32::MAX);
        self.bytes[..4].copy_from_slice(&length.to_be_bytes());
        let mut own = Bytes::from(self.bytes);
        let (mut frame, mut written) = (Frame::default(), 0);
        for (before, bytes) in self.lent {
            frame.push(own.split_to(before - written));
            frame.push(bytes);
            written = before;
        }
        frame.push(own);
        frame
    }
}
