//! Where a partition starts, judged from the facts: committed position, log start, end, identity.
//! Pure. A position outside the log is an event of its own, never a silent reset.

use crate::config::spec::OnGap;
use crate::flow::position::{CommitMetadata, WriterMark};
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
    Halt {
        reason: Reason,
        /// What is not copied begins here.
        position: Offset,
    },
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
    /// Who wrote last, as the commit says.
    pub(crate) writer: Option<WriterMark>,
}

/// What is known of one partition when its position is judged.
pub(crate) struct Facts<'a> {
    pub(crate) log_start: Option<i64>,
    pub(crate) end: Option<i64>,
    pub(crate) identity: Option<TopicIdentity>,
    pub(crate) committed: Option<&'a (i64, CommitMetadata)>,
    /// The topic's id when this flow met it first.
    pub(crate) met: Option<&'a str>,
    pub(crate) target_cluster: Option<&'a str>,
    pub(crate) on_gap: OnGap,
}

impl Facts<'_> {
    pub(crate) fn judge(&self) -> Resolution {
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
        if let Some(reason) = self.replaced(topic_id.as_deref()) {
            // Nothing of the topic that is there now was copied.
            return Resolution::Halt {
                reason,
                position: Offset(log_start),
            };
        }
        let Some(committed) = self.committed else {
            // The start is behind the flow: this partition was found later and begins at its
            // beginning, whatever `start` says (B042).
            return Resolution::Position(Position {
                offset: Offset(log_start),
                topic_id,
                gap: None,
                committed: None,
                writer: None,
            });
        };
        let (position, metadata) = committed;
        if let (Some(was), Some(now)) = (metadata.target_cluster.as_deref(), self.target_cluster)
            && was != now
        {
            return Resolution::Halt {
                reason: Reason::TargetReplaced {
                    was: was.to_owned(),
                    now: now.to_owned(),
                },
                position: Offset(*position),
            };
        }
        self.place(committed, log_start, end, topic_id)
    }

    /// Whether the topic is another one than the commit speaks of, or than this flow has met. The
    /// broker drops the commits with the topic, so that the first is seldom there to tell.
    fn replaced(&self, now: Option<&str>) -> Option<Reason> {
        let committed = self.committed.and_then(|(_, m)| m.topic_id.as_deref());
        let now = now?;
        let was = [committed, self.met]
            .into_iter()
            .flatten()
            .find(|was| *was != now)?;
        Some(Reason::TopicReplaced {
            was: was.to_owned(),
            now: now.to_owned(),
        })
    }

    /// A position outside the log is an event of its own, never a silent reset (B051, B052, B056).
    fn place(
        &self,
        committed: &(i64, CommitMetadata),
        log_start: i64,
        end: i64,
        topic_id: Option<String>,
    ) -> Resolution {
        let position = committed.0;
        let at = |offset: i64, gap| {
            Resolution::Position(Position {
                offset: Offset(offset),
                topic_id,
                gap,
                committed: Some(Offset(position)),
                writer: committed.1.writer,
            })
        };
        let halt = |reason| Resolution::Halt {
            reason,
            position: Offset(position),
        };
        if position < log_start {
            return match self.on_gap {
                OnGap::Stop => halt(Reason::Gap {
                    from: position,
                    to: log_start,
                }),
                OnGap::Earliest => at(log_start, Some((position, log_start))),
                OnGap::Latest => at(end, Some((position, end))),
            };
        }
        if position > end {
            return match self.on_gap {
                OnGap::Stop => halt(Reason::Truncated { position, end }),
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
            met: None,
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
            Resolution::Halt {
                reason: Reason::Gap { from: 40, to: 100 },
                position: Offset(40)
            }
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
            Resolution::Halt {
                reason: Reason::Truncated {
                    position: 900,
                    end: 200
                },
                position: Offset(900)
            }
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
            Resolution::Halt {
                reason: Reason::TopicReplaced { .. },
                position: Offset(100)
            }
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
            Resolution::Halt {
                reason: Reason::TargetReplaced { .. },
                position: Offset(150)
            }
        ));
    }

    #[test]
    fn a_topic_that_was_met_with_another_id_halts_though_no_commit_tells() {
        let mut facts = facts(None, OnGap::Stop);
        facts.met = Some("was");
        assert_eq!(
            facts.judge(),
            Resolution::Halt {
                reason: Reason::TopicReplaced {
                    was: "was".into(),
                    now: "now".into()
                },
                position: Offset(100)
            }
        );
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
