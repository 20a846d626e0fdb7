//! `reformat`: what a record contains is changed, added, taken away or taken apart.

mod body;
mod every;
mod mask;
pub(super) mod recode;
mod set;
pub(super) mod spec;
mod split;
pub(super) mod timestamp;
mod unset;

use self::body::Body;
use self::mask::Mask;
use self::recode::{Direction, Recode};
use self::set::Assignment;
use self::split::Split;
use self::timestamp::Retime;
use self::unset::Removal;
use super::fault::Place;
use super::limit::RecordLimit;
use super::spec::ReformatSpec;
use super::{Binding, Failure, Handler, Reads};
use crate::record::Record;

/// The actions of this version, as they are told in faults.
const SUPPORTED: &str = "`set`, `unset`, `mask`, `split`, `rekey`, `timestamp`, `decode`, `encode`, `hoist` and `extract`";

/// A compiled reformat.
#[derive(Clone, Debug)]
pub(crate) struct Reformat {
    action: Action,
    limit: RecordLimit,
}

/// What a reformat does: a closed set.
#[derive(Clone, Debug)]
enum Action {
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
    /// The key or the value as a whole.
    Body(Body),
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
    pub(crate) fn bind(&self, binding: &Binding<'_>) -> Result<Self, String> {
        Ok(Self {
            action: self.action.bind(binding)?,
            limit: RecordLimit::of(binding.record_bytes),
        })
    }
}

impl Action {
    fn compile(spec: &ReformatSpec, place: &Place<'_>) -> Option<Self> {
        refuse_later(spec, place)?;
        let edits = spec.set.is_some() || spec.unset.is_some();
        let others = [
            spec.mask.is_some(),
            spec.split.is_some(),
            spec.rekey.is_some(),
            spec.timestamp.is_some(),
            spec.decode.is_some(),
            spec.encode.is_some(),
            spec.hoist.is_some(),
            spec.extract.is_some(),
        ];
        if usize::from(edits) + others.iter().filter(|there| **there).count() != 1 {
            return place.fault_with_help(
                "a reformat has exactly one action; only `set` and `unset` may stand together",
                format!("in this version: {SUPPORTED}"),
            );
        }
        if let Some(mask) = &spec.mask {
            return Mask::compile(mask, &place.child("mask")).map(Self::Mask);
        }
        if let Some(split) = &spec.split {
            return Split::compile(split, &place.child("split")).map(Self::Split);
        }
        if let Some(timestamp) = &spec.timestamp {
            return Retime::compile(timestamp, &place.child("timestamp")).map(Self::Timestamp);
        }
        if let Some(entries) = &spec.decode {
            let place = place.child("decode");
            return recode::compile(entries, Direction::Decode, &place).map(Self::Recode);
        }
        if let Some(entries) = &spec.encode {
            let place = place.child("encode");
            return recode::compile(entries, Direction::Encode, &place).map(Self::Recode);
        }
        if !edits {
            return Body::compile(spec, place).map(Self::Body);
        }
        let removals = match &spec.unset {
            Some(list) => unset::compile(list, &place.child("unset")),
            None => Some(Vec::new()),
        };
        let assignments = match &spec.set {
            Some(entries) => set::compile(entries, &place.child("set")),
            None => Some(Vec::new()),
        };
        Some(Self::Edit(removals?, assignments?))
    }

    fn bind(&self, binding: &Binding<'_>) -> Result<Self, String> {
        Ok(match self {
            Self::Edit(removals, assignments) => {
                let bound: Result<Vec<Assignment>, String> =
                    assignments.iter().map(|a| a.bind(binding)).collect();
                Self::Edit(removals.clone(), bound?)
            }
            Self::Timestamp(retime) => Self::Timestamp(retime.bind(binding)),
            other => other.clone(),
        })
    }
}

impl Handler for Reformat {
    fn reads(&self) -> Reads {
        match &self.action {
            Action::Edit(removals, assignments) => {
                let removals = removals.iter().map(Removal::reads);
                let reads = removals.chain(assignments.iter().map(Assignment::reads));
                reads.max().unwrap_or(Reads::Nothing)
            }
            Action::Mask(mask) => mask.reads(),
            Action::Split(_) => Reads::Value,
            Action::Timestamp(retime) => retime.reads(),
            Action::Recode(list) => {
                let reads = list.iter().map(Recode::reads);
                reads.max().unwrap_or(Reads::Nothing)
            }
            Action::Body(body) => body.reads(),
        }
    }

    fn handle<'a>(
        &'a self,
        mut record: Record<'a>,
        out: &mut Vec<Record<'a>>,
    ) -> Result<(), Failure> {
        match &self.action {
            Action::Edit(removals, assignments) => {
                for removal in removals {
                    removal.apply(&mut record)?;
                }
                for assignment in assignments {
                    assignment.apply(&mut record)?;
                    self.limit.check(&record)?;
                }
            }
            Action::Mask(mask) => mask.apply(&mut record)?,
            Action::Split(split) => return split.apply(record, self.limit, out),
            Action::Timestamp(retime) => retime.apply(&mut record)?,
            Action::Recode(list) => {
                for recode in list {
                    recode.apply(&mut record, self.limit)?;
                    self.limit.check(&record)?;
                }
            }
            Action::Body(body) => body.apply(&mut record)?,
        }
        self.limit.check(&record)?;
        out.push(record);
        Ok(())
    }
}

/// Refuses the actions of the grammar that a later version brings.
fn refuse_later(spec: &ReformatSpec, place: &Place<'_>) -> Option<()> {
    let later = [
        ("cast", &spec.cast),
        ("flatten", &spec.flatten),
        ("envelope", &spec.envelope),
    ];
    match later.iter().find(|(_, value)| value.is_some()) {
        None => Some(()),
        Some((name, _)) => place.child(name).fault_with_help(
            format!("`{name}` comes with a later version"),
            format!("in this version: {SUPPORTED}"),
        ),
    }
}
