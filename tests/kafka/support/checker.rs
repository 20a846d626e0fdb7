//! Compares what was written with what is at the target: per source partition, from number and fingerprint, in the
//! order of the target's offsets. Never from sets: a set has no order and forgets repeats.

use super::expected::{Expected, Lane};
use std::collections::BTreeMap;
use std::fmt;

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

/// What became of the records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Records that arrived, each counted once.
    pub arrived: u64,
    /// Never arrived.
    pub lost: u64,
    /// Arrived for the first time after a later one had.
    pub reordered: u64,
    /// Arrived again.
    pub repeated: u64,
    /// Arrived with other bytes.
    pub altered: u64,
    /// At the target, and never written or not meant to arrive.
    pub invented: u64,
    /// In another target partition than the source's.
    pub moved: u64,
    /// The first few faults in words.
    pub examples: Vec<String>,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "arrived {}, lost {}, reordered {}, repeated {}, altered {}, invented {}, moved {}",
            self.arrived,
            self.lost,
            self.reordered,
            self.repeated,
            self.altered,
            self.invented,
            self.moved
        )
    }
}

impl Verdict {
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
        let faults = self.lost + self.reordered + self.altered + self.invented + self.moved;
        assert_eq!(faults, 0, "{self}\n{:#?}", self.examples);
    }

    fn example(&mut self, words: impl FnOnce() -> String) {
        if self.examples.len() < 20 {
            self.examples.push(words());
        }
    }
}

/// Compares. `target_topic` says where the records of a label belong.
pub fn check(
    expected: &Expected,
    sights: &Sights,
    target_topic: impl Fn(&str) -> String,
) -> Verdict {
    let mut verdict = Verdict::default();
    let mut progress: BTreeMap<&Lane, Progress> = BTreeMap::new();
    for (lane, prints) in expected.lanes() {
        progress.insert(lane, Progress::new(prints.len()));
    }
    for (place, records) in sights {
        for (offset, sight) in records.iter().enumerate() {
            let Sight::Stamped {
                lane,
                sequence,
                fingerprint,
            } = sight
            else {
                verdict.invented += 1;
                verdict.example(|| format!("{place:?} at {offset}: a stranger"));
                continue;
            };
            let Some(wanted) = expected.fingerprint(lane, *sequence) else {
                verdict.invented += 1;
                verdict.example(|| format!("{place:?} at {offset}: invented {lane:?} {sequence}"));
                continue;
            };
            if wanted != *fingerprint {
                verdict.altered += 1;
                verdict.example(|| format!("{place:?} at {offset}: altered {lane:?} {sequence}"));
            }
            if place.1 != lane.1 || place.0 != target_topic(&lane.0) {
                verdict.moved += 1;
                verdict.example(|| format!("{place:?} at {offset}: moved {lane:?} {sequence}"));
            }
            if let Some(progress) = progress.get_mut(lane) {
                progress.take(*sequence, &mut verdict, || {
                    format!("{place:?} at {offset}: {lane:?}")
                });
            }
        }
    }
    for (lane, progress) in progress {
        progress.end(lane, expected, &mut verdict);
    }
    verdict
}

/// What was seen of one source partition.
struct Progress {
    seen: Vec<bool>,
    highest: Option<u64>,
}

impl Progress {
    fn new(records: usize) -> Self {
        Self {
            seen: vec![false; records],
            highest: None,
        }
    }

    fn take(&mut self, sequence: u64, verdict: &mut Verdict, place: impl Fn() -> String) {
        let Some(seen) = usize::try_from(sequence)
            .ok()
            .and_then(|i| self.seen.get_mut(i))
        else {
            return;
        };
        if *seen {
            verdict.repeated += 1;
            return verdict.example(|| format!("{} {sequence} repeated", place()));
        }
        *seen = true;
        verdict.arrived += 1;
        match self.highest {
            Some(highest) if sequence < highest => {
                verdict.reordered += 1;
                verdict.example(|| {
                    format!("{} {sequence} for the first time after {highest}", place())
                });
            }
            _ => self.highest = Some(sequence),
        }
    }

    fn end(self, lane: &Lane, expected: &Expected, verdict: &mut Verdict) {
        for (sequence, seen) in (0..).zip(self.seen) {
            if !seen && !expected.is_left_out(lane, sequence) {
                verdict.lost += 1;
                verdict.example(|| format!("{lane:?} {sequence} lost"));
            }
        }
    }
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

    #[test]
    fn nothing_at_the_target_is_everything_lost() {
        assert_eq!(judge(&written(&[3, 3]), &[]).lost, 6);
    }
}
