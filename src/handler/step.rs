//! One compiled step: an action and its modifiers.

use super::analysis::Part;
use super::fault::{Place, Unbound, suggest};
use super::filter::Filter;
use super::limit::{RecordLimit, bytes_of};
use super::naming::{TopicSoFar, add};
use super::observer::Way;
use super::outline::{Certainty, FlowNames, Outline};
use super::predicate::Predicate;
use super::reformat::Reformat;
use super::rename::Rename;
use super::spec::{StepOnError, StepSpec};
use super::template::Template;
use super::{Binding, Failure, FailureCode, Handler, Reads, Registry, Targets};
use crate::config::spec::OnError;
use crate::record::Record;
use std::collections::BTreeSet;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// A compiled step.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    when: Option<Predicate>,
    on_error: Option<StepOnError>,
    action: Action,
    limit: RecordLimit,
}

/// What a step does: a closed set, and one place for handlers that others bring.
#[derive(Clone)]
enum Action {
    Filter(Filter),
    Rename(Rename),
    Reformat(Reformat),
    Use(Arc<dyn Handler>),
}

/// How a step that did not fail the record ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ran {
    /// It did its work.
    Through,
    /// It failed, and `on_error: pass` lets the record go on as it was.
    Passed(Failure),
}

impl Step {
    /// Compiles `spec`, reporting mistakes at `place`.
    pub(crate) fn compile(
        spec: &StepSpec,
        registry: &Registry,
        so_far: TopicSoFar,
        place: &Place<'_>,
    ) -> Option<Self> {
        let when = match &spec.when {
            None => Some(None),
            Some(when) => Predicate::compile(&when.0, &place.child("when")).map(Some),
        };
        let action = Action::compile(spec, registry, so_far, place);
        Some(Self {
            when: when?,
            on_error: spec.on_error,
            action: action?,
            limit: RecordLimit::default(),
        })
    }

    /// Whether the topic's name is still known when the topic is bound, after this step.
    pub(crate) fn so_far(&self, before: TopicSoFar) -> TopicSoFar {
        match (&self.action, before) {
            (Action::Rename(_), TopicSoFar::ByContent) if self.may_be_passed() => before,
            (Action::Rename(rename), _) => rename.so_far(before),
            _ => before,
        }
    }

    /// Whether a record may come through as it was before. A static rename cannot fail.
    fn may_be_passed(&self) -> bool {
        let may_fail = !self.is_static_rename();
        self.when.is_some() || (may_fail && self.on_error == Some(StepOnError::Pass))
    }

    /// What it reads of a record.
    pub(crate) fn reads(&self) -> Reads {
        let when = self.when.as_ref().map_or(Reads::Nothing, Predicate::reads);
        when.max(self.action.handler().reads())
    }

    /// Whether all it does is to give each record of a topic the same target topic.
    pub(crate) fn is_static_rename(&self) -> bool {
        match &self.action {
            Action::Rename(rename) => self.when.is_none() && rename.is_static(),
            Action::Filter(_) | Action::Reformat(_) | Action::Use(_) => false,
        }
    }

    /// Takes the names so far, in symbols, over the step.
    pub(crate) fn outline(&self, before: Vec<Outline>, names: &FlowNames<'_>) -> Vec<Outline> {
        let Action::Rename(rename) = &self.action else {
            return before;
        };
        let Some(after) = rename.outline(&before, names) else {
            return before;
        };
        if !self.may_be_passed() {
            return after;
        }
        let both = after.into_iter().chain(before);
        both.map(|outline| outline.at_most(Certainty::ByRecord))
            .collect()
    }

    /// Whether it looks into the JSON of a record's key or value, or changes it.
    pub(crate) fn is_dear(&self) -> bool {
        let Action::Filter(filter) = &self.action else {
            return self.reads() >= Reads::Fields;
        };
        let when = self.when.iter().flat_map(Predicate::paths);
        let mut paths = when.chain(filter.paths());
        paths.any(|path| !path.segments().is_empty())
    }

    /// What it looks at, if it is a filter that depends on nothing dearer than headers.
    pub(crate) fn cheap_filter(&self) -> Option<BTreeSet<Part>> {
        let Action::Filter(filter) = &self.action else {
            return None;
        };
        if self.reads() > Reads::Headers || self.remembers() {
            return None;
        }
        let when = self.when.iter().flat_map(Predicate::paths);
        Some(when.chain(filter.paths()).map(Part::of).collect())
    }

    /// Whether what it does to a record depends on those before it in the partition.
    pub(crate) fn remembers(&self) -> bool {
        matches!(&self.action, Action::Filter(Filter::Dedupe(_)))
    }

    /// Goes on with what `before`, the same step of another chain, holds of the records before.
    pub(crate) fn take_over(&mut self, before: &Self) {
        if let (Action::Filter(Filter::Dedupe(here)), Action::Filter(Filter::Dedupe(before))) =
            (&mut self.action, &before.action)
        {
            here.take_over(before);
        }
    }

    /// Resolves what is constant for the bound topic, and takes `targets` over the step.
    ///
    /// # Errors
    /// What the topic cannot fill.
    pub(crate) fn bind(
        &self,
        binding: &Binding<'_>,
        targets: &mut Targets,
    ) -> Result<Self, Unbound> {
        let action = match &self.action {
            Action::Rename(rename) => {
                let (bound, named) = rename.bind(binding, targets)?;
                if let Some(named) = named {
                    self.retarget(named, targets);
                }
                Action::Rename(bound)
            }
            Action::Reformat(reformat) => Action::Reformat(reformat.bind(binding)?),
            other => other.clone(),
        };
        Ok(Self {
            when: self.when.clone(),
            on_error: self.on_error,
            action,
            limit: RecordLimit::of(binding.record_bytes),
        })
    }

    /// What of its templates cannot be filled for the bound topic.
    pub(crate) fn unfilled(&self, binding: &Binding<'_>) -> Vec<Unbound> {
        let mut unfilled = Vec::new();
        let mut see = |template: &Template| unfilled.extend(template.unfilled(binding));
        match &self.action {
            Action::Rename(rename) => rename.each_template(&mut see),
            Action::Reformat(reformat) => reformat.each_template(&mut see),
            Action::Filter(_) | Action::Use(_) => {}
        }
        unfilled
    }

    /// After the step a record's topic is one of `named`, or still one of `targets` if the step
    /// may let it pass.
    fn retarget(&self, mut named: Targets, targets: &mut Targets) {
        if self.may_be_passed() {
            targets.known.iter().for_each(|n| add(&mut named.known, n));
            named.by_content.append(&mut targets.by_content);
        }
        *targets = named;
    }

    /// Pushes what becomes of `record` to `out`. A failure leaves `out` as it was; a panic is a
    /// failure.
    ///
    /// # Errors
    /// The failure, unless the step lets failed records pass.
    pub(crate) fn run<'a>(
        &'a self,
        record: Record<'a>,
        out: &mut Vec<Record<'a>>,
    ) -> Result<Ran, Failure> {
        let before = out.len();
        let as_it_was = match self.on_error {
            Some(StepOnError::Pass) => Some(record.clone()),
            _ => None,
        };
        // A handler cannot leave a half-changed record behind: after a panic everything that it
        // pushed is cut off, and what it consumed is gone.
        let outcome = catch_unwind(AssertUnwindSafe(|| self.attempt(record, out)));
        let failure = match outcome {
            Ok(Ok(())) => return Ok(Ran::Through),
            Ok(Err(failure)) => failure,
            Err(_) => Failure::new(FailureCode::Panic, "the step panicked"),
        };
        out.truncate(before);
        match as_it_was {
            Some(record) => {
                out.push(record);
                Ok(Ran::Passed(failure))
            }
            None => Err(failure),
        }
    }

    /// The filter, if the step is one: it looks at a record where it stands.
    pub(crate) fn filter(&self) -> Option<&Filter> {
        match &self.action {
            Action::Filter(filter) => Some(filter),
            _ => None,
        }
    }

    /// Whether `filter`, which is this step's, keeps `record`. A panic is a failure.
    ///
    /// # Errors
    /// The failure, unless the step lets failed records pass.
    pub(crate) fn sift(
        &self,
        filter: &Filter,
        record: &Record<'_>,
    ) -> Result<(bool, Ran), Failure> {
        let outcome = catch_unwind(AssertUnwindSafe(|| match &self.when {
            Some(when) if !when.holds(record)? => Ok(true),
            _ => filter.keeps(record),
        }));
        let failure = match outcome {
            Ok(Ok(keeps)) => return Ok((keeps, Ran::Through)),
            Ok(Err(failure)) => failure,
            Err(_) => Failure::new(FailureCode::Panic, "the step panicked"),
        };
        match self.on_error {
            Some(StepOnError::Pass) => Ok((true, Ran::Passed(failure))),
            _ => Err(failure),
        }
    }

    fn attempt<'a>(&'a self, record: Record<'a>, out: &mut Vec<Record<'a>>) -> Result<(), Failure> {
        if let Some(when) = &self.when
            && !when.holds(&record)?
        {
            out.push(record);
            return Ok(());
        }
        if !self.action.may_grow() {
            return self.action.handler().handle(record, out);
        }
        let (before, base) = (bytes_of(&record), out.len());
        self.action.handler().handle(record, out)?;
        // What came too large is not this step's fault.
        let mut grown = out[base..].iter().filter(|r| bytes_of(r) > before);
        grown.try_for_each(|r| self.limit.check(r))
    }

    /// Which way `record` takes, without taking it.
    pub(crate) fn way(&self, record: &Record<'_>) -> Way {
        let when = self.when.as_ref();
        let when = when.and_then(|when| when.holds(record).ok());
        let entry = match &self.action {
            Action::Rename(rename) if when != Some(false) => rename.entry(record),
            _ => None,
        };
        Way { when, entry }
    }

    /// The step's own `on_error` as the engine knows it. `pass` never fails.
    pub(crate) fn on_error(&self) -> Option<OnError> {
        match self.on_error? {
            StepOnError::Stop => Some(OnError::Stop),
            StepOnError::Skip => Some(OnError::Skip),
            StepOnError::DeadLetter => Some(OnError::DeadLetter),
            StepOnError::Pass => None,
        }
    }
}

impl Action {
    fn compile(
        spec: &StepSpec,
        registry: &Registry,
        so_far: TopicSoFar,
        place: &Place<'_>,
    ) -> Option<Self> {
        match (&spec.filter, &spec.rename, &spec.reformat, &spec.use_) {
            (Some(filter), None, None, None) => {
                Filter::compile(filter, &place.child("filter")).map(Self::Filter)
            }
            (None, Some(rename), None, None) => {
                Rename::compile(rename, so_far, &place.child("rename")).map(Self::Rename)
            }
            (None, None, Some(reformat), None) => {
                Reformat::compile(reformat, &place.child("reformat")).map(Self::Reformat)
            }
            (None, None, None, Some(name)) => match registry.get(name) {
                Some(handler) => Some(Self::Use(Arc::clone(handler))),
                None => place.child("use").fault_with_help(
                    format!("`{name}` is neither a chain of the file nor a registered handler"),
                    suggest(name, registry.names()),
                ),
            },
            _ => place.fault("a step has exactly one of `filter`, `rename`, `reformat` and `use`"),
        }
    }

    /// Whether it may give out more bytes than it got. A reformat looks after that itself.
    fn may_grow(&self) -> bool {
        match self {
            Self::Filter(_) | Self::Reformat(_) => false,
            Self::Rename(rename) => !matches!(rename, Rename::Topic(_)),
            Self::Use(_) => true,
        }
    }

    fn handler(&self) -> &dyn Handler {
        match self {
            Self::Filter(filter) => filter,
            Self::Rename(rename) => rename,
            Self::Reformat(reformat) => reformat,
            Self::Use(handler) => handler.as_ref(),
        }
    }
}

impl fmt::Debug for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Filter(filter) => filter.fmt(f),
            Self::Rename(rename) => rename.fmt(f),
            Self::Reformat(reformat) => reformat.fmt(f),
            Self::Use(_) => f.write_str("Use(..)"),
        }
    }
}
