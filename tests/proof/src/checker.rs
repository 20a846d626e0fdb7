//! Compares what was written with what is at the target: per source partition, from number and fingerprint, in the
//! order of the target's offsets. Never from sets: a set has no order and forgets repeats.
//!
//! A record is *lost* if it neither arrived nor was named: [`Report`]s are what the mirror said of records that it did not
//! deliver, with their exact offsets, and only what the source really deleted may be reported as deleted.

use super::expected::{Expected, Fate, Lane};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

/// One record at the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sight {
    /// It says who it is.
    Stamped {
        /// Its label and source partition.
        lane: Lane,
        /// Its number.
        sequence: u64,
        /// Of all its bytes.
        fingerprint: u64,
    },
    /// It says nothing that we know.
    Strange,
}

/// The target, partition by partition, each in offset order.
pub type Sights = BTreeMap<Lane, Vec<Sight>>;

/// Why a mirror says that it did not deliver records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The source deleted them before they were copied.
    Deleted,
    /// The file says what becomes of records that the target does not take: skipped, or a dead letter.
    Refused,
}

/// What a mirror said of records that it did not deliver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The source partition.
    pub lane: Lane,
    /// Their offsets at the source.
    pub offsets: Range<i64>,
    /// Why.
    pub cause: Cause,
}

/// What became of the records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Records that arrived, each counted once.
    pub arrived: u64,
    /// Never arrived, and nothing was said of them.
    pub lost: u64,
    /// Never arrived, and the mirror said so with their offsets.
    pub reported: u64,
    /// Arrived for the first time after a later one had.
    pub reordered: u64,
    /// Arrived again.
    pub repeated: u64,
    /// Arrived with other bytes.
    pub altered: u64,
    /// At the target, and never written or not meant to arrive.
    pub invented: u64,
    /// In another place than they belong.
    pub moved: u64,
    /// The first few faults in words.
    pub examples: Vec<String>,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "arrived {}, lost {}, reported {}, reordered {}, repeated {}, altered {}, invented {}, moved {}",
            self.arrived,
            self.lost,
            self.reported,
            self.reordered,
            self.repeated,
            self.altered,
            self.invented,
            self.moved
        )
    }
}

/// Examples of each fault: a long list hides the others.
const EXAMPLES: u64 = 5;

impl Verdict {
    /// What must never be; a repeat may.
    pub fn faults(&self) -> u64 {
        self.lost + self.reordered + self.altered + self.invented + self.moved
    }

    /// Everything arrived in order, exactly once.
    ///
    /// # Panics
    /// If not.
    pub fn assert_perfect(&self) {
        self.assert_complete();
        assert_eq!(self.repeated, 0, "{self}\n{:#?}", self.examples);
    }

    /// Everything arrived in order; repeats are counted and no fault.
    ///
    /// # Panics
    /// If not.
    pub fn assert_complete(&self) {
        assert_eq!(self.faults(), 0, "{self}\n{:#?}", self.examples);
        assert_eq!(self.reported, 0, "{self}\n{:#?}", self.examples);
    }

    fn example(&mut self, count: u64, words: impl FnOnce() -> String) {
        if count <= EXAMPLES {
            self.examples.push(words());
        }
    }
}

/// Compares a copy that keeps partitions and of which nothing was said. `target_topic` says where the records of a label belong.
pub fn check(
    expected: &Expected,
    sights: &Sights,
    target_topic: impl Fn(&str) -> String,
) -> Verdict {
    let belongs = |lane: &Lane, _| (target_topic(&lane.0), lane.1);
    check_all(expected, sights, &[], belongs)
}

/// Compares. `belongs` says into which topic and partition of the target a record belongs, by lane and number; order is that of the
/// records of one source partition that belong into one target partition.
pub fn check_all(
    expected: &Expected,
    sights: &Sights,
    reports: &[Report],
    belongs: impl Fn(&Lane, u64) -> Lane,
) -> Verdict {
    let mut verdict = Verdict::default();
    let mut progress: BTreeMap<&Lane, Progress> = expected
        .lanes()
        .map(|(lane, records)| (lane, Progress::new(records)))
        .collect();
    for (place, records) in sights {
        for progress in progress.values_mut() {
            progress.highest = None;
        }
        for (offset, sight) in records.iter().enumerate() {
            let at = At { place, offset };
            match judge(expected, sight, at, &mut verdict) {
                None => {}
                Some((lane, sequence)) => {
                    if *place != belongs(lane, sequence) {
                        verdict.moved += 1;
                        verdict
                            .example(verdict.moved, || format!("{at}: {lane:?} {sequence} moved"));
                    }
                    if let Some(progress) = progress.get_mut(lane) {
                        progress.take(lane, sequence, at, &mut verdict);
                    }
                }
            }
        }
    }
    for (lane, progress) in progress {
        progress.end(lane, expected, reports, &mut verdict);
    }
    verdict
}

/// Where a record was seen.
#[derive(Clone, Copy)]
struct At<'a> {
    place: &'a Lane,
    /// Counted from the first record that was read.
    offset: usize,
}

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {}", self.place, self.offset)
    }
}

/// Whether this record should be at the target at all, with these bytes; if so, who it is.
fn judge<'a>(
    expected: &Expected,
    sight: &'a Sight,
    at: At<'_>,
    verdict: &mut Verdict,
) -> Option<(&'a Lane, u64)> {
    let Sight::Stamped {
        lane,
        sequence,
        fingerprint,
    } = sight
    else {
        verdict.invented += 1;
        verdict.example(verdict.invented, || format!("{at}: a stranger"));
        return None;
    };
    let fate = expected.fate(lane, *sequence);
    match fate.and_then(|fate| fate.allows(*fingerprint)) {
        None => {
            verdict.invented += 1;
            verdict.example(verdict.invented, || {
                format!("{at}: {lane:?} {sequence} invented")
            });
            return None;
        }
        Some(true) => {}
        Some(false) => {
            verdict.altered += 1;
            verdict.example(verdict.altered, || {
                format!("{at}: {lane:?} {sequence} altered")
            });
        }
    }
    Some((lane, *sequence))
}

/// What was seen of one source partition.
struct Progress {
    seen: Vec<bool>,
    /// In the target partition that is being read.
    highest: Option<u64>,
}

impl Progress {
    fn new(records: usize) -> Self {
        Self {
            seen: vec![false; records],
            highest: None,
        }
    }

    fn take(&mut self, lane: &Lane, sequence: u64, at: At<'_>, verdict: &mut Verdict) {
        let Some(seen) = usize::try_from(sequence)
            .ok()
            .and_then(|i| self.seen.get_mut(i))
        else {
            return;
        };
        if *seen {
            verdict.repeated += 1;
            return verdict.example(verdict.repeated, || {
                format!("{at}: {lane:?} {sequence} repeated")
            });
        }
        *seen = true;
        verdict.arrived += 1;
        match self.highest {
            Some(highest) if sequence < highest => {
                verdict.reordered += 1;
                verdict.example(verdict.reordered, || {
                    format!("{at}: {lane:?} {sequence} for the first time after {highest}")
                });
            }
            _ => self.highest = Some(sequence),
        }
    }

    /// What never arrived: left out on purpose, named, or lost.
    fn end(self, lane: &Lane, expected: &Expected, reports: &[Report], verdict: &mut Verdict) {
        let reports: Vec<&Report> = reports.iter().filter(|r| r.lane == *lane).collect();
        for (sequence, seen) in (0..).zip(self.seen) {
            if seen || expected.fate(lane, sequence) == Some(Fate::LeftOut) {
                continue;
            }
            if is_named(lane, sequence, expected, &reports) {
                verdict.reported += 1;
                continue;
            }
            verdict.lost += 1;
            let offset = expected.offset(lane, sequence);
            verdict.example(verdict.lost, || {
                format!("{lane:?} {sequence} lost, offset {offset:?} at the source")
            });
        }
    }
}

/// Whether a report has this record's offset, for a cause that can be true.
fn is_named(lane: &Lane, sequence: u64, expected: &Expected, reports: &[&Report]) -> bool {
    let Some(offset) = expected.offset(lane, sequence) else {
        return false;
    };
    reports.iter().any(|report| {
        let may_be = match report.cause {
            Cause::Deleted => expected.is_deleted(lane, sequence),
            Cause::Refused => expected.fate(lane, sequence) == Some(Fate::Refused),
        };
        may_be && report.offsets.contains(&offset)
    })
}

#[cfg(test)]
mod tests {
    //! The checker on sequences that are wrong on purpose: a checker that cannot see a fault proves nothing.
    use super::*;

    fn lane(partition: i32) -> Lane {
        ("t".to_owned(), partition)
    }

    fn written(counts: &[u64]) -> Expected {
        let mut expected = Expected::default();
        for (partition, count) in (0..).zip(counts) {
            for sequence in 0..*count {
                expected.push(&lane(partition), 1000 + sequence);
            }
        }
        expected
    }

    fn sight(partition: i32, sequence: u64) -> Sight {
        Sight::Stamped {
            lane: lane(partition),
            sequence,
            fingerprint: 1000 + sequence,
        }
    }

    fn judge(expected: &Expected, partitions: &[&[Sight]]) -> Verdict {
        let sights = (0..)
            .zip(partitions)
            .map(|(p, s)| (lane(p), s.to_vec()))
            .collect();
        check(expected, &sights, str::to_owned)
    }

    fn run(partition: i32, sequences: &[u64]) -> Vec<Sight> {
        sequences.iter().map(|s| sight(partition, *s)).collect()
    }

    #[test]
    fn a_perfect_copy_is_perfect() {
        let verdict = judge(&written(&[3, 2]), &[&run(0, &[0, 1, 2]), &run(1, &[0, 1])]);
        assert_eq!(verdict.arrived, 5);
        verdict.assert_perfect();
    }

    #[test]
    fn a_hole_and_a_missing_end_are_lost() {
        let verdict = judge(&written(&[5]), &[&run(0, &[0, 1, 3])]);
        assert_eq!((verdict.lost, verdict.reordered), (2, 0), "{verdict}");
    }

    #[test]
    fn a_partition_that_never_arrived_is_lost() {
        assert_eq!(judge(&written(&[1, 4]), &[&run(0, &[0])]).lost, 4);
    }

    #[test]
    fn swapped_records_are_reordered_and_not_lost() {
        let verdict = judge(&written(&[4]), &[&run(0, &[0, 2, 1, 3])]);
        assert_eq!(
            (verdict.lost, verdict.reordered, verdict.repeated),
            (0, 1, 0),
            "{verdict}"
        );
    }

    #[test]
    fn a_replay_repeats_and_does_not_reorder() {
        let verdict = judge(&written(&[5]), &[&run(0, &[0, 1, 2, 1, 2, 3, 4])]);
        assert_eq!(
            (verdict.lost, verdict.reordered, verdict.repeated),
            (0, 0, 2),
            "{verdict}"
        );
        verdict.assert_complete();
    }

    #[test]
    fn a_replay_that_skips_shows_the_skipped_one_as_reordered() {
        // 2 arrives for the first time after 3: a repeat alone would hide it.
        let verdict = judge(&written(&[4]), &[&run(0, &[0, 1, 3, 1, 2, 3])]);
        assert_eq!((verdict.reordered, verdict.repeated), (1, 2), "{verdict}");
    }

    #[test]
    fn other_bytes_are_altered() {
        let mut records = run(0, &[0, 1]);
        records[1] = Sight::Stamped {
            lane: lane(0),
            sequence: 1,
            fingerprint: 7,
        };
        assert_eq!(judge(&written(&[2]), &[&records]).altered, 1);
    }

    #[test]
    fn strangers_and_records_never_written_are_invented() {
        let mut records = run(0, &[0, 1, 2]);
        records.push(Sight::Strange);
        assert_eq!(judge(&written(&[2]), &[&records]).invented, 2);
    }

    #[test]
    fn a_record_in_another_partition_is_moved() {
        let verdict = judge(
            &written(&[2, 1]),
            &[&run(0, &[0]), &[sight(1, 0), sight(0, 1)]],
        );
        assert_eq!((verdict.moved, verdict.lost), (1, 0), "{verdict}");
    }

    #[test]
    fn a_record_in_another_topic_is_moved() {
        let sights = Sights::from([(("u".to_owned(), 0), run(0, &[0]))]);
        assert_eq!(check(&written(&[1]), &sights, str::to_owned).moved, 1);
        check(&written(&[1]), &sights, |_| "u".to_owned()).assert_perfect();
    }

    #[test]
    fn a_record_left_out_may_be_missing_and_may_not_arrive() {
        let mut expected = written(&[3]);
        expected.leave_out(lane(0), 1);
        judge(&expected, &[&run(0, &[0, 2])]).assert_perfect();
        assert_eq!(judge(&expected, &[&run(0, &[0, 1, 2])]).invented, 1);
    }

    /// Five records at the offsets 10 to 14, of which the source deleted those below 13.
    fn partly_deleted() -> Expected {
        let mut expected = written(&[5]);
        (10..15).for_each(|offset| expected.placed(&lane(0), offset));
        expected.deleted(&lane(0), 13);
        expected
    }

    fn with_report(expected: &Expected, offsets: Range<i64>, cause: Cause) -> Verdict {
        let report = Report {
            lane: lane(0),
            offsets,
            cause,
        };
        let sights = Sights::from([(lane(0), run(0, &[0, 3, 4]))]);
        check_all(expected, &sights, &[report], |lane, _| lane.clone())
    }

    #[test]
    fn what_was_named_exactly_is_reported_and_not_lost() {
        let verdict = with_report(&partly_deleted(), 11..13, Cause::Deleted);
        assert_eq!((verdict.lost, verdict.reported), (0, 2), "{verdict}");
    }

    #[test]
    fn a_report_that_is_one_short_leaves_one_lost() {
        let verdict = with_report(&partly_deleted(), 12..13, Cause::Deleted);
        assert_eq!((verdict.lost, verdict.reported), (1, 1), "{verdict}");
    }

    #[test]
    fn a_report_of_what_the_source_still_has_excuses_nothing() {
        let mut expected = written(&[5]);
        (10..15).for_each(|offset| expected.placed(&lane(0), offset));
        let verdict = with_report(&expected, 11..13, Cause::Deleted);
        assert_eq!((verdict.lost, verdict.reported), (2, 0), "{verdict}");
        let verdict = with_report(&expected, 11..13, Cause::Refused);
        assert_eq!((verdict.lost, verdict.reported), (2, 0), "{verdict}");
    }

    #[test]
    fn only_what_the_target_must_refuse_may_be_named_as_refused() {
        let mut expected = Expected::default();
        let fates = [Fate::Arrives(1000), Fate::Refused, Fate::Refused];
        for (offset, fate) in (10..).zip(fates) {
            expected.note(&lane(0), fate);
            expected.placed(&lane(0), offset);
        }
        for sequence in 3..5 {
            expected.push(&lane(0), 1000 + sequence);
        }
        let verdict = with_report(&expected, 12..13, Cause::Refused);
        assert_eq!((verdict.lost, verdict.reported), (1, 1), "{verdict}");
    }

    #[test]
    fn a_record_may_arrive_as_the_old_or_the_new_handlers_make_it() {
        let mut expected = Expected::default();
        (0..3).for_each(|n| expected.note(&lane(0), Fate::Either(1000 + n, 7)));
        let mut records = run(0, &[0, 1, 2]);
        for (sequence, fingerprint) in [(1, 7), (2, 8)] {
            records[sequence as usize] = Sight::Stamped {
                lane: lane(0),
                sequence,
                fingerprint,
            };
        }
        assert_eq!(judge(&expected, &[&records]).altered, 1);
    }

    #[test]
    fn order_is_that_of_the_records_that_belong_together() {
        // By key: even numbers into 0, odd ones into 1. Each partition of the target has its own order.
        let expected = written(&[6]);
        let by_key = |_: &Lane, sequence: u64| lane((sequence % 2) as i32);
        let spread = |odd: &[u64]| {
            let sights = Sights::from([(lane(0), run(0, &[0, 2, 4])), (lane(1), run(0, odd))]);
            check_all(&expected, &sights, &[], by_key)
        };
        spread(&[1, 3, 5]).assert_perfect();
        assert_eq!(spread(&[1, 5, 3]).reordered, 1);
    }

    #[test]
    fn nothing_at_the_target_is_everything_lost() {
        assert_eq!(judge(&written(&[3, 3]), &[]).lost, 6);
    }
}
