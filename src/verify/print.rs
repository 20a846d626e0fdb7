//! A fingerprint: what two records have to share to be the same record.

use crate::record::Record;
use foldhash::fast::FixedState;
use sha2::{Digest, Sha256};
use std::hash::BuildHasher;

/// Whether timestamps are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stamps {
    /// They have to be equal.
    Compared,
    /// The target writes its own (`message.timestamp.type=LogAppendTime`), or a handler writes the time of its run.
    Ignored,
}

/// The fingerprint of one record: of the whole, and of its parts, which tell an altered record from a strange one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Print {
    /// Key, value, headers and timestamp: 128 bits of SHA-256, since a comparison may run over more records than
    /// 64 bits tell apart.
    pub whole: u128,
    /// The key; `None` is null.
    pub key: Option<u64>,
    /// The value.
    value: u32,
    /// Whether the value is null.
    pub body: Body,
    /// Names and values of the headers, in order.
    headers: u32,
    /// In milliseconds.
    timestamp: Option<i64>,
}

/// Whether a record has a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// It has one, of zero or more bytes.
    Value,
    /// It has none: a deletion, to a compacted topic.
    Tombstone,
}

/// A part in which an altered record differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The key.
    Key,
    /// The value.
    Value,
    /// The headers.
    Headers,
    /// The timestamp.
    Timestamp,
}

impl Part {
    /// Its word in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Part::Key => "key",
            Part::Value => "value",
            Part::Headers => "headers",
            Part::Timestamp => "timestamp",
        }
    }
}

impl Print {
    /// The fingerprint of what a record is, wherever it stands.
    pub fn of(record: &Record<'_>, stamps: Stamps) -> Self {
        let timestamp = match stamps {
            Stamps::Compared => record.timestamp,
            Stamps::Ignored => None,
        };
        let parts = FixedState::default();
        let mut whole = Whole::default();
        whole.field(record.key.as_deref());
        whole.field(record.value.as_deref());
        let mut headers = 0;
        let mut index = 0;
        while let Some((name, value)) = record.headers.get(index) {
            whole.field(Some(name));
            whole.field(value);
            headers = parts.hash_one((headers, name, value));
            index += 1;
        }
        whole.number(timestamp);
        Self {
            whole: whole.finish(),
            key: record.key.as_deref().map(|key| parts.hash_one(key)),
            value: parts.hash_one(record.value.as_deref()) as u32,
            body: match record.value {
                Some(_) => Body::Value,
                None => Body::Tombstone,
            },
            headers: headers as u32,
            timestamp,
        }
    }

    /// Whether two different records are two states of one: they share the key or the value, and one part more.
    pub fn resembles(&self, other: &Self) -> bool {
        let differences = self.differences(other).len();
        let shares_body = self.key == other.key || self.value == other.value;
        shares_body && differences <= 2
    }

    /// The parts in which they differ.
    pub fn differences(&self, other: &Self) -> Vec<Part> {
        let parts = [
            (Part::Key, self.key == other.key),
            (Part::Value, self.value == other.value),
            (Part::Headers, self.headers == other.headers),
            (Part::Timestamp, self.timestamp == other.timestamp),
        ];
        let differing = parts.into_iter().filter(|(_, same)| !same);
        differing.map(|(part, _)| part).collect()
    }

    /// The timestamp, where it is compared.
    pub fn timestamp(&self) -> Option<i64> {
        self.timestamp
    }
}

/// Hashes fields so that null, empty and neighbours stay apart.
#[derive(Default)]
struct Whole(Sha256);

impl Whole {
    fn field(&mut self, bytes: Option<&[u8]>) {
        // A length that no field has stands for null.
        let length = bytes.map_or(u64::MAX, |b| b.len() as u64);
        self.0.update(length.to_le_bytes());
        self.0.update(bytes.unwrap_or_default());
    }

    fn number(&mut self, number: Option<i64>) {
        self.field(
            number
                .map(i64::to_le_bytes)
                .as_ref()
                .map(<[u8; 8]>::as_slice),
        );
    }

    fn finish(self) -> u128 {
        let digest = self.0.finalize();
        let half = digest.first_chunk::<16>().copied().unwrap_or_default();
        u128::from_le_bytes(half)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Headers, Origin};
    use std::borrow::Cow;

    type List = Vec<(Vec<u8>, Option<Vec<u8>>)>;

    fn print(key: Option<&[u8]>, value: Option<&[u8]>, headers: &List, at: i64) -> Print {
        let origin = Origin {
            source: "s",
            topic: "t",
            partition: 0,
            offset: 0,
            timestamp: None,
        };
        let record = Record {
            origin,
            topic: Cow::Borrowed("t"),
            key: key.map(Cow::Borrowed),
            value: value.map(Cow::Borrowed),
            headers: Headers::Untouched(headers),
            timestamp: Some(at),
        };
        Print::of(&record, Stamps::Compared)
    }

    #[test]
    fn null_and_empty_and_neighbours_stay_apart() {
        let none = List::new();
        let null_header = vec![(b"h".to_vec(), None)];
        let empty_header = vec![(b"h".to_vec(), Some(Vec::new()))];
        let all = [
            print(None, None, &none, 0),
            print(Some(b""), None, &none, 0),
            print(None, Some(b""), &none, 0),
            print(Some(b"ab"), Some(b"c"), &none, 0),
            print(Some(b"a"), Some(b"bc"), &none, 0),
            print(None, None, &null_header, 0),
            print(None, None, &empty_header, 0),
            print(None, None, &none, 1),
        ];
        for (index, one) in all.iter().enumerate() {
            for other in &all[index + 1..] {
                assert_ne!(one.whole, other.whole);
                assert_ne!(one.differences(other), []);
            }
        }
    }

    #[test]
    fn an_altered_record_is_told_by_what_it_kept() {
        let none = List::new();
        let sent = print(Some(b"k"), Some(b"v"), &none, 5);
        let altered = print(Some(b"k"), Some(b"w"), &none, 5);
        assert!(sent.resembles(&altered));
        assert_eq!(sent.differences(&altered), [Part::Value]);
        let another = print(Some(b"l"), Some(b"w"), &none, 6);
        assert!(!sent.resembles(&another));
    }
}
