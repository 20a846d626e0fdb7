//! Batches that pass: what goes whole, what is opened, and what a refusal leads to.

use super::*;
use crate::flow::{NewSettings, Taken};
use crate::wire::codec::{Codec, Compression, Compressor};
use crate::wire::cut::{Cut, Cuts};
use crate::wire::header::Stamp;
use crate::wire::pass::Whole;
use crate::wire::writer::{self, Piece, Written};
use bytes::Bytes;
use std::collections::BTreeSet;

/// A batch of records that hold their offsets.
fn whole(from: i64, to: i64) -> Whole {
    let mut writer = writer::Writer::default();
    let none = crate::record::Headers::Changed(Vec::new());
    for offset in from..to {
        writer.push(&Piece {
            timestamp: Some(1),
            key: None,
            value: Some(offset.to_string().as_bytes()),
            headers: Written::Each(&none),
        });
    }
    let (codec, level) = (Codec::None, None);
    let mut compressor = Compressor::new(Compression { codec, level }).unwrap();
    let stamp = Stamp {
        producer_id: -1,
        producer_epoch: -1,
        base_sequence: -1,
    };
    let mut bytes = writer.finish(&mut compressor, stamp).unwrap();
    bytes[..8].copy_from_slice(&from.to_be_bytes());
    let frame = Bytes::from(bytes);
    let Some(Ok(Cut::Batch(batch))) = Cuts::of(&frame).next() else {
        panic!("no batch");
    };
    batch.keep(&frame)
}

/// Two batches, the second of one record, as far as there are so many.
pub(super) fn run(partition: i32, from: i64, to: i64) -> Run {
    let cut = (from + 2).min(to);
    let mut run = Run::of(tp(partition), whole(from, cut));
    if cut < to {
        run.push(whole(cut, to)).expect("it follows");
    }
    run
}

fn native(chain: Chain, on_error: OnError) -> FlowSpec {
    let spec = flow_spec(chain, on_error);
    let route = RouteSpec {
        data_plane: DataPlane::Native,
        ..(*spec.route).clone()
    };
    FlowSpec {
        route: Arc::new(route),
        ..spec
    }
}

/// `passes` says what the target does with a batch, by its first offset.
fn passing(
    on_error: OnError,
    handler_threads: usize,
    judge: impl FnMut(i32, i64) -> Fate + Send + 'static,
    passes: impl FnMut(i32, i64) -> Fate + Send + 'static,
) -> Stand {
    let spec = native(Chain::default(), on_error);
    let stand = stand_of(spec, handler_threads, Numbers::OfWriters, judge);
    stand.shared.with(|w| w.passes = Box::new(passes));
    stand
}

impl Stand {
    fn counts(&self) -> (u64, u64, u64) {
        let c = &self.view.counters;
        let get = Counters::get;
        (
            get(&c.delivered_records),
            get(&c.passed_records),
            get(&c.refused_batches),
        )
    }
}

#[test]
fn what_nobody_looks_at_passes_in_both_shapes() {
    for threads in [0, 2] {
        let never = |_, _| panic!("no record is looked at");
        let stand = passing(OnError::Stop, threads, never, |_, _| Fate::Ack);
        stand.assign(&[(0, 20), (1, 7)]);
        stand.committed(0, 20);
        stand.committed(1, 7);
        assert_eq!(stand.counts(), (27, 27, 0));
        let (exit, seen) = stand.drain();
        assert!(matches!(exit, WorkerExit::Drained), "{exit:?}");
        assert_eq!(seen.arrived[&0], (0..20).collect::<Vec<_>>());
        assert_eq!(seen.arrived[&1], (0..7).collect::<Vec<_>>());
    }
}

#[test]
fn i1_nothing_is_committed_past_a_batch_that_is_not_acknowledged() {
    let stand = passing(
        OnError::Stop,
        0,
        |_, _| Fate::Ack,
        |_, first| match first {
            3 => Fate::Hold,
            _ => Fate::Ack,
        },
    );
    stand.assign(&[(0, 9)]);
    stand.shared.wait("8 arrives", |w| {
        w.arrived.get(&0).is_some_and(|a| a.contains(&8))
    });
    stand.committed(0, 3);
    stand.acknowledge_held();
    stand.committed(0, 9);
    assert!(matches!(stand.drain().0, WorkerExit::Drained));
}

#[test]
fn a_refused_batch_is_opened_and_the_ones_behind_it_pass_again() {
    for kind in [
        FaultKind::Record(FailureCode::RecordTooLarge),
        FaultKind::World,
    ] {
        let stand = passing(
            OnError::Stop,
            0,
            |_, _| Fate::Ack,
            move |_, first| match first {
                6 => Fate::Fail(kind),
                _ => Fate::Ack,
            },
        );
        stand.assign(&[(0, 30)]);
        stand.committed(0, 30);
        let (delivered, passed, refused) = stand.counts();
        assert_eq!((delivered, refused), (30, 1), "{kind:?}");
        let (singles, seen) = stand
            .shared
            .with(|w| (w.singles.clone(), w.arrived.clone()));
        assert!(singles.contains(&6) && singles.contains(&7), "{singles:?}");
        assert!(!singles.contains(&29) && passed < 30, "{singles:?}");
        // Some of what is behind it may have arrived before.
        let last_of_6 = seen[&0].iter().rposition(|o| *o == 6).unwrap();
        let tail = first_appearances(&seen[&0][last_of_6..]);
        assert_eq!(tail, (6..30).collect::<Vec<_>>());
        assert!(matches!(stand.drain().0, WorkerExit::Drained));
    }
}

#[test]
fn only_what_a_record_is_refused_for_meets_on_error() {
    let too_large = || Fate::Fail(FaultKind::Record(FailureCode::RecordTooLarge));
    let stand = passing(
        OnError::Skip,
        0,
        move |_, offset| match offset {
            7 => too_large(),
            _ => Fate::Ack,
        },
        move |_, first| match first {
            6 => too_large(),
            _ => Fate::Ack,
        },
    );
    stand.assign(&[(0, 30)]);
    stand.committed(0, 30);
    let skipped = Counters::get(&stand.view.counters.skipped_records);
    assert_eq!((skipped, stand.counts().2), (1, 1));
    let (_, seen) = stand.drain();
    let arrived: BTreeSet<i64> = seen.arrived[&0].iter().copied().collect();
    assert_eq!(arrived, (0..30).filter(|o| *o != 7).collect());
}

#[test]
fn a_target_that_refuses_everything_is_no_property_of_a_batch() {
    let stand = passing(
        OnError::Skip,
        0,
        |_, _| Fate::Fail(FaultKind::World),
        |_, _| Fate::Fail(FaultKind::World),
    );
    stand.assign(&[(0, 9)]);
    stand.wait_for_reason(0, |r| matches!(r, Reason::TargetRefuses { .. }));
    stand.shared.with(|w| {
        w.judge = Box::new(|_, _| Fate::Ack);
        w.passes = Box::new(|_, _| Fate::Ack);
    });
    stand.committed(0, 9);
    let skipped = Counters::get(&stand.view.counters.skipped_records);
    assert_eq!(skipped, 0);
}

#[test]
fn another_chain_holds_from_the_next_batch_on_and_back() {
    let stand = passing(OnError::Stop, 0, |_, _| Fate::Ack, |_, _| Fate::Ack);
    stand.assign(&[(0, 6)]);
    stand.committed(0, 6);
    assert_eq!(stand.counts(), (6, 6, 0));
    stand.change(first_of_each_digit());
    stand.shared.with(|w| w.ends.insert(0, 30));
    stand.committed(0, 30);
    assert_eq!(stand.counts().1, 6, "records are looked at now");
    stand.change(Chain::default());
    stand.shared.with(|w| w.ends.insert(0, 33));
    stand.committed(0, 33);
    assert_eq!(stand.counts().1, 9);
    assert!(matches!(stand.drain().0, WorkerExit::Drained));
}

impl Stand {
    /// Gives the flow another chain, and waits until it holds.
    fn change(&self, chain: Chain) {
        let (taken, is_taken) = unbounded();
        let on_taken = Box::new(move || {
            let _ = taken.send(());
        });
        let settings = NewSettings {
            route: native(chain, OnError::Stop).route,
            _taken: Arc::new(Taken(Some(on_taken))),
        };
        let note = Note::Control(Control::Change(settings));
        self.shared.inbox.send(note).unwrap();
        is_taken.recv_timeout(SOON).unwrap();
    }
}

#[test]
fn what_is_fetched_twice_is_taken_once() {
    let stand = passing(OnError::Stop, 0, |_, _| Fate::Ack, |_, _| Fate::Ack);
    stand.assign(&[(0, 6)]);
    stand.committed(0, 6);
    stand.says(FetchEvent::Run(run(0, 4, 7)));
    stand.shared.with(|w| w.ends.insert(0, 9));
    stand.committed(0, 9);
    let (_, seen) = stand.drain();
    assert_eq!(seen.arrived[&0], (0..9).collect::<Vec<_>>());
}
