//! The worker under random interleavings: fetches, outcomes of deliveries early and late, rebalances,
//! losses, commits with every fate, answers of the scout, deadlines, new settings, a source whose topic is deleted and made
//! again and whose records go before they are copied, ends and deaths of the process, and a lane on a thread of its own
//! that is let on record by record. Every step is chosen by the property test, and shrinks.
//!
//! [`world`] holds each thing that the worker does against the invariants (I1 to I3, nothing lost, order of
//! first enqueue, settings, gaps), [`fence`] who writes at the target. At the end the world is calm, and everything must have arrived and be committed.
//! [`rare`] counts what a run has met.

mod answers;
mod ending;
mod fence;
mod hand;
mod log;
mod orders;
mod rare;
mod rare_orders;
mod settings;
mod source;
mod step;
mod target;
mod told;
mod world;

use self::log::Played;
use super::owned::Phase;
use super::{Note, Worker, WorkerParts};
use crate::flow::budget::Budget;
use crate::flow::lane::{Lane, LaneSpec, Lease};
use crate::flow::listener::Announcer;
use crate::flow::scout::{Finding, Inquiry};
use crate::flow::sinks::Sinks;
use crate::flow::stage::{ByHand, Stage};
use crate::flow::target::{Ask, TargetTopic, TargetView, Times};
use crate::flow::verifier::Verify;
use crate::flow::{Control, NewSettings, Taken};
use crate::observe::{FlowView, Reason};
use crate::partition::{OnFewer, Policy, PolicySpec};
use crate::plane::{FetchEvent, Numbers, Outcome};
use crate::seen::{self, Seen};
use crossbeam_channel::{Receiver, Sender, unbounded};
use hand::Hand;
use proptest::prelude::*;
use rare::Rare;
use settings::{DEAD, QUEUE, Settings};
use source::FakeSource;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use step::{Changed, NewTopic, Step};
use target::FakeSink;
use told::Told;
use world::{Shared, World};

const PARTITIONS: i32 = 3;
/// What may be in flight. Small, so that fetching is held now and then.
const IN_FLIGHT: u64 = 4_000;
/// A batch is no larger.
const BATCH: usize = 4;
/// What a record counts at most: it says where it stands, in a few digits.
const LARGEST: u64 = 240;
const TARGET: TargetTopic = TargetTopic {
    partitions: 4,
    record_bytes: 1 << 20,
    times: Times::OfRecords,
};

/// Whether the flow's start is behind it when the simulation begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    Ahead,
    Behind,
}

/// Who handles batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lanes {
    Inline,
    Thread,
}

/// A flow as it runs, until its process ends.
struct Running {
    worker: Worker<FakeSource, FakeSink>,
    view: Arc<FlowView>,
    inbox: Sender<Note>,
    inquiries: Receiver<Inquiry>,
    questions: Receiver<Verify>,
    asks: Receiver<Ask>,
    answers: VecDeque<Finding>,
    hand: Option<Hand>,
}

impl Running {
    fn new(shared: &Shared, targets: &Arc<TargetView>, lanes: Lanes) -> Self {
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
                let (stage, by_hand) = ByHand::stage(QUEUE);
                (stage, Some(Hand::new(by_hand, lane())))
            }
        };
        let ((inbox, notes), (scout, inquiries)) = (unbounded(), unbounded());
        let ((verifier, questions), (keeper, asks)) = (unbounded(), unbounded());
        let view = Arc::new(FlowView::new("r", "a", "b", "g"));
        let made = shared.clone();
        let parts = WorkerParts {
            index: 0,
            spec: Arc::new(shared.with(|w| w.settings()).spec()),
            subject: "simulation".into(),
            view: view.clone(),
            source: FakeSource(shared.clone()),
            inbox: notes,
            scout,
            verifier,
            keeper,
            targets: targets.clone(),
            sinks: Arc::new(Sinks::new(
                2,
                shared.with(|w| w.fences.numbers),
                Box::new(move |_| Ok(FakeSink::new(&made))),
            )),
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
        worker.found(Finding::Topics(BTreeMap::from([("t".into(), PARTITIONS)])));
        Self {
            worker,
            view,
            inbox,
            inquiries,
            questions,
            asks,
            answers: VecDeque::new(),
            hand,
        }
    }
}

struct Simulation {
    running: Running,
    shared: Shared,
    targets: Arc<TargetView>,
    lanes: Lanes,
}

impl Simulation {
    fn new(first: Settings, lanes: Lanes, numbers: Numbers, start: Start) -> Self {
        let shared = Shared::new(World::new(first, numbers, start));
        let targets = Arc::new(TargetView::with(&[(DEAD, TARGET)]));
        targets.add(&first.topic(), TARGET);
        Self {
            running: Running::new(&shared, &targets, lanes),
            shared,
            targets,
            lanes,
        }
    }

    fn note(&self, note: Note) {
        let _ = self.running.inbox.send(note);
    }

    fn take(&mut self, step: &Step) {
        self.shared.with(World::group_goes_on);
        match step {
            Step::Serve => self.serve(),
            Step::ReadInbox => self.read_inbox(),
            Step::Tick => self.running.worker.tick(),
            Step::Fetch { partition, count } => self.fetch(|w| w.fetch(*partition, *count)),
            Step::FetchSpoilt { partition, count } => {
                self.fetch(|w| w.fetch_spoilt(*partition, *count));
            }
            Step::RefusePosition(partition) => self.fetch(|w| w.refuse_position(*partition)),
            Step::Report { handle, count } => self.report(*handle, *count),
            Step::GoAndComeBack { mask, count } => self.go_and_come_back(*mask, *count),
            Step::ScoutLooks { fails } => self.scout_looks(*fails),
            Step::ScoutTells => {
                if let Some(finding) = self.running.answers.pop_front() {
                    self.note(Note::Finding(finding));
                }
            }
            Step::VerifierTells(word) => self.verifier_tells(*word),
            Step::KeeperMakes => self.keeper_makes(),
            Step::RetriesAreDue => self.retries_are_due(),
            Step::DrainIsOver | Step::CommitIsOver => self.time_is_over(step),
            Step::LaneGoesOn(records) => (0..*records).for_each(|_| self.lane_goes_on()),
            Step::Change(changed) => self.change(*changed),
            Step::Drain => {
                let deadline = Instant::now() + Duration::from_secs(600);
                self.note(Note::Control(Control::Drain { deadline }));
            }
            Step::Kill(answer) => self.kill(*answer),
            of_the_world => self.shared.with(|w| w.take(of_the_world)),
        }
        self.check();
        if self.running.worker.exit.is_some() {
            self.ended();
            self.begin_anew();
        }
    }

    fn go_and_come_back(&mut self, mask: u8, count: usize) {
        self.shared.with(|w| w.revoke(mask));
        self.serve();
        self.running.worker.tick();
        let gone = (0..PARTITIONS).filter(|p| mask & (1 << p) != 0);
        gone.for_each(|p| self.shared.with(|w| w.copy_elsewhere(p, count)));
        self.shared.with(|w| w.assign(mask));
        self.serve();
    }

    fn lane_goes_on(&mut self) {
        if let Some(note) = self.running.hand.as_mut().and_then(Hand::go_on) {
            self.note(note);
        }
    }

    fn fetch(&mut self, fetched: impl FnOnce(&mut World) -> Option<FetchEvent<Played>>) {
        if self.running.worker.is_held() {
            return;
        }
        // What the group says comes first, as it does at the client.
        if self.shared.with(|w| !w.events.is_empty()) {
            return self.serve();
        }
        if let Some(event) = self.shared.with(fetched) {
            self.note_rare(&event);
            self.running.worker.serve(event);
        }
    }

    fn serve(&mut self) {
        let Some(event) = self.shared.with(|w| w.events.pop_front()) else {
            return;
        };
        let assigned = matches!(event, FetchEvent::Assigned(_));
        self.note_rare(&event);
        self.running.worker.serve(event);
        if assigned {
            self.shared.with(|w| w.rebalancing = false);
        }
    }

    fn read_inbox(&mut self) {
        // From here on they are heard of, one after the other.
        self.shared.with(|w| w.posted.clear());
        let stale = |at: &Self| load(&at.running.view.counters.stale_acks);
        let (before, waiting) = (stale(self), self.waiting());
        self.running.worker.read_inbox();
        // No settings of a worker go below a megabyte.
        self.running.worker.budget.keep_to(IN_FLIGHT);
        if stale(self) > before {
            self.seen(Rare::OutcomeOfAFormerLife);
        }
        if self.waiting() > waiting {
            self.seen(Rare::ChangeAwaitsTopic);
        }
    }

    /// How many partitions went back to their watermark for want of a target topic.
    fn waiting(&self) -> usize {
        let is = |phase: &Phase| match phase {
            Phase::Halted { reason, .. } => matches!(reason, Reason::AwaitingTopic { .. }),
            _ => false,
        };
        self.in_phase(is).len()
    }

    fn report(&mut self, handle: usize, count: usize) {
        let in_barrier: Vec<i32> = self.in_phase(|phase| matches!(phase, Phase::Barrier(_)));
        let reports: Vec<Outcome> = self.shared.with(|w| {
            let number = handle % w.handles.len().max(1);
            let Some(handle) = w.handles.get_mut(number) else {
                return Vec::new();
            };
            let count = count.min(handle.reports.len());
            let told: Vec<_> = handle.reports.drain(..count).collect();
            let at = told.iter().map(|report| (number, report.failed));
            w.posted.extend(at);
            let is_late =
                |r: &target::Report| r.failed.is_none() && in_barrier.contains(&r.partition);
            if told.iter().any(is_late) {
                w.seen.note(Rare::AckInBarrier);
            }
            told.into_iter().map(|report| report.outcome).collect()
        });
        if !reports.is_empty() {
            self.note(Note::Outcomes(reports));
        }
    }

    fn retries_are_due(&mut self) {
        let now = Instant::now();
        let worker = &mut self.running.worker;
        worker.next_retry_look = now;
        worker.committer.hurry(now);
        for owned in worker.owned.values_mut() {
            match &mut owned.phase {
                Phase::Halted { retry, .. } => retry.at = now,
                Phase::ResolveLater { at, .. } => *at = now,
                _ => {}
            }
        }
    }

    /// The deadline of what is being released is over: for what is in flight, or for its commit as well.
    fn time_is_over(&mut self, step: &Step) {
        let Some(release) = &mut self.running.worker.release else {
            return;
        };
        release.drain_until = Instant::now();
        if matches!(step, Step::CommitIsOver) {
            release.commit_until = Instant::now();
            // Nobody waits for what is under way any more: it may land when it wants.
            self.shared.with(World::commits_may_be_late);
        }
        if self.running.worker.owned.values().any(|o| o.in_flight > 0) {
            self.seen(Rare::DrainGivenUp);
        }
    }

    /// The file has other settings: the scout keeps to them at once, the worker when it hears.
    fn change(&mut self, changed: Changed) {
        let settings = self.shared.with(|w| w.changed(changed));
        if changed.topic == NewTopic::There {
            self.targets.add(&settings.topic(), TARGET);
        }
        let (shared, number) = (
            self.shared.clone(),
            self.shared.with(|w| w.settings.len() - 1),
        );
        let taken = move || shared.with(|w| w.taken = w.taken.max(number));
        let settings = NewSettings {
            route: settings.spec().route,
            _taken: Arc::new(Taken(Some(Box::new(taken)))),
        };
        self.note_change();
        self.note(Note::Control(Control::Change(settings)));
    }

    /// I4, I7, and whatever the world has seen.
    fn check(&self) {
        let counters = &self.running.view.counters;
        let in_flight = load(&counters.in_flight_bytes);
        // One batch more, and one of each partition that has nothing in flight or whose suspects go one by one.
        let batches = BATCH as u64 * LARGEST * (1 + PARTITIONS as u64);
        assert!(in_flight <= IN_FLIGHT + batches, "I4: {in_flight} bytes");
        let ends = [
            &counters.delivered_records,
            &counters.dropped_records,
            &counters.skipped_records,
            &counters.dead_lettered_records,
            &counters.discarded_records,
            &counters.in_flight_records,
        ];
        let ends: u64 = ends.into_iter().map(load).sum();
        assert_eq!(load(&counters.fetched_records), ends, "I7");
        let violations = self.shared.with(|w| w.violations.clone());
        assert!(violations.is_empty(), "{violations:#?}");
    }
}

fn load(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

impl World {
    /// What happens whether anybody runs or not.
    fn take(&mut self, step: &Step) {
        match step {
            Step::Write {
                partition,
                count,
                hole,
                bad,
            } => {
                self.write(*partition, *hole, *bad);
                (1..*count).for_each(|_| self.write(*partition, 0, false));
            }
            Step::Retain { partition, keep } => self.retain(*partition, *keep),
            Step::Cut { partition, count } => self.cut(*partition, *count),
            Step::DeleteTopic => self.delete(),
            Step::CreateTopic => self.create(),
            Step::Ack(pick) => self.ack(*pick),
            Step::Fail(pick, kind, answer) => self.fail(*pick, *kind, *answer),
            Step::Refuse(kind) => self.refusal = Some(*kind),
            Step::Assign(mask) => self.assign(*mask),
            Step::Revoke(mask) => self.revoke(*mask),
            Step::Lose => self.lose(),
            Step::Notice => self.notice(),
            Step::CopyElsewhere { partition, count } => self.copy_elsewhere(*partition, *count),
            Step::Commit(fate) => self.answer_commit(*fate),
            of_the_worker => unreachable!("{of_the_worker:?}"),
        }
    }

    fn changed(&mut self, changed: Changed) -> Settings {
        let now = self.settings();
        let chain = changed.chain.map(|shape| (now.chain + 1, shape));
        let (chain, shape) = chain.unwrap_or((now.chain, now.shape));
        let settings = Settings {
            chain,
            shape,
            on_error: changed.on_error,
            on_gap: changed.on_gap,
        };
        self.settings.push(settings);
        settings
    }
}

fn simulate(
    first: Settings,
    lanes: Lanes,
    numbers: Numbers,
    start: Start,
    steps: &[Step],
) -> Seen<Rare> {
    let mut simulation = Simulation::new(first, lanes, numbers, start);
    let told = Told(simulation.shared.clone());
    tracing::subscriber::with_default(told, || {
        steps.iter().for_each(|step| simulation.take(step));
        simulation.finish()
    })
}

/// Whatever happens, and however much of what is rare.
fn prove(lanes: Lanes) {
    let start = prop_oneof![Just(Start::Ahead), Just(Start::Behind)];
    let numbers = prop_oneof![1 => Just(Numbers::OfPlane), 2 => Just(Numbers::OfWriters)];
    let settings = (step::on_error(), step::on_gap());
    let all = (settings, numbers, start, step::steps());
    let must_meet: Vec<Rare> = Rare::possible(lanes).collect();
    seen::prove(
        file!(),
        &all,
        &must_meet,
        |((on_error, on_gap), numbers, start, steps)| {
            let first = Settings::first(on_error, on_gap);
            simulate(first, lanes, numbers, start, &steps)
        },
    );
}

#[test]
fn nothing_is_lost_or_overtaken_at_any_interleaving() {
    prove(Lanes::Inline);
}

#[test]
fn nothing_is_lost_or_overtaken_with_a_handler_thread() {
    prove(Lanes::Thread);
}
