//! Steps that change everything that a path matches: all headers of a name, the key or the value
//! as a whole, or every matching field. What is null, or not there, stays as it is.

use crate::handler::fault::Place;
use crate::handler::json::edit;
use crate::handler::limit::RecordLimit;
use crate::handler::path::Path;
use crate::handler::{Failure, Reads};
use crate::record::Record;
use std::borrow::Cow;

/// Bytes in, bytes out; `None` is null.
type Changed = Result<Option<Vec<u8>>, Failure>;

/// How a step changes what it finds.
pub(super) trait Change {
    /// Changes bytes without a type: a header, the key or the value as a whole.
    fn bytes(&self, bytes: &[u8]) -> Changed;

    /// Changes a checked JSON value that is not null and stands `depth` arrays and objects deep;
    /// `None` leaves it as it is.
    fn json(&self, token: &[u8], depth: usize) -> Changed;
}

/// Compiles a path that may match many fields.
pub(super) fn compile(text: &str, place: &Place<'_>) -> Option<Path> {
    match Path::parse(text) {
        Ok(path @ (Path::Header(_) | Path::Key(_) | Path::Value(_))) => Some(path),
        Ok(path) => place.fault(format!(
            "key, value, headers and fields can be changed here, not `{path}`"
        )),
        Err(fault) => place.fault_path(text, fault),
    }
}

/// What changing everything at `path` reads of a record.
pub(super) fn reads(path: &Path) -> Reads {
    match path {
        Path::Value(_) => Reads::Value,
        other => other.reads(),
    }
}

/// Changes everything in `record` that `path` matches.
///
/// # Errors
/// A path into a key or value that is not JSON, more new bytes than `limit`, or what `change`
/// fails with.
pub(super) fn change(
    record: &mut Record<'_>,
    path: &Path,
    limit: RecordLimit,
    change: &impl Change,
) -> Result<(), Failure> {
    let (document, segments) = match path {
        Path::Header(name) => return change_headers(record, name.as_bytes(), change),
        Path::Key(segments) => (&mut record.key, segments.as_slice()),
        path => (&mut record.value, path.segments()),
    };
    let Some(bytes) = document.as_deref() else {
        return Ok(());
    };
    if segments.is_empty() {
        *document = change.bytes(bytes)?.map(Cow::Owned);
        return Ok(());
    }
    let changed = edit::replace(bytes, segments, limit, |token| match token {
        b"null" => Ok(None),
        token => change.json(token, segments.len()),
    })?;
    if let Some(changed) = changed {
        *document = Some(Cow::Owned(changed));
    }
    Ok(())
}

fn change_headers(
    record: &mut Record<'_>,
    name: &[u8],
    change: &impl Change,
) -> Result<(), Failure> {
    if record.headers.last(name).is_none() {
        return Ok(());
    }
    for header in record.headers.make_mut() {
        if *header.name == *name
            && let Some(bytes) = header.value.as_deref()
        {
            header.value = change.bytes(bytes)?.map(Cow::Owned);
        }
    }
    Ok(())
}
