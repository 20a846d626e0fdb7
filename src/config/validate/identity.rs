//! Which names of clusters mean one cluster: offline, those that share an address.

use crate::config::spec::ClusterSpec;
use std::collections::HashMap;
use std::sync::Arc;

/// A cluster, whatever its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClusterId(usize);

/// The clusters behind the names.
#[derive(Debug, Default)]
pub struct Identities {
    by_name: HashMap<String, ClusterId>,
    /// Pairs of names that share the address.
    pub shared: Vec<Shared>,
}

/// Two names of one cluster.
#[derive(Clone, Debug)]
pub struct Shared {
    /// The name that stands first.
    pub first: Arc<ClusterSpec>,
    /// The other one.
    pub second: Arc<ClusterSpec>,
    /// The address that both have.
    pub address: String,
}

impl Identities {
    /// Finds which of `clusters` are one.
    pub fn of<'c>(clusters: impl Iterator<Item = &'c Arc<ClusterSpec>>) -> Self {
        let mut identities = Self::default();
        let mut owners: HashMap<String, Arc<ClusterSpec>> = HashMap::new();
        for (index, cluster) in clusters.enumerate() {
            let mut id = ClusterId(index);
            let mut told = false;
            for address in cluster.bootstrap_servers.iter().map(|a| a.to_lowercase()) {
                let Some(owner) = owners.get(&address) else {
                    owners.insert(address, cluster.clone());
                    continue;
                };
                if owner.name == cluster.name {
                    continue;
                }
                let other = identities.get(owner);
                if !told {
                    told = true;
                    identities.shared.push(Shared {
                        first: owner.clone(),
                        second: cluster.clone(),
                        address,
                    });
                }
                identities.unite(other.unwrap_or(id), id);
                id = other.unwrap_or(id);
            }
            identities
                .by_name
                .insert(cluster.name.as_str().to_owned(), id);
        }
        identities
    }

    /// The cluster behind `cluster`'s name.
    pub fn get(&self, cluster: &ClusterSpec) -> Option<ClusterId> {
        self.by_name.get(cluster.name.as_str()).copied()
    }

    fn unite(&mut self, into: ClusterId, from: ClusterId) {
        for id in self.by_name.values_mut().filter(|id| **id == from) {
            *id = into;
        }
    }
}
