//! The survey: which source partitions feed which target partitions, and how far each log goes.
//!
//! Order of the questions: the commits first, then the ends at the target, then the ends at the source. So every
//! record before a commit stands before the target's end, and every record before the target's end was read before
//! the source's.

use super::compare::{Beginning, Cleanup, ShelfFacts, StreamFacts};
use super::print::Stamps;
use super::{From, Options, Unasked, Until};
use crate::client::admin::{Observer, TopicAdmin};
use crate::client::native::OffsetSpec;
use crate::config::spec::{ClusterSpec, Name, RouteSpec, Start, group_name};
use crate::handler::{BoundChain, Clock, Targets};
use crate::partition::PolicySpec;
use crate::record::TopicPartition;
use foldhash::quality::FixedState;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::BuildHasher;
use std::sync::Arc;
use std::time::Duration;

/// What was found out before anything is read.
pub struct Survey {
    /// The route.
    pub route: Arc<RouteSpec>,
    /// The target cluster.
    pub target: Arc<ClusterSpec>,
    /// The consumer group of each source's flow, whose rights are used; it is not joined.
    pub groups: Vec<String>,
    /// What is compared.
    pub units: Vec<Unit>,
    /// Target topics that the route writes and that are not there.
    pub absent: BTreeSet<String>,
    /// Partition counts of the target topics.
    pub counts: HashMap<String, i32>,
    /// Target partitions that the sample leaves out.
    pub left_out: usize,
}

/// Some target partitions, and every source partition that feeds them: what can be compared on its own.
pub struct Unit {
    /// Source partitions.
    pub streams: Vec<StreamPlan>,
    /// Target partitions.
    pub shelves: Vec<ShelfPlan>,
    /// Whether timestamps are compared.
    pub stamps: Stamps,
}

/// What is read of a source partition.
pub struct StreamPlan {
    /// Index of its cluster among the route's sources.
    pub source: usize,
    /// The partition.
    pub partition: TopicPartition,
    /// The route's handlers, for its topic.
    pub chain: Arc<BoundChain>,
    /// The first offset.
    pub from: i64,
    /// Every record below has to be at the target.
    pub required: i64,
    /// The end of its log.
    pub end: i64,
    /// What is known of its log.
    pub facts: StreamFacts,
}

/// What is read of a target partition.
pub struct ShelfPlan {
    /// The partition.
    pub partition: TopicPartition,
    /// The first offset.
    pub from: i64,
    /// The end of its log.
    pub end: i64,
    /// What is known of its log.
    pub facts: ShelfFacts,
}

/// A topic of one of the sources.
struct SourceTopic {
    source: usize,
    name: String,
    partitions: i32,
    chain: Arc<BoundChain>,
    /// The target topics that it feeds.
    feeds: BTreeSet<String>,
}

/// Offsets by partition.
type Offsets = HashMap<TopicPartition, i64>;

impl Survey {
    /// Asks every cluster of `route`.
    ///
    /// # Errors
    /// The cluster that did not answer.
    pub fn ask(
        group: &Name,
        route: &Arc<RouteSpec>,
        target: &Name,
        options: &Options,
    ) -> Result<Self, Unasked> {
        let target_spec = route
            .targets
            .iter()
            .find(|cluster| cluster.name == *target)
            .cloned()
            .ok_or_else(|| Unasked {
                cluster: target.clone(),
                detail: format!("it is no target of route {}", route.name),
            })?;
        let patience = options.patience;
        let groups: Vec<String> = route
            .sources
            .iter()
            .map(|source| group_name(group, &route.name, &source.name, target))
            .collect();
        let sources = sides(&route.sources, &groups, patience)?;
        let there = Side::connect(
            &target_spec,
            groups.first().map_or("", String::as_str),
            patience,
        )?;
        let counts: HashMap<String, i32> = there.topics()?.into_iter().collect();

        let topics = source_topics(route, target, &sources, &counts)?;
        let required = required(&sources, &topics, options)?;
        let written: BTreeSet<&String> = topics.iter().flat_map(|t| &t.feeds).collect();
        let absent = written
            .iter()
            .filter(|t| !counts.contains_key(**t))
            .map(|t| (*t).clone())
            .collect();
        let shelves = shelves(&there, &written, &counts, options)?;
        let streams = streams(route, &sources, topics, required, options)?;
        let (units, left_out) = sampled(units(route, streams, shelves), options);
        Ok(Self {
            route: route.clone(),
            target: target_spec,
            groups,
            units,
            absent,
            counts,
            left_out,
        })
    }

    /// Offsets at the target that are to be read.
    pub fn target_offsets(&self) -> u64 {
        let shelves = self.units.iter().flat_map(|unit| &unit.shelves);
        shelves
            .map(|s| u64::try_from(s.end - s.from).unwrap_or(0))
            .sum()
    }
}

/// A cluster that is asked.
struct Side {
    cluster: Arc<ClusterSpec>,
    observer: Observer,
    admin: TopicAdmin,
    patience: Duration,
}

impl Side {
    fn connect(
        cluster: &Arc<ClusterSpec>,
        group: &str,
        patience: Duration,
    ) -> Result<Self, Unasked> {
        let subject: Arc<str> = format!("verify {}", cluster.name).into();
        let failed = |detail: String| unasked(cluster, detail);
        Ok(Self {
            observer: Observer::new(cluster, group, subject.clone()).map_err(failed)?,
            admin: TopicAdmin::new(cluster, subject).map_err(failed)?,
            cluster: cluster.clone(),
            patience,
        })
    }

    fn topics(&self) -> Result<BTreeMap<String, i32>, Unasked> {
        self.observer
            .topics(self.patience)
            .map_err(|detail| unasked(&self.cluster, detail))
    }

    /// One offset of each partition.
    fn offsets(&self, partitions: &[TopicPartition], spec: OffsetSpec) -> Result<Offsets, Unasked> {
        let answers = self
            .observer
            .offsets(partitions, spec, self.patience)
            .map_err(|detail| unasked(&self.cluster, detail))?;
        answers
            .into_iter()
            .map(|(tp, offset)| match offset {
                Ok(offset) => Ok((tp, offset)),
                Err(code) => Err(unasked(&self.cluster, format!("no offset of {tp}: {code}"))),
            })
            .collect()
    }

    /// The first offset that is not older than `at`, the end where all are.
    fn offsets_since(
        &self,
        partitions: &[TopicPartition],
        at: i64,
        ends: &Offsets,
    ) -> Result<Offsets, Unasked> {
        let mut offsets = self.offsets(partitions, OffsetSpec::Since(at))?;
        for (tp, offset) in &mut offsets {
            if *offset < 0 {
                *offset = ends.get(tp).copied().unwrap_or(0);
            }
        }
        Ok(offsets)
    }

    fn committed(&self, partitions: &[TopicPartition]) -> Result<Offsets, Unasked> {
        let answers = self
            .observer
            .committed(partitions, self.patience)
            .map_err(|detail| unasked(&self.cluster, detail))?;
        let mut offsets = Offsets::new();
        for (tp, position) in answers {
            match position {
                Ok(Some((offset, _))) => drop(offsets.insert(tp, offset)),
                Ok(None) => {}
                Err(code) => {
                    return Err(unasked(&self.cluster, format!("no commit of {tp}: {code}")));
                }
            }
        }
        Ok(offsets)
    }

    fn settings(&self, topic: &str) -> Result<TopicSettings, Unasked> {
        let configs = self
            .admin
            .configs(topic, self.patience)
            .map_err(|detail| unasked(&self.cluster, format!("settings of {topic}: {detail}")))?;
        let value = |name: &str| configs.get(name).map_or("", |c| c.value.as_str());
        Ok(TopicSettings {
            cleanup: match value("cleanup.policy").contains("compact") {
                true => Cleanup::Compacted,
                false => Cleanup::Kept,
            },
            stamps: match value("message.timestamp.type") {
                "LogAppendTime" => Stamps::Ignored,
                _ => Stamps::Compared,
            },
        })
    }
}

fn unasked(cluster: &ClusterSpec, detail: String) -> Unasked {
    Unasked {
        cluster: cluster.name.clone(),
        detail,
    }
}

/// What a topic's settings say to a comparison.
#[derive(Clone, Copy)]
struct TopicSettings {
    cleanup: Cleanup,
    stamps: Stamps,
}

fn sides(
    clusters: &[Arc<ClusterSpec>],
    groups: &[String],
    patience: Duration,
) -> Result<Vec<Side>, Unasked> {
    let pairs = clusters.iter().zip(groups);
    pairs
        .map(|(cluster, group)| Side::connect(cluster, group, patience))
        .collect()
}

/// The topics that the route copies, with what they feed.
fn source_topics(
    route: &RouteSpec,
    target: &Name,
    sources: &[Side],
    counts: &HashMap<String, i32>,
) -> Result<Vec<SourceTopic>, Unasked> {
    let mut found = Vec::new();
    for (source, side) in sources.iter().enumerate() {
        for (name, partitions) in side.topics()? {
            let Some(bound) = route.bind(&side.cluster.name, target, &name, Clock::System) else {
                continue;
            };
            let chain = bound.map_err(|fault| {
                unasked(
                    &side.cluster,
                    format!(
                        "the handlers cannot be bound to topic {name}: {}",
                        fault.message
                    ),
                )
            })?;
            found.push(SourceTopic {
                source,
                feeds: feeds(chain.targets(), counts),
                name,
                partitions,
                chain: Arc::new(chain),
            });
        }
    }
    Ok(found)
}

fn feeds(targets: &Targets, counts: &HashMap<String, i32>) -> BTreeSet<String> {
    let by_content = counts
        .keys()
        .filter(|topic| targets.by_content.iter().any(|r| r.is_match(topic)));
    targets.known.iter().chain(by_content).cloned().collect()
}

fn partitions_of<'a>(topics: impl Iterator<Item = (&'a String, i32)>) -> Vec<TopicPartition> {
    topics
        .flat_map(|(name, count)| {
            let name: Arc<str> = name.as_str().into();
            (0..count).map(move |p| TopicPartition::new(name.clone(), p))
        })
        .collect()
}

fn of_source(topics: &[SourceTopic], source: usize) -> Vec<TopicPartition> {
    let here = topics.iter().filter(|t| t.source == source);
    partitions_of(here.map(|t| (&t.name, t.partitions)))
}

/// Below which offset every record has to be at the target; `None`: up to the end, which is asked for later.
fn required(
    sources: &[Side],
    topics: &[SourceTopic],
    options: &Options,
) -> Result<Vec<Option<Offsets>>, Unasked> {
    sources
        .iter()
        .enumerate()
        .map(|(index, side)| match options.until {
            Until::Committed => side.committed(&of_source(topics, index)).map(Some),
            Until::End | Until::Time(_) => Ok(None),
        })
        .collect()
}

/// The target partitions, up to their ends as they are now.
fn shelves(
    there: &Side,
    written: &BTreeSet<&String>,
    counts: &HashMap<String, i32>,
    options: &Options,
) -> Result<Vec<(ShelfPlan, Stamps)>, Unasked> {
    let present = written.iter().filter_map(|t| Some((*t, *counts.get(*t)?)));
    let partitions = partitions_of(present);
    let ends = there.offsets(&partitions, OffsetSpec::HighWatermark)?;
    let starts = there.offsets(&partitions, OffsetSpec::Earliest)?;
    let begin = match options.from {
        From::Beginning => starts.clone(),
        From::Time(at) => there.offsets_since(&partitions, at, &ends)?,
    };
    let mut settings: HashMap<Arc<str>, TopicSettings> = HashMap::new();
    let mut shelves = Vec::with_capacity(partitions.len());
    for partition in partitions {
        let known = match settings.get(&partition.topic) {
            Some(known) => *known,
            None => {
                let asked = there.settings(&partition.topic)?;
                settings.insert(partition.topic.clone(), asked);
                asked
            }
        };
        let from = begin.get(&partition).copied().unwrap_or(0);
        let plan = ShelfPlan {
            from,
            end: ends.get(&partition).copied().unwrap_or(0),
            facts: ShelfFacts {
                beginning: beginning(from),
                cleanup: known.cleanup,
            },
            partition,
        };
        shelves.push((plan, known.stamps));
    }
    Ok(shelves)
}

fn beginning(from: i64) -> Beginning {
    match from {
        0 => Beginning::Whole,
        _ => Beginning::Cut,
    }
}

/// The source partitions, each with the topics that it feeds.
fn streams(
    route: &RouteSpec,
    sources: &[Side],
    topics: Vec<SourceTopic>,
    required: Vec<Option<Offsets>>,
    options: &Options,
) -> Result<Vec<(StreamPlan, BTreeSet<String>)>, Unasked> {
    let mut streams = Vec::new();
    for (index, (side, required)) in sources.iter().zip(required).enumerate() {
        let partitions = of_source(&topics, index);
        let ends = side.offsets(&partitions, OffsetSpec::LastStable)?;
        let begin = match options.from {
            From::Beginning => side.offsets(&partitions, OffsetSpec::Earliest)?,
            From::Time(at) => side.offsets_since(&partitions, at, &ends)?,
        };
        let required = match (required, options.until) {
            (Some(committed), _) => committed,
            (None, Until::Time(at)) => side.offsets_since(&partitions, at, &ends)?,
            (None, _) => ends.clone(),
        };
        for topic in topics.iter().filter(|t| t.source == index) {
            let settings = side.settings(&topic.name)?;
            for partition in partitions.iter().filter(|tp| *tp.topic == *topic.name) {
                let from = begin.get(partition).copied().unwrap_or(0);
                let plan = StreamPlan {
                    source: index,
                    partition: partition.clone(),
                    chain: topic.chain.for_partition(),
                    from,
                    // Nothing is committed yet: nothing has to be there.
                    required: required.get(partition).copied().unwrap_or(from),
                    end: ends.get(partition).copied().unwrap_or(from),
                    facts: StreamFacts {
                        beginning: beginning(from),
                        cleanup: settings.cleanup,
                        start: match route.start {
                            Start::Earliest => Beginning::Whole,
                            Start::Latest => Beginning::Cut,
                        },
                    },
                };
                streams.push((plan, topic.feeds.clone()));
            }
        }
    }
    Ok(streams)
}

/// Splits what is compared into the smallest sets that nothing feeds from outside. With `match` the partitions of one
/// number stand on their own; any other policy mixes them.
fn units(
    route: &RouteSpec,
    streams: Vec<(StreamPlan, BTreeSet<String>)>,
    shelves: Vec<(ShelfPlan, Stamps)>,
) -> Vec<Unit> {
    let mut families = Families::default();
    for (_, feeds) in &streams {
        families.join(feeds);
    }
    let by_number = matches!(
        route.policy,
        PolicySpec::Match {
            on_fewer: crate::partition::OnFewer::Stop
        }
    );
    let number = |partition: i32| if by_number { partition } else { 0 };
    let mut units: BTreeMap<(String, i32), Unit> = BTreeMap::new();
    let new = || Unit {
        streams: Vec::new(),
        shelves: Vec::new(),
        stamps: match route.chain.analysis().writes_the_time {
            true => Stamps::Ignored,
            false => Stamps::Compared,
        },
    };
    for (plan, feeds) in streams {
        // A topic of which nothing goes anywhere has nothing to compare.
        let Some(family) = feeds.first().map(|topic| families.of(topic)) else {
            continue;
        };
        let key = (family, number(plan.partition.partition));
        units.entry(key).or_insert_with(new).streams.push(plan);
    }
    for (plan, stamps) in shelves {
        let key = (
            families.of(&plan.partition.topic),
            number(plan.partition.partition),
        );
        // A target partition that no source partition feeds is not this route's business.
        if let Some(unit) = units.get_mut(&key) {
            unit.shelves.push(plan);
            if stamps == Stamps::Ignored {
                unit.stamps = Stamps::Ignored;
            }
        }
    }
    units.into_values().collect()
}

/// Which topics belong together, since something feeds both.
#[derive(Default)]
struct Families {
    parents: HashMap<String, String>,
}

impl Families {
    fn of(&self, topic: &str) -> String {
        let mut at = topic;
        while let Some(parent) = self.parents.get(at) {
            at = parent;
        }
        at.to_owned()
    }

    fn join(&mut self, topics: &BTreeSet<String>) {
        let mut roots = topics
            .iter()
            .map(|t| self.of(t))
            .collect::<BTreeSet<_>>()
            .into_iter();
        let Some(first) = roots.next() else { return };
        for root in roots {
            self.parents.insert(root, first.clone());
        }
    }
}

/// The part of the units that is compared: by the hash of their first partition, at least one of each set of topics.
fn sampled(units: Vec<Unit>, options: &Options) -> (Vec<Unit>, usize) {
    if options.sample >= 1.0 {
        return (largest_first(units), 0);
    }
    let mut by_topic: BTreeMap<Option<Arc<str>>, Vec<Unit>> = BTreeMap::new();
    for unit in units {
        let topic = unit.streams.first().map(|s| s.partition.topic.clone());
        by_topic.entry(topic).or_default().push(unit);
    }
    let (mut taken, mut left_out) = (Vec::new(), 0);
    for mut units in by_topic.into_values() {
        let hasher = FixedState::with_seed(options.seed);
        units.sort_by_key(|unit| unit.streams.first().map(|s| hasher.hash_one(&s.partition)));
        // From 1 to all of them: the cast cannot leave that range.
        let count = (units.len() as f64 * options.sample).ceil().max(1.0) as usize;
        let rest = units.split_off(count.min(units.len()));
        left_out += rest.iter().map(|unit| unit.shelves.len()).sum::<usize>();
        taken.extend(units);
    }
    (largest_first(taken), left_out)
}

/// The longest work begins first, so that all ends at about the same time.
fn largest_first(mut units: Vec<Unit>) -> Vec<Unit> {
    let size = |unit: &Unit| unit.shelves.iter().map(|s| s.end - s.from).sum::<i64>();
    units.sort_by_key(|unit| std::cmp::Reverse(size(unit)));
    units
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_that_something_feeds_both_belong_together() {
        let mut families = Families::default();
        let set = |topics: &[&str]| {
            topics
                .iter()
                .map(|t| (*t).to_owned())
                .collect::<BTreeSet<_>>()
        };
        families.join(&set(&["a", "b"]));
        families.join(&set(&["c"]));
        families.join(&set(&["d", "b"]));
        assert_eq!(families.of("a"), families.of("d"));
        assert_ne!(families.of("a"), families.of("c"));
        families.join(&set(&["c", "d"]));
        assert_eq!(families.of("a"), families.of("c"));
    }
}
