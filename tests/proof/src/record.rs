//! A record as the tests see it: every byte that has to arrive.

use std::hash::{DefaultHasher, Hash, Hasher};

/// A header: a name that need not be UTF-8, and a value that may be null.
pub type Header = (Vec<u8>, Option<Vec<u8>>);

/// Everything of a record that a copy must keep.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Record {
    /// `None` is null, which is not empty.
    pub key: Option<Vec<u8>>,
    /// `None` is null, which is not empty.
    pub value: Option<Vec<u8>>,
    /// In order, with repeats.
    pub headers: Vec<Header>,
    /// Milliseconds.
    pub timestamp: i64,
}

impl Record {
    /// One number for all of it.
    pub fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }
}
