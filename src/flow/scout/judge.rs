//! Where a partition starts, judged from the facts: committed position, log start, end, identity.
//! Pure. A position outside the log is an event of its own, never a silent reset.

use crate::config::spec::OnGap;
use crate::flow::position::CommitMetadata;
use crate::flow::scout::TopicIdentity;
use crate::observe::Reason;
use crate::plane::Offset;

/// Where a partition starts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Resolution {
    /// Here.
    Position(Position),
    /// The start of all partitions has to be committed first, by another member.
    AwaitStart,
    /// Nowhere, for this reason, until somebody acts.
    Halt(Reason),
    /// The source could not be asked; to be asked again.
    Retry(Reason),
}

/// A position to fetch from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) offset: Offset,
    /// The topic's id, where the cluster knows ids.
    pub(crate) topic_id: Option<String>,
    /// Records that are gone, where `on_gap` says to go on.
    pub(crate) gap: Option<(i64, i64)>,
    /// The committed value, if there is one.
    pub(crate) committed: Option<Offset>,
}

/// What is known of one partition when its position is judged.
pub(super) struct Facts<'a> {
    pub(super) log_start: Option<i64>,
    pub(super) end: Option<i64>,
    pub(super) identity: Option<TopicIdentity>,
    pub(super) committed: Option<&'a (i64, CommitMetadata)>,
    pub(super) target_cluster: Option<&'a str>,
    pub(super) on_gap: OnGap,
}

impl Facts<'_> {
    pub(super) fn judge(&self) -> Resolution {
        let topic_id = match &self.identity {
            Some(TopicIdentity::Is(id)) => Some(id.clone()),
            Some(TopicIdentity::Unknown) => None,
            Some(TopicIdentity::Gone) => return Resolution::Retry(Reason::SourceTopicGone),
            Some(TopicIdentity::Unclear) | None => {
                return Resolution::Retry(Reason::ResolvingPositions);
            }
        };
        let (Some(log_start), Some(end)) = (self.log_start, self.end) else {
            return Resolution::Retry(Reason::ResolvingPositions);
        };
        let Some((position, metadata)) = self.committed else {
            // The start is behind the flow: this partition was found later and begins at its
            // beginning, whatever `start` says (B042).
            return Resolution::Position(Position {
                offset: Offset(log_start),
                topic_id,
                gap: None,
                committed: None,
            });
        };
        if let Some(reason) = self.replaced(metadata, topic_id.as_deref()) {
            return Resolution::Halt(reason);
        }
        self.place(*position, log_start, end, topic_id)
    }

    fn replaced(&self, metadata: &CommitMetadata, topic_id: Option<&str>) -> Option<Reason> {
        if let (Some(was), Some(now)) = (metadata.topic_id.as_deref(), topic_id)
            && was != now
        {
            return Some(Reason::TopicReplaced {
                was: was.to_owned(),
                now: now.to_owned(),
            });
        }
        if let (Some(was), Some(now)) = (metadata.target_cluster.as_deref(), self.target_cluster)
            && was != now
        {
            return Some(Reason::TargetReplaced {
                was: was.to_owned(),
                now: now.to_owned(),
            });
        }
        None
    }

    /// A position outside the log is an event of its own, never a silent reset (B051, B052, B056).
    fn place(
        &self,
        position: i64,
        log_start: i64,
        end: i64,
        topic_id: Option<String>,
    ) -> Resolution {
        let at = |offset: i64, gap| {
            Resolution::Position(Position {
                offset: Offset(offset),
                topic_id,
                gap,
                committed: Some(Offset(position)),
            })
        };
        if position < log_start {
            return match self.on_gap {
                OnGap::Stop => Resolution::Halt(Reason::Gap {
                    from: position,
                    to: log_start,
                }),
                OnGap::Earliest => at(log_start, Some((position, log_start))),
                OnGap::Latest => at(end, Some((position, end))),
            };
        }
        if position > end {
            return match self.on_gap {
                OnGap::Stop => Resolution::Halt(Reason::Truncated { position, end }),
                OnGap::Earliest | OnGap::Latest => at(end, Some((end, position))),
            };
        }
        at(position, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts<'a>(committed: Option<&'a (i64, CommitMetadata)>, on_gap: OnGap) -> Facts<'a> {
        Facts {
            log_start: Some(100),
            end: Some(200),
            identity: Some(TopicIdentity::Is("now".into())),
            committed,
            target_cluster: Some("target"),
            on_gap,
        }
    }

    fn offset_of(resolution: Resolution) -> i64 {
        match resolution {
            Resolution::Position(p) => p.offset.0,
            other => panic!("no position: {other:?}"),
        }
    }

    #[test]
    fn found_later_begins_at_its_beginning() {
        assert_eq!(offset_of(facts(None, OnGap::Stop).judge()), 100);
    }

    #[test]
    fn a_gap_is_named_exactly_and_never_guessed() {
        let committed = (40, CommitMetadata::default());
        assert_eq!(
            facts(Some(&committed), OnGap::Stop).judge(),
            Resolution::Halt(Reason::Gap { from: 40, to: 100 })
        );
        assert_eq!(
            offset_of(facts(Some(&committed), OnGap::Earliest).judge()),
            100
        );
        assert_eq!(
            offset_of(facts(Some(&committed), OnGap::Latest).judge()),
            200
        );
    }

    #[test]
    fn a_position_beyond_the_end_is_a_truncation() {
        let committed = (900, CommitMetadata::default());
        assert_eq!(
            facts(Some(&committed), OnGap::Stop).judge(),
            Resolution::Halt(Reason::Truncated {
                position: 900,
                end: 200
            })
        );
    }

    #[test]
    fn the_ends_of_the_log_are_no_gap() {
        for position in [100, 200] {
            let committed = (position, CommitMetadata::default());
            assert_eq!(
                offset_of(facts(Some(&committed), OnGap::Stop).judge()),
                position
            );
        }
    }

    #[test]
    fn a_replaced_topic_or_target_halts() {
        let other_topic = (
            150,
            CommitMetadata {
                topic_id: Some("was".into()),
                ..CommitMetadata::default()
            },
        );
        assert!(matches!(
            facts(Some(&other_topic), OnGap::Stop).judge(),
            Resolution::Halt(Reason::TopicReplaced { .. })
        ));
        let other_target = (
            150,
            CommitMetadata {
                target_cluster: Some("old".into()),
                ..CommitMetadata::default()
            },
        );
        assert!(matches!(
            facts(Some(&other_target), OnGap::Stop).judge(),
            Resolution::Halt(Reason::TargetReplaced { .. })
        ));
    }

    #[test]
    fn a_cluster_without_topic_ids_is_not_checked() {
        let committed = (
            150,
            CommitMetadata {
                topic_id: Some("was".into()),
                ..CommitMetadata::default()
            },
        );
        let mut facts = facts(Some(&committed), OnGap::Stop);
        facts.identity = Some(TopicIdentity::Unknown);
        assert_eq!(offset_of(facts.judge()), 150);
    }
}
