//! The dead letter of a record: its original bytes, with cause and coordinates as headers.

use crate::handler::Failure;
use crate::record::{Header, Record};
use sha2::{Digest, Sha256};
use std::borrow::Cow;

/// What a dead letter is made of.
pub(crate) struct DeadLetter<'a> {
    /// The dead-letter topic.
    pub(crate) topic: &'a str,
    /// The route's name.
    pub(crate) route: &'a str,
    /// The record as it was fetched.
    pub(crate) record: &'a Record<'a>,
    /// What it failed of.
    pub(crate) failure: &'a Failure,
    /// What the dead-letter topic takes.
    pub(crate) record_bytes: u64,
}

/// Makes the letter. One too large for its topic carries a hash in place of key and value.
pub(crate) fn letter<'a>(of: &DeadLetter<'a>) -> Record<'a> {
    let mut letter = of.record.clone();
    letter.topic = Cow::Owned(of.topic.to_owned());
    let origin = of.record.origin;
    let mut add = |name: &str, value: String| {
        letter.headers.make_mut().push(Header {
            name: Cow::Owned(name.as_bytes().to_vec()),
            value: Some(Cow::Owned(value.into_bytes())),
        });
    };
    add("mirror.route", of.route.to_owned());
    add("mirror.source.cluster", origin.source.to_owned());
    add("mirror.source.topic", origin.topic.to_owned());
    add("mirror.source.partition", origin.partition.to_string());
    add("mirror.source.offset", origin.offset.to_string());
    add("mirror.error.code", of.failure.code.as_str().to_owned());
    add("mirror.error.detail", of.failure.detail.clone());
    if letter.size_estimate() as u64 > of.record_bytes {
        let hash = |bytes: Option<&[u8]>| bytes.map(|b| hex::encode(Sha256::digest(b)));
        let (key, value) = (
            hash(of.record.key.as_deref()),
            hash(of.record.value.as_deref()),
        );
        letter.key = None;
        letter.value = None;
        let list = letter.headers.make_mut();
        list.retain(|h| h.name.starts_with(b"mirror."));
        for (name, digest) in [("mirror.key.sha256", key), ("mirror.value.sha256", value)] {
            if let Some(digest) = digest {
                list.push(Header {
                    name: Cow::Owned(name.as_bytes().to_vec()),
                    value: Some(Cow::Owned(digest.into_bytes())),
                });
            }
        }
    }
    letter
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handler::FailureCode;
    use crate::record::{Headers, Origin};

    fn record(value: &[u8]) -> Record<'_> {
        Record {
            origin: Origin {
                source: "a",
                topic: "t",
                partition: 3,
                offset: 42,
                timestamp: Some(1),
            },
            topic: Cow::Borrowed("t"),
            key: Some(Cow::Borrowed(b"k")),
            value: Some(Cow::Borrowed(value)),
            headers: Headers::Untouched(&()),
            timestamp: Some(1),
        }
    }

    fn failure() -> Failure {
        Failure {
            code: FailureCode::NotJson,
            detail: "at byte 0".into(),
        }
    }

    #[test]
    fn keeps_the_bytes_and_says_where_they_came_from() {
        let (original, failure) = (record(b"\xff\x00"), failure());
        let letter = letter(&DeadLetter {
            topic: "dlq",
            route: "r",
            record: &original,
            failure: &failure,
            record_bytes: 1 << 20,
        });
        assert_eq!(letter.value.as_deref(), Some(&b"\xff\x00"[..]));
        assert_eq!(
            letter.headers.last(b"mirror.source.offset"),
            Some(Some(&b"42"[..]))
        );
        assert_eq!(
            letter.headers.last(b"mirror.error.code"),
            Some(Some(&b"not_json"[..]))
        );
        assert_eq!(letter.topic, "dlq");
    }

    #[test]
    fn one_too_large_carries_a_hash() {
        let big = vec![7u8; 4096];
        let (original, failure) = (record(&big), failure());
        let letter = letter(&DeadLetter {
            topic: "dlq",
            route: "r",
            record: &original,
            failure: &failure,
            record_bytes: 1000,
        });
        assert_eq!(letter.value, None);
        assert_eq!(
            letter
                .headers
                .last(b"mirror.value.sha256")
                .flatten()
                .map(<[u8]>::len),
            Some(64)
        );
    }
}
