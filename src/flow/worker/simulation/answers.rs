//! Who answers the worker: the scout, with the judgement of the real one, the verifier, and the keeper.

use super::log::topic_id;
use super::step::Word;
use super::world::{Presence, World};
use super::{Rare, Simulation, TARGET};
use crate::flow::position::CommitMetadata;
use crate::flow::scout::{Facts, Finding, Inquiry, Resolution, TopicIdentity};
use crate::flow::target::Ask;
use crate::flow::verifier::Verify;
use crate::flow::worker::Note;
use crate::flow::worker::owned::Standing;
use crate::flow::worker::tests::tp;
use crate::observe::Reason;
use crate::record::TopicPartition;
use std::sync::Arc;

/// A position with what stands beside it.
type Known = (i64, CommitMetadata);

impl World {
    fn identity(&self) -> TopicIdentity {
        match self.presence {
            Presence::There => TopicIdentity::Is(topic_id(self.creation())),
            Presence::Deleted => TopicIdentity::Gone,
        }
    }

    /// The running flow meets the topic.
    fn meet(&mut self) {
        if self.presence == Presence::There {
            self.met.get_or_insert(self.past.len() as u32);
        }
    }

    fn committed(&self, partition: i32) -> Option<Known> {
        let committed = self.log(partition).committed.as_ref()?;
        let metadata = CommitMetadata::decode(committed.metadata.as_bytes());
        Some((committed.offset, metadata))
    }

    /// Where a partition starts that stands at `known`.
    fn judge(&mut self, partition: i32, known: Option<&Known>) -> Resolution {
        self.meet();
        let on_gap = self.settings().on_gap;
        let met = self.met.map(topic_id);
        let log = self.log(partition);
        let facts = Facts {
            log_start: Some(log.start),
            end: Some(log.end),
            identity: Some(self.identity()),
            committed: known,
            met: met.as_deref(),
            target_cluster: None,
            on_gap,
        };
        facts.judge()
    }

    /// Where an assigned partition starts.
    fn resolve(&mut self, partition: i32) -> Resolution {
        let known = self.committed(partition);
        let resolution = self.judge(partition, known.as_ref());
        match (&resolution, known) {
            (
                Resolution::Halt {
                    reason: Reason::TopicReplaced { .. },
                    ..
                },
                _,
            ) => {
                self.seen.note(Rare::ReplacementFoundByAssignment);
            }
            (Resolution::Retry(_), _) => {}
            (_, Some((position, _))) => {
                let on_gap = self.settings().on_gap;
                self.look(partition, position, on_gap);
            }
            (_, None) => {
                let log = self.log_mut(partition);
                // Nobody knows that it was ever begun.
                (log.resume_at, log.begun) = (Some(log.start), Some(log.start));
            }
        }
        resolution
    }

    /// Whether a placed partition's watermark is still in the log of the same topic.
    fn recheck(&mut self, partition: i32, position: i64, id: Option<String>) -> Resolution {
        let metadata = CommitMetadata {
            topic_id: id,
            ..CommitMetadata::default()
        };
        let resolution = self.judge(partition, Some(&(position, metadata)));
        if let Resolution::Halt {
            reason: Reason::TopicReplaced { .. },
            ..
        } = &resolution
        {
            self.seen.note(Rare::ReplacementFoundByPosition);
        }
        resolution
    }
}

impl Simulation {
    /// The scout looks at the source; what it has seen it tells later.
    pub(super) fn scout_looks(&mut self, fails: bool) {
        let Ok(inquiry) = self.running.inquiries.try_recv() else {
            return;
        };
        let finding = match inquiry {
            Inquiry::Resolve { id, partitions, .. } => self.resolve(id, &partitions, fails),
            Inquiry::Recheck {
                id,
                partition: tp,
                position,
                topic_id,
                ..
            } => {
                let partition = tp.partition;
                let judged = |w: &mut World| w.recheck(partition, position.0, topic_id);
                let resolution = match fails {
                    true => Resolution::Retry(Reason::ResolvingPositions),
                    false => self.shared.with(judged),
                };
                let resolved = vec![(tp, resolution)];
                Finding::Resolved { id, resolved }
            }
            Inquiry::Change(_) | Inquiry::Stop => return,
        };
        self.running.answers.push_back(finding);
    }

    fn resolve(&self, id: u64, partitions: &[TopicPartition], fails: bool) -> Finding {
        if !fails && let Some(start) = self.start(id, partitions) {
            return start;
        }
        let resolved = partitions.iter().map(|tp| {
            let resolution = match fails {
                true => Resolution::Retry(Reason::ResolvingPositions),
                false => self.shared.with(|w| w.resolve(tp.partition)),
            };
            (tp.clone(), resolution)
        });
        let resolved = resolved.collect();
        Finding::Resolved { id, resolved }
    }

    /// What the scout says while the start is ahead of the flow: whoever has the first partition commits it.
    fn start(&self, id: u64, partitions: &[TopicPartition]) -> Option<Finding> {
        let is_ahead = |w: &World| !w.has_started() && w.presence == Presence::There;
        if !self.shared.with(|w| is_ahead(w)) {
            return None;
        }
        self.shared.with(World::meet);
        if partitions.contains(&tp(0)) {
            let entries = self.shared.with(|w| w.start_entries());
            return Some(Finding::CommitStart { id, entries });
        }
        let waits = |tp: &TopicPartition| (tp.clone(), Resolution::AwaitStart);
        let resolved = partitions.iter().map(waits).collect();
        Some(Finding::Resolved { id, resolved })
    }

    pub(super) fn verifier_tells(&mut self, word: Word) {
        if let Ok(Verify { id, topics, .. }) = self.running.questions.try_recv() {
            let identity = match word {
                Word::Unaware => TopicIdentity::Gone,
                Word::True | Word::Missing => self.shared.with(|w| w.identity()),
            };
            match word {
                Word::True => {
                    self.note_identity(&identity);
                    self.shared.with(|w| w.verified = w.creation());
                }
                Word::Unaware => self.seems_gone(),
                Word::Missing => {}
            }
            let is = |topic: Arc<str>| (topic, identity.clone());
            let ids = match word {
                Word::Missing => Err("nobody answers".to_owned()),
                Word::True | Word::Unaware => Ok(topics.into_iter().map(is).collect()),
            };
            self.note(Note::Finding(Finding::Verified { id, ids }));
        }
    }

    /// The keeper makes what somebody needs.
    pub(super) fn keeper_makes(&mut self) {
        let mut is_news = false;
        while let Ok(ask) = self.running.asks.try_recv() {
            let Ask::Needs { needs, .. } = ask else {
                continue;
            };
            for need in needs.topics {
                is_news |= self.targets.get(&need.topic).is_none();
                self.targets.add(&need.topic, TARGET);
            }
        }
        if is_news {
            self.note(Note::TargetChanged);
        }
    }

    /// Partitions whose topic is called gone once more: nobody copies again what arrived of them so far.
    fn seems_gone(&self) {
        let owned = self.running.worker.owned.values();
        for owned in owned.filter(|o| o.topic == Standing::Doubtful) {
            self.seen(Rare::SeemsGone);
            self.shared
                .with(|w| w.log_mut(owned.id.partition).life += 1);
        }
    }

    fn note_identity(&self, identity: &TopicIdentity) {
        let TopicIdentity::Is(now) = identity else {
            return;
        };
        let mut placed = self.running.worker.owned.values().filter(|o| o.placed);
        let is_other = |was: &String| was != now;
        if placed.any(|o| o.topic_id.as_ref().is_some_and(is_other)) {
            self.seen(Rare::ReplacementFoundByCommit);
        }
    }

    /// Whether a partition is fetched from where nothing is.
    pub(super) fn is_out_of_range(&self, tp: &TopicPartition) -> bool {
        let at = |w: &mut World| {
            let fetching = w.fetching.get(&tp.partition).copied();
            fetching.is_some_and(|at| !w.log(tp.partition).is_within(at))
        };
        self.shared.with(at)
    }
}
