//! `mirror graph`: clusters and routes as a picture.

use super::{ColorChoice, GraphArgs, LoadRequest, NoDataLoss, Program, files, text};
use crate::exit::Exit;
use crate::graph::Graph;
use std::path::PathBuf;

pub(super) fn graph(
    args: GraphArgs,
    config: Vec<PathBuf>,
    color: ColorChoice,
    program: &Program,
) -> Exit {
    let files = match files::find(args.files, config) {
        Ok(files) => files,
        Err(missing) => return text::fail(&missing, Exit::No),
    };
    let loaded = (program.load)(&LoadRequest {
        files,
        variables: program.variables.clone(),
        no_data_loss: NoDataLoss::AsWritten,
        colour: text::colour_of_stderr(color),
        running: None,
    });
    let spec = match loaded {
        Ok(loaded) => loaded.spec,
        Err(rejected) => {
            text::err(rejected.rendered.trim_end());
            return Exit::No;
        }
    };
    match Graph::of(&spec).draw(args.format) {
        Ok(picture) => {
            text::out(&picture);
            Exit::Done
        }
        Err(error) => text::fail(&error.to_string(), Exit::Bug),
    }
}
