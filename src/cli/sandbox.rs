//! `mirror sandbox`: the arguments of the first minute.

use super::{ColorChoice, Program, text};
use crate::exit::Exit;
use crate::sandbox::{self, Options};
use clap::Args;
use std::time::Duration;

/// Arguments of `sandbox`.
#[derive(Debug, Args)]
pub struct SandboxArgs {
    /// How long records are generated
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub seconds: u64,
    /// Records per second, over all sources
    #[arg(long, value_name = "N", default_value_t = 3000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub rate: u32,
}

pub(super) fn sandbox(args: &SandboxArgs, color: ColorChoice, program: &Program) -> Exit {
    let options = Options {
        length: Duration::from_secs(args.seconds),
        rate: args.rate,
    };
    sandbox::run(&options, program, text::colour_of_stdout(color))
}
