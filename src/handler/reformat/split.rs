//! `split`: one record for each element of an array.

use super::set::set_header;
use crate::handler::chain::MAX_OUTPUTS;
use crate::handler::fault::Place;
use crate::handler::json::scan;
use crate::handler::json::splice::Site;
use crate::handler::limit::{RecordLimit, bytes_of, check_together};
use crate::handler::path::Path;
use crate::handler::spec::{SplitSpec, WhenEmpty};
use crate::handler::template::absent;
use crate::handler::{Failure, FailureCode};
use crate::record::Record;
use std::borrow::Cow;

/// A compiled split.
#[derive(Clone, Debug)]
pub(crate) struct Split {
    array: Path,
    into: Path,
    carry: Vec<Path>,
    index_header: Option<String>,
    when_empty: WhenEmpty,
}

impl Split {
    /// Compiles `spec`, reporting mistakes at `place`.
    pub(super) fn compile(spec: &SplitSpec, place: &Place<'_>) -> Option<Self> {
        let array = value_path(&spec.array, &place.child("array"));
        let into = value_path(&spec.into, &place.child("into"));
        let carried: Vec<Option<Path>> = spec
            .carry
            .iter()
            .enumerate()
            .map(|(index, path)| value_path(path, &place.child("carry").child(index)))
            .collect();
        let carry: Option<Vec<Path>> = carried.into_iter().collect();
        let (array, into, carry) = (array?, into?, carry?);
        if into.segments().is_empty() && !carry.is_empty() {
            return place.child("carry").fault_with_help(
                "fields can be carried only beside the element",
                "give the element a place with `into: value.NAME`",
            );
        }
        if spec.index_header.as_deref() == Some("") {
            return place
                .child("index_header")
                .fault("a header's name is empty");
        }
        Some(Self {
            array,
            into,
            carry,
            index_header: spec.index_header.clone(),
            when_empty: spec.when_empty,
        })
    }

    /// Pushes one record for each element to `out`. A null value passes as it is.
    pub(super) fn apply<'a>(
        &'a self,
        mut record: Record<'a>,
        limit: RecordLimit,
        out: &mut Vec<Record<'a>>,
    ) -> Result<(), Failure> {
        let Some(document) = record.value.take() else {
            out.push(record);
            return Ok(());
        };
        let Some(span) = scan::find(&document, self.array.segments())? else {
            return Err(absent(&self.array));
        };
        let Some(elements) = scan::elements(&document, &span)? else {
            return Err(self.fail(FailureCode::WrongType, "is no array"));
        };
        if elements.is_empty() {
            match self.when_empty {
                WhenEmpty::Drop => {}
                WhenEmpty::Keep => {
                    record.value = Some(document);
                    out.push(record);
                }
                WhenEmpty::Fail => return Err(self.fail(FailureCode::Absent, "is empty")),
            }
            return Ok(());
        }
        if elements.len() > MAX_OUTPUTS {
            return Err(self.fail(
                FailureCode::TooMany,
                "has more elements than a record may give",
            ));
        }
        // The elements differ, the frame around them does not: it is built once.
        let frame = self.frame(&document)?;
        let site = Site::find(&frame, self.into.segments())?;
        let mut bytes = 0;
        for (index, element) in elements.into_iter().enumerate() {
            scan::root_at(&document[element.clone()], self.into.segments().len())?;
            let mut output = record.clone();
            output.value = Some(Cow::Owned(site.write(&frame, &document[element])));
            if let Some(name) = &self.index_header {
                let index = index.to_string().into_bytes();
                set_header(&mut output, name, Some(Cow::Owned(index)));
            }
            limit.check(&output)?;
            bytes += bytes_of(&output);
            check_together(bytes)?;
            out.push(output);
        }
        Ok(())
    }

    /// An object with the carried fields.
    fn frame(&self, document: &[u8]) -> Result<Vec<u8>, Failure> {
        let mut frame = b"{}".to_vec();
        for path in &self.carry {
            let Some(span) = scan::find(document, path.segments())? else {
                return Err(absent(path));
            };
            frame = Site::find(&frame, path.segments())?.write(&frame, &document[span]);
        }
        Ok(frame)
    }

    fn fail(&self, code: FailureCode, what: &str) -> Failure {
        Failure::new(code, format!("`{}` {what}", self.array))
    }
}

fn value_path(text: &str, place: &Place<'_>) -> Option<Path> {
    match Path::parse_one(text) {
        Ok(path @ Path::Value(_)) => Some(path),
        Ok(_) => place.fault("`value` or a field of it is expected"),
        Err(fault) => place.fault_path(text, fault),
    }
}
