//! The comparison against copies that are wrong on purpose.

use super::*;
use crate::record::{Headers, Origin, Record};
use crate::verify::print::Stamps;
use proptest::prelude::*;
use std::borrow::Cow;

const WHOLE: StreamFacts = StreamFacts {
    beginning: Beginning::Whole,
    cleanup: Cleanup::Kept,
    start: Beginning::Whole,
};
const KEPT: ShelfFacts = ShelfFacts {
    beginning: Beginning::Whole,
    cleanup: Cleanup::Kept,
};

/// A record of source partition `stream`, whose contents are its own.
fn print(stream: Stream, offset: i64) -> Print {
    named(&format!("{stream}:{offset}"), "v", offset)
}

fn named(key: &str, value: &str, at: i64) -> Print {
    let record = Record {
        origin: Origin {
            source: "s",
            topic: "t",
            partition: 0,
            offset: 0,
            timestamp: None,
        },
        topic: Cow::Borrowed("t"),
        key: Some(Cow::Borrowed(key.as_bytes())),
        value: Some(Cow::Borrowed(value.as_bytes())),
        headers: Headers::Untouched(&()),
        timestamp: Some(at),
    };
    Print::of(&record, Stamps::Compared)
}

fn expected(stream: Stream, offset: i64) -> Expected {
    Expected {
        print: print(stream, offset),
        stream,
        offset,
        shelf: Some(0),
        need: Need::Required,
    }
}

/// Runs a comparison as a reader does: the target in order, the source on demand.
fn compare(mut comparison: Comparison, source: Vec<Expected>, target: Vec<Found>) -> Comparison {
    let mut source = source.into_iter();
    for found in target {
        while comparison.wants_more(&found.print) {
            let Some(next) = source.next() else { break };
            comparison.expect(next);
        }
        comparison.find(found);
    }
    source.for_each(|next| comparison.expect(next));
    comparison.settle();
    comparison
}

fn one(source: std::ops::Range<i64>, target: &[Print]) -> Comparison {
    let comparison = Comparison::new(vec![WHOLE], vec![KEPT], 100);
    compare(
        comparison,
        source.map(|o| expected(0, o)).collect(),
        shelf(target),
    )
}

fn shelf(prints: &[Print]) -> Vec<Found> {
    let found = prints.iter().enumerate();
    found
        .map(|(offset, print)| Found {
            print: *print,
            shelf: 0,
            offset: offset as i64,
        })
        .collect()
}

fn copies(of: &[i64]) -> Vec<Print> {
    of.iter().map(|o| print(0, *o)).collect()
}

#[test]
fn a_faithful_copy_has_no_difference() {
    let all = one(0..50, &copies(&(0..50).collect::<Vec<_>>()));
    assert_eq!(
        all.tally(),
        Tally {
            matched: 50,
            ..Tally::default()
        }
    );
}

#[test]
fn repeats_after_a_kill_are_counted_and_no_difference() {
    let mut tally = one(0..6, &copies(&[0, 1, 2, 3, 1, 2, 3, 4, 5])).tally();
    assert_eq!(
        (tally.matched, tally.repeated, tally.differences()),
        (6, 3, 0)
    );
    // A repeat that goes on where the first run did not: still in order.
    tally = one(0..6, &copies(&[0, 1, 2, 0, 1, 2, 3, 4, 5, 5])).tally();
    assert_eq!(
        (tally.matched, tally.repeated, tally.differences()),
        (6, 4, 0)
    );
}

#[test]
fn a_record_that_is_left_out_is_missing_with_its_offset() {
    let mut comparison = one(0..5, &copies(&[0, 1, 3, 4]));
    let missing = Difference::Missing {
        stream: 0,
        offset: 2,
        shelf: Some(0),
    };
    assert_eq!(comparison.take_differences(), [missing]);
}

#[test]
fn both_ends_sum_up_to_the_same_whatever_the_order_of_repeats() {
    let ends = one(0..6, &copies(&[0, 1, 2, 3, 1, 2, 3, 4, 5])).ends();
    assert_eq!(ends, one(0..6, &copies(&[0, 1, 2, 3, 4, 5])).ends());
    assert_eq!((ends.source.records, ends.source), (6, ends.target));
    let lost = one(0..6, &copies(&[0, 1, 2, 4, 5])).ends();
    assert_eq!((lost.source.records, lost.target.records), (6, 5));
    let mut altered = copies(&[0, 1, 2]);
    altered[1] = named("0:1", "w", 1);
    let ends = one(0..3, &altered).ends();
    assert_eq!((ends.source.records, ends.target.records), (3, 3));
    assert_ne!(ends.source.hash, ends.target.hash);
}

#[test]
fn what_may_still_come_stays_open_until_it_has_to_be_there() {
    let mut comparison = Comparison::new(vec![WHOLE], vec![KEPT], 100);
    let may = |offset| Expected {
        need: Need::Optional,
        ..expected(0, offset)
    };
    (0..6).for_each(|offset| comparison.expect(may(offset)));
    shelf(&copies(&[0, 1]))
        .into_iter()
        .for_each(|found| comparison.find(found));
    comparison.require(&[2]);
    comparison.settle();
    assert_eq!(
        (comparison.tally().matched, comparison.tally().differences()),
        (2, 0)
    );
    // The mirror was killed, and begins again at its commit: a repeat of the round before.
    for (offset, print) in (2..).zip(copies(&[1, 2, 4, 5])) {
        comparison.find(Found {
            print,
            shelf: 0,
            offset,
        });
    }
    comparison.require(&[5]);
    assert!(comparison.is_waiting());
    comparison.settle();
    let tally = comparison.tally();
    assert_eq!((tally.matched, tally.repeated, tally.missing), (5, 1, 1));
    let missing = Difference::Missing {
        stream: 0,
        offset: 3,
        shelf: Some(0),
    };
    assert_eq!(comparison.take_differences(), [missing]);
}

#[test]
fn what_is_open_when_the_topic_grows_is_still_to_come() {
    let mut earlier = Comparison::new(vec![WHOLE, WHOLE], vec![KEPT], 100);
    for offset in 0..4 {
        earlier.expect(Expected {
            need: Need::Optional,
            ..expected(1, offset)
        });
    }
    let at = |print, shelf, offset| Found {
        print,
        shelf,
        offset,
    };
    earlier.find(at(print(1, 0), 0, 0));
    earlier.require(&[0, 1]);
    earlier.settle();

    // Its second source partition is the first of three here, the first is not here at all.
    let mut grown = Comparison::new(vec![WHOLE; 3], vec![KEPT; 2], 100);
    grown.inherit(earlier, &[None, Some(0)], &[Some(1)]);
    for (offset, print) in (1..).zip([print(1, 1), print(1, 0), print(1, 3)]) {
        grown.find(at(print, 1, offset));
    }
    grown.require(&[4, 0, 0]);
    grown.settle();
    let tally = grown.tally();
    assert_eq!((tally.matched, tally.repeated, tally.missing), (3, 1, 1));
    let missing = Difference::Missing {
        stream: 0,
        offset: 2,
        shelf: Some(1),
    };
    assert_eq!(grown.take_differences(), [missing]);
}

#[test]
fn what_all_others_have_overtaken_is_missing_before_anything_has_to_be_there() {
    let comparison = Comparison::new(vec![WHOLE], vec![KEPT], 10);
    let source = (0..40).map(|offset| Expected {
        need: Need::Optional,
        ..expected(0, offset)
    });
    let target: Vec<i64> = (0..40).filter(|offset| *offset != 7).collect();
    let tally = compare(comparison, source.collect(), shelf(&copies(&target))).tally();
    assert_eq!((tally.matched, tally.missing), (39, 1));
}

#[test]
fn the_last_records_may_not_be_missing_either() {
    assert_eq!(one(0..5, &copies(&[0, 1, 2])).tally().missing, 2);
    let mut comparison = Comparison::new(vec![WHOLE], vec![KEPT], 100);
    comparison.expect(Expected {
        need: Need::Optional,
        ..expected(0, 9)
    });
    comparison.settle();
    assert_eq!(
        comparison.tally(),
        Tally::default(),
        "behind what is compared"
    );
}

#[test]
fn swapped_records_are_reordered_and_nothing_else() {
    let mut comparison = one(0..5, &copies(&[0, 2, 1, 3, 4]));
    let reordered = Difference::Reordered {
        stream: 0,
        offset: 1,
        shelf: 0,
        found_at: 2,
        after: 2,
    };
    assert_eq!(comparison.take_differences(), [reordered]);
}

#[test]
fn a_changed_record_is_altered_and_says_in_what() {
    let mut target = copies(&[0, 1, 2, 3]);
    target[2] = named("0:2", "w", 2);
    let mut comparison = one(0..4, &target);
    let altered = Difference::Altered {
        stream: 0,
        offset: 2,
        shelf: 0,
        found_at: 2,
        parts: vec![Part::Value],
    };
    assert_eq!(comparison.take_differences(), [altered]);
    target[2] = named("another", "v", 2);
    assert_eq!(one(0..4, &target).tally().altered, 1, "a changed key");
}

#[test]
fn a_record_that_nobody_wrote_is_extra() {
    let mut target = copies(&[0, 1, 2]);
    target.insert(1, named("stranger", "x", 77));
    let mut comparison = one(0..3, &target);
    assert_eq!(
        comparison.take_differences(),
        [Difference::Extra {
            shelf: 0,
            found_at: 1
        }]
    );
}

#[test]
fn a_record_in_another_partition_is_moved() {
    let mut comparison = Comparison::new(vec![WHOLE], vec![KEPT, KEPT], 100);
    comparison.expect(expected(0, 0));
    comparison.find(Found {
        print: print(0, 0),
        shelf: 1,
        offset: 5,
    });
    comparison.settle();
    assert_eq!(
        (comparison.tally().moved, comparison.tally().matched),
        (1, 1)
    );
}

#[test]
fn equal_records_count_as_often_as_they_are() {
    let beat = |offset| Expected {
        print: named("beat", "", 0),
        ..expected(0, offset)
    };
    let source: Vec<Expected> = (0..5).map(beat).collect();
    let comparison = || Comparison::new(vec![WHOLE], vec![KEPT], 100);
    let four = shelf(&[named("beat", "", 0); 4]);
    assert_eq!(
        compare(comparison(), source.clone(), four).tally().missing,
        1
    );
    let five = shelf(&[named("beat", "", 0); 5]);
    assert_eq!(compare(comparison(), source, five).tally().differences(), 0);
}

#[test]
fn the_target_may_have_lost_its_beginning_to_retention() {
    let cut = ShelfFacts {
        beginning: Beginning::Cut,
        ..KEPT
    };
    let source = || (0..10).map(|o| expected(0, o)).collect();
    let comparison = || Comparison::new(vec![WHOLE], vec![cut], 100);
    let tally = compare(comparison(), source(), shelf(&copies(&[4, 5, 6, 8, 9]))).tally();
    assert_eq!((tally.expired, tally.missing), (4, 1));
    let empty = compare(comparison(), source(), Vec::new()).tally();
    assert_eq!((empty.expired, empty.missing), (10, 0));
}

#[test]
fn a_partition_that_lost_one_source_altogether_has_not_expired() {
    let cut = ShelfFacts {
        beginning: Beginning::Cut,
        ..KEPT
    };
    let comparison = Comparison::new(vec![WHOLE, WHOLE], vec![cut], 100);
    let both = (0..5)
        .flat_map(|o| [expected(0, o), expected(1, o)])
        .collect();
    let tally = compare(comparison, both, shelf(&copies(&[0, 1, 2, 3, 4]))).tally();
    assert_eq!((tally.missing, tally.expired), (5, 0));
}

#[test]
fn the_source_may_have_lost_its_beginning_to_retention() {
    let cut = StreamFacts {
        beginning: Beginning::Cut,
        ..WHOLE
    };
    let source = (3..6).map(|o| expected(0, o)).collect();
    let mut target = copies(&[0, 1, 2, 3, 4]);
    target.push(named("stranger", "x", 9));
    target.push(print(0, 5));
    let tally = compare(
        Comparison::new(vec![cut], vec![KEPT], 100),
        source,
        shelf(&target),
    )
    .tally();
    assert_eq!((tally.older, tally.extra, tally.matched), (3, 1, 3));
}

#[test]
fn compaction_explains_all_but_the_last_of_a_key() {
    let compacted = ShelfFacts {
        cleanup: Cleanup::Compacted,
        ..KEPT
    };
    let keyed = |offset, key: &str, value: &str| Expected {
        print: named(key, value, offset),
        ..expected(0, offset)
    };
    let source = vec![
        keyed(0, "a", "1"),
        keyed(1, "b", "1"),
        keyed(2, "a", "2"),
        keyed(3, "b", "2"),
        keyed(4, "c", "1"),
    ];
    let target = shelf(&[named("a", "2", 2), named("c", "1", 4)]);
    let mut comparison = compare(
        Comparison::new(vec![WHOLE], vec![compacted], 100),
        source,
        target,
    );
    assert_eq!(comparison.tally().compacted, 1, "a=1");
    let offsets: Vec<i64> = comparison
        .take_differences()
        .iter()
        .map(|d| match d {
            Difference::Missing { offset, .. } => *offset,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(offsets, [1, 3], "b is gone altogether");
}

#[test]
fn a_route_that_began_at_the_end_owes_nothing_before() {
    let late = StreamFacts {
        start: Beginning::Cut,
        ..WHOLE
    };
    let source = (0..10).map(|o| expected(0, o)).collect();
    let tally = compare(
        Comparison::new(vec![late], vec![KEPT], 100),
        source,
        shelf(&copies(&[6, 7, 9])),
    )
    .tally();
    assert_eq!(
        (tally.before_start, tally.missing, tally.matched),
        (6, 1, 3)
    );
}

#[test]
fn a_hole_larger_than_the_window_is_found_in_full() {
    let source: Vec<Expected> = (0..5000).map(|o| expected(0, o)).collect();
    let target: Vec<i64> = (0..100).chain(2900..5000).collect();
    let comparison = Comparison::new(vec![WHOLE], vec![KEPT], 2000);
    let tally = compare(comparison, source, shelf(&copies(&target))).tally();
    assert_eq!((tally.missing, tally.extra, tally.matched), (2800, 0, 2200));
}

#[test]
fn memory_is_bounded_by_the_window() {
    let source: Vec<Expected> = (0..10_000).map(|o| expected(0, o)).collect();
    let target: Vec<Print> = (0..10_000).map(|o| named("foreign", "x", o)).collect();
    let mut comparison = Comparison::new(vec![WHOLE], vec![KEPT], 50);
    let mut source = source.into_iter();
    for found in shelf(&target) {
        while comparison.wants_more(&found.print) {
            let Some(next) = source.next() else { break };
            comparison.expect(next);
        }
        comparison.find(found);
        assert!(
            comparison.open.len() <= 100
                && comparison.strangers.len() <= 50
                && comparison.matched.len() <= 50
        );
    }
    source.for_each(|next| comparison.expect(next));
    comparison.settle();
    assert_eq!(
        (comparison.tally().missing, comparison.tally().extra),
        (10_000, 10_000)
    );
    assert!(comparison.tally().overruns > 0);
}

/// What a mirror does wrong.
#[derive(Clone, Copy, Debug)]
enum Fault {
    Nothing,
    Skip,
    Swap,
    Alter,
    Invent,
    CutTheEnd,
}

fn fault() -> impl Strategy<Value = Fault> {
    prop_oneof![
        Just(Fault::Nothing),
        Just(Fault::Skip),
        Just(Fault::Swap),
        Just(Fault::Alter),
        Just(Fault::Invent),
        Just(Fault::CutTheEnd),
    ]
}

/// A copy of `streams` as a mirror makes it: interleaved in any way, with kills that go back to a commit.
fn copy(lengths: &[usize], steps: &[(usize, usize, usize)]) -> Vec<(Stream, i64)> {
    let mut next = vec![0usize; lengths.len()];
    let mut copied = Vec::new();
    for (stream, count, back) in steps {
        let stream = stream % lengths.len();
        // A kill: what was not committed comes once more.
        next[stream] -= (*back).min(next[stream]);
        for _ in 0..*count {
            if next[stream] < lengths[stream] {
                copied.push((stream as Stream, next[stream] as i64));
                next[stream] += 1;
            }
        }
    }
    for (stream, length) in lengths.iter().enumerate() {
        copied.extend((next[stream]..*length).map(|o| (stream as Stream, o as i64)));
    }
    copied
}

proptest! {
    #[test]
    fn each_fault_is_found_and_nothing_else(
        lengths in prop::collection::vec(2usize..30, 1..4),
        steps in prop::collection::vec((0usize..4, 0usize..12, 0usize..6), 0..20),
        fault in fault(),
        pick in any::<prop::sample::Index>(),
    ) {
        let copied = copy(&lengths, &steps);
        // A fault in a record that was copied once only: another copy of it would mend it.
        let once: Vec<usize> = (0..copied.len())
            .filter(|i| copied.iter().filter(|c| **c == copied[*i]).count() == 1)
            .collect();
        prop_assume!(!once.is_empty());
        let at = once[pick.index(once.len())];
        let mut target: Vec<Print> = copied.iter().map(|(s, o)| print(*s, *o)).collect();
        let mut wanted = Tally::default();
        match fault {
            Fault::Nothing => {}
            Fault::Skip => { target.remove(at); wanted.missing = 1; }
            Fault::Swap => {
                // With the next record of the same source partition that was copied once, too.
                let other = once.iter().copied().find(|i| *i > at && copied[*i].0 == copied[at].0);
                prop_assume!(other.is_some());
                let other = other.unwrap_or(at);
                prop_assume!(copied[at..=other].iter().all(|c| c.0 != copied[at].0 || *c == copied[at] || *c == copied[other]));
                target.swap(at, other);
                wanted.reordered = 1;
            }
            Fault::Alter => { target[at] = named(&format!("{}:{}", copied[at].0, copied[at].1), "other", copied[at].1); wanted.altered = 1; }
            Fault::Invent => { target.insert(at, named("nobody", "x", -1)); wanted.extra = 1; }
            Fault::CutTheEnd => {
                let stream = copied[copied.len() - 1].0;
                let last = lengths[stream as usize] as i64 - 1;
                while copied.len() == target.len() || target.last() == Some(&print(stream, last)) {
                    if target.pop().is_none() { break; }
                }
                prop_assume!(!target.contains(&print(stream, last)));
                let lost = (0..lengths.len()).flat_map(|s| (0..lengths[s]).map(move |o| print(s as Stream, o as i64)));
                wanted.missing = lost.filter(|p| !target.contains(p)).count() as u64;
            }
        }
        let source: Vec<Expected> = (0..lengths.len() as Stream)
            .flat_map(|s| (0..lengths[s as usize] as i64).map(move |o| expected(s, o)))
            .collect();
        let comparison = Comparison::new(vec![WHOLE; lengths.len()], vec![KEPT], 1000);
        let tally = compare(comparison, source, shelf(&target)).tally();
        prop_assert_eq!(
            (tally.missing, tally.extra, tally.altered, tally.reordered, tally.moved),
            (wanted.missing, wanted.extra, wanted.altered, wanted.reordered, 0)
        );
    }
}
