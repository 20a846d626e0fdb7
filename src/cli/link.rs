//! Where the engine, the loader, `check` and the schema are plugged into the commands.

use super::{CheckRequest, LoadRequest, Program, text};
use crate::exit::Exit;
use crate::flow::{FlowExit, FlowSpec};
use crate::observe::{FlowView, Reason};
use crate::supervisor::{Flows, LoadedConfig, OnExit, RejectedConfig, RunningFlow};
use std::sync::Arc;
use std::time::Instant;

/// The program as it is shipped.
pub fn program() -> Program {
    Program {
        flows: Arc::new(NoEngine),
        load: Arc::new(load),
        check,
        schema: || "{}".into(),
    }
}

const ABSENT: &str = "this build has no configuration loader";

fn load(request: &LoadRequest) -> Result<LoadedConfig, RejectedConfig> {
    Err(RejectedConfig {
        first_error: ABSENT.into(),
        rendered: String::new(),
        hash: None,
        files: request.files.clone(),
    })
}

fn check(_request: &CheckRequest) -> Exit {
    text::fail(ABSENT, Exit::No)
}

/// Stands where the engine will be: every flow fails at once and says why.
struct NoEngine;

struct Ended(Arc<FlowView>);

impl Flows for NoEngine {
    fn start(&self, spec: FlowSpec, on_exit: OnExit) -> Arc<dyn RunningFlow> {
        on_exit(FlowExit::Failed(Reason::Client {
            detail: "this build has no engine".into(),
        }));
        let (route, source, target) = (&spec.route.name, &spec.source.name, &spec.target.name);
        let group = crate::config::spec::group_name(&spec.group, route, source, target);
        Arc::new(Ended(Arc::new(FlowView::new(
            route.as_str(),
            source.as_str(),
            target.as_str(),
            &group,
        ))))
    }
}

impl RunningFlow for Ended {
    fn view(&self) -> Arc<FlowView> {
        Arc::clone(&self.0)
    }

    fn drain(&self, _deadline: Instant) {}

    fn abort(&self) {}
}
