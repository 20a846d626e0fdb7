//! The same jobs as Kafka Connect does them, on the JVM.

use crate::jars;
use crate::jobs::{Job, RECORD};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// How many times faster a chain is meant to be.
const LEAD: f64 = 5.0;

/// Prints the jobs that have a transform against it.
pub fn compare(jobs: &[(&Job, f64)]) {
    let times = match run() {
        Ok(times) => times,
        Err(reason) => return println!("\nthe JVM was left out: {reason}"),
    };
    println!(
        "\n{:<44} {:>7} {:>7} {:>7}",
        "Kafka Connect", "ns", "times", "at least"
    );
    for (job, ours) in jobs {
        let theirs = job.transform.and_then(|name| times.get(name));
        let Some(theirs) = theirs else { continue };
        let lead = theirs / ours;
        let verdict = if lead >= LEAD { "" } else { "  under" };
        println!(
            "{:<44} {theirs:>7.0} {lead:>7.1} {LEAD:>7.1}{verdict}",
            job.name
        );
    }
}

/// Runs the transforms and reads their times in nanoseconds by name.
fn run() -> Result<BTreeMap<String, f64>, String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/handlers/Transforms.java");
    let output = Command::new("java")
        .args(["-Xmx256m", "-XX:+UseSerialGC", "-cp"])
        .arg(jars::classpath()?)
        .arg(source)
        .arg(RECORD)
        .output()
        .map_err(|error| format!("java: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let times = text.lines().filter_map(|line| {
        let (name, time) = line.split_once(' ')?;
        Some((name.to_owned(), time.parse().ok()?))
    });
    Ok(times.collect())
}
