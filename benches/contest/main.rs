//! `mirror` against the best of its kind, on real Kafka in one run: `make bench`, and `make bench-quick` in ten minutes. What
//! is measured and how, and what came of it: `benches/README.md`.
//!
//! Ratios in one run and medians are what counts; absolute figures depend on the machine. It ends with 1 if something asked is
//! missed, with 2 if it could not measure.

#[path = "../admin.rs"]
mod admin;
mod arguments;
mod asked;
mod bare;
mod contender;
mod cost;
mod file;
mod franz;
mod idle;
#[path = "../jars.rs"]
mod jars;
mod job;
mod lab;
mod latency;
mod machine;
mod maker;
mod memory;
mod plot;
mod probe;
mod process;
mod relay;
mod report;
mod results;
mod run;
mod stage;
#[path = "../topic.rs"]
mod topic;
mod workload;

use arguments::{Arguments, Effort};
use contender::{Contender, Tools};
use job::Job;
use results::Results;
use run::Run;
use std::cell::Cell;
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.first().map(String::as_str) {
        Some("bare") => bare::run(&Job::read(&words[1..])),
        Some("probe") => probe::run(&Job::read(&words[1..])),
        Some("relay") => relay::run(&words[1..]),
        _ => return contest(words),
    }
    ExitCode::SUCCESS
}

fn contest(words: Vec<String>) -> ExitCode {
    let arguments = match Arguments::read(words.into_iter()) {
        Ok(arguments) => arguments,
        Err(reason) => return cannot(&reason),
    };
    let folder = tempfile::tempdir().expect("a folder");
    let tools = match tools(&arguments, folder.path()) {
        Ok(tools) => tools,
        Err(reason) => return cannot(&reason),
    };
    let began = Instant::now();
    let results = Run::start(&arguments, &tools).measure();
    println!("{:.0} s", began.elapsed().as_secs_f64());
    keep(&arguments, &results)
}

fn cannot(reason: &str) -> ExitCode {
    eprintln!("contest: {reason}");
    ExitCode::from(2)
}

fn tools(arguments: &Arguments, folder: &Path) -> Result<Tools, String> {
    let wanted = arguments.contenders.contains(&Contender::Franz);
    Ok(Tools {
        franz: wanted.then(|| franz::build(folder)).transpose()?,
        folder: folder.to_owned(),
        serial: Cell::new(0),
    })
}

/// Writes tables and picture, and says what was missed.
fn keep(arguments: &Arguments, results: &Results) -> ExitCode {
    let name = match arguments.effort {
        Effort::Full => "contest",
        Effort::Quick => "contest-quick",
    };
    fs::create_dir_all(&arguments.keep).expect("a folder for the results");
    let at = |kind| arguments.keep.join(format!("{name}.{kind}"));
    let (tables, picture) = (at("md"), at("svg"));
    let text = report::text(results, &picture);
    fs::write(&tables, &text).expect("the tables are written");
    if !results.rounds.is_empty() {
        plot::draw(&picture, &results.rounds).expect("the picture is drawn");
    }
    println!("\n{text}\n{}", tables.display());
    let missed = results.asked().into_iter().filter(|asked| !asked.is_met());
    match missed.count() {
        0 => ExitCode::SUCCESS,
        missed => {
            println!("{missed} of what is asked is missed");
            ExitCode::FAILURE
        }
    }
}
