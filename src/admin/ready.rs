//! Whether the process is ready: every flow is past starting, and nothing is stopping.

use crate::observe::State;
use crate::supervisor::board::{Phase, Snapshot};

/// What keeps the process from being ready, one line each; empty when it is.
///
/// A flow that has never copied with its present settings says 503, so that a wrong address is
/// seen by whoever rolls out (B154). One that has and failed later does not: taking the process
/// out of service would not help its neighbours. Routes that the user holds, and those that are
/// done, do not count.
pub fn missing(snapshot: &Snapshot) -> Vec<String> {
    let mut missing = Vec::new();
    match snapshot.process.phase {
        Phase::Running => {}
        Phase::Starting => missing.push("process: starting".to_owned()),
        Phase::Draining | Phase::Aborting => missing.push("process: stopping".to_owned()),
    }
    for (name, route) in &snapshot.routes {
        if let Some(held) = &route.held {
            if held.state != State::Paused {
                missing.push(format!("route {name}: {}", held.state.as_str()));
            }
            continue;
        }
        for flow in &route.flows {
            let condition = flow.view.condition();
            if !flow.has_run && matches!(condition.state, State::Starting | State::Failed) {
                let reason = condition.reason.map_or(String::new(), |r| format!(": {r}"));
                let state = condition.state.as_str();
                missing.push(format!("route {}: {state}{reason}", flow.id));
            }
        }
    }
    missing
}
