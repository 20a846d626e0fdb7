//! YAML text → [`Tree`]: a JSON value, and for every node the bytes of its key and value.
//!
//! Anchors are replayed, `<<` merges are expanded (explicit beats merged, an earlier source beats
//! a later one), duplicate keys are collected and do not stop the reading.

use crate::config::diagnostic::{Code, Diagnostic};
use crate::config::events::{self, Failure, Node, Nodes};
use crate::config::place::{Sources, Span};
use crate::config::scalar;
use crate::config::spots::{Below, NodeId, Spot, Spots};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Nodes at most that aliases and merges repeat. What is written is bounded by the file's size.
const MAX_REPEATED: usize = 200_000;
/// Depth at most.
const MAX_DEPTH: usize = 64;

/// A file as read.
#[derive(Clone, Debug)]
pub struct Tree {
    /// Index of the file in the sources.
    pub file: usize,
    /// The document.
    pub value: Value,
    /// Where each node stands.
    pub spots: Spots,
    /// Nodes whose text came from a variable or a file.
    pub substituted: BTreeSet<String>,
    /// Those of them whose text could not be had; that is reported already.
    pub unset: BTreeSet<String>,
    /// What stands in the file at those nodes.
    pub written: BTreeMap<String, String>,
}

/// Reads the file of index `file`. `None` if there is no document to go on with; the reason is
/// among the diagnostics, as are the mistakes that did not stop the reading.
pub fn parse(sources: &Sources, file: usize, found: &mut Vec<Diagnostic>) -> Option<Tree> {
    let text = sources.get(file).map_or("", |s| s.text.as_str());
    let nodes = match events::scan(text, file, sources) {
        Ok(nodes) => nodes,
        Err(diagnostic) => {
            found.push(*diagnostic);
            return None;
        }
    };
    let mut builder = Builder::new(sources, nodes, found);
    let value = match builder.node(0, At::Root) {
        Ok(value) => value,
        Err(diagnostic) => {
            found.push(*diagnostic);
            return None;
        }
    };
    let spots = builder.spots;
    if value.is_null() {
        found.push(events::empty(sources, file));
        return None;
    }
    Some(Tree {
        file,
        value,
        spots,
        substituted: BTreeSet::new(),
        unset: BTreeSet::new(),
        written: BTreeMap::new(),
    })
}

/// Builds the value and the spots from the recorded nodes.
struct Builder<'a, 't> {
    sources: &'a Sources,
    nodes: Nodes<'t>,
    found: &'a mut Vec<Diagnostic>,
    spots: Spots,
    /// Collections that are being built: an alias to one of them would never end.
    open: Vec<usize>,
    /// Nodes that were visited: as many as are written, and what aliases repeat.
    visited: usize,
    /// The outermost alias that is being replayed.
    replayed: Option<Span>,
}

impl<'a, 't> Builder<'a, 't> {
    fn new(sources: &'a Sources, nodes: Nodes<'t>, found: &'a mut Vec<Diagnostic>) -> Self {
        Self {
            sources,
            nodes,
            found,
            spots: Spots::default(),
            open: Vec::new(),
            visited: 0,
            replayed: None,
        }
    }

    fn error(&self, code: Code, span: Span, message: &str) -> Failure {
        Box::new(Diagnostic::new(code, self.sources.place(span), message))
    }

    /// The node at `index`, aliases followed.
    fn resolve(&self, index: usize) -> Result<usize, Failure> {
        let Some(anchor) = self.nodes.alias(index) else {
            return Ok(index);
        };
        match self.nodes.anchors.get(&anchor) {
            Some(target) if !self.open.contains(target) => Ok(*target),
            _ => {
                let span = self.nodes.span(index);
                Err(self.error(Code::Unsupported, span, "an alias inside its own anchor"))
            }
        }
    }

    /// Counts a node. An alias may be replayed within another, so that few lines are many nodes.
    fn visit(&mut self, span: Span) -> Result<(), Failure> {
        self.visited += 1;
        if self.visited <= self.nodes.count() + MAX_REPEATED {
            return Ok(());
        }
        let span = self.replayed.unwrap_or(span);
        let message = "the file's aliases repeat more than 200000 nodes";
        Err(self.error(Code::TooLarge, span, message))
    }

    fn node(&mut self, index: usize, at: At<'_>) -> Result<Value, Failure> {
        let target = self.resolve(index)?;
        if target == index || self.replayed.is_some() {
            return self.own_node(target, at);
        }
        self.replayed = Some(self.nodes.span(index));
        let node = self.own_node(target, at);
        self.replayed = None;
        node
    }

    fn own_node(&mut self, index: usize, at: At<'_>) -> Result<Value, Failure> {
        let span = self.nodes.span(index);
        self.visit(span)?;
        if self.open.len() >= MAX_DEPTH {
            return Err(self.error(Code::TooLarge, span, "nested more than 64 levels deep"));
        }
        let here = self.place(at, span);
        match self.nodes.node(index) {
            Node::Plain(text) => Ok(scalar::resolve(&text)),
            Node::Text(text) => Ok(Value::String(text.into_owned())),
            Node::List => self.list(index, here),
            Node::Map => {
                let mut map = Map::with_capacity(self.count(index) / 2);
                self.open.push(index);
                self.members(index, here, &mut map, Origin::Explicit)?;
                self.open.pop();
                Ok(Value::Object(map))
            }
            Node::Alias(_) | Node::End => Ok(Value::Null),
        }
    }

    /// Keeps where a node stands.
    fn place(&mut self, at: At<'_>, value: Span) -> NodeId {
        match at {
            At::Root => self.spots.plant(Spot { key: None, value }),
            At::Item(list, index) => {
                let spot = Spot { key: None, value };
                self.spots.add(Below::Item(list, index), spot)
            }
            At::Member(map, name, key) => {
                let key = Some(key);
                self.spots
                    .add(Below::Member(map, name), Spot { key, value })
            }
        }
    }

    /// How many nodes stand in the list or map at `index`, keys among them. Most have one or two; room for
    /// the usual four would be most of the memory of the document.
    fn count(&self, index: usize) -> usize {
        let nodes = std::iter::successors(Some(index + 1), |at| Some(self.nodes.next(*at)));
        let inside = nodes.take_while(|at| !self.nodes.is_end(*at));
        inside.count()
    }

    fn list(&mut self, index: usize, here: NodeId) -> Result<Value, Failure> {
        self.open.push(index);
        let mut items = Vec::with_capacity(self.count(index));
        let mut next = index + 1;
        while !self.nodes.is_end(next) {
            let behind = self.nodes.next(next);
            items.push(self.node(next, At::Item(here, items.len()))?);
            next = behind;
        }
        self.open.pop();
        Ok(Value::Array(items))
    }

    /// Reads the members of the map at `index` into `map`; merge sources after all others.
    fn members(
        &mut self,
        index: usize,
        here: NodeId,
        map: &mut Map<String, Value>,
        origin: Origin,
    ) -> Result<(), Failure> {
        let mut merges = Vec::new();
        let mut next = index + 1;
        while !self.nodes.is_end(next) {
            let (name, span) = self.key(next)?;
            self.visit(span)?;
            let value = self.nodes.next(next);
            next = self.nodes.next(value);
            if self.is_merge(span) {
                merges.push(value);
                continue;
            }
            if map.contains_key(&name) {
                // What is twice in a map that is merged is said where that map stands.
                if origin == Origin::Explicit {
                    self.duplicate(&name, span, here);
                }
                continue;
            }
            let read = self.node(value, At::Member(here, &name, span))?;
            map.insert(name, read);
            self.nodes.let_go_before(next);
        }
        for source in merges {
            self.merge(source, here, map)?;
        }
        Ok(())
    }

    fn key(&self, index: usize) -> Result<(String, Span), Failure> {
        let span = self.nodes.span(index);
        let resolved = self.resolve(index)?;
        match self.nodes.node(resolved) {
            Node::Plain(text) | Node::Text(text) => Ok((text.into_owned(), span)),
            _ => Err(self.error(Code::Unsupported, span, "a key must be a text")),
        }
    }

    /// A plain `<<`; in quotes it is a key like any other.
    fn is_merge(&self, key: Span) -> bool {
        self.sources.slice(key) == "<<"
    }

    fn merge(
        &mut self,
        source: usize,
        here: NodeId,
        map: &mut Map<String, Value>,
    ) -> Result<(), Failure> {
        let index = self.resolve(source)?;
        let span = self.nodes.span(source);
        if self.open.len() >= MAX_DEPTH {
            return Err(self.error(Code::TooLarge, span, "nested more than 64 levels deep"));
        }
        self.visit(span)?;
        let outermost = self.replayed.is_none();
        self.replayed = self.replayed.or(Some(span));
        self.open.push(index);
        match self.nodes.node(index) {
            Node::Map => self.members(index, here, map, Origin::Merged)?,
            Node::List => {
                let mut next = index + 1;
                while !self.nodes.is_end(next) {
                    self.merge(next, here, map)?;
                    next = self.nodes.next(next);
                }
            }
            _ => {
                return Err(self.error(
                    Code::Unsupported,
                    span,
                    "`<<` takes a map or a list of maps",
                ));
            }
        }
        self.open.pop();
        if outermost {
            self.replayed = None;
        }
        Ok(())
    }

    fn duplicate(&mut self, name: &str, again: Span, map: NodeId) {
        let first = self.spots.member(map, name).and_then(|spot| spot.key);
        let first = first.unwrap_or(again);
        let message = format!("`{name}` stands twice in one map");
        let diagnostic = Diagnostic::new(Code::DuplicateKey, self.sources.place(again), message)
            .related(self.sources.place(first), "first here")
            .help("keep one of them: the other would be lost without a word");
        self.found.push(diagnostic);
    }
}

/// Which node is read.
#[derive(Clone, Copy)]
enum At<'s> {
    /// The document.
    Root,
    /// An item of a list.
    Item(NodeId, usize),
    /// A member of a map, with the bytes of its key.
    Member(NodeId, &'s str, Span),
}

/// Where the members of a map come from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// Written in it.
    Explicit,
    /// Brought by `<<`.
    Merged,
}

#[cfg(test)]
#[path = "tree_tests.rs"]
mod tests;
