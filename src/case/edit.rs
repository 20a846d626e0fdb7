//! Edits of bytes in the files of a document, at places that the parser knows.

use crate::config::document::Document;
use crate::config::place::Span;
use crate::config::pointer;
use crate::redact;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;

/// Why something is left as it is.
type Left = &'static str;

/// Edits on their way.
pub(super) struct Edits<'d> {
    document: &'d Document,
    /// By file: where, and what comes there.
    edits: BTreeMap<usize, Vec<(Range<usize>, String)>>,
}

impl<'d> Edits<'d> {
    /// No edits yet.
    pub(super) fn of(document: &'d Document) -> Self {
        Self {
            document,
            edits: BTreeMap::new(),
        }
    }

    /// Writes `text` in place of the value at `at`.
    pub(super) fn set(&mut self, at: &str, text: &str) -> Result<(), Left> {
        let span = self.own(at)?;
        let old = self.document.sources.slice(span);
        // A block ends with its line.
        let end = span.end - (old.len() - old.trim_end().len());
        let range = span.start..end.max(span.start);
        let text = match range.is_empty() {
            true => format!(" {text}"),
            false => text.to_owned(),
        };
        self.push(span.file, range, text)
    }

    /// Writes `member` (`key: value`) in place of the member at `at`.
    pub(super) fn replace_member(&mut self, at: &str, member: &str) -> Result<(), Left> {
        let range = self.member(at)?;
        self.push(self.own(at)?.file, range, member.to_owned())
    }

    /// Takes the item or member at `at` out of what holds it. It must not be the first one there if
    /// that is in flow style, and not the only one.
    pub(super) fn remove(&mut self, at: &str) -> Result<(), Left> {
        let span = self.own(at)?;
        let (parent, _) = pointer::split(at).ok_or("it is the whole file")?;
        let text = self.text(span.file);
        let range = self.member(at)?;
        if self.is_flow(parent) {
            let before = text[..range.start].trim_end();
            return match before.strip_suffix(',') {
                Some(before) => self.push(span.file, before.len()..range.end, String::new()),
                None => {
                    let after = &text[range.end..];
                    let comma = after.find(',').filter(|at| after[..*at].trim().is_empty());
                    let end = comma.map_or(range.end, |at| range.end + at + 1);
                    let blank = text[end..].len() - text[end..].trim_start_matches(' ').len();
                    self.push(span.file, range.start..end + blank, String::new())
                }
            };
        }
        let start = text[..range.start].rfind('\n').map_or(0, |at| at + 1);
        let head = &text[start..range.start];
        let end = line_end(text, range.end);
        match head.trim_start().trim_end() {
            "" | "-" => self.push(span.file, start..end, String::new()),
            _ => Err("it shares its line with something else"),
        }
    }

    /// Puts an item or member behind the last one of the collection at `at`.
    pub(super) fn append(&mut self, at: &str, item: &str) -> Result<(), Left> {
        let span = self.own(at)?;
        let text = self.text(span.file);
        if self.is_flow(at) {
            let inside = text.get(span.start + 1..span.end - 1).unwrap_or_default();
            let body = inside.trim_end();
            let end = span.start + 1 + body.len();
            let (comma, blank) = match (body.is_empty(), body.ends_with(',')) {
                (true, _) => ("", ""),
                (_, true) => ("", " "),
                _ => (",", " "),
            };
            return self.push(span.file, end..end, format!("{comma}{blank}{item}"));
        }
        let start = text[..span.start].rfind('\n').map_or(0, |at| at + 1);
        let column = text[start..span.start].chars().count();
        let dash = if text[span.start..].starts_with('-') {
            "- "
        } else {
            ""
        };
        let body = text[span.start..span.end].trim_end();
        let end = line_end(text, span.start + body.len());
        let newline = if text[..end].ends_with('\n') {
            ""
        } else {
            "\n"
        };
        let indent = " ".repeat(column);
        let line = format!("{newline}{indent}{dash}{item}\n");
        self.push(span.file, end..end, line)
    }

    /// Whether the collection at `at` is in flow style.
    pub(super) fn is_flow(&self, at: &str) -> bool {
        let spot = self.document.spots.get(at);
        let text = spot.map_or("", |spot| self.document.sources.slice(spot.value));
        text.starts_with(['[', '{'])
    }

    /// Whether the collection at `at` stands there itself, so that parts of it can be changed.
    pub(super) fn is_plain(&self, at: &str) -> bool {
        self.own(at).is_ok()
    }

    /// The new texts of the files that change.
    pub(super) fn texts(self) -> Vec<(PathBuf, String)> {
        let mut files = Vec::new();
        for (file, mut edits) in self.edits {
            let Some(source) = self.document.sources.get(file) else {
                continue;
            };
            // From the back, so that places before stay true; of two at one place the later first.
            edits.reverse();
            edits.sort_by_key(|(range, _)| std::cmp::Reverse((range.start, range.end)));
            let mut text = source.text.clone();
            for (range, with) in edits {
                text.replace_range(range, &with);
            }
            files.push((source.path.clone(), text));
        }
        files
    }

    /// The span of the value at `at`, if it stands there and nowhere else: what an alias or a merge
    /// brings stands at its anchor, and others may use it.
    fn own(&self, at: &str) -> Result<Span, Left> {
        const ALIAS: Left = "it comes from an alias, or has one: change it yourself";
        let spots = &self.document.spots;
        let spot = spots.get(at).ok_or("it does not stand in the file")?;
        let span = spot.value;
        let shared = spots
            .iter()
            .any(|(other, spot)| other != at && spot.value == span && !span.is_empty());
        let (parent, _) = pointer::split(at).ok_or("it is the whole file")?;
        let around = spots.get(parent).map(|spot| spot.value);
        let inside = match around {
            Some(around) => {
                around.file == span.file && around.start <= span.start && span.end <= around.end
            }
            // Lists of several files come together; an item has no common list around it.
            None => true,
        };
        let behind_key = spot.key.is_none_or(|key| key.end <= span.start);
        let first_level = parent == "/tests" || parent.is_empty();
        match !shared && (inside || first_level) && behind_key {
            true => Ok(span),
            false => Err(ALIAS),
        }
    }

    /// The bytes of an item, or of a member with its key.
    fn member(&self, at: &str) -> Result<Range<usize>, Left> {
        let span = self.own(at)?;
        let key = self.document.spots.get(at).and_then(|spot| spot.key);
        let old = self.document.sources.slice(span);
        let end = span.end - (old.len() - old.trim_end().len());
        let start = key.map_or(span.start, |key| key.start);
        Ok(start..end.max(start))
    }

    fn text(&self, file: usize) -> &'d str {
        self.document
            .sources
            .get(file)
            .map_or("", |source| source.text.as_str())
    }

    fn push(&mut self, file: usize, range: Range<usize>, text: String) -> Result<(), Left> {
        // A file is where a secret would stay: who runs the tests may not be who may know it.
        if let Cow::Owned(_) = redact::text(&text) {
            return Err("a loaded secret would stand in it: change it yourself");
        }
        let edits = self.edits.entry(file).or_default();
        let overlaps = |(other, _): &(Range<usize>, String)| {
            range.start < other.end && other.start < range.end
        };
        if edits.iter().any(overlaps) {
            return Err("another change touches it: run the update again");
        }
        edits.push((range, text));
        Ok(())
    }
}

/// Where the line ends that `at` stands in, its line break included.
fn line_end(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |end| at + end + 1)
}
