//! Steps that many chains have: read, compiled and held once.
//!
//! In a file of a thousand routes most steps are those of the route before, by a shared chain or because
//! they were copied: what differs is some names. Two steps are the same if they are written alike.

use super::Chain;
use super::naming::TopicSoFar;
use super::spec::StepSpec;
use super::step::Step;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;

/// What was read and compiled so far. Only what has no mistake is kept, so that every mistake is reported
/// at each of its places.
#[derive(Debug, Default)]
pub struct Shelf {
    read: HashMap<String, Arc<StepSpec>>,
    /// By the address of the spec, which is held beside it and so is nobody else's.
    compiled: HashMap<(usize, TopicSoFar), (Arc<StepSpec>, Arc<Step>)>,
    /// The steps of chains that run, by what they look like in writing: secrets look alike.
    running: HashMap<String, Vec<Arc<StepSpec>>>,
}

impl Shelf {
    /// With the steps of chains that run: a step that one of them has is held once, and is not compiled
    /// again. All have the handlers of one registry.
    pub fn beside<'c>(running: impl IntoIterator<Item = &'c Chain>) -> Self {
        let mut shelf = Self::default();
        for (spec, so_far, step) in running.into_iter().flat_map(Chain::shared) {
            let key = (Arc::as_ptr(spec).addr(), so_far);
            if shelf.compiled.contains_key(&key) {
                continue;
            }
            let kept = (Arc::clone(spec), Arc::clone(step));
            shelf.compiled.insert(key, kept);
            let alike = shelf.running.entry(looks(spec)).or_default();
            if !alike.iter().any(|known| Arc::ptr_eq(known, spec)) {
                alike.push(Arc::clone(spec));
            }
        }
        shelf
    }

    /// The step that `written` means; `read` reads it if none is written alike.
    pub fn read(
        &mut self,
        written: &Value,
        read: impl FnOnce() -> Option<StepSpec>,
    ) -> Option<Arc<StepSpec>> {
        let text = written.to_string();
        if let Some(known) = self.read.get(&text) {
            return Some(Arc::clone(known));
        }
        let new = read()?;
        let new = self.same_running(&new).unwrap_or_else(|| Arc::new(new));
        self.read.insert(text, Arc::clone(&new));
        Some(new)
    }

    /// The step of a running chain that is the same, secrets and the order of entries included.
    fn same_running(&self, new: &StepSpec) -> Option<Arc<StepSpec>> {
        if self.running.is_empty() {
            return None;
        }
        let mut alike = self.running.get(&looks(new))?.iter();
        alike.find(|running| ***running == *new).cloned()
    }

    /// `spec` compiled; `compile` does it if it is not here.
    pub(super) fn compile(
        &mut self,
        spec: &Arc<StepSpec>,
        so_far: TopicSoFar,
        compile: impl FnOnce() -> Option<Step>,
    ) -> Option<Arc<Step>> {
        let key = (Arc::as_ptr(spec).addr(), so_far);
        if let Some((_, known)) = self.compiled.get(&key) {
            return Some(Arc::clone(known));
        }
        let new = Arc::new(compile()?);
        let kept = (Arc::clone(spec), Arc::clone(&new));
        self.compiled.insert(key, kept);
        Some(new)
    }
}

/// A step in writing.
fn looks(spec: &StepSpec) -> String {
    // It is a map with texts as keys: there is nothing that JSON cannot write.
    serde_json::to_string(spec).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handler::{Chain, Registry};
    use serde::Deserialize;
    use serde_json::json;

    fn chain(steps: &[Value], shelf: &mut Shelf) -> Chain {
        let read = |step| shelf.read(step, || StepSpec::deserialize(step).ok());
        let specs: Vec<_> = steps.iter().map(read).collect();
        let (chain, sound, _) = Chain::sound(&specs, &Registry::default(), shelf);
        assert_eq!(sound.len(), steps.len());
        chain
    }

    #[test]
    fn what_is_written_alike_is_held_once() {
        let shelf = &mut Shelf::default();
        let set = |entries: Value| json!({"reformat": {"set": entries}});
        let a = chain(&[set(json!({"header.a": "1", "header.b": "2"}))], shelf);
        let b = chain(
            &[
                json!({"filter": {"drop": "tombstone"}}),
                set(json!({"header.a": "1", "header.b": "2"})),
            ],
            shelf,
        );
        let c = chain(&[set(json!({"header.b": "2", "header.a": "1"}))], shelf);
        assert!(Arc::ptr_eq(&a.steps()[0], &b.steps()[1]));
        let (first, second) = (a.specs().next(), b.specs().nth(1));
        assert!(std::ptr::eq(
            first.expect("a step"),
            second.expect("two steps")
        ));
        // The order counts.
        assert!(!Arc::ptr_eq(&a.steps()[0], &c.steps()[0]));
    }

    #[test]
    fn what_runs_is_taken_as_it_is() {
        let set = |text: &str| json!({"reformat": {"set": {"header.a": text, "header.b": "b"}}});
        let mask = |key: &str| json!({"reformat": {"mask": {"fields": ["value.a"], "with": "hash", "key": key}}});
        let running = chain(&[set("a"), mask("secret-one")], &mut Shelf::default());
        let shelf = &mut Shelf::beside([&running]);
        let named =
            json!({"name": "other", "reformat": {"set": {"header.a": "a", "header.b": "b"}}});
        let wanted = chain(
            &[mask("secret-two"), set("a"), named, mask("secret-one")],
            shelf,
        );
        let held = |index: usize| {
            let known = running.steps().iter();
            known
                .filter(|step| Arc::ptr_eq(step, &wanted.steps()[index]))
                .count()
        };
        assert_eq!([0, 1, 2, 3].map(held), [0, 1, 0, 1]);
        let shared = |spec: &&StepSpec| running.specs().any(|known| std::ptr::eq(known, *spec));
        assert_eq!(wanted.specs().filter(shared).count(), 2);
    }

    #[test]
    fn a_step_is_compiled_for_what_stands_before_it() {
        let shelf = &mut Shelf::default();
        let by_content = json!({"rename": {"topic": "{value.kind}", "allow": ["a"]}});
        let rename = json!({"rename": {"topic": "x.{topic}", "allow": ["x.+"]}});
        let known = chain(std::slice::from_ref(&rename), shelf);
        let unknown = chain(&[by_content, rename], shelf);
        assert!(!Arc::ptr_eq(&known.steps()[0], &unknown.steps()[1]));
    }
}
