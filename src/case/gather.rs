//! A case → the records that go in and what is wanted of them, files read.

use super::spec::{Case, Content, Expected, Given, Outputs, Records, Wanted};
use crate::config::diagnostic::{Code, Diagnostic};
use crate::config::document::Document;
use crate::trial::{Bytes, Sample, parse_line};
use std::collections::BTreeMap;

/// A case with all its bytes.
pub(super) struct Gathered {
    /// The records that go in.
    pub(super) samples: Vec<Sample>,
    /// What is wanted; no content of it is a file any more.
    pub(super) expected: Expected,
}

/// Reads the files that `case` names.
pub(super) fn gather(case: &Case, document: &Document) -> Result<Gathered, Vec<Diagnostic>> {
    let mut gathering = Gathering {
        document,
        found: Vec::new(),
        next: BTreeMap::new(),
    };
    let mut samples = Vec::new();
    for input in &case.inputs {
        match &input.records {
            Records::One(given) => samples.extend(gathering.one(input.source.clone(), given)),
            Records::Kcat(lines) => {
                let lines = gathering.bytes(lines).flatten().unwrap_or_default();
                for (index, line) in String::from_utf8_lossy(&lines).lines().enumerate() {
                    if !line.trim().is_empty() {
                        samples.extend(gathering.line(&input.at, index, line, &input.source));
                    }
                }
            }
        }
    }
    let expected = gathering.expected(&case.expected);
    match gathering.found.is_empty() {
        true => Ok(Gathered { samples, expected }),
        false => Err(gathering.found),
    }
}

struct Gathering<'a> {
    document: &'a Document,
    found: Vec<Diagnostic>,
    /// The next offset by source, topic and partition.
    next: BTreeMap<(String, String, i32), i64>,
}

impl Gathering<'_> {
    fn one(&mut self, source: crate::config::spec::Name, given: &Given) -> Option<Sample> {
        let (key, value) = (self.bytes(&given.key), self.bytes(&given.value));
        let place = (source.to_string(), given.topic.clone(), given.partition);
        let next = self.next.entry(place).or_insert(0);
        let offset = given.offset.unwrap_or(*next);
        *next = offset.saturating_add(1);
        Some(Sample {
            source,
            topic: given.topic.clone(),
            partition: given.partition,
            offset,
            timestamp: Some(given.timestamp),
            key: key?,
            value: value?,
            headers: given.headers.clone(),
        })
    }

    fn line(
        &mut self,
        at: &str,
        index: usize,
        line: &str,
        source: &crate::config::spec::Name,
    ) -> Option<Sample> {
        match parse_line(line, source) {
            Ok(sample) => Some(sample),
            Err(error) => {
                let message = format!("line {}: {error}", index + 1);
                let place = self.document.place(at);
                self.found
                    .push(Diagnostic::new(Code::BadBytes, place, message));
                None
            }
        }
    }

    /// The bytes of a content; `None` if its file cannot be read.
    fn bytes(&mut self, content: &Content) -> Option<Bytes> {
        match content {
            Content::Null => Some(None),
            Content::Bytes(bytes) => Some(Some(bytes.clone())),
            Content::File { path, at } => match std::fs::read(path) {
                Ok(bytes) => Some(Some(bytes)),
                Err(error) => {
                    let message = format!("{} cannot be read: {error}", path.display());
                    let place = self.document.place(at);
                    self.found
                        .push(Diagnostic::new(Code::Unreadable, place, message));
                    None
                }
            },
        }
    }

    fn expected(&mut self, written: &Expected) -> Expected {
        let mut expected = written.clone();
        if let Some(Outputs::Records(records)) = &mut expected.out {
            for record in records {
                for wanted in [&mut record.key, &mut record.value].into_iter().flatten() {
                    self.fill(wanted);
                }
            }
        }
        expected
    }

    fn fill(&mut self, wanted: &mut Wanted) {
        if let Wanted::Exactly(content @ Content::File { .. }) = wanted
            && let Some(bytes) = self.bytes(content)
        {
            *content = bytes.map_or(Content::Null, Content::Bytes);
        }
    }
}
