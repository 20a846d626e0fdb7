//! What may happen to a supervisor, and what a run must have met.

use crate::seen::situations;
use proptest::prelude::*;

pub(super) const ROUTES: [&str; 3] = ["a", "b", "c"];

/// How a route looks in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Absent,
    Plain,
    /// Needs a restart.
    Changed,
    /// Changes live.
    Tuned,
    /// Another target beside the first.
    Wider,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum How {
    Drained,
    Failed,
    Unconfirmed,
    Aborted,
    Vanished,
}

situations! {
    /// What a run must have met.
    pub(super) enum Rare {
        /// Somebody asks for a reload while a file is being read.
        ReloadWhileLoading,
        /// Or applied: some flow has not ended, or not taken its settings.
        ReloadWhileApplying,
        /// A file is accepted while a flow of a route that it changes still ends for the one before.
        AcceptedWhileEnding,
        /// A target is wanted again whose flow was told to end and has not.
        WantedWhileLeaving,
        /// A file is refused while the one before is still being applied.
        RejectedWhileApplying,
        /// A route is paused while its flows end.
        PauseWhileEnding,
        /// It goes on before they have ended.
        ResumeWhileEnding,
        /// A paused route is changed.
        ChangeWhilePaused,
        /// A flow fails that was told to end.
        FailureWhileEnding,
        /// A flow fails that has not taken its settings.
        FailureWhileChanging,
        /// A route aborts while it has other flows.
        AbortOfOneOfMany,
        /// The process is told to stop while a file is being read.
        StopWhileLoading,
        /// While one is being applied.
        StopWhileApplying,
        /// While a route is paused.
        StopWhilePaused,
        /// A flow fails after that.
        FailureWhileStopping,
        /// A file is read after that.
        LoadedWhileStopping,
        /// It is told so twice.
        SecondStop,
    }
}

#[derive(Clone, Debug)]
pub(super) enum Step {
    Exit(usize, How),
    Take(usize),
    Pass(u64),
    Reload,
    Loaded([Shape; 3]),
    Rejected,
    Pause(usize),
    Resume(usize),
    Stop,
}

fn shape() -> impl Strategy<Value = Shape> {
    prop_oneof![
        1 => Just(Shape::Absent),
        3 => Just(Shape::Plain),
        2 => Just(Shape::Changed),
        2 => Just(Shape::Tuned),
        2 => Just(Shape::Wider),
    ]
}

pub(super) fn shapes() -> impl Strategy<Value = [Shape; 3]> {
    [shape(), shape(), shape()]
}

pub(super) fn step() -> impl Strategy<Value = Step> {
    let how = prop_oneof![
        4 => Just(How::Drained),
        2 => Just(How::Failed),
        1 => Just(How::Unconfirmed),
        1 => Just(How::Aborted),
        1 => Just(How::Vanished),
    ];
    prop_oneof![
        6 => (any::<usize>(), how).prop_map(|(pick, how)| Step::Exit(pick, how)),
        3 => any::<usize>().prop_map(Step::Take),
        3 => (0u64..20_000).prop_map(Step::Pass),
        3 => Just(Step::Reload),
        3 => shapes().prop_map(Step::Loaded),
        1 => Just(Step::Rejected),
        1 => (0usize..3).prop_map(Step::Pause),
        1 => (0usize..3).prop_map(Step::Resume),
    ]
}

/// Whether flows end when they are told to.
#[derive(Clone, Copy, Debug)]
pub(super) enum Obedience {
    EndWhenTold,
    NeverEnd,
}

pub(super) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let single = step().prop_map(|step| vec![step]);
    let some = prop_oneof![30 => single, 1 => (0usize..3).prop_map(wanted_again)];
    prop::collection::vec(some, 1..60).prop_map(|all| all.concat())
}

/// A target goes, its flow does not end in time, and it is wanted again.
fn wanted_again(route: usize) -> Vec<Step> {
    let with = |shape| {
        let mut shapes = [Shape::Plain; 3];
        shapes[route] = shape;
        [Step::Reload, Step::Loaded(shapes)]
    };
    let ends = ROUTES.iter().map(|_| Step::Exit(0, How::Drained));
    let goes_by = [Step::Pass(20_000), Step::Pass(20_000)];
    let mut steps: Vec<Step> = ends.collect();
    steps.extend(goes_by.clone());
    steps.extend(with(Shape::Wider));
    steps.extend(with(Shape::Plain));
    steps.extend(goes_by);
    steps.extend(with(Shape::Wider));
    steps
}

pub(super) fn obedience() -> impl Strategy<Value = Obedience> {
    prop_oneof![Just(Obedience::EndWhenTold), Just(Obedience::NeverEnd)]
}
