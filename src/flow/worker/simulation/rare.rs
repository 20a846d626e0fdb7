//! Situations that a run must have been in: a property that never meets them proves nothing about them.

use super::Lanes;
use crate::seen::situations;

situations! {
    /// A rare situation.
    pub(super) enum Rare {
        /// The group takes partitions while the flow drains.
        RevokeInDrain,
        /// And gives some.
        AssignmentInDrain,
        /// The group takes a partition of which a failed delivery is being waited for.
        RevokeInBarrier,
        /// One of which suspects go one by one.
        RevokeInIsolation,
        /// One whose position is being asked for.
        RevokeWhileResolving,
        /// A commit is answered when its partition is somebody else's.
        CommitAnsweredAfterRevoke,
        /// A commit lands when its partition is somebody else's.
        CommitLandsLate,
        /// An outcome comes for a life that is over.
        OutcomeOfAFormerLife,
        /// An acknowledgement comes behind a failure.
        AckInBarrier,
        /// A producer dies with records of a partition that is being released.
        ProducerDiesInRevoke,
        /// What is in flight is given up, for its time is over.
        DrainGivenUp,
        /// The session ends while a commit is under way.
        LossInCommit,
        /// While a revoke is.
        LossInRevoke,
        /// While the flow drains.
        LossInDrain,
        /// New settings come with records in flight.
        ChangeInFlight,
        /// During a release.
        ChangeInRelease,
        /// During a barrier.
        ChangeInBarrier,
        /// During isolation.
        ChangeInIsolation,
        /// While a position is being asked for.
        ChangeWhileResolving,
        /// While a commit is under way.
        ChangeInCommit,
        /// The new chain's topic is not there, and the partition goes back to its watermark.
        ChangeAwaitsTopic,
        /// A record is handled by the chain that it was fetched under, though there is a newer one.
        FormerChain,
        /// A topic that is there is called gone, twice before a commit.
        SeemsGone,
        /// The topic is deleted with records in flight.
        TopicDeletedInFlight,
        /// While a partition of it is somebody else's.
        TopicDeletedBetweenAssignments,
        /// That it is another one is found before a commit.
        ReplacementFoundByCommit,
        /// By a position that is out of range.
        ReplacementFoundByPosition,
        /// When a partition comes.
        ReplacementFoundByAssignment,
        /// A commit of the former topic lands on the new one.
        CommitOfAFormerTopic,
        /// Records of the new topic are fetched at the old position.
        Stray,
        /// The position is out of range with records in flight.
        OutOfRangeInFlight,
        /// It is called so, and is not.
        OutOfRangeFalsely,
        /// Retention passes the position.
        BehindStop,
        /// The same with another `on_gap`.
        BehindEarliest,
        /// The same with another `on_gap`.
        BehindLatest,
        /// The position lies beyond the end.
        BeyondStop,
        /// The same with another `on_gap`.
        BeyondEarliest,
        /// The same with another `on_gap`.
        BeyondLatest,
        /// The process is killed with records in flight.
        KillInFlight,
        /// A record arrives that somebody else has written on from.
        ZombieFenced,
        /// A record arrives under an epoch that is somebody else's as well.
        EpochTwice,
    }
}

impl Rare {
    /// Those that can be met with these lanes.
    pub(super) fn possible(lanes: Lanes) -> impl Iterator<Item = Rare> {
        // Without a thread of its own a lane has no queue.
        let is_possible = move |rare: &Rare| *rare != Rare::FormerChain || lanes == Lanes::Thread;
        Rare::ALL.iter().copied().filter(is_possible)
    }
}
