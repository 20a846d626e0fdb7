//! Nested objects made one level, each member spliced in where its parent stood.

use super::edit::{Edits, apply};
use super::scan::{self, Member, Span};
use super::text;
use crate::handler::limit::RecordLimit;
use crate::handler::{Failure, FailureCode};
use std::collections::HashMap;

/// A name as the names on the way to it.
type Names = Vec<Vec<u8>>;

/// `document` with the members of nested objects beside its own, their names joined by
/// `separator` (as it stands in a JSON text). Arrays and empty objects stay as they are. `None` if
/// nothing is nested.
///
/// # Errors
/// Not JSON, no object, more bytes than `limit`, or two members that would get the same name.
pub(crate) fn flatten(
    document: &[u8],
    separator: &[u8],
    limit: RecordLimit,
) -> Result<Option<Vec<u8>>, Failure> {
    let root = scan::root(document)?;
    let Some(members) = scan::members(document, &root)? else {
        let detail = "only an object can be flattened".to_owned();
        return Err(Failure::new(FailureCode::WrongType, detail));
    };
    let mut flat = Flat {
        document,
        separator,
        seen: HashMap::new(),
        limit,
        bytes: 0,
    };
    let mut edits = Edits::new();
    for member in members {
        let span = member.name.start..member.value.end;
        let mut leaves = Vec::new();
        match flat.leaves(&member, &mut Vec::new(), &mut leaves)? {
            Shape::Leaf => {}
            Shape::Nested => edits.push((span, leaves)),
        }
    }
    Ok(apply(document, edits))
}

/// Whether a member has members of its own.
enum Shape {
    Leaf,
    Nested,
}

struct Flat<'d> {
    document: &'d [u8],
    separator: &'d [u8],
    /// The names so far, as they read, each with the way that it came.
    seen: HashMap<Vec<u8>, Names>,
    limit: RecordLimit,
    /// The bytes of the names so far: a long name over many fields is written with each.
    bytes: usize,
}

impl Flat<'_> {
    /// Appends `member`, or what is nested in it, to `out`; `way` are the names of its parents as
    /// they are spelled, without quotes.
    fn leaves(
        &mut self,
        member: &Member,
        way: &mut Names,
        out: &mut Vec<u8>,
    ) -> Result<Shape, Failure> {
        let name = self.document[member.name.start + 1..member.name.end - 1].to_vec();
        way.push(name);
        let nested = scan::members(self.document, &member.value)?.unwrap_or_default();
        if nested.is_empty() {
            self.leaf(&member.value, way, out)?;
        }
        for inner in &nested {
            self.leaves(inner, way, out)?;
        }
        way.pop();
        Ok(match nested.is_empty() {
            true => Shape::Leaf,
            false => Shape::Nested,
        })
    }

    fn leaf(&mut self, value: &Span, way: &Names, out: &mut Vec<u8>) -> Result<(), Failure> {
        self.bytes += way
            .iter()
            .map(|n| n.len() + self.separator.len())
            .sum::<usize>();
        self.limit.check_bytes(self.bytes)?;
        let name = way.join(self.separator);
        let token = [b"\"", name.as_slice(), b"\""].concat();
        let reads = match text::decode(&token) {
            Some(text) => text.as_bytes().to_vec(),
            None => name,
        };
        match self.seen.get(&reads) {
            Some(other) if other != way => return Err(twice()),
            Some(_) => {}
            None => drop(self.seen.insert(reads, way.clone())),
        }
        if !out.is_empty() {
            out.push(b',');
        }
        out.extend_from_slice(&token);
        out.push(b':');
        out.extend_from_slice(&self.document[value.clone()]);
        Ok(())
    }
}

/// Which of the two a reader would see is nobody's to guess.
pub(super) fn twice() -> Failure {
    let detail = "two fields would get the same name".to_owned();
    Failure::new(FailureCode::Collision, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flattened(document: &str, separator: &str) -> Result<Option<String>, FailureCode> {
        let flat = flatten(
            document.as_bytes(),
            separator.as_bytes(),
            RecordLimit::of(Some(200)),
        );
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        flat.map(|f| f.map(text)).map_err(|f| f.code)
    }

    #[test]
    fn nested_members_stand_where_their_parent_stood() {
        let rows = [
            (
                r#"{ "a": {"b" : 1.0, "c":{"d":[{"e":1}]} }, "f":"x" }"#,
                r#"{ "a.b":1.0,"a.c.d":[{"e":1}], "f":"x" }"#,
            ),
            (r#"{"a":{"b":{},"c":null}}"#, r#"{"a.b":{},"a.c":null}"#),
            (r#"{"\u0061":{"q\"":1}}"#, r#"{"\u0061.q\"":1}"#),
        ];
        for (document, expected) in rows {
            assert_eq!(
                flattened(document, ".").as_ref(),
                Ok(&Some(expected.to_owned()))
            );
        }
        assert_eq!(
            flattened(r#"{"a":{"b":1}}"#, "__"),
            Ok(Some(r#"{"a__b":1}"#.to_owned()))
        );
    }

    #[test]
    fn what_is_flat_stays_as_it_is() {
        for document in ["{}", r#" {"a":1,"a":[{"b":1}],"c":{}} "#] {
            assert_eq!(flattened(document, "."), Ok(None));
        }
    }

    #[test]
    fn one_name_for_two_fields_fails_and_a_repeated_field_stays_repeated() {
        assert_eq!(
            flattened(r#"{"a":{"b":1},"a.b":2}"#, "."),
            Err(FailureCode::Collision)
        );
        assert_eq!(
            flattened(r#"{"a":{"b":{"c":1},"b.c":2}}"#, "."),
            Err(FailureCode::Collision)
        );
        assert_eq!(
            flattened(r#"{"a":{"b":1,"b":2},"a":{"b":3},"c":0,"c":1}"#, "."),
            Ok(Some(r#"{"a.b":1,"a.b":2,"a.b":3,"c":0,"c":1}"#.to_owned()))
        );
    }

    #[test]
    fn a_long_name_over_many_fields_is_limited() {
        let fields: Vec<String> = (0..20).map(|i| format!("\"{i}\":0")).collect();
        let document = format!(r#"{{"{}":{{{}}}}}"#, "n".repeat(20), fields.join(","));
        assert_eq!(flattened(&document, "."), Err(FailureCode::TooLarge));
    }

    #[test]
    fn only_objects_are_flattened() {
        assert_eq!(flattened("[{}]", "."), Err(FailureCode::WrongType));
        assert_eq!(flattened("{", "."), Err(FailureCode::NotJson));
    }
}
