//! The worker under random interleavings: fetches, outcomes of deliveries early and late, rebalances,
//! losses, commits with every fate, answers of the scout, deadlines, and a lane on a thread of its own
//! that is let on record by record. Every step is chosen by the property test, and shrinks.
//!
//! [`world`] holds each thing that the worker does against the invariants (I1 to I3, nothing lost, order of
//! first enqueue). At the end the world is calm, and everything must have arrived and be committed.

mod world;

use super::tests::flow_spec;
use super::{Note, Worker, WorkerExit, WorkerParts};
use crate::config::spec::OnError;
use crate::flow::budget::Budget;
use crate::flow::lane::{Job, Lane, LaneSpec, Lease};
use crate::flow::listener::Announcer;
use crate::flow::scout::{Finding, Inquiry, Position, Resolution, TopicIdentity};
use crate::flow::sinks::Sinks;
use crate::flow::stage::{ByHand, Stage};
use crate::flow::target::{TargetTopic, TargetView};
use crate::flow::verifier::Verify;
use crate::flow::worker::tests::{Made, tp};
use crate::flow::{Control, FlowSpec};
use crate::handler::{Chain, Registry, StepSpec};
use crate::observe::{FlowView, Reason};
use crate::partition::{OnFewer, Policy, PolicySpec};
use crate::plane::{FaultKind, FetchEvent, Offset, Outcome};
use crate::record::TopicPartition;
use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use proptest::prelude::*;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use world::{
    Answer, CommitFate, DEAD, FakeSink, FakeSource, GATEKEEPER, PARTITIONS, Said, Shared, World,
};

/// What may be in flight. Small, so that fetching is held now and then.
const IN_FLIGHT: u64 = 4_000;
/// Calm rounds after which every partition is here and placed.
const SETTLED: usize = 4;
/// A batch is no larger.
const BATCH: usize = 4;

#[derive(Clone, Debug)]
enum Step {
    Write {
        partition: i32,
        count: usize,
        hole: i64,
        bad: bool,
    },
    Fetch {
        partition: i32,
        count: usize,
    },
    /// The client cannot read so many records, says so, and goes on behind them.
    FetchSpoilt {
        partition: i32,
        count: usize,
    },
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
    VerifierTells {
        fails: bool,
    },
    RetriesAreDue,
    DrainIsOver,
    CommitIsOver,
    LaneGoesOn(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let partition = || 0..PARTITIONS;
    let kind = prop_oneof![
        Just(FaultKind::World),
        Just(FaultKind::Missing),
        Just(FaultKind::Collateral)
    ];
    let answer = prop_oneof![Just(Answer::Lost), Just(Answer::There)];
    let fate = prop_oneof![
        4 => Just(CommitFate::Taken),
        1 => Just(CommitFate::Refused),
        1 => Just(CommitFate::TakenInSilence),
        1 => Just(CommitFate::PartlyRefused),
    ];
    prop_oneof![
        3 => (partition(), 1usize..7, 0i64..3, prop::bool::weighted(0.1)).prop_map(
            |(partition, count, hole, bad)| Step::Write { partition, count, hole, bad }
        ),
        6 => (partition(), 1..=BATCH).prop_map(|(partition, count)| Step::Fetch { partition, count }),
        1 => (partition(), 1..=BATCH)
            .prop_map(|(partition, count)| Step::FetchSpoilt { partition, count }),
        8 => Just(Step::Serve),
        8 => Just(Step::ReadInbox),
        4 => Just(Step::Tick),
        6 => any::<usize>().prop_map(Step::Ack),
        2 => (any::<usize>(), kind.clone(), answer).prop_map(|(pick, kind, a)| Step::Fail(pick, kind, a)),
        1 => kind.prop_map(Step::Refuse),
        6 => (0usize..6, 1usize..6).prop_map(|(handle, count)| Step::Report { handle, count }),
        3 => any::<u8>().prop_map(Step::Assign),
        2 => any::<u8>().prop_map(Step::Revoke),
        1 => Just(Step::Lose),
        1 => (partition(), 1usize..5)
            .prop_map(|(partition, count)| Step::CopyElsewhere { partition, count }),
        1 => (any::<u8>(), 1usize..5)
            .prop_map(|(mask, count)| Step::GoAndComeBack { mask, count }),
        5 => fate.prop_map(Step::Commit),
        4 => prop::bool::weighted(0.1).prop_map(|fails| Step::ScoutLooks { fails }),
        4 => Just(Step::ScoutTells),
        4 => prop::bool::weighted(0.1).prop_map(|fails| Step::VerifierTells { fails }),
        2 => Just(Step::RetriesAreDue),
        1 => Just(Step::DrainIsOver),
        1 => Just(Step::CommitIsOver),
        8 => (1usize..6).prop_map(Step::LaneGoesOn),
    ]
}

/// The lane of a handler thread, let on record by record.
struct Hand {
    jobs: Receiver<Job<Made, FakeSink>>,
    work: Sender<Job<Made, FakeSink>>,
    says: Receiver<Said<Note>>,
    may: Sender<()>,
    is_at_record: bool,
}

impl Hand {
    fn new(by_hand: ByHand<Made, FakeSink>, mut lane: Lane<FakeSink>) -> Self {
        let (work, queue) = unbounded::<Job<Made, FakeSink>>();
        let (tells, says) = unbounded();
        let (may, permits) = bounded(1);
        let serve = by_hand.server();
        let at_record = tells.clone();
        std::thread::spawn(move || {
            let (asks, asked) = unbounded::<()>();
            std::thread::spawn(move || {
                for () in asked {
                    let _ = at_record.send(Said::AtRecord);
                }
            });
            GATEKEEPER.set(Some((asks, permits)));
            for job in queue {
                let _ = tells.send(Said::Done(serve(&mut lane, job)));
            }
        });
        Self {
            jobs: by_hand.jobs,
            work,
            says,
            may,
            is_at_record: false,
        }
    }

    /// One record further; the lane's word on a batch when that is done.
    fn go_on(&mut self) -> Option<Note> {
        if self.is_at_record {
            self.may.send(()).ok()?;
        } else {
            self.work.send(self.jobs.try_recv().ok()?).ok()?;
        }
        let said = self.says.recv().ok()?;
        self.is_at_record = matches!(said, Said::AtRecord);
        match said {
            Said::AtRecord => None,
            Said::Done(note) => Some(note),
        }
    }
}

struct Simulation {
    worker: Worker<FakeSource, FakeSink>,
    shared: Shared,
    view: Arc<FlowView>,
    inbox: Sender<Note>,
    inquiries: Receiver<Inquiry>,
    questions: Receiver<Verify>,
    answers: VecDeque<Finding>,
    hand: Option<Hand>,
}

/// Whether the flow's start is behind it when the simulation begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    Ahead,
    Behind,
}

/// Who handles batches.
#[derive(Clone, Copy, Debug)]
enum Lanes {
    Inline,
    Thread,
}

fn spec(on_error: OnError) -> FlowSpec {
    let steps = serde_json::json!([{ "reformat": { "split": { "array": "value" } } }]);
    let steps: Vec<StepSpec> = serde_json::from_value(steps).unwrap();
    let chain = Chain::compile(steps, &Registry::default()).unwrap();
    let spec = flow_spec(chain, on_error);
    let mut route = (*spec.route).clone();
    route.dead_letter = Some(DEAD.to_owned());
    FlowSpec {
        route: Arc::new(route),
        ..spec
    }
}

impl Simulation {
    fn new(on_error: OnError, lanes: Lanes, start: Start) -> Self {
        let shared = Shared::new(World::new(on_error, start));
        let topic = TargetTopic {
            partitions: 4,
            record_bytes: 1 << 20,
        };
        let targets = Arc::new(TargetView::with(&[("t", topic), (DEAD, topic)]));
        let lease = Arc::new(Lease::new(Duration::from_secs(600)));
        let policy = PolicySpec::Match {
            on_fewer: OnFewer::Stop,
        };
        let lane = || {
            let spec = LaneSpec {
                worker: 0,
                route: "r".into(),
                targets: targets.clone(),
                lease: lease.clone(),
            };
            Lane::new(spec, Policy::new(&policy).unwrap())
        };
        let (stage, hand) = match lanes {
            Lanes::Inline => (Stage::Inline(Box::new(lane())), None),
            Lanes::Thread => {
                let (stage, by_hand) = ByHand::stage((20, 1 << 20));
                (stage, Some(Hand::new(by_hand, lane())))
            }
        };
        let ((inbox, notes), (scout, inquiries)) = (unbounded(), unbounded());
        let (verifier, questions) = unbounded();
        let view = Arc::new(FlowView::new("r", "a", "b", "g"));
        let made = shared.clone();
        let parts = WorkerParts {
            index: 0,
            spec: Arc::new(spec(on_error)),
            subject: "simulation".into(),
            view: view.clone(),
            source: FakeSource(shared.clone()),
            inbox: notes,
            scout,
            verifier,
            keeper: unbounded().0,
            targets: targets.clone(),
            sinks: Arc::new(Sinks::new(2, Box::new(move |_| Ok(FakeSink::new(&made))))),
            stage,
            isolation_lane: lane(),
            lease: lease.clone(),
            announcer: Announcer::silent(),
            troubles: Arc::default(),
            group_patience: Duration::from_secs(600),
            sink_patience: Duration::from_secs(600),
        };
        let mut worker = Worker::new(parts);
        worker.budget = Budget::new(IN_FLIGHT, Instant::now());
        Self {
            worker,
            shared,
            view,
            inbox,
            inquiries,
            questions,
            answers: VecDeque::new(),
            hand,
        }
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::Write {
                partition,
                count,
                hole,
                bad,
            } => self.shared.with(|w| {
                let log = &mut w.logs[*partition as usize];
                log.write(*hole, *bad);
                (1..*count).for_each(|_| log.write(0, false));
            }),
            Step::Fetch { partition, count } => self.fetch(|w| w.fetch(*partition, *count)),
            Step::FetchSpoilt { partition, count } => {
                self.fetch(|w| w.fetch_spoilt(*partition, *count));
            }
            Step::Serve => self.serve(),
            Step::ReadInbox => {
                // From here on they are heard of, one after the other.
                self.shared.with(|w| w.posted.clear());
                self.worker.read_inbox();
            }
            Step::Tick => self.worker.tick(),
            Step::Ack(pick) => self.shared.with(|w| w.ack(*pick)),
            Step::Fail(pick, kind, answer) => {
                self.shared.with(|w| w.fail(*pick, *kind, *answer));
            }
            Step::Refuse(kind) => self.shared.with(|w| w.refusal = Some(*kind)),
            Step::Report { handle, count } => self.report(*handle, *count),
            Step::Assign(mask) => self.shared.with(|w| w.assign(*mask)),
            Step::Revoke(mask) => self.shared.with(|w| w.revoke(*mask)),
            Step::Lose => self.shared.with(World::lose),
            Step::CopyElsewhere { partition, count } => {
                self.shared.with(|w| w.copy_elsewhere(*partition, *count));
            }
            Step::GoAndComeBack { mask, count } => self.go_and_come_back(*mask, *count),
            Step::Commit(fate) => self.shared.with(|w| w.answer_commit(*fate)),
            Step::ScoutLooks { fails } => self.scout_looks(*fails),
            Step::ScoutTells => {
                if let Some(finding) = self.answers.pop_front() {
                    let _ = self.inbox.send(Note::Finding(finding));
                }
            }
            Step::VerifierTells { fails } => self.verifier_tells(*fails),
            Step::RetriesAreDue => self.retries_are_due(),
            Step::DrainIsOver => {
                if let Some(release) = &mut self.worker.release {
                    release.drain_until = Instant::now();
                }
            }
            Step::CommitIsOver => {
                // Nobody waits for what is under way any more: it may land when it wants.
                self.shared.with(World::commits_may_be_late);
                if let Some(release) = &mut self.worker.release {
                    release.drain_until = Instant::now();
                    release.commit_until = Instant::now();
                }
            }
            Step::LaneGoesOn(records) => (0..*records).for_each(|_| self.lane_goes_on()),
        }
        self.check();
    }

    fn go_and_come_back(&mut self, mask: u8, count: usize) {
        self.shared.with(|w| w.revoke(mask));
        self.serve();
        self.worker.tick();
        let gone = (0..PARTITIONS).filter(|p| mask & (1 << p) != 0);
        gone.for_each(|p| self.shared.with(|w| w.copy_elsewhere(p, count)));
        self.shared.with(|w| w.assign(mask));
        self.serve();
    }

    fn lane_goes_on(&mut self) {
        if let Some(note) = self.hand.as_mut().and_then(Hand::go_on) {
            let _ = self.inbox.send(note);
        }
    }

    fn fetch(&mut self, fetched: impl FnOnce(&mut World) -> Option<FetchEvent<Made>>) {
        if self.worker.is_held() {
            return;
        }
        // What the group says comes first, as it does at the client.
        if self.shared.with(|w| !w.events.is_empty()) {
            return self.serve();
        }
        if let Some(event) = self.shared.with(fetched) {
            self.worker.serve(event);
        }
    }

    fn serve(&mut self) {
        let Some(event) = self.shared.with(|w| w.events.pop_front()) else {
            return;
        };
        let assigned = matches!(event, FetchEvent::Assigned(_));
        self.worker.serve(event);
        if assigned {
            self.shared.with(|w| w.rebalancing = false);
        }
    }

    fn report(&mut self, handle: usize, count: usize) {
        let reports: Vec<Outcome> = self.shared.with(|w| {
            let number = handle % w.handles.len().max(1);
            let Some(handle) = w.handles.get_mut(number) else {
                return Vec::new();
            };
            let count = count.min(handle.reports.len());
            let told: Vec<_> = handle.reports.drain(..count).collect();
            let at = told.iter().map(|report| (number, report.failed));
            w.posted.extend(at);
            told.into_iter().map(|report| report.outcome).collect()
        });
        if !reports.is_empty() {
            let _ = self.inbox.send(Note::Outcomes(reports));
        }
    }

    /// The scout reads positions; what it has read it tells later.
    fn scout_looks(&mut self, fails: bool) {
        let Ok(inquiry) = self.inquiries.try_recv() else {
            return;
        };
        let (id, partitions) = match inquiry {
            Inquiry::Resolve { id, partitions, .. } => {
                if let Some(answer) = self.start(id, &partitions, fails) {
                    return self.answers.push_back(answer);
                }
                (id, partitions)
            }
            Inquiry::Recheck { id, partition, .. } => (id, vec![partition]),
            Inquiry::Change(_) | Inquiry::Stop => return,
        };
        let resolved = partitions.into_iter().map(|tp| {
            let committed = self
                .shared
                .with(|w| w.logs[tp.partition as usize].committed);
            let position = Position {
                offset: Offset(committed),
                topic_id: Some("id".into()),
                gap: None,
                committed: Some(Offset(committed)),
            };
            let resolution = match fails {
                true => Resolution::Retry(Reason::ResolvingPositions),
                false => Resolution::Position(position),
            };
            (tp, resolution)
        });
        let resolved = resolved.collect();
        self.answers.push_back(Finding::Resolved { id, resolved });
    }

    /// What the scout says while the start is ahead of the flow: whoever has the first partition commits it.
    fn start(&self, id: u64, partitions: &[TopicPartition], fails: bool) -> Option<Finding> {
        if fails || self.shared.with(|w| w.start == Start::Behind) {
            return None;
        }
        if partitions.contains(&tp(0)) {
            let entries = self.shared.with(|w| w.start_entries());
            return Some(Finding::CommitStart { id, entries });
        }
        let waits = |tp: &TopicPartition| (tp.clone(), Resolution::AwaitStart);
        let resolved = partitions.iter().map(waits).collect();
        Some(Finding::Resolved { id, resolved })
    }

    fn verifier_tells(&mut self, fails: bool) {
        if let Ok(Verify { id, topics, .. }) = self.questions.try_recv() {
            let is = |topic| (topic, TopicIdentity::Is("id".into()));
            let ids = match fails {
                true => Err("nobody answers".to_owned()),
                false => Ok(topics.into_iter().map(is).collect()),
            };
            let _ = self
                .inbox
                .send(Note::Finding(Finding::Verified { id, ids }));
        }
    }

    fn retries_are_due(&mut self) {
        use super::owned::Phase;
        let now = Instant::now();
        self.worker.next_retry_look = now;
        self.worker.committer.hurry(now);
        for owned in self.worker.owned.values_mut() {
            match &mut owned.phase {
                Phase::Halted { retry, .. } => retry.at = now,
                Phase::ResolveLater { at, .. } => *at = now,
                _ => {}
            }
        }
    }

    /// I4, and whatever the world has seen.
    fn check(&self) {
        let in_flight = self.view.counters.in_flight_bytes.load(Ordering::Relaxed);
        let batch = BATCH as u64 * 220;
        assert!(in_flight <= IN_FLIGHT + batch, "I4: {in_flight} bytes");
        let violations = self.shared.with(|w| w.violations.clone());
        assert!(violations.is_empty(), "{violations:#?}");
    }

    /// Nothing fails any more.
    fn calm(&mut self) {
        let mut steps = vec![
            Step::RetriesAreDue,
            Step::Tick,
            Step::Serve,
            Step::Assign(0xff),
            Step::ScoutLooks { fails: false },
            Step::ScoutTells,
            Step::VerifierTells { fails: false },
            Step::Commit(CommitFate::Taken),
        ];
        steps.extend((0..30).flat_map(|_| [Step::LaneGoesOn(1), Step::Ack(0)]));
        let handles = self.shared.with(|w| w.handles.len());
        steps.extend((0..handles).map(|handle| Step::Report {
            handle,
            count: 1000,
        }));
        steps.push(Step::ReadInbox);
        steps.extend((0..PARTITIONS).map(|partition| Step::Fetch {
            partition,
            count: BATCH,
        }));
        steps.iter().for_each(|step| self.take(step));
    }

    /// Where each partition must end: at its end, or at the record that holds it.
    fn goal(&self) -> Vec<i64> {
        self.shared.with(|w| {
            let goal = |log: &world::Log| match w.on_error {
                OnError::Stop => log
                    .bad
                    .iter()
                    .copied()
                    .find(|o| *o >= log.committed)
                    .unwrap_or(log.end),
                _ => log.end,
            };
            w.logs.iter().map(goal).collect()
        })
    }

    fn committed(&self) -> Vec<i64> {
        self.shared
            .with(|w| w.logs.iter().map(world::Log::reached).collect())
    }

    /// Everything arrives and is committed, everything fetched is accounted for (I7), and a stop says
    /// that nothing is left.
    fn finish(mut self) {
        self.shared.with(|w| w.refusal = None);
        let goal = self.goal();
        let mut rounds = 0;
        // What was lost comes back first: until its position is known, a stop has to say that it may be repeated.
        while self.committed() != goal || rounds < SETTLED {
            rounds += 1;
            let owned: Vec<_> = self
                .worker
                .owned
                .values()
                .map(|o| (&o.id, &o.phase))
                .collect();
            assert!(
                rounds < 60,
                "stuck: committed {:?} of {goal:?}; {owned:?}",
                self.committed()
            );
            self.calm();
        }
        let deadline = Instant::now() + Duration::from_secs(60);
        let _ = self.inbox.send(Note::Control(Control::Drain { deadline }));
        for _ in 0..100 {
            if self.worker.exit.is_some() {
                break;
            }
            self.calm();
        }
        match self.worker.exit.take() {
            Some(WorkerExit::Drained) => {}
            // What is held at a record may have been overtaken in a life that was lost.
            Some(WorkerExit::Unconfirmed(left)) => {
                let held = |p: i32| {
                    self.shared
                        .with(|w| w.logs[p as usize].committed < w.logs[p as usize].end)
                };
                assert!(left.iter().all(|u| held(u.partition.partition)), "{left:?}");
            }
            other => panic!("{other:?}"),
        }
        let counters = &self.view.counters;
        let sum = [
            &counters.delivered_records,
            &counters.dropped_records,
            &counters.skipped_records,
            &counters.dead_lettered_records,
            &counters.discarded_records,
            &counters.in_flight_records,
        ];
        let sum: u64 = sum.iter().map(|c| c.load(Ordering::Relaxed)).sum();
        let fetched = counters.fetched_records.load(Ordering::Relaxed);
        assert_eq!(fetched, sum, "I7");
        let left = counters.in_flight_records.load(Ordering::Relaxed);
        assert_eq!(left, 0, "I7: nothing is in flight");
    }
}

fn simulate(on_error: OnError, lanes: Lanes, start: Start, steps: &[Step]) {
    let mut simulation = Simulation::new(on_error, lanes, start);
    steps.iter().for_each(|step| simulation.take(step));
    simulation.finish();
}

/// Every partition is here, with six records in the first one.
fn all_placed() -> Vec<Step> {
    vec![
        Step::Assign(0xff),
        Step::Serve,
        Step::ScoutLooks { fails: false },
        Step::ScoutTells,
        Step::ReadInbox,
        Step::Write {
            partition: 0,
            count: 6,
            hole: 0,
            bad: false,
        },
    ]
}

const FETCH: Step = Step::Fetch {
    partition: 0,
    count: 2,
};

fn simulate_then(lanes: Lanes, steps: impl IntoIterator<Item = Step>) {
    let steps: Vec<Step> = all_placed().into_iter().chain(steps).collect();
    simulate(OnError::Skip, lanes, Start::Behind, &steps);
}

#[test]
fn i2_nothing_is_let_go_with_records_in_flight() {
    simulate_then(Lanes::Inline, [FETCH, Step::Revoke(1), Step::Serve]);
}

#[test]
fn i4_a_spent_budget_holds_fetching() {
    let write = Step::Write {
        partition: 0,
        count: 6,
        hole: 0,
        bad: false,
    };
    let fetch = Step::Fetch {
        partition: 0,
        count: BATCH,
    };
    let writes = std::iter::repeat_n(write, 6);
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
        Step::VerifierTells { fails: false },
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

fn on_error() -> impl Strategy<Value = OnError> {
    prop_oneof![
        Just(OnError::Stop),
        Just(OnError::Skip),
        Just(OnError::DeadLetter)
    ]
}

fn start() -> impl Strategy<Value = Start> {
    prop_oneof![Just(Start::Ahead), Just(Start::Behind)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, max_shrink_iters: 256, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_lost_or_overtaken_at_any_interleaving(
        on_error in on_error(), start in start(), steps in prop::collection::vec(step(), 1..250),
    ) {
        simulate(on_error, Lanes::Inline, start, &steps);
    }

    #[test]
    fn nothing_is_lost_or_overtaken_with_a_handler_thread(
        on_error in on_error(), start in start(), steps in prop::collection::vec(step(), 1..250),
    ) {
        simulate(on_error, Lanes::Thread, start, &steps);
    }
}
