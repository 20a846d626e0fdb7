//! Partitions arrive: position, target topic, place. Nothing is fetched before both are known.

use super::fence::Fence;
use super::owned::{Owned, Phase, Retry, RetryHow};
use super::{Worker, WorkerExit};
use crate::config::spec::{CreationMode, GroupProtocol};
use crate::flow::scout::{Inquiry, Position, Resolution, distinct_topics, report_gap};
use crate::flow::target::{Ask, Duty, Need, Needs};
use crate::flow::tracker::Tracker;
use crate::handler::{BoundChain, Clock};
use crate::observe::{Counters, PartitionView, Reason};
use crate::partition::{OnFewer, PolicySpec};
use crate::plane::{Offset, Sink, Source, SourceFault};
use crate::record::TopicPartition;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The longest time for which the group may owe an assignment.
const LONGEST_PATIENCE: Duration = Duration::from_secs(600);
/// How soon a position that could not be read is asked for again.
const ASK_AGAIN: Duration = Duration::from_millis(500);

impl<S: Source, K: Sink> Worker<S, K> {
    /// Discovery's answer: subscribe to exactly these names.
    pub(super) fn topics_found(&mut self, topics: BTreeMap<String, i32>) {
        let names: Vec<String> = topics.keys().cloned().collect();
        let same = self.topics.keys().eq(topics.keys());
        self.topics = topics;
        self.say_needs();
        if (same && !names.is_empty()) || self.rejoining {
            return;
        }
        self.subscribe(&names);
    }

    /// Leaves the group and joins it again: the way back for partitions whose fetching the client has
    /// ended. Everything is drained, committed and released first, by the revoke that this brings
    /// about; nothing is repeated.
    pub(super) fn rejoin(&mut self) {
        if self.rejoining || self.draining.is_some() {
            return;
        }
        tracing::info!(event = "rejoin", subject = %self.subject, worker = self.index);
        self.rejoining = true;
        if self.owned.is_empty() {
            return self.rejoined();
        }
        self.subscribe(&[]);
    }

    /// The second half of a rejoin, once nothing is owned any more.
    pub(super) fn rejoined(&mut self) {
        if self.rejoining && self.owned.is_empty() && self.draining.is_none() {
            self.rejoining = false;
            let names: Vec<String> = self.topics.keys().cloned().collect();
            self.subscribe(&names);
        }
    }

    fn subscribe(&mut self, names: &[String]) {
        if !names.is_empty() {
            self.await_group();
        }
        if let Err(detail) = self.source.subscribe(names) {
            self.finish(WorkerExit::Failed(Reason::Client { detail }));
        }
    }

    /// From here on the group owes an assignment. With the classic protocol an empty one is said as
    /// well; with KIP-848 a member without partitions hears nothing, and nothing can be concluded.
    pub(super) fn await_group(&mut self) {
        if self.spec.route.group_protocol == GroupProtocol::Classic {
            self.awaiting_group = Some(Instant::now());
        }
    }

    /// A member that the group owes an assignment for too long is made anew: after a session was lost
    /// the client was seen to wait for a coordinator for ever, without asking for one (B019, B147). A
    /// source that does not answer at all is none of its doing.
    pub(super) fn look_for_group(&mut self, now: Instant) {
        let Some(since) = self.awaiting_group else {
            return;
        };
        if !self.owned.is_empty() || self.draining.is_some() || self.troubles.source_is_away() {
            self.awaiting_group = Some(now);
            return;
        }
        // A record that a lane still holds must not outlive the client.
        if now.duration_since(since) < self.group_patience || self.tickets.is_lane_busy() {
            return;
        }
        tracing::warn!(event = "member_renewed", subject = %self.subject, worker = self.index,
            after_ms = self.group_patience.as_millis() as u64,
            "the group gave no assignment; the member is made anew");
        self.group_patience = self.group_patience.saturating_mul(2).min(LONGEST_PATIENCE);
        self.rejoining = false;
        match self.source.renew() {
            Ok(()) => {
                let names: Vec<String> = self.topics.keys().cloned().collect();
                self.subscribe(&names);
            }
            Err(detail) => self.finish(WorkerExit::Failed(Reason::Client { detail })),
        }
    }

    pub(super) fn assigned(&mut self, partitions: Vec<TopicPartition>) {
        self.awaiting_group = None;
        Counters::add(&self.view.counters.rebalances, 1);
        let now = Instant::now();
        let old: Vec<TopicPartition> = self.owned.keys().cloned().collect();
        for tp in &partitions {
            self.lives += 1;
            let owned = Owned::new(tp.clone(), self.lives, now);
            self.owned.insert(tp.clone(), owned);
            self.view.partition(tp, |view| {
                *view = PartitionView::starting(Reason::ResolvingPositions)
            });
        }
        // Who has the others now copies again what was left there.
        self.left_behind.retain(|tp, _| self.owned.contains_key(tp));
        tracing::info!(event = "assigned", subject = %self.subject, worker = self.index, partitions = partitions.len(),
            owned = self.owned.len());
        if self.draining.is_some() {
            // Arrived while the flow drains: not touched, given back with the rest.
            for tp in &partitions {
                if let Some(owned) = self.owned.get_mut(tp) {
                    owned.phase = Phase::Releasing;
                }
            }
            return;
        }
        let all: Vec<TopicPartition> = self.owned.keys().cloned().collect();
        self.announcer.assigned(&old, &all);
        self.bind_chains(&partitions);
        self.say_needs();
        self.resolve(partitions);
    }

    pub(super) fn resolve(&mut self, partitions: Vec<TopicPartition>) {
        self.questions += 1;
        for tp in &partitions {
            if let Some(owned) = self.owned.get_mut(tp) {
                owned.ask(self.questions);
            }
        }
        if !partitions.is_empty() {
            let _ = self.scout.send(Inquiry::Resolve {
                worker: self.index,
                id: self.questions,
                partitions,
            });
        }
    }

    /// Binds the chain of partitions that have just come. Those that were here keep theirs, and
    /// what it remembers.
    fn bind_chains(&mut self, partitions: &[TopicPartition]) {
        for topic in distinct_topics(partitions) {
            let bound = self.bind(&topic);
            for tp in partitions.iter().filter(|tp| tp.topic == topic) {
                if let Some(owned) = self.owned.get_mut(tp) {
                    owned.chain = bound.as_ref().map(BoundChain::for_partition);
                }
            }
        }
    }

    pub(super) fn bind(&self, topic: &Arc<str>) -> Option<Arc<BoundChain>> {
        let (source, target) = (&self.spec.source.name, &self.spec.target.name);
        match self.spec.route.bind(source, target, topic, Clock::System)? {
            Ok(bound) => Some(Arc::new(bound)),
            Err(fault) => {
                tracing::error!(event = "chain_unbound", subject = %self.subject, topic = %topic,
                    step = fault.pointer, "{}", fault.message);
                None
            }
        }
    }

    /// Tells the keeper everything that this worker needs of the target.
    pub(super) fn say_needs(&self) {
        let mut needs = Needs::default();
        for topic in distinct_topics(&self.owned.keys().cloned().collect::<Vec<_>>()) {
            self.needs_of(&topic, &mut needs);
        }
        if let Some(topic) = &self.spec.route.dead_letter
            && !needs.topics.is_empty()
        {
            needs.topics.push(Need {
                topic: topic.clone(),
                partitions: 1,
                source_topic: None,
                duty: Duty::Owner,
            });
        }
        let _ = self.keeper.send(Ask::Needs {
            worker: self.index,
            needs,
        });
    }

    fn needs_of(&self, topic: &Arc<str>, needs: &mut Needs) {
        let first = TopicPartition::new(topic.clone(), 0);
        let duty = if self.owned.contains_key(&first) {
            Duty::Owner
        } else {
            Duty::Waiter
        };
        let of_topic = || self.owned.values().filter(|o| o.id.topic == *topic);
        let Some(chain) = of_topic().find_map(|o| o.chain.clone()) else {
            return;
        };
        // Discovery may lag behind the assignment: the larger one is true.
        let owned_count = of_topic()
            .map(|o| o.id.partition)
            .max()
            .map_or(1, |p| p + 1);
        let known = self.topics.get(topic.as_ref()).copied().unwrap_or(0);
        for target in &chain.targets().known {
            needs.topics.push(Need {
                topic: target.clone(),
                partitions: known.max(owned_count),
                source_topic: Some(topic.to_string()),
                duty,
            });
        }
        needs
            .by_content
            .extend(chain.targets().by_content.iter().cloned());
    }

    /// The scout's answers. An answer to an older question is stale: between the two the partition may
    /// have been elsewhere and come back, with a position that has moved on.
    pub(super) fn resolved(&mut self, id: u64, resolved: Vec<(TopicPartition, Resolution)>) {
        let now = Instant::now();
        for (tp, resolution) in resolved {
            let Some(owned) = self.owned.get_mut(&tp) else {
                continue;
            };
            if owned.asked != id || !matches!(owned.phase, Phase::Resolving) {
                continue;
            }
            match resolution {
                Resolution::Position(position) => self.positioned(&tp, position),
                Resolution::AwaitStart => {
                    owned.phase = Phase::ResolveLater {
                        at: now + ASK_AGAIN,
                        reason: Reason::AwaitingStart,
                    };
                }
                Resolution::Retry(reason) => {
                    owned.phase = Phase::ResolveLater {
                        at: now + ASK_AGAIN,
                        reason,
                    };
                }
                Resolution::Halt {
                    reason: Reason::TopicReplaced { was, now },
                    position,
                } => self.topic_replaced(&tp, was, now, position),
                Resolution::Halt { reason, position } => self.halt_at(&tp, reason, position),
            }
        }
        self.place_ready();
    }

    /// There is no position to fetch from; asked again with growing pauses, since somebody may act.
    fn halt_at(&mut self, tp: &TopicPartition, reason: Reason, position: Offset) {
        let Some(owned) = self.owned.get_mut(tp) else {
            return;
        };
        if owned.halted_for() != Some(&reason) {
            tracing::error!(event = "partition_halted", subject = %self.subject,
                topic = %tp.topic, partition = tp.partition, reason = reason.code(), "{reason}");
        }
        if !owned.placed {
            // Nothing is fetched: the tracker says how far behind the partition is.
            owned.tracker = Tracker::new(position);
        }
        owned.halt(reason, RetryHow::Resolve, Instant::now());
    }

    fn positioned(&mut self, tp: &TopicPartition, position: Position) {
        let Some(owned) = self.owned.get_mut(tp) else {
            return;
        };
        if owned.placed {
            // Asked for again while it is with the client, which has ended fetching it. The next
            // assignment begins where `on_gap` says.
            owned.phase = Phase::Halted {
                reason: Reason::Rewinding,
                retry: Retry {
                    at: Instant::now() + ASK_AGAIN,
                    how: RetryHow::Isolate,
                },
            };
            return self.rejoin();
        }
        owned.tracker = Tracker::new(position.offset);
        owned.committed = position.committed;
        owned.fence = Fence::read(self.sinks.numbers(), position.writer);
        if let Some(left) = self.left_behind.remove(tp) {
            owned.arrived_to = Offset(left.next);
        }
        owned.topic_id = position.topic_id;
        owned.leader_epoch = -1;
        owned.phase = Phase::AwaitingTopic;
        if let Some(gap) = position.gap {
            report_gap(&self.view, &self.subject, tp, gap);
        }
        self.view.partition(tp, |view| {
            view.watermark = Some(position.offset.0);
            view.committed = position.committed.map(|o| o.0);
        });
    }

    pub(super) fn target_changed(&mut self) {
        self.place_ready();
        self.say_forms();
        self.retry_missing();
    }

    /// Places every partition whose target topic is ready and whose writer is committed, in one call.
    pub(super) fn place_ready(&mut self) {
        if self.release.is_some() {
            // An assign while the group waits for the answer to a revoke would let fetching go on.
            return;
        }
        let awaiting = self.owned.values();
        let awaiting = awaiting.filter(|o| matches!(o.phase, Phase::AwaitingTopic));
        let with_topics = awaiting.filter(|o| self.unready_topics(o).is_none());
        let mut fresh: Vec<TopicPartition> = with_topics.map(|o| o.id.clone()).collect();
        for tp in &fresh {
            self.decide_writer(tp);
        }
        fresh.retain(|tp| self.owned.get(tp).is_some_and(|o| self.is_ready(o)));
        self.place(&fresh);
    }

    fn place(&mut self, fresh: &[TopicPartition]) {
        if fresh.is_empty() {
            return;
        }
        let at: Vec<(TopicPartition, Offset)> = fresh
            .iter()
            .filter_map(|tp| Some((tp.clone(), self.owned.get(tp)?.tracker.position())))
            .collect();
        let now = Instant::now();
        let result = self.source.place(&at);
        for tp in fresh {
            let Some(owned) = self.owned.get_mut(tp) else {
                continue;
            };
            match &result {
                Ok(()) => {
                    owned.placed = true;
                    owned.phase = Phase::Flowing;
                    owned.last_progress = now;
                }
                Err(detail) => {
                    let detail = detail.clone();
                    owned.halt(Reason::Client { detail }, RetryHow::Resolve, now);
                }
            }
        }
        for tp in fresh {
            self.say_form(tp);
        }
        if self.paused_all && result.is_ok() {
            self.source.pause(fresh);
        }
    }

    /// Whether everything that the partition's records need is at the target.
    fn is_ready(&self, owned: &Owned<S::Record, K>) -> bool {
        self.unready(owned).is_none()
    }

    /// What the partition waits for.
    pub(super) fn unready(&self, owned: &Owned<S::Record, K>) -> Option<Reason> {
        self.unready_topics(owned).or_else(|| owned.fence.unready())
    }

    /// Which of its target topics it waits for, and why.
    fn unready_topics(&self, owned: &Owned<S::Record, K>) -> Option<Reason> {
        let Some(chain) = &owned.chain else {
            return Some(Reason::Client {
                detail: format!(
                    "the handlers cannot be bound to topic {}: see the log",
                    owned.id.topic
                ),
            });
        };
        chain
            .targets()
            .known
            .iter()
            .find_map(|target| self.unready_topic(owned, target))
    }

    fn unready_topic(&self, owned: &Owned<S::Record, K>, target: &str) -> Option<Reason> {
        let awaiting = || {
            self.targets
                .problem(target)
                .unwrap_or_else(|| Reason::AwaitingTopic {
                    topic: target.to_owned(),
                })
        };
        let Some(there) = self.targets.get(target) else {
            return Some(awaiting());
        };
        let PolicySpec::Match { on_fewer } = &self.spec.route.policy else {
            return None;
        };
        if there.partitions > owned.id.partition {
            return None;
        }
        let may_grow = self.spec.route.topic_creation.mode == CreationMode::Enabled;
        match (may_grow, on_fewer) {
            (false, OnFewer::Modulo) => None,
            (false, OnFewer::Stop) => Some(Reason::TargetTooFewPartitions {
                topic: target.to_owned(),
                has: there.partitions,
                needs: owned.id.partition + 1,
            }),
            (true, _) => Some(awaiting()),
        }
    }

    pub(super) fn partition_error(
        &mut self,
        tp: &TopicPartition,
        detail: String,
        kind: SourceFault,
    ) {
        let reason = match kind {
            SourceFault::Gone => Reason::SourceTopicGone,
            SourceFault::Refused => Reason::SourceRefuses { detail },
            SourceFault::Other => Reason::Client { detail },
        };
        if let Some(owned) = self.owned.get_mut(tp)
            && owned.source_fault.as_ref() != Some(&reason)
        {
            tracing::warn!(event = "source_error", subject = %self.subject, topic = %tp.topic,
                partition = tp.partition, reason = reason.code(), "{reason}");
            // Shown until data flows again (B039); the client retries by itself.
            owned.source_fault = Some(reason);
        }
    }
}
