//! The steps of a route as people know them: number, name, action, place in the file.

use crate::config::document::Document;
use crate::config::place::Place;
use crate::config::pointer;
use crate::config::spec::RouteSpec;
use crate::handler::StepSpec;
use serde_json::Value;

/// The steps of one route's chain.
#[derive(Clone, Debug, Default)]
pub struct Steps {
    list: Vec<StepLabel>,
}

/// A step as people know it.
#[derive(Clone, Debug)]
pub struct StepLabel {
    /// Its number in the chain, from 1.
    pub number: usize,
    /// Its `name`, if it has one.
    pub name: Option<String>,
    /// Its action.
    pub action: &'static str,
    /// Where it stands.
    pub place: Option<Place>,
}

impl Steps {
    /// The steps of `route`, with their places in `document`.
    pub fn of(route: &RouteSpec, document: &Document) -> Self {
        let pointers = pointers(route, document);
        let specs = route.chain.specs().enumerate();
        let list = specs.map(|(index, spec)| StepLabel {
            number: index + 1,
            name: spec.name.clone(),
            action: action(spec),
            place: pointers.get(index).map(|at| document.place(at)),
        });
        Self {
            list: list.collect(),
        }
    }

    /// The step of that index.
    pub fn get(&self, index: usize) -> Option<&StepLabel> {
        self.list.get(index)
    }

    /// The words for the step of that index.
    pub fn label(&self, index: usize) -> String {
        self.get(index)
            .map_or_else(|| format!("step {}", index + 1), StepLabel::to_string)
    }
}

impl StepLabel {
    /// Its place as a text.
    pub(super) fn place_text(&self) -> Option<String> {
        self.place.as_ref().map(Place::to_string)
    }
}

impl std::fmt::Display for StepLabel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "step {} ({}", self.number, self.action)?;
        if let Some(name) = &self.name {
            write!(f, " `{name}`")?;
        }
        f.write_str(")")?;
        match &self.place {
            Some(place) => write!(f, " at {place}"),
            None => Ok(()),
        }
    }
}

/// The key of what the step does.
fn action(spec: &StepSpec) -> &'static str {
    match (&spec.filter, &spec.rename, &spec.reformat) {
        (Some(_), _, _) => "filter",
        (_, Some(_), _) => "rename",
        (_, _, Some(_)) => "reformat",
        (None, None, None) => "use",
    }
}

/// Where the route's steps stand, every `use:` of a chain of the file followed. The configuration
/// is sound, so that this ends.
fn pointers(route: &RouteSpec, document: &Document) -> Vec<String> {
    let own = pointer::child(&pointer::child("/routes", route.name.as_str()), "handlers");
    let at = match document.value.pointer(&own) {
        Some(_) => own,
        None => "/defaults/handlers".to_owned(),
    };
    let mut found = Vec::new();
    follow(&at, document, &mut found);
    found
}

fn follow(at: &str, document: &Document, found: &mut Vec<String>) {
    let steps = document.value.pointer(at).and_then(Value::as_array);
    for (index, step) in steps.into_iter().flatten().enumerate() {
        let name = step.get("use").and_then(Value::as_str);
        let chain = name.map(|name| pointer::child("/handlers", name));
        match chain.filter(|chain| document.value.pointer(chain).is_some()) {
            Some(chain) => follow(&chain, document, found),
            None => found.push(pointer::item(at, index)),
        }
    }
}
