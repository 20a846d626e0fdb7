//! Where partitions start: what is committed, the flow's start, and what the source says of both.

use super::judge::{Facts, Resolution};
use super::{ASK, Finding, Scout, TopicIdentity, distinct_topics, identities};
use crate::client::native::{CommittedPosition, OffsetSpec};
use crate::config::spec::Start;
use crate::flow::position::{CommitMetadata, StartMark};
use crate::observe::Reason;
use crate::plane::{CommitEntry, Offset};
use crate::record::TopicPartition;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

impl Scout {
    pub(super) fn resolve(&mut self, worker: u8, id: u64, partitions: Vec<TopicPartition>) {
        match self.try_resolve(&partitions) {
            Ok(FlowStart::Behind(resolved)) => {
                (self.spec.tell)(worker, Finding::Resolved { id, resolved });
            }
            Ok(FlowStart::Ours(entries)) => {
                (self.spec.tell)(worker, Finding::CommitStart { id, entries });
            }
            Err(reason) => {
                let resolved = partitions
                    .into_iter()
                    .map(|tp| (tp, Resolution::Retry(reason.clone())))
                    .collect();
                (self.spec.tell)(worker, Finding::Resolved { id, resolved });
            }
        }
    }

    fn try_resolve(&mut self, assigned: &[TopicPartition]) -> Result<FlowStart, Reason> {
        let Some(target_cluster) = self.spec.target.cluster_id() else {
            return Err(Reason::ResolvingPositions);
        };
        if !self.known {
            self.discover()?;
        }
        let mut all = self.matching_partitions();
        all.extend(assigned.iter().cloned());
        all.sort();
        all.dedup();
        let observer = self.observer()?;
        let committed = observer.committed(&all, ASK);
        let committed = Committed::read(committed.map_err(|d| self.unreachable(d))?)?;
        if !committed.started {
            // The member that owns the first partition by name resolves the start for all.
            return if all.first().is_some_and(|first| assigned.contains(first)) {
                self.start_entries(&all, &committed, target_cluster)
                    .map(FlowStart::Ours)
            } else {
                let wait = |tp: &TopicPartition| (tp.clone(), Resolution::AwaitStart);
                Ok(FlowStart::Behind(assigned.iter().map(wait).collect()))
            };
        }
        self.judge_all(assigned, &committed, target_cluster.as_deref())
            .map(FlowStart::Behind)
    }

    /// The commits that make up the flow's start: what has a position keeps it, the rest gets the
    /// configured start; a topic that replaced one which this flow has met gets its beginning, since
    /// `start` was applied before. The last one says `started` and is sent last: until it is acknowledged, a
    /// next resolve finds an unfinished start and resumes it.
    fn start_entries(
        &mut self,
        all: &[TopicPartition],
        committed: &Committed,
        target_cluster: Option<String>,
    ) -> Result<Vec<CommitEntry>, Reason> {
        let topics = distinct_topics(all);
        let ids = self.identities(&topics).map_err(|d| self.unreachable(d))?;
        self.meet(&ids);
        let former = self.former_positions(all)?;
        let known = |tp: &TopicPartition| {
            let own = committed.positions.get(tp);
            own.or_else(|| former.positions.get(tp))
        };
        let (found_later, fresh): (Vec<_>, Vec<_>) = all
            .iter()
            .filter(|tp| known(tp).is_none())
            .cloned()
            .partition(|tp| self.is_another(&tp.topic, ids.get(&tp.topic)));
        let spec = match self.spec.start {
            // Under its former name the flow had begun: what is uncommitted there was found later.
            _ if former.started => OffsetSpec::Earliest,
            Start::Earliest => OffsetSpec::Earliest,
            Start::Latest => OffsetSpec::LastStable,
        };
        let mut starts = self.offsets(&fresh, spec)?;
        starts.extend(self.offsets(&found_later, OffsetSpec::Earliest)?);
        if self.identities(&topics).map_err(|d| self.unreachable(d))? != ids {
            // A topic was replaced while the offsets were asked for.
            return Err(Reason::ResolvingPositions);
        }
        tracing::info!(event = "first_start", subject = %self.spec.subject, partitions = fresh.len(),
            start = ?self.spec.start, "no start is committed yet: committing it for every matching partition");
        let mut entries = Vec::with_capacity(all.len());
        for tp in all {
            let known = known(tp);
            let of_known = known
                .map(|(_, metadata)| metadata.clone())
                .unwrap_or_default();
            let known = known.map(|(offset, _)| *offset);
            // One that is left out would later pass for "found later".
            let Some(offset) = known.or_else(|| starts.get(tp).copied()) else {
                return Err(self.unreachable(format!("no offset of {tp}: it has no leader now")));
            };
            // A position speaks of the topic and the target that it was committed for, not of those
            // that are there now: a difference must be seen.
            let now = match ids.get(&tp.topic) {
                Some(TopicIdentity::Is(id)) => Some(id.clone()),
                _ => None,
            };
            let topic_id = of_known.topic_id.or(now);
            let target_cluster = of_known.target_cluster.or_else(|| target_cluster.clone());
            entries.push(CommitEntry {
                partition: tp.clone(),
                offset: Offset(offset),
                leader_epoch: -1,
                metadata: CommitMetadata {
                    topic_id,
                    target_cluster,
                    settings: None,
                    writer: of_known.writer,
                    start: StartMark::Unsaid,
                }
                .encode(),
            });
        }
        if let Some(last) = entries.last_mut() {
            last.metadata.push_str(";s");
        }
        Ok(entries)
    }

    fn judge_all(
        &mut self,
        assigned: &[TopicPartition],
        committed: &Committed,
        target_cluster: Option<&str>,
    ) -> Result<Vec<(TopicPartition, Resolution)>, Reason> {
        let starts = self.offsets(assigned, OffsetSpec::Earliest)?;
        let ends = self.offsets(assigned, OffsetSpec::HighWatermark)?;
        let ids = self
            .identities(&distinct_topics(assigned))
            .map_err(|d| self.unreachable(d))?;
        self.meet(&ids);
        Ok(assigned
            .iter()
            .map(|tp| {
                let facts = Facts {
                    log_start: starts.get(tp).copied(),
                    end: ends.get(tp).copied(),
                    identity: ids.get(&tp.topic).cloned(),
                    committed: committed.positions.get(tp),
                    met: self.met.get(&tp.topic).map(String::as_str),
                    target_cluster,
                    on_gap: self.spec.on_gap,
                };
                (tp.clone(), facts.judge())
            })
            .collect())
    }

    /// Before it is called a gap, the leader itself is asked (B055).
    pub(super) fn recheck(
        &mut self,
        partition: &TopicPartition,
        position: Offset,
        topic_id: Option<String>,
    ) -> Result<Resolution, Reason> {
        let metadata = CommitMetadata {
            topic_id,
            ..CommitMetadata::default()
        };
        let mut committed = Committed::default();
        committed
            .positions
            .insert(partition.clone(), (position.0, metadata));
        let judged = self.judge_all(std::slice::from_ref(partition), &committed, None)?;
        Ok(judged
            .into_iter()
            .next()
            .map_or(Resolution::Retry(Reason::ResolvingPositions), |(_, r)| r))
    }

    pub(super) fn offsets(
        &mut self,
        of: &[TopicPartition],
        spec: OffsetSpec,
    ) -> Result<HashMap<TopicPartition, i64>, Reason> {
        self.offsets_within(ASK, of, spec)
    }

    /// The offsets that the source does say within this time.
    pub(super) fn offsets_within(
        &mut self,
        timeout: Duration,
        of: &[TopicPartition],
        spec: OffsetSpec,
    ) -> Result<HashMap<TopicPartition, i64>, Reason> {
        let answers = self.observer()?.offsets(of, spec, timeout);
        let answers = answers.map_err(|detail| self.unreachable(detail))?;
        let said = |(tp, offset): (_, Result<i64, _>)| Some((tp, offset.ok()?));
        Ok(answers.into_iter().filter_map(said).collect())
    }

    pub(super) fn identities(&mut self, topics: &[Arc<str>]) -> super::TopicIdsNow {
        let observer = self.observer().map_err(|reason| reason.to_string())?;
        identities(observer, topics, ASK)
    }
}

/// Whether the flow's start is behind it.
enum FlowStart {
    /// It is, or another member sees to it.
    Behind(Vec<(TopicPartition, Resolution)>),
    /// It is ours to commit.
    Ours(Vec<CommitEntry>),
}

/// The group's commits.
#[derive(Default)]
pub(super) struct Committed {
    pub(super) positions: HashMap<TopicPartition, (i64, CommitMetadata)>,
    pub(super) started: bool,
}

impl Committed {
    /// A failed read of one partition is not "none": the whole question is asked again.
    pub(super) fn read(answers: Vec<(TopicPartition, CommittedPosition)>) -> Result<Self, Reason> {
        let mut all = Self::default();
        for (tp, answer) in answers {
            let position = answer.map_err(|code| Reason::SourceRefuses {
                detail: format!("reading the committed offset of {tp}: {code}"),
            })?;
            if let Some((offset, bytes)) = position {
                let metadata = CommitMetadata::decode(&bytes);
                all.started |= metadata.start == StartMark::Started;
                all.positions.insert(tp, (offset, metadata));
            }
        }
        Ok(all)
    }
}
