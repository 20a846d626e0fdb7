//! One unit: both sides are read side by side, the source as far ahead as the comparison asks.

use super::compare::{Comparison, Difference, Ends, Expected, Found, Need, Shelf, Stream, Tally};
use super::print::Print;
use super::survey::{ShelfPlan, StreamPlan, Survey, Unit};
use super::{Options, Progress, Unasked, Until};
use crate::client::native::Fetched;
use crate::client::reader::{Read, Reader};
use crate::client::settings::Isolation;
use crate::config::spec::Name;
use crate::partition::{Choice, Policy};
use crate::plane::{FetchedRecord, Offset, borrow};
use crate::record::{Record, TopicPartition};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How long one look at a side waits.
const LOOK: Duration = Duration::from_millis(50);
/// Source records that are read in one go.
const STRETCH: usize = 512;

/// A reader of each cluster.
pub struct Readers {
    sources: Vec<Reader>,
    target: Reader,
}

impl Readers {
    /// Builds the clients.
    ///
    /// # Errors
    /// The client's words.
    pub fn connect(survey: &Survey) -> Result<Self, Unasked> {
        let reader = |cluster: &crate::config::spec::ClusterSpec, group: &str, isolation| {
            let subject: Arc<str> = format!("verify {}", cluster.name).into();
            Reader::new(cluster, group, isolation, subject).map_err(|detail| Unasked {
                cluster: cluster.name.clone(),
                detail,
            })
        };
        let sources = survey.route.sources.iter().zip(&survey.groups);
        Ok(Self {
            // What the route copies, no more.
            sources: sources
                .map(|(cluster, group)| reader(cluster, group, Isolation::Committed))
                .collect::<Result<_, _>>()?,
            // The route's records are in no transaction; one of somebody else's must not hide them.
            target: reader(
                &survey.target,
                survey.groups.first().map_or("", String::as_str),
                Isolation::Uncommitted,
            )?,
        })
    }
}

/// What came out of one unit.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The target partitions.
    pub shelves: Vec<TopicPartition>,
    /// Records read at the source.
    pub source_read: u64,
    /// Records read at the target.
    pub target_read: u64,
    /// Source records that the handlers dropped.
    pub dropped: u64,
    /// Source records on which a handler failed: `on_error` decided about them.
    pub failed: u64,
    /// What the comparison counted.
    pub tally: Tally,
    /// The sums of both ends.
    pub ends: Ends,
    /// The differences that are told one by one.
    pub differences: Vec<Told>,
}

/// A difference with the names of its places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// What differs.
    pub what: Difference,
    /// The record at the source: its cluster, partition and offset.
    pub source: Option<(Name, TopicPartition, i64)>,
    /// The record, or where it should be, at the target: partition, and the offset where it stands.
    pub target: Option<(TopicPartition, Option<i64>)>,
}

/// How far the comparison of a unit is: where each log is read on, and what is remembered of what was read.
pub struct Standing {
    comparison: Comparison,
    /// The next offset of each source partition.
    pub streams: Vec<i64>,
    /// The next offset of each target partition.
    pub shelves: Vec<i64>,
    /// What of it was said.
    said: (Tally, Ends),
    /// Differences that were not said, since the cluster fell silent behind them.
    unsaid: Vec<Told>,
}

impl Standing {
    /// Nothing of `unit` was read yet.
    pub fn new(unit: &Unit, window: usize) -> Self {
        Self {
            comparison: Comparison::new(
                unit.streams.iter().map(|s| s.facts).collect(),
                unit.shelves.iter().map(|s| s.facts).collect(),
                window,
            ),
            streams: unit.streams.iter().map(|s| s.from).collect(),
            shelves: unit.shelves.iter().map(|s| s.from).collect(),
            said: Default::default(),
            unsaid: Vec::new(),
        }
    }

    /// Goes on where `earlier` is, the standing of a part of the unit. `streams` and `shelves` say which number each of
    /// its logs has here.
    pub fn inherit(
        &mut self,
        earlier: Standing,
        streams: &[Option<Stream>],
        shelves: &[Option<Shelf>],
    ) {
        for (next, here) in earlier.streams.iter().zip(streams) {
            if let Some(here) = here {
                self.streams[*here as usize] = *next;
            }
        }
        for (next, here) in earlier.shelves.iter().zip(shelves) {
            if let Some(here) = here {
                self.shelves[*here as usize] = *next;
            }
        }
        self.comparison
            .inherit(earlier.comparison, streams, shelves);
        self.said.0.add(&earlier.said.0);
        self.said.1.add(&earlier.said.1);
        self.unsaid.extend(earlier.unsaid);
    }

    /// What was counted and not yet said.
    fn say(&mut self, outcome: &mut Outcome) {
        let now = (self.comparison.tally(), self.comparison.ends());
        outcome.tally = now.0.since(&self.said.0);
        outcome.ends = now.1.since(&self.said.1);
        outcome.differences = std::mem::take(&mut self.unsaid);
        self.said = now;
    }
}

/// Compares one unit, from where `standing` is to the ends that the survey found; what has to be at the target by then,
/// and what nobody expected, is judged. What came out counts from the last call that said something.
///
/// # Errors
/// A cluster that is silent for too long or refuses. `standing` is where it was then, and can go on; what was found by
/// then is said by the next call that comes to its end.
pub fn compare(
    survey: &Survey,
    unit: &Unit,
    readers: &Readers,
    options: &Options,
    progress: &Progress,
    standing: &mut Standing,
) -> Result<Outcome, Unasked> {
    let mut work = Work::begin(survey, unit, readers, options, progress, standing)?;
    let read = work.read();
    work.note_positions();
    read?;
    let mut outcome = work.outcome;
    standing.say(&mut outcome);
    Ok(outcome)
}

struct Work<'a> {
    survey: &'a Survey,
    unit: &'a Unit,
    options: &'a Options,
    progress: &'a Progress,
    standing: &'a mut Standing,
    policy: Policy,
    sources: Vec<Side<'a>>,
    target: Side<'a>,
    shelves: HashMap<TopicPartition, Shelf>,
    outcome: Outcome,
}

impl<'a> Work<'a> {
    fn begin(
        survey: &'a Survey,
        unit: &'a Unit,
        readers: &'a Readers,
        options: &'a Options,
        progress: &'a Progress,
        standing: &'a mut Standing,
    ) -> Result<Self, Unasked> {
        let streams = |source: usize| {
            let numbered = unit.streams.iter().zip(&standing.streams).enumerate();
            let here = numbered.filter(move |(_, (s, _))| s.source == source);
            here.map(|(number, (s, next)): (usize, (&StreamPlan, &i64))| Span {
                number,
                partition: s.partition.clone(),
                next: *next,
                end: s.end,
            })
        };
        let numbered = unit.shelves.iter().zip(&standing.shelves).enumerate();
        let shelves = numbered.map(|(number, (s, next)): (usize, (&ShelfPlan, &i64))| Span {
            number,
            partition: s.partition.clone(),
            next: *next,
            end: s.end,
        });
        let clusters = survey
            .route
            .sources
            .iter()
            .zip(&readers.sources)
            .enumerate();
        let sources = clusters
            .map(|(index, (cluster, reader))| {
                Side::begin(
                    &cluster.name,
                    reader,
                    streams(index).collect(),
                    options.patience,
                )
            })
            .collect::<Result<_, _>>()?;
        let policy = Policy::new(&survey.route.policy).map_err(|detail| Unasked {
            cluster: survey.target.name.clone(),
            detail,
        })?;
        let target = Side::begin(
            &survey.target.name,
            &readers.target,
            shelves.collect(),
            options.patience,
        )?;
        let required: Vec<i64> = unit.streams.iter().map(|s| s.required).collect();
        standing.comparison.require(&required);
        Ok(Self {
            survey,
            unit,
            options,
            progress,
            standing,
            policy,
            sources,
            target,
            shelves: unit
                .shelves
                .iter()
                .enumerate()
                .map(|(n, s)| (s.partition.clone(), n as Shelf))
                .collect(),
            outcome: Outcome {
                shelves: unit.shelves.iter().map(|s| s.partition.clone()).collect(),
                ..Outcome::default()
            },
        })
    }

    /// Reads both sides to the end, and has judged what can be judged then.
    fn read(&mut self) -> Result<(), Unasked> {
        self.read_target()?;
        self.read_required()?;
        self.standing.comparison.settle();
        self.tell();
        Ok(())
    }

    /// Where each side is read on the next time.
    fn note_positions(&mut self) {
        for side in &self.sources {
            for span in &side.spans {
                self.standing.streams[span.number] = span.next;
            }
        }
        for span in &self.target.spans {
            self.standing.shelves[span.number] = span.next;
        }
    }

    /// Reads the target; the source follows as far as is asked for.
    fn read_target(&mut self) -> Result<(), Unasked> {
        while !self.target.is_done() {
            let Some((shelf, fetched)) = self.target.next()? else {
                continue;
            };
            let partition = &self.unit.shelves[shelf].partition;
            let record = borrow(&fetched, partition, self.survey.target.name.as_str());
            let found = Found {
                print: Print::of(&record, self.unit.stamps),
                shelf: shelf as Shelf,
                offset: record.origin.offset,
            };
            while self.standing.comparison.wants_more(&found.print)
                && self.read_source(Stretch::ToTheEnd)?
            {}
            self.standing.comparison.find(found);
            self.outcome.target_read += 1;
            self.progress.target_read.fetch_add(1, Ordering::Relaxed);
            self.tell();
            if matches!(self.options.until, Until::Time(_))
                && !self.standing.comparison.is_waiting()
                && self.has_read_required()
            {
                // Everything that has to be there is; what follows was written later.
                return Ok(());
            }
        }
        Ok(())
    }

    /// Reads what is left of what has to be at the target: it is not.
    fn read_required(&mut self) -> Result<(), Unasked> {
        while !self.has_read_required() {
            self.read_source(Stretch::ToRequired)?;
            self.tell();
        }
        Ok(())
    }

    fn has_read_required(&self) -> bool {
        let unit = self.unit;
        self.sources.iter().all(|side| {
            side.spans
                .iter()
                .all(|span| span.is_read() || span.next >= unit.streams[span.number].required)
        })
    }

    /// Reads a stretch of each source; whether anything is left there.
    fn read_source(&mut self, stretch: Stretch) -> Result<bool, Unasked> {
        let unit = self.unit;
        let mut is_left = false;
        for index in 0..self.sources.len() {
            for _ in 0..STRETCH {
                let side = &mut self.sources[index];
                let wanted = |span: &Span| {
                    let to_required = span.next < unit.streams[span.number].required;
                    !span.is_read() && (stretch == Stretch::ToTheEnd || to_required)
                };
                if !side.spans.iter().any(wanted) {
                    break;
                }
                is_left = true;
                match side.next()? {
                    Some((stream, fetched)) => self.expect(stream, &fetched),
                    None => break,
                }
            }
        }
        Ok(is_left)
    }

    /// What the route makes of a source record.
    fn expect(&mut self, number: usize, fetched: &Fetched) {
        let stream = &self.unit.streams[number];
        self.outcome.source_read += 1;
        self.progress.source_read.fetch_add(1, Ordering::Relaxed);
        let source = self.survey.route.sources[stream.source].name.as_str();
        let record = borrow(fetched, &stream.partition, source);
        let offset = record.origin.offset;
        let mut outputs = Vec::new();
        if stream.chain.apply(record, &mut outputs).is_err() {
            self.outcome.failed += 1;
            return;
        }
        if outputs.is_empty() {
            self.outcome.dropped += 1;
        }
        for output in &outputs {
            self.standing.comparison.expect(Expected {
                print: Print::of(output, self.unit.stamps),
                stream: number as Stream,
                offset,
                shelf: self.shelf_of(output, stream),
                need: match offset < stream.required {
                    true => Need::Required,
                    false => Need::Optional,
                },
            });
        }
    }

    /// Where a record has to stand: `None` where it is whose turn it was, or where there is no such place.
    fn shelf_of(&self, output: &Record<'_>, stream: &StreamPlan) -> Option<Shelf> {
        let source_partition = stream.partition.partition;
        let count = self.survey.counts.get(output.topic.as_ref()).copied()?;
        match self.policy.decided(output, source_partition, count)? {
            Choice::Partition(partition) => {
                let place = TopicPartition::new(output.topic.as_ref(), partition);
                self.shelves.get(&place).copied()
            }
            Choice::TooFew { .. } => None,
        }
    }

    /// Takes what differs, as much of it as is told one by one.
    fn tell(&mut self) {
        for what in self.standing.comparison.take_differences() {
            self.progress.differences.fetch_add(1, Ordering::Relaxed);
            if self.standing.unsaid.len() < self.options.told {
                let told = self.named(what);
                self.standing.unsaid.push(told);
            }
        }
    }

    fn named(&self, what: Difference) -> Told {
        let source = |stream: Stream, offset: i64| {
            let plan = self.unit.streams.get(stream as usize)?;
            let cluster = self.survey.route.sources.get(plan.source)?;
            Some((cluster.name.clone(), plan.partition.clone(), offset))
        };
        let target = |shelf: Shelf, at: Option<i64>| {
            let plan = self.unit.shelves.get(shelf as usize)?;
            Some((plan.partition.clone(), at))
        };
        let (source, target) = match &what {
            Difference::Missing {
                stream,
                offset,
                shelf,
            } => (
                source(*stream, *offset),
                shelf.and_then(|shelf| target(shelf, None)),
            ),
            Difference::Extra { shelf, found_at } => (None, target(*shelf, Some(*found_at))),
            Difference::Altered {
                stream,
                offset,
                shelf,
                found_at,
                ..
            }
            | Difference::Reordered {
                stream,
                offset,
                shelf,
                found_at,
                ..
            }
            | Difference::Moved {
                stream,
                offset,
                shelf,
                found_at,
                ..
            } => (source(*stream, *offset), target(*shelf, Some(*found_at))),
        };
        Told {
            what,
            source,
            target,
        }
    }
}

/// How far the source is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stretch {
    ToTheEnd,
    ToRequired,
}

/// What is read of a partition.
struct Span {
    number: usize,
    partition: TopicPartition,
    next: i64,
    end: i64,
}

impl Span {
    fn is_read(&self) -> bool {
        self.next >= self.end
    }
}

/// One cluster while it is read.
struct Side<'a> {
    cluster: Name,
    reader: &'a Reader,
    spans: Vec<Span>,
    numbers: HashMap<TopicPartition, usize>,
    /// The same by the client's own number, which costs no look at a name.
    by_handle: HashMap<(usize, i32), usize>,
    patience: Duration,
    /// Time spent waiting since something was heard.
    idle: Duration,
}

impl<'a> Side<'a> {
    fn begin(
        cluster: &Name,
        reader: &'a Reader,
        spans: Vec<Span>,
        patience: Duration,
    ) -> Result<Self, Unasked> {
        let left = || spans.iter().filter(|span| !span.is_read());
        let positions: Vec<(TopicPartition, Offset)> = left()
            .map(|s| (s.partition.clone(), Offset(s.next)))
            .collect();
        reader.read_from(&positions).map_err(|detail| Unasked {
            cluster: cluster.clone(),
            detail,
        })?;
        Ok(Self {
            cluster: cluster.clone(),
            reader,
            numbers: left().map(|s| (s.partition.clone(), s.number)).collect(),
            spans,
            by_handle: HashMap::new(),
            patience,
            idle: Duration::ZERO,
        })
    }

    fn is_done(&self) -> bool {
        self.spans.iter().all(Span::is_read)
    }

    /// The next record below its partition's end, with its partition's number; `None` if there is none for now.
    fn next(&mut self) -> Result<Option<(usize, Fetched)>, Unasked> {
        let asked = Instant::now();
        let read = self
            .reader
            .next(LOOK)
            .map_err(|detail| self.unasked(detail))?;
        self.idle = match read {
            Read::Idle => self.idle + asked.elapsed(),
            _ => Duration::ZERO,
        };
        match read {
            Read::Record(fetched) => Ok(self.take(fetched)),
            Read::End(partition, offset) => {
                if let Some(number) = self.numbers.get(&partition).copied() {
                    self.passed(number, offset.0);
                }
                Ok(None)
            }
            Read::OutOfRange(partition) => Err(self.unasked(format!(
                "{partition}: what is compared was deleted meanwhile: run it again"
            ))),
            Read::Refused(partition, detail) => Err(self.unasked(format!("{partition}: {detail}"))),
            Read::Idle if self.idle > self.patience => Err(self.unasked(format!(
                "nothing was heard for {} s",
                self.patience.as_secs()
            ))),
            Read::Idle => Ok(None),
        }
    }

    fn take(&mut self, fetched: Fetched) -> Option<(usize, Fetched)> {
        let number = self.number_of(&fetched)?;
        let offset = FetchedRecord::offset(&fetched);
        // Not of an assignment before this one, and not behind the end.
        let is_wanted = self
            .spans
            .iter()
            .any(|span| span.number == number && (span.next..span.end).contains(&offset.0));
        self.passed(number, offset.next().0);
        is_wanted.then_some((number, fetched))
    }

    fn number_of(&mut self, fetched: &Fetched) -> Option<usize> {
        let handle = fetched.partition_handle();
        if let Some(number) = self.by_handle.get(&handle) {
            return Some(*number);
        }
        let number = *self.numbers.get(&fetched.topic_partition())?;
        self.by_handle.insert(handle, number);
        Some(number)
    }

    /// Everything below `offset` of a partition was read. What is read behind its end is read again the next time.
    fn passed(&mut self, number: usize, offset: i64) {
        for span in self.spans.iter_mut().filter(|span| span.number == number) {
            span.next = span.next.max(offset.min(span.end));
        }
    }

    fn unasked(&self, detail: String) -> Unasked {
        Unasked {
            cluster: self.cluster.clone(),
            detail,
        }
    }
}
