//! JSON as bytes: fields are found by their span and replaced in place; nothing is parsed to a
//! tree and written anew, so what a step does not touch stays as it was spelled.

pub(crate) mod edit;
pub(crate) mod flat;
pub(crate) mod number;
pub(crate) mod scan;
pub(crate) mod splice;
pub(crate) mod text;

/// One step of a path inside a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Segment {
    /// The member of that name; the last one where a name repeats.
    Name(String),
    /// The element of that index.
    Index(usize),
    /// Every element (`[*]`).
    Each,
}
