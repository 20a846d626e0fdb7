//! `was:`: a first start goes on where the route was under its former name.
//!
//! The positions are read from the old group and committed to the new one by the member that commits
//! the flow's start, as one start like any other: until its last commit is acknowledged a next try
//! begins again. Only an empty group gives its positions away, since a member would move on after they
//! were read.

use super::positions::Committed;
use super::{ASK, Scout};
use crate::client::admin::Observer;
use crate::client::native::GroupState;
use crate::observe::Reason;
use crate::record::TopicPartition;

impl Scout {
    /// What the route had committed under its former name; nothing if it has none.
    pub(super) fn former_positions(&mut self, of: &[TopicPartition]) -> Result<Committed, Reason> {
        let Some(group) = self.spec.former.clone() else {
            return Ok(Committed::default());
        };
        // Asked first: nobody can commit after it, so what is read then is final.
        let state = self.observer()?.group_state(&group, ASK);
        match state.map_err(|detail| self.unreachable(detail))? {
            GroupState::Absent | GroupState::Empty => {}
            GroupState::Active => return Err(Reason::FormerNameInUse { group }),
        }
        let failed = |detail| self.unreachable(detail);
        let subject = self.spec.subject.clone();
        let observer = Observer::new(&self.spec.source, &group, subject).map_err(failed)?;
        let committed = Committed::read(observer.committed(of, ASK).map_err(failed)?)?;
        tracing::info!(event = "positions_taken_over", subject = %self.spec.subject, from = group,
            partitions = committed.positions.len(), "positions of the former name are taken over");
        Ok(committed)
    }
}
