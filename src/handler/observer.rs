//! Looking over a chain's shoulder, for `mirror test` and `mirror try`.

use super::Failure;
use super::step::Step;
use crate::record::Record;

/// Is told of every record that goes into a step, and of what came out. Nothing that it does
/// changes the record; on the record path it is `()`, which costs nothing.
pub trait Observer {
    /// `record` goes into `step`.
    fn enters(&mut self, step: StepView<'_>, record: &Record<'_>);
    /// What came out of the step of index `step`: `failure` with no records, or, where the step lets failed records
    /// pass, with the record as it was.
    fn leaves(&mut self, step: usize, out: &[Record<'_>], failure: Option<&Failure>);
}

impl Observer for () {
    #[inline]
    fn enters(&mut self, _step: StepView<'_>, _record: &Record<'_>) {}
    #[inline]
    fn leaves(&mut self, _step: usize, _out: &[Record<'_>], _failure: Option<&Failure>) {}
}

/// A step that a record goes into.
#[derive(Clone, Copy)]
pub struct StepView<'s> {
    /// Its index in the chain.
    pub index: usize,
    pub(super) step: &'s Step,
}

impl StepView<'_> {
    /// Which way `record` takes in it, without taking it.
    pub fn way(self, record: &Record<'_>) -> Way {
        self.step.way(record)
    }
}

/// Which way a record takes in a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Way {
    /// Whether `when` holds; `None` if there is none, or it fails.
    pub when: Option<bool>,
    /// The entry of `to` that holds.
    pub entry: Option<usize>,
}
