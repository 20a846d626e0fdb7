//! The fields that a predicate or an expression asks for, and looking at them in one record:
//! only when they are asked for, and a key or value is scanned once for all of its fields.

use super::json::scan::{Found, Wanted};
use super::path::{Field, Path};
use super::{Failure, Reads};
use crate::record::Record;
use std::cell::OnceCell;

/// Fields by their slots, collected while something is compiled.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fields {
    paths: Vec<Path>,
    of_key: Wanted,
    of_value: Wanted,
}

/// Which of the [`Fields`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot(usize);

impl Fields {
    /// The slot of `path`, which has no `[*]`. The same path has the same slot.
    pub(crate) fn slot(&mut self, path: &Path) -> Slot {
        if let Some(slot) = self.paths.iter().position(|p| p == path) {
            return Slot(slot);
        }
        let slot = self.paths.len();
        match path {
            Path::Key(segments) if !segments.is_empty() => self.of_key.add(segments, slot),
            Path::Value(segments) if !segments.is_empty() => self.of_value.add(segments, slot),
            _ => {}
        }
        self.paths.push(path.clone());
        Slot(slot)
    }

    /// The path of `slot`.
    pub(crate) fn path(&self, slot: Slot) -> &Path {
        &self.paths[slot.0]
    }

    /// All paths.
    pub(crate) fn paths(&self) -> &[Path] {
        &self.paths
    }

    /// What looking at all of them reads.
    pub(crate) fn reads(&self) -> Reads {
        let reads = self.paths.iter().map(Path::reads);
        reads.max().unwrap_or(Reads::Nothing)
    }

    /// Looks at `record`; nothing is read yet.
    pub(crate) fn view<'v>(&'v self, record: &'v Record<'_>) -> View<'v> {
        View {
            fields: self,
            record,
            in_key: OnceCell::new(),
            in_value: OnceCell::new(),
        }
    }
}

/// One record as seen through [`Fields`].
pub(crate) struct View<'v> {
    fields: &'v Fields,
    record: &'v Record<'v>,
    in_key: OnceCell<Result<Found, Failure>>,
    in_value: OnceCell<Result<Found, Failure>>,
}

impl<'v> View<'v> {
    /// The record.
    pub(crate) fn record(&self) -> &'v Record<'v> {
        self.record
    }

    /// The path of `slot`.
    pub(crate) fn path(&self, slot: Slot) -> &'v Path {
        self.fields.path(slot)
    }

    /// What stands at the path of `slot`.
    ///
    /// # Errors
    /// A field of a key or value that is not JSON.
    #[inline]
    pub(crate) fn read(&self, slot: Slot) -> Result<Field<'v>, Failure> {
        let record = self.record;
        let (document, wanted, cell) = match self.path(slot) {
            Path::Key(segments) if !segments.is_empty() => {
                (record.key.as_deref(), &self.fields.of_key, &self.in_key)
            }
            Path::Value(segments) if !segments.is_empty() => {
                let value = record.value.as_deref();
                (value, &self.fields.of_value, &self.in_value)
            }
            path => return path.read(record),
        };
        let Some(document) = document else {
            return Ok(Field::Absent);
        };
        match cell.get_or_init(|| wanted.find(document)) {
            Err(failure) => Err(failure.clone()),
            Ok(found) => match &found[slot.0] {
                Some(span) => Field::of_token(&document[span.clone()]),
                None => Ok(Field::Absent),
            },
        }
    }
}
