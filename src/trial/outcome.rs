//! What became of a record in a trial.

use super::steps::Steps;
use super::trace::Snapshot;
use crate::config::spec::OnError;
use crate::handler::{ChainFault, Failure};

/// What became of one record.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// In a word.
    pub fate: Fate,
    /// The records that would be produced, in order.
    pub outputs: Vec<Output>,
}

impl Outcome {
    /// An outcome without outputs.
    pub(super) fn of(fate: Fate) -> Self {
        Self {
            fate,
            outputs: Vec::new(),
        }
    }
}

/// A record that would be produced.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    /// The target partition.
    pub partition: i32,
    /// The record.
    pub record: Snapshot,
}

/// What became of a record, in a word.
#[derive(Clone, Debug, PartialEq)]
pub enum Fate {
    /// Its outputs would be produced.
    Forwarded,
    /// A step dropped it on purpose.
    Dropped {
        /// Index of the step in the chain.
        step: usize,
    },
    /// It failed.
    Failed {
        /// Index of the step in the chain; `None` if it came larger than `limits.record`.
        step: Option<usize>,
        /// Why.
        failure: Failure,
        /// What the route does with it.
        on_error: OnError,
    },
    /// The route does not copy its topic.
    NotCopied,
    /// The route would copy its topic, but the topic cannot fill the chain's templates.
    Unbound(ChainFault),
    /// The target topic has fewer partitions than the policy needs: the source partition would
    /// halt.
    TooFew {
        /// The target topic.
        topic: String,
        /// Its partitions.
        has: i32,
        /// The partitions that it needs.
        needs: i32,
    },
}

impl Fate {
    /// What became of the record, in words.
    pub fn words(&self, steps: &Steps) -> String {
        match self {
            Self::Forwarded => "goes through".to_owned(),
            Self::Dropped { step } => format!("dropped by {}", steps.label(*step)),
            Self::Failed {
                step,
                failure,
                on_error,
            } => {
                let at = step.map_or_else(|| "limits.record".to_owned(), |step| steps.label(step));
                let then = match on_error {
                    OnError::Stop => "the partition would halt",
                    OnError::AbortRoute => "the route would stop",
                    OnError::Skip => "it would be skipped",
                    OnError::DeadLetter => "it would become a dead letter",
                };
                format!("failed at {at}: {failure}; {then}")
            }
            Self::NotCopied => "the route does not copy its topic".to_owned(),
            Self::Unbound(fault) => format!("the topic cannot be bound: {}", fault.message),
            Self::TooFew { topic, has, needs } => format!(
                "the partition would halt: `{topic}` has {has} partitions, {needs} are needed"
            ),
        }
    }
}
