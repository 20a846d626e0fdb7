//! `unset`: headers and fields are removed.

use crate::handler::fault::Place;
use crate::handler::json::edit;
use crate::handler::path::Path;
use crate::handler::{Failure, Reads};
use crate::record::Record;
use std::borrow::Cow;

/// Something to remove. What is not there is no failure.
#[derive(Clone, Debug)]
pub(crate) enum Removal {
    /// All headers of that name.
    Header(String),
    /// All headers that begin so.
    HeadersWith(String),
    /// Every match of the path in the key or the value.
    Field(Path),
}

/// Compiles a list of paths, reporting mistakes at `place`.
pub(super) fn compile(list: &[String], place: &Place<'_>) -> Option<Vec<Removal>> {
    if list.is_empty() {
        return place.fault("an empty list removes nothing");
    }
    let compiled: Vec<Option<Removal>> = list
        .iter()
        .enumerate()
        .map(|(index, text)| Removal::compile(text, &place.child(index)))
        .collect();
    compiled.into_iter().collect()
}

impl Removal {
    fn compile(text: &str, place: &Place<'_>) -> Option<Self> {
        if let Some(prefix) = text
            .strip_prefix("header.")
            .and_then(|n| n.strip_suffix('*'))
        {
            return Some(Self::HeadersWith(prefix.to_owned()));
        }
        let path = match Path::parse(text) {
            Ok(path) => path,
            Err(fault) => return place.fault_path(text, fault),
        };
        match path {
            Path::Header(name) => Some(Self::Header(name)),
            Path::Key(ref segments) | Path::Value(ref segments) if !segments.is_empty() => {
                Some(Self::Field(path))
            }
            Path::Key(_) | Path::Value(_) => place.fault_with_help(
                format!("`{text}` as a whole is not removed"),
                "`set` it to null",
            ),
            _ => place.fault("headers and fields can be removed"),
        }
    }

    /// What it reads of a record.
    pub(super) fn reads(&self) -> Reads {
        match self {
            Self::Header(_) | Self::HeadersWith(_) => Reads::Headers,
            Self::Field(path) if path.is_of_value() => Reads::Value,
            Self::Field(_) => Reads::Fields,
        }
    }

    /// Removes it from `record`.
    pub(super) fn apply(&self, record: &mut Record<'_>) -> Result<(), Failure> {
        match self {
            Self::Header(name) => remove_headers(record, |n| n == name.as_bytes()),
            Self::HeadersWith(prefix) => {
                remove_headers(record, |n| n.starts_with(prefix.as_bytes()));
            }
            Self::Field(path) => {
                let document = match path {
                    Path::Key(_) => &mut record.key,
                    _ => &mut record.value,
                };
                if let Some(bytes) = document.as_deref()
                    && let Some(changed) = edit::remove(bytes, path.segments())?
                {
                    *document = Some(Cow::Owned(changed));
                }
            }
        }
        Ok(())
    }
}

/// Headers without a match stay untouched, so that they are copied as a whole.
fn remove_headers(record: &mut Record<'_>, is_doomed: impl Fn(&[u8]) -> bool) {
    let mut names = (0..).map_while(|index| record.headers.get(index));
    if names.any(|(name, _)| is_doomed(name)) {
        record.headers.make_mut().retain(|h| !is_doomed(&h.name));
    }
}
