//! Rebalance listeners (KIP-3): the user's code, called after our own drain and commit.

use crate::record::TopicPartition;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Where a rebalance happened.
#[derive(Clone, Debug)]
pub struct RebalanceContext<'a> {
    /// The route's name.
    pub route: &'a str,
    /// The source cluster's name.
    pub source: &'a str,
    /// The target cluster's name.
    pub target: &'a str,
    /// The worker, from 0.
    pub worker: usize,
}

/// Told about rebalances of a flow's consumer group, after mirror's own work (KIP-3).
///
/// Each call has a deadline; one that takes longer is abandoned, a panic is caught, both are
/// logged, neither stops the flow.
pub trait RebalanceListener: Send + Sync {
    /// Before the first fetch of a new assignment.
    fn assigned(&self, at: &RebalanceContext<'_>, old: &[TopicPartition], new: &[TopicPartition]);
    /// Before partitions are released: drained and committed already.
    fn revoked(&self, at: &RebalanceContext<'_>, released: &[TopicPartition]);
    /// After partitions were lost: somebody else may own them already, nothing was committed.
    fn lost(&self, at: &RebalanceContext<'_>, lost: &[TopicPartition]);
}

/// Listeners that an embedding program brings, by the name used in the file.
#[derive(Clone, Default)]
pub struct Listeners {
    by_name: BTreeMap<String, Arc<dyn RebalanceListener>>,
}

impl Listeners {
    /// Registers `listener` under `name`, replacing an earlier one of that name.
    pub fn register(
        &mut self,
        name: impl Into<String>,
        listener: Arc<dyn RebalanceListener>,
    ) -> &mut Self {
        self.by_name.insert(name.into(), listener);
        self
    }

    /// The listener registered under `name`.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn RebalanceListener>> {
        self.by_name.get(name)
    }
}
