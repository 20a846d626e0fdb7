//! Where a mistake in a chain stands: a JSON pointer that grows as the compiler descends.

use super::broken_regex::BrokenRegex;
use super::path::PathFault;
use super::{ChainFault, Inside, Side};
use std::cell::RefCell;
use std::fmt::Display;
use std::ops::Range;

/// A place inside the list of steps, and the list that its faults are collected in.
///
/// Compiling goes on after a fault, so that all mistakes of a chain are reported at once; the
/// functions that build something return `None` once they have reported why they cannot.
#[derive(Clone)]
pub(crate) struct Place<'f> {
    pointer: String,
    side: Side,
    faults: &'f RefCell<Vec<ChainFault>>,
}

/// What is said of a mistake.
pub(crate) struct Words {
    /// What is wrong.
    pub(crate) message: String,
    /// What to do.
    pub(crate) help: Option<String>,
}

/// Why a step cannot be bound to a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unbound {
    /// What is wrong.
    pub(crate) message: String,
    /// What to do.
    pub(crate) help: Option<String>,
    /// The part of a text that is.
    pub(crate) inside: Option<Inside>,
}

impl From<String> for Unbound {
    fn from(message: String) -> Self {
        Self {
            message,
            help: None,
            inside: None,
        }
    }
}

impl<'f> Place<'f> {
    /// The root of the list of steps.
    pub(crate) fn root(faults: &'f RefCell<Vec<ChainFault>>) -> Self {
        Self {
            pointer: String::new(),
            side: Side::Value,
            faults,
        }
    }

    /// The member `name` of this place.
    pub(crate) fn child(&self, name: impl Display) -> Self {
        let name = name.to_string().replace('~', "~0").replace('/', "~1");
        Self {
            pointer: format!("{}/{name}", self.pointer),
            side: Side::Value,
            faults: self.faults,
        }
    }

    /// The key of this place.
    pub(crate) fn key(&self) -> Self {
        Self {
            side: Side::Key,
            ..self.clone()
        }
    }

    /// Reports a mistake here. Always `None`, so that it can be returned.
    pub(crate) fn fault<T>(&self, message: impl Into<String>) -> Option<T> {
        self.report(message.into(), None)
    }

    /// Reports a mistake here and what to do about it. Always `None`.
    pub(crate) fn fault_with_help<T>(
        &self,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Option<T> {
        self.report(message.into(), Some(help.into()))
    }

    /// Reports a mistake in the part `inside` of the text that stands here. Always `None`.
    pub(crate) fn fault_inside<T>(
        &self,
        inside: impl Into<Option<Inside>>,
        fault: Words,
    ) -> Option<T> {
        self.push(inside.into(), fault)
    }

    /// Reports a mistake in `bytes` of `text`, which stands here. Always `None`.
    pub(crate) fn fault_at<T>(&self, text: &str, bytes: Range<usize>, words: Words) -> Option<T> {
        let text = text.to_owned();
        self.push(Some(Inside { text, bytes }), words)
    }

    /// Reports the path `text`, which stands here, as one that is wrong. Always `None`.
    pub(crate) fn fault_path<T>(&self, text: &str, fault: PathFault) -> Option<T> {
        let words = Words {
            message: fault.message,
            help: fault.help,
        };
        self.fault_at(text, fault.bytes, words)
    }

    /// Reports a regular expression that does not compile. Always `None`.
    pub(crate) fn fault_regex<T>(&self, text: &str, broken: BrokenRegex) -> Option<T> {
        let words = Words {
            message: format!("no regular expression: {}", broken.reason),
            help: None,
        };
        self.fault_at(text, broken.bytes, words)
    }

    fn report<T>(&self, message: String, help: Option<String>) -> Option<T> {
        self.push(None, Words { message, help })
    }

    fn push<T>(&self, inside: Option<Inside>, words: Words) -> Option<T> {
        self.faults.borrow_mut().push(ChainFault {
            pointer: self.pointer.clone(),
            side: self.side,
            inside,
            message: words.message,
            help: words.help,
        });
        None
    }
}

/// `did you mean …?` for a `word` that is none of `known`, else the list of them.
pub(crate) fn suggest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    match close(word, known.iter().copied()) {
        Some(candidate) => format!("did you mean `{candidate}`?"),
        None if known.is_empty() => "there is none".to_owned(),
        None => format!("one of: {}", known.join(", ")),
    }
}

/// The one of `known` that `word` is a misspelling of.
pub(crate) fn close<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let near = known
        .into_iter()
        .map(|candidate| (strsim::osa_distance(word, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= 1 + candidate.len() / 4)
        .min();
    near.map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_escape_as_json_pointers_do() {
        let faults = RefCell::new(Vec::new());
        let place = Place::root(&faults).child(1).child("value.a/b~c");
        assert_eq!(place.pointer, "/1/value.a~1b~0c");
        assert_eq!(place.fault::<()>("wrong"), None);
        assert_eq!(faults.borrow()[0].pointer, "/1/value.a~1b~0c");
    }

    #[test]
    fn suggests_a_close_word_or_lists_all() {
        assert_eq!(
            suggest("matchs", ["matches", "in"]),
            "did you mean `matches`?"
        );
        assert_eq!(suggest("zzz", ["matches", "in"]), "one of: matches, in");
        assert_eq!(suggest("zzz", []), "there is none");
    }
}
