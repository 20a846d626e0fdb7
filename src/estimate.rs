//! What a configuration takes of a machine, before it runs: memory, threads, file descriptors.
//!
//! An estimate from above for a process at work: budgets count in full. How many brokers a cluster has is not
//! known offline; the addresses in the file are taken for them, three at least.

mod machine;

pub use machine::Machine;

use crate::config::spec::{ClusterSpec, RouteSpec, Spec};
use crate::flow::planes::{Plane, Planes};
use serde_json::{Value, json};

/// Brokers that a cluster is taken to have at least.
const FEWEST_BROKERS: u64 = 3;
/// The process by itself: control plane, admin interface, allocator.
const BASE_MEMORY: u64 = 40 << 20;
const BASE_THREADS: u64 = 8;
const BASE_DESCRIPTORS: u64 = 40;
/// A client by itself, and each of its connections: stacks, buffers, metadata.
const CLIENT_MEMORY: u64 = 2 << 20;
const CONNECTION_MEMORY: u64 = 512 << 10;
/// Descriptors of a client beside its connections: pipes that wake its threads.
const CLIENT_DESCRIPTORS: u64 = 4;
/// Threads of a flow that are there once: it, the scout, the verifier, the keeper.
const FLOW_THREADS: u64 = 4;

/// What a configuration takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Estimate {
    /// Bytes.
    pub memory: u64,
    /// Threads, the client library's among them.
    pub threads: u64,
    /// File descriptors, connections among them.
    pub descriptors: u64,
}

impl Estimate {
    /// The estimate for `spec`.
    pub fn of(spec: &Spec) -> Self {
        let mut whole = Self {
            memory: BASE_MEMORY,
            threads: BASE_THREADS,
            descriptors: BASE_DESCRIPTORS,
        };
        let mut budgets = 0;
        for route in spec.routes.values() {
            for source in &route.sources {
                for target in &route.targets {
                    whole.add(of_flow(route, source, target));
                    budgets += budget(route);
                }
            }
        }
        // Records in flight, and as much again fetched ahead: both share the process's budget.
        whole.memory += 2 * budgets.min(spec.memory_bytes);
        whole
    }

    fn add(&mut self, other: Self) {
        self.memory += other.memory;
        self.threads += other.threads;
        self.descriptors += other.descriptors;
    }

    /// As JSON, with the machine's limits beside it.
    pub fn to_json(self, machine: &Machine) -> Value {
        json!({
            "memory_bytes": self.memory,
            "threads": self.threads,
            "descriptors": self.descriptors,
            "limits": {
                "memory_bytes": machine.memory,
                "threads": machine.threads,
                "descriptors": machine.descriptors,
            },
        })
    }

    /// In one line: `estimate: 312 MiB of memory (of 4.0 GiB), 42 threads, …`.
    pub fn line(self, machine: &Machine) -> String {
        let of = |limit: Option<String>| limit.map_or_else(String::new, |l| format!(" (of {l})"));
        let count = |limit: Option<u64>| of(limit.map(|l| l.to_string()));
        format!(
            "estimate: at most {} of memory{}, {} threads{}, {} file descriptors{}",
            size(self.memory),
            of(machine.memory.map(size)),
            self.threads,
            count(machine.threads),
            self.descriptors,
            count(machine.descriptors),
        )
    }

    /// What the machine does not have, in words, each with what to do.
    pub fn over(self, machine: &Machine) -> Vec<(String, &'static str)> {
        let more = |needs: u64, has: Option<u64>| has.filter(|has| needs > *has);
        let mut over = Vec::new();
        if let Some(has) = more(self.memory, machine.memory) {
            let words = format!(
                "the routes may take {} of memory, and there is {}",
                size(self.memory),
                size(has)
            );
            over.push((
                words,
                "lower `limits.memory`, or `limits: { in_flight: … }` of the routes",
            ));
        }
        if let Some(has) = more(self.threads, machine.threads) {
            let words = format!(
                "the routes take about {} threads, and {has} are allowed",
                self.threads
            );
            over.push((
                words,
                "raise the limit (`ulimit -u`, `pids.max`), or use fewer workers",
            ));
        }
        if let Some(has) = more(self.descriptors, machine.descriptors) {
            let words = format!(
                "the routes take about {} file descriptors, and {has} are allowed",
                self.descriptors
            );
            over.push((words, "raise the limit (`ulimit -n`, `LimitNOFILE=`)"));
        }
        over
    }
}

/// The in-flight budget of a flow, as the engine shares it among workers: a mebibyte each at least.
fn budget(route: &RouteSpec) -> u64 {
    let workers = route.threads.workers.get() as u64;
    route.in_flight_bytes.max(workers << 20)
}

fn of_flow(route: &RouteSpec, source: &ClusterSpec, target: &ClusterSpec) -> Estimate {
    let threads = &route.threads;
    let workers = threads.workers.get() as u64;
    let handlers = threads.handlers.map_or(0, |h| h.get() as u64) * workers;
    // One more producer isolates a record that the target refuses.
    let producers = threads.producers.get() as u64 + 1;
    // Members, and the scout; producers, and the keeper, which also asks the source.
    let at_source = workers + 2;
    let at_target = producers + 1;
    let (sources, targets) = (brokers(source), brokers(target));
    // A client has a main thread and one for each broker, bootstrap addresses and the coordinator
    // counted apart.
    let client_threads = at_source * (sources + 3) + at_target * (targets + 2);
    // Who fetches natively has connections of its own, and one more to ask for leaders.
    let is_native = Planes::of(route, source, target).fetch == Plane::Native;
    let fetchers = if is_native { workers } else { 0 };
    let connections = at_source * (sources + 1) + at_target * targets + fetchers * (sources + 1);
    Estimate {
        memory: (at_source + at_target) * CLIENT_MEMORY + connections * CONNECTION_MEMORY,
        threads: FLOW_THREADS + workers + fetchers + handlers + producers + client_threads,
        descriptors: connections + (at_source + at_target + fetchers) * CLIENT_DESCRIPTORS,
    }
}

fn brokers(cluster: &ClusterSpec) -> u64 {
    (cluster.bootstrap_servers.len() as u64).max(FEWEST_BROKERS)
}

/// `1610612736` as `1.5 GiB`.
fn size(bytes: u64) -> String {
    const MIB: u64 = 1 << 20;
    match bytes {
        0..MIB => format!("{} KiB", bytes >> 10),
        MIB..0x4000_0000 => format!("{} MiB", bytes / MIB),
        _ => {
            let tenths = bytes / (MIB * 1024 / 10);
            format!("{}.{} GiB", tenths / 10, tenths % 10)
        }
    }
}

#[cfg(test)]
mod tests;
