//! Where something stands: byte spans inside the files that were read, and lines and columns.

use crate::redact;
use std::borrow::Cow;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A byte range of one of the [`Sources`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// Index of the file in [`Sources`].
    pub file: usize,
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

impl Span {
    /// Whether nothing stands there (`key:` with no value).
    pub fn is_empty(self) -> bool {
        self.start >= self.end
    }
}

/// A place as people read it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The file.
    pub file: PathBuf,
    /// Where in the file; `None` is the file as a whole.
    pub position: Option<Position>,
}

/// A position in a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.file.display())?;
        match &self.position {
            Some(p) => write!(f, ":{}:{}", p.line, p.column),
            None => Ok(()),
        }
    }
}

/// One file that was read.
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// Its path, as reached from what the user named.
    pub path: PathBuf,
    /// Its text.
    pub text: String,
    /// Its text with literal secrets starred out, byte for byte as long, where it has any.
    shown: Option<String>,
    /// Where each line starts: a file with many mistakes is not counted through for each.
    lines: Vec<usize>,
}

impl SourceFile {
    /// What diagnostics show of it.
    pub fn shown(&self) -> &str {
        self.shown.as_deref().unwrap_or(&self.text)
    }

    /// The folder that relative paths in the file start from.
    pub fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new(""))
    }
}

/// The files of one configuration.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    files: Vec<SourceFile>,
}

impl Sources {
    /// Adds a file and says its index.
    pub fn add(&mut self, path: PathBuf, text: String) -> usize {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let lines = [0].into_iter().chain(ends.map(|(at, _)| at + 1)).collect();
        self.files.push(SourceFile {
            path,
            text,
            shown: None,
            lines,
        });
        self.files.len() - 1
    }

    /// The file of that index.
    pub fn get(&self, file: usize) -> Option<&SourceFile> {
        self.files.get(file)
    }

    /// Replaces what diagnostics show of a file.
    pub fn show(&mut self, file: usize, shown: String) {
        if let Some(source) = self.files.get_mut(file) {
            source.shown = Some(shown);
        }
    }

    /// Stars out the secrets that were loaded, wherever they stand.
    pub fn redact(&mut self) {
        for file in &mut self.files {
            if let Cow::Owned(shown) = redact::starred(file.shown()) {
                file.shown = Some(shown);
            }
        }
    }

    /// The text to show of the file at `path`.
    pub fn shown(&self, path: &Path) -> Option<&str> {
        let file = self.files.iter().find(|f| f.path == path)?;
        Some(file.shown())
    }

    /// All files.
    pub fn iter(&self) -> impl Iterator<Item = &SourceFile> {
        self.files.iter()
    }

    /// The source text of a span.
    pub fn slice(&self, span: Span) -> &str {
        self.get(span.file)
            .and_then(|f| f.text.get(span.start..span.end))
            .unwrap_or_default()
    }

    /// The first line of what a span covers.
    pub fn first_line(&self, span: Span) -> Span {
        let length = self.slice(span).find('\n').unwrap_or(span.end - span.start);
        Span {
            end: span.start + length,
            ..span
        }
    }

    /// The part `inside` of `needle`, wherever `needle` stands verbatim inside `span`; else `span`.
    pub fn narrow(&self, span: Span, needle: &str, inside: Range<usize>) -> Span {
        match self.slice(span).find(needle) {
            Some(at) => Span {
                start: span.start + at + inside.start,
                end: span.start + at + inside.end,
                ..span
            },
            None => span,
        }
    }

    /// Where a place ends: the position one past its last byte.
    pub fn end(&self, place: &Place) -> Option<Position> {
        let end = place.position.as_ref()?.end;
        let source = self.files.iter().find(|f| f.path == place.file)?;
        let (file, start) = (0, end);
        Some(position(source, Span { file, start, end }))
    }

    /// The place of a span.
    pub fn place(&self, span: Span) -> Place {
        let Some(source) = self.get(span.file) else {
            return Place {
                file: PathBuf::new(),
                position: None,
            };
        };
        Place {
            file: source.path.clone(),
            position: Some(position(source, span)),
        }
    }
}

fn position(source: &SourceFile, span: Span) -> Position {
    let text = source.text.as_str();
    let start = floor_char(text, span.start);
    let end = floor_char(text, span.end.max(start));
    let line = source.lines.partition_point(|line| *line <= start);
    let line_start = source.lines[line - 1];
    Position {
        line,
        column: text[line_start..start].chars().count() + 1,
        start,
        end,
    }
}

/// The nearest character boundary at or before `at`: parsers may report one past the end.
fn floor_char(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}
