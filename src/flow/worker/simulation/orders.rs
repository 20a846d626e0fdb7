//! Single orders of steps that a random run finds too seldom.

use super::rare_orders::all_placed;
use super::settings::Settings;
use super::step::{Step, Word};
use super::target::Answer;
use super::world::CommitFate;
use super::{BATCH, Lanes, Start, simulate};
use crate::config::spec::{OnError, OnGap};
use crate::plane::{FaultKind, Numbers};

const WRITE: Step = Step::Write {
    partition: 0,
    count: 6,
    hole: 0,
    bad: false,
};

const FETCH: Step = Step::Fetch {
    partition: 0,
    count: 2,
};

/// Every partition is here, with six records in the first one.
fn simulate_then(lanes: Lanes, steps: impl IntoIterator<Item = Step>) {
    let steps: Vec<Step> = all_placed()
        .into_iter()
        .chain([WRITE])
        .chain(steps)
        .collect();
    let first = Settings::first(OnError::Skip, OnGap::Stop);
    for numbers in [Numbers::OfPlane, Numbers::OfWriters] {
        simulate(first, lanes, numbers, Start::Behind, &steps);
    }
}

#[test]
fn i2_nothing_is_let_go_with_records_in_flight() {
    simulate_then(Lanes::Inline, [FETCH, Step::Revoke(1), Step::Serve]);
}

#[test]
fn i4_a_spent_budget_holds_fetching() {
    let fetch = Step::Fetch {
        partition: 0,
        count: BATCH,
    };
    let writes = std::iter::repeat_n(WRITE, 6);
    simulate_then(Lanes::Inline, writes.chain(std::iter::repeat_n(fetch, 12)));
}

#[test]
fn i3_a_commit_whose_time_is_over_is_not_sent() {
    let settles = [FETCH, Step::Ack(0), Step::Ack(0), Step::Ack(0)];
    let is_over = [
        Step::Report {
            handle: 0,
            count: 9,
        },
        Step::ReadInbox,
        Step::Revoke(1),
        Step::Serve,
        Step::CommitIsOver,
        Step::VerifierTells(Word::True),
        Step::ReadInbox,
        Step::Tick,
        Step::Commit(CommitFate::Taken),
    ];
    simulate_then(Lanes::Inline, settles.into_iter().chain(is_over));
}

#[test]
fn i2_a_partition_with_records_in_flight_stays_on_its_producer_even_if_that_is_dead() {
    let dies = Step::Fail(0, FaultKind::Collateral, Answer::Lost);
    simulate_then(Lanes::Inline, [FETCH, dies, FETCH]);
}

#[test]
fn i2_what_a_lane_has_queued_behind_a_stop_is_not_produced() {
    let refuses = Step::Refuse(FaultKind::World);
    let goes_on = Step::LaneGoesOn(8);
    simulate_then(Lanes::Thread, [FETCH, FETCH, refuses, goes_on]);
}

/// A broker that has just been started does not know the topic for a while. What was copied meanwhile is committed after that.
#[test]
fn a_topic_that_seems_gone_for_a_while_is_committed_again() {
    let asked = [
        Step::RetriesAreDue,
        Step::Tick,
        Step::VerifierTells(Word::Unaware),
        Step::ReadInbox,
    ];
    let settles = [FETCH, Step::Ack(0), Step::Ack(0), Step::Ack(0)];
    let reported = Step::Report {
        handle: 0,
        count: 9,
    };
    let steps = settles.into_iter().chain([reported, Step::ReadInbox]);
    simulate_then(Lanes::Inline, steps.chain(asked.clone()).chain(asked));
}

/// What is given up at the deadline may have arrived, and its outcomes come before the last commit is answered.
#[test]
fn a_stop_that_gave_something_up_says_so_even_if_it_hears_of_it() {
    let hole = Step::Write {
        partition: 1,
        count: 4,
        hole: 2,
        bad: false,
    };
    let fetch = Step::Fetch {
        partition: 1,
        count: BATCH,
    };
    let stops = [Step::Drain, Step::ReadInbox, Step::DrainIsOver, Step::Tick];
    for before in [vec![], vec![FETCH]] {
        let steps = before.into_iter().chain([hole.clone(), fetch.clone()]);
        simulate_then(Lanes::Inline, steps.chain(stops.clone()));
    }
}
