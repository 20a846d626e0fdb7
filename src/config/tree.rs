//! YAML text → [`Tree`]: a JSON value, and for every JSON pointer the bytes of its key and value.
//!
//! Anchors are replayed, `<<` merges are expanded (explicit beats merged, an earlier source beats
//! a later one), duplicate keys are collected and do not stop the reading.

use crate::config::diagnostic::{Code, Diagnostic};
use crate::config::place::{Sources, Span};
use crate::config::pointer;
use crate::config::scalar;
use granit_parser::{ErrorKind, Event, Parser, ScalarStyle, ScanError, Tag};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Nodes of one file at most, aliases counted as often as they are used.
const MAX_NODES: usize = 200_000;
/// Depth at most.
const MAX_DEPTH: usize = 64;

/// Where a node stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot {
    /// Its key, for a member of a map.
    pub key: Option<Span>,
    /// Its value.
    pub value: Span,
}

/// A file as read.
#[derive(Clone, Debug)]
pub struct Tree {
    /// Index of the file in the sources.
    pub file: usize,
    /// The document.
    pub value: Value,
    /// Where each node stands, by JSON pointer.
    pub spots: BTreeMap<String, Spot>,
    /// Nodes whose text came from a variable or a file.
    pub substituted: BTreeSet<String>,
}

/// Reads the file of index `file`. `None` if there is no document to go on with; the reason is
/// among the diagnostics, as are the mistakes that did not stop the reading.
pub fn parse(sources: &Sources, file: usize, found: &mut Vec<Diagnostic>) -> Option<Tree> {
    let text = sources.get(file).map_or("", |s| s.text.as_str());
    let nodes = match scan(text, file, sources) {
        Ok(nodes) => nodes,
        Err(diagnostic) => {
            found.push(*diagnostic);
            return None;
        }
    };
    let mut builder = Builder::new(sources, &nodes, found);
    let value = match builder.node(0, "", None) {
        Ok(value) => value,
        Err(diagnostic) => {
            found.push(*diagnostic);
            return None;
        }
    };
    let spots = builder.spots;
    if value.is_null() {
        found.push(empty(sources, file));
        return None;
    }
    Some(Tree {
        file,
        value,
        spots,
        substituted: BTreeSet::new(),
    })
}

/// A node of the recorded document.
enum Node<'t> {
    Scalar(std::borrow::Cow<'t, str>, ScalarStyle),
    List,
    Map,
    Alias(usize),
    End,
}

/// The recorded document: nodes in their order, anchors, and where each node's successor is.
struct Nodes<'t> {
    list: Vec<(Node<'t>, Span)>,
    next: Vec<usize>,
    anchors: HashMap<usize, usize>,
}

type Failure = Box<Diagnostic>;

/// Runs the parser over the text and records the one document.
fn scan<'t>(text: &'t str, file: usize, sources: &Sources) -> Result<Nodes<'t>, Failure> {
    let mut nodes = Nodes {
        list: Vec::new(),
        next: Vec::new(),
        anchors: HashMap::new(),
    };
    let mut open: Vec<usize> = Vec::new();
    let mut documents = 0;
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|e| syntax(&e, file, sources))?;
        let bytes = span.byte_range().unwrap_or(0..0);
        let span = Span {
            file,
            start: bytes.start,
            end: bytes.end,
        };
        if matches!(event, Event::DocumentStart(..)) {
            documents += 1;
            if documents > 1 {
                let place = sources.place(span);
                return Err(Box::new(
                    Diagnostic::new(Code::SecondDocument, place, "a second document in one file")
                        .help("one file holds one document: remove the `---`, or use `include:`"),
                ));
            }
        }
        record(&mut nodes, &mut open, event, span, sources)?;
    }
    if nodes.list.is_empty() {
        return Err(Box::new(empty(sources, file)));
    }
    Ok(nodes)
}

fn record<'t>(
    nodes: &mut Nodes<'t>,
    open: &mut Vec<usize>,
    event: Event<'t>,
    span: Span,
    sources: &Sources,
) -> Result<(), Failure> {
    let (node, anchor) = match event {
        Event::Scalar(text, style, anchor, tag) => {
            let style = tagged(tag.as_deref(), style, span, sources)?;
            (Node::Scalar(text, style), anchor)
        }
        Event::SequenceStart(_, anchor, tag) => {
            tagged(tag.as_deref(), ScalarStyle::Plain, span, sources)?;
            (Node::List, anchor)
        }
        Event::MappingStart(_, anchor, tag) => {
            tagged(tag.as_deref(), ScalarStyle::Plain, span, sources)?;
            (Node::Map, anchor)
        }
        Event::Alias(target) => (Node::Alias(target), 0),
        Event::SequenceEnd | Event::MappingEnd => (Node::End, 0),
        _ => return Ok(()),
    };
    let index = nodes.list.len();
    let opens = matches!(node, Node::List | Node::Map);
    if matches!(node, Node::End)
        && let Some(start) = open.pop()
    {
        nodes.next[start] = index + 1;
        nodes.list[start].1.end = end_of_collection(nodes, start, span);
    }
    nodes.list.push((node, span));
    nodes.next.push(index + 1);
    if opens {
        open.push(index);
    }
    if anchor != 0 {
        nodes.anchors.insert(anchor, index);
    }
    Ok(())
}

/// A flow collection ends with its bracket, a block one with its last node.
fn end_of_collection(nodes: &Nodes<'_>, start: usize, end: Span) -> usize {
    let last = nodes.list[start..].iter().map(|(_, s)| s.end).max();
    let bracket = if end.is_empty() { 0 } else { end.end };
    last.unwrap_or(end.end).max(bracket)
}

/// The style that a tag gives a scalar: `!!str` makes it a text, other tags have no meaning here.
fn tagged(
    tag: Option<&Tag>,
    style: ScalarStyle,
    span: Span,
    sources: &Sources,
) -> Result<ScalarStyle, Failure> {
    match tag.map(Tag::core_suffix) {
        None => Ok(style),
        Some(Some("str")) => Ok(ScalarStyle::DoubleQuoted),
        Some(Some("int" | "float" | "bool" | "null" | "map" | "seq")) => Ok(style),
        Some(_) => Err(Box::new(Diagnostic::new(
            Code::Unsupported,
            sources.place(span),
            "tags have no meaning here",
        ))),
    }
}

fn empty(sources: &Sources, file: usize) -> Diagnostic {
    let path = sources.get(file).map(|s| s.path.clone());
    Diagnostic::of_file(
        Code::Empty,
        path.unwrap_or_default(),
        "no configuration: the file is empty",
    )
    .help("an empty file never means \"no routes\"; `mirror init` writes a first one")
}

fn syntax(error: &ScanError, file: usize, sources: &Sources) -> Failure {
    let start = error.marker().byte_offset().unwrap_or(0);
    let end = start + 1;
    let place = sources.place(Span { file, start, end });
    let help = match error.kind() {
        ErrorKind::UnknownQuotedScalarEscape | ErrorKind::InvalidQuotedScalarHexEscape => {
            Some("use single quotes for regexes: they leave the backslash alone")
        }
        ErrorKind::TabNotAllowed
        | ErrorKind::TabInBlockIndentation
        | ErrorKind::TabInIndentation
        | ErrorKind::TabAtBlockScalarStart => Some("indent with spaces; YAML takes no tabs there"),
        ErrorKind::UnclosedQuotedScalar => Some("the quote that opens here is never closed"),
        ErrorKind::UnclosedFlowCollection { .. } => Some("the bracket is never closed"),
        ErrorKind::UnknownAnchor => Some("an alias `*name` needs an `&name` before it"),
        _ => None,
    };
    let message = error.info();
    Box::new(Diagnostic::new(Code::Syntax, place, message).help_if(help.map(str::to_owned)))
}

/// Builds the value and the spots from the recorded nodes.
struct Builder<'a, 't> {
    sources: &'a Sources,
    nodes: &'a Nodes<'t>,
    found: &'a mut Vec<Diagnostic>,
    spots: BTreeMap<String, Spot>,
    /// Collections that are being built: an alias to one of them would never end.
    open: Vec<usize>,
    built: usize,
}

impl<'a, 't> Builder<'a, 't> {
    fn new(sources: &'a Sources, nodes: &'a Nodes<'t>, found: &'a mut Vec<Diagnostic>) -> Self {
        Self {
            sources,
            nodes,
            found,
            spots: BTreeMap::new(),
            open: Vec::new(),
            built: 0,
        }
    }

    fn error(&self, code: Code, span: Span, message: &str) -> Failure {
        Box::new(Diagnostic::new(code, self.sources.place(span), message))
    }

    /// The node at `index`, aliases followed.
    fn resolve(&self, index: usize) -> Result<usize, Failure> {
        let (node, span) = &self.nodes.list[index];
        let Node::Alias(anchor) = node else {
            return Ok(index);
        };
        match self.nodes.anchors.get(anchor) {
            Some(target) if !self.open.contains(target) => Ok(*target),
            _ => Err(self.error(Code::Unsupported, *span, "an alias inside its own anchor")),
        }
    }

    fn node(&mut self, index: usize, at: &str, key: Option<Span>) -> Result<Value, Failure> {
        let index = self.resolve(index)?;
        let (node, span) = &self.nodes.list[index];
        self.built += 1;
        if self.built > MAX_NODES {
            return Err(self.error(Code::TooLarge, *span, "more than 200000 nodes in one file"));
        }
        if self.open.len() >= MAX_DEPTH {
            return Err(self.error(Code::TooLarge, *span, "nested more than 64 levels deep"));
        }
        let spot = Spot { key, value: *span };
        self.spots.insert(at.to_owned(), spot);
        match node {
            Node::Scalar(text, ScalarStyle::Plain) => Ok(scalar::resolve(text)),
            Node::Scalar(text, _) => Ok(Value::String(text.clone().into_owned())),
            Node::List => self.list(index, at),
            Node::Map => {
                let mut map = Map::new();
                self.open.push(index);
                self.members(index, at, &mut map, Origin::Explicit)?;
                self.open.pop();
                Ok(Value::Object(map))
            }
            Node::Alias(_) | Node::End => Ok(Value::Null),
        }
    }

    fn list(&mut self, index: usize, at: &str) -> Result<Value, Failure> {
        self.open.push(index);
        let mut items = Vec::new();
        let mut next = index + 1;
        while !matches!(self.nodes.list[next].0, Node::End) {
            let pointer = pointer::item(at, items.len());
            items.push(self.node(next, &pointer, None)?);
            next = self.nodes.next[next];
        }
        self.open.pop();
        Ok(Value::Array(items))
    }

    /// Reads the members of the map at `index` into `map`; merge sources after all others.
    fn members(
        &mut self,
        index: usize,
        at: &str,
        map: &mut Map<String, Value>,
        origin: Origin,
    ) -> Result<(), Failure> {
        let mut merges = Vec::new();
        let mut seen: HashMap<String, Span> = HashMap::new();
        let mut next = index + 1;
        while !matches!(self.nodes.list[next].0, Node::End) {
            let (name, span) = self.key(next)?;
            let value = self.nodes.next[next];
            next = self.nodes.next[value];
            if self.is_merge(span) {
                merges.push(value);
                continue;
            }
            if let Some(first) = seen.insert(name.clone(), span) {
                self.duplicate(&name, span, first);
                seen.insert(name, first);
                continue;
            }
            if origin == Origin::Merged && map.contains_key(&name) {
                continue;
            }
            let read = self.node(value, &pointer::child(at, &name), Some(span))?;
            map.insert(name, read);
        }
        for source in merges {
            self.merge(source, at, map)?;
        }
        Ok(())
    }

    fn key(&self, index: usize) -> Result<(String, Span), Failure> {
        let span = self.nodes.list[index].1;
        let resolved = self.resolve(index)?;
        match &self.nodes.list[resolved].0 {
            Node::Scalar(text, _) => Ok((text.clone().into_owned(), span)),
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
        at: &str,
        map: &mut Map<String, Value>,
    ) -> Result<(), Failure> {
        let index = self.resolve(source)?;
        let span = self.nodes.list[source].1;
        if self.open.len() >= MAX_DEPTH {
            return Err(self.error(Code::TooLarge, span, "nested more than 64 levels deep"));
        }
        self.open.push(index);
        match &self.nodes.list[index].0 {
            Node::Map => self.members(index, at, map, Origin::Merged)?,
            Node::List => {
                let mut next = index + 1;
                while !matches!(self.nodes.list[next].0, Node::End) {
                    self.merge(next, at, map)?;
                    next = self.nodes.next[next];
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
        Ok(())
    }

    fn duplicate(&mut self, name: &str, again: Span, first: Span) {
        let message = format!("`{name}` stands twice in one map");
        let diagnostic = Diagnostic::new(Code::DuplicateKey, self.sources.place(again), message)
            .related(self.sources.place(first), "first here")
            .help("keep one of them: the other would be lost without a word");
        self.found.push(diagnostic);
    }
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
