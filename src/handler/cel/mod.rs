//! Expressions: [CEL](https://cel.dev) over a record's `topic`, `partition`, `offset`,
//! `timestamp`, `key`, `value` and `header`.
//!
//! The grammar is CEL's and its parser the crate's; everything behind it is ours: an expression
//! is compiled once to a tree whose conditions are the [`Clause`]s that maps compile to as well,
//! and reads the fields that it names from the record's bytes, no document is built.
//!
//! | | |
//! |---|---|
//! | operators | `== != < <= > >= in && \|\| ! + - * / % ?:`, `[…]`, lists |
//! | functions | `has(x)`, `size(x)`, `int(x)`, `double(x)`, `string(x)` |
//! | methods | `size startsWith endsWith contains matches`; of lists `all exists exists_one map filter` |
//!
//! - Paths are those of the rest of the grammar: `value.items[0].qty`, `value["odd name"]`,
//!   `header.NAME` with dots in it, `header["x-dc"]`. Topic, headers, key and value as a whole are
//!   bytes without a type: they compare as what they are compared with, and calculate as texts.
//! - Numbers are exact: integers and decimals compare by value whatever their size, `+ - *` are
//!   calculated with up to 38 digits, more is a failure and never a rounding. `/` of two integers
//!   cuts the fraction, `/` of decimals gives what a double holds.
//! - What is absent never fails: comparing with it is false (`!=` is true), a condition that is
//!   absent is false, calculating with it gives something absent.
//! - A comparison of different types is false (`!=` is true). A wrong type anywhere else (a number
//!   plus a text, a condition that is neither true nor false, a division by zero) fails the step
//!   with `expression`.
//! - `&&`, `||`, `all` and `exists`: a failure of one part does not count if another decides.
//! - `matches` is for the whole text, and its pattern is written out; a map cannot be made.

mod arithmetic;
mod calls;
mod compile;
mod kind;
mod parse;
mod scope;
mod term;
#[cfg(test)]
mod tests;

pub(crate) use scope::Scope;
pub(crate) use term::Comparison;

use super::fault::{Place, Words};
use super::fields::Fields;
use super::path::{Field, Path};
use super::predicate::Clause;
use super::{Failure, FailureCode};
use crate::record::Record;
use compile::Compiler;
use parse::{Mistake, Parsed};
use term::Term;

/// Compiles `text` to a condition over `fields`, reporting mistakes at their place in it.
pub(crate) fn condition(text: &str, fields: &mut Fields, place: &Place<'_>) -> Option<Clause> {
    let compiled =
        Parsed::of(text).and_then(|parsed| Compiler::new(&parsed, fields).condition(parsed.root()));
    compiled
        .map_err(|mistake| report(mistake, text, place))
        .ok()
}

fn report(mistake: Mistake, text: &str, place: &Place<'_>) {
    let words = Words {
        message: mistake.message,
        help: mistake.help,
    };
    place.fault_at::<()>(text, mistake.bytes, words);
}

/// An expression that gives a value.
#[derive(Clone, Debug)]
pub(crate) struct Expression {
    term: Term,
    fields: Fields,
}

impl Expression {
    /// Compiles `text`, reporting mistakes at their place in it.
    pub(crate) fn compile(text: &str, place: &Place<'_>) -> Option<Self> {
        let mut fields = Fields::default();
        let compiled = Parsed::of(text)
            .and_then(|parsed| Compiler::new(&parsed, &mut fields).value(parsed.root()));
        match compiled {
            Ok(term) => Some(Self { term, fields }),
            Err(mistake) => {
                report(mistake, text, place);
                None
            }
        }
    }

    /// The paths that it reads.
    pub(crate) fn paths(&self) -> &[Path] {
        self.fields.paths()
    }

    /// What it gives for `record`.
    ///
    /// # Errors
    /// [`FailureCode::Absent`] if it needs something that is absent, [`FailureCode::Expression`]
    /// for a wrong type, and what reading a field can fail with.
    pub(crate) fn value<'v>(&'v self, record: &'v Record<'_>) -> Result<Field<'v>, Failure> {
        let view = self.fields.view(record);
        match self.term.value(&Scope::of(&view))? {
            Field::Absent => {
                let detail = "the expression needs a field that is absent";
                Err(Failure::new(FailureCode::Absent, detail))
            }
            value => Ok(value),
        }
    }
}

/// A failure of an expression on one record.
fn failed(detail: impl Into<String>) -> Failure {
    Failure::new(FailureCode::Expression, detail)
}
