//! A regex for whole topic names, which says what it takes without being compiled for speed.
//!
//! A regex that searches megabytes takes long to compile, and much memory. A pattern is asked about
//! few names of some characters each: mostly its beginning or its end answers, or else a small automaton
//! over Kafka's alphabet. The regex itself is there for captures.

use crate::config::language::{self, Extent, Head};
use regex::Regex;
use regex_automata::nfa::thompson::pikevm::PikeVM;
use regex_automata::{Anchored, Input};
use regex_syntax::hir::Hir;
use std::fmt;
use std::sync::OnceLock;

/// Longer patterns may pass a limit of the compiler's, as may counted repetitions.
const SURELY_COMPILES: usize = 200;

/// A regex for whole topic names: `^(?:…)$`.
#[derive(Clone, Debug)]
pub struct Pattern {
    text: String,
    head: Head,
    tail: String,
    /// Whether a name that is the head is taken without further question.
    by_head: ByHead,
    captures: Vec<String>,
    automaton: OnceLock<Option<Box<PikeVM>>>,
    regex: OnceLock<Option<Regex>>,
}

/// What the head of a pattern settles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ByHead {
    /// Everything: it is the one name that is taken.
    Settled,
    /// That other names are not taken.
    Open,
}

impl Pattern {
    /// Reads `pattern`.
    ///
    /// # Errors
    /// It does not compile.
    pub fn new(pattern: &str) -> Result<Self, regex::Error> {
        Self::read(pattern).map(|(pattern, _)| pattern)
    }

    /// Reads `pattern`; gives its syntax too, for those who look further at it.
    ///
    /// # Errors
    /// It does not compile.
    pub fn read(pattern: &str) -> Result<(Self, Hir), regex::Error> {
        // Alone: `a)(b` would be one with what is around it.
        let hir = regex_syntax::parse(pattern);
        let hir = hir.map_err(|error| regex::Error::Syntax(error.to_string()))?;
        let text = format!("^(?:{pattern})$");
        let regex = OnceLock::new();
        if pattern.len() > SURELY_COMPILES || pattern.contains('{') {
            let _ = regex.set(Some(Regex::new(&text)?));
        }
        let head = language::head_of(&hir);
        let has_looks = !hir.properties().look_set().is_empty();
        let new = Self {
            text,
            tail: language::tail_of(&hir),
            by_head: match head.extent {
                Extent::Whole if !has_looks => ByHead::Settled,
                _ => ByHead::Open,
            },
            head,
            captures: language::captures(&hir),
            automaton: OnceLock::new(),
            regex,
        };
        Ok((new, hir))
    }

    /// The pattern as written.
    pub fn pattern(&self) -> &str {
        let inner = self.text.strip_prefix("^(?:");
        let inner = inner.and_then(|inner| inner.strip_suffix(")$"));
        inner.unwrap_or(&self.text)
    }

    /// How all names begin that it takes.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// The names of its captures.
    pub fn captures(&self) -> impl Iterator<Item = &str> + Clone {
        self.captures.iter().map(String::as_str)
    }

    /// What the capture `name` holds of `topic`, if it took part in a match.
    pub fn capture<'t>(&self, name: &str, topic: &'t str) -> Option<&'t str> {
        let captures = self.regex()?.captures(topic)?;
        Some(captures.name(name)?.as_str())
    }

    /// Whether it takes the whole of `name`.
    pub fn is_match(&self, name: &str) -> bool {
        if !self.head.is_of(name) || !name.ends_with(&self.tail) {
            return false;
        }
        if self.by_head == ByHead::Settled {
            return true;
        }
        let automaton = self.automaton().filter(|_| language::is_legal(name));
        match automaton {
            Some(automaton) => {
                let whole = Input::new(name).anchored(Anchored::Yes);
                automaton.is_match(&mut automaton.create_cache(), whole)
            }
            // No topic is called so, or the automaton would be too large.
            None => self.regex().is_some_and(|regex| regex.is_match(name)),
        }
    }

    fn automaton(&self) -> Option<&PikeVM> {
        let make = || {
            let hir = regex_syntax::parse(self.pattern()).ok()?;
            let names = language::whole_names(&hir).ok()?;
            PikeVM::new_from_nfa(names).ok().map(Box::new)
        };
        self.automaton.get_or_init(make).as_deref()
    }

    fn regex(&self) -> Option<&Regex> {
        let compile = || Regex::new(&self.text).ok();
        self.regex.get_or_init(compile).as_ref()
    }

    /// Lets go of what was made to answer questions; whoever asks again makes it again.
    pub fn let_go(&mut self) {
        drop(self.automaton.take());
        drop(self.regex.take());
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_made(pattern: &Pattern) -> bool {
        pattern.automaton.get().is_some() || pattern.regex.get().is_some()
    }

    #[test]
    fn beginning_and_end_answer_without_an_automaton() {
        for (pattern, taken, others) in [
            (
                r"orders\.eu",
                vec!["orders.eu"],
                vec!["orders", "orders-eu", ""],
            ),
            (r".+\.test", vec![], vec!["orders", "test"]),
            (r"team-1\..+", vec![], vec!["team-10.a", "team-2.a"]),
            (r"(a)(b)", vec!["ab"], vec!["a", "abb"]),
        ] {
            let pattern = Pattern::new(pattern).expect("a pattern");
            assert!(taken.iter().all(|name| pattern.is_match(name)), "{pattern}");
            assert!(
                !others.iter().any(|name| pattern.is_match(name)),
                "{pattern}"
            );
            assert!(!is_made(&pattern), "{pattern}");
        }
    }

    #[test]
    fn what_is_let_go_is_made_again() {
        let mut pattern = Pattern::new("a.+x").expect("a pattern");
        for _ in 0..2 {
            assert!(!is_made(&pattern));
            assert!(pattern.is_match("abx") && !pattern.is_match("ax") && is_made(&pattern));
            pattern.let_go();
        }
    }

    #[test]
    fn captures_are_known_by_name() {
        let pattern = Pattern::new(r"(?<team>[a-z]+)\.(?:x|(?<part>y))+(z)").expect("a pattern");
        assert_eq!(pattern.captures().collect::<Vec<_>>(), ["team", "part"]);
        assert_eq!(pattern.capture("team", "pay.xz"), Some("pay"));
        assert_eq!(pattern.capture("part", "pay.xz"), None);
        assert_eq!(
            pattern.to_string(),
            r"^(?:(?<team>[a-z]+)\.(?:x|(?<part>y))+(z))$"
        );
    }

    #[test]
    fn what_does_not_compile_is_refused_as_the_compiler_would() {
        for broken in ["a)(b", "(?=a)", "[", r"\p{No}{", "(a{1000}){1000}"] {
            let refused = Pattern::new(broken).expect_err("broken").to_string();
            assert_eq!(refused, Regex::new(broken).expect_err("broken").to_string());
        }
    }
}
