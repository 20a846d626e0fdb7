//! The comparison itself: what should stand in some target partitions against what does. Pure: no client, no clock.
//!
//! Records are told to it in the order of their logs: expectations ([`Comparison::expect`]) in the order of their source
//! partition, and what stands at the target ([`Comparison::find`]) in the order of its partition. A record that stands
//! there and is not expected yet makes the caller read on at the source first, as far as the window goes
//! ([`Comparison::wants_more`]), so that first appearances are met in target order.
//!
//! Not a comparison of sets: each source partition's first appearances must rise, a repeat is a record that was
//! matched before, and equal records count as often as they are.
//!
//! Memory is bounded by the window: strangers and matched records that may repeat are at most that many, open
//! expectations at most twice as many. A difference larger than that is still one, but its count is not exact
//! ([`Tally::overruns`]).

use super::print::{Body, Part, Print};
use foldhash::HashMap;
use std::collections::{BTreeMap, VecDeque};

/// A source partition that feeds the comparison, by its number there.
pub type Stream = u32;
/// A target partition of the comparison, by its number there.
pub type Shelf = u32;

/// Strangers in a row after which a full window is stretched: this is rather a hole at the target than foreign records.
const HOLE: usize = 1000;

/// What is known of a source partition's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamFacts {
    /// Whether records may have stood before the first that is read.
    pub beginning: Beginning,
    /// Whether its log is compacted.
    pub cleanup: Cleanup,
    /// Whether the route began in the midst of it (`start: latest`).
    pub start: Beginning,
}

/// What is known of a target partition's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShelfFacts {
    /// Whether records may have stood before the first that is read.
    pub beginning: Beginning,
    /// Whether its log is compacted.
    pub cleanup: Cleanup,
}

/// Whether a log is read from its very first record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beginning {
    /// It is.
    Whole,
    /// Something may have stood before: retention, or a comparison that begins later.
    Cut,
}

/// Whether a log loses records by key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cleanup {
    /// It does not.
    Kept,
    /// It does: an older record of a key may be gone.
    Compacted,
}

/// Whether a record has to be at the target by now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// It has to.
    Required,
    /// It may: it lies behind what is compared.
    Optional,
}

/// One record that the handlers made of one source record.
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    /// What it is.
    pub print: Print,
    /// Of this source partition.
    pub stream: Stream,
    /// The source record's offset.
    pub offset: i64,
    /// Where it has to stand; `None` where the policy leaves that open.
    pub shelf: Option<Shelf>,
    /// Whether it has to be there.
    pub need: Need,
}

/// One record that stands at the target.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    /// What it is.
    pub print: Print,
    /// In this target partition.
    pub shelf: Shelf,
    /// At this offset.
    pub offset: i64,
}

/// What differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// It should stand at the target and does not.
    Missing {
        /// Of this source partition.
        stream: Stream,
        /// Its source offset.
        offset: i64,
        /// Where it should stand, where that is known.
        shelf: Option<Shelf>,
    },
    /// It stands at the target and no source record makes it.
    Extra {
        /// In this target partition.
        shelf: Shelf,
        /// Its offset there.
        found_at: i64,
    },
    /// It stands at the target with other contents.
    Altered {
        /// Of this source partition.
        stream: Stream,
        /// Its source offset.
        offset: i64,
        /// In this target partition.
        shelf: Shelf,
        /// The altered record's offset there.
        found_at: i64,
        /// What is not the same.
        parts: Vec<Part>,
    },
    /// It first appears after a later record of its source partition.
    Reordered {
        /// Of this source partition.
        stream: Stream,
        /// Its source offset.
        offset: i64,
        /// In this target partition.
        shelf: Shelf,
        /// Its offset there.
        found_at: i64,
        /// The source offset of the later record.
        after: i64,
    },
    /// It stands in another partition than the policy says.
    Moved {
        /// Of this source partition.
        stream: Stream,
        /// Its source offset.
        offset: i64,
        /// Where it should stand.
        should: Shelf,
        /// Where it stands.
        shelf: Shelf,
        /// Its offset there.
        found_at: i64,
    },
}

/// How many records came out in which way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Stand at the target as they should.
    pub matched: u64,
    /// Stand there once more: after a kill, records that were not committed are copied again.
    pub repeated: u64,
    /// Not there.
    pub missing: u64,
    /// Nobody knows them.
    pub extra: u64,
    /// There with other contents.
    pub altered: u64,
    /// There in the wrong order.
    pub reordered: u64,
    /// There in another partition.
    pub moved: u64,
    /// Not there, and need not be: compaction keeps the last record of a key.
    pub compacted: u64,
    /// Not there, and older than what the target still has.
    pub expired: u64,
    /// There, and older than what the source still has or than where the comparison begins.
    pub older: u64,
    /// Not there, and before the route's start (`start: latest`).
    pub before_start: u64,
    /// How often something was judged only because the window was full: other counts are not exact then.
    pub overruns: u64,
}

impl Tally {
    /// Adds `other`.
    pub fn add(&mut self, other: &Tally) {
        let Tally {
            matched,
            repeated,
            missing,
            extra,
            altered,
            reordered,
            moved,
            compacted,
            expired,
            older,
            before_start,
            overruns,
        } = other;
        self.matched += matched;
        self.repeated += repeated;
        self.missing += missing;
        self.extra += extra;
        self.altered += altered;
        self.reordered += reordered;
        self.moved += moved;
        self.compacted += compacted;
        self.expired += expired;
        self.older += older;
        self.before_start += before_start;
        self.overruns += overruns;
    }

    /// What came after `earlier`, a state of the same tally. One that went down since, as a repeat that turned out to
    /// be a record of its own, is 0.
    pub fn since(&self, earlier: &Tally) -> Tally {
        let since = |now: u64, then: u64| now.saturating_sub(then);
        Tally {
            matched: since(self.matched, earlier.matched),
            repeated: since(self.repeated, earlier.repeated),
            missing: since(self.missing, earlier.missing),
            extra: since(self.extra, earlier.extra),
            altered: since(self.altered, earlier.altered),
            reordered: since(self.reordered, earlier.reordered),
            moved: since(self.moved, earlier.moved),
            compacted: since(self.compacted, earlier.compacted),
            expired: since(self.expired, earlier.expired),
            older: since(self.older, earlier.older),
            before_start: since(self.before_start, earlier.before_start),
            overruns: since(self.overruns, earlier.overruns),
        }
    }

    /// Records that should be otherwise.
    pub fn differences(&self) -> u64 {
        self.missing + self.extra + self.altered + self.reordered + self.moved
    }
}

/// Records and the sum of their fingerprints, which is the same in whatever order they come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// How many.
    pub records: u64,
    /// The sum of 64 bits of each fingerprint, modulo 2^64.
    pub hash: u64,
}

impl Sum {
    fn count(&mut self, print: &Print) {
        self.records += 1;
        // The lower half is as good as any: it is of SHA-256.
        self.hash = self.hash.wrapping_add(print.whole as u64);
    }

    /// What came after `earlier`, a state of the same sum.
    pub fn since(&self, earlier: &Sum) -> Sum {
        Sum {
            records: self.records.saturating_sub(earlier.records),
            hash: self.hash.wrapping_sub(earlier.hash),
        }
    }

    /// Adds `other`.
    pub fn add(&mut self, other: &Sum) {
        self.records += other.records;
        self.hash = self.hash.wrapping_add(other.hash);
    }
}

/// What was judged at both ends, each record once: repeats, and what need not be there, are not in it. The ends are
/// equal where nothing is missing, extra or altered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ends {
    /// What the source makes.
    pub source: Sum,
    /// What stands at the target.
    pub target: Sum,
}

impl Ends {
    /// Adds `other`.
    pub fn add(&mut self, other: &Ends) {
        self.source.add(&other.source);
        self.target.add(&other.target);
    }

    /// What came after `earlier`, a state of the same ends.
    pub fn since(&self, earlier: &Ends) -> Ends {
        Ends {
            source: self.source.since(&earlier.source),
            target: self.target.since(&earlier.target),
        }
    }
}

/// An open expectation, in the order in which it came.
#[derive(Clone, Copy, Debug)]
struct Open {
    expected: Expected,
    /// Its number within its source partition: several outputs of one record have one each.
    sequence: u64,
}

/// Where the first appearances of a source partition stand in a target partition.
#[derive(Clone, Copy, Debug)]
struct Run {
    first: u64,
    first_found_at: i64,
    last: u64,
    last_offset: i64,
    last_found_at: i64,
}

/// One comparison: some target partitions, and every source partition that feeds them.
pub struct Comparison {
    streams: Vec<StreamFacts>,
    shelves: Vec<ShelfFacts>,
    window: usize,
    /// Expectations without their record, by number of arrival.
    open: BTreeMap<u64, Open>,
    open_by_print: HashMap<u128, VecDeque<u64>>,
    /// Open expectations of compacted target partitions, by key.
    open_by_key: HashMap<u64, Vec<u64>>,
    /// Records without their expectation, by number of arrival.
    strangers: BTreeMap<u64, Found>,
    strangers_by_print: HashMap<u128, VecDeque<u64>>,
    strangers_in_a_row: usize,
    /// Matched records that may appear again, oldest first.
    matched: VecDeque<u128>,
    matched_count: HashMap<u128, u32>,
    /// Repeats of matched records: one of several equal records looks like a repeat until its own expectation comes.
    repeats: HashMap<u128, u32>,
    runs: HashMap<(Stream, Shelf), Run>,
    /// Open expectations that have to be met.
    required: usize,
    sequences: Vec<u64>,
    /// The oldest timestamp that stands in each target partition.
    oldest: Vec<Option<i64>>,
    arrivals: u64,
    tally: Tally,
    ends: Ends,
    differences: Vec<Difference>,
}

impl Comparison {
    /// A comparison of these logs. At most `window` records of each kind are remembered.
    pub fn new(streams: Vec<StreamFacts>, shelves: Vec<ShelfFacts>, window: usize) -> Self {
        Self {
            sequences: vec![0; streams.len()],
            oldest: vec![None; shelves.len()],
            streams,
            shelves,
            window: window.max(1),
            open: BTreeMap::new(),
            open_by_print: HashMap::default(),
            open_by_key: HashMap::default(),
            strangers: BTreeMap::new(),
            strangers_by_print: HashMap::default(),
            strangers_in_a_row: 0,
            matched: VecDeque::new(),
            matched_count: HashMap::default(),
            repeats: HashMap::default(),
            runs: HashMap::default(),
            required: 0,
            arrivals: 0,
            tally: Tally::default(),
            ends: Ends::default(),
            differences: Vec::new(),
        }
    }

    /// What came out so far.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// What was judged so far, at both ends.
    pub fn ends(&self) -> Ends {
        self.ends
    }

    /// Takes the differences found since the last call.
    pub fn take_differences(&mut self) -> Vec<Difference> {
        std::mem::take(&mut self.differences)
    }

    /// Whether the source should be read on before `print` is judged: nothing like it is known, and there is room.
    pub fn wants_more(&self, print: &Print) -> bool {
        let known = self.open_by_print.contains_key(&print.whole)
            || self.matched_count.contains_key(&print.whole);
        let room = match self.strangers_in_a_row {
            0..HOLE => self.window,
            _ => self.window * 2,
        };
        !known && self.open.len() < room
    }

    /// Whether an expectation that has to be met is open.
    pub fn is_waiting(&self) -> bool {
        self.required > 0
    }

    /// A source record makes this.
    pub fn expect(&mut self, expected: Expected) {
        let stream = expected.stream as usize;
        let Some(next) = self.sequences.get_mut(stream) else {
            return;
        };
        let open = Open {
            expected,
            sequence: *next,
        };
        *next += 1;
        if self.take_repeat(&expected.print) {
            self.tally.repeated -= 1;
            self.tally.matched += 1;
            self.ends.source.count(&expected.print);
            self.ends.target.count(&expected.print);
            return self.remember(expected.print.whole);
        }
        if let Some(found) = self.take_stranger(&expected.print) {
            return self.meet(open, found);
        }
        if self.open.len() >= self.window * 2 {
            self.give_up_oldest();
        }
        self.keep_open(open);
    }

    /// This stands at the target.
    pub fn find(&mut self, found: Found) {
        self.note_age(&found);
        if let Some(open) = self.take_open(&found.print) {
            self.strangers_in_a_row = 0;
            return self.meet(open, found);
        }
        if self.matched_count.contains_key(&found.print.whole) {
            self.strangers_in_a_row = 0;
            self.tally.repeated += 1;
            *self.repeats.entry(found.print.whole).or_default() += 1;
            return;
        }
        self.strangers_in_a_row += 1;
        if self.strangers.len() >= self.window
            && let Some((_, oldest)) = self.strangers.pop_first()
        {
            take_first(&mut self.strangers_by_print, oldest.print.whole);
            self.tally.overruns += 1;
            self.judge_stranger(oldest);
        }
        self.keep_stranger(found);
    }

    /// Goes on with `earlier`, a comparison of some of these logs, which ends with this: what is open there, and what was
    /// matched and may come again. `streams` and `shelves` say which number each of its logs has here; what is of a log
    /// that is not here is forgotten.
    pub fn inherit(
        &mut self,
        earlier: Comparison,
        streams: &[Option<Stream>],
        shelves: &[Option<Shelf>],
    ) {
        let stream_here = |there: Stream| streams.get(there as usize).copied().flatten();
        let shelf_here = |there: Shelf| shelves.get(there as usize).copied().flatten();
        for (there, here) in streams.iter().enumerate() {
            if let Some(here) = here.map(|here| here as usize) {
                self.streams[here] = earlier.streams[there];
                self.sequences[here] = earlier.sequences[there];
            }
        }
        for (there, here) in shelves.iter().enumerate() {
            if let Some(here) = here.map(|here| here as usize) {
                self.shelves[here] = earlier.shelves[there];
                self.oldest[here] = earlier.oldest[there];
            }
        }
        for ((stream, shelf), run) in earlier.runs {
            if let (Some(stream), Some(shelf)) = (stream_here(stream), shelf_here(shelf)) {
                self.runs.insert((stream, shelf), run);
            }
        }
        for mut open in earlier.open.into_values() {
            let Some(stream) = stream_here(open.expected.stream) else {
                continue;
            };
            open.expected.stream = stream;
            open.expected.shelf = open.expected.shelf.and_then(shelf_here);
            self.keep_open(open);
        }
        for mut found in earlier.strangers.into_values() {
            if let Some(shelf) = shelf_here(found.shelf) {
                found.shelf = shelf;
                self.keep_stranger(found);
            }
        }
        for whole in earlier.matched {
            self.remember(whole);
        }
        for (whole, count) in earlier.repeats {
            if self.matched_count.contains_key(&whole) {
                *self.repeats.entry(whole).or_default() += count;
            }
        }
        self.tally.add(&earlier.tally);
        self.ends.add(&earlier.ends);
    }

    /// From now on every record below these offsets, one for each source partition, has to be there.
    pub fn require(&mut self, below: &[i64]) {
        for open in self.open.values_mut() {
            let due = below.get(open.expected.stream as usize);
            if due.is_some_and(|due| open.expected.offset < *due)
                && open.expected.need == Need::Optional
            {
                open.expected.need = Need::Required;
                self.required += 1;
            }
        }
    }

    /// Both sides were told as far as they go: what has to be there and what nobody expected is judged. What may still
    /// come stays open.
    pub fn settle(&mut self) {
        self.pair_altered();
        let is_due = |(number, open): (&u64, &Open)| {
            (open.expected.need == Need::Required).then_some(*number)
        };
        let due: Vec<u64> = self.open.iter().filter_map(is_due).collect();
        for number in due {
            if let Some(open) = self.remove_open(number) {
                self.judge_open(&open);
            }
        }
        for found in std::mem::take(&mut self.strangers).into_values() {
            self.judge_stranger(found);
        }
        self.strangers_by_print.clear();
        self.strangers_in_a_row = 0;
        let open = &self.open;
        self.open_by_key.retain(|_, numbers| {
            numbers.retain(|number| open.contains_key(number));
            !numbers.is_empty()
        });
    }

    fn keep_open(&mut self, open: Open) {
        let expected = open.expected;
        self.arrivals += 1;
        self.open.insert(self.arrivals, open);
        self.required += usize::from(expected.need == Need::Required);
        self.open_by_print
            .entry(expected.print.whole)
            .or_default()
            .push_back(self.arrivals);
        if let (Some(key), true) = (expected.print.key, self.may_be_compacted(&expected)) {
            self.open_by_key.entry(key).or_default().push(self.arrivals);
        }
    }

    fn keep_stranger(&mut self, found: Found) {
        self.arrivals += 1;
        self.strangers.insert(self.arrivals, found);
        self.strangers_by_print
            .entry(found.print.whole)
            .or_default()
            .push_back(self.arrivals);
    }

    fn note_age(&mut self, found: &Found) {
        let (Some(oldest), Some(at)) = (
            self.oldest.get_mut(found.shelf as usize),
            found.print.timestamp(),
        ) else {
            return;
        };
        *oldest = Some(oldest.map_or(at, |known| known.min(at)));
    }

    fn take_open(&mut self, print: &Print) -> Option<Open> {
        let number = self.open_by_print.get(&print.whole)?.front().copied()?;
        self.remove_open(number)
    }

    fn take_repeat(&mut self, print: &Print) -> bool {
        let Some(count) = self.repeats.get_mut(&print.whole) else {
            return false;
        };
        *count -= 1;
        if *count == 0 {
            self.repeats.remove(&print.whole);
        }
        true
    }

    fn remove_open(&mut self, number: u64) -> Option<Open> {
        let open = self.open.remove(&number)?;
        self.required -= usize::from(open.expected.need == Need::Required);
        forget_number(&mut self.open_by_print, open.expected.print.whole, number);
        Some(open)
    }

    fn take_stranger(&mut self, print: &Print) -> Option<Found> {
        let number = take_first(&mut self.strangers_by_print, print.whole)?;
        self.strangers.remove(&number)
    }

    /// An expectation and a record that are the same.
    fn meet(&mut self, open: Open, found: Found) {
        let expected = open.expected;
        self.tally.matched += 1;
        self.ends.source.count(&expected.print);
        self.ends.target.count(&found.print);
        if let Some(should) = expected.shelf.filter(|should| *should != found.shelf) {
            self.tally.moved += 1;
            self.differences.push(Difference::Moved {
                stream: expected.stream,
                offset: expected.offset,
                should,
                shelf: found.shelf,
                found_at: found.offset,
            });
        }
        self.follow_order(&open, &found);
        self.remember(expected.print.whole);
        self.settle_older_of_key(&open);
        self.give_up_left_behind();
    }

    fn follow_order(&mut self, open: &Open, found: &Found) {
        let here = Run {
            first: open.sequence,
            first_found_at: found.offset,
            last: open.sequence,
            last_offset: open.expected.offset,
            last_found_at: found.offset,
        };
        let run = match self.runs.entry((open.expected.stream, found.shelf)) {
            std::collections::hash_map::Entry::Vacant(entry) => {
                entry.insert(here);
                return;
            }
            std::collections::hash_map::Entry::Occupied(entry) => entry.into_mut(),
        };
        run.first = run.first.min(here.first);
        run.first_found_at = run.first_found_at.min(here.first_found_at);
        let rises = here.last > run.last && here.last_found_at > run.last_found_at;
        let falls = here.last < run.last && here.last_found_at < run.last_found_at;
        if rises {
            (run.last, run.last_offset, run.last_found_at) =
                (here.last, here.last_offset, here.last_found_at);
        } else if !falls {
            self.tally.reordered += 1;
            self.differences.push(Difference::Reordered {
                stream: open.expected.stream,
                offset: open.expected.offset,
                shelf: found.shelf,
                found_at: found.offset,
                after: run.last_offset,
            });
        }
    }

    fn remember(&mut self, whole: u128) {
        if self.matched.len() >= self.window
            && let Some(oldest) = self.matched.pop_front()
            && let Some(count) = self.matched_count.get_mut(&oldest)
        {
            *count -= 1;
            if *count == 0 {
                self.matched_count.remove(&oldest);
                self.repeats.remove(&oldest);
            }
        }
        self.matched.push_back(whole);
        *self.matched_count.entry(whole).or_default() += 1;
    }

    /// The record of a key is there: what the same source partition wrote for it before need not be.
    fn settle_older_of_key(&mut self, later: &Open) {
        let Some(key) = later.expected.print.key else {
            return;
        };
        let Some(numbers) = self.open_by_key.remove(&key) else {
            return;
        };
        let mut left = Vec::new();
        for number in numbers {
            let Some(open) = self.open.get(&number) else {
                continue;
            };
            let is_older =
                open.expected.stream != later.expected.stream || open.sequence < later.sequence;
            if !is_older {
                left.push(number);
                continue;
            }
            self.remove_open(number);
            self.tally.compacted += 1;
        }
        if !left.is_empty() {
            self.open_by_key.insert(key, left);
        }
    }

    fn may_be_compacted(&self, expected: &Expected) -> bool {
        let compacted = |shelf: &ShelfFacts| shelf.cleanup == Cleanup::Compacted;
        match expected.shelf {
            Some(shelf) => self.shelves.get(shelf as usize).is_some_and(compacted),
            None => self.shelves.iter().any(compacted),
        }
    }

    fn give_up_oldest(&mut self) {
        let oldest = self.open.first_key_value().map(|(number, _)| *number);
        if let Some(open) = oldest.and_then(|number| self.remove_open(number)) {
            self.tally.overruns += 1;
            if open.expected.need == Need::Required {
                self.judge_open(&open);
            }
        }
    }

    /// What its own source partition has left behind by a whole window does not appear any more. Compaction may still
    /// explain it: a later record of its key decides then.
    fn give_up_left_behind(&mut self) {
        while let Some((number, open)) = self.open.first_key_value() {
            let (number, expected, sequence) = (*number, open.expected, open.sequence);
            let left_behind = expected.shelf.is_some_and(|shelf| {
                let run = self.runs.get(&(expected.stream, shelf));
                run.is_some_and(|run| run.last > sequence + self.window as u64)
            });
            if !left_behind || self.may_be_compacted(&expected) {
                return;
            }
            if let Some(open) = self.remove_open(number) {
                self.judge_open(&open);
            }
        }
    }

    /// What becomes of an expectation whose record did not appear.
    fn judge_open(&mut self, open: &Open) {
        let expected = &open.expected;
        let counted = match () {
            // A deletion that nobody needs any more goes, too.
            () if self.may_be_compacted(expected) && expected.print.body == Body::Tombstone => {
                &mut self.tally.compacted
            }
            () if self.has_expired(open) => &mut self.tally.expired,
            () if self.is_before_start(open) => &mut self.tally.before_start,
            () => {
                self.tally.missing += 1;
                self.ends.source.count(&expected.print);
                return self.differences.push(Difference::Missing {
                    stream: expected.stream,
                    offset: expected.offset,
                    shelf: expected.shelf,
                });
            }
        };
        *counted += 1;
    }

    /// Whether the target had it, as far as can be told: its log does not go back that far.
    fn has_expired(&self, open: &Open) -> bool {
        let expired_from = |shelf: usize| {
            let Some(facts) = self.shelves.get(shelf) else {
                return false;
            };
            if facts.beginning == Beginning::Whole {
                return false;
            }
            match (
                self.runs.get(&(open.expected.stream, shelf as Shelf)),
                self.oldest.get(shelf),
            ) {
                (Some(run), _) => open.sequence < run.first,
                (None, Some(Some(oldest))) => open
                    .expected
                    .print
                    .timestamp()
                    .is_some_and(|at| at < *oldest),
                (None, _) => true,
            }
        };
        match open.expected.shelf {
            Some(shelf) => expired_from(shelf as usize),
            None => (0..self.shelves.len()).any(expired_from),
        }
    }

    fn is_before_start(&self, open: &Open) -> bool {
        let stream = open.expected.stream;
        let begins_late = self
            .streams
            .get(stream as usize)
            .is_some_and(|facts| facts.start == Beginning::Cut);
        let first = self
            .runs
            .iter()
            .filter(|((s, _), _)| *s == stream)
            .map(|(_, run)| run.first)
            .min();
        begins_late && first.is_none_or(|first| open.sequence < first)
    }

    /// What becomes of a record that nobody expected.
    fn judge_stranger(&mut self, found: Found) {
        if self.may_be_older(&found) {
            self.tally.older += 1;
            return;
        }
        self.tally.extra += 1;
        self.ends.target.count(&found.print);
        self.differences.push(Difference::Extra {
            shelf: found.shelf,
            found_at: found.offset,
        });
    }

    /// Whether it may be the copy of a record that the source has no longer: before the first match of a log that
    /// was cut, or of a log that is compacted.
    fn may_be_older(&self, found: &Found) -> bool {
        self.streams.iter().enumerate().any(|(stream, facts)| {
            let compacted = facts.cleanup == Cleanup::Compacted && found.print.key.is_some();
            let cut = facts.beginning == Beginning::Cut
                && self
                    .runs
                    .get(&(stream as Stream, found.shelf))
                    .is_none_or(|run| found.offset < run.first_found_at);
            compacted || cut
        })
    }

    /// What is missing and what nobody expected, of one partition: where they resemble each other, one is the other
    /// with other contents.
    fn pair_altered(&mut self) {
        let mut by_key: HashMap<(Option<u64>, Shelf), VecDeque<u64>> = HashMap::default();
        for (number, found) in &self.strangers {
            by_key
                .entry((found.print.key, found.shelf))
                .or_default()
                .push_back(*number);
        }
        let open: Vec<(u64, Open)> = self
            .open
            .iter()
            .map(|(number, open)| (*number, *open))
            .collect();
        for (number, open) in open {
            if open.expected.need == Need::Optional {
                continue;
            }
            let Some(stranger) = self.altered_of(&open, &by_key) else {
                continue;
            };
            let Some(found) = self.strangers.remove(&stranger) else {
                continue;
            };
            self.remove_open(number);
            self.tally.altered += 1;
            self.ends.source.count(&open.expected.print);
            self.ends.target.count(&found.print);
            self.differences.push(Difference::Altered {
                stream: open.expected.stream,
                offset: open.expected.offset,
                shelf: found.shelf,
                found_at: found.offset,
                parts: open.expected.print.differences(&found.print),
            });
        }
    }

    fn altered_of(
        &self,
        open: &Open,
        by_key: &HashMap<(Option<u64>, Shelf), VecDeque<u64>>,
    ) -> Option<u64> {
        /// Of records with one key: enough to find the one, few enough for a topic with one key.
        const LOOKS: usize = 64;
        let shelves = match open.expected.shelf {
            Some(shelf) => shelf..shelf + 1,
            None => 0..self.shelves.len() as Shelf,
        };
        let same_key = shelves.flat_map(|shelf| {
            by_key
                .get(&(open.expected.print.key, shelf))
                .into_iter()
                .flatten()
        });
        let of_key = same_key
            .filter(|number| self.strangers.contains_key(number))
            .take(LOOKS)
            .find(|number| self.resembles(open, number));
        // A changed key is looked for among all, as far as that is cheap.
        let any = || {
            self.strangers
                .keys()
                .take(LOOKS)
                .find(|number| self.resembles(open, number))
        };
        of_key.or_else(any).copied()
    }

    fn resembles(&self, open: &Open, stranger: &u64) -> bool {
        let stranger = self.strangers.get(stranger);
        stranger.is_some_and(|found| {
            let place = open.expected.shelf.is_none_or(|shelf| shelf == found.shelf);
            place && open.expected.print.resembles(&found.print)
        })
    }
}

/// Takes the oldest number under `whole`.
fn take_first(by_print: &mut HashMap<u128, VecDeque<u64>>, whole: u128) -> Option<u64> {
    let numbers = by_print.get_mut(&whole)?;
    let first = numbers.pop_front();
    if numbers.is_empty() {
        by_print.remove(&whole);
    }
    first
}

fn forget_number(by_print: &mut HashMap<u128, VecDeque<u64>>, whole: u128, number: u64) {
    if let Some(numbers) = by_print.get_mut(&whole) {
        numbers.retain(|n| *n != number);
        if numbers.is_empty() {
            by_print.remove(&whole);
        }
    }
}

#[cfg(test)]
mod tests;
