//! Edits of every field that a path matches: replaced, removed, renamed.
//!
//! Reading takes the last of a repeated name; these take all of them, so that a field that was
//! removed is not left behind for a reader that takes the first.

use super::Segment;
use super::flat::twice;
use super::scan::{self, Member, Span};
use super::text;
use crate::handler::limit::RecordLimit;
use crate::handler::{Failure, FailureCode};

/// Spans of a document with what replaces them.
pub(super) type Edits = Vec<(Span, Vec<u8>)>;

/// Replaces everything that `path` matches by what `change` makes of it, `None` leaving it as it
/// is. `None` if nothing changes.
///
/// # Errors
/// Not JSON, nested too deep, more new bytes than `limit`, or what `change` fails with.
pub(crate) fn replace(
    document: &[u8],
    path: &[Segment],
    limit: RecordLimit,
    mut change: impl FnMut(&[u8]) -> Result<Option<Vec<u8>>, Failure>,
) -> Result<Option<Vec<u8>>, Failure> {
    let mut edits = Edits::new();
    let mut bytes = 0;
    for span in scan::every(document, path)? {
        if let Some(new) = change(&document[span.clone()])? {
            bytes += new.len();
            limit.check_bytes(bytes)?;
            edits.push((span, new));
        }
    }
    Ok(apply(document, edits))
}

/// `document` without what `path` matches, `None` if it matches nothing.
///
/// # Errors
/// As [`scan::every`]; the whole document cannot be removed.
pub(crate) fn remove(document: &[u8], path: &[Segment]) -> Result<Option<Vec<u8>>, Failure> {
    let Some((last, parents)) = path.split_last() else {
        let detail = "the whole document cannot be removed".to_owned();
        return Err(Failure::new(FailureCode::WrongType, detail));
    };
    let mut edits = Edits::new();
    for parent in scan::every(document, parents)? {
        let (entries, doomed) = entries(document, &parent, last)?;
        cut(&entries, &doomed, &mut edits);
    }
    Ok(apply(document, edits))
}

/// The entries of the container at `parent` (a member from its name on), and whether `last`
/// matches each.
fn entries(
    document: &[u8],
    parent: &Span,
    last: &Segment,
) -> Result<(Vec<Span>, Vec<bool>), Failure> {
    if let Segment::Name(name) = last {
        let members = scan::members(document, parent)?.unwrap_or_default();
        let doomed = members.iter().map(|m| is_named(document, m, name));
        let doomed = doomed.collect();
        let spans = members.into_iter().map(|m| m.name.start..m.value.end);
        return Ok((spans.collect(), doomed));
    }
    let elements = scan::elements(document, parent)?.unwrap_or_default();
    let doomed = (0..elements.len()).map(|at| match last {
        Segment::Index(index) => at == *index,
        Segment::Name(_) | Segment::Each => true,
    });
    let doomed = doomed.collect();
    Ok((elements, doomed))
}

/// Cuts the doomed entries with the commas that go with them: one with a successor goes up to
/// that successor, the last goes from the end of the last that stays.
fn cut(entries: &[Span], doomed: &[bool], edits: &mut Edits) {
    let mut kept_end = None;
    for (index, (entry, doomed)) in entries.iter().zip(doomed).enumerate() {
        if !doomed {
            kept_end = Some(entry.end);
            continue;
        }
        let span = match entries.get(index + 1) {
            Some(next) => entry.start..next.start,
            None => kept_end.unwrap_or(entry.start)..entry.end,
        };
        edits.push((span, Vec::new()));
    }
}

/// Renames the members that `parents` + `old` matches to `new`, each at its place. `None` if nothing
/// matches.
///
/// # Errors
/// As [`scan::every`]; [`FailureCode::Collision`] where a
/// member is called `new` already: it would be lost.
pub(crate) fn rename(
    document: &[u8],
    parents: &[Segment],
    old: &str,
    new: &str,
) -> Result<Option<Vec<u8>>, Failure> {
    let mut edits = Edits::new();
    for parent in scan::every(document, parents)? {
        let members = scan::members(document, &parent)?.unwrap_or_default();
        if old == new || !members.iter().any(|m| is_named(document, m, old)) {
            continue;
        }
        if members.iter().any(|m| is_named(document, m, new)) {
            return Err(twice());
        }
        let renamed = members.iter().filter(|m| is_named(document, m, old));
        edits.extend(renamed.map(|m| (m.name.clone(), text::encoded(new))));
    }
    Ok(apply(document, edits))
}

fn is_named(document: &[u8], member: &Member, name: &str) -> bool {
    text::token_is(&document[member.name.clone()], name)
}

/// Applies `edits`; cuts of neighbours may overlap.
pub(super) fn apply(document: &[u8], mut edits: Edits) -> Option<Vec<u8>> {
    if edits.is_empty() {
        return None;
    }
    edits.sort_by_key(|(span, _)| span.start);
    let mut out = Vec::with_capacity(document.len());
    let mut done = 0;
    for (span, new) in edits {
        if span.start > done {
            out.extend_from_slice(&document[done..span.start]);
        }
        out.extend_from_slice(&new);
        done = done.max(span.end);
    }
    out.extend_from_slice(&document[done..]);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Segment {
        Segment::Name(text.to_owned())
    }

    fn removed(document: &str, path: &[Segment]) -> String {
        let changed = remove(document.as_bytes(), path).expect("valid JSON");
        let bytes = changed.unwrap_or_else(|| document.as_bytes().to_vec());
        String::from_utf8(bytes).expect("UTF-8 in, UTF-8 out")
    }

    #[test]
    fn a_removed_member_takes_its_comma_along() {
        let a = [name("a")];
        assert_eq!(removed(r#"{"a":1}"#, &a), "{}");
        assert_eq!(removed(r#"{ "a": 1, "b": 2 }"#, &a), r#"{ "b": 2 }"#);
        assert_eq!(removed(r#"{"b":2 , "a":1 }"#, &a), r#"{"b":2 }"#);
        assert_eq!(removed(r#"{"b":2,"a":1,"c":3}"#, &a), r#"{"b":2,"c":3}"#);
        assert_eq!(removed(r#"{"b":2}"#, &a), r#"{"b":2}"#);
    }

    #[test]
    fn all_of_a_repeated_name_are_removed() {
        let a = [name("a")];
        assert_eq!(removed(r#"{"a":1,"a":2}"#, &a), "{}");
        assert_eq!(removed(r#"{"b":0,"a":1,"a":2}"#, &a), r#"{"b":0}"#);
        assert_eq!(removed(r#"{"a":1,"b":0,"a":2}"#, &a), r#"{"b":0}"#);
        let document = r#"{"u":{"a":1},"u":{"b":2}}"#;
        assert_eq!(
            removed(document, &[name("u"), name("a")]),
            r#"{"u":{},"u":{"b":2}}"#
        );
    }

    #[test]
    fn elements_are_removed_by_index_and_in_every_element() {
        assert_eq!(removed("[1, 2, 3]", &[Segment::Index(1)]), "[1, 3]");
        assert_eq!(removed("[1, 2, 3]", &[Segment::Each]), "[]");
        let path = [name("i"), Segment::Each, name("s")];
        let document = r#"{"i":[{"s":1},{"t":2},3,{"t":1,"s":2}]}"#;
        assert_eq!(removed(document, &path), r#"{"i":[{},{"t":2},3,{"t":1}]}"#);
    }

    #[test]
    fn a_renamed_member_stays_at_its_place() {
        let renamed = |document: &str| {
            rename(document.as_bytes(), &[], "usr", "user")
                .expect("valid JSON")
                .map(|b| String::from_utf8(b).expect("UTF-8"))
        };
        assert_eq!(
            renamed(r#"{"a":1, "usr" : 2,"b":3}"#).as_deref(),
            Some(r#"{"a":1, "user" : 2,"b":3}"#)
        );
        assert_eq!(
            renamed(r#"{"usr":1,"usr":2}"#).as_deref(),
            Some(r#"{"user":1,"user":2}"#)
        );
        assert_eq!(renamed(r#"{"a":1}"#), None);
        assert_eq!(renamed(r#"{"user":1}"#), None);
    }

    #[test]
    fn a_renamed_member_takes_nobodys_place() {
        for document in [r#"{"user":1,"usr":2}"#, r#"{"usr":2,"\u0075ser":1}"#] {
            let failure = rename(document.as_bytes(), &[], "usr", "user").expect_err("taken");
            assert_eq!(failure.code, FailureCode::Collision, "{document}");
        }
    }
}
