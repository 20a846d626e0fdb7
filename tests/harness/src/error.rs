//! What can go wrong, and what to do about it.

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

/// Why a cluster did not do what was asked of it.
///
/// Everything here is caused by the environment. A mistake in a test, such as asking for a listener that was not
/// built, panics instead, and the method says so.
#[derive(Debug, thiserror::Error)]
pub enum HarnessError {
    /// The folder of jars is missing or holds no Kafka.
    #[error("no Kafka jars in {}: run scripts/kafka-jars, or set MIRROR_KAFKA_LIB to the folder of an installed Kafka", .lib.display())]
    NoJars {
        /// The folder that was looked at.
        lib: PathBuf,
    },

    /// There is no `java` to run.
    #[error(
        "no java on PATH nor in JAVA_HOME: run scripts/setup test, or install a JDK, 17 or newer"
    )]
    NoJava,

    /// All candidate ports are taken.
    #[error(
        "fewer than {wanted} free loopback ports between {from} and {to}: stop what listens there"
    )]
    NoPorts {
        /// How many ports the cluster needs.
        wanted: usize,
        /// First candidate.
        from: u16,
        /// One past the last candidate.
        to: u16,
    },

    /// The operating system refused something.
    #[error("cannot {what}")]
    Io {
        /// What was tried.
        what: String,
        /// What the system said.
        source: io::Error,
    },

    /// `openssl`, `StorageTool` or another program did not do its part.
    #[error("{program} failed ({status})\n{output}")]
    Program {
        /// The program, or the main class of a Java tool.
        program: String,
        /// How it ended.
        status: ExitStatus,
        /// What it printed, on both streams.
        output: String,
    },

    /// A program did not end in time; it was killed.
    #[error("{program} did not end within {within:?}\n{output}")]
    ProgramTimedOut {
        /// The program, or the main class of a Java tool.
        program: String,
        /// How long it was given.
        within: Duration,
        /// What it had printed, on both streams.
        output: String,
    },

    /// A broker ended although nobody asked it to.
    #[error(
        "broker {broker} of cluster {cluster} ended ({status}); the end of its log:\n{log_tail}"
    )]
    BrokerEnded {
        /// The cluster's name.
        cluster: String,
        /// The broker's node id.
        broker: i32,
        /// How it ended.
        status: ExitStatus,
        /// The end of its log.
        log_tail: String,
    },

    /// The cluster did not reach the wanted state in time.
    #[error(
        "cluster {cluster} did not get there within {within:?}: {missing}; the end of the logs:\n{log_tail}"
    )]
    NotReady {
        /// The cluster's name.
        cluster: String,
        /// How long it was given.
        within: Duration,
        /// What was still missing at the last look.
        missing: String,
        /// The end of the brokers' logs.
        log_tail: String,
    },

    /// Something was asked of a broker that is not running.
    #[error("broker {broker} of cluster {cluster} is not running: restart it first")]
    NotRunning {
        /// The cluster's name.
        cluster: String,
        /// The broker's node id.
        broker: i32,
    },
}

/// Says what was tried when the system refuses it.
pub(crate) trait Attempt<T> {
    /// Turns an [`io::Error`] into [`HarnessError::Io`]; `what` completes "cannot …".
    fn attempt(self, what: impl FnOnce() -> String) -> Result<T, HarnessError>;
}

impl<T> Attempt<T> for io::Result<T> {
    fn attempt(self, what: impl FnOnce() -> String) -> Result<T, HarnessError> {
        self.map_err(|source| HarnessError::Io {
            what: what(),
            source,
        })
    }
}
