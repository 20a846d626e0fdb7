//! `reformat`: what a record contains is changed, added, taken away or taken apart.

mod action;
mod body;
pub(super) mod cast;
mod envelope;
mod every;
mod flatten;
mod mask;
pub(super) mod recode;
mod set;
pub(super) mod spec;
mod split;
pub(super) mod timestamp;
mod unset;

use self::action::Action;
use super::fault::{Place, Unbound};
use super::limit::RecordLimit;
use super::spec::ReformatSpec;
use super::template::Template;
use super::{Binding, Failure, Handler, Reads};
use crate::record::Record;

/// A compiled reformat.
#[derive(Clone, Debug)]
pub(crate) struct Reformat {
    action: Action,
    limit: RecordLimit,
}

impl Reformat {
    /// Compiles `spec`, reporting mistakes at `place`.
    pub(crate) fn compile(spec: &ReformatSpec, place: &Place<'_>) -> Option<Self> {
        Some(Self {
            action: Action::compile(spec, place)?,
            limit: RecordLimit::default(),
        })
    }

    /// Resolves what is constant for the bound topic.
    ///
    /// # Errors
    /// A template that the topic cannot fill.
    pub(crate) fn bind(&self, binding: &Binding<'_>) -> Result<Self, Unbound> {
        Ok(Self {
            action: self.action.bind(binding)?,
            limit: RecordLimit::of(binding.record_bytes),
        })
    }

    /// Shows each template that a topic has to fill to `see`.
    pub(crate) fn each_template(&self, see: &mut dyn FnMut(&Template)) {
        self.action.each_template(see);
    }
}

impl Handler for Reformat {
    fn reads(&self) -> Reads {
        self.action.reads()
    }

    fn handle<'a>(
        &'a self,
        mut record: Record<'a>,
        out: &mut Vec<Record<'a>>,
    ) -> Result<(), Failure> {
        if let Action::Split(split) = &self.action {
            return split.apply(record, self.limit, out);
        }
        self.action.apply(&mut record, self.limit)?;
        self.limit.check(&record)?;
        out.push(record);
        Ok(())
    }
}
