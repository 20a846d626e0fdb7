//! Orders of steps that chance alone seldom finds. What they lead to, [`super::rare`] counts.

use super::BATCH;
use super::step::{Changed, NewTopic, Step, Word, answer, changed, kind, on_gap, partition};
use super::target::Answer;
use super::world::CommitFate;
use crate::config::spec::{OnError, OnGap};
use crate::plane::FaultKind;
use proptest::prelude::*;

/// Partitions are here and placed, as far as anything can be done about it, with records in flight.
fn placed(partition: i32) -> Vec<Step> {
    let mut steps = vec![Step::CreateTopic, Step::Notice];
    steps.extend(all_placed());
    steps.extend(flowing(partition));
    steps
}

/// Every partition is here.
pub(super) fn all_placed() -> Vec<Step> {
    let mut steps = vec![
        Step::RetriesAreDue,
        Step::Tick,
        Step::Assign(0xff),
        Step::Serve,
        Step::Serve,
        Step::KeeperMakes,
    ];
    steps.extend(looks());
    // The flow's start, if it is still ahead.
    steps.extend([Step::Tick, Step::Commit(CommitFate::Taken), Step::Serve]);
    steps.extend(looks());
    // Ids for all writers, and then their claims.
    steps.push(Step::Tick);
    steps.extend(claims());
    steps
}

/// Whoever may not write before a commit gets it.
fn claims() -> Vec<Step> {
    vec![
        Step::Tick,
        Step::VerifierTells(Word::True),
        Step::ReadInbox,
        Step::Commit(CommitFate::Taken),
        Step::Serve,
        Step::Tick,
        Step::VerifierTells(Word::True),
        Step::ReadInbox,
        Step::Commit(CommitFate::Taken),
        Step::Serve,
    ]
}

fn looks() -> Vec<Step> {
    vec![
        Step::ScoutLooks { fails: false },
        Step::ScoutTells,
        Step::ReadInbox,
    ]
}

fn write(partition: i32, count: usize) -> Step {
    Step::Write {
        partition,
        count,
        hole: 0,
        bad: false,
    }
}

pub(super) fn fetch(partition: i32) -> Step {
    Step::Fetch {
        partition,
        count: BATCH,
    }
}

fn flowing(partition: i32) -> Vec<Step> {
    vec![
        write(partition, 6),
        fetch(partition),
        Step::LaneGoesOn(8),
        fetch(partition),
    ]
}

/// Everything in flight arrives, and the worker hears of it.
fn confirmed() -> Vec<Step> {
    let mut steps = vec![Step::LaneGoesOn(12), Step::ReadInbox];
    steps.extend((0..14).map(Step::Ack));
    steps.extend(reported());
    steps
}

fn reported() -> Vec<Step> {
    let all = |handle| Step::Report { handle, count: 99 };
    let mut steps: Vec<Step> = (0..8).map(all).collect();
    steps.push(Step::ReadInbox);
    steps
}

/// A commit is on its way to the broker.
fn committing() -> Vec<Step> {
    committing_as(Word::True)
}

fn committed() -> Vec<Step> {
    let mut steps = committing();
    steps.extend([Step::Commit(CommitFate::Taken), Step::Serve]);
    steps
}

fn committing_as(word: Word) -> Vec<Step> {
    let mut steps = confirmed();
    steps.extend([
        Step::RetriesAreDue,
        Step::Tick,
        Step::VerifierTells(word),
        Step::ReadInbox,
    ]);
    steps
}

/// An order of steps that chance alone seldom finds. What it leads to, [`super::rare`] counts.
pub(super) fn rare_order() -> impl Strategy<Value = Vec<Step>> {
    let taken = |changed| vec![Step::Change(changed), Step::ReadInbox];
    let leave = prop_oneof![
        3 => Just(vec![Step::Drain, Step::ReadInbox]),
        2 => answer().prop_map(|answer| vec![Step::Kill(answer)]),
    ];
    let failed = (kind(), answer()).prop_map(|(kind, answer)| {
        let mut steps = vec![
            Step::LaneGoesOn(8),
            Step::ReadInbox,
            Step::Ack(0),
            Step::Fail(0, kind, answer),
        ];
        steps.extend((0..3).map(Step::Ack));
        steps.extend((0..8).map(|handle| Step::Report { handle, count: 2 }));
        steps.push(Step::ReadInbox);
        steps
    });
    // What stands in the middle.
    let before = prop_oneof![
        1 => Just(unaware()),
        4 => Just(Vec::<Step>::new()),
        3 => failed,
        2 => Just(isolated()),
        2 => Just(committing()),
        3 => Just(committed()),
        1 => Just(vec![Step::RefusePosition(0), Step::RefusePosition(1)]),
    ];
    let source = prop_oneof![
        2 => (partition(), 0i64..2)
            .prop_map(|(partition, keep)| vec![Step::Retain { partition, keep }, fetch(partition)]),
        2 => (partition(), 1i64..4)
            .prop_map(|(partition, count)| vec![Step::Cut { partition, count }, fetch(partition)]),
        1 => Just(vec![Step::DeleteTopic]),
        1 => Just(vec![Step::DeleteTopic, Step::CreateTopic]),
    ];
    let event = prop_oneof![
        3 => Just(revoked()),
        2 => any::<u8>().prop_map(|mask| vec![Step::Revoke(mask), Step::Serve, Step::Tick]),
        2 => Just(vec![Step::Assign(0xff), Step::Serve]),
        2 => Just(lost()),
        2 => answer().prop_map(|a| vec![Step::Fail(0, FaultKind::Collateral, a)]),
        3 => changed().prop_map(taken),
        3 => leave,
        6 => source,
    ];
    let events = prop::collection::vec(event, 1..4).prop_map(|all| all.concat());
    let time_is_over = prop_oneof![
        Just(Vec::<Step>::new()),
        Just(vec![Step::DrainIsOver, Step::Tick]),
        Just(vec![Step::CommitIsOver, Step::Tick]),
    ];
    let after = prop_oneof![
        1 => Just(Vec::<Step>::new()),
        2 => Just(reported()),
        2 => Just(committing()),
        1 => Just(vec![Step::Commit(CommitFate::Taken), Step::Serve]),
        2 => Just(all_placed()),
    ];
    let mixed = (partition(), before, events, time_is_over, after).prop_map(
        |(partition, before, events, time_is_over, after)| {
            [placed(partition), before, events, time_is_over, after].concat()
        },
    );
    prop_oneof![3 => mixed, 4 => known_order()]
}

/// Orders of which it is known where they lead. They begin in a new process, with settings that hold nothing.
fn known_order() -> impl Strategy<Value = Vec<Step>> {
    let dies = answer().prop_map(|a| vec![Step::Fail(0, FaultKind::Collateral, a)]);
    let change = || changed().prop_map(|changed| vec![Step::Change(changed), Step::ReadInbox]);
    let goes = prop_oneof![Just(revoked()), Just(lost())];
    let lands = || vec![Step::Commit(CommitFate::Taken), Step::Serve];
    let over = vec![Step::CommitIsOver, Step::Tick];
    let anew = vec![Step::DeleteTopic, Step::CreateTopic];
    let order = prop_oneof![
        // A commit lands late, and is answered when nobody waits any more.
        Just([committing(), revoked(), over.clone(), lands()].concat()).boxed(),
        // A producer dies in a revoke, a session ends in a commit.
        dies.prop_map(|dies| [revoked(), dies, reported()].concat())
            .boxed(),
        Just([committing(), lost()].concat()).boxed(),
        // The flow drains while partitions come and go.
        goes.prop_map(|goes| [amid_a_drain(), goes].concat())
            .boxed(),
        // New settings in a barrier, and while suspects go one by one.
        change()
            .prop_map(|change| [failing(), change].concat())
            .boxed(),
        change()
            .prop_map(|change| [isolated(), change].concat())
            .boxed(),
        // The topic is another one: while nobody has it, when a commit of it lands, and with records at the old position.
        Just([committed(), revoked(), gone(), anew.clone()].concat()).boxed(),
        Just([committing(), anew.clone(), lands()].concat()).boxed(),
        Just([confirmed(), anew.clone(), stray(), stray()].concat()).boxed(),
        Just([confirmed(), anew, vec![fetch(0)], looks()].concat()).boxed(),
        // It seems so, and is not; neither is its position out of range.
        Just([unaware(), committing()].concat()).boxed(),
        Just([vec![Step::RefusePosition(0)], confirmed(), looks()].concat()).boxed(),
        // What a lane has queued when new settings come.
        change()
            .prop_map(|change| [change, vec![Step::LaneGoesOn(8)]].concat())
            .boxed(),
        // Partitions are taken while suspects go one by one, and the session ends before they have gone.
        Just([isolated(), revoked()].concat()).boxed(),
        Just([revoked(), lost(), reported()].concat()).boxed(),
        // Somebody else has gone on when what is in flight arrives.
        Just([confirmed(), flowing(0), zombie(), confirmed(), lost()].concat()).boxed(),
        // A commit lands late, and says less than was claimed since.
        Just([committing(), revoked(), over.clone(), set_back()].concat()).boxed(),
    ];
    let is_cut = prop_oneof![Just(Side::Behind), Just(Side::Beyond)];
    let gap =
        (partition(), on_gap(), is_cut).prop_map(|(p, on_gap, side)| out_of_range(p, on_gap, side));
    let hardly_here = || vec![Step::Assign(0xff), Step::Serve];
    prop_oneof![
        17 => order.prop_map(|order| [fresh(), placed(0), order].concat()),
        8 => gap,
        1 => Just([fresh(), hardly_here(), revoked()].concat()),
    ]
}

/// Where a position is that is not in the log.
#[derive(Clone, Copy, Debug)]
enum Side {
    Behind,
    Beyond,
}

/// The session is over, of which nobody has heard here, and somebody else copies.
fn zombie() -> Vec<Step> {
    let copies = Step::CopyElsewhere {
        partition: 0,
        count: 1,
    };
    vec![Step::LaneGoesOn(8), Step::ReadInbox, Step::Lose, copies]
}

/// Somebody else copies, and a commit from before that lands over his.
fn set_back() -> Vec<Step> {
    let copies = Step::CopyElsewhere {
        partition: 0,
        count: 1,
    };
    let lands = vec![copies, Step::Commit(CommitFate::Taken), Step::Serve];
    [lands, all_placed(), flowing(0), confirmed()].concat()
}

/// Records of the new topic, at the position in the former.
fn stray() -> Vec<Step> {
    vec![write(0, 6), fetch(0), Step::LaneGoesOn(8)]
}

/// A broker does not know the topic, twice.
fn unaware() -> Vec<Step> {
    [committing_as(Word::Unaware), committing_as(Word::Unaware)].concat()
}

/// The process ends, the topic is another one, and the next process begins with it.
fn fresh() -> Vec<Step> {
    let cure = Changed {
        chain: None,
        on_error: OnError::Skip,
        on_gap: OnGap::Earliest,
        topic: NewTopic::There,
    };
    vec![
        Step::Change(cure),
        Step::DeleteTopic,
        Step::CreateTopic,
        Step::Kill(Answer::There),
    ]
}

/// Records that are committed are lost with their leader, or some that are not are deleted.
fn out_of_range(partition: i32, on_gap: OnGap, side: Side) -> Vec<Step> {
    let change = Step::Change(Changed {
        chain: None,
        on_error: OnError::Skip,
        on_gap,
        topic: NewTopic::There,
    });
    let goes = match side {
        Side::Behind => vec![write(partition, 3), Step::Retain { partition, keep: 0 }],
        Side::Beyond => vec![Step::Cut {
            partition,
            count: 3,
        }],
    };
    let is_found = vec![fetch(partition), change];
    let comes_back = [all_placed(), gone(), vec![Step::Tick], all_placed()].concat();
    [
        fresh(),
        placed(partition),
        committed(),
        goes,
        is_found,
        comes_back,
    ]
    .concat()
}

/// The flow drains with records in flight, and partitions have just come.
fn amid_a_drain() -> Vec<Step> {
    let away = vec![Step::Revoke(0b110), Step::Serve, Step::Tick];
    let comes = vec![Step::Assign(0xff), Step::Serve];
    let drains = vec![Step::Drain, Step::ReadInbox];
    [committed(), away, flowing(0), drains, comes].concat()
}

/// They are let go, if nothing is in flight.
fn gone() -> Vec<Step> {
    vec![Step::Tick, Step::Serve]
}

/// A delivery has failed, and some of what is in flight has no outcome yet.
fn failing() -> Vec<Step> {
    let mut steps = vec![Step::LaneGoesOn(8), Step::ReadInbox];
    steps.push(Step::Fail(0, FaultKind::World, Answer::Lost));
    steps.extend((0..8).map(|handle| Step::Report { handle, count: 1 }));
    steps.push(Step::ReadInbox);
    steps
}

fn revoked() -> Vec<Step> {
    vec![Step::Revoke(0xff), Step::Serve]
}

fn lost() -> Vec<Step> {
    vec![Step::Lose, Step::Serve]
}

/// A record is refused for good, and what is around it goes one by one.
fn isolated() -> Vec<Step> {
    let bad = Step::Write {
        partition: 0,
        count: 1,
        hole: 0,
        bad: true,
    };
    let mut steps = vec![
        bad,
        write(0, 3),
        fetch(0),
        Step::LaneGoesOn(8),
        Step::ReadInbox,
    ];
    steps.extend((0..12).map(|_| Step::Ack(0)));
    steps.extend(reported());
    steps.push(fetch(0));
    steps
}
