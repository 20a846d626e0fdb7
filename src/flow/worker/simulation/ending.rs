//! How flows end, what a simulation has met, and the calm at the end.

use super::log::Played;
use super::rare::Rare;
use super::step::{Changed, NewTopic, Step, Word};
use super::target::Answer;
use super::world::{CommitFate, Place, Presence, World};
use super::{BATCH, PARTITIONS, Running, Simulation, load};
use crate::config::spec::{OnError, OnGap};
use crate::flow::worker::WorkerExit;
use crate::flow::worker::owned::Phase;
use crate::flow::worker::tests::tp;
use crate::observe::Reason;
use crate::plane::FetchEvent;
use crate::seen::Seen;

/// Calm rounds after which every partition is here and placed.
const SETTLED: usize = 4;
/// Calm rounds after which everything must have come to rest.
const ENOUGH: usize = 80;

impl Simulation {
    // --- what it has met ---------------------------------------------------------------------

    pub(super) fn seen(&self, rare: Rare) {
        self.shared.with(|w| w.seen.note(rare));
    }

    fn seen_if(&self, is: bool, rare: Rare) {
        if is {
            self.seen(rare);
        }
    }

    pub(super) fn in_phase(&self, is: impl Fn(&Phase) -> bool) -> Vec<i32> {
        let owned = self.running.worker.owned.values();
        let found = owned.filter(|o| is(&o.phase));
        found.map(|o| o.id.partition).collect()
    }

    fn is_any(&self, is: impl Fn(&Phase) -> bool) -> bool {
        !self.in_phase(is).is_empty()
    }

    fn has_in_flight(&self) -> bool {
        load(&self.running.view.counters.in_flight_records) > 0
    }

    /// How many partitions are held because their topic is another one.
    pub(super) fn replaced(&self) -> usize {
        self.in_phase(is_replaced).len()
    }

    pub(super) fn note_rare(&self, event: &FetchEvent<Played>) {
        let worker = &self.running.worker;
        let drains = worker.draining.is_some();
        match event {
            FetchEvent::Revoked(_) => {
                self.seen_if(drains, Rare::RevokeInDrain);
                let is = |rare, phase: fn(&Phase) -> bool| self.seen_if(self.is_any(phase), rare);
                is(Rare::RevokeInBarrier, |p| matches!(p, Phase::Barrier(_)));
                is(Rare::RevokeInIsolation, |p| {
                    matches!(p, Phase::Isolating(_))
                });
                is(Rare::RevokeWhileResolving, |p| {
                    matches!(p, Phase::Resolving)
                });
            }
            FetchEvent::Assigned(_) => self.seen_if(drains, Rare::AssignmentInDrain),
            FetchEvent::Lost(_) => {
                self.vanish();
                self.seen_if(drains, Rare::LossInDrain);
                self.seen_if(worker.committer.is_busy(), Rare::LossInCommit);
            }
            FetchEvent::Committed(answer) => {
                let is_ours = |p: i32| self.shared.with(|w| w.places[p as usize]) == Place::Ours;
                let mut partitions = answer.results.iter().map(|(tp, _)| tp.partition);
                let is_late = partitions.any(|p| !is_ours(p));
                self.seen_if(is_late, Rare::CommitAnsweredAfterRevoke);
            }
            FetchEvent::OutOfRange(tp) => {
                self.seen_if(!self.is_out_of_range(tp), Rare::OutOfRangeFalsely);
                let in_flight = worker.owned.get(tp).is_some_and(|o| o.in_flight > 0);
                self.seen_if(in_flight, Rare::OutOfRangeInFlight);
            }
            _ => {}
        }
    }

    /// What the cluster calls gone nobody copies again.
    fn vanish(&self) {
        let owned = self.running.worker.owned.values();
        for owned in owned.filter(|o| o.has_vanished()) {
            let again = |w: &mut World| w.log_mut(owned.id.partition).life += 1;
            self.shared.with(again);
        }
    }

    /// What the worker was at when new settings came.
    pub(super) fn note_change(&self) {
        let worker = &self.running.worker;
        let is = |rare, phase: fn(&Phase) -> bool| self.seen_if(self.is_any(phase), rare);
        is(Rare::ChangeInBarrier, |p| matches!(p, Phase::Barrier(_)));
        is(Rare::ChangeInIsolation, |p| {
            matches!(p, Phase::Isolating(_))
        });
        is(Rare::ChangeWhileResolving, |p| {
            matches!(p, Phase::Resolving)
        });
        self.seen_if(self.has_in_flight(), Rare::ChangeInFlight);
        self.seen_if(worker.release.is_some(), Rare::ChangeInRelease);
        self.seen_if(worker.committer.is_busy(), Rare::ChangeInCommit);
    }

    // --- ends --------------------------------------------------------------------------------

    pub(super) fn kill(&mut self, answer: Answer) {
        self.seen_if(self.has_in_flight(), Rare::KillInFlight);
        self.shared.with(|w| w.kill_all(answer));
        self.begin_anew();
    }

    /// Another process, or another flow in this one, takes up where this one left off.
    pub(super) fn begin_anew(&mut self) {
        // Before its lane can write another record.
        self.shared.with(|w| {
            w.kill_all(Answer::Lost);
            w.leave();
        });
        self.running = Running::new(&self.shared, &self.targets, self.lanes);
        // What the one before gave up when it was dropped.
        self.shared.with(|w| w.kill_all(Answer::Lost));
    }

    /// A stop that says that nothing is left has left nothing: what arrived is committed.
    pub(super) fn ended(&self) {
        let exit = self.running.worker.exit.as_ref();
        let has_drained = matches!(exit, Some(WorkerExit::Drained));
        self.shared.with(|w| w.has_drained = has_drained);
        match exit {
            Some(WorkerExit::Drained) => {
                let owned = self.running.worker.owned.values();
                // What the cluster calls gone nobody copies again.
                for owned in owned.filter(|o| !o.has_vanished()) {
                    let partition = owned.id.partition;
                    let left = self.shared.with(|w| w.left(partition));
                    assert!(
                        left.is_none(),
                        "{partition}@{left:?} will be copied again, and the flow has drained"
                    );
                }
            }
            Some(WorkerExit::Unconfirmed(left)) => assert!(!left.is_empty()),
            other => panic!("{other:?}"),
        }
    }

    // --- the calm ----------------------------------------------------------------------------

    /// Nothing fails any more.
    fn calm(&mut self) {
        let mut steps = vec![
            Step::CreateTopic,
            Step::Notice,
            Step::RetriesAreDue,
            Step::Tick,
            Step::Serve,
            Step::Serve,
            Step::Assign(0xff),
            Step::Serve,
            Step::KeeperMakes,
            Step::ScoutLooks { fails: false },
            Step::ScoutLooks { fails: false },
            Step::ScoutTells,
            Step::ScoutTells,
            Step::VerifierTells(Word::True),
            Step::Commit(CommitFate::Taken),
        ];
        if self.shared.with(|w| w.expired) {
            // Who was thrown out waits for its commit until the time for it is over.
            steps.insert(3, Step::CommitIsOver);
        }
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

    /// Goes on until every partition is where it must end.
    fn come_to_rest(&mut self) {
        let mut rounds = 0;
        while rounds < SETTLED || !(0..PARTITIONS).all(|p| self.is_at_rest(p)) {
            rounds += 1;
            assert!(rounds < ENOUGH, "stuck: {}", self.standing());
            self.calm();
        }
    }

    fn standing(&self) -> String {
        let owned = self.running.worker.owned.values();
        let owned: Vec<_> = owned.map(|o| (&o.id, o.placed, &o.phase)).collect();
        let ends = |w: &mut World| -> Vec<_> {
            let logs = w.logs.iter();
            let ends = logs.map(|l| format!("{:?} in {}..{}", l.committed, l.start, l.end));
            ends.collect()
        };
        format!("{:#?}, {owned:#?}", self.shared.with(ends))
    }

    /// At its end, or held for a reason that is true.
    fn is_at_rest(&self, partition: i32) -> bool {
        let owned = self.running.worker.owned.get(&tp(partition));
        let Some(owned) = owned else {
            return false;
        };
        self.shared.with(|w| {
            let log = w.log(partition);
            let of = log.committed.as_ref().map(|c| c.of);
            if w.met != Some(w.creation()) || of.is_some_and(|of| of != w.creation()) {
                return is_replaced(&owned.phase);
            }
            let reached = log.reached();
            match &owned.phase {
                Phase::Halted {
                    reason: Reason::Gap { from, to },
                    ..
                } => (*from, *to) == (reached, log.start),
                Phase::Halted {
                    reason: Reason::Truncated { position, end },
                    ..
                } => (*position, *end) == (reached, log.end),
                // A commit that landed late may have set the group's position ahead.
                _ => {
                    let watermark = owned.tracker.watermark().0;
                    let mut positions = [reached, watermark].into_iter();
                    reached == log.end || positions.any(|at| w.is_held_at(partition, at))
                }
            }
        })
    }

    /// Everything arrives and is committed, everything fetched is accounted for (I7), and a stop says
    /// that nothing is left.
    pub(super) fn finish(mut self) -> Seen<Rare> {
        self.shared.with(|w| w.refusal = None);
        self.come_to_rest();
        if self.replaced() > 0 {
            // Whoever restarts the route has the new topic from its beginning.
            self.kill(Answer::Lost);
            self.come_to_rest();
        }
        // What holds a partition is cured by other settings, live.
        self.take(&Step::Change(Changed {
            chain: None,
            on_error: OnError::Skip,
            on_gap: OnGap::Earliest,
            topic: NewTopic::There,
        }));
        self.come_to_rest();
        let left = load(&self.running.view.counters.in_flight_records);
        assert_eq!(left, 0, "I7: nothing is in flight");
        let (flow, replaced) = (self.shared.with(|w| w.flow), self.replaced());
        self.take(&Step::Drain);
        let mut rounds = 0;
        while self.shared.with(|w| w.flow) == flow {
            rounds += 1;
            assert!(rounds < ENOUGH, "it does not end: {}", self.standing());
            self.take(&Step::ReadInbox);
            self.calm();
        }
        self.shared.with(|w| {
            // What arrived of records that were lost with their leader is called unconfirmed.
            assert!(
                w.has_drained || w.was_cut || replaced > 0,
                "something is left"
            );
            w.seen.clone()
        })
    }
}

fn is_replaced(phase: &Phase) -> bool {
    let Phase::Halted { reason, .. } = phase else {
        return false;
    };
    matches!(reason, Reason::TopicReplaced { .. })
}

impl World {
    /// What arrived by the flow that runs in this life of a partition, or in one that was lost, and is not committed.
    fn left(&self, partition: i32) -> Option<i64> {
        let is_ours = self.fetching.contains_key(&partition)
            && self.places[partition as usize] != Place::Lost
            && self.presence == Presence::There
            && self.met == Some(self.creation());
        if !is_ours {
            return None;
        }
        let log = self.log(partition);
        let from = log.at.range(log.reached()..);
        let by = Some((self.flow, log.life));
        let mut left = from.filter(|(_, n)| self.records[**n].arrived_by == by);
        left.next().map(|(offset, _)| *offset)
    }
}
