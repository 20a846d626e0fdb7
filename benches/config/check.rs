//! `mirror check` against a plain load of the same file.

use crate::text;
use mirror::cli::check::{Ask, CheckOptions, Demand, Format, Outcome, Warnings, run};
use mirror::config::interpolate::Variables;
use mirror::config::render::Colour;
use mirror::config::{LoadOptions, process_environment};
use mirror::flow::Environment;
use std::hint::black_box;
use std::path::{Path, PathBuf};

/// What `check` may cost in plain loads.
const LIMIT: f64 = 5.0;

/// Compares at each number of routes, and says how the time of a route grows.
pub fn compare(sizes: &[usize]) {
    let folder = tempfile::tempdir().expect("a folder");
    println!(
        "{:>7} {:>6} {:>12} {:>10} {:>11} {:>6} {:>6}",
        "routes", "kB", "serde_yaml", "check", "per route", "ratio", "limit"
    );
    for &routes in sizes {
        let file = text::write(folder.path(), routes, 0);
        let kb = std::fs::metadata(&file).expect("the file").len() / 1000;
        let (mut plain, mut ours) = (Vec::new(), Vec::new());
        for _ in 0..turns(routes) {
            plain.push(timed(|| load_plainly(&file)));
            ours.push(timed(|| check(&file)));
        }
        let (plain, ours) = (median(&mut plain), median(&mut ours));
        let ratio = ours / plain;
        println!(
            "{routes:>7} {kb:>6} {:>9.1} ms {:>7.1} ms {:>8.1} µs {ratio:>6.2} {LIMIT:>6.2}{}",
            plain * 1e3,
            ours * 1e3,
            ours * 1e6 / routes as f64,
            if ratio <= LIMIT { "" } else { "  over" }
        );
    }
}

fn turns(routes: usize) -> usize {
    match routes {
        ..=1_000 => 15,
        _ => 5,
    }
}

/// Reads the file as a YAML value.
pub fn load_plainly(file: &Path) {
    let text = std::fs::read_to_string(file).expect("the file is read");
    let value: serde_yaml::Value = serde_yaml::from_str(&text).expect("YAML");
    black_box(value);
}

/// The whole command: reading, the schema, the meaning, all routes together, and what is printed.
pub fn check(file: &Path) {
    let environment = Environment::default();
    let variables = Variables::default();
    let options = CheckOptions {
        load: LoadOptions {
            environment: &process_environment,
            variables: &variables,
            registry: &environment.handlers,
            listeners: &environment.listeners,
            running: None,
        },
        format: Format::Text(Colour::Never),
        warnings: Warnings::Allow,
        demand: Demand::Sound,
        ask: Ask::Nobody,
    };
    let files: [PathBuf; 1] = [file.to_path_buf()];
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let outcome = run(&files, &options, &mut out, &mut err).expect("it is printed");
    let words = String::from_utf8_lossy(&err);
    assert_eq!(outcome, Outcome::Ok, "{words}");
    black_box(out);
}

/// CPU seconds of this process that `once` takes: `check` may use threads.
fn timed(once: impl FnOnce()) -> f64 {
    let before = cpu();
    once();
    cpu() - before
}

fn cpu() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
