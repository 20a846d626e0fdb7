//! `mirror sandbox`: three Kafka clusters in this process, a fan-in and a fan-out between them,
//! and a count at the end. The first minute with `mirror`, without a Kafka.

mod account;
mod clusters;
mod file;
mod generator;
mod interrupts;
mod mirror;
mod proof;
mod scene;
mod screen;
mod story;
mod table;

use crate::cli::Program;
use crate::exit::Exit;
use crate::logging::Colour;
use screen::{Ink, Screen};
use std::time::Duration;

/// How the sandbox plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// How long records are generated.
    pub length: Duration,
    /// Records per second, over all sources.
    pub rate: u32,
}

/// Plays it. [`Exit::Done`] only if the reload was applied and every record arrived, as it was
/// and in order.
pub fn run(options: &Options, program: &Program, colour: Colour) -> Exit {
    let mut screen = Screen::stdout(colour);
    match story::play(options, program, &mut screen) {
        Ok(exit) => exit,
        Err(why) => {
            screen.clear();
            let line = format!("sandbox: {why}");
            screen.say(&screen.ink(Ink::Red, &line));
            Exit::No
        }
    }
}
