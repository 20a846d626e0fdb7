//! One run: the parts that were asked for, one after the other on the same clusters.

use crate::arguments::{Arguments, Effort, Part};
use crate::contender::{Contender, Plane, Shape, Tools};
use crate::cost::{Contest, Round};
use crate::idle::{self, Idle};
use crate::latency::{self, Delay, Pace};
use crate::machine::Machine;
use crate::maker::Tuning;
use crate::memory::{self, Backlog, Peak};
use crate::results::Results;
use crate::stage::Stage;
use std::time::Duration;

/// A pace in records a second, where delays are compared.
const THOUSAND: u64 = 1000;
/// Whose delay is measured at it.
const AT_A_THOUSAND: [Contender; 3] = [
    Contender::Bare,
    Contender::Mirror(Plane::Librdkafka, Shape::Worker),
    Contender::Mirror(Plane::NativePassing, Shape::Worker),
];
/// Who can go on copying, and whose delay is measured at a fifth of what it can do.
const AT_A_FIFTH: [Contender; 6] = [
    Contender::Bare,
    Contender::Mirror(Plane::Librdkafka, Shape::Worker),
    Contender::Mirror(Plane::NativePassing, Shape::Worker),
    Contender::Maker(Tuning::Defaults),
    Contender::Maker(Tuning::Tuned),
    Contender::Franz,
];
/// The workload that says what each can do.
const FULL_LOAD: &str = "1k";

/// Clusters that run, and what is to be measured on them.
pub struct Run<'a> {
    arguments: &'a Arguments,
    tools: &'a Tools,
    machine: Machine,
    stage: Stage,
}

impl<'a> Run<'a> {
    /// Looks at the machine, and starts the clusters.
    pub fn start(arguments: &'a Arguments, tools: &'a Tools) -> Self {
        Self {
            arguments,
            tools,
            machine: Machine::here(),
            stage: Stage::start(),
        }
    }

    /// Measures.
    pub fn measure(self) -> Results {
        let rounds = self.part(Part::Cost, Self::rounds);
        Results {
            at_a_thousand: self.part(Part::Latency, Self::at_a_thousand),
            at_a_fifth: self.part(Part::Latency, |run| run.at_a_fifth(&rounds)),
            peaks: self.part(Part::Memory, Self::peaks),
            idles: self.part(Part::Idle, Self::idles),
            rounds,
            runs: self.arguments.runs,
            scale: self.arguments.scale,
            machine: self.machine,
        }
    }

    /// What a part found out, if it was asked for.
    fn part<T>(&self, part: Part, measure: impl Fn(&Self) -> Vec<T>) -> Vec<T> {
        if self.arguments.parts.contains(&part) {
            measure(self)
        } else {
            Vec::new()
        }
    }

    fn rounds(&self) -> Vec<Round> {
        let contest = Contest {
            stage: &self.stage,
            tools: self.tools,
            runs: self.arguments.runs,
            contenders: &self.arguments.contenders,
        };
        contest.rounds(&self.arguments.workloads)
    }

    fn at_a_thousand(&self) -> Vec<Delay> {
        let taking = self.taking(&AT_A_THOUSAND);
        taking.map(|who| self.delay(who, THOUSAND)).collect()
    }

    /// Without a full load nobody knows how much a fifth is; and of a quick run nothing is asked here.
    fn at_a_fifth(&self, rounds: &[Round]) -> Vec<Delay> {
        let full = rounds.iter().find(|r| r.workload.name == FULL_LOAD);
        let (Some(full), Effort::Full) = (full, self.arguments.effort) else {
            println!(
                "no delays at a fifth of what each can do: {FULL_LOAD} was not copied in full"
            );
            return Vec::new();
        };
        let pace = |who| Some((full.rate(full.of(who)?)? / 5.0) as u64);
        let taking = self.taking(&AT_A_FIFTH);
        taking
            .filter_map(|who| Some(self.delay(who, pace(who)?)))
            .collect()
    }

    fn taking(&self, of: &[Contender]) -> impl Iterator<Item = Contender> {
        let takes_part = |who: &Contender| self.arguments.contenders.contains(who);
        of.iter().copied().filter(takes_part)
    }

    fn delay(&self, who: Contender, per_second: u64) -> Delay {
        let lasts = self.lasts(15, 60);
        latency::measure(&self.stage, self.tools, who, Pace { per_second, lasts })
    }

    fn peaks(&self) -> Vec<Peak> {
        let backlog = Backlog {
            bytes: self.arguments.backlog,
            lasts: self.lasts(25, 180),
        };
        let planes = [Plane::Librdkafka, Plane::Native, Plane::NativePassing];
        let planes = match self.arguments.effort {
            Effort::Quick => &planes[..2],
            Effort::Full => &planes[..],
        };
        memory::measure(&self.stage, self.tools, backlog, planes)
    }

    fn idles(&self) -> Vec<Idle> {
        let lasts = self.lasts(10, 60);
        let planes = [Plane::Librdkafka, Plane::Native].into_iter();
        planes
            .map(|plane| idle::measure(&self.stage, self.tools, plane, lasts))
            .collect()
    }

    /// Seconds of a quick run, and of a full one.
    fn lasts(&self, quick: u64, full: u64) -> Duration {
        Duration::from_secs(match self.arguments.effort {
            Effort::Quick => quick,
            Effort::Full => full,
        })
    }
}
