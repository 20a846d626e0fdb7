//! A part of a text → the bytes of the YAML that it was written as: quotes, escapes, indentation
//! and folded lines are between the two.

use std::ops::Range;

/// The bytes of the scalar `raw`, as it stands in the file, that the bytes `part` of its `text`
/// were written as; no further than the end of the line. `None` if `text` is not what is written
/// there, because something was put in.
pub fn written(raw: &str, text: &str, part: Range<usize>) -> Option<Range<usize>> {
    let mut reader = Reader::new(raw);
    let mut written: Option<Range<usize>> = None;
    for (at, character) in text.char_indices() {
        let place = reader.read(character)?;
        let is_part = part.contains(&at) || (part.is_empty() && at < part.start);
        if is_part && !character.is_whitespace() {
            let start = written.map_or(place.start, |w| w.start);
            written = Some(start..place.end);
        }
    }
    let written = written?;
    if part.is_empty() {
        // Behind the last character before it.
        return Some(written.end..written.end);
    }
    let line = raw[written.clone()].find('\n');
    let line = line.map_or(written.end, |end| written.start + end);
    Some(written.start..line)
}

/// How a scalar is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    /// Plain, or a block: characters stand for themselves.
    Bare,
    /// `'…'`
    Single,
    /// `"…"`
    Double,
}

/// A position in a scalar as it is written.
struct Reader<'r> {
    raw: &'r str,
    at: usize,
    style: Style,
}

impl<'r> Reader<'r> {
    fn new(raw: &'r str) -> Self {
        let (style, at) = match raw.chars().next() {
            Some('"') => (Style::Double, 1),
            Some('\'') => (Style::Single, 1),
            // The header of a block has a line of its own.
            Some('|' | '>') => (Style::Bare, raw.find('\n').unwrap_or(raw.len())),
            _ => (Style::Bare, 0),
        };
        Self { raw, at, style }
    }

    /// Where the next `character` of the text is written. White space is written in many ways and
    /// taken as it comes; everything else must be there.
    fn read(&mut self, character: char) -> Option<Range<usize>> {
        if character.is_whitespace() && !self.is_escape() {
            let start = self.at;
            if self.raw[start..].starts_with(char::is_whitespace) {
                self.at += self.next()?.len_utf8();
            }
            return Some(start..self.at);
        }
        self.skip_white_space();
        let start = self.at;
        let length = match (self.style, self.next()?) {
            (Style::Double, '\\') => self.escape()?,
            (Style::Single, '\'') if character == '\'' => 2,
            (_, next) if next == character => next.len_utf8(),
            _ => return None,
        };
        self.at += length;
        Some(start..self.at)
    }

    fn next(&self) -> Option<char> {
        self.raw[self.at..].chars().next()
    }

    fn is_escape(&self) -> bool {
        self.style == Style::Double && self.raw[self.at..].starts_with('\\')
    }

    /// The length of the escape here.
    fn escape(&self) -> Option<usize> {
        let rest = &self.raw[self.at..];
        let length = match rest.chars().nth(1)? {
            'x' => 4,
            'u' => 6,
            'U' => 10,
            other => 1 + other.len_utf8(),
        };
        rest.is_char_boundary(length).then_some(length)
    }

    /// Goes over white space, and over line ends that are escaped.
    fn skip_white_space(&mut self) {
        loop {
            let rest = &self.raw[self.at..];
            let escaped = self.style == Style::Double && rest.starts_with("\\\n");
            match rest.chars().next() {
                Some('\\') if escaped => self.at += 2,
                Some(white) if white.is_whitespace() => self.at += white.len_utf8(),
                _ => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the part `needle` of `text` is in `raw`.
    fn found<'r>(raw: &'r str, text: &str, needle: &str) -> Option<&'r str> {
        let start = text.find(needle).expect("a part");
        written(raw, text, start..start + needle.len()).map(|bytes| &raw[bytes])
    }

    #[test]
    fn every_way_to_write_a_text() {
        for (raw, text) in [
            ("a == 'x' && bad", "a == 'x' && bad"),
            ("'a == ''x'' && bad'", "a == 'x' && bad"),
            (r#""a == \"x\" && bad""#, r#"a == "x" && bad"#),
            (r#""a == \u00e9 && bad""#, "a == é && bad"),
            ("|\n    a == 'x' &&\n    bad\n", "a == 'x' &&\nbad\n"),
            (">-\n  a == 'x' &&\n  bad", "a == 'x' && bad"),
            ("a == 'x'\n      && bad", "a == 'x' && bad"),
            ("\"a == 'x' \\\n   && bad\"", "a == 'x' && bad"),
            ("\"a ==\\n'x'\n\n  && bad\"", "a ==\n'x'\n&& bad"),
        ] {
            assert_eq!(found(raw, text, "bad"), Some("bad"), "{raw}");
            assert_eq!(found(raw, text, "a"), Some("a"), "{raw}");
        }
        assert_eq!(found("'it''s'", "it's", "'s"), Some("''s"));
    }

    #[test]
    fn the_end_is_behind_the_last_character() {
        assert_eq!(written("|\n  a >\n", "a >\n", 3..3), Some(7..7));
        assert_eq!(written("'a >'", "a >", 3..3), Some(4..4));
    }

    #[test]
    fn what_was_put_in_has_no_place() {
        assert_eq!(written("${X} == 1", "abc == 1", 0..3), None);
        assert_eq!(written("", "a", 0..1), None);
    }
}
