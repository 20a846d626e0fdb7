//! `flatten`: the nested objects of the value become one level.

use crate::handler::Failure;
use crate::handler::fault::Place;
use crate::handler::json::flat;
use crate::handler::json::text;
use crate::handler::limit::RecordLimit;
use crate::handler::spec::FlattenSpec;
use crate::record::Record;
use std::borrow::Cow;

/// A compiled flatten.
#[derive(Clone, Debug)]
pub(crate) struct Flatten {
    /// As it stands in a JSON text, without quotes.
    separator: Vec<u8>,
}

impl Flatten {
    /// Compiles `spec`, reporting mistakes at `place`.
    pub(super) fn compile(spec: &FlattenSpec, place: &Place<'_>) -> Option<Self> {
        if spec.separator.is_empty() {
            return place.child("separator").fault("the separator is empty");
        }
        let token = text::encoded(&spec.separator);
        let separator = token[1..token.len() - 1].to_vec();
        Some(Self { separator })
    }

    /// Flattens the value of `record`.
    pub(super) fn apply(&self, record: &mut Record<'_>, limit: RecordLimit) -> Result<(), Failure> {
        if let Some(value) = record.value.as_deref()
            && let Some(flat) = flat::flatten(value, &self.separator, limit)?
        {
            record.value = Some(Cow::Owned(flat));
        }
        Ok(())
    }
}
