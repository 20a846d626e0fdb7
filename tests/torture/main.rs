//! Faults from a seed on real three-broker clusters, both ends of a keyed load; then everything is healed, `mirror` runs to the end,
//! and the checker decides. Not part of libtest: a run has a number, and that is all it takes to see it again.
//!
//! ```text
//! cargo test --test torture                                  the seeds that have a name, short
//! cargo test --test torture -- --seeds 100                   seeds 1 to 100
//! cargo test --test torture -- --seed 17 --seconds 40        one, again
//! cargo test --test torture -- --seeds 100 --plan            only what would be done
//! cargo test --test torture -- --soak                        an hour, and what a process took meanwhile
//! cargo test --test torture -- --seed 17 --logs              keeps the logs of mirror, of good runs too
//! ```
//!
//! A fault counts only if records were in flight when it hit and its effect was seen: each line says so.

// The parts of the other tests that this one has no use for.
#[allow(dead_code)]
#[path = "../kafka/support/mod.rs"]
mod support;

mod arguments;
mod clusters;
mod finish;
mod hit;
mod instances;
mod plot;
mod soak;
mod stand;
mod strike;
mod traffic;

use arguments::{Arguments, Kind};
use clusters::Clusters;
use proof::plan::Plan;
use stand::{Report, Stand};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = match Arguments::read(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(message) => {
            eprintln!("torture: {message}");
            return ExitCode::from(2);
        }
    };
    let mut clusters = None;
    let mut tally = Tally::default();
    for seed in &arguments.seeds {
        let plan = match arguments.kind {
            Kind::Torture => Plan::of(*seed, arguments.seconds * 1000),
            Kind::Soak => Plan::soak(*seed, arguments.seconds * 1000),
        };
        if arguments.plan_only {
            println!("{plan}");
            continue;
        }
        let report = run(&mut clusters, &plan, &arguments);
        tally.note(&report, arguments.seconds);
    }
    if arguments.plan_only {
        return ExitCode::SUCCESS;
    }
    tally.end()
}

/// One run. Clusters are used again by the next one, unless something broke off in between.
fn run(clusters: &mut Option<Clusters>, plan: &Plan, arguments: &Arguments) -> Report {
    println!("seed {}: {}, {}", plan.seed, plan.shape, plan.protocol);
    let ran = catch_unwind(AssertUnwindSafe(|| {
        let clusters = clusters.get_or_insert_with(Clusters::start);
        let stand = Stand::new(clusters, plan, arguments.logs);
        match arguments.kind {
            Kind::Torture => stand.run(),
            Kind::Soak => soak::soak(stand),
        }
    }));
    ran.unwrap_or_else(|panic| {
        *clusters = None;
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()));
        Report::broken_off(plan, text.unwrap_or_else(|| "a panic".to_owned()))
    })
}

/// All runs.
#[derive(Default)]
struct Tally {
    runs: usize,
    records: u64,
    repeated: u64,
    faults: usize,
    counted: usize,
    failed: Vec<u64>,
}

impl Tally {
    fn note(&mut self, report: &Report, seconds: u64) {
        println!("{report}");
        self.runs += 1;
        self.records += report.verdict.arrived;
        self.repeated += report.verdict.repeated;
        self.faults += report.hits.len();
        self.counted += report.counted();
        if !report.is_good() {
            self.failed.push(report.seed);
            println!(
                "  to see it again: make torture SEED={} SECONDS={seconds}",
                report.seed
            );
        }
    }

    fn end(self) -> ExitCode {
        println!(
            "{} runs, {} records, {} repeated, {} faults of which {} counted, {} runs failed {:?}",
            self.runs,
            self.records,
            self.repeated,
            self.faults,
            self.counted,
            self.failed.len(),
            self.failed
        );
        if self.failed.is_empty() {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }
}
