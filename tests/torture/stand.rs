//! One run: a load, instances, and faults by the clock.

use crate::arguments::Logs;
use crate::clusters::Clusters;
use crate::hit::{Hit, Memory};
use crate::instances::{Instances, THIRD};
use crate::support::cluster::Admin;
use crate::support::wait;
use crate::support::workload::Load;
use crate::traffic::{GROWING, MAIN, Topics, WORKED, WORKED_LIMIT};
use proof::checker::Verdict;
use proof::expected::{Expected, Lane};
use proof::plan::{INSTANCES, Plan, Strike};
use std::collections::BTreeSet;
use std::fmt;
use std::time::{Duration, Instant};

/// Records a second, all topics together.
const RATE: u64 = 1500;
/// For how long records in flight are waited for before a fault.
const IN_FLIGHT: Duration = Duration::from_secs(5);
/// Between two looks at the clock.
const TICK: Duration = Duration::from_millis(20);
/// Between two questions for their status.
const LOOK: Duration = Duration::from_millis(250);

/// Everything that a run has.
pub struct Stand<'a> {
    pub clusters: &'a Clusters,
    pub plan: &'a Plan,
    pub logs: Logs,
    pub topics: Topics,
    pub instances: Instances,
    pub load: Load,
    /// Asks the source, not through its proxies.
    pub source: Admin,
    /// Asks the target.
    pub target: Admin,
    /// What was written beside the load.
    pub extra: Expected,
    /// What the source deleted: below these offsets.
    pub deleted: Vec<(Lane, i64)>,
    /// Partitions of the topic that grows.
    pub grown: i32,
    /// For names that are used once.
    pub count: usize,
}

/// What came of a run.
pub struct Report {
    pub seed: u64,
    pub verdict: Verdict,
    pub hits: Vec<Hit>,
    /// What went wrong beside what the checker sees.
    pub trouble: Vec<String>,
    pub took: Duration,
}

/// What happens when.
#[derive(Clone, Copy)]
enum Moment {
    Strike(usize),
    Heal(usize),
}

impl<'a> Stand<'a> {
    /// Topics, a load, and instances that have copied something.
    pub fn new(clusters: &'a Clusters, plan: &'a Plan, logs: Logs) -> Self {
        clusters.wait_whole();
        let topics = Topics::of(plan.seed);
        let bootstrap = clusters.source.bootstrap();
        let source = Admin::new(&bootstrap);
        let target = Admin::new(&clusters.target.bootstrap());
        for (name, partitions) in [("main", MAIN), ("grow", GROWING), ("work", WORKED)] {
            source.create(&topics.name(name), partitions, &[]);
        }
        let limit = WORKED_LIMIT.to_string();
        target.create(&topics.worked(), WORKED, &[("max.message.bytes", &limit)]);
        let load = Load::start(&bootstrap, &topics.fields(), RATE);
        let mut instances = Instances::new(clusters, plan, Topics::of(plan.seed));
        (0..INSTANCES).for_each(|index| instances.start(index));
        let mut stand = Self {
            clusters,
            plan,
            logs,
            topics,
            instances,
            load,
            source,
            target,
            extra: Expected::default(),
            deleted: Vec::new(),
            grown: GROWING,
            count: 0,
        };
        wait::until("records are copied", wait::PATIENCE, || {
            stand.instances.assert_running();
            stand.instances.number("delivered_records", |_| true) > RATE
        });
        stand
    }

    /// Strikes and heals by the clock, then lets it come to its end.
    pub fn run(mut self) -> Report {
        let began = Instant::now();
        let mut hits: Vec<(Hit, Memory)> = Vec::new();
        for (at, moment) in timeline(&self.plan.strikes) {
            while began.elapsed() < at {
                self.instances.assert_running();
                self.listen(&mut hits);
                std::thread::sleep(LOOK.min(at.saturating_sub(began.elapsed())));
            }
            match moment {
                Moment::Strike(index) => {
                    let strike = self.plan.strikes[index];
                    let in_flight = self.in_flight();
                    let (effect, memory) = self.strike(strike.fault);
                    let hit = Hit {
                        strike,
                        in_flight,
                        effect,
                        said: BTreeSet::new(),
                        healed: false,
                    };
                    hits.push((hit, memory));
                }
                Moment::Heal(index) => {
                    self.listen(&mut hits);
                    let (hit, memory) = &mut hits[index];
                    let memory = std::mem::replace(memory, Memory::Nothing);
                    let effect = self.heal(hit.strike.fault, memory);
                    hit.effect = hit.effect.take().or(effect);
                    hit.healed = true;
                    println!("  {hit}");
                }
            }
        }
        let hits = hits.into_iter().map(|(hit, _)| hit).collect();
        self.finish(began, hits)
    }

    /// Notes what the instances say, with every fault that is not healed.
    fn listen(&self, hits: &mut [(Hit, Memory)]) {
        let open = hits.iter_mut().filter(|(hit, _)| !hit.healed);
        let mut open = open.peekable();
        if open.peek().is_some() {
            let reasons = self.instances.reasons();
            open.for_each(|(hit, _)| hit.said.extend(reasons.iter().cloned()));
        }
    }

    /// Records in flight, once there are any: a fault counts only if it hits some.
    fn in_flight(&self) -> u64 {
        let deadline = Instant::now() + IN_FLIGHT;
        loop {
            let now = self.instances.number("in_flight_records", |_| true);
            if now > 0 || Instant::now() > deadline {
                return now;
            }
        }
    }

    /// Looks until it is so, or for as long as that.
    pub fn sees(&self, within: Duration, so: impl Fn(&Self) -> bool) -> bool {
        let deadline = Instant::now() + within;
        loop {
            if so(self) {
                return true;
            }
            if Instant::now() > deadline {
                return false;
            }
            std::thread::sleep(TICK);
        }
    }

    /// A name that no other has.
    pub fn fresh(&mut self, of: &str) -> String {
        self.count += 1;
        self.topics.name(&format!("{of}-{}", self.count))
    }

    /// All instances that may run.
    pub fn all() -> std::ops::RangeInclusive<usize> {
        0..=THIRD
    }
}

/// Strikes and heals in their order; strikes keep their index.
fn timeline(strikes: &[Strike]) -> Vec<(Duration, Moment)> {
    let both = |(index, strike): (usize, &Strike)| {
        [
            (strike.at, Moment::Strike(index)),
            (strike.at + strike.lasts, Moment::Heal(index)),
        ]
    };
    let mut all: Vec<_> = strikes.iter().enumerate().flat_map(both).collect();
    all.sort_by_key(|(at, _)| *at);
    let timed = all.into_iter();
    timed
        .map(|(at, moment)| (Duration::from_millis(at), moment))
        .collect()
}

impl Report {
    /// Of a run that did not come to its end.
    pub fn broken_off(plan: &Plan, trouble: String) -> Self {
        Self {
            seed: plan.seed,
            verdict: Verdict::default(),
            hits: Vec::new(),
            trouble: vec![trouble],
            took: Duration::ZERO,
        }
    }

    /// Faults that hit something, and were seen to.
    pub fn counted(&self) -> usize {
        self.hits.iter().filter(|hit| hit.counts()).count()
    }

    /// Nothing lost, reordered, altered, invented or moved, and it came to its end.
    pub fn is_good(&self) -> bool {
        self.verdict.faults() == 0 && self.trouble.is_empty()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.is_good() { "good" } else { "FAILED" };
        let (counted, all) = (self.counted(), self.hits.len());
        write!(
            f,
            "seed {}: {word}: {}; {counted} of {all} faults count; {:.0?}",
            self.seed, self.verdict, self.took
        )?;
        for line in self.trouble.iter().chain(&self.verdict.examples) {
            if !self.is_good() {
                write!(f, "\n  {line}")?;
            }
        }
        Ok(())
    }
}
