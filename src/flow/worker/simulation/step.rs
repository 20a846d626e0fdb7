//! What may happen: single steps, and rare orders of them.

use super::rare_orders::rare_order;
use super::settings::Shape;
use super::target::Answer;
use super::world::CommitFate;
use super::{BATCH, PARTITIONS};
use crate::config::spec::{OnError, OnGap};
use crate::plane::FaultKind;
use proptest::prelude::*;

#[derive(Clone, Debug)]
pub(super) enum Step {
    Write {
        partition: i32,
        count: usize,
        hole: i64,
        bad: bool,
    },
    /// Retention deletes all but so many offsets.
    Retain {
        partition: i32,
        keep: i64,
    },
    /// The last offsets are lost with their leader.
    Cut {
        partition: i32,
        count: i64,
    },
    DeleteTopic,
    CreateTopic,
    Fetch {
        partition: i32,
        count: usize,
    },
    /// The client cannot read so many records, says so, and goes on behind them.
    FetchSpoilt {
        partition: i32,
        count: usize,
    },
    /// The position is called out of range, and is not.
    RefusePosition(i32),
    Serve,
    ReadInbox,
    Tick,
    Ack(usize),
    Fail(usize, FaultKind, Answer),
    Refuse(FaultKind),
    Report {
        handle: usize,
        count: usize,
    },
    Assign(u8),
    Revoke(u8),
    Lose,
    /// The group notices that the topic is gone, or another one.
    Notice,
    CopyElsewhere {
        partition: i32,
        count: usize,
    },
    /// The group takes these partitions, somebody else copies some of each, and they come back.
    GoAndComeBack {
        mask: u8,
        count: usize,
    },
    Commit(CommitFate),
    ScoutLooks {
        fails: bool,
    },
    ScoutTells,
    VerifierTells(Word),
    KeeperMakes,
    RetriesAreDue,
    DrainIsOver,
    CommitIsOver,
    LaneGoesOn(usize),
    /// The file has other settings.
    Change(Changed),
    /// The flow is told to end, and begins anew when it has.
    Drain,
    /// The process is killed, and another one begins.
    Kill(Answer),
}

/// What a broker says when it is asked for the topic's id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// How it is.
    True,
    /// Nothing.
    Missing,
    /// That there is no such topic: it has just been started, and does not know it yet.
    Unaware,
}

/// What differs in the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Changed {
    /// Another chain, if any.
    pub(super) chain: Option<Shape>,
    pub(super) on_error: OnError,
    pub(super) on_gap: OnGap,
    /// Whether the topic of the new chain is there already.
    pub(super) topic: NewTopic,
}

/// Whether the target topic of a new chain is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NewTopic {
    There,
    Missing,
}

pub(super) fn on_error() -> impl Strategy<Value = OnError> {
    prop_oneof![
        Just(OnError::Stop),
        Just(OnError::Skip),
        Just(OnError::DeadLetter)
    ]
}

pub(super) fn on_gap() -> impl Strategy<Value = OnGap> {
    prop_oneof![
        Just(OnGap::Stop),
        Just(OnGap::Earliest),
        Just(OnGap::Latest)
    ]
}

pub(super) fn partition() -> impl Strategy<Value = i32> {
    0..PARTITIONS
}

pub(super) fn answer() -> impl Strategy<Value = Answer> {
    prop_oneof![Just(Answer::Lost), Just(Answer::There)]
}

fn word() -> impl Strategy<Value = Word> {
    prop_oneof![
        8 => Just(Word::True),
        1 => Just(Word::Missing),
        1 => Just(Word::Unaware),
    ]
}

pub(super) fn kind() -> impl Strategy<Value = FaultKind> {
    prop_oneof![
        Just(FaultKind::World),
        Just(FaultKind::Missing),
        Just(FaultKind::Collateral)
    ]
}

pub(super) fn changed() -> impl Strategy<Value = Changed> {
    let shape = prop_oneof![Just(Shape::Split), Just(Shape::Whole)];
    let topic = prop_oneof![Just(NewTopic::There), Just(NewTopic::Missing)];
    let chain = prop::option::weighted(0.7, shape);
    (chain, on_error(), on_gap(), topic).prop_map(|(chain, on_error, on_gap, topic)| Changed {
        chain,
        on_error,
        on_gap,
        topic,
    })
}

fn step() -> impl Strategy<Value = Step> {
    let fate = prop_oneof![
        4 => Just(CommitFate::Taken),
        1 => Just(CommitFate::Refused),
        1 => Just(CommitFate::TakenInSilence),
        1 => Just(CommitFate::PartlyRefused),
    ];
    let source = prop_oneof![
        6 => (partition(), 1usize..7, 0i64..3, prop::bool::weighted(0.1)).prop_map(
            |(partition, count, hole, bad)| Step::Write { partition, count, hole, bad }
        ),
        12 => (partition(), 1..=BATCH).prop_map(|(partition, count)| Step::Fetch { partition, count }),
        2 => (partition(), 1..=BATCH)
            .prop_map(|(partition, count)| Step::FetchSpoilt { partition, count }),
        1 => (partition(), 0i64..3).prop_map(|(partition, keep)| Step::Retain { partition, keep }),
        1 => (partition(), 1i64..4).prop_map(|(partition, count)| Step::Cut { partition, count }),
        1 => partition().prop_map(Step::RefusePosition),
    ];
    let target = prop_oneof![
        6 => any::<usize>().prop_map(Step::Ack),
        2 => (any::<usize>(), kind(), answer()).prop_map(|(pick, kind, a)| Step::Fail(pick, kind, a)),
        1 => kind().prop_map(Step::Refuse),
        6 => (0usize..6, 1usize..6).prop_map(|(handle, count)| Step::Report { handle, count }),
        2 => Just(Step::KeeperMakes),
    ];
    let group = prop_oneof![
        6 => any::<u8>().prop_map(Step::Assign),
        4 => any::<u8>().prop_map(Step::Revoke),
        2 => Just(Step::Lose),
        2 => (partition(), 1usize..5)
            .prop_map(|(partition, count)| Step::CopyElsewhere { partition, count }),
        2 => (any::<u8>(), 1usize..5)
            .prop_map(|(mask, count)| Step::GoAndComeBack { mask, count }),
        10 => fate.prop_map(Step::Commit),
        1 => Just(Step::Notice),
    ];
    let worker = prop_oneof![
        8 => Just(Step::Serve),
        8 => Just(Step::ReadInbox),
        4 => Just(Step::Tick),
        4 => prop::bool::weighted(0.1).prop_map(|fails| Step::ScoutLooks { fails }),
        4 => Just(Step::ScoutTells),
        4 => word().prop_map(Step::VerifierTells),
        2 => Just(Step::RetriesAreDue),
        1 => Just(Step::DrainIsOver),
        1 => Just(Step::CommitIsOver),
        8 => (1usize..6).prop_map(Step::LaneGoesOn),
        1 => changed().prop_map(Step::Change),
    ];
    prop_oneof![12 => source, 17 => target, 13 => group, 45 => worker]
}

/// Steps one after the other: mostly one of any kind, now and then a rare order of them.
pub(super) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let single = step().prop_map(|step| vec![step]);
    let some = prop_oneof![3 => single, 1 => rare_order()];
    prop::collection::vec(some, 1..80).prop_map(|all| all.concat())
}
