//! A soak: the same faults for an hour, and meanwhile every second what an instance has taken of the machine.
//!
//! It is good if nothing is lost and so on, if the first instance's memory, descriptors and threads are no more in the last
//! quarter than in the second, and if the lag comes back to zero whenever nothing strikes.

use crate::instances::Seen;
use crate::plot;
use crate::stand::{Report, Stand};
use crate::support::process::get;
use proof::plan::is_quiet;
use serde_json::Value;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Between two looks.
const LOOK: Duration = Duration::from_secs(1);
/// What a median may move by, as a part of itself and beside it.
const SLACK: f64 = 0.1;
const SLACK_MB: f64 = 16.0;
const SLACK_COUNT: f64 = 8.0;

/// One look.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    /// Seconds from the beginning.
    pub at: f64,
    /// Records that were not copied, as far as those who answer know.
    pub lag: i64,
    /// Records delivered since the process of each began, all together.
    pub delivered: u64,
    /// The first instance, while it runs.
    pub first: Option<Taken>,
}

/// What a process has taken.
#[derive(Clone, Copy, Debug)]
pub struct Taken {
    /// Resident memory.
    pub megabytes: f64,
    /// Open descriptors.
    pub descriptors: f64,
    /// Threads.
    pub threads: f64,
}

/// One of the numbers.
pub type Read = fn(&Taken) -> f64;

/// Runs to the end, and judges the samples too.
pub fn soak(stand: Stand<'_>) -> Report {
    let lasts = stand.plan.strikes.iter().map(|s| s.at + s.lasts).max();
    let watch = Watch::start(stand.instances.seen(), stand.instances.ports());
    let report = stand.run();
    let samples = watch.stop();
    // After the last fault everything is drained, and another process catches up.
    let until = lasts.unwrap_or(0) as f64 / 1000.0;
    let samples: Vec<Sample> = samples.into_iter().filter(|s| s.at <= until).collect();
    keep(&samples, &report);
    judge(&samples, report)
}

/// Looks on from a thread of its own.
struct Watch {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Sample>>,
}

impl Watch {
    fn start(seen: Arc<Mutex<Seen>>, ports: Vec<u16>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            let began = Instant::now();
            let mut samples = Vec::new();
            while !stopped.load(Ordering::Relaxed) {
                let pids = seen.lock().unwrap().clone();
                samples.push(look(began.elapsed(), &pids, &ports));
                let next = LOOK * u32::try_from(samples.len()).unwrap_or(u32::MAX);
                std::thread::sleep(next.saturating_sub(began.elapsed()));
            }
            samples
        });
        Self { stop, thread }
    }

    fn stop(self) -> Vec<Sample> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("the watch goes on")
    }
}

fn look(at: Duration, pids: &Seen, ports: &[u16]) -> Sample {
    let mut sample = Sample {
        at: at.as_secs_f64(),
        first: pids.first().copied().flatten().and_then(taken),
        ..Sample::default()
    };
    for (port, _) in ports.iter().zip(pids).filter(|(_, pid)| pid.is_some()) {
        let text = get(*port, "/api/v1/status").unwrap_or_default();
        let status: Value = serde_json::from_str(&text).unwrap_or_default();
        for route in status["routes"]
            .as_object()
            .into_iter()
            .flat_map(|r| r.values())
        {
            sample.lag += route["lag"].as_i64().unwrap_or(0);
            let flows = route["flows"].as_array().into_iter().flatten();
            sample.delivered += flows
                .filter_map(|flow| flow["counters"]["delivered_records"].as_u64())
                .sum::<u64>();
        }
    }
    sample
}

fn taken(pid: u32) -> Option<Taken> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let number = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse::<f64>().ok()
    };
    Some(Taken {
        megabytes: number("VmRSS:")? / 1024.0,
        descriptors: fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count() as f64,
        threads: number("Threads:")?,
    })
}

/// Keeps the samples as a table, and as a picture with the faults as marks.
fn keep(samples: &[Sample], report: &Report) {
    let folder = Path::new("target/torture");
    let mut table = "seconds,lag,delivered,megabytes,descriptors,threads\n".to_owned();
    for sample in samples {
        let of = |read: fn(&Taken) -> f64| {
            sample
                .first
                .as_ref()
                .map_or(String::new(), |t| read(t).to_string())
        };
        let _ = writeln!(
            table,
            "{:.0},{},{},{},{},{}",
            sample.at,
            sample.lag,
            sample.delivered,
            of(|t| t.megabytes),
            of(|t| t.descriptors),
            of(|t| t.threads)
        );
    }
    fs::create_dir_all(folder).expect("a folder");
    fs::write(folder.join("soak.csv"), table).expect("the samples are kept");
    plot::draw(&folder.join("soak.svg"), samples, &report.hits).expect("the picture is drawn");
    println!("  {0}/soak.csv, {0}/soak.svg", folder.display());
}

fn judge(samples: &[Sample], mut report: Report) -> Report {
    let of: [(&str, Read, f64); 3] = [
        ("megabytes", |t| t.megabytes, SLACK_MB),
        ("descriptors", |t| t.descriptors, SLACK_COUNT),
        ("threads", |t| t.threads, SLACK_COUNT),
    ];
    let end = samples.last().map_or(0.0, |s| s.at);
    for (what, read, slack) in of {
        let quarter = |from: f64, to: f64| {
            let here = samples
                .iter()
                .filter(|s| (end * from..end * to).contains(&s.at));
            median(here.filter_map(|s| s.first.as_ref().map(read)).collect())
        };
        let (early, late) = (quarter(0.25, 0.5), quarter(0.75, 1.0));
        println!("  {what}: {early:.0} in the second quarter, {late:.0} in the last");
        if late > early * (1.0 + SLACK) + slack {
            report
                .trouble
                .push(format!("{what} grew from {early:.0} to {late:.0}"));
        }
    }
    let (quiet, empty) = quiet_times(samples);
    println!("  {quiet} quiet times, the lag came back to zero in {empty}");
    if empty < quiet {
        report
            .trouble
            .push("the lag did not come back to zero".to_owned());
    }
    report
}

/// How often nothing struck for a while, and in how many of these times the lag was zero.
fn quiet_times(samples: &[Sample]) -> (usize, usize) {
    let is_quiet = |s: &Sample| is_quiet((s.at * 1000.0) as u64);
    let times = samples.chunk_by(|a, b| is_quiet(a) == is_quiet(b));
    // One that was cut short by the end is none.
    let quiet: Vec<&[Sample]> = times.filter(|t| is_quiet(&t[0]) && t.len() > 60).collect();
    let empty = quiet
        .iter()
        .filter(|t| t.iter().any(|s| s.lag == 0 && s.first.is_some()));
    (quiet.len(), empty.count())
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of.get(of.len() / 2).copied().unwrap_or(0.0)
}
