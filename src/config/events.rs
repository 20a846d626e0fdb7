//! YAML text → a recorded list of nodes: what the parser says, before aliases are replayed.

use crate::config::diagnostic::{Code, Diagnostic};
use crate::config::place::{Sources, Span};
use granit_parser::{ErrorKind, Event, Parser, ScalarStyle, ScanError, Tag};
use std::collections::HashMap;

/// Bytes of a text for each of its nodes, where there are many: a list that grows by doubling would leave
/// as much behind as it holds.
const BYTES_OF_A_NODE: usize = 5;
/// Nodes that room is made for at most.
const MOST_ROOM: usize = 1 << 20;

/// A node of the recorded document.
pub enum Node<'t> {
    /// A text with its style.
    Scalar(std::borrow::Cow<'t, str>, ScalarStyle),
    /// A list begins.
    List,
    /// A map begins.
    Map,
    /// An alias to the anchor of that number.
    Alias(usize),
    /// A list or map ends.
    End,
}

/// The recorded document: nodes in their order, anchors, and where each node's successor is.
pub struct Nodes<'t> {
    file: usize,
    list: Vec<Recorded<'t>>,
    /// The index of each anchor's node.
    pub anchors: HashMap<usize, usize>,
}

/// A node, its bytes, and the index behind it and all that is in it. A file is at most 64 MiB long, and
/// has no more nodes than bytes; there are many of them at once.
struct Recorded<'t> {
    node: Node<'t>,
    start: u32,
    end: u32,
    next: u32,
}

impl<'t> Nodes<'t> {
    /// How many there are.
    pub fn count(&self) -> usize {
        self.list.len()
    }

    /// The node of that index.
    pub fn node(&self, index: usize) -> &Node<'t> {
        &self.list[index].node
    }

    /// Its bytes.
    pub fn span(&self, index: usize) -> Span {
        let Recorded { start, end, .. } = self.list[index];
        Span {
            file: self.file,
            start: start as usize,
            end: end as usize,
        }
    }

    /// The index behind it and all that is in it.
    pub fn next(&self, index: usize) -> usize {
        self.list[index].next as usize
    }
}

/// A mistake that stops the reading.
pub type Failure = Box<Diagnostic>;

/// Runs the parser over the text and records the one document.
pub fn scan<'t>(text: &'t str, file: usize, sources: &Sources) -> Result<Nodes<'t>, Failure> {
    let mut nodes = Nodes {
        file,
        list: Vec::with_capacity((text.len() / BYTES_OF_A_NODE).min(MOST_ROOM)),
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
        let end = end_of_collection(nodes, start, span);
        let collection = &mut nodes.list[start];
        (collection.next, collection.end) = (small(index + 1), end);
    }
    nodes.list.push(Recorded {
        node,
        start: small(span.start),
        end: small(span.end),
        next: small(index + 1),
    });
    if opens {
        open.push(index);
    }
    if anchor != 0 {
        nodes.anchors.insert(anchor, index);
    }
    Ok(())
}

/// A flow collection ends with its bracket, a block one with its last node.
fn end_of_collection(nodes: &Nodes<'_>, start: usize, end: Span) -> u32 {
    let last = nodes.list[start..].iter().map(|node| node.end).max();
    let bracket = if end.is_empty() { 0 } else { end.end };
    last.unwrap_or_default().max(small(bracket))
}

fn small(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
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
        Some(_) => {
            let place = sources.place(before(span, sources));
            let message = "tags have no meaning here";
            Err(Box::new(Diagnostic::new(Code::Unsupported, place, message)))
        }
    }
}

/// The tag before a node; the node itself where it has none in writing.
fn before(span: Span, sources: &Sources) -> Span {
    let text = sources.get(span.file).map_or("", |s| s.text.as_str());
    let head = text.get(..span.start).unwrap_or_default().trim_end();
    let word = head.rfind(|c: char| c.is_whitespace() || "[{,".contains(c));
    let start = word.map_or(0, |at| at + 1);
    let end = head.len();
    let Span { file, .. } = span;
    match head[start..].starts_with('!') {
        true => Span { file, start, end },
        false => span,
    }
}

/// What is said of a file without a document.
pub fn empty(sources: &Sources, file: usize) -> Diagnostic {
    let path = sources.get(file).map(|s| s.path.clone());
    Diagnostic::of_file(
        Code::Empty,
        path.unwrap_or_default(),
        "no configuration: the file is empty",
    )
    .help("an empty file never means \"no routes\"; `mirror init` writes a first one")
}

/// The characters that are to blame: the parser names the start of a quoted text, and what is
/// behind a tab.
fn culprit(text: &str, at: usize, kind: &ErrorKind) -> Option<(usize, usize)> {
    match kind {
        ErrorKind::UnknownQuotedScalarEscape => {
            let bytes = text.as_bytes();
            let mut next = at;
            while let Some(found) = bytes.get(next..)?.iter().position(|b| *b == b'\\') {
                let escaped = text.get(next + found + 1..)?.chars().next()?;
                if !"0abt\tnvfre \"/\\N_LPxuU\n\r".contains(escaped) {
                    let start = next + found;
                    return Some((start, start + 1 + escaped.len_utf8()));
                }
                next += found + 1 + escaped.len_utf8();
            }
            None
        }
        ErrorKind::TabNotAllowed
        | ErrorKind::TabInBlockIndentation
        | ErrorKind::TabInIndentation
        | ErrorKind::TabAtBlockScalarStart => {
            let line = text.get(..at)?.rfind('\n').map_or(0, |end| end + 1);
            let tab = line + text.get(line..)?.find('\t')?;
            (tab <= at).then_some((tab, tab + 1))
        }
        // The parser names where the text begins that it was reading.
        ErrorKind::TabInPlainScalar => {
            let rest = text.get(at..)?;
            let tab = at
                + rest
                    .find("\n\t")
                    .map_or_else(|| rest.find('\t'), |line| Some(line + 1))?;
            Some((tab, tab + 1))
        }
        _ => None,
    }
}

fn syntax(error: &ScanError, file: usize, sources: &Sources) -> Failure {
    let text = sources.get(file).map_or("", |s| s.text.as_str());
    let at = error.marker().byte_offset().unwrap_or(0).min(text.len());
    let (start, end) = culprit(text, at, error.kind()).unwrap_or((at, at + 1));
    let place = sources.place(Span { file, start, end });
    let help = match error.kind() {
        ErrorKind::UnknownQuotedScalarEscape | ErrorKind::InvalidQuotedScalarHexEscape => {
            Some("use single quotes for regexes: they leave the backslash alone")
        }
        ErrorKind::TabNotAllowed
        | ErrorKind::TabInBlockIndentation
        | ErrorKind::TabInIndentation
        | ErrorKind::TabAtBlockScalarStart
        | ErrorKind::TabInPlainScalar => Some("indent with spaces; YAML takes no tabs there"),
        ErrorKind::MappingValueNotAllowed => Some(
            "a text with `: ` in it needs quotes; a key begins in the same column as its neighbours",
        ),
        ErrorKind::ExpectedFlowMappingSeparator | ErrorKind::ExpectedFlowSequenceSeparator => {
            Some("a comma is missing, or quotes around a text that has brackets or commas in it")
        }
        ErrorKind::ExpectedBlockSequenceEntry | ErrorKind::ExpectedBlockMappingKey => {
            Some("what belongs together begins in the same column")
        }
        ErrorKind::UnclosedQuotedScalar => Some("the quote that opens here is never closed"),
        ErrorKind::UnclosedFlowCollection { .. } => Some("the bracket is never closed"),
        ErrorKind::UnknownAnchor => Some("an alias `*name` needs an `&name` before it"),
        _ => None,
    };
    let message = error.info();
    Box::new(Diagnostic::new(Code::Syntax, place, message).help_if(help.map(str::to_owned)))
}
