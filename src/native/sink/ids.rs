//! Producer ids that nobody has had yet. A broker gives each one once (KIP-98), so they keep.

use crate::plane::ProduceFault;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Ids to be given to writers.
#[derive(Debug, Default)]
pub(super) struct Ids(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    spare: Vec<i64>,
    /// How many whoever asked last has not got.
    wanted: usize,
    refusal: Option<ProduceFault>,
}

impl Ids {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Up to `count` of them; the rest is wanted from now on.
    ///
    /// # Errors
    /// Why there is none, once for each time that the target refused.
    pub(super) fn take(&self, count: usize) -> Result<Vec<i64>, ProduceFault> {
        let mut state = self.state();
        let at = state.spare.len().saturating_sub(count);
        let taken = state.spare.split_off(at);
        state.wanted = count - taken.len();
        match state.refusal.take() {
            Some(fault) if taken.is_empty() => Err(fault),
            _ => Ok(taken),
        }
    }

    /// How many are wanted and not there.
    pub(super) fn lacking(&self) -> usize {
        let state = self.state();
        state.wanted.saturating_sub(state.spare.len())
    }

    pub(super) fn add(&self, id: i64) {
        self.state().spare.push(id);
    }

    pub(super) fn refuse(&self, fault: ProduceFault) {
        self.state().refusal = Some(fault);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plane::FaultKind;

    #[test]
    fn what_is_lacking_is_wanted_until_it_is_there() {
        let ids = Ids::default();
        assert_eq!((ids.take(2), ids.lacking()), (Ok(vec![]), 2));
        (7..10).for_each(|id| ids.add(id));
        assert_eq!(ids.lacking(), 0);
        assert_eq!((ids.take(2), ids.lacking()), (Ok(vec![8, 9]), 0));
        assert_eq!((ids.take(2), ids.lacking()), (Ok(vec![7]), 1));
    }

    #[test]
    fn a_refusal_is_said_once() {
        let (ids, fault) = (
            Ids::default(),
            ProduceFault {
                kind: FaultKind::World,
                detail: "no".into(),
            },
        );
        ids.refuse(fault.clone());
        assert_eq!(ids.take(1), Err(fault));
        assert_eq!(ids.take(1), Ok(vec![]));
    }
}
