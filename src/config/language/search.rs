//! Names out of automata: the shortest, the first few, and two that differ only in `.` and `_`.

use super::{ALPHABET, Language, NOWHERE, SYMBOLS, State};
use std::collections::{HashMap, HashSet, VecDeque};

/// The shortest name of a set that has at least one character and at most `longest`.
pub fn shortest(language: &Language, longest: usize) -> Option<String> {
    words(language, 1, longest).pop()
}

/// The `count` shortest names of a set, none empty, none longer than `longest`. Names that lead
/// to the same state are told apart only as far as `count` asks.
pub fn words(language: &Language, count: usize, longest: usize) -> Vec<String> {
    let mut found = Vec::new();
    // A state is worth going through as often as names are asked for.
    let mut visits: HashMap<State, usize> = HashMap::new();
    let mut open = VecDeque::from([(language.start, String::new())]);
    while let Some((at, text)) = open.pop_front() {
        if at == NOWHERE {
            continue;
        }
        if language.accepts(at) && !text.is_empty() {
            found.push(text.clone());
            if found.len() >= count {
                break;
            }
        }
        if text.len() >= longest {
            continue;
        }
        for symbol in preferred() {
            let next = language.step(at, symbol);
            let seen = visits.entry(next).or_default();
            if next != NOWHERE && *seen < count {
                *seen += 1;
                let mut text = text.clone();
                text.push(char::from(ALPHABET[symbol]));
                open.push_back((next, text));
            }
        }
    }
    found
}

/// The symbols in the order in which an example should have them: letters first.
fn preferred() -> impl Iterator<Item = usize> {
    let order: [fn(u8) -> bool; 3] = [
        |b| b.is_ascii_lowercase(),
        |b| b.is_ascii_digit(),
        |b| !b.is_ascii_lowercase() && !b.is_ascii_digit(),
    ];
    order
        .into_iter()
        .flat_map(|group| (0..SYMBOLS).filter(move |&symbol| group(ALPHABET[symbol])))
}

/// A name of each set, different ones, that Kafka's metrics cannot tell apart: they differ only
/// in `.` and `_`.
pub fn clash(first: &Language, second: &Language, longest: usize) -> Option<(String, String)> {
    /// Two states, and whether the names differ already.
    type Pair = (State, State, bool);
    let mut known: HashSet<Pair> = HashSet::new();
    let mut open = VecDeque::from([((first.start, second.start, false), Vec::new(), Vec::new())]);
    while let Some(((a, b, differ), left, right)) = open.pop_front() {
        if first.accepts(a) && second.accepts(b) && differ {
            let text = |bytes: Vec<u8>| bytes.into_iter().map(char::from).collect();
            return Some((text(left), text(right)));
        }
        if left.len() >= longest || known.len() > super::MAX_STATES {
            continue;
        }
        for (x, y) in alike() {
            let (next_a, next_b) = (first.step(a, x), second.step(b, y));
            let next = (next_a, next_b, differ || x != y);
            if next_a == NOWHERE || next_b == NOWHERE || !known.insert(next) {
                continue;
            }
            let with = |bytes: &[u8], symbol: usize| [bytes, &[ALPHABET[symbol]]].concat();
            open.push_back((next, with(&left, x), with(&right, y)));
        }
    }
    None
}

/// Pairs of symbols that metrics do not tell apart.
fn alike() -> impl Iterator<Item = (usize, usize)> {
    let dot = super::symbol(b'.').unwrap_or_default();
    let line = super::symbol(b'_').unwrap_or_default();
    preferred()
        .map(|symbol| (symbol, symbol))
        .chain([(dot, line), (line, dot)])
}
