//! Real Apache Kafka for tests: clusters on loopback that start in seconds and leave nothing behind.
//!
//! ```no_run
//! use kafka_harness::{Cluster, start_all};
//! use std::time::Duration;
//!
//! # fn main() -> Result<(), kafka_harness::HarnessError> {
//! let [source, target] = start_all([
//!     Cluster::builder("source").brokers(3),
//!     Cluster::builder("target").tls().sasl_plain("mirror", "secret").acls(&[]),
//! ])?;
//! println!("{} -> {}", source.bootstrap(), target.bootstrap_sasl_tls());
//!
//! source.broker(2).kill()?; // as `kill -9` does
//! source.wait_members(&[1, 3], Duration::from_secs(30))?;
//! source.broker(2).restart()?; // same ports, same data
//! source.wait_ready(Duration::from_secs(30))?;
//! # Ok(())
//! # }
//! ```
//!
//! # How a cluster starts
//!
//! [`ClusterBuilder::start`] → `jars` finds Java and the jars → `prepared` makes, once, what every later start is
//! faster by → `ports` claims the ports → `folder` makes the temporary folder → `site` fills it, with what `certs`,
//! `properties` and `format` make, and with `proxy` in front of the brokers → `broker` starts the processes through `process` → `wire` asks each broker whether all are members.
//!
//! # What is left behind
//!
//! Nothing: a [`Cluster`] kills its brokers and removes its folder when it is dropped, after a panic too. If the test
//! process is killed, the kernel kills the brokers (`process`), and the next start removes the folder (`folder`).
//! Set `MIRROR_KEEP=1` to keep the folders.
//!
//! Only Linux is supported.

mod jars;

mod prepared;

mod ports;

mod folder;

mod certs;
mod format;
mod listener;
mod properties;
mod site;

mod broker;
mod process;
mod proxy;

mod wire;

mod builder;
mod cluster;
mod tool;

mod error;

pub use broker::Broker;
pub use builder::{ClusterBuilder, start_all, start_each};
pub use cluster::Cluster;
pub use error::HarnessError;
pub use process::spawn;
pub use proxy::{Link, Proxy, Toll, Traffic, Way};
pub use tool::RunningTool;
