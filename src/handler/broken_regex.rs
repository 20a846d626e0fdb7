//! What is wrong with a regular expression, and where in it.

use std::ops::Range;

/// A regular expression that does not compile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BrokenRegex {
    /// What is wrong with it.
    pub(crate) reason: String,
    /// The bytes of it that are.
    pub(crate) bytes: Range<usize>,
}

impl BrokenRegex {
    /// From what the crate says of `text`: it draws the place, and its last line says what is wrong.
    pub(crate) fn of(text: &str, error: &regex::Error) -> Self {
        let words = error.to_string();
        let reason = words.lines().rev().find_map(|l| l.strip_prefix("error: "));
        Self {
            reason: reason.unwrap_or("it is too large").to_owned(),
            bytes: caret(text, &words),
        }
    }
}

/// Where the crate's message points to, as bytes of the pattern.
fn caret(text: &str, words: &str) -> Range<usize> {
    let whole = 0..text.len();
    if text.contains('\n') {
        return whole;
    }
    let mut lines = words.lines().skip(2);
    let Some(line) = lines.find(|l| l.trim_start().starts_with('^')) else {
        return whole;
    };
    let from = line.find('^').unwrap_or(4).saturating_sub(4);
    let count = line.matches('^').count();
    let byte = |nth: usize| {
        let at = text.char_indices().nth(nth);
        at.map_or(text.len(), |(at, _)| at)
    };
    byte(from)..byte(from + count).max(byte(from))
}

#[cfg(test)]
mod tests {
    use super::*;
    use regex::Regex;

    #[test]
    fn carets_point_into_the_pattern() {
        for (text, part) in [("orders(", "("), ("a[z-a]", "z-a"), ("ü(", "(")] {
            let broken = BrokenRegex::of(text, &Regex::new(text).unwrap_err());
            assert_eq!(&text[broken.bytes], part, "{}", broken.reason);
        }
    }
}
