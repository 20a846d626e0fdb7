//! Bytes that are read from the front.

use super::Malformed;

/// What is left of some bytes.
#[derive(Clone, Copy)]
pub(crate) struct Cursor<'a>(pub(crate) &'a [u8]);

impl<'a> Cursor<'a> {
    /// The next `count` bytes.
    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let Some((taken, rest)) = self.0.split_at_checked(count) else {
            return Err(Malformed::Short {
                wanted: count,
                left: self.0.len(),
            });
        };
        self.0 = rest;
        Ok(taken)
    }

    /// The next `N` bytes as an array.
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let Some((taken, rest)) = self.0.split_first_chunk::<N>() else {
            return Err(Malformed::Short {
                wanted: N,
                left: self.0.len(),
            });
        };
        self.0 = rest;
        Ok(*taken)
    }

    /// A number of 32 bits, zigzag, in at most five bytes.
    pub(super) fn varint(&mut self) -> Result<i32, Malformed> {
        let raw = self.unsigned(5)?;
        let raw = u32::try_from(raw).map_err(|_| Malformed::Number)?;
        Ok((raw >> 1) as i32 ^ -((raw & 1) as i32))
    }

    /// A number of 64 bits, zigzag, in at most ten bytes.
    pub(super) fn varlong(&mut self) -> Result<i64, Malformed> {
        let raw = self.unsigned(10)?;
        Ok((raw >> 1) as i64 ^ -((raw & 1) as i64))
    }

    fn unsigned(&mut self, longest: usize) -> Result<u64, Malformed> {
        // Most numbers of a record are lengths and distances below 64.
        if let Some((&first, rest)) = self.0.split_first()
            && first < 0x80
        {
            self.0 = rest;
            return Ok(u64::from(first));
        }
        let mut value = 0u64;
        for (index, byte) in self.0.iter().take(longest).enumerate() {
            let bits = u64::from(byte & 0x7f);
            // The tenth byte has room for one bit only.
            if index == 9 && bits > 1 {
                return Err(Malformed::Number);
            }
            value |= bits << (7 * index);
            if byte & 0x80 == 0 {
                self.0 = &self.0[index + 1..];
                return Ok(value);
            }
        }
        match self.0.len() < longest {
            true => Err(Malformed::Short {
                wanted: self.0.len() + 1,
                left: self.0.len(),
            }),
            false => Err(Malformed::Number),
        }
    }

    /// Bytes behind their length; `None` where the length is -1.
    pub(super) fn nullable(&mut self) -> Result<Option<&'a [u8]>, Malformed> {
        match self.varint()? {
            -1 => Ok(None),
            length => self.take(size(length)?).map(Some),
        }
    }

    /// Bytes behind their length.
    pub(super) fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let length = size(self.varint()?)?;
        self.take(length)
    }
}

/// A length as a size.
pub(crate) fn size(length: i32) -> Result<usize, Malformed> {
    usize::try_from(length).map_err(|_| Malformed::Length(i64::from(length)))
}

/// Bytes that a number takes as a varint.
pub(super) fn varint_size(value: i64) -> usize {
    let bits = 64 - (zigzag(value) | 1).leading_zeros() as usize;
    bits.div_ceil(7)
}

/// Writes a number as a varint: one of 32 bits has the same bytes as one of 64.
pub(super) fn put_varint(into: &mut Vec<u8>, value: i64) {
    let mut left = zigzag(value);
    while left >= 0x80 {
        into.push(left as u8 | 0x80);
        left >>= 7;
    }
    into.push(left as u8);
}

fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_of_32_bits_stay_in_them() {
        let read = |bytes: &[u8]| Cursor(bytes).varint();
        assert_eq!(read(&[0xff, 0xff, 0xff, 0xff, 0x0f]), Ok(i32::MIN));
        assert_eq!(read(&[0xfe, 0xff, 0xff, 0xff, 0x0f]), Ok(i32::MAX));
        assert_eq!(
            read(&[0xff, 0xff, 0xff, 0xff, 0x1f]),
            Err(Malformed::Number)
        );
        assert_eq!(
            read(&[0x80, 0x80, 0x80, 0x80, 0x80, 0]),
            Err(Malformed::Number)
        );
        assert_eq!(
            read(&[0x80, 0x80]),
            Err(Malformed::Short { wanted: 3, left: 2 })
        );
        let long = |bytes: &[u8]| Cursor(bytes).varlong();
        assert_eq!(
            long(&[0xff; 9].iter().copied().chain([1]).collect::<Vec<_>>()),
            Ok(i64::MIN)
        );
        assert_eq!(
            long(&[0xff; 9].iter().copied().chain([2]).collect::<Vec<_>>()),
            Err(Malformed::Number)
        );
        assert_eq!(long(&[0x80; 11]), Err(Malformed::Number));
    }

    proptest! {
        #[test]
        fn a_number_comes_back(value: i64, after: u8) {
            let mut bytes = Vec::new();
            put_varint(&mut bytes, value);
            prop_assert_eq!(bytes.len(), varint_size(value));
            bytes.push(after);
            let mut cursor = Cursor(&bytes);
            prop_assert_eq!(cursor.varlong(), Ok(value));
            prop_assert_eq!(cursor.0, [after]);
            let mut cursor = Cursor(&bytes);
            match i32::try_from(value) {
                Ok(value) => prop_assert_eq!(cursor.varint(), Ok(value)),
                Err(_) => prop_assert_eq!(cursor.varint(), Err(Malformed::Number)),
            }
        }
    }
}
