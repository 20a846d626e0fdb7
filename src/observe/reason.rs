//! Why something is not simply running: a closed set, the same words everywhere.

use super::Stage;
use crate::config::story::Story;
use serde::Serialize;

/// Why something is not simply running. A closed set: the same words in logs, metrics and status.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum Reason {
    /// Positions are being read from the source's group coordinator.
    ResolvingPositions,
    /// Another member of the group resolves the start of all partitions first (`engine.md` rule 7).
    AwaitingStart,
    /// Somebody still works under the route's former name (`was:`), whose positions it takes over.
    FormerNameInUse {
        /// The consumer group of that name.
        group: String,
    },
    /// The owner of partition 0 creates or grows the target topic first (KIP-3).
    AwaitingTopic {
        /// The target topic.
        topic: String,
    },
    /// Its writer (a producer id with an epoch) is not committed yet: nothing is written before that.
    AwaitingWriter,
    /// Another instance writes in its place.
    Fenced {
        /// The target's words.
        detail: String,
    },
    /// The target topic is missing and may not be created.
    TargetTopicMissing {
        /// The target topic.
        topic: String,
        /// What to do.
        detail: String,
    },
    /// The target topic has fewer partitions than the policy needs.
    TargetTooFewPartitions {
        /// The target topic.
        topic: String,
        /// Its partition count.
        has: i32,
        /// The count that is needed.
        needs: i32,
    },
    /// The target refused records for a cause that is not the record's.
    TargetRefuses {
        /// The broker's error, by name, and what to do.
        detail: String,
    },
    /// One record cannot be delivered, and `on_error: stop` holds the partition.
    PoisonRecord {
        /// The record's offset in the source partition.
        offset: i64,
        /// The failure code.
        failure: String,
        /// The failure in words.
        detail: String,
    },
    /// Records between the position and the log start are gone from the source.
    Gap {
        /// The first missing offset.
        from: i64,
        /// The first offset that is there.
        to: i64,
    },
    /// The source log ends before the position: it was truncated.
    Truncated {
        /// The position.
        position: i64,
        /// The end of the log.
        end: i64,
    },
    /// The source topic was deleted and created again.
    TopicReplaced {
        /// The topic id that the position belongs to.
        was: String,
        /// The topic id now.
        now: String,
    },
    /// The committed position belongs to another target cluster.
    TargetReplaced {
        /// The cluster id in the commit.
        was: String,
        /// The cluster id now.
        now: String,
    },
    /// A cluster has another id than the file expects.
    WrongCluster {
        /// The cluster's name in the file.
        cluster: String,
        /// The id that is expected.
        expected: String,
        /// The id that it has.
        found: String,
    },
    /// The cluster does not answer.
    Unreachable {
        /// The cluster's name in the file.
        cluster: String,
        /// The client's words.
        detail: String,
    },
    /// The source refuses (rights, for instance).
    SourceRefuses {
        /// The broker's error.
        detail: String,
    },
    /// Records of the source cannot be read, and none is passed over.
    SourceUnreadable {
        /// The client's words.
        detail: String,
    },
    /// The source topic does not exist any more.
    SourceTopicGone,
    /// Everything up to the last stable offset is copied; what lies behind it waits for a transaction.
    OpenTransaction {
        /// The last stable offset: where the oldest open transaction begins.
        offset: i64,
    },
    /// No progress for a while, with records to copy.
    NoProgress {
        /// The stage that holds it up.
        stage: Stage,
    },
    /// A delivery failed; the partition goes back to its watermark.
    Rewinding,
    /// The client could not be built or failed for good.
    Client {
        /// The client's words.
        detail: String,
    },
    /// A thread of the flow panicked.
    Panic {
        /// The panic's message.
        detail: String,
    },
    /// Nothing matches the route's topics.
    NoTopics,
    /// `on_error: abort_route` met a failure.
    Aborted {
        /// The failure in words.
        detail: String,
    },
    /// The user paused it.
    ByUser,
}

macro_rules! codes {
    ($($name:ident = $text:literal,)*) => {
        /// A reason without what it says of the one case: its name, and its story.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ReasonCode {
            $(#[doc = concat!("`", $text, "`")] $name,)*
        }

        impl ReasonCode {
            /// Every one.
            pub const ALL: &[ReasonCode] = &[$(ReasonCode::$name,)*];

            /// The stable name, as in metrics and JSON.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(ReasonCode::$name => $text,)*
                }
            }

            /// What it means and what to do. A reason without a story does not compile.
            pub fn story(self) -> Story {
                match self {
                    $(ReasonCode::$name => Story::of(include_str!(concat!("stories/", $text, ".md"))),)*
                }
            }
        }

        impl Reason {
            /// Which one it is.
            pub fn kind(&self) -> ReasonCode {
                match self {
                    $(Reason::$name { .. } => ReasonCode::$name,)*
                }
            }
        }
    };
}

codes! {
    ResolvingPositions = "resolving_positions",
    AwaitingStart = "awaiting_start",
    FormerNameInUse = "former_name_in_use",
    AwaitingTopic = "awaiting_topic",
    AwaitingWriter = "awaiting_writer",
    Fenced = "fenced",
    TargetTopicMissing = "target_topic_missing",
    TargetTooFewPartitions = "target_too_few_partitions",
    TargetRefuses = "target_refuses",
    PoisonRecord = "poison_record",
    Gap = "gap",
    Truncated = "truncated",
    TopicReplaced = "topic_replaced",
    TargetReplaced = "target_replaced",
    WrongCluster = "wrong_cluster",
    Unreachable = "unreachable",
    SourceRefuses = "source_refuses",
    SourceUnreadable = "source_unreadable",
    SourceTopicGone = "source_topic_gone",
    OpenTransaction = "open_transaction",
    NoProgress = "no_progress",
    Rewinding = "rewinding",
    Client = "client",
    Panic = "panic",
    NoTopics = "no_topics",
    Aborted = "aborted",
    ByUser = "by_user",
}

impl ReasonCode {
    /// The reason of that name.
    pub fn named(text: &str) -> Option<Self> {
        let mut all = Self::ALL.iter();
        all.find(|code| code.as_str() == text).copied()
    }
}

impl Reason {
    /// The reason's stable name, as in metrics and JSON.
    pub fn code(&self) -> &'static str {
        self.kind().as_str()
    }
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Reason::ResolvingPositions => f.write_str("reading committed positions"),
            Reason::AwaitingStart => {
                f.write_str("another member resolves the start positions first")
            }
            Reason::FormerNameInUse { group } => write!(
                f,
                "`was:` takes positions over from an empty group only, and {group} has members: \
                 reload or stop the instances that run the route under its former name"
            ),
            Reason::AwaitingTopic { topic } => {
                write!(f, "waiting for target topic {topic} to be ready")
            }
            Reason::AwaitingWriter => {
                f.write_str("its producer id and epoch are committed before anything is written")
            }
            Reason::Fenced { detail } => write!(
                f,
                "another instance writes in its place ({detail}): nothing more is written or committed here"
            ),
            Reason::TargetTopicMissing { topic, detail } => {
                write!(f, "target topic {topic} is missing: {detail}")
            }
            Reason::TargetTooFewPartitions { topic, has, needs } => write!(
                f,
                "target topic {topic} has {has} partitions, {needs} are needed: grow it, or allow \
                 topic_creation, or write partitions: {{ policy: match, on_fewer: modulo }}"
            ),
            Reason::TargetRefuses { detail } => write!(f, "the target refuses: {detail}"),
            Reason::PoisonRecord {
                offset,
                failure,
                detail,
            } => write!(
                f,
                "record at offset {offset} cannot be delivered ({failure}: {detail}); on_error: stop holds the partition"
            ),
            Reason::Gap { from, to } => write!(
                f,
                "offsets {from} to {to} (exclusive) are gone from the source; on_gap: stop holds the partition"
            ),
            Reason::Truncated { position, end } => write!(
                f,
                "the source log ends at {end}, before the position {position}: it was truncated; on_gap: stop holds the partition"
            ),
            Reason::TopicReplaced { was, now } => write!(
                f,
                "the source topic was deleted and created again (id {was}, now {now}): nothing of the old position applies; \
                 restart the route to copy the new topic from its beginning (if it halts again, reset the group's \
                 offsets of this topic)"
            ),
            Reason::TargetReplaced { was, now } => write!(
                f,
                "the committed position belongs to target cluster {was}, this one is {now}: use another route name, or reset the group"
            ),
            Reason::WrongCluster {
                cluster,
                expected,
                found,
            } => write!(
                f,
                "cluster {cluster} has id {found}, the file expects {expected}"
            ),
            Reason::Unreachable { cluster, detail } => {
                write!(f, "cluster {cluster} does not answer: {detail}")
            }
            Reason::SourceRefuses { detail } => write!(f, "the source refuses: {detail}"),
            Reason::SourceUnreadable { detail } => write!(
                f,
                "records of the source cannot be read, and none is passed over: {detail}; if it lasts, the leader's log \
                 is damaged: move the leader to a broker whose copy is good"
            ),
            Reason::SourceTopicGone => f.write_str("the source topic does not exist any more"),
            Reason::OpenTransaction { offset } => write!(
                f,
                "a transaction that begins at offset {offset} of the source is still open, what lies behind it \
                 waits: end it (kafka-transactions.sh find-hanging, abort)"
            ),
            Reason::NoProgress { stage } => write!(
                f,
                "no progress, held up in {}",
                match stage {
                    Stage::Fetch => "fetch",
                    Stage::Handler => "handler",
                    Stage::Produce => "produce",
                    Stage::Commit => "commit",
                }
            ),
            Reason::Rewinding => f.write_str("a delivery failed, going back to the watermark"),
            Reason::Client { detail } => write!(f, "client error: {detail}"),
            Reason::Panic { detail } => write!(f, "a thread panicked: {detail}"),
            Reason::NoTopics => f.write_str("no topic matches"),
            Reason::Aborted { detail } => write!(f, "on_error: abort_route: {detail}"),
            Reason::ByUser => f.write_str("paused by the user"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::explain::{self, Answer};

    #[test]
    fn every_reason_says_what_it_means_and_is_no_settings_name() {
        for code in ReasonCode::ALL {
            let (name, story) = (code.as_str(), code.story());
            assert!(
                !story.title.is_empty() && !story.title.ends_with('.'),
                "{name}"
            );
            // What it means, and what to do.
            assert!(story.paragraphs().count() >= 2, "{name} says too little");
            assert_eq!(ReasonCode::named(name), Some(*code));
            assert!(matches!(explain::explain(name), Answer::None(_)), "{name}");
        }
    }

    #[test]
    fn it_is_called_the_same_in_json() {
        let reason = Reason::SourceUnreadable {
            detail: String::new(),
        };
        let json = serde_json::to_value(&reason).unwrap();
        assert_eq!(json["code"], reason.code());
    }
}
