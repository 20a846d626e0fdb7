//! `mirror plan`: what a file would change, as text or JSON.

use super::{ColorChoice, LoadRequest, NoDataLoss, OutputFormat, PlanArgs, Program, files, text};
use crate::config::spec::Spec;
use crate::exit::Exit;
use crate::plan::{Plan, Report};
use std::path::PathBuf;
use std::sync::Arc;

pub(super) fn plan(
    args: &PlanArgs,
    config: Vec<PathBuf>,
    color: ColorChoice,
    program: &Program,
) -> Exit {
    let load = |files: Vec<PathBuf>| load(files, color, program);
    let wanted = match files::find(args.files.clone(), config) {
        Ok(files) => load(files),
        Err(missing) => return text::fail(&missing, Exit::No),
    };
    let against = match args.against.as_slice() {
        [] => Ok(None),
        some => load(some.to_vec()).map(Some),
    };
    let (wanted, against) = match (wanted, against) {
        (Ok(wanted), Ok(against)) => (wanted, against),
        (Err(exit), _) | (_, Err(exit)) => return exit,
    };
    let plan = Report::from(&Plan::between(against.as_deref(), &wanted));
    match args.format {
        OutputFormat::Text => text::out(&plan.text(text::colour_of_stdout(color))),
        OutputFormat::Json => match serde_json::to_string_pretty(&plan) {
            Ok(json) => text::out(&json),
            Err(error) => return text::fail(&error.to_string(), Exit::Bug),
        },
        OutputFormat::Yaml => match serde_yaml::to_string(&plan) {
            Ok(yaml) => text::out(&yaml),
            Err(error) => return text::fail(&error.to_string(), Exit::Bug),
        },
    }
    match (plan.is_applicable(), plan.is_empty(), args.exit_code) {
        (false, _, _) => Exit::No,
        (true, false, true) => Exit::Changes,
        _ => Exit::Done,
    }
}

fn load(files: Vec<PathBuf>, color: ColorChoice, program: &Program) -> Result<Arc<Spec>, Exit> {
    let request = LoadRequest {
        files,
        no_data_loss: NoDataLoss::AsWritten,
        colour: text::colour_of_stderr(color),
    };
    match (program.load)(&request) {
        Ok(config) => Ok(config.spec),
        Err(rejected) => {
            eprintln!("{}", rejected.words());
            Err(Exit::No)
        }
    }
}
