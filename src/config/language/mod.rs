//! Sets of topic names as automata: what a selection takes, what a rename makes of it, and whether
//! two such sets meet.
//!
//! The alphabet is Kafka's own (letters, digits, `.`, `_`, `-`), so that no answer is about a name that
//! no topic may have. The length is not part of an automaton: a search takes it as its depth. Every
//! construction is bounded by `MAX_STATES`; what is larger is [`TooLarge`], which callers read as
//! "cannot tell".

mod compile;
mod look;
mod search;

pub use compile::{anything, capture, captures, patterns, whole_names};
pub use look::{Extent, Head, can_match, head, head_of, samples, samples_of, tail_of};
pub use search::{clash, shortest, words};

use std::collections::BTreeSet;
use std::collections::HashMap;

/// The longest name that Kafka takes.
pub const MAX_NAME: usize = 249;

/// Kafka's characters for topic names.
const ALPHABET: &[u8; SYMBOLS] =
    b"-.0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz";
const SYMBOLS: usize = 65;

/// States of one automaton at most: about a megabyte.
const MAX_STATES: usize = 4_000;

/// A state by its index; [`NOWHERE`] is the one from which nothing is accepted.
type State = u32;
const NOWHERE: State = State::MAX;

/// An automaton grew over its bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge;

/// A set of names: a deterministic automaton without states that lead nowhere.
#[derive(Clone, Debug)]
pub struct Language {
    start: State,
    rows: Vec<Row>,
}

/// One state.
#[derive(Clone, Debug)]
struct Row {
    next: [State; SYMBOLS],
    accepts: bool,
}

impl Row {
    fn new(accepts: bool) -> Self {
        Self {
            next: [NOWHERE; SYMBOLS],
            accepts,
        }
    }
}

/// How two sets make one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Combine {
    /// What is in both.
    Both,
    /// What is in the first and not in the second.
    Without,
    /// What is in one of them.
    Either,
}

impl Combine {
    fn accepts(self, first: bool, second: bool) -> bool {
        match self {
            Combine::Both => first && second,
            Combine::Without => first && !second,
            Combine::Either => first || second,
        }
    }
}

impl Language {
    /// The set without names.
    pub fn nothing() -> Self {
        Self {
            start: NOWHERE,
            rows: Vec::new(),
        }
    }

    /// The set of this one name; without names if no topic may contain it.
    pub fn word(text: &str) -> Self {
        let mut rows: Vec<Row> = (0..=text.len())
            .map(|at| Row::new(at == text.len()))
            .collect();
        for (at, byte) in text.bytes().enumerate() {
            let (Some(symbol), Some(next)) = (symbol(byte), state(at + 1)) else {
                return Self::nothing();
            };
            rows[at].next[symbol] = next;
        }
        Self { start: 0, rows }
    }

    /// Whether there is no name in it, of any length.
    pub fn is_empty(&self) -> bool {
        self.start == NOWHERE
    }

    /// Whether `name` is in it.
    pub fn contains(&self, name: &str) -> bool {
        self.accepts(self.walk(self.start, name))
    }

    /// The names of this set and `other` as `combine` says.
    ///
    /// # Errors
    /// The product has too many states.
    pub fn combine(&self, other: &Self, combine: Combine) -> Result<Self, TooLarge> {
        let start = (self.start, other.start);
        explore(
            start,
            |&(a, b)| combine.accepts(self.accepts(a), other.accepts(b)),
            |&(a, b), symbol| {
                let (a, b) = (self.step(a, symbol), other.step(b, symbol));
                let dead = match combine {
                    Combine::Both => a == NOWHERE || b == NOWHERE,
                    Combine::Without => a == NOWHERE,
                    Combine::Either => a == NOWHERE && b == NOWHERE,
                };
                (!dead).then_some((a, b))
            },
        )
    }

    /// A name of this set followed by one of `other`.
    ///
    /// # Errors
    /// The result has too many states.
    pub fn then(&self, other: &Self) -> Result<Self, TooLarge> {
        if self.is_empty() || other.is_empty() {
            return Ok(Self::nothing());
        }
        // Where the first set may end, the second begins: its states are kept as a set.
        let with_begin = |a: State, mut rest: BTreeSet<State>| {
            if self.accepts(a) {
                rest.insert(other.start);
            }
            (a, rest)
        };
        explore(
            with_begin(self.start, BTreeSet::new()),
            |(_, rest)| rest.iter().any(|&b| other.accepts(b)),
            |(a, rest), symbol| {
                let rest = rest.iter().map(|&b| other.step(b, symbol));
                let rest = rest.filter(|&b| b != NOWHERE).collect();
                let next = with_begin(self.step(*a, symbol), rest);
                (next.0 != NOWHERE || !next.1.is_empty()).then_some(next)
            },
        )
    }

    /// What stands between `prefix` and `suffix` in the names of this set that have both.
    pub fn between(&self, prefix: &str, suffix: &str) -> Self {
        let mut inner = self.clone();
        inner.start = self.walk(self.start, prefix);
        for (index, row) in inner.rows.iter_mut().enumerate() {
            let end = state(index).map_or(NOWHERE, |at| self.walk(at, suffix));
            row.accepts = self.accepts(end);
        }
        inner.trimmed()
    }

    fn accepts(&self, at: State) -> bool {
        self.row(at).is_some_and(|row| row.accepts)
    }

    fn step(&self, at: State, symbol: usize) -> State {
        self.row(at).map_or(NOWHERE, |row| row.next[symbol])
    }

    fn row(&self, at: State) -> Option<&Row> {
        self.rows.get(usize::try_from(at).ok()?)
    }

    fn walk(&self, from: State, text: &str) -> State {
        text.bytes().fold(from, |at, byte| match symbol(byte) {
            Some(symbol) => self.step(at, symbol),
            None => NOWHERE,
        })
    }

    /// The same set without states that lead nowhere.
    fn trimmed(mut self) -> Self {
        let mut before: Vec<Vec<usize>> = vec![Vec::new(); self.rows.len()];
        for (index, row) in self.rows.iter().enumerate() {
            for &next in &row.next {
                if let Some(list) = usize::try_from(next).ok().and_then(|n| before.get_mut(n)) {
                    list.push(index);
                }
            }
        }
        let mut live: Vec<bool> = self.rows.iter().map(|row| row.accepts).collect();
        let mut open: Vec<usize> = (0..live.len()).filter(|&at| live[at]).collect();
        while let Some(at) = open.pop() {
            for &from in &before[at] {
                if !live[from] {
                    live[from] = true;
                    open.push(from);
                }
            }
        }
        let is_live = |at: State| usize::try_from(at).is_ok_and(|at| live.get(at) == Some(&true));
        for row in &mut self.rows {
            for next in &mut row.next {
                if !is_live(*next) {
                    *next = NOWHERE;
                }
            }
        }
        if !is_live(self.start) {
            return Self::nothing();
        }
        self
    }
}

/// The number of a state, if it has one.
fn state(index: usize) -> Option<State> {
    State::try_from(index).ok().filter(|&s| s != NOWHERE)
}

/// Whether all characters of `name` are ones that topic names may have.
pub fn is_legal(name: &str) -> bool {
    name.bytes().all(|byte| symbol(byte).is_some())
}

/// The symbol of a byte, if topic names may contain it.
fn symbol(byte: u8) -> Option<usize> {
    ALPHABET.binary_search(&byte).ok()
}

/// The automaton of everything that is reached from `start`.
fn explore<S: Clone + Eq + std::hash::Hash>(
    start: S,
    accepts: impl Fn(&S) -> bool,
    step: impl Fn(&S, usize) -> Option<S>,
) -> Result<Language, TooLarge> {
    let mut known: HashMap<S, State> = HashMap::from([(start.clone(), 0)]);
    let mut rows = vec![Row::new(accepts(&start))];
    let mut open = vec![(0, start)];
    while let Some((index, at)) = open.pop() {
        for symbol in 0..SYMBOLS {
            let Some(next) = step(&at, symbol) else {
                continue;
            };
            let number = match known.get(&next) {
                Some(&number) => number,
                None => {
                    let number = state(rows.len()).filter(|_| rows.len() < MAX_STATES);
                    let number = number.ok_or(TooLarge)?;
                    rows.push(Row::new(accepts(&next)));
                    open.push((rows.len() - 1, next.clone()));
                    known.insert(next, number);
                    number
                }
            };
            rows[index].next[symbol] = number;
        }
    }
    Ok(Language { start: 0, rows }.trimmed())
}

#[cfg(test)]
mod tests;
