//! A report for programs: JSON and JUnit.

use super::coverage::Coverage;
use super::run::{CaseResult, Report, Verdict};
use crate::config::diagnostic::Diagnostic;
use crate::config::place::Place;
use quick_junit::{NonSuccessKind, TestCase, TestCaseStatus, TestSuite};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The report as JSON.
pub fn json(report: &Report<'_>) -> Value {
    let tests: Vec<Value> = report.results.iter().map(test).collect();
    json!({
        "ok": report.failed() == 0,
        "passed": report.results.len() - report.failed(),
        "failed": report.failed(),
        "tests": tests,
        "coverage": coverage(&report.coverage),
    })
}

fn test(result: &CaseResult<'_>) -> Value {
    let (word, differences, diagnostics) = match &result.verdict {
        Verdict::Passed => ("passed", Vec::new(), Vec::new()),
        Verdict::Failed(differences) => {
            let shown = differences.iter().map(
                |d| json!({ "at": d.at, "what": d.what, "expected": d.expected, "got": d.got }),
            );
            ("failed", shown.collect(), Vec::new())
        }
        Verdict::Broken(found) => {
            let shown = found.iter().map(Diagnostic::to_json).collect();
            ("broken", Vec::new(), shown)
        }
    };
    let inputs = result.passed.iter().map(|(sample, outcome)| {
        json!({
            "source": sample.source.as_str(),
            "topic": sample.topic,
            "partition": sample.partition,
            "offset": sample.offset,
            "outcome": outcome.fate.words(&result.steps),
            "records": outcome.outputs.len(),
        })
    });
    let inputs: Vec<Value> = inputs.collect();
    json!({
        "name": result.case.name,
        "route": result.case.route.name.as_str(),
        "place": place(Some(&result.place)),
        "verdict": word,
        "differences": differences,
        "diagnostics": diagnostics,
        "inputs": inputs,
    })
}

fn coverage(coverage: &Coverage) -> Value {
    let routes = coverage.routes().map(|(name, route)| {
        let (all, taken) = route.count();
        let gaps = route.gaps();
        let gaps = gaps.iter().map(|gap| {
            json!({
                "step": gap.step.number,
                "name": gap.step.name,
                "action": gap.step.action,
                "place": place(gap.step.place.as_ref()),
                "gap": gap.way.to_string(),
            })
        });
        let gaps: Vec<Value> = gaps.collect();
        json!({ "route": name.as_str(), "ways": all, "taken": taken, "gaps": gaps })
    });
    Value::Array(routes.collect())
}

fn place(place: Option<&Place>) -> Value {
    let position = place.and_then(|p| p.position.as_ref());
    json!({
        "file": place.map(|p| p.file.display().to_string()),
        "line": position.map(|p| p.line),
        "column": position.map(|p| p.column),
    })
}

/// The report as JUnit's XML: a suite for each route.
///
/// # Errors
/// What the writer says.
pub fn junit(report: &Report<'_>) -> Result<String, String> {
    let mut suites: BTreeMap<&str, TestSuite> = BTreeMap::new();
    for result in &report.results {
        let route = result.case.route.name.as_str();
        let suite = suites.entry(route).or_insert_with(|| TestSuite::new(route));
        suite.add_test_case(test_case(result));
    }
    let mut junit = quick_junit::Report::new("mirror test");
    junit.add_test_suites(suites.into_values());
    junit.to_string().map_err(|error| error.to_string())
}

fn test_case(result: &CaseResult<'_>) -> TestCase {
    let (status, message, lines) = match &result.verdict {
        Verdict::Passed => (TestCaseStatus::success(), None, Vec::new()),
        Verdict::Failed(differences) => {
            let lines = differences
                .iter()
                .map(|d| format!("{}\n- expected\n{}\n+ got\n{}", d.what, d.expected, d.got));
            let first = differences.first().map(|d| d.what.clone());
            let kind = NonSuccessKind::Failure;
            (TestCaseStatus::non_success(kind), first, lines.collect())
        }
        Verdict::Broken(found) => {
            let lines: Vec<String> = found.iter().map(Diagnostic::one_line).collect();
            let kind = NonSuccessKind::Error;
            (
                TestCaseStatus::non_success(kind),
                lines.first().cloned(),
                lines,
            )
        }
    };
    let mut status = status;
    if let Some(message) = message {
        status.set_message(message);
        let fates = result
            .passed
            .iter()
            .enumerate()
            .map(|(index, (_, outcome))| {
                format!("input {}: {}", index + 1, outcome.fate.words(&result.steps))
            });
        let place = std::iter::once(result.place.to_string());
        let text: Vec<String> = place.chain(lines).chain(fates).collect();
        status.set_description(text.join("\n"));
    }
    let mut case = TestCase::new(result.case.name.as_str(), status);
    case.set_classname(result.case.route.name.as_str());
    case.set_time(result.took);
    case
}
