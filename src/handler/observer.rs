//! Looking over a chain's shoulder, for `mirror test` and `mirror try`.

use super::Failure;
use crate::record::Record;

/// Is told of every record that goes into a step, and of what came out. Nothing that it does
/// changes the record; on the record path it is `()`, which costs nothing.
pub trait Observer {
    /// `record` goes into the step of index `step`.
    fn enters(&mut self, step: usize, record: &Record<'_>);
    /// What came out of the step: `failure` with no records, or, where the step lets failed records
    /// pass, with the record as it was.
    fn leaves(&mut self, step: usize, out: &[Record<'_>], failure: Option<&Failure>);
}

impl Observer for () {
    #[inline]
    fn enters(&mut self, _step: usize, _record: &Record<'_>) {}
    #[inline]
    fn leaves(&mut self, _step: usize, _out: &[Record<'_>], _failure: Option<&Failure>) {}
}

/// Which way a record takes in a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Way {
    /// Whether `when` holds; `None` if there is none, or it fails.
    pub when: Option<bool>,
    /// The entry of `to` that holds.
    pub entry: Option<usize>,
}
