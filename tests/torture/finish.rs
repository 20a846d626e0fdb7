//! The end of a run: everything is healed, mirror runs to the end, and the checker decides.

use crate::arguments::Logs;
use crate::hit::Hit;
use crate::stand::{Report, Stand};
use crate::support::reader::read;
use crate::support::workload::Load;
use proof::checker::{Cause, check_all};
use proof::expected::{Expected, Lane};
use serde_json::Value;
use std::path::Path;
use std::time::{Duration, Instant};

/// Until what is left is copied.
const CATCH_UP: Duration = Duration::from_secs(240);

impl Stand<'_> {
    /// Ends the run.
    pub fn finish(mut self, began: Instant, hits: Vec<Hit>) -> Report {
        let mut trouble = Vec::new();
        self.clusters.wait_whole();
        for index in Self::all() {
            let is_running = self.instances.one(index).is_some();
            let code = self.instances.terminate(index);
            if is_running && !matches!(code, Some(0 | 6)) {
                trouble.push(format!("mirror {index} ended with {code:?} after SIGTERM"));
            }
        }
        let idle = Load::start(&self.clusters.source.bootstrap(), &[], 1);
        let mut expected = std::mem::replace(&mut self.load, idle).stop();
        expected.join(std::mem::take(&mut self.extra));
        for (lane, log_start) in &self.deleted {
            expected.deleted(lane, *log_start);
        }
        match self.instances.catch_up(CATCH_UP) {
            Some(0) => {}
            code => trouble.push(format!(
                "the last mirror ended with {code:?}, not caught up"
            )),
        }
        let report = Report {
            seed: self.plan.seed,
            verdict: self.compare(&expected),
            hits,
            trouble,
            took: began.elapsed(),
        };
        if report.is_good() {
            self.clusters.forget(&self.topics.prefix);
        }
        if !report.is_good() || self.logs == Logs::OfAll {
            let folder = format!("target/torture/seed-{}", self.plan.seed);
            self.instances.keep_logs(Path::new(&folder));
            println!("  logs: {folder}");
        }
        report
    }

    fn compare(&self, expected: &Expected) -> proof::checker::Verdict {
        let ours = |topic: &String| topic.contains(&self.topics.prefix);
        let topics = self.target.topics().into_iter().filter(ours);
        let sights = read(&self.clusters.target.bootstrap(), topics);
        let reports = self.reports();
        check_all(expected, &sights, &reports, |lane, _| {
            self.topics.belongs(lane)
        })
    }

    /// What the instances said of records that they did not deliver, from their logs.
    fn reports(&self) -> Vec<proof::checker::Report> {
        let gap = |line: &Value| {
            let offsets = line["from"].as_i64()?..line["to"].as_i64()?;
            Some((lane(line)?, offsets, Cause::Deleted))
        };
        let skipped = |line: &Value| {
            let at = line["offset"].as_i64()?;
            Some((lane(line)?, at..at + 1, Cause::Refused))
        };
        let gaps = self.instances.logged("gap");
        let failed = self.instances.logged("record_failed");
        let all = gaps.iter().filter_map(gap);
        let all = all.chain(failed.iter().filter_map(skipped));
        all.map(|(lane, offsets, cause)| proof::checker::Report {
            lane,
            offsets,
            cause,
        })
        .collect()
    }
}

/// The source partition that a line of the log is about.
fn lane(line: &Value) -> Option<Lane> {
    let partition = i32::try_from(line["partition"].as_i64()?).ok()?;
    Some((line["topic"].as_str()?.to_owned(), partition))
}
