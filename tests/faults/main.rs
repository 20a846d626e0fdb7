//! Faults that need precision: each error code that a broker may answer with, at each request of the copy and at each
//! stage of a flow's life; acknowledgements late, lost and doubled; leaders and coordinators that move; records that are
//! spoilt on their way.
//!
//! Embedded clusters stand behind a [`front::Front`], which reads every request and does with it what the table says.
//! The checker decides that nothing is lost, reordered, altered or invented; what a stop says may be copied again is held
//! against what is committed and what is there; what is said while an answer lasts is in the table.
//! `MIRROR_TEST_DATA_PLANE=native`: the same on the native data plane.

#[path = "../fast/embedded.rs"]
#[expect(dead_code, reason = "the other tests' part of it")]
mod embedded;
#[path = "../fast/embedded_running.rs"]
#[expect(dead_code, reason = "the other tests' part of it")]
mod embedded_running;
mod front;
mod rig;
mod sessions;
mod wire;

use crate::embedded::wait_until;
use front::{Fate, Times};
use kafka_protocol::ResponseError as E;
use kafka_protocol::messages::ApiKey as Api;
use mirror::flow::FlowExit;
use rig::{Rig, Side, TOPIC, mark};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Cases that run at a time: they mostly wait.
const AT_A_TIME: usize = 16;
/// How often an answer is given that does not last.
const A_FEW: Times = Times::Only(2);

/// When a flow meets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// With the first request of this kind that it ever sends.
    First,
    /// While it copies.
    Midway,
    /// While it copies, until what the table says is seen.
    Lasting,
    /// While it stops: records or commits are under way when the stop begins.
    Stopping,
    /// While it stops, and it does not end.
    StoppingForEver,
}

/// What is seen of an answer that lasts.
#[derive(Clone, Copy, Debug)]
enum Seen {
    /// No more than lag.
    Lag,
    /// A reason, by its code.
    Says(&'static str),
}

/// One line of the table.
#[derive(Clone, Copy, Debug)]
struct Line {
    side: Side,
    api: Api,
    fate: Fate,
    seen: Seen,
    stages: &'static [Stage],
}

const ALL: &[Stage] = &[
    Stage::First,
    Stage::Midway,
    Stage::Lasting,
    Stage::Stopping,
    Stage::StoppingForEver,
];
/// Of what is never true for long.
const PASSING: &[Stage] = &[Stage::First, Stage::Midway, Stage::Stopping];

const fn line(side: Side, api: Api, fate: Fate, seen: Seen, stages: &'static [Stage]) -> Line {
    Line {
        side,
        api,
        fate,
        seen,
        stages,
    }
}

fn produce(error: E, seen: Seen) -> Line {
    line(Side::Target, Api::Produce, Fate::Refused(error), seen, ALL)
}

fn fetch(error: E, seen: Seen) -> Line {
    line(Side::Source, Api::Fetch, Fate::Refused(error), seen, ALL)
}

fn commit(error: E, seen: Seen) -> Line {
    let fate = Fate::Refused(error);
    line(Side::Source, Api::OffsetCommit, fate, seen, ALL)
}

impl Line {
    fn passes(self) -> Self {
        Self {
            stages: PASSING,
            ..self
        }
    }

    /// The broker has done it and says this all the same.
    fn though_done(self) -> Self {
        let Fate::Refused(error) = self.fate else {
            return self;
        };
        let fate = Fate::DoneAndDenied(error);
        Self { fate, ..self }
    }

    fn name(&self, stage: Stage) -> String {
        format!("{:?} {:?} {stage:?}", self.api, self.fate)
    }

    /// One flow of its own.
    fn run(&self, stage: Stage) -> u64 {
        let what = self.name(stage);
        let mut rig = Rig::new("");
        match stage {
            Stage::First => self.at_first(&mut rig, &what),
            Stage::Midway => self.midway(&mut rig, &what),
            Stage::Lasting => self.lasting(&mut rig, &what),
            Stage::Stopping => self.stopping(&mut rig, &what),
            Stage::StoppingForEver => self.stopping_for_ever(&mut rig, &what),
        }
        let repeated = rig.is_right(&what);
        let is_stop = matches!(stage, Stage::Stopping | Stage::StoppingForEver);
        // What a stop says of itself is held against it there; a membership that is lost repeats.
        let may_repeat = is_stop || self.api == Api::OffsetCommit;
        assert!(may_repeat || repeated == 0, "{what}: {repeated} repeated");
        repeated
    }

    fn rule(&self, rig: &Rig, times: Times) {
        rig.front(self.side).rule(self.api, self.fate, times);
    }

    fn is_met(&self, rig: &Rig, times: usize, what: &str) {
        wait_until(&format!("it is met: {what}"), || {
            rig.front(self.side).met() >= times
        });
    }

    fn at_first(&self, rig: &mut Rig, what: &str) {
        rig.write(10);
        self.rule(rig, A_FEW);
        rig.start();
        self.is_met(rig, 1, what);
        rig.copies(what);
        rig.stops(what);
    }

    fn midway(&self, rig: &mut Rig, what: &str) {
        rig.start();
        rig.write(10);
        rig.copies(what);
        self.rule(rig, A_FEW);
        for _ in 0..4 {
            rig.write(5);
        }
        self.is_met(rig, 1, what);
        rig.copies(what);
        rig.stops(what);
    }

    fn lasting(&self, rig: &mut Rig, what: &str) {
        rig.start();
        rig.write(10);
        rig.copies(what);
        rig.is_calm(what);
        self.rule(rig, Times::UntilLifted);
        rig.write(10);
        match self.seen {
            Seen::Says(reason) => rig.says(reason, what),
            Seen::Lag => {
                self.is_met(rig, 4, what);
                let reasons = rig.reasons();
                assert!(reasons.is_empty(), "{what}: {reasons:?}");
            }
        }
        rig.write(5);
        rig.front(self.side).lift();
        rig.copies(what);
        rig.stops(what);
    }

    fn stopping(&self, rig: &mut Rig, what: &str) {
        self.meets_a_stop(rig, A_FEW, Duration::from_secs(15), what);
    }

    fn stopping_for_ever(&self, rig: &mut Rig, what: &str) {
        self.meets_a_stop(rig, Times::UntilLifted, Duration::from_secs(2), what);
    }

    /// Requests are held when the stop begins, and answered so then. What is left is copied after a restart; where the
    /// stop said that it was clean, nothing comes twice.
    fn meets_a_stop(&self, rig: &mut Rig, times: Times, within: Duration, what: &str) {
        rig.start();
        rig.write(10);
        rig.copies(what);
        let front = rig.front(self.side);
        front.rule(self.api, Fate::Held, Times::UntilLifted);
        rig.write(10);
        self.is_met(rig, 1, what);
        rig.begins_to_stop(within);
        self.rule(rig, times);
        let exit = rig.ends_stopping(what);
        rig.front(self.side).lift();
        rig.start();
        rig.copies(what);
        rig.stops(what);
        let repeated = rig.is_right(what);
        assert!(
            exit != FlowExit::Drained || repeated == 0,
            "{what}: {repeated} repeated after a clean stop"
        );
    }
}

/// Runs every stage of every line, many at a time, and says of all that went wrong.
fn run(lines: &[Line]) {
    let cases: Vec<(Line, Stage)> = lines
        .iter()
        .flat_map(|line| line.stages.iter().map(|stage| (*line, *stage)))
        .collect();
    let each = cases.into_iter();
    let each = each.map(|(line, stage)| case(&line.name(stage), move |_| line.run(stage)));
    run_all(each.collect());
}

/// What it is called, and what it does: how many records it repeated.
type Case = (String, Box<dyn Fn() -> u64 + Send + Sync>);

/// `CASE='Fetch Refused' cargo test …` runs those that are called so.
fn chosen(mut cases: Vec<Case>) -> Vec<Case> {
    if let Ok(name) = std::env::var("CASE") {
        cases.retain(|(of, _)| of.contains(&name));
    }
    cases
}

fn run_all(cases: Vec<Case>) {
    let cases = chosen(cases);
    let next = AtomicUsize::new(0);
    let failed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_A_TIME.min(cases.len()) {
            scope.spawn(|| {
                while let Some((name, case)) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let began = Instant::now();
                    let run = std::panic::AssertUnwindSafe(case);
                    let took = || began.elapsed().as_millis();
                    match std::panic::catch_unwind(run) {
                        Ok(repeated) => println!("{name}: repeated {repeated}, {} ms", took()),
                        Err(_) => {
                            println!("{name}: WRONG, {} ms", took());
                            failed.lock().expect("a list").push(name.clone());
                        }
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().expect("a list");
    assert!(
        failed.is_empty(),
        "{} of {}: {failed:#?}",
        failed.len(),
        cases.len()
    );
}

#[test]
fn produce_errors() {
    use Seen::{Lag, Says};
    run(&[
        // The client sends again by itself.
        produce(E::NotLeaderOrFollower, Lag),
        produce(E::LeaderNotAvailable, Lag),
        produce(E::RequestTimedOut, Lag),
        produce(E::RequestTimedOut, Lag).though_done(),
        produce(E::NotEnoughReplicas, Lag),
        produce(E::NotEnoughReplicasAfterAppend, Lag).though_done(),
        // Brokers of today retry it by themselves; to the client it is no reason to send again.
        produce(E::NetworkException, Says("target_refuses")),
        produce(E::KafkaStorageError, Lag),
        produce(E::UnknownTopicOrPartition, Lag),
        produce(E::CorruptMessage, Lag),
        // A state of the world.
        produce(E::TopicAuthorizationFailed, Says("target_refuses")),
        produce(E::ClusterAuthorizationFailed, Says("target_refuses")),
        produce(E::PolicyViolation, Says("target_refuses")),
        produce(E::ThrottlingQuotaExceeded, Says("target_refuses")),
        produce(E::UnknownServerError, Says("target_refuses")),
        produce(E::InvalidRequiredAcks, Says("target_refuses")),
        // A property of the record, were it true for ever.
        produce(E::MessageTooLarge, Says("poison_record")),
        produce(E::InvalidRecord, Says("poison_record")),
        produce(E::InvalidTimestamp, Says("poison_record")),
        // Of sequences.
        produce(E::OutOfOrderSequenceNumber, Lag).passes(),
        produce(E::DuplicateSequenceNumber, Lag)
            .though_done()
            .passes(),
        produce(E::InvalidProducerEpoch, Lag).passes(),
        produce(E::UnknownProducerId, Lag).passes(),
    ]);
}

#[test]
fn fetch_errors() {
    use Seen::{Lag, Says};
    run(&[
        fetch(E::NotLeaderOrFollower, Lag),
        fetch(E::LeaderNotAvailable, Lag),
        fetch(E::ReplicaNotAvailable, Lag),
        fetch(E::KafkaStorageError, Lag),
        fetch(E::FencedLeaderEpoch, Lag),
        fetch(E::UnknownLeaderEpoch, Lag),
        fetch(E::OffsetNotAvailable, Lag),
        fetch(E::UnknownTopicOrPartition, Lag),
        fetch(E::OffsetOutOfRange, Lag).passes(),
        fetch(E::TopicAuthorizationFailed, Says("source_refuses")),
        fetch(E::CorruptMessage, Says("client")),
        fetch(E::UnknownServerError, Says("client")),
        fetch(E::RequestTimedOut, Says("client")),
    ]);
}

#[test]
fn commit_errors() {
    use Seen::Lag;
    run(&[
        commit(E::CoordinatorLoadInProgress, Lag),
        commit(E::CoordinatorNotAvailable, Lag),
        commit(E::NotCoordinator, Lag),
        commit(E::RebalanceInProgress, Lag),
        commit(E::RequestTimedOut, Lag),
        commit(E::RequestTimedOut, Lag).though_done(),
        commit(E::OffsetMetadataTooLarge, Lag),
        commit(E::InvalidCommitOffsetSize, Lag),
        commit(E::GroupAuthorizationFailed, Lag),
        commit(E::TopicAuthorizationFailed, Lag),
        commit(E::UnknownTopicOrPartition, Lag),
        commit(E::UnknownServerError, Lag),
        commit(E::IllegalGeneration, Lag).passes(),
        Line {
            fate: Fate::MemberForgotten,
            ..commit(E::UnknownMemberId, Lag).passes()
        },
    ]);
}

/// Answers and requests that are lost or doubled.
#[test]
fn requests_and_answers_lost_and_doubled() {
    let fates = [
        Fate::AnswerLost,
        Fate::RequestLost,
        Fate::DoneTwice,
        Fate::AnsweredTwice,
    ];
    let apis = [
        (Side::Target, Api::Produce),
        (Side::Source, Api::OffsetCommit),
        (Side::Source, Api::Fetch),
    ];
    let lines = apis.into_iter().flat_map(|(side, api)| {
        let of = move |fate| line(side, api, fate, Seen::Lag, PASSING);
        fates.into_iter().map(of)
    });
    run(&lines.collect::<Vec<_>>());
}

fn case(name: &str, run: impl Fn(&str) -> u64 + Send + Sync + 'static) -> Case {
    let what = name.to_owned();
    (name.to_owned(), Box::new(move || run(&what)))
}

/// Waits until one more request meets the rule.
fn is_met_again(rig: &Rig, side: Side, what: &str) {
    let before = rig.front(side).met();
    wait_until(&format!("it is met: {what}"), || {
        rig.front(side).met() > before
    });
}

/// Acknowledgements that come late, and whose connection ends before they come.
fn late(what: &str) -> u64 {
    let mut rig = Rig::new("");
    rig.start();
    rig.write(10);
    rig.copies(what);
    let front = rig.front(Side::Target);
    front.rule(Api::Produce, Fate::AnswerHeld, Times::UntilLifted);
    rig.write(10);
    wait_until("an answer is held", || rig.front(Side::Target).met() > 0);
    rig.write(10);
    rig.front(Side::Target).cut();
    is_met_again(&rig, Side::Target, what);
    rig.begins_to_stop(Duration::from_secs(15));
    rig.front(Side::Target).lift();
    assert_eq!(rig.ends_stopping(what), FlowExit::Drained, "{what}");
    rig.start();
    rig.copies(what);
    rig.stops(what);
    let repeated = rig.is_right(what);
    assert_eq!(repeated, 0, "{what}");
    repeated
}

/// Leaders and coordinators move under a flow, there and back.
fn moves(what: &str) -> u64 {
    let mut rig = Rig::new("");
    rig.start();
    for node in [2, 1] {
        rig.write(5);
        rig.front(Side::Target).leader_moves(node);
        rig.write(5);
        rig.copies(what);
        rig.front(Side::Source).leader_moves(node);
        rig.write(5);
        rig.copies(what);
        rig.front(Side::Source).coordinator_moves(node);
        rig.write(5);
        rig.copies(what);
    }
    rig.stops(what);
    let repeated = rig.is_right(what);
    assert_eq!(repeated, 0, "{what}");
    repeated
}

/// The coordinator moves when the stop has begun.
fn moves_while_it_stops(what: &str) -> u64 {
    let mut rig = Rig::new("");
    rig.start();
    rig.write(10);
    rig.copies(what);
    let front = rig.front(Side::Source);
    front.rule(Api::OffsetCommit, Fate::Held, Times::UntilLifted);
    rig.write(10);
    wait_until("a commit is held", || rig.front(Side::Source).met() > 0);
    rig.begins_to_stop(Duration::from_secs(15));
    rig.front(Side::Source).coordinator_moves(2);
    rig.front(Side::Source).lift();
    let exit = rig.ends_stopping(what);
    rig.start();
    rig.copies(what);
    rig.stops(what);
    let repeated = rig.is_right(what);
    assert!(exit != FlowExit::Drained || repeated == 0, "{what}");
    repeated
}

/// The bytes of a batch are not what they were: the client skips it, and what is behind it comes.
fn spoilt(what: &str) -> u64 {
    let mut rig = Rig::new("");
    (0..3).for_each(|_| rig.write(5));
    let front = rig.front(Side::Source);
    front.rule(Api::Fetch, Fate::Spoilt, Times::UntilLifted);
    rig.start();
    rig.says("source_unreadable", what);
    rig.front(Side::Source).lift();
    rig.copies(what);
    rig.stops(what);
    rig.is_right(what)
}

/// A partition that was held when it left is copied when it comes back.
fn held_when_it_left(what: &str) -> u64 {
    let mut rig = Rig::new("");
    rig.start();
    rig.write(10);
    rig.copies(what);
    let fate = Fate::Refused(E::TopicAuthorizationFailed);
    rig.front(Side::Target)
        .rule(Api::Produce, fate, Times::UntilLifted);
    rig.write(10);
    rig.says("target_refuses", what);
    rig.another_comes_and_goes(what);
    rig.front(Side::Target).lift();
    rig.copies(what);
    rig.stops(what);
    rig.is_right(what)
}

/// The group says that somebody else has this member's name: no way on for it.
fn fenced(what: &str) -> u64 {
    let mut rig = Rig::new("");
    rig.start();
    rig.write(10);
    rig.copies(what);
    let fate = Fate::Refused(E::FencedInstanceId);
    rig.front(Side::Source)
        .rule(Api::OffsetCommit, fate, Times::Only(1));
    rig.write(10);
    rig.fails(what);
    rig.start();
    rig.copies(what);
    rig.stops(what);
    rig.is_right(what)
}

/// A broker ends connections on which nothing is asked for a while: what is written next goes over another one, at once.
fn cut_while_idle(what: &str) -> u64 {
    let mut rig = Rig::new("");
    rig.write(5);
    rig.start();
    for side in [Side::Target, Side::Source, Side::Target] {
        rig.copies(what);
        rig.front(side).cut();
        rig.write(5);
    }
    rig.copies(what);
    assert_eq!(rig.rewinds(), 0, "{what}");
    rig.stops(what);
    rig.is_right(what)
}

#[test]
fn what_happens_beside_the_answers() {
    run_all(vec![
        case("connections end while nothing is under way", cut_while_idle),
        case("acknowledgements late, then lost", late),
        case("leaders and coordinator move", moves),
        case("the coordinator moves while it stops", moves_while_it_stops),
        case("records spoilt on their way", spoilt),
        case("held when it left", held_when_it_left),
        case("fenced", fenced),
    ]);
}

/// Where dead letters go.
const LETTERS: &str = "lost.letters";

/// What `on_error` says.
#[derive(Clone, Copy, Debug)]
enum OnError {
    Stop,
    Skip,
    DeadLetter,
}

impl OnError {
    fn of_route(self) -> &'static str {
        match self {
            Self::Stop => "    on_error: stop\n",
            Self::Skip => "    on_error: skip\n",
            Self::DeadLetter => {
                "    on_error: dead_letter\n    dead_letter: { topic: lost.letters }\n"
            }
        }
    }
}

/// One record is refused for what it is, in partition 0; the others are not to blame.
fn refused(error: E, on_error: OnError, what: &str) -> u64 {
    let mut rig = Rig::new(on_error.of_route());
    rig.keeps(LETTERS);
    rig.write(5);
    let at = match on_error {
        OnError::Stop => {
            rig.write(1);
            5
        }
        OnError::Skip | OnError::DeadLetter => rig.write_refused(0),
    };
    let front = rig.front(Side::Target);
    front.rule_about(TOPIC, mark(0, at), Fate::Refused(error));
    rig.write(5);
    rig.start();
    match on_error {
        OnError::Stop => {
            rig.says("poison_record", what);
            assert_eq!(rig.held_at(), [at], "{what}");
            rig.front(Side::Target).lift();
            rig.copies(what);
        }
        OnError::Skip => {
            rig.copies(what);
            assert_eq!(rig.skipped(), 1, "{what}");
            rig.is_told(0, at);
        }
        OnError::DeadLetter => {
            rig.copies(what);
            assert_eq!(rig.letters(LETTERS), [(0, at)], "{what}");
            rig.is_told(0, at);
        }
    }
    rig.stops(what);
    rig.is_right(what)
}

/// The same where the records of both partitions go to one: while the one that is refused is searched for, another that goes
/// there at the same time is not blamed.
fn refused_beside(error: E, what: &str) -> u64 {
    let mut rig = Rig::new(&format!(
        "{}    partitions: {{ fixed: 0 }}\n",
        OnError::Skip.of_route()
    ));
    rig.write(5);
    let at = rig.write_refused(0);
    let front = rig.front(Side::Target);
    front.rule_about(TOPIC, mark(0, at), Fate::Refused(error));
    rig.write(5);
    rig.start();
    rig.copies(what);
    assert_eq!(rig.skipped(), 1, "{what}");
    rig.stops(what);
    0
}

#[test]
fn a_record_that_is_refused_takes_none_of_another_partition_along() {
    let errors = [E::MessageTooLarge, E::InvalidRecord, E::InvalidTimestamp];
    let cases = errors.into_iter().map(|error| {
        let name = format!("{error:?}, two into one");
        case(&name, move |what| refused_beside(error, what))
    });
    run_all(cases.collect());
}

#[test]
fn a_record_that_is_refused_is_named_and_no_other() {
    let errors = [E::MessageTooLarge, E::InvalidRecord, E::InvalidTimestamp];
    let ways = [OnError::Stop, OnError::Skip, OnError::DeadLetter];
    let cases = errors.into_iter().flat_map(|error| {
        ways.into_iter().map(move |way| {
            let name = format!("{error:?}, {way:?}");
            case(&name, move |what| refused(error, way, what))
        })
    });
    run_all(cases.collect());
}
