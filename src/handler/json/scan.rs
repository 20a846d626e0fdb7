//! A scanner that checks a JSON document and finds spans in it, in one pass and without
//! allocating.

use super::{Segment, text};
use crate::handler::Failure;
use std::ops::Range;
use stop::{Expected, Stop};

mod stop;
mod wanted;

pub(crate) use wanted::{Found, Wanted};

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
/// [`FailureCode::NotJson`](crate::handler::FailureCode::NotJson) with the byte position,
/// [`FailureCode::TooDeep`](crate::handler::FailureCode::TooDeep).
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

/// [`root`], and its [`members`] from the same pass.
///
/// # Errors
/// As [`find`].
pub(crate) fn root_members(document: &[u8]) -> Result<(Span, Option<Vec<Member>>), Failure> {
    let mut scanner = Scanner::over(document)?;
    scanner.whitespace();
    let start = scanner.at;
    let members = scanner.members()?;
    let root = start..scanner.at;
    scanner.end()?;
    Ok((root, members))
}

/// The members of the object at `span` of a checked document, `None` if it is not an object.
pub(crate) fn members(document: &[u8], span: &Span) -> Result<Option<Vec<Member>>, Failure> {
    match document.get(span.start) {
        Some(b'{') => Ok(Scanner::within(document, span).members()?),
        _ => Ok(None),
    }
}

/// The elements of the array at `span` of a checked document, `None` if it is not an array.
pub(crate) fn elements(document: &[u8], span: &Span) -> Result<Option<Vec<Span>>, Failure> {
    if document.get(span.start) != Some(&b'[') {
        return Ok(None);
    }
    let mut list = Vec::new();
    each_element(document, span, &mut |element| {
        list.push(element);
        Ok(())
    })?;
    Ok(Some(list))
}

/// Calls `visit` for each element of the array at `span` of a checked document, which must be an
/// array.
pub(crate) fn each_element(
    document: &[u8],
    span: &Span,
    visit: &mut impl FnMut(Span) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut outcome = Ok(());
    Scanner::within(document, span).array(&mut |scanner, _| {
        let element = scanner.value()?;
        if outcome.is_ok() {
            outcome = visit(element);
        }
        Ok(())
    })?;
    outcome
}

/// A position in a document.
struct Scanner<'d> {
    bytes: &'d [u8],
    at: usize,
    depth: usize,
    /// Whether the string that was read last has an escape.
    escaped: bool,
}

impl<'d> Scanner<'d> {
    /// At the start of `document`, which must be UTF-8 as a whole: strings then need no check.
    fn over(document: &'d [u8]) -> Result<Self, Stop> {
        if let Err(error) = std::str::from_utf8(document) {
            return Err(Stop {
                at: error.valid_up_to(),
                expected: Expected::Utf8,
            });
        }
        Ok(Self::within(document, &(0..document.len())))
    }

    /// At the start of `span`, of a document that was checked before.
    fn within(document: &'d [u8], span: &Span) -> Self {
        Self {
            bytes: document.get(..span.end).unwrap_or(document),
            at: span.start,
            depth: 0,
            escaped: false,
        }
    }

    fn seek(&mut self, path: &[Segment]) -> Result<Option<Span>, Stop> {
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

    fn gather(&mut self, path: &[Segment], found: &mut Vec<Span>) -> Result<(), Stop> {
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
    fn value(&mut self) -> Result<Span, Stop> {
        self.whitespace();
        let start = self.at;
        self.skip()?;
        Ok(start..self.at)
    }

    /// Checks the value that comes next.
    #[inline]
    fn skip(&mut self) -> Result<(), Stop> {
        self.whitespace();
        match self.peek() {
            Some(b'{' | b'[') => self.container(),
            _ => self.scalar(),
        }
    }

    #[inline]
    fn scalar(&mut self) -> Result<(), Stop> {
        match self.peek() {
            Some(b'"') => self.string(),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word(b"true"),
            Some(b'f') => self.word(b"false"),
            Some(b'n') => self.word(b"null"),
            _ => Err(self.expected(Expected::Value)),
        }
    }

    /// Checks the object or array that starts here. A loop and not a recursion: most of what a
    /// record holds is only checked, and this is where that time goes.
    fn container(&mut self) -> Result<(), Stop> {
        let outside = self.depth;
        // One bit for each level that is open, set for an object: `MAX_DEPTH` of them fit.
        let mut objects = 0_u128;
        loop {
            let is_object = self.peek() == Some(b'{');
            self.open()?;
            objects = (objects << 1) | u128::from(is_object);
            self.whitespace();
            let end = if is_object { b'}' } else { b']' };
            let mut is_complete = self.peek() == Some(end);
            // Values up to the start of a container inside, or to the end of the outermost.
            loop {
                let is_object = objects & 1 == 1;
                if is_complete {
                    self.close()?;
                    objects >>= 1;
                    if self.depth == outside {
                        return Ok(());
                    }
                } else {
                    if is_object {
                        self.name()?;
                    }
                    self.whitespace();
                    if let Some(b'{' | b'[') = self.peek() {
                        break;
                    }
                    self.scalar()?;
                }
                is_complete = self.is_last(objects & 1 == 1)?;
            }
        }
    }

    /// Goes over what stands behind an entry, and says whether it was the last one.
    #[inline]
    fn is_last(&mut self, is_object: bool) -> Result<bool, Stop> {
        self.whitespace();
        match (self.peek(), is_object) {
            (Some(b','), _) => {
                self.at += 1;
                Ok(false)
            }
            (Some(b'}'), true) | (Some(b']'), false) => Ok(true),
            (_, true) => Err(self.expected(Expected::MoreMembers)),
            (_, false) => Err(self.expected(Expected::MoreElements)),
        }
    }

    /// Checks a member's name and the colon, and returns the name's span with the quotes.
    #[inline]
    fn name(&mut self) -> Result<Span, Stop> {
        self.whitespace();
        if self.peek() != Some(b'"') {
            return Err(self.expected(Expected::Name));
        }
        let start = self.at;
        self.string()?;
        let name = start..self.at;
        self.whitespace();
        if self.peek() != Some(b':') {
            return Err(self.expected(Expected::Colon));
        }
        self.at += 1;
        Ok(name)
    }

    /// Calls `visit` for each member with the name's token; it must consume the value.
    fn object(
        &mut self,
        visit: &mut impl FnMut(&mut Self, Span) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        self.open()?;
        self.whitespace();
        if self.peek() == Some(b'}') {
            return self.close();
        }
        loop {
            let name = self.name()?;
            visit(self, name)?;
            if self.is_last(true)? {
                return self.close();
            }
        }
    }

    /// Checks the value that starts here; its members if it is an object.
    fn members(&mut self) -> Result<Option<Vec<Member>>, Stop> {
        if self.peek() != Some(b'{') {
            self.skip()?;
            return Ok(None);
        }
        let mut list = Vec::with_capacity(16);
        self.object(&mut |scanner, name| {
            let value = scanner.value()?;
            list.push(Member { name, value });
            Ok(())
        })?;
        Ok(Some(list))
    }

    /// Calls `visit` for each element with its index; it must consume the value.
    fn array(
        &mut self,
        visit: &mut impl FnMut(&mut Self, usize) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        self.open()?;
        self.whitespace();
        if self.peek() == Some(b']') {
            return self.close();
        }
        for index in 0.. {
            visit(self, index)?;
            if self.is_last(false)? {
                break;
            }
        }
        self.close()
    }

    #[inline]
    fn open(&mut self) -> Result<(), Stop> {
        if self.depth >= MAX_DEPTH {
            return Err(self.expected(Expected::LessDepth));
        }
        self.depth += 1;
        self.at += 1;
        Ok(())
    }

    #[inline]
    fn close(&mut self) -> Result<(), Stop> {
        self.depth -= 1;
        self.at += 1;
        Ok(())
    }

    /// Checks the string that starts here.
    #[inline]
    fn string(&mut self) -> Result<(), Stop> {
        self.at += 1;
        self.escaped = false;
        self.at += plain_bytes(&self.bytes[self.at..]);
        match self.peek() {
            Some(b'"') => {
                self.at += 1;
                Ok(())
            }
            _ => self.rest_of_string(),
        }
    }

    /// The rest of a string with escapes, of one at the very end of the document, or of none.
    #[inline(never)]
    fn rest_of_string(&mut self) -> Result<(), Stop> {
        loop {
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => {
                    self.escaped = true;
                    self.escape()?;
                }
                Some(0..=0x1f) => return Err(self.expected(Expected::Text)),
                Some(_) => self.at += 1,
                None => return Err(self.expected(Expected::Quote)),
            }
            self.at += plain_bytes(&self.bytes[self.at..]);
        }
        self.at += 1;
        Ok(())
    }

    fn escape(&mut self) -> Result<(), Stop> {
        self.at += 1;
        match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 1,
            Some(b'u') => {
                self.at += 1;
                for _ in 0..4 {
                    if !self.peek().is_some_and(|b| b.is_ascii_hexdigit()) {
                        return Err(self.expected(Expected::Hexadecimal));
                    }
                    self.at += 1;
                }
            }
            _ => return Err(self.expected(Expected::Escape)),
        }
        Ok(())
    }

    #[inline]
    fn number(&mut self) -> Result<(), Stop> {
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

    #[inline]
    fn digits(&mut self) -> Result<(), Stop> {
        let start = self.at;
        while self.peek().is_some_and(|b| b.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at == start {
            return Err(self.expected(Expected::Digit));
        }
        Ok(())
    }

    #[inline]
    fn word(&mut self, word: &[u8]) -> Result<(), Stop> {
        if !self.bytes[self.at..].starts_with(word) {
            return Err(self.expected(Expected::Value));
        }
        self.at += word.len();
        Ok(())
    }

    fn end(&mut self) -> Result<(), Stop> {
        self.whitespace();
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.expected(Expected::End)),
        }
    }

    #[inline]
    fn whitespace(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    #[inline]
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    #[cold]
    fn expected(&self, expected: Expected) -> Stop {
        let at = self.at;
        Stop { at, expected }
    }
}

/// How many bytes at the start of `bytes` are plain text of a string for sure: eight at a time, up
/// to one that ends the string, begins an escape, or is a control character.
#[inline]
fn plain_bytes(bytes: &[u8]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const TOPS: u64 = ONES << 7;
    let mut plain = 0;
    for chunk in bytes.chunks_exact(8) {
        let word = u64::from_le_bytes(chunk.try_into().unwrap_or_default());
        let quotes = word ^ (ONES * u64::from(b'"'));
        let escapes = word ^ (ONES * u64::from(b'\\'));
        // The top bit of a byte that is zero (or less than 0x20), exact for the first such byte.
        let ends = quotes.wrapping_sub(ONES) & !quotes;
        let ends = ends | (escapes.wrapping_sub(ONES) & !escapes);
        let ends = ends | (word.wrapping_sub(ONES * 0x20) & !word);
        match ends & TOPS {
            0 => plain += 8,
            found => return plain + (found.trailing_zeros() / 8) as usize,
        }
    }
    plain
}

#[cfg(test)]
mod tests;
