//! Requests as they go out.

/// A frame that is being written: the length comes first, and is known last.
pub struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    /// A frame with room for `size` bytes.
    pub fn with_capacity(size: usize) -> Self {
        let mut bytes = Vec::with_capacity(size + 4);
        bytes.extend_from_slice(&[0; 4]);
        Self { bytes }
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
    pub fn frame(mut self) -> Vec<u8> {
        let length = u32::try_from(self.bytes.len() - 4).unwrap_or(u32::MAX);
        self.bytes[..4].copy_from_slice(&length.to_be_bytes());
        self.bytes
    }
}
