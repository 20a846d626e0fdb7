//! Where each partition of a flow would begin, and what there is to catch up. Pure: judged by the same
//! code by which a running flow judges it.

use crate::config::spec::Start;
use crate::flow::position::{CommitMetadata, StartMark};
use crate::flow::scout::{Facts, Resolution, TopicIdentity};
use crate::observe::Reason;
use crate::online::facts::ClusterFacts;
use crate::online::needs::FlowNeeds;
use crate::record::TopicPartition;
use std::collections::BTreeMap;

/// Where the partitions of a flow would begin.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Positions {
    /// Each partition with its beginning; those that could not be asked for are not in it.
    pub begins: BTreeMap<TopicPartition, Begin>,
    /// Whether the flow's start is behind it.
    pub started: Started,
    /// Partitions with a commit that is not ours.
    pub foreign: Vec<TopicPartition>,
}

/// Whether a flow's start is behind it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Started {
    /// What has no position was found later and begins at its beginning.
    Yes,
    /// What has no position begins where `start:` says.
    #[default]
    No,
}

/// Where one partition would begin.
#[derive(Clone, Debug, PartialEq)]
pub enum Begin {
    /// At the position that the group committed.
    Committed(Span),
    /// At the first record there is.
    Earliest(Span),
    /// At the end.
    Latest(Span),
    /// Behind records that are gone: from the first offset up to the second.
    Gap(i64, i64, Span),
    /// Nowhere, until somebody acts.
    Halted(Reason),
}

/// From where to where there is something to copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first offset.
    pub from: i64,
    /// The last stable offset.
    pub to: i64,
}

impl Span {
    /// Offsets to copy: no more records than that.
    pub fn records(self) -> u64 {
        u64::try_from(self.to - self.from).unwrap_or(0)
    }
}

impl Begin {
    /// What is to be copied from there.
    pub fn span(&self) -> Option<Span> {
        match self {
            Begin::Committed(span)
            | Begin::Earliest(span)
            | Begin::Latest(span)
            | Begin::Gap(_, _, span) => Some(*span),
            Begin::Halted(_) => None,
        }
    }
}

impl Positions {
    /// Offsets to copy over all partitions.
    pub fn lag(&self) -> u64 {
        let spans = self.begins.values().filter_map(Begin::span);
        spans.map(Span::records).sum()
    }

    /// Where the partitions of `flow` would begin; `None` if its positions or logs are not known.
    pub fn of(flow: &FlowNeeds, source: &ClusterFacts, target_id: Option<&str>) -> Option<Self> {
        let committed = source.positions.get(&flow.group)?.as_ref().ok()?;
        let mut commits = BTreeMap::new();
        let mut all = Self::default();
        for tp in flow.partitions() {
            let Some((offset, beside)) = committed.get(&tp) else {
                continue;
            };
            let metadata = CommitMetadata::decode(beside);
            if metadata.start == StartMark::Started {
                all.started = Started::Yes;
            }
            if metadata == CommitMetadata::default() {
                all.foreign.push(tp.clone());
            }
            commits.insert(tp, (*offset, metadata));
        }
        for tp in flow.partitions() {
            let begin = begin(flow, source, target_id, &tp, commits.get(&tp), all.started);
            if let Some(begin) = begin {
                all.begins.insert(tp, begin);
            }
        }
        Some(all)
    }
}

fn begin(
    flow: &FlowNeeds,
    source: &ClusterFacts,
    target_id: Option<&str>,
    tp: &TopicPartition,
    committed: Option<&(i64, CommitMetadata)>,
    started: Started,
) -> Option<Begin> {
    let log = source.logs.get(tp)?;
    let (start, stable) = (log.start?, log.stable?);
    let span = |from| Span { from, to: stable };
    if committed.is_none() {
        return Some(match (started, flow.route.start) {
            (Started::No, Start::Latest) => Begin::Latest(span(stable)),
            _ => Begin::Earliest(span(start)),
        });
    }
    let identity = match source.topic(&tp.topic) {
        Some(topic) => topic
            .id
            .clone()
            .map_or(TopicIdentity::Unknown, TopicIdentity::Is),
        None => TopicIdentity::Unknown,
    };
    let facts = Facts {
        log_start: log.start,
        end: log.end,
        identity: Some(identity),
        committed,
        // Nobody has met the topic before.
        met: None,
        target_cluster: target_id,
        on_gap: flow.route.on_gap,
    };
    match facts.judge() {
        Resolution::Position(position) => Some(match position.gap {
            Some((from, to)) => Begin::Gap(from, to, span(position.offset.0)),
            None => Begin::Committed(span(position.offset.0)),
        }),
        Resolution::Halt { reason, .. } => Some(Begin::Halted(reason)),
        Resolution::AwaitStart | Resolution::Retry(_) => None,
    }
}
