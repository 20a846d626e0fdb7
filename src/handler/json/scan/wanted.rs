//! Several paths found in one pass over a document.

use super::stop::Stop;
use super::{Scanner, Span};
use crate::handler::Failure;
use crate::handler::json::{Segment, text};
use smallvec::SmallVec;

/// The paths that are wanted, as a tree of their segments.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    root: Node,
    slots: usize,
}

/// What was found, by the slot of its path. A few fields need no memory of their own.
pub(crate) type Found = SmallVec<[Option<Span>; 8]>;

/// What is wanted of one value.
#[derive(Clone, Debug, Default)]
struct Node {
    /// The slots of the value itself.
    slots: Vec<usize>,
    members: Vec<(String, Node)>,
    elements: Vec<(usize, Node)>,
}

impl Wanted {
    /// Wants what stands at `path`, which has no [`Segment::Each`], for `slot`.
    pub(crate) fn add(&mut self, path: &[Segment], slot: usize) {
        self.slots = self.slots.max(slot + 1);
        let mut node = &mut self.root;
        for segment in path {
            node = match segment {
                Segment::Name(name) => child(&mut node.members, name),
                Segment::Index(index) => child(&mut node.elements, index),
                Segment::Each => return,
            };
        }
        node.slots.push(slot);
    }

    /// Finds all of them in `document`, which is checked as a whole.
    ///
    /// # Errors
    /// As [`super::find`].
    pub(crate) fn find(&self, document: &[u8]) -> Result<Found, Failure> {
        let mut found = Found::from_elem(None, self.slots);
        let mut scanner = Scanner::over(document)?;
        scanner.collect(&self.root, &mut found)?;
        scanner.end()?;
        Ok(found)
    }
}

/// The entry of `key`, made if it is not there.
fn child<'n, K: Clone + PartialEq>(list: &'n mut Vec<(K, Node)>, key: &K) -> &'n mut Node {
    let at = match list.iter().position(|(k, _)| k == key) {
        Some(at) => at,
        None => {
            // Most have one; room for the usual four would be most of the memory.
            if list.is_empty() {
                list.reserve_exact(1);
            }
            list.push((key.clone(), Node::default()));
            list.len() - 1
        }
    };
    &mut list[at].1
}

impl Node {
    /// What is wanted of the member with the name `token`; without an escape its bytes are the name.
    fn member(&self, token: &[u8], escaped: bool) -> Option<&Self> {
        let mut members = self.members.iter();
        let found = match (token, escaped) {
            ([_, text @ .., _], false) => members.find(|(name, _)| text == name.as_bytes()),
            _ => members.find(|(name, _)| text::token_is(token, name)),
        };
        found.map(|(_, node)| node)
    }

    fn element(&self, index: usize) -> Option<&Self> {
        let mut elements = self.elements.iter();
        let found = elements.find(|(at, _)| *at == index);
        found.map(|(_, node)| node)
    }

    /// Of a repeated name the last counts, also for what only an earlier one has.
    fn forget(&self, found: &mut Found) {
        self.slots.iter().for_each(|slot| found[*slot] = None);
        let members = self.members.iter().map(|(_, node)| node);
        let elements = self.elements.iter().map(|(_, node)| node);
        members.chain(elements).for_each(|node| node.forget(found));
    }
}

impl Scanner<'_> {
    fn collect(&mut self, node: &Node, found: &mut Found) -> Result<(), Stop> {
        self.whitespace();
        let start = self.at;
        match self.peek() {
            Some(b'{') if !node.members.is_empty() => {
                self.object(&mut |scanner, name| match node
                    .member(&scanner.bytes[name], scanner.escaped)
                {
                    Some(child) => {
                        child.forget(found);
                        scanner.collect(child, found)
                    }
                    None => scanner.skip(),
                })?
            }
            Some(b'[') if !node.elements.is_empty() => {
                self.array(&mut |scanner, index| match node.element(index) {
                    Some(child) => scanner.collect(child, found),
                    None => scanner.skip(),
                })?;
            }
            _ => self.skip()?,
        }
        for slot in &node.slots {
            found[*slot] = Some(start..self.at);
        }
        Ok(())
    }
}
