//! A flow that runs inside the test's process.

use super::cluster::pair;
use super::route::{cluster, flow_spec};
use super::wait;
use mirror::config::spec::RouteSpec;
use mirror::flow::{Environment, FlowExit, FlowHandle, FlowSpec, spawn};
use mirror::observe::{Counters, FlowView, PartitionView};
use mirror::record::TopicPartition;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// A running flow; dropping it stops it at once.
pub struct Flow {
    handle: FlowHandle,
    exit: Receiver<FlowExit>,
}

impl Flow {
    /// Starts it.
    pub fn start(spec: FlowSpec) -> Self {
        Self::start_in(spec, &Environment::default())
    }

    /// Starts a route from the shared source to the shared target.
    pub fn copy(route: RouteSpec) -> Self {
        let pair = pair();
        let source = cluster("source", &pair.source.bootstrap());
        let target = cluster("target", &pair.target.bootstrap());
        Self::start(flow_spec(route, source, target))
    }

    /// Starts it in an environment of the test's.
    pub fn start_in(spec: FlowSpec, environment: &Environment) -> Self {
        log();
        let (tell, exit) = channel();
        let handle = spawn(
            spec,
            environment,
            Box::new(move |exit| drop(tell.send(exit))),
        );
        Self { handle, exit }
    }

    /// What is seen of it.
    pub fn view(&self) -> &Arc<FlowView> {
        &self.handle.view
    }

    /// Its partitions.
    pub fn partitions(&self) -> BTreeMap<TopicPartition, PartitionView> {
        self.handle.view.partitions()
    }

    /// Its counters.
    pub fn counters(&self) -> &Counters {
        &self.handle.view.counters
    }

    /// Registered and not resolved, now.
    pub fn in_flight(&self) -> u64 {
        Counters::get(&self.counters().in_flight_records)
    }

    /// The same, once there are any: a fault counts only if it hits some.
    pub fn wait_in_flight(&self) -> u64 {
        wait::find("records in flight", wait::PATIENCE, || {
            Some(self.in_flight()).filter(|n| *n > 0)
        })
    }

    /// Source records delivered so far.
    pub fn delivered(&self) -> u64 {
        Counters::get(&self.counters().delivered_records)
    }

    /// Waits until so many source records have been settled, in whatever way.
    pub fn wait_settled(&self, records: u64, within: Duration) {
        let settled = || {
            let c = self.counters();
            [
                &c.delivered_records,
                &c.dropped_records,
                &c.skipped_records,
                &c.dead_lettered_records,
            ]
            .map(Counters::get)
            .iter()
            .sum::<u64>()
        };
        let what = || {
            format!(
                "{records} records settled, {} are; {:?} {:?}",
                settled(),
                self.view().condition(),
                self.partitions()
            )
        };
        let deadline = Instant::now() + within;
        while settled() < records {
            assert!(
                Instant::now() < deadline,
                "not within {within:?}: {}",
                what()
            );
            std::thread::sleep(Duration::from_millis(25));
        }
    }

    /// Waits until a partition's condition has this reason.
    pub fn wait_reason(
        &self,
        partition: &TopicPartition,
        code: &str,
        within: Duration,
    ) -> PartitionView {
        wait::find(&format!("{partition} says {code}"), within, || {
            let view = self.partitions().remove(partition)?;
            let reason = view.condition.reason.as_ref()?;
            (reason.code() == code).then_some(view)
        })
    }

    /// Waits until it owns so many partitions, all of which run.
    pub fn wait_running(&self, partitions: usize) {
        use mirror::observe::State;
        wait::until(
            &format!("{partitions} partitions run"),
            wait::PATIENCE,
            || {
                let all = self.partitions();
                all.len() == partitions
                    && all
                        .values()
                        .all(|p| matches!(p.condition.state, State::Running | State::Lagging))
            },
        );
    }

    /// Waits until the lag of every partition is known and nothing.
    pub fn wait_no_lag(&self, within: Duration) {
        let (mut lag, mut known) = (0, false);
        let deadline = Instant::now() + within;
        while !known || lag > 0 {
            (lag, known) = self.view().lag();
            assert!(
                Instant::now() < deadline,
                "lag {lag}, known {known}: {:?}",
                self.partitions()
            );
            std::thread::sleep(Duration::from_millis(25));
        }
    }

    /// Waits for its end.
    pub fn wait_exit(&self, within: Duration) -> FlowExit {
        match self.exit.recv_timeout(within) {
            Ok(exit) => exit,
            Err(_) => panic!(
                "no end within {within:?}: {:?} {:?}",
                self.view().condition(),
                self.partitions()
            ),
        }
    }

    /// Asks it to stop gently, and waits for its end.
    pub fn drain(self) -> FlowExit {
        self.handle.drain(Instant::now() + Duration::from_secs(25));
        self.wait_exit(Duration::from_secs(30))
    }
}

/// The engine's log, if `LOG` says which of it.
pub fn log() {
    let filter = std::env::var("LOG").unwrap_or_else(|_| "off".to_owned());
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_test_writer()
        .try_init();
}
