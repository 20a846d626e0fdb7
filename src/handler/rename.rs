//! `rename`: the topic, headers or fields get other names; what they hold stays.

use super::fault::{Place, Unbound};
use super::json::{Segment, edit};
use super::naming::{Naming, TopicSoFar};
use super::outline::{Certainty, FlowNames, Outline};
use super::path::Path;
use super::predicate::Predicate;
use super::spec::{Entries, RenameSpec, ToSpec};
use super::template::Template;
use super::{Binding, Failure, FailureCode, Handler, Reads, Targets};
use crate::record::Record;
use serde_json::Value;
use std::borrow::Cow;

/// A compiled rename.
#[derive(Clone, Debug)]
pub(crate) enum Rename {
    /// The topic: the first choice that holds.
    Topic(Vec<Choice>),
    /// Headers, old name and new.
    Headers(Vec<(String, String)>),
    /// Fields.
    Fields(Vec<FieldRename>),
}

/// A topic with its condition.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    when: Option<Predicate>,
    naming: Naming,
}

/// A field that gets another name in its object.
#[derive(Clone, Debug)]
pub(crate) struct FieldRename {
    old: Path,
    new: String,
}

impl Rename {
    /// Compiles `spec`, reporting mistakes at `place`.
    pub(crate) fn compile(
        spec: &RenameSpec,
        so_far: TopicSoFar,
        place: &Place<'_>,
    ) -> Option<Self> {
        if spec.allow.is_some() && spec.topic.is_none() {
            return place.child("allow").fault_with_help(
                "`allow` belongs to `topic`",
                "in `to`, each entry has its own",
            );
        }
        match (&spec.topic, &spec.to, &spec.header, &spec.field) {
            (Some(topic), None, None, None) => {
                let naming = Naming::compile(topic, spec.allow.as_deref(), so_far, place)?;
                Some(Self::Topic(vec![Choice { when: None, naming }]))
            }
            (None, Some(list), None, None) => {
                compile_choices(list, so_far, &place.child("to")).map(Self::Topic)
            }
            (None, None, Some(headers), None) => {
                compile_headers(headers, &place.child("header")).map(Self::Headers)
            }
            (None, None, None, Some(fields)) => {
                compile_fields(fields, &place.child("field")).map(Self::Fields)
            }
            _ => place.fault("a rename has exactly one of `topic`, `to`, `header` and `field`"),
        }
    }

    /// Whether the topic's name is still known when the topic is bound, after this step.
    pub(crate) fn so_far(&self, before: TopicSoFar) -> TopicSoFar {
        let Self::Topic(choices) = self else {
            return before;
        };
        let by_content = |c: &Choice| c.naming.so_far() == TopicSoFar::ByContent;
        match choices.iter().any(by_content) {
            true => TopicSoFar::ByContent,
            false => TopicSoFar::Known,
        }
    }

    /// Resolves what is constant for the bound topic; gives the topics that this may name, `None`
    /// if it names none.
    ///
    /// # Errors
    /// A template that the topic cannot fill, or an illegal name.
    pub(crate) fn bind(
        &self,
        binding: &Binding<'_>,
        before: &Targets,
    ) -> Result<(Self, Option<Targets>), Unbound> {
        let Self::Topic(choices) = self else {
            return Ok((self.clone(), None));
        };
        let mut after = Targets::default();
        let mut bound = Vec::with_capacity(choices.len());
        for choice in choices {
            bound.push(Choice {
                when: choice.when.clone(),
                naming: choice.naming.bind(binding, before, &mut after)?,
            });
        }
        Ok((Self::Topic(bound), Some(after)))
    }

    /// Shows each of its templates to `see`.
    pub(crate) fn each_template(&self, see: &mut dyn FnMut(&Template)) {
        if let Self::Topic(choices) = self {
            choices.iter().for_each(|c| see(c.naming.template()));
        }
    }

    /// The entry of `to` that holds for `record`.
    pub(crate) fn entry(&self, record: &Record<'_>) -> Option<usize> {
        match self {
            Self::Topic(choices) => first_that_holds(choices, record).ok().flatten(),
            Self::Headers(_) | Self::Fields(_) => None,
        }
    }

    /// The names that it may give, in symbols; `None` if it names no topic.
    pub(crate) fn outline(
        &self,
        before: &[Outline],
        names: &FlowNames<'_>,
    ) -> Option<Vec<Outline>> {
        let Self::Topic(choices) = self else {
            return None;
        };
        let certainty = match choices.as_slice() {
            [only] if only.when.is_none() => Certainty::Always,
            _ => Certainty::ByRecord,
        };
        let after = choices.iter().flat_map(|c| c.naming.outline(before, names));
        Some(after.map(|outline| outline.at_most(certainty)).collect())
    }

    /// Whether it only gives the topic one name that is known when the topic is bound.
    pub(crate) fn is_static(&self) -> bool {
        match self {
            Self::Topic(choices) => match choices.as_slice() {
                [only] => only.when.is_none() && only.naming.so_far() == TopicSoFar::Known,
                _ => false,
            },
            Self::Headers(_) | Self::Fields(_) => false,
        }
    }
}

impl Handler for Rename {
    fn reads(&self) -> Reads {
        match self {
            Self::Topic(choices) => {
                let reads = choices.iter().map(|choice| {
                    let when = choice
                        .when
                        .as_ref()
                        .map_or(Reads::Nothing, Predicate::reads);
                    when.max(choice.naming.reads())
                });
                reads.max().unwrap_or(Reads::Nothing)
            }
            Self::Headers(_) => Reads::Headers,
            Self::Fields(_) => Reads::Value,
        }
    }

    fn handle<'a>(
        &'a self,
        mut record: Record<'a>,
        out: &mut Vec<Record<'a>>,
    ) -> Result<(), Failure> {
        match self {
            Self::Topic(choices) => record.topic = choose(choices, &record)?,
            Self::Headers(names) => rename_headers(names, &mut record),
            Self::Fields(fields) => {
                for field in fields {
                    field.rename(&mut record)?;
                }
            }
        }
        out.push(record);
        Ok(())
    }
}

fn choose<'a>(choices: &'a [Choice], record: &Record<'_>) -> Result<Cow<'a, str>, Failure> {
    if let Some(choice) = first_that_holds(choices, record)? {
        return choices[choice].naming.name(record);
    }
    let detail = "no entry of `to` holds for the record".to_owned();
    Err(Failure::new(FailureCode::DeniedTopic, detail))
}

fn first_that_holds(choices: &[Choice], record: &Record<'_>) -> Result<Option<usize>, Failure> {
    for (index, choice) in choices.iter().enumerate() {
        let holds = match &choice.when {
            Some(predicate) => predicate.holds(record)?,
            None => true,
        };
        if holds {
            return Ok(Some(index));
        }
    }
    Ok(None)
}

fn rename_headers<'a>(names: &'a [(String, String)], record: &mut Record<'a>) {
    for (old, new) in names {
        if record.headers.last(old.as_bytes()).is_none() {
            continue;
        }
        for header in record.headers.make_mut() {
            if *header.name == *old.as_bytes() {
                header.name = Cow::Borrowed(new.as_bytes());
            }
        }
    }
}

impl FieldRename {
    fn rename(&self, record: &mut Record<'_>) -> Result<(), Failure> {
        let document = match self.old {
            Path::Key(_) => &mut record.key,
            _ => &mut record.value,
        };
        let (Some(bytes), Some((Segment::Name(old), parents))) =
            (document.as_deref(), self.old.segments().split_last())
        else {
            return Ok(());
        };
        if let Some(changed) = edit::rename(bytes, parents, old, &self.new)? {
            *document = Some(Cow::Owned(changed));
        }
        Ok(())
    }
}

fn compile_choices(list: &[ToSpec], so_far: TopicSoFar, place: &Place<'_>) -> Option<Vec<Choice>> {
    if list.is_empty() {
        return place.fault("an empty list names no topic");
    }
    let compiled = list.iter().enumerate().map(|(index, entry)| {
        let place = place.child(index);
        let when = match &entry.when {
            None => Some(None),
            Some(when) => Predicate::compile(&when.0, &place.child("when")).map(Some),
        };
        if entry.when.is_none() && index + 1 < list.len() {
            return place.fault("an entry without `when` always holds: those after it never do");
        }
        let naming = Naming::compile(&entry.topic, entry.allow.as_deref(), so_far, &place);
        Some(Choice {
            when: when?,
            naming: naming?,
        })
    });
    let compiled: Vec<Option<Choice>> = compiled.collect();
    compiled.into_iter().collect()
}

fn compile_headers(entries: &Entries, place: &Place<'_>) -> Option<Vec<(String, String)>> {
    names(entries, place, |old, new, place| {
        if new.is_empty() {
            return place.fault("a header's new name is empty");
        }
        for (name, place) in [(old, &place.key()), (new, place)] {
            if name.ends_with('*') {
                let help = "write a line for each of them";
                return place.fault_with_help("a header is renamed by its whole name", help);
            }
            if let Some(bare) = name.strip_prefix("header.") {
                let help = format!("write `{bare}`");
                return place.fault_with_help("headers are named here without `header.`", help);
            }
        }
        Some((old.to_owned(), new.to_owned()))
    })
}

fn compile_fields(entries: &Entries, place: &Place<'_>) -> Option<Vec<FieldRename>> {
    names(entries, place, |old, new, place| {
        let (old, new) = match (Path::parse_one(old), Path::parse_one(new)) {
            (Ok(old), Ok(new)) => (old, new),
            (Err(fault), _) => return place.key().fault_path(old, fault),
            (_, Err(fault)) => return place.fault_path(new, fault),
        };
        let same_root = old.is_of_value() == new.is_of_value();
        match (old.segments().split_last(), new.segments().split_last()) {
            (Some((Segment::Name(_), from)), Some((Segment::Name(new), to)))
                if same_root && from == to =>
            {
                let new = new.clone();
                Some(FieldRename { old, new })
            }
            (Some((Segment::Name(_), _)), Some((Segment::Name(_), _))) => place.fault_with_help(
                "a renamed field stays in its object",
                "to move it, `set` the new path `{ from: … }` and `unset` the old one in a later step",
            ),
            _ => place.fault("a field of a JSON value or key is expected, such as `value.usr: value.user`"),
        }
    })
}

/// Compiles the entries of a map from old names to new ones.
fn names<T>(
    entries: &Entries,
    place: &Place<'_>,
    compile: impl Fn(&str, &str, &Place<'_>) -> Option<T>,
) -> Option<Vec<T>> {
    if entries.0.is_empty() {
        return place.fault("an empty map renames nothing");
    }
    let compiled = entries.0.iter().map(|(old, new)| {
        let place = place.child(old);
        match new {
            Value::String(new) => compile(old, new, &place),
            _ => place.fault("the new name is a text"),
        }
    });
    let compiled: Vec<Option<T>> = compiled.collect();
    compiled.into_iter().collect()
}
