//! YAML text → a recorded list of nodes: what the parser says, before aliases are replayed.

use crate::config::diagnostic::{Code, Diagnostic};
use crate::config::pieces::Pieces;
use crate::config::place::{Sources, Span};
use granit_parser::{ErrorKind, Event, Parser, ScalarStyle, ScanError, Tag};
use std::borrow::Cow;
use std::collections::HashMap;

/// A node of the recorded document.
#[derive(Clone, Debug)]
pub enum Node<'t> {
    /// A text that may mean a number, a boolean or nothing.
    Plain(Cow<'t, str>),
    /// A text that is one.
    Text(Cow<'t, str>),
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
    text: &'t str,
    list: Pieces<Recorded>,
    /// Texts that do not stand in the file as they are: with escapes, or over several lines.
    spelt: Vec<String>,
    /// The index of each anchor's node.
    pub anchors: HashMap<usize, usize>,
    /// Whether a map may be merged into another one.
    merges: Merges,
}

/// Whether there is a `<<`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Merges {
    None,
    Some,
}

/// A node, its bytes, and the index behind it and all that is in it. A file is at most 64 MiB long, and
/// has no more nodes than bytes; there are many of them at once.
struct Recorded {
    what: What,
    start: u32,
    end: u32,
    next: u32,
}

/// What a node is, without its text.
#[derive(Clone, Copy)]
enum What {
    Plain(Said),
    Text(Said),
    List,
    Map,
    Alias(u32),
    End,
}

/// Where the text of a scalar stands.
#[derive(Clone, Copy)]
enum Said {
    /// It is the scalar's bytes.
    Whole,
    /// It stands between the scalar's quotes.
    Inside,
    /// It is the spelt one of that number.
    Spelt(u32),
}

impl<'t> Nodes<'t> {
    /// How many there are.
    pub fn count(&self) -> usize {
        self.list.len()
    }

    /// The node of that index.
    pub fn node(&self, index: usize) -> Node<'t> {
        match self.list[index].what {
            What::Plain(said) => Node::Plain(self.said(index, said)),
            What::Text(said) => Node::Text(self.said(index, said)),
            What::List => Node::List,
            What::Map => Node::Map,
            What::Alias(anchor) => Node::Alias(anchor as usize),
            What::End => Node::End,
        }
    }

    fn said(&self, index: usize, said: Said) -> Cow<'t, str> {
        let bytes = self.span(index);
        let part = match said {
            Said::Whole => self.text.get(bytes.start..bytes.end),
            Said::Inside => inside(self.text, bytes),
            Said::Spelt(number) => {
                let spelt = self.spelt.get(number as usize).cloned();
                return Cow::Owned(spelt.unwrap_or_default());
            }
        };
        Cow::Borrowed(part.unwrap_or_default())
    }

    /// Whether a list or map ends there.
    pub fn is_end(&self, index: usize) -> bool {
        matches!(self.list[index].what, What::End)
    }

    /// The anchor that an alias of that index is for.
    pub fn alias(&self, index: usize) -> Option<usize> {
        match self.list[index].what {
            What::Alias(anchor) => Some(anchor as usize),
            _ => None,
        }
    }

    /// Gives back what stands before `index`, unless an alias or a merge may come back to it.
    pub fn let_go_before(&mut self, index: usize) {
        if self.anchors.is_empty() && self.merges == Merges::None {
            self.list.let_go_before(index);
        }
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
        text,
        list: Pieces::default(),
        spelt: Vec::new(),
        anchors: HashMap::new(),
        merges: Merges::None,
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
    let (what, anchor) = match event {
        Event::Scalar(text, style, anchor, tag) => {
            let style = tagged(tag.as_deref(), style, span, sources)?;
            (scalar(nodes, text, style, span), anchor)
        }
        Event::SequenceStart(_, anchor, tag) => {
            tagged(tag.as_deref(), ScalarStyle::Plain, span, sources)?;
            (What::List, anchor)
        }
        Event::MappingStart(_, anchor, tag) => {
            tagged(tag.as_deref(), ScalarStyle::Plain, span, sources)?;
            (What::Map, anchor)
        }
        Event::Alias(target) => (What::Alias(small(target)), 0),
        Event::SequenceEnd | Event::MappingEnd => (What::End, 0),
        _ => return Ok(()),
    };
    let index = nodes.list.len();
    let opens = matches!(what, What::List | What::Map);
    if matches!(what, What::End)
        && let Some(start) = open.pop()
    {
        let end = end_of_collection(nodes, start, span);
        let collection = &mut nodes.list[start];
        (collection.next, collection.end) = (small(index + 1), end);
    }
    nodes.list.push(Recorded {
        what,
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

/// A scalar, whose text is kept only where the file does not say it word for word.
fn scalar(nodes: &mut Nodes<'_>, text: Cow<'_, str>, style: ScalarStyle, span: Span) -> What {
    let said = if nodes.text.get(span.start..span.end) == Some(&*text) {
        Said::Whole
    } else if inside(nodes.text, span) == Some(&*text) {
        Said::Inside
    } else {
        nodes.spelt.push(text.into_owned());
        Said::Spelt(small(nodes.spelt.len() - 1))
    };
    // As a key it merges; as any other text it costs some memory.
    if nodes.text.get(span.start..span.end) == Some("<<") {
        nodes.merges = Merges::Some;
    }
    match style {
        ScalarStyle::Plain => What::Plain(said),
        _ => What::Text(said),
    }
}

/// What stands between the first and the last byte of a span.
fn inside(text: &str, span: Span) -> Option<&str> {
    text.get(span.start + 1..span.end.checked_sub(1)?)
}

/// A flow collection ends with its bracket, a block one with its last node.
fn end_of_collection(nodes: &Nodes<'_>, start: usize, end: Span) -> u32 {
    let last = nodes.list.starting_at(start).map(|node| node.end).max();
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
