//! `mirror sandbox`: the arguments of the first minute.

use super::{ColorChoice, Program, text};
use crate::exit::Exit;
use clap::{Args, value_parser};

/// Arguments of `sandbox`.
#[derive(Debug, Args)]
pub struct SandboxArgs {
    /// How long records are generated
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = value_parser!(u64).range(1..=3600))]
    pub seconds: u64,
    /// Records per second, over all sources
    #[arg(long, value_name = "N", default_value_t = 3000, value_parser = value_parser!(u32).range(1..=1_000_000))]
    pub rate: u32,
}

#[cfg(feature = "sandbox")]
pub(super) fn sandbox(args: &SandboxArgs, color: ColorChoice, program: &Program) -> Exit {
    use crate::sandbox::{Options, run};
    let options = Options {
        length: std::time::Duration::from_secs(args.seconds),
        rate: args.rate,
    };
    run(&options, program, text::colour_of_stdout(color))
}

/// The command is there in every build, so that the manual is the same for all.
#[cfg(not(feature = "sandbox"))]
pub(super) fn sandbox(_args: &SandboxArgs, _color: ColorChoice, _program: &Program) -> Exit {
    let message = "this build has no embedded clusters: build it with `--features sandbox`";
    text::fail(message, Exit::No)
}
