//! Memory as the operating system counts it, each figure in a process of its own.

use crate::check;
use crate::reload::Process;
use crate::text;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// What the control plane may take, in MB.
const LIMIT: f64 = 50.0;

/// How long a process rests: the allocator gives back what was not used for ten seconds.
const REST: Duration = Duration::from_secs(12);

/// What is measured.
#[derive(Clone, Copy)]
pub enum Figure {
    /// A process that has done nothing.
    Nothing,
    /// A plain load of the file.
    Plain,
    /// `mirror check` of it.
    Check,
    /// A process with its routes, after ten reloads and a scrape of the metrics.
    Process,
}

impl Figure {
    const ALL: [(&str, Self); 4] = [
        ("nothing", Self::Nothing),
        ("a-plain-load", Self::Plain),
        ("check", Self::Check),
        ("ten-reloads-and-a-scrape", Self::Process),
    ];

    /// The figure of that name.
    pub fn named(argument: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find_map(|(name, figure)| (name == argument).then_some(figure))
    }

    /// Does it in this process, and prints the memory of it: now, at its peak, and at rest.
    pub fn measure_here(self, folder: &Path, routes: usize) {
        let file = text::write(folder, routes, 0);
        let mut process = None;
        match self {
            Self::Nothing => {}
            Self::Plain => check::load_plainly(&file),
            Self::Check => check::check(&file),
            Self::Process => process.insert(Process::start(folder, routes)).live(),
        }
        let (end, peak) = (megabytes("VmRSS:"), megabytes("VmHWM:"));
        std::thread::sleep(REST);
        println!("{end:.1} {peak:.1} {:.1}", megabytes("VmRSS:"));
    }
}

/// Measures everything with a file of `routes` routes.
pub fn compare(routes: usize) {
    println!(
        "\n{:<28} {:>9} {:>9} {:>10}",
        "memory of", "at end MB", "peak MB", "at rest MB"
    );
    for (name, _) in Figure::ALL {
        let folder = tempfile::tempdir().expect("a folder");
        let own = std::env::current_exe().expect("own path");
        let out = Command::new(own)
            .args(["measure", name])
            .arg(folder.path())
            .arg(routes.to_string())
            .output()
            .expect("it runs");
        let text = String::from_utf8_lossy(&out.stdout);
        let figures: Vec<f64> = text
            .split_whitespace()
            .map(|figure| figure.parse().expect("a figure"))
            .collect();
        let [end, peak, rest] = figures[..] else {
            panic!("three figures, not {text:?}");
        };
        let verdict = if peak <= LIMIT { "" } else { "  over" };
        println!("{name:<28} {end:>9.1} {peak:>9.1} {rest:>10.1}{verdict}");
    }
}

/// A figure of this process.
fn megabytes(line: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let found = status.lines().find_map(|l| l.strip_prefix(line));
    let kb = found.and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok());
    kb.expect("a figure") / 1000.0
}
