//! How far the ends are: for the lag, and for `until: end`.

use super::positions::Committed;
use super::{ASK, Scout};
use crate::client::native::OffsetSpec;
use crate::observe::{Reason, State};
use crate::record::TopicPartition;
use std::time::{Duration, Instant};

/// How long asking for ends may take: discovery waits for the same thread.
const ENDS_ASK: Duration = Duration::from_secs(2);
/// How long a source may stay silent before `until: end` gives up.
const PATIENCE: Duration = Duration::from_secs(30);

impl Scout {
    pub(super) fn ask_ends(&mut self) -> Result<(), Reason> {
        let owned: Vec<TopicPartition> = self.spec.view.partitions().into_keys().collect();
        // In this order: what is written in between must not look held back.
        let high = self.offsets_within(ENDS_ASK, &owned, OffsetSpec::HighWatermark)?;
        let stable = self.offsets_within(ENDS_ASK, &owned, OffsetSpec::LastStable)?;
        for (tp, stable) in stable {
            let high = high.get(&tp).copied().unwrap_or(stable);
            self.spec
                .view
                .known_partition(&tp, |p| p.see_ends(stable, high));
        }
        Ok(())
    }

    pub(super) fn check_until(&mut self) {
        if self.spec.until.is_none() {
            return;
        }
        let done = match self.until_reached() {
            Ok(done) => {
                self.silent_since = None;
                done
            }
            Err(reason) => {
                let since = *self.silent_since.get_or_insert_with(Instant::now);
                (since.elapsed() > PATIENCE).then_some(Some(reason))
            }
        };
        if let Some(outcome) = done
            && let Some(tell) = self.spec.until.take()
        {
            tell(outcome);
        }
    }

    /// `None`: not yet; `Some(None)`: reached; `Some(Some(reason))`: what is left is halted.
    fn until_reached(&mut self) -> Result<Option<Option<Reason>>, Reason> {
        if !self.known {
            self.observer()?;
            return Ok(None);
        }
        if self.ends.is_none() {
            let all = self.matching_partitions();
            let ends = self.offsets(&all, OffsetSpec::LastStable)?;
            let starts = self.offsets(&all, OffsetSpec::Earliest)?;
            let bounds = |tp: &TopicPartition| Some((tp.clone(), *starts.get(tp)?, *ends.get(tp)?));
            // All or none: a partition without leader now would never be waited for.
            let Some(captured) = all.iter().map(bounds).collect::<Option<Vec<_>>>() else {
                return Ok(None);
            };
            self.ends = Some(captured);
        }
        let ends = self.ends.clone().unwrap_or_default();
        let all: Vec<TopicPartition> = ends.iter().map(|(tp, ..)| tp.clone()).collect();
        if all.is_empty() {
            return Ok(Some(None));
        }
        let observer = self.observer()?;
        let Ok(committed) = observer.committed(&all, ASK) else {
            return Ok(None);
        };
        let committed = Committed::read(committed)?;
        let left: Vec<&TopicPartition> = ends
            .iter()
            .filter(|(tp, start, end)| {
                let position = committed.positions.get(tp).map(|(offset, _)| *offset);
                position.map_or(start < end, |p| p < *end)
            })
            .map(|(tp, ..)| tp)
            .collect();
        if left.is_empty() {
            return Ok(Some(None));
        }
        Ok(self.halted(&left).map(Some))
    }

    /// The reason of a halt, if everything that is left is halted here.
    fn halted(&self, left: &[&TopicPartition]) -> Option<Reason> {
        let views = self.spec.view.partitions();
        let mut reason = None;
        for tp in left {
            let view = views.get(*tp)?;
            if view.condition.state != State::Failed {
                return None;
            }
            reason.clone_from(&view.condition.reason);
        }
        reason
    }
}
