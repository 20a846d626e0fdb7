//! Records for tests.

use crate::record::{HeaderSource, Headers, Origin, Record};
use std::borrow::Cow;

/// A record of `eu`'s `t[3]` at offset 42 without headers.
pub(crate) fn record<'a>(key: Option<&'a str>, value: Option<&'a str>) -> Record<'a> {
    Record {
        origin: Origin {
            source: "eu",
            topic: "t",
            partition: 3,
            offset: 42,
            timestamp: Some(1234),
        },
        topic: Cow::Borrowed("t"),
        key: key.map(|k| Cow::Borrowed(k.as_bytes())),
        value: value.map(|v| Cow::Borrowed(v.as_bytes())),
        headers: Headers::Untouched(&()),
        timestamp: Some(1234),
    }
}

/// `record` with `headers`.
pub(crate) fn with_headers<'a>(record: Record<'a>, headers: &'a dyn HeaderSource) -> Record<'a> {
    Record {
        headers: Headers::Untouched(headers),
        ..record
    }
}

/// The value as text.
pub(crate) fn value_of<'r>(record: &'r Record<'_>) -> Option<&'r str> {
    record
        .value
        .as_deref()
        .map(|v| std::str::from_utf8(v).expect("UTF-8"))
}

/// The headers as texts.
pub(crate) fn headers_of(record: &Record<'_>) -> Vec<(String, Option<String>)> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (0..)
        .map_while(|index| record.headers.get(index))
        .map(|(name, value)| (text(name), value.map(text)))
        .collect()
}
