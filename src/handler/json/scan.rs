//! A scanner that checks a JSON document and finds spans in it, in one pass and without
//! allocating.

use super::{Segment, text};
use crate::handler::{Failure, FailureCode};
use std::ops::Range;

/// Nesting at most: arrays and objects open at the same time.
pub(crate) const MAX_DEPTH: usize = 128;

/// A range of bytes of a document.
pub(crate) type Span = Range<usize>;

/// A member of an object: the name's token with its quotes, and the value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    /// The name with its quotes.
    pub(crate) name: Span,
    /// The value.
    pub(crate) value: Span,
}

/// Finds `path` in `document`. The whole document is checked, whether the path is found early or
/// not at all, so that the answer never depends on what follows the field.
///
/// # Errors
/// [`FailureCode::NotJson`] with the byte position, [`FailureCode::TooDeep`].
pub(crate) fn find(document: &[u8], path: &[Segment]) -> Result<Option<Span>, Failure> {
    let mut scanner = Scanner::over(document)?;
    let found = scanner.seek(path)?;
    scanner.end()?;
    Ok(found)
}

/// Finds everything that `path` matches in `document`, which is checked as a whole: repeated names
/// and `[*]` give several spans, in the document's order.
///
/// # Errors
/// As [`find`].
pub(crate) fn every(document: &[u8], path: &[Segment]) -> Result<Vec<Span>, Failure> {
    let mut scanner = Scanner::over(document)?;
    let mut found = Vec::new();
    scanner.gather(path, &mut found)?;
    scanner.end()?;
    Ok(found)
}

/// Checks `document` and returns the span of its value, without the white space around.
///
/// # Errors
/// As [`find`].
pub(crate) fn root(document: &[u8]) -> Result<Span, Failure> {
    root_at(document, 0)
}

/// As [`root`], of a document that will stand `depth` arrays and objects deep in another.
///
/// # Errors
/// As [`find`].
pub(crate) fn root_at(document: &[u8], depth: usize) -> Result<Span, Failure> {
    let mut scanner = Scanner::over(document)?;
    scanner.depth = depth;
    let span = scanner.value()?;
    scanner.end()?;
    Ok(span)
}

/// The members of the object at `span` of a checked document, `None` if it is not an object.
pub(crate) fn members(document: &[u8], span: &Span) -> Result<Option<Vec<Member>>, Failure> {
    let mut scanner = Scanner::within(document, span);
    if scanner.peek() != Some(b'{') {
        return Ok(None);
    }
    let mut list = Vec::new();
    scanner.object(&mut |scanner, name| {
        let value = scanner.value()?;
        list.push(Member { name, value });
        Ok(())
    })?;
    Ok(Some(list))
}

/// The elements of the array at `span` of a checked document, `None` if it is not an array.
pub(crate) fn elements(document: &[u8], span: &Span) -> Result<Option<Vec<Span>>, Failure> {
    let mut scanner = Scanner::within(document, span);
    if scanner.peek() != Some(b'[') {
        return Ok(None);
    }
    let mut list = Vec::new();
    scanner.array(&mut |scanner, _| {
        list.push(scanner.value()?);
        Ok(())
    })?;
    Ok(Some(list))
}

/// Called for each member with the name's token, or for each element with its index; it must
/// consume the value.
type Visit<'v, 'd, T> = &'v mut dyn FnMut(&mut Scanner<'d>, T) -> Result<(), Failure>;

/// A position in a document.
struct Scanner<'d> {
    bytes: &'d [u8],
    at: usize,
    depth: usize,
}

impl<'d> Scanner<'d> {
    /// At the start of `document`, which must be UTF-8 as a whole: strings then need no check.
    fn over(document: &'d [u8]) -> Result<Self, Failure> {
        if let Err(error) = std::str::from_utf8(document) {
            return Err(not_json(error.valid_up_to(), "bytes that are not UTF-8"));
        }
        Ok(Self::within(document, &(0..document.len())))
    }

    /// At the start of `span`, of a document that was checked before.
    fn within(document: &'d [u8], span: &Span) -> Self {
        Self {
            bytes: document.get(..span.end).unwrap_or(document),
            at: span.start,
            depth: 0,
        }
    }

    fn seek(&mut self, path: &[Segment]) -> Result<Option<Span>, Failure> {
        let Some((first, rest)) = path.split_first() else {
            return self.value().map(Some);
        };
        self.whitespace();
        let mut found = None;
        match (first, self.peek()) {
            (Segment::Name(wanted), Some(b'{')) => self.object(&mut |scanner, name| {
                if text::token_is(&scanner.bytes[name], wanted) {
                    found = scanner.seek(rest)?;
                } else {
                    scanner.value()?;
                }
                Ok(())
            })?,
            (Segment::Index(wanted), Some(b'[')) => self.array(&mut |scanner, index| {
                if index == *wanted {
                    found = scanner.seek(rest)?;
                } else {
                    scanner.value()?;
                }
                Ok(())
            })?,
            _ => {
                self.value()?;
            }
        }
        Ok(found)
    }

    fn gather(&mut self, path: &[Segment], found: &mut Vec<Span>) -> Result<(), Failure> {
        let Some((first, rest)) = path.split_first() else {
            found.push(self.value()?);
            return Ok(());
        };
        self.whitespace();
        match (first, self.peek()) {
            (Segment::Name(wanted), Some(b'{')) => {
                self.object(
                    &mut |scanner, name| match text::token_is(&scanner.bytes[name], wanted) {
                        true => scanner.gather(rest, found),
                        false => scanner.value().map(drop),
                    },
                )
            }
            (Segment::Index(_) | Segment::Each, Some(b'[')) => {
                self.array(&mut |scanner, index| match first {
                    Segment::Index(wanted) if *wanted != index => scanner.value().map(drop),
                    _ => scanner.gather(rest, found),
                })
            }
            _ => self.value().map(drop),
        }
    }

    /// Checks the value that comes next and returns its span.
    fn value(&mut self) -> Result<Span, Failure> {
        self.whitespace();
        let start = self.at;
        match self.peek() {
            Some(b'{') => self.object(&mut |scanner, _| scanner.value().map(drop))?,
            Some(b'[') => self.array(&mut |scanner, _| scanner.value().map(drop))?,
            Some(b'"') => {
                self.string()?;
            }
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(b't') => self.word(b"true")?,
            Some(b'f') => self.word(b"false")?,
            Some(b'n') => self.word(b"null")?,
            _ => return Err(self.expected("a value")),
        }
        Ok(start..self.at)
    }

    fn object(&mut self, visit: Visit<'_, 'd, Span>) -> Result<(), Failure> {
        self.open()?;
        self.whitespace();
        if self.peek() == Some(b'}') {
            return self.close();
        }
        loop {
            self.whitespace();
            if self.peek() != Some(b'"') {
                return Err(self.expected("a name in quotes"));
            }
            let name = self.string()?;
            self.whitespace();
            if self.peek() != Some(b':') {
                return Err(self.expected("a colon"));
            }
            self.at += 1;
            visit(self, name)?;
            self.whitespace();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => return self.close(),
                _ => return Err(self.expected("a comma or a closing brace")),
            }
        }
    }

    fn array(&mut self, visit: Visit<'_, 'd, usize>) -> Result<(), Failure> {
        self.open()?;
        self.whitespace();
        if self.peek() == Some(b']') {
            return self.close();
        }
        for index in 0.. {
            visit(self, index)?;
            self.whitespace();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => break,
                _ => return Err(self.expected("a comma or a closing bracket")),
            }
        }
        self.close()
    }

    fn open(&mut self) -> Result<(), Failure> {
        if self.depth >= MAX_DEPTH {
            let detail = format!("nested deeper than {MAX_DEPTH} at byte {}", self.at);
            return Err(Failure::new(FailureCode::TooDeep, detail));
        }
        self.depth += 1;
        self.at += 1;
        Ok(())
    }

    fn close(&mut self) -> Result<(), Failure> {
        self.depth -= 1;
        self.at += 1;
        Ok(())
    }

    /// Checks the string that starts here and returns its span with the quotes.
    fn string(&mut self) -> Result<Span, Failure> {
        let start = self.at;
        self.at += 1;
        loop {
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => self.escape()?,
                Some(0..=0x1f) => return Err(self.expected("no control character in a string")),
                Some(_) => self.at += 1,
                None => return Err(self.expected("the end of a string")),
            }
        }
        self.at += 1;
        Ok(start..self.at)
    }

    fn escape(&mut self) -> Result<(), Failure> {
        self.at += 1;
        match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 1,
            Some(b'u') => {
                self.at += 1;
                for _ in 0..4 {
                    if !self.peek().is_some_and(|b| b.is_ascii_hexdigit()) {
                        return Err(self.expected("four hexadecimal digits"));
                    }
                    self.at += 1;
                }
            }
            _ => return Err(self.expected("an escape")),
        }
        Ok(())
    }

    fn number(&mut self) -> Result<(), Failure> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), Failure> {
        let start = self.at;
        while self.peek().is_some_and(|b| b.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at == start {
            return Err(self.expected("a digit"));
        }
        Ok(())
    }

    fn word(&mut self, word: &[u8]) -> Result<(), Failure> {
        if !self.bytes[self.at..].starts_with(word) {
            return Err(self.expected("a value"));
        }
        self.at += word.len();
        Ok(())
    }

    fn end(&mut self) -> Result<(), Failure> {
        self.whitespace();
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.expected("the end")),
        }
    }

    fn whitespace(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn expected(&self, what: &str) -> Failure {
        not_json(self.at, &format!("expected {what}"))
    }
}

fn not_json(at: usize, what: &str) -> Failure {
    Failure::new(
        FailureCode::NotJson,
        format!("not JSON at byte {at}: {what}"),
    )
}

#[cfg(test)]
mod tests;
