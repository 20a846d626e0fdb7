//! `envelope`: the record as a whole becomes one JSON object, with where it came from.

use crate::handler::json::{scan, text};
use crate::handler::{Failure, FailureCode};
use crate::record::Record;
use std::borrow::Cow;

/// Puts the record into an envelope: key and headers as texts, the value as the JSON that it is.
/// A null value passes as it is.
pub(super) fn apply(record: &mut Record<'_>) -> Result<(), Failure> {
    let Some(value) = record.value.as_deref() else {
        return Ok(());
    };
    let span = scan::root_at(value, 1)?;
    let origin = record.origin;
    let mut out = b"{\"source\":{\"cluster\":".to_vec();
    text::encode(origin.source, &mut out);
    out.extend_from_slice(b",\"topic\":");
    text::encode(origin.topic, &mut out);
    let (partition, offset) = (origin.partition, origin.offset);
    out.extend_from_slice(format!(",\"partition\":{partition},\"offset\":{offset}").as_bytes());
    match origin.timestamp {
        Some(timestamp) => {
            out.extend_from_slice(format!(",\"timestamp\":{timestamp}}}").as_bytes())
        }
        None => out.extend_from_slice(b",\"timestamp\":null}"),
    }
    out.extend_from_slice(b",\"key\":");
    nullable(record.key.as_deref(), "the key", &mut out)?;
    out.extend_from_slice(b",\"headers\":[");
    for (index, (name, value)) in (0..).map_while(|i| Some((i, record.headers.get(i)?))) {
        if index > 0 {
            out.push(b',');
        }
        out.push(b'[');
        nullable(Some(name), "a header's name", &mut out)?;
        out.push(b',');
        nullable(value, "a header", &mut out)?;
        out.push(b']');
    }
    out.extend_from_slice(b"],\"value\":");
    out.extend_from_slice(&value[span]);
    out.push(b'}');
    record.value = Some(Cow::Owned(out));
    Ok(())
}

fn nullable(bytes: Option<&[u8]>, what: &str, out: &mut Vec<u8>) -> Result<(), Failure> {
    match bytes.map(std::str::from_utf8) {
        None => out.extend_from_slice(b"null"),
        Some(Ok(text)) => text::encode(text, out),
        Some(Err(_)) => {
            let detail = format!("{what} is not UTF-8 and cannot become a JSON text");
            return Err(Failure::new(FailureCode::WrongType, detail));
        }
    }
    Ok(())
}
