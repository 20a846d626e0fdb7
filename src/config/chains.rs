//! Handlers: `use:` resolved, steps read, chains compiled; every fault at its own place.

use crate::config::diagnostic::{Code, Diagnostic};
use crate::config::laid::Laid;
use crate::config::pointer;
use crate::config::scalar;
use crate::config::suggest;
use crate::config::validate::Check;
use crate::handler::{Chain, ChainFault, Inside, Misplaced, Shelf, Side, StepSpec};
use serde::Deserialize;
use serde_json::{Map, Value};
use serde_path_to_error::Segment;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A list of steps with every `use:` of a chain replaced, and where each step stands.
#[derive(Clone, Debug, Default)]
pub struct Steps<'v> {
    /// The steps, as written.
    pub list: Vec<&'v Value>,
    /// The pointer of each step.
    pub pointers: Vec<String>,
}

impl<'v> Steps<'v> {
    /// Those at `indices`.
    fn only(&self, indices: &[usize]) -> Self {
        Self {
            list: indices.iter().map(|i| self.list[*i]).collect(),
            pointers: indices.iter().map(|i| self.pointers[*i].clone()).collect(),
        }
    }

    /// The pointers of the steps whose own `on_error` is `word`.
    pub fn with_on_error<'a>(&'a self, word: &'a str) -> impl Iterator<Item = String> + 'a {
        let both = self.list.iter().zip(&self.pointers);
        both.filter(move |(step, _)| step.get("on_error").is_some_and(|w| w == word))
            .map(|(_, at)| pointer::child(at, "on_error"))
    }
}

/// The named chains of the file, and which of them are used.
pub struct Chains<'a> {
    named: Option<&'a Map<String, Value>>,
    used: BTreeSet<String>,
    /// The circles that were reported, each by the names in it.
    circles: BTreeSet<BTreeSet<String>>,
}

impl<'a> Chains<'a> {
    /// The chains of `document`'s `handlers:`.
    pub fn of(document: &'a Value) -> Self {
        Self {
            named: document.get("handlers").and_then(Value::as_object),
            used: BTreeSet::new(),
            circles: BTreeSet::new(),
        }
    }

    /// The chains that no route uses.
    pub fn unused(&self) -> impl Iterator<Item = &str> {
        let names = self
            .named
            .into_iter()
            .flatten()
            .map(|(name, _)| name.as_str());
        names.filter(|name| !self.used.contains(*name))
    }

    /// Counts the chains that chains use among the used ones: a chain that only another one uses
    /// is reported once, through that other one.
    pub fn used_by_chains(&mut self, alone: &Chains<'_>) {
        self.used.extend(alone.used.iter().cloned());
        self.circles.extend(alone.circles.iter().cloned());
    }

    /// The steps at `at` with every `use:` of a chain of the file replaced by that chain's steps.
    /// A `use:` of a registered handler stays.
    pub fn resolve<'v>(&mut self, steps: &'v [Value], at: &str, check: &mut Check<'_>) -> Steps<'v>
    where
        'a: 'v,
    {
        let mut resolved = Steps::default();
        self.append(steps, at, &mut Vec::new(), &mut resolved, check);
        resolved
    }

    /// The steps of the chain `name`, which stand at `at`, resolved.
    pub fn resolve_named<'v>(
        &mut self,
        name: &str,
        steps: &'v [Value],
        at: &str,
        check: &mut Check<'_>,
    ) -> Steps<'v>
    where
        'a: 'v,
    {
        let mut resolved = Steps::default();
        let mut inside = vec![name.to_owned()];
        self.append(steps, at, &mut inside, &mut resolved, check);
        resolved
    }

    fn append<'v>(
        &mut self,
        steps: &'v [Value],
        at: &str,
        inside: &mut Vec<String>,
        resolved: &mut Steps<'v>,
        check: &mut Check<'_>,
    ) where
        'a: 'v,
    {
        distinct(steps, at, check);
        for (index, step) in steps.iter().enumerate() {
            let at = pointer::item(at, index);
            let name = step.get("use").and_then(Value::as_str);
            let chain = name.and_then(|n| self.named?.get_key_value(n));
            match (name, chain) {
                (None, _) => {
                    resolved.list.push(step);
                    resolved.pointers.push(at);
                }
                (Some(name), Some((_, chain))) => {
                    self.used.insert(name.to_owned());
                    alone(step, &at, check);
                    if let Some(from) = inside.iter().position(|n| n == name) {
                        self.recursive(&at, &inside[from..], check);
                        continue;
                    }
                    inside.push(name.to_owned());
                    let steps = chain.as_array().map(Vec::as_slice).unwrap_or_default();
                    let chain_at = pointer::child("/handlers", name);
                    self.append(steps, &chain_at, inside, resolved, check);
                    inside.pop();
                }
                (Some(name), None) if check.options.registry.get(name).is_some() => {
                    resolved.list.push(step);
                    resolved.pointers.push(at);
                }
                (Some(name), None) => self.unknown(name, &at, check),
            }
        }
    }

    /// A circle is one mistake, wherever it is entered.
    fn recursive(&mut self, at: &str, circle: &[String], check: &mut Check<'_>) {
        if !self.circles.insert(circle.iter().cloned().collect()) {
            return;
        }
        let name = &circle[0];
        let message = format!(
            "the chain `{name}` uses itself: {} → {name}",
            circle.join(" → ")
        );
        check.say(Code::RecursiveChain, &pointer::child(at, "use"), message);
    }

    fn unknown(&self, name: &str, at: &str, check: &mut Check<'_>) {
        let at = pointer::child(at, "use");
        if check.is_wrong(&pointer::child("/handlers", name)) {
            return;
        }
        let chains = self.named.into_iter().flatten().map(|(n, _)| n.as_str());
        let names = chains.chain(check.options.registry.names());
        let help = suggest::help(name, names)
            .unwrap_or_else(|| "define it under the top-level `handlers:`".to_owned());
        let message = format!("unknown chain {}", check.quoted(&at, name));
        check.say(Code::UnknownChain, &at, message).help = Some(help);
    }
}

/// Steps are told apart by their names, in tests, logs and dead letters.
fn distinct(steps: &[Value], at: &str, check: &mut Check<'_>) {
    let named = |step: &Value| step.get("name").and_then(Value::as_str).map(str::to_owned);
    let names: Vec<Option<String>> = steps.iter().map(named).collect();
    for (index, name) in names.iter().enumerate() {
        let Some(name) = name else { continue };
        let before = &names[..index];
        let Some(first) = before.iter().position(|n| n.as_ref() == Some(name)) else {
            continue;
        };
        let at_name = |index| pointer::child(&pointer::item(at, index), "name");
        let (first, second) = (check.document.place(&at_name(first)), at_name(index));
        let message = format!(
            "two steps of one list are called {}",
            check.quoted(&second, name)
        );
        let diagnostic = check.say(Code::Conflict, &second, message);
        diagnostic.related.push((first, "the first one".to_owned()));
        diagnostic.help = Some("call one of them otherwise: tests, logs and dead letters tell steps apart by their names".to_owned());
    }
}

/// What stands beside the `use:` of a chain would be lost when its steps take its place.
fn alone(step: &Value, at: &str, check: &mut Check<'_>) {
    let beside = step.as_object().into_iter().flatten();
    for (name, _) in beside.filter(|(name, _)| *name != "use") {
        let at = pointer::child(at, name);
        let message = format!("`{name}` cannot stand beside the `use` of a chain");
        check.say_of_key(Code::Conflict, &at, message).help =
            Some("write it at the steps of the chain".to_owned());
    }
}

/// Steps that were read and compiled.
pub enum Compiled<'v> {
    /// All of them.
    Whole(Chain),
    /// The sound ones. What is wrong in the others is reported.
    Part(Chain, Steps<'v>),
}

impl Compiled<'_> {
    /// The chain, if no step is wrong.
    pub fn whole(self) -> Option<Chain> {
        match self {
            Self::Whole(chain) => Some(chain),
            Self::Part(..) => None,
        }
    }
}

/// Reads and compiles resolved steps, and reports what is wrong in them. A step that is wrong hides nothing
/// that is wrong in others.
pub fn compile<'v>(steps: &Steps<'v>, shelf: &mut Shelf, check: &mut Check<'_>) -> Compiled<'v> {
    let registry = check.options.registry;
    let read: Vec<Option<Arc<StepSpec>>> = steps
        .list
        .iter()
        .zip(&steps.pointers)
        .map(|(step, at)| {
            let sound = !check.is_wrong_below(at) && every_number_is_held(step, at, check);
            sound.then(|| shelf.read(step, || read(step, at, check)))?
        })
        .collect();
    let (chain, sound, faults) = Chain::sound(&read, registry, shelf);
    report(faults, steps, check);
    if sound.len() < steps.list.len() {
        return Compiled::Part(chain, steps.only(&sound));
    }
    misplaced(&chain, steps, check);
    Compiled::Whole(chain)
}

fn report(faults: Vec<ChainFault>, steps: &Steps<'_>, check: &mut Check<'_>) {
    for fault in faults {
        let at = place_of_fault(&fault.pointer, steps);
        let place = match (fault.side, fault.inside) {
            (Side::Value, None) => check.document.place(&at),
            (Side::Key, None) => check.document.place_of_key(&at),
            (Side::Value, Some(Inside { text, bytes })) => {
                check.document.place_inside(&at, &text, bytes)
            }
            (Side::Key, Some(Inside { text, bytes })) => {
                check.document.place_inside_key(&at, &text, bytes)
            }
        };
        let diagnostic = Diagnostic::new(Code::BadStep, place, fault.message);
        check.report(diagnostic.help_if(fault.help));
    }
}

/// Warns of filters that would save more before another step.
fn misplaced(chain: &Chain, steps: &Steps<'_>, check: &mut Check<'_>) {
    for Misplaced { filter, behind } in chain.misplaced() {
        let (Some(at), Some(dear)) = (steps.pointers.get(filter), steps.pointers.get(behind))
        else {
            continue;
        };
        let message =
            "the filter needs no field of the key or the value, and stands behind a step that does";
        let before = check.document.place(dear);
        let at = pointer::child(at, "filter");
        let diagnostic = check.say_of_key(Code::DearFirst, &at, message.to_owned());
        diagnostic
            .related
            .push((before, "this step is paid for by every record".to_owned()));
        diagnostic.help =
            Some("put the filter first: what it drops then costs next to nothing".to_owned());
    }
}

fn read(step: &Value, at: &str, check: &mut Check<'_>) -> Option<StepSpec> {
    if let Ok(spec) = StepSpec::deserialize(step) {
        return Some(spec);
    }
    // Again, for the place of what is wrong.
    let error = serde_path_to_error::deserialize::<_, StepSpec>(step).err()?;
    let mut at = at.to_owned();
    for segment in error.path() {
        at = match segment {
            Segment::Seq { index } => pointer::item(&at, *index),
            Segment::Map { key } => pointer::child(&at, key),
            Segment::Enum { .. } | Segment::Unknown => at,
        };
    }
    // What serde says may repeat the value; a value that was put in is not repeated.
    let message = match check.document.may_be_shown(&at) {
        true => error.inner().to_string(),
        false => "the step is not one that exists".to_owned(),
    };
    check.say(Code::BadStep, &at, message);
    None
}

/// Reports numbers of a step that would be rounded, or be texts, without a word.
fn every_number_is_held(value: &Value, at: &str, check: &mut Check<'_>) -> bool {
    let mut all = true;
    match value {
        Value::Object(map) => {
            for (name, member) in map.iter().filter(|(_, member)| is_doubtful(member)) {
                all &= every_number_is_held(member, &pointer::child(at, name), check);
            }
        }
        Value::Array(items) => {
            let items = items.iter().enumerate();
            for (index, item) in items.filter(|(_, item)| is_doubtful(item)) {
                all &= every_number_is_held(item, &pointer::item(at, index), check);
            }
        }
        Value::Number(_) | Value::String(_) => all = number_is_held(value, at, check),
        Value::Null | Value::Bool(_) => {}
    }
    all
}

/// Whether a number that would be rounded, or be a text, may be in `value`. Integers are held as they are.
fn is_doubtful(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.values().any(is_doubtful),
        Value::Array(items) => items.iter().any(is_doubtful),
        Value::Number(number) => number.is_f64(),
        Value::String(text) => {
            let unsigned = text.trim_start_matches(['+', '-', '.']);
            unsigned.starts_with(|c: char| c.is_ascii_digit())
        }
        Value::Null | Value::Bool(_) => false,
    }
}

fn number_is_held(value: &Value, at: &str, check: &mut Check<'_>) -> bool {
    let Some(spot) = check.document.spots.get(at) else {
        return true;
    };
    let spelled = check.document.sources.slice(spot.value).to_owned();
    // What stands in quotes is a text, and what was put in is not spelled here.
    let is_plain = value.is_number() || value.as_str() == Some(&spelled);
    if !is_plain || !scalar::is_beyond(&spelled) {
        return true;
    }
    let message = format!("`{spelled}` has more digits than a number of the file can keep");
    check.say(Code::BadStep, at, message).help = Some(
        "an expression compares and writes it exactly, with a point in it: `value.id == 12….0`; \
         in quotes it is a text"
            .to_owned(),
    );
    false
}

/// `/1/filter/keep` inside the steps → the same inside the file.
pub fn place_of_fault(fault: &str, steps: &Steps<'_>) -> String {
    let inside = fault.trim_start_matches('/');
    let (index, rest) = inside.split_once('/').unwrap_or((inside, ""));
    let step = index
        .parse::<usize>()
        .ok()
        .and_then(|i| steps.pointers.get(i));
    match (step, rest) {
        (Some(step), "") => step.clone(),
        (Some(step), rest) => format!("{step}/{rest}"),
        (None, _) => steps.pointers.first().cloned().unwrap_or_default(),
    }
}

/// Reads a value of the file into its type. What the schema let through and the type does not
/// take is a fault at its place.
pub fn read_raw<'v, T: Deserialize<'v>>(
    value: Laid<'v>,
    at: &str,
    check: &mut Check<'_>,
) -> Option<T> {
    if let Ok(raw) = T::deserialize(value) {
        return Some(raw);
    }
    // What the schema refused inside is reported already.
    if check.is_wrong_below(at) {
        return None;
    }
    // Again, for the place of what is wrong.
    let error = serde_path_to_error::deserialize::<_, T>(value).err()?;
    let path = error.path().to_string();
    let message = format!("`{path}` is not what it must be");
    let at = format!("{at}/{}", path.replace('.', "/"));
    check.say(Code::WrongValue, &at, message);
    None
}
