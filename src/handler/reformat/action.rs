//! The actions of `reformat`, of which a step has exactly one.

use super::body::Body;
use super::cast::{self, Cast};
use super::envelope;
use super::flatten::Flatten;
use super::mask::Mask;
use super::recode::{self, Direction, Recode};
use super::set::{self, Assignment};
use super::split::Split;
use super::timestamp::Retime;
use super::unset::{self, Removal};
use crate::handler::fault::{Place, Unbound};
use crate::handler::limit::RecordLimit;
use crate::handler::spec::ReformatSpec;
use crate::handler::template::Template;
use crate::handler::{Binding, Failure, Reads};
use crate::record::Record;

/// What a reformat does: a closed set.
#[derive(Clone, Debug)]
pub(super) enum Action {
    /// Removals, then assignments.
    Edit(Vec<Removal>, Vec<Assignment>),
    /// Fields are hidden.
    Mask(Mask),
    /// One record for each element of an array.
    Split(Split),
    /// The timestamp.
    Timestamp(Retime),
    /// What is encoded is decoded, or the other way round.
    Recode(Vec<Recode>),
    /// Fields get another type.
    Cast(Vec<Cast>),
    /// Nested objects become one level.
    Flatten(Flatten),
    /// The key or the value as a whole.
    Body(Body),
    /// The record goes into an envelope.
    Envelope,
}

impl Action {
    /// Compiles the one that `spec` has, reporting mistakes at `place`.
    pub(super) fn compile(spec: &ReformatSpec, place: &Place<'_>) -> Option<Self> {
        match names(spec).as_slice() {
            ["set"] | ["unset"] | ["set", "unset"] => compile_edit(spec, place),
            [one] => Self::compile_one(spec, &place.child(one)),
            [] => place
                .key()
                .fault("a reformat without an action does nothing"),
            [first, .., last] => place.child(last).key().fault_with_help(
                format!("`{last}` cannot stand beside `{first}`"),
                "only `set` and `unset` may stand together; write a step for each of the others",
            ),
        }
    }

    /// Compiles what stands at `place`.
    fn compile_one(spec: &ReformatSpec, place: &Place<'_>) -> Option<Self> {
        if let Some(mask) = &spec.mask {
            return Mask::compile(mask, place).map(Self::Mask);
        }
        if let Some(split) = &spec.split {
            return Split::compile(split, place).map(Self::Split);
        }
        if let Some(timestamp) = &spec.timestamp {
            return Retime::compile(timestamp, place).map(Self::Timestamp);
        }
        if let Some(entries) = &spec.decode {
            return recode::compile(entries, Direction::Decode, place).map(Self::Recode);
        }
        if let Some(entries) = &spec.encode {
            return recode::compile(entries, Direction::Encode, place).map(Self::Recode);
        }
        if let Some(entries) = &spec.cast {
            return cast::compile(entries, place).map(Self::Cast);
        }
        if let Some(flatten) = &spec.flatten {
            return Flatten::compile(flatten, place).map(Self::Flatten);
        }
        match spec.envelope {
            None => Body::compile(spec, place).map(Self::Body),
            Some(true) => Some(Self::Envelope),
            Some(false) => place.fault("`true` is expected, or nothing at all"),
        }
    }

    /// Resolves what is constant for the bound topic.
    pub(super) fn bind(&self, binding: &Binding<'_>) -> Result<Self, Unbound> {
        Ok(match self {
            Self::Edit(removals, assignments) => {
                let bound: Result<Vec<Assignment>, Unbound> =
                    assignments.iter().map(|a| a.bind(binding)).collect();
                Self::Edit(removals.clone(), bound?)
            }
            Self::Timestamp(retime) => Self::Timestamp(retime.bind(binding)),
            other => other.clone(),
        })
    }

    /// Shows each template that a topic has to fill to `see`.
    pub(super) fn each_template(&self, see: &mut dyn FnMut(&Template)) {
        if let Self::Edit(_, assignments) = self {
            let templates = assignments.iter().filter_map(Assignment::template);
            templates.for_each(see);
        }
    }

    /// What it reads of a record.
    pub(super) fn reads(&self) -> Reads {
        fn most(reads: impl Iterator<Item = Reads>) -> Reads {
            reads.max().unwrap_or(Reads::Nothing)
        }
        match self {
            Self::Edit(removals, assignments) => {
                let removals = removals.iter().map(Removal::reads);
                most(removals.chain(assignments.iter().map(Assignment::reads)))
            }
            Self::Mask(mask) => mask.reads(),
            Self::Timestamp(retime) => retime.reads(),
            Self::Recode(list) => most(list.iter().map(Recode::reads)),
            Self::Cast(list) => most(list.iter().map(Cast::reads)),
            Self::Body(body) => body.reads(),
            Self::Split(_) | Self::Flatten(_) | Self::Envelope => Reads::Value,
        }
    }

    /// Changes `record`, which may not grow beyond `limit` on the way.
    pub(super) fn apply<'a>(
        &'a self,
        record: &mut Record<'a>,
        limit: RecordLimit,
    ) -> Result<(), Failure> {
        match self {
            Self::Edit(removals, assignments) => {
                for removal in removals {
                    removal.apply(record)?;
                }
                for assignment in assignments {
                    assignment.apply(record)?;
                    limit.check(record)?;
                }
                Ok(())
            }
            Self::Mask(mask) => mask.apply(record, limit),
            Self::Timestamp(retime) => retime.apply(record),
            Self::Recode(list) => {
                for recode in list {
                    recode.apply(record, limit)?;
                    limit.check(record)?;
                }
                Ok(())
            }
            Self::Cast(list) => list.iter().try_for_each(|cast| cast.apply(record, limit)),
            Self::Flatten(flatten) => flatten.apply(record, limit),
            Self::Body(body) => body.apply(record),
            Self::Envelope => envelope::apply(record),
            // One record in, many out: `Reformat::handle` sees to it.
            Self::Split(_) => Ok(()),
        }
    }
}

/// The actions that `spec` has, by name.
fn names(spec: &ReformatSpec) -> Vec<&'static str> {
    let ReformatSpec {
        set,
        unset,
        mask,
        split,
        rekey,
        timestamp,
        decode,
        encode,
        cast,
        flatten,
        hoist,
        extract,
        envelope,
    } = spec;
    let actions = [
        ("set", set.is_some()),
        ("unset", unset.is_some()),
        ("mask", mask.is_some()),
        ("split", split.is_some()),
        ("rekey", rekey.is_some()),
        ("timestamp", timestamp.is_some()),
        ("decode", decode.is_some()),
        ("encode", encode.is_some()),
        ("cast", cast.is_some()),
        ("flatten", flatten.is_some()),
        ("hoist", hoist.is_some()),
        ("extract", extract.is_some()),
        ("envelope", envelope.is_some()),
    ];
    let there = actions.into_iter().filter(|(_, there)| *there);
    there.map(|(name, _)| name).collect()
}

fn compile_edit(spec: &ReformatSpec, place: &Place<'_>) -> Option<Action> {
    let removals = match &spec.unset {
        Some(list) => unset::compile(list, &place.child("unset")),
        None => Some(Vec::new()),
    };
    let assignments = match &spec.set {
        Some(entries) => set::compile(entries, &place.child("set")),
        None => Some(Vec::new()),
    };
    Some(Action::Edit(removals?, assignments?))
}
