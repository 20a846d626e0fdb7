//! Steps that many chains have: read, compiled and held once.
//!
//! In a file of a thousand routes most steps are those of the route before, by a shared chain or because
//! they were copied: what differs is some names. Two steps are the same if they are written alike.

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
}

impl Shelf {
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
        let new = Arc::new(read()?);
        self.read.insert(text, Arc::clone(&new));
        Some(new)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handler::{Chain, Registry};
    use serde::Deserialize;
    use serde_json::json;

    fn chain(steps: &[Value], shelf: &mut Shelf) -> Chain {
        let read = |step| shelf.read(step, || StepSpec::deserialize(step).ok());
        let specs: Option<Vec<_>> = steps.iter().map(read).collect();
        let registry = Registry::default();
        Chain::share(specs.expect("steps"), &registry, shelf).expect("a chain")
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
    fn a_step_is_compiled_for_what_stands_before_it() {
        let shelf = &mut Shelf::default();
        let by_content = json!({"rename": {"topic": "{value.kind}", "allow": ["a"]}});
        let rename = json!({"rename": {"topic": "x.{topic}", "allow": ["x.+"]}});
        let known = chain(std::slice::from_ref(&rename), shelf);
        let unknown = chain(&[by_content, rename], shelf);
        assert!(!Arc::ptr_eq(&known.steps()[0], &unknown.steps()[1]));
    }
}
