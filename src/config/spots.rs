//! Where each node of a document stands, found by JSON pointer.
//!
//! A node knows the one above it, the step between them, and the first of those below. Pointers as texts
//! would be most of the memory of a large file, and making them a good part of the reading; one table
//! of all nodes would be as large as they are, and each question to it would miss the cache.

use crate::config::pieces::Pieces;
use crate::config::place::Span;
use crate::config::pointer;
use foldhash::fast::FixedState;
use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;

/// How many nodes of a map or list are looked through, the last ones; those before them have a table.
const NEAR: usize = 16;

/// Where a node stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot {
    /// Its key, for a member of a map.
    pub key: Option<Span>,
    /// Its value.
    pub value: Span,
}

/// A node of the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NodeId(u32);

/// Which node below another one.
#[derive(Clone, Copy, Debug)]
pub enum Below<'s> {
    /// The member of a map.
    Member(NodeId, &'s str),
    /// The item of a list.
    Item(NodeId, usize),
}

/// The places of all nodes of a document.
#[derive(Clone, Debug, Default)]
pub struct Spots {
    nodes: Pieces<Node>,
    /// The names of members, each once.
    names: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, u32, FixedState>,
    /// What stands in maps and lists with many nodes, but for the last ones of each.
    far: HashMap<(NodeId, Step), NodeId, FixedState>,
}

/// A node: it is behind the one above it, and all that is in it follows it directly.
#[derive(Clone, Copy, Debug)]
struct Node {
    /// The one above it, and the step from there; the root is its own.
    above: NodeId,
    step: Step,
    key: Bytes,
    value: Bytes,
    file: u32,
    /// The last of those below, and the one before it in the same map or list.
    last: Option<Lower>,
    before: Option<Lower>,
}

/// A node below another one: it is not the root, whose number is 0.
#[derive(Clone, Copy, Debug)]
struct Lower(NonZeroU32);

impl Lower {
    fn of(NodeId(node): NodeId) -> Option<Self> {
        NonZeroU32::new(node).map(Self)
    }

    fn node(self) -> NodeId {
        NodeId(self.0.get())
    }
}

/// A step from a node to one below it: twice its number, and one more to an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Step(u32);

/// What a step leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum To {
    /// The member with the name of that number.
    Member(u32),
    /// That item.
    Item(u32),
}

impl Step {
    /// No document has as many nodes.
    const LAST: u32 = u32::MAX >> 1;

    fn to(to: To) -> Self {
        match to {
            To::Member(name) => Self(name.min(Self::LAST) << 1),
            To::Item(index) => Self((index.min(Self::LAST) << 1) | 1),
        }
    }

    fn leads(self) -> To {
        match self.0 & 1 {
            0 => To::Member(self.0 >> 1),
            _ => To::Item(self.0 >> 1),
        }
    }
}

/// Bytes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bytes {
    start: u32,
    end: u32,
}

impl Bytes {
    /// Nothing is there, not even an empty text.
    const NONE: Self = Self {
        start: u32::MAX,
        end: 0,
    };

    fn of(span: Span) -> Self {
        Self {
            start: small(span.start),
            end: small(span.end),
        }
    }

    fn in_file(self, file: u32) -> Span {
        Span {
            file: large(file),
            start: large(self.start),
            end: large(self.end),
        }
    }
}

impl Node {
    fn spot(self) -> Spot {
        let key = (self.key != Bytes::NONE).then(|| self.key.in_file(self.file));
        Spot {
            key,
            value: self.value.in_file(self.file),
        }
    }
}

impl Spots {
    /// Whether there is no node.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Adds the root.
    pub fn plant(&mut self, spot: Spot) -> NodeId {
        self.push(NodeId(0), Step(0), spot)
    }

    /// Adds a node.
    pub fn add(&mut self, at: Below<'_>, spot: Spot) -> NodeId {
        let (above, step) = match at {
            Below::Member(above, name) => (above, Step::to(To::Member(self.number(name)))),
            Below::Item(above, index) => (above, Step::to(To::Item(small(index)))),
        };
        let node = self.push(above, step, spot);
        // One more, and the first of those that were near is not any more.
        let leaves = self.directly_below(above).nth(NEAR - 1);
        if let Some((leaves, step)) = leaves.map(|(id, node)| (id, node.step)) {
            self.far.insert((above, step), leaves);
        }
        let before = std::mem::replace(&mut self.nodes[large(above.0)].last, Lower::of(node));
        self.nodes[large(node.0)].before = before;
        node
    }

    /// The nodes of a map or list, the last one first.
    fn directly_below(&self, NodeId(above): NodeId) -> impl Iterator<Item = (NodeId, &Node)> {
        let lower = |lower: Lower| (lower.node(), &self.nodes[large(lower.node().0)]);
        let last = self.nodes[large(above)].last.map(lower);
        std::iter::successors(last, move |(_, node)| node.before.map(lower))
    }

    /// The node at the end of the first of `steps` that leads to one from `above`.
    fn below(&self, above: NodeId, steps: [Option<Step>; 2]) -> Option<NodeId> {
        let is_one = |node: &Node| steps.contains(&Some(node.step));
        let mut near = self.directly_below(above).take(NEAR);
        let near = near.find_map(|(id, node)| is_one(node).then_some(id));
        near.or_else(|| {
            let mut steps = steps.into_iter().flatten();
            steps.find_map(|step| self.far.get(&(above, step)).copied())
        })
    }

    fn push(&mut self, above: NodeId, step: Step, spot: Spot) -> NodeId {
        let node = NodeId(small(self.nodes.len()));
        self.nodes.push(Node {
            above,
            step,
            key: spot.key.map_or(Bytes::NONE, Bytes::of),
            value: Bytes::of(spot.value),
            file: small(spot.value.file),
            last: None,
            before: None,
        });
        node
    }

    /// The node above one, and the step from there; the root has none.
    fn above(&self, NodeId(node): NodeId) -> Option<(NodeId, To)> {
        let Node { above, step, .. } = self.nodes[large(node)];
        (node != 0).then(|| (above, step.leads()))
    }

    fn number(&mut self, name: &str) -> u32 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let (number, name) = (small(self.names.len()), Arc::<str>::from(name));
        self.names.push(Arc::clone(&name));
        self.numbers.insert(name, number);
        number
    }

    /// Where the node at `pointer` stands.
    pub fn get(&self, pointer: &str) -> Option<Spot> {
        self.find(pointer).map(|node| self.spot(node))
    }

    /// Whether there is a node at `pointer`.
    pub fn contains(&self, pointer: &str) -> bool {
        self.find(pointer).is_some()
    }

    /// Where the member `name` of the node `above` stands.
    pub fn member(&self, above: NodeId, name: &str) -> Option<Spot> {
        let number = *self.numbers.get(name)?;
        let node = self.below(above, [Some(Step::to(To::Member(number))), None])?;
        Some(self.spot(node))
    }

    fn spot(&self, NodeId(node): NodeId) -> Spot {
        self.nodes[large(node)].spot()
    }

    fn find(&self, pointer: &str) -> Option<NodeId> {
        let root = (!self.is_empty()).then_some(NodeId(0))?;
        pointer::steps(pointer).try_fold(root, |above, step| {
            let member = self
                .numbers
                .get(&*step)
                .map(|&name| Step::to(To::Member(name)));
            let item = pointer::index(&step).map(|index| Step::to(To::Item(index)));
            self.below(above, [member, item])
        })
    }

    /// All nodes with their pointers, those of a map or list behind it.
    pub fn iter(&self) -> impl Iterator<Item = (String, Spot)> {
        let nodes = (0..self.nodes.len()).map(|node| NodeId(small(node)));
        nodes.map(|node| (self.pointer(node), self.spot(node)))
    }

    /// The members whose name `wanted` takes, which is asked once for each name.
    pub fn named(&self, wanted: impl Fn(&str) -> bool) -> impl Iterator<Item = (String, Spot)> {
        let wanted: Vec<bool> = self.names.iter().map(|name| wanted(name)).collect();
        let nodes = (1..self.nodes.len()).map(|node| NodeId(small(node)));
        let nodes = nodes.filter(move |node| {
            matches!(self.above(*node), Some((_, To::Member(name))) if wanted[large(name)])
        });
        nodes.map(|node| (self.pointer(node), self.spot(node)))
    }

    fn pointer(&self, node: NodeId) -> String {
        match self.above(node) {
            None => String::new(),
            Some((above, To::Member(name))) => {
                pointer::child(&self.pointer(above), &self.names[large(name)])
            }
            Some((above, To::Item(index))) => pointer::item(&self.pointer(above), large(index)),
        }
    }

    /// Takes over the node at `from` of `other`, and all below it, as those at `to`. What is above `to`
    /// must be there.
    pub fn take_over(&mut self, other: &Self, from: &str, to: &str) {
        let (Some(NodeId(first)), Some((above, step))) = (other.find(from), pointer::split(to))
        else {
            return;
        };
        let Some(above) = self.find(above) else {
            return;
        };
        let top = match pointer::index(&step).filter(|_| other.is_item(NodeId(first))) {
            Some(index) => Below::Item(above, large(index)),
            None => Below::Member(above, &step),
        };
        // What is in a node follows it directly.
        let mut taken = vec![self.add(top, other.spot(NodeId(first)))];
        for node in other.nodes.starting_at(large(first) + 1) {
            let NodeId(above) = node.above;
            if above < first {
                break;
            }
            let above = taken[large(above - first)];
            let at = match node.step.leads() {
                To::Member(name) => Below::Member(above, &other.names[large(name)]),
                To::Item(index) => Below::Item(above, large(index)),
            };
            taken.push(self.add(at, node.spot()));
        }
    }

    fn is_item(&self, NodeId(node): NodeId) -> bool {
        matches!(self.above(NodeId(node)), Some((_, To::Item(_))))
    }
}

/// Files are at most 64 MiB long, and have no more nodes than bytes, but for what aliases repeat.
fn small(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn large(number: u32) -> usize {
    number as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spot(start: usize) -> Spot {
        let (file, end) = (0, start + 1);
        let value = Span { file, start, end };
        Spot { key: None, value }
    }

    /// `{a/b: [x, y], 0: {c: z}}`
    fn planted() -> Spots {
        let mut spots = Spots::default();
        let root = spots.plant(spot(0));
        let list = spots.add(Below::Member(root, "a/b"), spot(1));
        spots.add(Below::Item(list, 0), spot(2));
        spots.add(Below::Item(list, 1), spot(3));
        let map = spots.add(Below::Member(root, "0"), spot(4));
        spots.add(Below::Member(map, "c"), spot(5));
        spots
    }

    fn pointers(spots: &Spots) -> Vec<String> {
        spots.iter().map(|(pointer, _)| pointer).collect()
    }

    #[test]
    fn every_pointer_finds_its_node() {
        let spots = planted();
        let all = ["", "/a~1b", "/a~1b/0", "/a~1b/1", "/0", "/0/c"];
        assert_eq!(pointers(&spots), all);
        for (number, pointer) in all.into_iter().enumerate() {
            assert_eq!(spots.get(pointer), Some(spot(number)), "{pointer}");
        }
        for none in ["/a", "/a~1b/2", "/a~1b/00", "/a~1b/+1", "/c", "/0/c/d", "/"] {
            assert!(!spots.contains(none), "{none}");
        }
        assert!(!Spots::default().contains(""));
    }

    #[test]
    fn a_node_is_taken_over_with_all_that_is_in_it() {
        let mut spots = planted();
        spots.take_over(&planted(), "/a~1b", "/0/d");
        spots.take_over(&planted(), "/a~1b/1", "/a~1b/2");
        spots.take_over(&planted(), "/a~1b", "/nowhere/d");
        let taken = &pointers(&spots)[6..];
        assert_eq!(taken, ["/0/d", "/0/d/0", "/0/d/1", "/a~1b/2"]);
        assert_eq!(spots.get("/0/d/1"), Some(spot(3)));
    }

    #[test]
    fn each_of_many_nodes_is_found() {
        let mut spots = Spots::default();
        let root = spots.plant(spot(0));
        let map = spots.add(Below::Member(root, "map"), spot(0));
        for number in 0..3 * NEAR {
            let name = format!("n{number}");
            spots.add(Below::Member(map, &name), spot(number));
        }
        for number in 0..3 * NEAR {
            let pointer = format!("/map/n{number}");
            assert_eq!(spots.get(&pointer), Some(spot(number)), "{pointer}");
        }
        assert!(!spots.contains("/map/map") && !spots.contains("/map/1"));
        spots.take_over(&spots.clone(), "/map", "/again");
        let last = format!("/again/n{}", 3 * NEAR - 1);
        assert_eq!(spots.get(&last), Some(spot(3 * NEAR - 1)));
    }

    #[test]
    fn members_are_found_by_their_names() {
        let spots = planted();
        let mut named = spots.named(|name| name == "c");
        assert_eq!(named.next(), Some(("/0/c".to_owned(), spot(5))));
        assert_eq!(named.next(), None);
    }
}
