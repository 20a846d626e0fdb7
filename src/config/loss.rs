//! `--no-data-loss`: what gives up on a record on purpose is refused.

use crate::config::Loaded;
use crate::config::diagnostic::{Code, Diagnostic};
use crate::config::pointer;
use crate::config::spec::{OnError, OnGap, RouteSpec, Start};
use serde_json::Value;

/// Everything in the configuration that gives up on records, at its place.
pub fn no_data_loss(loaded: &Loaded) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for route in loaded.spec.routes.values() {
        of_route(route, loaded, &mut found);
    }
    let handlers = loaded
        .document
        .value
        .get("handlers")
        .and_then(Value::as_object);
    for (name, steps) in handlers.into_iter().flatten() {
        of_steps(
            steps,
            &pointer::child("/handlers", name),
            loaded,
            &mut found,
        );
    }
    crate::config::diagnostic::arrange(&mut found);
    found
}

fn of_route(route: &RouteSpec, loaded: &Loaded, found: &mut Vec<Diagnostic>) {
    let at = pointer::child("/routes", route.name.as_str());
    let gap = match route.on_gap {
        OnGap::Stop => None,
        OnGap::Earliest => Some("`on_gap: earliest` goes on behind records that were lost"),
        OnGap::Latest => Some("`on_gap: latest` goes on behind records that were lost"),
    };
    let settings = [
        ("on_gap", gap),
        (
            "on_error",
            (route.on_error == OnError::Skip).then_some("`on_error: skip` leaves records out"),
        ),
        (
            "start",
            (route.start == Start::Latest)
                .then_some("`start: latest` leaves out what is there already"),
        ),
    ];
    for (name, message) in settings {
        if let Some(message) = message {
            say(&pointer::child(&at, name), message, loaded, found);
        }
    }
    for section in [at.as_str(), "/defaults"] {
        let at = pointer::child(section, "handlers");
        if let Some(steps) = loaded.document.value.pointer(&at) {
            of_steps(steps, &at, loaded, found);
        }
    }
}

fn of_steps(steps: &Value, at: &str, loaded: &Loaded, found: &mut Vec<Diagnostic>) {
    for (index, step) in steps.as_array().into_iter().flatten().enumerate() {
        if step.get("on_error").is_some_and(|word| word == "skip") {
            let at = pointer::child(&pointer::item(at, index), "on_error");
            say(&at, "`on_error: skip` leaves records out", loaded, found);
        }
    }
}

fn say(at: &str, message: &str, loaded: &Loaded, found: &mut Vec<Diagnostic>) {
    let message = format!("{message}, and `--no-data-loss` was asked for");
    let place = loaded.document.place(at);
    found.push(Diagnostic::new(Code::DataLoss, place, message));
}
