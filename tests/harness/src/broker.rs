//! One broker of a cluster, and everything that can be done to it.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::builder::ClusterBuilder;
use crate::error::{Attempt, HarnessError};
use crate::jars::LOG;
use crate::listener::Listener;
use crate::ports::Port;
use crate::prepared::Kafka;
use crate::process::Process;
use crate::proxy::Proxy;
use crate::wire;

/// An idle broker ends within a second; one that writes a class archive takes longer.
const STOP_PATIENCE: Duration = Duration::from_secs(60);
/// A ready broker answers at once, a frozen one never.
const ANSWER_PATIENCE: Duration = Duration::from_secs(1);
/// Takes what Java itself says, such as why it cannot start.
const CONSOLE: &str = "console.log";
/// Its settings.
pub(crate) const PROPERTIES: &str = "server.properties";

/// One broker, which is a controller as well.
///
/// Its ports and its data stay as they are while it is down.
#[derive(Debug)]
pub struct Broker {
    cluster: String,
    id: i32,
    dir: PathBuf,
    ports: Vec<(Listener, Port)>,
    proxy: Option<Proxy>,
    kafka: Arc<Kafka>,
    jvm_args: Vec<String>,
    life: Mutex<Life>,
}

#[derive(Debug)]
enum Life {
    Down,
    Running(Process),
    Frozen(Process),
}

impl Broker {
    /// A broker that is not running yet; `dir` holds its settings and its formatted data folder.
    pub(crate) fn new(
        spec: &ClusterBuilder,
        id: i32,
        dir: PathBuf,
        ports: Vec<(Listener, Port)>,
        proxy: Option<Proxy>,
        kafka: Arc<Kafka>,
    ) -> Self {
        let life = Mutex::new(Life::Down);
        Self {
            cluster: spec.name.clone(),
            id,
            dir,
            ports,
            proxy,
            kafka,
            jvm_args: spec.jvm_args.clone(),
            life,
        }
    }

    /// Its node id; the first broker has 1.
    #[must_use]
    pub fn id(&self) -> i32 {
        self.id
    }

    /// `host:port` of its plaintext listener.
    #[must_use]
    pub fn bootstrap(&self) -> String {
        self.address(Listener::Plaintext)
    }

    /// Its process id, if it is running.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        match &*self.life() {
            Life::Down => None,
            Life::Running(process) | Life::Frozen(process) => Some(process.pid()),
        }
    }

    /// Whether it has been started and neither killed nor stopped. A frozen broker is running.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.pid().is_some()
    }

    /// Ends it as `kill -9` or a power cut does. If it is down already, nothing happens.
    ///
    /// # Errors
    ///
    /// If the system refuses.
    pub fn kill(&self) -> Result<(), HarnessError> {
        let mut life = self.life();
        match &mut *life {
            Life::Down => return Ok(()),
            Life::Running(process) | Life::Frozen(process) => {
                process.kill().attempt(|| self.doing("kill"))?
            }
        };
        *life = Life::Down;
        Ok(())
    }

    /// Asks it to end (SIGTERM) and waits until it has: it hands over what it leads and flushes its logs.
    ///
    /// # Errors
    ///
    /// If it does not end within a minute; then it is killed.
    pub fn stop(&self) -> Result<(), HarnessError> {
        self.thaw_if_frozen()?;
        let mut life = self.life();
        let Life::Running(process) = &mut *life else {
            return Ok(());
        };
        process
            .signal(libc::SIGTERM)
            .attempt(|| self.doing("stop"))?;
        let ended = process
            .wait_until(Instant::now() + STOP_PATIENCE)
            .attempt(|| self.doing("stop"))?;
        *life = Life::Down; // which kills what has not ended
        drop(life);
        match ended {
            Some(_) => Ok(()),
            None => Err(HarnessError::ProgramTimedOut {
                program: format!("broker {} of cluster {}", self.id, self.cluster),
                within: STOP_PATIENCE,
                output: self.log_tail(40),
            }),
        }
    }

    /// Starts it again, on the same ports and with the same data; first stops it if it is running.
    ///
    /// It is on its way when this returns: see [`Cluster::wait_ready`](crate::Cluster::wait_ready).
    ///
    /// # Errors
    ///
    /// If it does not stop, or if the system does not start it.
    pub fn restart(&self) -> Result<(), HarnessError> {
        self.stop()?;
        let mut options = self.kafka.options();
        options.push("-Xmx512m".to_owned());
        options.extend(self.jvm_args.iter().cloned());
        let console = self.dir.join(CONSOLE);
        let open = || File::options().create(true).append(true).open(&console);
        let (stdout, stderr) = open()
            .and_then(|out| Ok((out, open()?)))
            .attempt(|| format!("write {}", console.display()))?;
        let mut command = self.kafka.jars.command("kafka.Kafka", &self.dir, &options);
        command
            .arg(PROPERTIES)
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(stderr);
        *self.life() = Life::Running(Process::spawn(command).attempt(|| self.doing("start"))?);
        Ok(())
    }

    /// Stops its clock (SIGSTOP): connections stay open, and nothing is answered.
    ///
    /// # Errors
    ///
    /// If it is not running, or if the system refuses.
    pub fn freeze(&self) -> Result<(), HarnessError> {
        self.signal(libc::SIGSTOP, "freeze", Life::Frozen)
    }

    /// Lets it go on (SIGCONT).
    ///
    /// # Errors
    ///
    /// If it is not running, or if the system refuses.
    pub fn thaw(&self) -> Result<(), HarnessError> {
        self.signal(libc::SIGCONT, "thaw", Life::Running)
    }

    /// From now on no file of it can grow, as on a full disk; Kafka ends a broker that cannot write its log. The next
    /// [`restart`](Self::restart) finds room again.
    ///
    /// # Errors
    ///
    /// If it is not running, or if the system refuses.
    pub fn fill_disk(&self) -> Result<(), HarnessError> {
        match &*self.life() {
            Life::Down => Err(self.not_running()),
            Life::Running(process) | Life::Frozen(process) => process
                .limit_files(0)
                .attempt(|| self.doing("fill the disk of")),
        }
    }

    /// Waits until it has ended by itself, and how; `None` if it has not within that time.
    ///
    /// # Errors
    ///
    /// If it is not running, or if the system does not say.
    pub fn wait_ended(&self, within: Duration) -> Result<Option<ExitStatus>, HarnessError> {
        let mut life = self.life();
        let ended = match &mut *life {
            Life::Down => return Err(self.not_running()),
            Life::Running(process) | Life::Frozen(process) => process
                .wait_until(Instant::now() + within)
                .attempt(|| self.doing("wait for"))?,
        };
        if ended.is_some() {
            *life = Life::Down;
        }
        Ok(ended)
    }

    /// The proxy in front of it.
    ///
    /// # Panics
    ///
    /// If the cluster was built without [`ClusterBuilder::proxied`](crate::ClusterBuilder::proxied).
    #[must_use]
    pub fn proxy(&self) -> &Proxy {
        let Some(proxy) = &self.proxy else {
            panic!("cluster {} was built without proxied()", self.cluster)
        };
        proxy
    }

    /// The last `lines` of its log, and before them whatever Java itself has said.
    #[must_use]
    pub fn log_tail(&self, lines: usize) -> String {
        let console = tail(&self.dir.join(CONSOLE), lines);
        let log = tail(&self.dir.join(LOG), lines);
        console + &log
    }

    /// Its data folder.
    #[must_use]
    pub fn data(&self) -> PathBuf {
        data_dir(&self.dir)
    }

    pub(crate) fn port(&self, wanted: Listener) -> Option<u16> {
        self.ports
            .iter()
            .find(|(listener, _)| *listener == wanted)
            .map(|(_, port)| port.number())
    }

    /// # Panics
    ///
    /// If it has no such listener.
    pub(crate) fn address(&self, listener: Listener) -> String {
        let Some(port) = self.port(listener) else {
            panic!(
                "cluster {} was built without the listener {}: see the methods of ClusterBuilder",
                self.cluster,
                listener.name()
            );
        };
        format!("127.0.0.1:{port}")
    }

    /// Which brokers it takes for alive; none if it is down or frozen and so cannot be asked.
    pub(crate) fn members(&self) -> Option<io::Result<Vec<i32>>> {
        if !matches!(*self.life(), Life::Running(_)) {
            return None;
        }
        let port = self.port(Listener::Plaintext)?;
        Some(wire::members(port, ANSWER_PATIENCE))
    }

    /// Refuses if it has ended by itself.
    pub(crate) fn check_alive(&self) -> Result<(), HarnessError> {
        let ended = match &mut *self.life() {
            Life::Down => None,
            Life::Running(process) | Life::Frozen(process) => {
                process.ended().attempt(|| self.doing("look at"))?
            }
        };
        match ended {
            None => Ok(()),
            Some(status) => Err(HarnessError::BrokerEnded {
                cluster: self.cluster.clone(),
                broker: self.id,
                status,
                log_tail: self.log_tail(40),
            }),
        }
    }

    fn signal(
        &self,
        signal: i32,
        verb: &str,
        then: fn(Process) -> Life,
    ) -> Result<(), HarnessError> {
        let mut life = self.life();
        match std::mem::replace(&mut *life, Life::Down) {
            Life::Down => Err(self.not_running()),
            Life::Running(mut process) | Life::Frozen(mut process) => {
                let sent = process.signal(signal).attempt(|| self.doing(verb));
                *life = then(process);
                sent
            }
        }
    }

    fn thaw_if_frozen(&self) -> Result<(), HarnessError> {
        let frozen = matches!(*self.life(), Life::Frozen(_));
        if frozen { self.thaw() } else { Ok(()) }
    }

    fn not_running(&self) -> HarnessError {
        HarnessError::NotRunning {
            cluster: self.cluster.clone(),
            broker: self.id,
        }
    }

    fn doing(&self, verb: &str) -> String {
        format!("{verb} broker {} of cluster {}", self.id, self.cluster)
    }

    /// A test that panicked while it held the lock must not keep the next from killing the broker.
    fn life(&self) -> MutexGuard<'_, Life> {
        self.life.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The data folder of the broker that lives in `dir`.
pub(crate) fn data_dir(dir: &Path) -> PathBuf {
    dir.join("data")
}

fn tail(file: &Path, lines: usize) -> String {
    let bytes = fs::read(file).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..]
        .iter()
        .map(|line| format!("{line}\n"))
        .collect()
}
