//! Where each node of a document stands, found by JSON pointer.
//!
//! A node knows the one above it, the step between them, and the first of those below. Pointers as texts
//! would be most of the memory of a large file, and making them a good part of the reading; one table
//! of all nodes would be as large as they are, and each question to it would miss the cache.

use crate::config::place::Span;
use crate::config::pointer;
use foldhash::fast::FixedState;
use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;

/// How many nodes of a map or list are looked through; those behind them have a table.
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
    nodes: Vec<Node>,
    /// The names of members, each once.
    names: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, u32, FixedState>,
    /// What stands in maps and lists with many nodes, but for the first ones of each.
    far: HashMap<(NodeId, Step), NodeId, FixedState>,
}

/// A node: it is behind the one above it, and all that is in it follows it directly.
#[derive(Clone, Copy, Debug)]
struct Node {
    /// `None` for the root.
    above: Option<(NodeId, Step)>,
    key: Option<Bytes>,
    value: Bytes,
    file: u32,
    /// The first and the last of those below, and the one behind it in the same map or list.
    first: Option<Lower>,
    last: Option<Lower>,
    next: Option<Lower>,
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

/// A step from a node to one below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Step {
    /// To the member with the name of that number.
    Member(u32),
    /// To that item.
    Item(u32),
}

/// Bytes of a file.
#[derive(Clone, Copy, Debug)]
struct Bytes {
    start: u32,
    end: u32,
}

impl Bytes {
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
        Spot {
            key: self.key.map(|key| key.in_file(self.file)),
            value: self.value.in_file(self.file),
        }
    }
}

impl Spots {
    /// Room for that many nodes.
    pub fn with_room(nodes: usize) -> Self {
        Self {
            nodes: Vec::with_capacity(nodes),
            ..Self::default()
        }
    }

    /// Whether there is no node.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Adds the root.
    pub fn plant(&mut self, spot: Spot) -> NodeId {
        self.push(None, spot)
    }

    /// Adds a node.
    pub fn add(&mut self, at: Below<'_>, spot: Spot) -> NodeId {
        let (above, step) = match at {
            Below::Member(above, name) => (above, Step::Member(self.number(name))),
            Below::Item(above, index) => (above, Step::Item(small(index))),
        };
        let node = self.push(Some((above, step)), spot);
        if self.directly_below(above).nth(NEAR - 1).is_some() {
            self.far.insert((above, step), node);
        }
        let lower = Lower::of(node);
        let upper = &mut self.nodes[large(above.0)];
        let before = std::mem::replace(&mut upper.last, lower);
        match before {
            Some(before) => self.nodes[large(before.node().0)].next = lower,
            None => upper.first = lower,
        }
        node
    }

    /// The nodes of a map or list.
    fn directly_below(&self, NodeId(above): NodeId) -> impl Iterator<Item = (NodeId, &Node)> {
        let lower = |lower: Lower| (lower.node(), &self.nodes[large(lower.node().0)]);
        let first = self.nodes[large(above)].first.map(lower);
        std::iter::successors(first, move |(_, node)| node.next.map(lower))
    }

    /// The node at the end of the first of `steps` that leads to one from `above`.
    fn below(&self, above: NodeId, steps: [Option<Step>; 2]) -> Option<NodeId> {
        let is_one = |node: &Node| {
            let step = node.above.map(|(_, step)| step);
            step.is_some() && steps.contains(&step)
        };
        let mut near = self.directly_below(above).take(NEAR);
        let near = near.find_map(|(id, node)| is_one(node).then_some(id));
        near.or_else(|| {
            let mut steps = steps.into_iter().flatten();
            steps.find_map(|step| self.far.get(&(above, step)).copied())
        })
    }

    fn push(&mut self, above: Option<(NodeId, Step)>, spot: Spot) -> NodeId {
        let node = NodeId(small(self.nodes.len()));
        self.nodes.push(Node {
            above,
            key: spot.key.map(Bytes::of),
            value: Bytes::of(spot.value),
            file: small(spot.value.file),
            first: None,
            last: None,
            next: None,
        });
        node
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
        let node = self.below(above, [Some(Step::Member(number)), None])?;
        Some(self.spot(node))
    }

    fn spot(&self, NodeId(node): NodeId) -> Spot {
        self.nodes[large(node)].spot()
    }

    fn find(&self, pointer: &str) -> Option<NodeId> {
        let root = (!self.is_empty()).then_some(NodeId(0))?;
        pointer::steps(pointer).try_fold(root, |above, step| {
            let member = self.numbers.get(&*step).map(|&name| Step::Member(name));
            let item = pointer::index(&step).map(Step::Item);
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
        let nodes = self.nodes.iter().zip(0..).filter(move |(node, _)| {
            matches!(node.above, Some((_, Step::Member(name))) if wanted[large(name)])
        });
        nodes.map(|(node, number)| (self.pointer(NodeId(number)), node.spot()))
    }

    fn pointer(&self, NodeId(node): NodeId) -> String {
        match self.nodes[large(node)].above {
            None => String::new(),
            Some((above, Step::Member(name))) => {
                pointer::child(&self.pointer(above), &self.names[large(name)])
            }
            Some((above, Step::Item(index))) => pointer::item(&self.pointer(above), large(index)),
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
        for node in &other.nodes[large(first) + 1..] {
            let Some((NodeId(above), step)) = node.above.filter(|(above, _)| above.0 >= first)
            else {
                break;
            };
            let above = taken[large(above - first)];
            let at = match step {
                Step::Member(name) => Below::Member(above, &other.names[large(name)]),
                Step::Item(index) => Below::Item(above, large(index)),
            };
            taken.push(self.add(at, node.spot()));
        }
    }

    fn is_item(&self, NodeId(node): NodeId) -> bool {
        matches!(self.nodes[large(node)].above, Some((_, Step::Item(_))))
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
