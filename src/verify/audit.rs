//! The continuous audit: again and again, what the route has committed since the last time against what stands at the
//! target, each end counted and hashed.
//!
//! A round ends at the route's commits: below them every record was acknowledged, so it has to be there, whatever its
//! timestamp says. What is remembered of one round is there in the next, so that a repeat after a kill is one.

use super::compare::{Beginning, Ends, Tally};
use super::survey::{Survey, Unit};
use super::unit::{self, Outcome, Standing, Told};
use super::{Options, Progress, Unasked, each_of};
use crate::config::spec::{Name, RouteSpec};
use crate::handler::BoundChain;
use crate::record::TopicPartition;
use std::collections::BTreeMap;
use std::sync::Arc;

/// An audit of what one route makes at one of its targets.
pub struct Audit {
    group: Name,
    route: Arc<RouteSpec>,
    target: Name,
    options: Options,
    standings: BTreeMap<Places, Followed>,
}

/// What came out of one round.
#[derive(Debug, Default)]
pub struct Round {
    /// What was judged at both ends.
    pub ends: Ends,
    /// What was counted.
    pub tally: Tally,
    /// The differences that are told one by one.
    pub differences: Vec<Told>,
    /// Why not all could be compared. The next round goes on where this one stood.
    pub unasked: Option<Unasked>,
}

/// What a round says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Nothing differs.
    Equal,
    /// Something differs.
    Different,
    /// Nothing differs as far as could be compared, and not all could.
    Unknown,
}

impl Verdict {
    /// Every verdict.
    pub const ALL: [Verdict; 3] = [Verdict::Equal, Verdict::Different, Verdict::Unknown];

    /// Its word in results and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Equal => "equal",
            Verdict::Different => "different",
            Verdict::Unknown => "unknown",
        }
    }
}

impl Round {
    /// What it says.
    pub fn verdict(&self) -> Verdict {
        match (self.tally.differences(), &self.unasked) {
            (0, None) => Verdict::Equal,
            (0, Some(_)) => Verdict::Unknown,
            _ => Verdict::Different,
        }
    }

    fn add(&mut self, outcome: Outcome, told: usize) {
        self.tally.add(&outcome.tally);
        self.ends.source.add(&outcome.ends.source);
        self.ends.target.add(&outcome.ends.target);
        let room = told.saturating_sub(self.differences.len());
        self.differences
            .extend(outcome.differences.into_iter().take(room));
    }
}

/// The partitions of a unit: those of the sources, by their number in the route, and those of the target.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Places {
    streams: Vec<(usize, TopicPartition)>,
    shelves: Vec<TopicPartition>,
}

impl Places {
    fn of(unit: &Unit) -> Self {
        let stream = |s: &super::survey::StreamPlan| (s.source, s.partition.clone());
        Self {
            streams: unit.streams.iter().map(stream).collect(),
            shelves: unit.shelves.iter().map(|s| s.partition.clone()).collect(),
        }
    }
}

/// A unit between two rounds.
struct Followed {
    standing: Standing,
    /// One for each source partition: what a handler remembers, it remembers over the rounds.
    chains: Vec<Arc<BoundChain>>,
}

impl Audit {
    /// An audit that begins where `options` say, with the first round.
    pub fn new(group: &Name, route: &Arc<RouteSpec>, target: &Name, options: Options) -> Self {
        Self {
            group: group.clone(),
            route: route.clone(),
            target: target.clone(),
            options,
            standings: BTreeMap::new(),
        }
    }

    /// The route.
    pub fn route(&self) -> &Name {
        &self.route.name
    }

    /// The target.
    pub fn target(&self) -> &Name {
        &self.target
    }

    /// Compares what was committed since the last round.
    pub fn round(&mut self) -> Round {
        let mut round = Round::default();
        match Survey::ask(&self.group, &self.route, &self.target, &self.options) {
            Ok(survey) => self.compare(survey, &mut round),
            Err(unasked) => round.unasked = Some(unasked),
        }
        round
    }

    fn compare(&mut self, mut survey: Survey, round: &mut Round) {
        let mut known = std::mem::take(&mut self.standings);
        let mut followed = Vec::with_capacity(survey.units.len());
        for unit in &mut survey.units {
            let places = Places::of(unit);
            let here = take_up(unit, &places, &mut known, self.options.window);
            followed.push((places, here));
        }
        let work: Vec<(&Unit, &mut Followed)> = survey
            .units
            .iter()
            .zip(followed.iter_mut().map(|(_, here)| here))
            .collect();
        let progress = Progress::default();
        let results = each_of(&survey, work, &self.options, |readers, (unit, here)| {
            let standing = &mut here.standing;
            unit::compare(&survey, unit, readers, &self.options, &progress, standing)
        });
        for result in results {
            match result {
                Ok(outcome) => round.add(outcome, self.options.told),
                Err(unasked) => round.unasked = Some(unasked),
            }
        }
        self.standings = followed.into_iter().collect();
    }
}

/// Where `unit` is read on: where it stood, or anew.
fn take_up(
    unit: &mut Unit,
    places: &Places,
    known: &mut BTreeMap<Places, Followed>,
    window: usize,
) -> Followed {
    if let Some(followed) = known.remove(places)
        && is_in(&followed.standing, unit)
    {
        for (stream, chain) in unit.streams.iter_mut().zip(&followed.chains) {
            stream.chain = chain.clone();
        }
        return followed;
    }
    carry_over(unit, known);
    Followed {
        standing: Standing::new(unit, window),
        chains: unit.streams.iter().map(|s| s.chain.clone()).collect(),
    }
}

/// Whether the logs are still those that were read: one that ends before what was read of it was made anew.
fn is_in(standing: &Standing, unit: &Unit) -> bool {
    let streams = unit.streams.iter().map(|s| s.end).zip(&standing.streams);
    let shelves = unit.shelves.iter().map(|s| s.end).zip(&standing.shelves);
    streams.chain(shelves).all(|(end, next)| *next <= end)
}

/// Partitions that came to others, since a topic grew or was found: what was read of them is not read again. What was
/// remembered of them is forgotten, so they count as logs that are read from their midst.
fn carry_over(unit: &mut Unit, known: &BTreeMap<Places, Followed>) {
    let (mut streams, mut shelves) = (BTreeMap::new(), BTreeMap::new());
    for (places, followed) in known {
        streams.extend(places.streams.iter().zip(&followed.standing.streams));
        shelves.extend(places.shelves.iter().zip(&followed.standing.shelves));
    }
    for stream in &mut unit.streams {
        let next = streams.get(&(stream.source, stream.partition.clone()));
        if let Some(next) = next.filter(|next| ***next <= stream.end) {
            stream.from = **next;
            stream.facts.beginning = Beginning::Cut;
        }
    }
    for shelf in &mut unit.shelves {
        let next = shelves.get(&shelf.partition);
        if let Some(next) = next.filter(|next| ***next <= shelf.end) {
            shelf.from = **next;
            shelf.facts.beginning = Beginning::Cut;
        }
    }
}
