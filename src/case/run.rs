//! Every case through its route.

use super::compare::{Difference, compare};
use super::coverage::Coverage;
use super::gather::{Gathered, gather};
use super::spec::{CLOCK_MS, Case, TARGET_PARTITIONS};
use crate::config::Loaded;
use crate::config::diagnostic::{Code, Diagnostic};
use crate::config::place::Place;
use crate::handler::Clock;
use crate::partition::{OnFewer, PolicySpec};
use crate::trial::{Outcome, Sample, Steps, Trial};
use std::time::{Duration, Instant};

/// What came of the cases.
#[derive(Debug)]
pub struct Report<'c> {
    /// The cases that ran, in the order of the file.
    pub results: Vec<CaseResult<'c>>,
    /// What they reached.
    pub coverage: Coverage,
}

/// What came of one case.
#[derive(Debug)]
pub struct CaseResult<'c> {
    /// The case.
    pub case: &'c Case,
    /// Where it stands.
    pub place: Place,
    /// The verdict.
    pub verdict: Verdict,
    /// What became of each record that went in.
    pub passed: Vec<(Sample, Outcome)>,
    /// The steps of its route.
    pub steps: Steps,
    /// How long it took.
    pub took: Duration,
}

/// The verdict on a case.
#[derive(Debug)]
pub enum Verdict {
    /// Everything is as wanted.
    Passed,
    /// Something is not.
    Failed(Vec<Difference>),
    /// It could not run.
    Broken(Vec<Diagnostic>),
}

impl Report<'_> {
    /// How many cases did not pass.
    pub fn failed(&self) -> usize {
        let passed = |r: &&CaseResult<'_>| matches!(r.verdict, Verdict::Passed);
        self.results.len() - self.results.iter().filter(passed).count()
    }
}

/// Runs the cases that `chosen` takes.
pub fn run<'c>(loaded: &'c Loaded, chosen: &dyn Fn(&Case) -> bool) -> Report<'c> {
    let mut coverage = Coverage::of(loaded);
    let cases = loaded.tests.iter().filter(|case| chosen(case));
    let results = cases
        .map(|case| run_one(case, loaded, &mut coverage))
        .collect();
    Report { results, coverage }
}

fn run_one<'c>(case: &'c Case, loaded: &Loaded, coverage: &mut Coverage) -> CaseResult<'c> {
    let began = Instant::now();
    let document = &loaded.document;
    let steps = Steps::of(&case.route, document);
    let mut passed = Vec::new();
    let verdict = match gather(case, document) {
        Err(found) => Verdict::Broken(found),
        Ok(gathered) => match pass_all(case, &gathered, coverage) {
            Ok(all) => {
                passed = all;
                judge(case, &gathered, &passed, &steps)
            }
            Err(message) => {
                let place = document.place(&case.at);
                Verdict::Broken(vec![Diagnostic::new(Code::WrongValue, place, message)])
            }
        },
    };
    CaseResult {
        case,
        place: document.place(&case.at),
        verdict,
        passed,
        steps,
        took: began.elapsed(),
    }
}

fn pass_all(
    case: &Case,
    gathered: &Gathered,
    coverage: &mut Coverage,
) -> Result<Vec<(Sample, Outcome)>, String> {
    let count = partitions(case, &gathered.samples);
    let partitions = move |_: &str, _: &Sample| count;
    let clock = Clock::Fixed(CLOCK_MS);
    let mut trial = Trial::new(&case.route, &case.target, &partitions, clock)?;
    let seen = coverage.route(&case.route.name);
    let samples = gathered.samples.iter();
    Ok(samples
        .map(|sample| (sample.clone(), trial.pass(sample, seen)))
        .collect())
}

/// The partitions of every target topic: as the test says, else as many as nobody halts for.
fn partitions(case: &Case, samples: &[Sample]) -> i32 {
    let needed = match case.route.policy {
        PolicySpec::Match {
            on_fewer: OnFewer::Stop,
        } => samples.iter().map(|s| s.partition).max().unwrap_or(0),
        PolicySpec::Fixed(partition) => partition,
        _ => 0,
    };
    let ample = TARGET_PARTITIONS.max(needed.saturating_add(1));
    case.target_partitions.unwrap_or(ample)
}

fn judge(case: &Case, gathered: &Gathered, passed: &[(Sample, Outcome)], steps: &Steps) -> Verdict {
    let outcomes: Vec<Outcome> = passed.iter().map(|(_, outcome)| outcome.clone()).collect();
    let differences = compare(&case.at, &gathered.expected, &outcomes, steps);
    match differences.is_empty() {
        true => Verdict::Passed,
        false => Verdict::Failed(differences),
    }
}
