//! A chain: compiled once, bound once per source topic, applied to each record.

use super::fault::{Place, Unbound};
use super::filter::Filter;
use super::limit::{bytes_of, check_together};
use super::naming::TopicSoFar;
use super::observer::{Observer, StepView};
use super::outline::{self, Certainty, FlowNames, Outline};
use super::spec::StepSpec;
use super::step::{Ran, Step};
use super::{
    Binding, ChainFault, Failure, FailureCode, Inside, Reads, Registry, Shelf, Side, StepFailure,
    Targets, Verdict,
};
use crate::record::Record;
use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

/// Outputs of one record at most.
pub(crate) const MAX_OUTPUTS: usize = 10_000;

/// A compiled chain. Equal when its steps are equal as written.
#[derive(Clone, Debug, Default)]
pub struct Chain {
    specs: Vec<Arc<StepSpec>>,
    steps: Vec<Arc<Step>>,
}

/// What a chain costs per record. Ordered: each costs more than those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cost {
    /// Records pass as they are; whole batches may.
    PassThrough,
    /// Records are looked at, but for coordinates and headers only.
    Headers,
    /// The key and named fields of the value are read where a step asks.
    Fields,
    /// The whole value is read or written.
    Value,
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PassThrough => "pass-through",
            Self::Headers => "headers only",
            Self::Fields => "lazy fields",
            Self::Value => "full decode",
        })
    }
}

impl PartialEq for Chain {
    fn eq(&self, other: &Self) -> bool {
        let same = |(here, there): (&Arc<StepSpec>, &Arc<StepSpec>)| {
            Arc::ptr_eq(here, there) || here == there
        };
        self.specs.len() == other.specs.len() && self.specs.iter().zip(&other.specs).all(same)
    }
}

impl Chain {
    /// Compiles `steps` (with `use:` already replaced by the named chain's steps).
    ///
    /// # Errors
    /// Every mistake, each with its place inside `steps`.
    pub fn compile(steps: Vec<StepSpec>, registry: &Registry) -> Result<Self, Vec<ChainFault>> {
        let steps: Vec<_> = steps.into_iter().map(Arc::new).map(Some).collect();
        let (chain, _, faults) = Self::sound(&steps, registry, &mut Shelf::default());
        match faults.is_empty() {
            true => Ok(chain),
            false => Err(faults),
        }
    }

    /// [`Chain::compile`] for one chain of many, whose mistakes hide none of the others': the sound ones of
    /// `steps` (the absent ones could not be read), the index of each, and the mistakes, each with its place
    /// inside `steps`. What is on the `shelf` is not compiled again.
    pub fn sound(
        steps: &[Option<Arc<StepSpec>>],
        registry: &Registry,
        shelf: &mut Shelf,
    ) -> (Self, Vec<usize>, Vec<ChainFault>) {
        let (compiled, faults) = compile_each(steps, registry, shelf);
        let (mut chain, mut indices) = (Self::default(), Vec::new());
        for (index, both) in steps.iter().zip(compiled).enumerate() {
            if let (Some(spec), Some(step)) = both {
                chain.specs.push(Arc::clone(spec));
                chain.steps.push(step);
                indices.push(index);
            }
        }
        (chain, indices, faults)
    }

    /// The steps as written, in the order in which failures and verdicts count them.
    pub fn specs(&self) -> impl DoubleEndedIterator<Item = &StepSpec> + ExactSizeIterator + Clone {
        self.specs.iter().map(Arc::as_ref)
    }

    /// How many of the first steps are the same as written.
    pub fn in_common(&self, other: &Self) -> usize {
        let both = self.specs.iter().zip(&other.specs);
        both.take_while(|(here, there)| here == there).count()
    }

    /// The compiled steps.
    pub(super) fn steps(&self) -> &[Arc<Step>] {
        &self.steps
    }

    /// The steps as written and as compiled, with what each was compiled for.
    pub(super) fn shared(&self) -> impl Iterator<Item = (&Arc<StepSpec>, TopicSoFar, &Arc<Step>)> {
        let mut so_far = TopicSoFar::Known;
        self.specs.iter().zip(&self.steps).map(move |(spec, step)| {
            let before = so_far;
            so_far = step.so_far(before);
            (spec, before, step)
        })
    }

    /// What the chain reads of a record.
    pub fn reads(&self) -> Reads {
        let reads = self.steps.iter().map(|step| step.reads());
        reads.max().unwrap_or(Reads::Nothing)
    }

    /// What the chain costs per record.
    pub fn cost(&self) -> Cost {
        if self.steps.iter().all(|step| step.is_static_rename()) {
            return Cost::PassThrough;
        }
        match self.reads() {
            Reads::Nothing | Reads::Headers => Cost::Headers,
            Reads::Fields => Cost::Fields,
            Reads::Value => Cost::Value,
        }
    }

    /// The names that target topics may have, in symbols: for all source topics at once.
    pub fn outlines(&self, names: &FlowNames<'_>) -> Vec<Outline> {
        let mut outlines = vec![Outline::unchanged()];
        let mut through = Certainty::Always;
        for (spec, step) in self.specs.iter().zip(&self.steps) {
            outlines = step.outline(outlines, names);
            through = through.max(outline::lets_through(spec));
        }
        outlines.into_iter().map(|o| o.at_most(through)).collect()
    }

    /// Every capture in the templates of all steps that this topic cannot fill.
    pub fn unfilled(&self, binding: &Binding<'_>) -> Vec<ChainFault> {
        let steps = self.steps.iter().enumerate();
        let unfilled = steps.flat_map(|(index, step)| {
            let all = step.unfilled(binding).into_iter();
            all.map(move |unbound| of_step(index, unbound))
        });
        unfilled.collect()
    }

    /// Resolves everything that is constant for one source topic.
    ///
    /// # Errors
    /// A static template that this topic cannot fill, or that gives an illegal topic name.
    pub fn bind(&self, binding: &Binding<'_>) -> Result<BoundChain, ChainFault> {
        refuse_reserved_captures(binding)?;
        let mut targets = Targets {
            known: vec![binding.topic.to_owned()],
            by_content: Vec::new(),
        };
        let mut steps = Vec::with_capacity(self.steps.len());
        for (index, step) in self.steps.iter().enumerate() {
            let bound = step.bind(binding, &mut targets);
            steps.push(bound.map_err(|unbound| of_step(index, unbound))?);
        }
        let pass_through = match targets.known.as_slice() {
            [only] if self.cost() == Cost::PassThrough => Some(only.clone()),
            _ => None,
        };
        Ok(BoundChain {
            steps,
            targets,
            pass_through,
        })
    }
}

fn of_step(index: usize, unbound: Unbound) -> ChainFault {
    ChainFault {
        pointer: format!("/{index}"),
        side: Side::Value,
        inside: unbound.inside,
        message: unbound.message,
        help: unbound.help,
    }
}

/// Compiles what is there. After a step that is not, the topic's name counts as known: of what is
/// wrong nothing shall follow.
fn compile_each(
    steps: &[Option<Arc<StepSpec>>],
    registry: &Registry,
    shelf: &mut Shelf,
) -> (Vec<Option<Arc<Step>>>, Vec<ChainFault>) {
    let faults = RefCell::new(Vec::new());
    let root = Place::root(&faults);
    let mut compiled = Vec::with_capacity(steps.len());
    let mut so_far = TopicSoFar::Known;
    for (index, spec) in steps.iter().enumerate() {
        let step = spec.as_ref().and_then(|spec| {
            let compile = || Step::compile(spec, registry, so_far, &root.child(index));
            shelf.compile(spec, so_far, compile)
        });
        so_far = match &step {
            Some(step) => step.so_far(so_far),
            None => TopicSoFar::Known,
        };
        compiled.push(step);
    }
    (compiled, faults.into_inner())
}

/// A capture called like a placeholder or a path could never be read.
fn refuse_reserved_captures(binding: &Binding<'_>) -> Result<(), ChainFault> {
    let mut names = binding.selected_by.captures();
    match names.find(|name| super::template::is_reserved(name)) {
        None => Ok(()),
        Some(name) => Err(ChainFault {
            pointer: String::new(),
            side: Side::Value,
            inside: Some(Inside {
                text: name.to_owned(),
                bytes: 0..name.len(),
            }),
            message: format!("the capture `{name}` is called like a placeholder or a path"),
            help: Some("give the capture another name".to_owned()),
        }),
    }
}

/// A chain bound to one source topic. A clone remembers nothing of the records of the original.
#[derive(Clone, Debug)]
pub struct BoundChain {
    steps: Vec<Step>,
    targets: Targets,
    pass_through: Option<String>,
}

impl BoundChain {
    /// The chain for one source partition of the topic: one whose steps remember records (`dedupe`)
    /// has a memory for each partition, which ends with it; any other one is shared.
    pub fn for_partition(self: &Arc<Self>) -> Arc<Self> {
        match self.steps.iter().any(Step::remembers) {
            true => Arc::new(Self::clone(self)),
            false => Arc::clone(self),
        }
    }

    /// [`BoundChain::for_partition`] of a partition that had `before`, whose chain shares its first
    /// `unchanged` steps: what these remember they go on with. A step behind one that changed may
    /// see the same record otherwise, and begins anew.
    pub fn taking_over(self: &Arc<Self>, before: &Self, unchanged: usize) -> Arc<Self> {
        let mut own = self.for_partition();
        // A chain that remembers nothing is shared, and has nothing to take over.
        if let Some(chain) = Arc::get_mut(&mut own) {
            let both = chain.steps.iter_mut().zip(&before.steps);
            both.take(unchanged)
                .for_each(|(step, before)| step.take_over(before));
        }
        own
    }

    /// The target topics that it can write.
    pub fn targets(&self) -> &Targets {
        &self.targets
    }

    /// The target topic, if every record passes unchanged but for the topic's name: such records
    /// need not be shown to [`BoundChain::apply`] at all.
    pub fn pass_through(&self) -> Option<&str> {
        self.pass_through.as_deref()
    }

    /// Runs the chain on one record. Outputs are appended to `out`; after a failure or a drop
    /// nothing was appended. Panics of handlers are caught here.
    ///
    /// # Errors
    /// The first step's failure; it settles the whole input record.
    pub fn apply<'a>(
        &'a self,
        record: Record<'a>,
        out: &mut Vec<Record<'a>>,
    ) -> Result<Verdict, StepFailure> {
        self.apply_observed(record, out, &mut ())
    }

    /// [`BoundChain::apply`], with somebody who is told of every step.
    ///
    /// # Errors
    /// The first step's failure; it settles the whole input record.
    pub fn apply_observed<'a, O: Observer>(
        &'a self,
        record: Record<'a>,
        out: &mut Vec<Record<'a>>,
        observer: &mut O,
    ) -> Result<Verdict, StepFailure> {
        let base = out.len();
        out.push(record);
        for (index, step) in self.steps.iter().enumerate() {
            if let Err(failure) = advance((index, step), base, out, observer) {
                out.truncate(base);
                return Err(StepFailure {
                    step: index,
                    failure,
                    on_error: step.on_error(),
                });
            }
            if out.len() == base {
                return Ok(Verdict::Dropped { step: index });
            }
        }
        Ok(Verdict::Forward)
    }
}

/// Takes everything in `out` from `base` on through `step`. The common single record goes without
/// a list in between.
fn advance<'a, O: Observer>(
    step: (usize, &'a Step),
    base: usize,
    out: &mut Vec<Record<'a>>,
    observer: &mut O,
) -> Result<(), Failure> {
    if out.len() == base + 1
        && let Some(filter) = step.1.filter()
    {
        return sift(step, filter, out, observer);
    }
    if out.len() == base + 1
        && let Some(record) = out.pop()
    {
        run(step, record, out, observer)?;
        return limit(out.len() - base);
    }
    let mut bytes = 0;
    for record in out.split_off(base) {
        let before = out.len();
        run(step, record, out, observer)?;
        limit(out.len() - base)?;
        bytes += out[before..].iter().map(bytes_of).sum::<usize>();
        check_together(bytes)?;
    }
    Ok(())
}

/// Takes the last record through a filter, without moving it.
fn sift<'a, O: Observer>(
    (index, step): (usize, &'a Step),
    filter: &Filter,
    out: &mut Vec<Record<'a>>,
    observer: &mut O,
) -> Result<(), Failure> {
    let Some(record) = out.last() else {
        return Ok(());
    };
    observer.enters(StepView { index, step }, record);
    let sifted = step.sift(filter, record);
    if !matches!(sifted, Ok((true, _))) {
        out.pop();
    }
    let left = out.len().saturating_sub(1)..;
    let (records, failure) = match &sifted {
        Ok((true, Ran::Through)) => (&out[left], None),
        Ok((true, Ran::Passed(failure))) => (&out[left], Some(failure)),
        Ok((false, _)) => (&[][..], None),
        Err(failure) => (&[][..], Some(failure)),
    };
    observer.leaves(index, records, failure);
    sifted.map(drop)
}

fn run<'a, O: Observer>(
    (index, step): (usize, &'a Step),
    record: Record<'a>,
    out: &mut Vec<Record<'a>>,
    observer: &mut O,
) -> Result<(), Failure> {
    observer.enters(StepView { index, step }, &record);
    let before = out.len();
    let ran = step.run(record, out);
    match &ran {
        Ok(Ran::Through) => observer.leaves(index, &out[before..], None),
        Ok(Ran::Passed(failure)) | Err(failure) => {
            observer.leaves(index, &out[before..], Some(failure));
        }
    }
    ran.map(|_| ())
}

fn limit(outputs: usize) -> Result<(), Failure> {
    if outputs <= MAX_OUTPUTS {
        return Ok(());
    }
    let detail = format!("more than {MAX_OUTPUTS} outputs");
    Err(Failure::new(FailureCode::TooMany, detail))
}
