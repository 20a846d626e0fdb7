//! Writing one field: where it goes, and the bytes around it where it is new.

use super::Segment;
use super::scan::{self, Span};
use super::text;
use crate::handler::{Failure, FailureCode};

/// Where a field of one document is written: over the old value, or as a new member before a
/// closing brace, with parents where they are missing.
#[derive(Debug)]
pub(crate) struct Site {
    replaced: Span,
    before: Vec<u8>,
    after: Vec<u8>,
}

impl Site {
    /// Finds where `path` is written in `document`. An empty path is the document itself.
    ///
    /// # Errors
    /// Not JSON, a parent that is no object or array, or an element that is not there.
    pub(crate) fn find(document: &[u8], path: &[Segment]) -> Result<Self, Failure> {
        let (mut current, mut of_root) = scan::root_members(document)?;
        for (depth, segment) in path.iter().enumerate() {
            let found = match segment {
                Segment::Name(name) => {
                    let members = match depth {
                        0 => of_root.take(),
                        _ => scan::members(document, &current)?,
                    };
                    let members = members.ok_or_else(|| wrong_parent("an object"))?;
                    let last = members
                        .iter()
                        .rfind(|m| text::token_is(&document[m.name.clone()], name));
                    match last {
                        Some(member) => member.value.clone(),
                        None => return Self::new(&current, members.is_empty(), &path[depth..]),
                    }
                }
                Segment::Index(index) => scan::elements(document, &current)?
                    .ok_or_else(|| wrong_parent("an array"))?
                    .get(*index)
                    .cloned()
                    .ok_or_else(|| no_element(*index))?,
                Segment::Each => return Err(wrong_parent("one element")),
            };
            current = found;
        }
        Ok(Self {
            replaced: current,
            before: Vec::new(),
            after: Vec::new(),
        })
    }

    /// A new member of the object at `parent`, `missing` being the path from there.
    fn new(parent: &Span, is_empty: bool, missing: &[Segment]) -> Result<Self, Failure> {
        let mut before = Vec::new();
        let mut after = Vec::new();
        if !is_empty {
            before.push(b',');
        }
        for (index, segment) in missing.iter().enumerate() {
            match segment {
                Segment::Name(name) => {
                    if index > 0 {
                        before.push(b'{');
                        after.push(b'}');
                    }
                    text::encode(name, &mut before);
                    before.push(b':');
                }
                Segment::Index(index) => return Err(no_element(*index)),
                Segment::Each => return Err(wrong_parent("one element")),
            }
        }
        let brace = parent.end - 1;
        Ok(Self {
            replaced: brace..brace,
            before,
            after,
        })
    }

    /// `document` with `value` (JSON) written here.
    pub(crate) fn write(&self, document: &[u8], value: &[u8]) -> Vec<u8> {
        [
            &document[..self.replaced.start],
            &self.before,
            value,
            &self.after,
            &document[self.replaced.end..],
        ]
        .concat()
    }
}

fn wrong_parent(needed: &str) -> Failure {
    Failure::new(
        FailureCode::WrongType,
        format!("a parent of the field that is written is not {needed}"),
    )
}

fn no_element(index: usize) -> Failure {
    Failure::new(
        FailureCode::Absent,
        format!("the array has no element {index}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(document: &str, path: &[&str], value: &str) -> Result<String, FailureCode> {
        let path: Vec<Segment> = path
            .iter()
            .map(|part| match part.parse() {
                Ok(index) => Segment::Index(index),
                Err(_) => Segment::Name((*part).to_owned()),
            })
            .collect();
        let site = Site::find(document.as_bytes(), &path).map_err(|f| f.code)?;
        let bytes = site.write(document.as_bytes(), value.as_bytes());
        Ok(String::from_utf8(bytes).expect("UTF-8 in, UTF-8 out"))
    }

    #[test]
    fn only_the_field_changes() {
        let document = r#"{ "n" : 1.00 , "a":[1, 2 ],"n2":1e2 }"#;
        assert_eq!(
            set(document, &["a", "1"], "9").as_deref(),
            Ok(r#"{ "n" : 1.00 , "a":[1, 9 ],"n2":1e2 }"#)
        );
        assert_eq!(
            set(document, &["new"], "true").as_deref(),
            Ok(r#"{ "n" : 1.00 , "a":[1, 2 ],"n2":1e2 ,"new":true}"#)
        );
    }

    #[test]
    fn missing_parents_are_made() {
        assert_eq!(
            set("{}", &["a", "b", "c"], "1").as_deref(),
            Ok(r#"{"a":{"b":{"c":1}}}"#)
        );
        assert_eq!(
            set(r#"{"a":{}}"#, &["a", "b"], "1").as_deref(),
            Ok(r#"{"a":{"b":1}}"#)
        );
        assert_eq!(set("{}", &["q\"q"], "1").as_deref(), Ok(r#"{"q\"q":1}"#));
    }

    #[test]
    fn of_repeated_names_the_last_is_written() {
        assert_eq!(
            set(r#"{"a":1,"a":2}"#, &["a"], "3").as_deref(),
            Ok(r#"{"a":1,"a":3}"#)
        );
    }

    #[test]
    fn the_empty_path_is_the_document() {
        assert_eq!(set(" 1 ", &[], "[]").as_deref(), Ok(" [] "));
    }

    #[test]
    fn wrong_parents_and_missing_elements_fail() {
        assert_eq!(
            set(r#"{"a":null}"#, &["a", "b"], "1"),
            Err(FailureCode::WrongType)
        );
        assert_eq!(
            set(r#"{"a":{}}"#, &["a", "0"], "1"),
            Err(FailureCode::WrongType)
        );
        assert_eq!(
            set(r#"{"a":[]}"#, &["a", "0"], "1"),
            Err(FailureCode::Absent)
        );
        assert_eq!(set("{}", &["a", "0"], "1"), Err(FailureCode::Absent));
        assert_eq!(set("{", &["a"], "1"), Err(FailureCode::NotJson));
    }
}
