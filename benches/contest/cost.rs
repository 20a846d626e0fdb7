//! What a record costs: every contender copies a short and a long topic, in turn, and the slope between them counts, so
//! that starting does not.

use crate::contender::{Contender, Ending, Tools};
use crate::process::{Cost, Running};
use crate::stage::{Prepared, Stage};
use crate::workload::{Length, Workload};
use std::time::Duration;

/// How long one copy may take.
const PATIENCE: Duration = Duration::from_secs(600);

/// A workload, and what it cost whom.
pub struct Round {
    pub workload: Workload,
    pub short: Prepared,
    pub long: Prepared,
    pub entries: Vec<Entry>,
}

/// A contender's turns.
pub struct Entry {
    pub contender: Contender,
    pub turns: Vec<Turn>,
}

/// One turn: both copies.
#[derive(Clone, Copy, Debug)]
pub struct Turn {
    pub short: Cost,
    pub long: Cost,
}

/// What is measured in a run.
pub struct Contest<'a> {
    pub stage: &'a Stage,
    pub tools: &'a Tools,
    pub runs: usize,
    pub contenders: &'a [Contender],
}

impl Contest<'_> {
    /// Measures these workloads. Data that two in a row share are written once.
    pub fn rounds(&self, workloads: &[Workload]) -> Vec<Round> {
        let mut rounds = Vec::new();
        for same in workloads.chunk_by(|a, b| a.data == b.data) {
            let data = same[0].data;
            println!("writing {}", data.name);
            let short = self.stage.prepare(&data, Length::Short);
            let long = self.stage.prepare(&data, Length::Long);
            for workload in same {
                rounds.push(self.round(workload, &short, &long));
            }
            self.stage.forget(&short);
            self.stage.forget(&long);
        }
        rounds
    }

    fn round(&self, workload: &Workload, short: &Prepared, long: &Prepared) -> Round {
        let taking = self.contenders.iter().filter(|c| c.takes(workload));
        let entry = |contender: &Contender| Entry {
            contender: *contender,
            turns: Vec::new(),
        };
        let mut entries: Vec<Entry> = taking.map(entry).collect();
        for run in 0..self.runs {
            // Who comes first changes, so that what slowly changes weighs on all.
            let first = run % entries.len().max(1);
            let (front, back) = entries.split_at_mut(first);
            for entry in back.iter_mut().chain(front) {
                let turn = Turn {
                    short: self.copy(entry.contender, workload, short),
                    long: self.copy(entry.contender, workload, long),
                };
                let records = long.records - short.records;
                say(workload, entry.contender, run, turn, records);
                entry.turns.push(turn);
            }
        }
        Round {
            workload: *workload,
            short: short.clone(),
            long: long.clone(),
            entries,
        }
    }

    /// One copy, in a process of its own, into topics of its own; all has arrived at its end.
    fn copy(&self, who: Contender, workload: &Workload, what: &Prepared) -> Cost {
        self.stage.empty(what);
        let name = format!("{}-{}", who.name(), what.topics[0]);
        let (command, ending) = who.command(self.stage, workload, what, self.tools);
        let running = Running::start(&name, command, &self.tools.folder);
        let mut arrival = self.stage.arrival(what);
        let cost = match ending {
            Ending::ByItself => running.until_it_ends(PATIENCE),
            Ending::WhenAllIsThere => running.until(PATIENCE, || arrival.is_complete()),
            Ending::WhenRelayed(ends) => {
                let cost = running.until_it_ends(PATIENCE);
                ends.close();
                self.stage.clear(what);
                return cost;
            }
        };
        assert!(arrival.is_complete(), "{name}: not all has arrived");
        self.stage.clear(what);
        cost
    }
}

/// A line while it goes on.
fn say(workload: &Workload, who: Contender, run: usize, turn: Turn, records: u64) {
    println!(
        "{:<18} {:<20} {run:>2}: {:>8.2} and {:>6.2} CPU s, {:>6.2} µs a record, {:>4.0} MB",
        workload.name,
        who.name(),
        turn.long.cpu_s,
        turn.short.cpu_s,
        turn.cpu_s() / records as f64 * 1e6,
        turn.long.rss_mb
    );
}

impl Turn {
    /// CPU seconds of the records that the long copy has more.
    pub fn cpu_s(&self) -> f64 {
        self.long.cpu_s - self.short.cpu_s
    }

    /// The time that these took by the clock.
    pub fn wall_s(&self) -> f64 {
        self.long.wall_s - self.short.wall_s
    }
}

impl Round {
    /// The records of which a slope speaks.
    pub fn records(&self) -> f64 {
        (self.long.records - self.short.records) as f64
    }

    /// And their bytes.
    pub fn bytes(&self) -> f64 {
        (self.long.bytes - self.short.bytes) as f64
    }

    /// A contender's turns.
    pub fn of(&self, contender: Contender) -> Option<&Entry> {
        self.entries.iter().find(|e| e.contender == contender)
    }

    /// CPU of one against CPU of another, the median of the turns that they took together.
    pub fn ratio(&self, one: Contender, other: Contender) -> Option<f64> {
        let (one, other) = (self.of(one)?, self.of(other)?);
        let pairs = one.turns.iter().zip(&other.turns);
        median(pairs.map(|(a, b)| a.cpu_s() / b.cpu_s()).collect())
    }

    /// Median microseconds of CPU for a record.
    pub fn micros(&self, entry: &Entry) -> Option<f64> {
        let all = entry.turns.iter().map(|turn| turn.cpu_s() / self.records());
        median(all.collect()).map(|seconds| seconds * 1e6)
    }

    /// Median records a second.
    pub fn rate(&self, entry: &Entry) -> Option<f64> {
        let all = entry.turns.iter().map(|t| self.records() / t.wall_s());
        median(all.collect()).filter(|rate| *rate > 0.0)
    }
}

impl Entry {
    /// The highest peak of its resident memory.
    pub fn rss_mb(&self) -> f64 {
        let all = self.turns.iter().map(|turn| turn.long.rss_mb);
        all.fold(0.0, f64::max)
    }
}

/// The middle one.
pub fn median(mut all: Vec<f64>) -> Option<f64> {
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied()
}
