//! The continuous audit: again and again, what the route has committed since the last time against what stands at the
//! target, each end counted and hashed.
//!
//! A round ends at the route's commits: below them every record was acknowledged, so it has to be there, whatever its
//! timestamp says. What is remembered of one round is there in the next, so that a repeat after a kill is one.

use super::compare::{Beginning, Ends, Tally};
use super::survey::{StreamPlan, Survey, Unit};
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
        self.ends.add(&outcome.ends);
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
        let stream = |s: &StreamPlan| (s.source, s.partition.clone());
        Self {
            streams: unit.streams.iter().map(stream).collect(),
            shelves: unit.shelves.iter().map(|s| s.partition.clone()).collect(),
        }
    }

    /// Whether a partition is in both.
    fn touch(&self, other: &Places) -> bool {
        self.streams.iter().any(|s| other.streams.contains(s))
            || self.shelves.iter().any(|s| other.shelves.contains(s))
    }
}

/// A unit between two rounds.
struct Followed {
    standing: Standing,
    /// One for each source partition: what a handler remembers, it remembers over the rounds.
    chains: Vec<Arc<BoundChain>>,
}

impl Followed {
    /// Whether the logs are still those that were read: one that ends before what was read of it was made anew, and one
    /// that begins behind it has lost what was to be read next.
    fn is_in(&self, places: &Places, unit: &Unit) -> bool {
        let streams = places.streams.iter().zip(&self.standing.streams);
        let mut streams = streams.map(|(place, next)| {
            let here = |s: &&StreamPlan| (s.source, &s.partition) == (place.0, &place.1);
            let here = unit.streams.iter().find(here);
            here.is_none_or(|s| (s.from..=s.end).contains(next))
        });
        let shelves = places.shelves.iter().zip(&self.standing.shelves);
        let mut shelves = shelves.map(|(place, next)| {
            let here = unit.shelves.iter().find(|s| s.partition == *place);
            here.is_none_or(|s| (s.from..=s.end).contains(next))
        });
        streams.all(|is_in| is_in) && shelves.all(|is_in| is_in)
    }

    /// Goes on with `part`, which follows some of the same partitions: a topic grew, or was found and joins others. What
    /// is open there is still to come, so it must not be forgotten.
    fn inherit(&mut self, part: Followed, there: &Places, here: &Places) {
        let number = |n: usize| u32::try_from(n).ok();
        let streams = there.streams.iter();
        let streams: Vec<_> = streams
            .map(|place| number(here.streams.iter().position(|s| s == place)?))
            .collect();
        let shelves = there.shelves.iter();
        let shelves: Vec<_> = shelves
            .map(|place| number(here.shelves.iter().position(|s| s == place)?))
            .collect();
        for (chain, here) in part.chains.into_iter().zip(&streams) {
            if let Some(here) = here {
                self.chains[*here as usize] = chain;
            }
        }
        self.standing.inherit(part.standing, &streams, &shelves);
    }
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
    let parts: Vec<Places> = known.keys().filter(|p| p.touch(places)).cloned().collect();
    let parts = parts.into_iter().filter_map(|p| known.remove_entry(&p));
    let (whole, made_anew): (Vec<_>, Vec<_>) =
        parts.partition(|(places, part)| part.is_in(places, unit));
    for (places, part) in &made_anew {
        pass_over(unit, places, &part.standing);
    }
    let mut followed = Followed {
        standing: Standing::new(unit, window),
        chains: unit.streams.iter().map(|s| s.chain.clone()).collect(),
    };
    for (part_places, part) in whole {
        followed.inherit(part, &part_places, places);
    }
    for (stream, chain) in unit.streams.iter_mut().zip(&followed.chains) {
        stream.chain = chain.clone();
    }
    followed
}

/// One of the logs was made anew, or has lost what was not read yet: what was remembered of its unit explains nothing any
/// more. What was read of the others is not read again, so they count as logs that are read from their midst.
fn pass_over(unit: &mut Unit, places: &Places, standing: &Standing) {
    for (place, next) in places.streams.iter().zip(&standing.streams) {
        let here = |s: &&mut StreamPlan| (s.source, &s.partition) == (place.0, &place.1);
        let stream = unit.streams.iter_mut().find(here);
        if let Some(stream) = stream.filter(|s| (s.from..=s.end).contains(next)) {
            stream.from = *next;
            stream.facts.beginning = Beginning::Cut;
        }
    }
    for (place, next) in places.shelves.iter().zip(&standing.shelves) {
        let shelf = unit.shelves.iter_mut().find(|s| s.partition == *place);
        if let Some(shelf) = shelf.filter(|s| (s.from..=s.end).contains(next)) {
            shelf.from = *next;
            shelf.facts.beginning = Beginning::Cut;
        }
    }
}
