//! What the command line says.

use crate::contender::Contender;
use crate::workload::{self, Workload};
use std::path::PathBuf;

/// What is measured, and how thoroughly.
#[derive(Clone, Debug)]
pub struct Arguments {
    pub effort: Effort,
    pub parts: Vec<Part>,
    pub workloads: Vec<Workload>,
    pub contenders: Vec<Contender>,
    pub runs: usize,
    /// Part of the records of each workload.
    pub scale: f64,
    /// Bytes that wait in the part about memory.
    pub backlog: u64,
    /// Where tables and picture go.
    pub keep: PathBuf,
}

/// Hours, or ten minutes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    Full,
    Quick,
}

/// One part of the contest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// CPU, memory and rate of whole copies.
    Cost,
    /// How late records come.
    Latency,
    /// A backlog in front of a slow target.
    Memory,
    /// Routes with nothing to do.
    Idle,
}

const PARTS: [(&str, Part); 4] = [
    ("cost", Part::Cost),
    ("latency", Part::Latency),
    ("memory", Part::Memory),
    ("idle", Part::Idle),
];
/// What a quick run copies, and who with whom.
const QUICK_WORKLOADS: [&str; 3] = ["1k", "1k-lz4", "70b-lz4"];
const QUICK_CONTENDERS: [&str; 4] = ["bare", "librdkafka", "native", "native-passing"];
const QUICK_SCALE: f64 = 0.5;
const QUICK_RUNS: usize = 3;
const RUNS: usize = 5;
const QUICK_BACKLOG: u64 = 1 << 30;
const BACKLOG: u64 = 10 << 30;
const USAGE: &str = "--quick, --part NAME, --workload NAME, --contender NAME, --runs N, --scale X, --backlog GIB, --keep FOLDER";

impl Arguments {
    /// # Errors
    /// If they are wrong, with what is known.
    pub fn read(words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut words = words.peekable();
        let (mut parts, mut workloads, mut contenders) = (Vec::new(), Vec::new(), Vec::new());
        let (mut runs, mut scale, mut backlog, mut keep) = (None, None, None, None);
        let mut effort = Effort::Full;
        while let Some(word) = words.next() {
            let mut next = || words.next().ok_or(format!("{word} wants a word"));
            match word.as_str() {
                // Cargo's own.
                "--bench" => {}
                "--quick" => effort = Effort::Quick,
                "--part" => parts.push(part(&next()?)?),
                "--workload" => workloads.push(workload(&next()?)?),
                "--contender" => contenders.push(contender(&next()?)?),
                "--runs" => runs = Some(number::<usize>(&word, &next()?)?),
                "--scale" => scale = Some(number::<f64>(&word, &next()?)?),
                "--backlog" => backlog = Some(number::<f64>(&word, &next()?)?),
                "--keep" => keep = Some(PathBuf::from(next()?)),
                _ => return Err(format!("{word} is not known; these are: {USAGE}")),
            }
        }
        let usual = Self::usual(effort);
        // What was chosen by hand is no set of figures to be kept beside the others.
        let chosen = !(parts.is_empty() && workloads.is_empty() && contenders.is_empty())
            || runs.is_some()
            || scale.is_some()
            || backlog.is_some();
        let place = if chosen { "target/contest" } else { "benches" };
        let scale = scale.unwrap_or(usual.scale);
        let workloads = or(workloads, usual.workloads).into_iter();
        Ok(Self {
            effort,
            parts: or(parts, usual.parts),
            workloads: workloads.map(|w| scaled(w, scale)).collect(),
            contenders: or(contenders, usual.contenders),
            runs: runs.unwrap_or(usual.runs),
            scale,
            backlog: backlog.map_or(usual.backlog, |gib| (gib * f64::from(1 << 30)) as u64),
            keep: keep.unwrap_or_else(|| PathBuf::from(place)),
        })
    }

    fn usual(effort: Effort) -> Self {
        let all = || Contender::ALL.to_vec();
        let quick = effort == Effort::Quick;
        Self {
            effort,
            parts: PARTS.map(|(_, part)| part).to_vec(),
            workloads: workload::ALL
                .into_iter()
                .filter(|w| !quick || QUICK_WORKLOADS.contains(&w.name))
                .collect(),
            contenders: all()
                .into_iter()
                .filter(|c| !quick || QUICK_CONTENDERS.contains(&c.name()))
                .collect(),
            runs: if quick { QUICK_RUNS } else { RUNS },
            scale: if quick { QUICK_SCALE } else { 1.0 },
            backlog: if quick { QUICK_BACKLOG } else { BACKLOG },
            keep: PathBuf::from("benches"),
        }
    }
}

/// What was given, or else what is usual.
fn or<T>(given: Vec<T>, usual: Vec<T>) -> Vec<T> {
    if given.is_empty() { usual } else { given }
}

fn scaled(workload: Workload, scale: f64) -> Workload {
    Workload {
        data: workload.data.scaled(scale),
        ..workload
    }
}

fn part(name: &str) -> Result<Part, String> {
    let found = PARTS.iter().find(|(known, _)| *known == name);
    let known = || PARTS.map(|(name, _)| name).join(", ");
    found
        .map(|(_, part)| *part)
        .ok_or_else(|| format!("no part is called {name}; these are: {}", known()))
}

fn workload(name: &str) -> Result<Workload, String> {
    let found = workload::ALL.into_iter().find(|w| w.name == name);
    let known = || workload::ALL.map(|w| w.name).join(", ");
    found.ok_or_else(|| format!("no workload is called {name}; these are: {}", known()))
}

fn contender(name: &str) -> Result<Contender, String> {
    let found = Contender::ALL.into_iter().find(|c| c.name() == name);
    let known = || Contender::ALL.map(Contender::name).join(", ");
    found.ok_or_else(|| format!("no contender is called {name}; these are: {}", known()))
}

fn number<N: std::str::FromStr<Err: std::fmt::Display>>(
    word: &str,
    text: &str,
) -> Result<N, String> {
    text.parse()
        .map_err(|error| format!("{word} {text}: {error}"))
}
