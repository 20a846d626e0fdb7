//! A running cluster.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::broker::Broker;
use crate::builder::ClusterBuilder;
use crate::certs::Certs;
use crate::error::{Attempt, HarnessError};
use crate::folder::Folder;
use crate::listener::Listener;
use crate::prepared::Kafka;
use crate::process::POLL;
use crate::properties::{INTERNAL_USER, Properties, client_login};
use crate::tool::{RunningTool, run};

/// A tool that asks an unreachable cluster would go on asking for minutes.
const TOOL_PATIENCE: Duration = Duration::from_secs(60);
const TAIL: usize = 40;

/// A cluster on loopback. Dropping it kills its brokers and removes its folder.
///
/// If a test panics, the end of the brokers' logs is printed first. With `MIRROR_KEEP=1` the folder stays.
#[derive(Debug)]
pub struct Cluster {
    pub(crate) name: String,
    pub(crate) id: String,
    // Dropped in this order: the brokers first, then the folder they write to.
    pub(crate) brokers: Vec<Broker>,
    pub(crate) certs: Option<Certs>,
    pub(crate) kafka: Arc<Kafka>,
    pub(crate) folder: Folder,
}

impl Cluster {
    /// Begins to describe a cluster.
    #[must_use]
    pub fn builder(name: impl Into<String>) -> ClusterBuilder {
        ClusterBuilder::new(name)
    }

    /// The name it was given.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Kafka's id of the cluster.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// A folder that lives as long as the cluster, for whatever a test wants to put beside it.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// All brokers, the first with node id 1.
    #[must_use]
    pub fn brokers(&self) -> &[Broker] {
        &self.brokers
    }

    /// The broker with this node id; the first has 1.
    ///
    /// # Panics
    ///
    /// If there is none.
    #[must_use]
    pub fn broker(&self, id: i32) -> &Broker {
        self.brokers
            .iter()
            .find(|broker| broker.id() == id)
            .unwrap_or_else(|| {
                panic!(
                    "cluster {} has brokers 1 to {}, not {id}",
                    self.name,
                    self.brokers.len()
                )
            })
    }

    /// `host:port` of each broker's plaintext listener, with commas between them. It is always there.
    #[must_use]
    pub fn bootstrap(&self) -> String {
        self.addresses(Listener::Plaintext)
    }

    /// The TLS listeners.
    ///
    /// # Panics
    ///
    /// If the cluster was built without [`ClusterBuilder::tls`].
    #[must_use]
    pub fn bootstrap_tls(&self) -> String {
        self.addresses(Listener::Tls)
    }

    /// The listeners for SASL/PLAIN without TLS.
    ///
    /// # Panics
    ///
    /// If the cluster was built without [`ClusterBuilder::sasl_plain`].
    #[must_use]
    pub fn bootstrap_sasl_plain(&self) -> String {
        self.addresses(Listener::SaslPlain)
    }

    /// The listeners for SCRAM-SHA-256 and SCRAM-SHA-512 without TLS.
    ///
    /// # Panics
    ///
    /// If the cluster was built without [`ClusterBuilder::scram`].
    #[must_use]
    pub fn bootstrap_scram(&self) -> String {
        self.addresses(Listener::Scram)
    }

    /// The listeners for SASL/OAUTHBEARER without TLS.
    ///
    /// # Panics
    ///
    /// If the cluster was built without [`ClusterBuilder::tokens`].
    #[must_use]
    pub fn bootstrap_tokens(&self) -> String {
        self.addresses(Listener::Token)
    }

    /// The proxies in front of the brokers: [`Broker::proxy`].
    ///
    /// # Panics
    ///
    /// If the cluster was built without [`ClusterBuilder::proxied`].
    #[must_use]
    pub fn bootstrap_proxied(&self) -> String {
        let proxies = self.brokers.iter().map(|b| b.proxy().address().to_string());
        proxies.collect::<Vec<_>>().join(",")
    }

    /// The listeners for every SASL mechanism the cluster has, over TLS.
    ///
    /// # Panics
    ///
    /// If the cluster was built without [`ClusterBuilder::tls`], or without any user.
    #[must_use]
    pub fn bootstrap_sasl_tls(&self) -> String {
        self.addresses(Listener::SaslTls)
    }

    /// The certificate authority that a client has to trust, in PEM.
    ///
    /// # Panics
    ///
    /// If the cluster was built without [`ClusterBuilder::tls`]; so do the next two.
    #[must_use]
    pub fn ca_pem(&self) -> &Path {
        &self.certs().ca
    }

    /// A client's certificate in PEM; with it a client is `User:CN=client`.
    #[must_use]
    pub fn client_cert_pem(&self) -> &Path {
        &self.certs().client
    }

    /// The key to [`client_cert_pem`](Self::client_cert_pem), in PEM and without a password.
    #[must_use]
    pub fn client_key_pem(&self) -> &Path {
        &self.certs().client_key
    }

    /// Waits until every broker that runs answers and knows all others that run. Frozen ones are not asked.
    ///
    /// # Errors
    ///
    /// If that takes longer than `within`, or if a broker has ended by itself.
    pub fn wait_ready(&self, within: Duration) -> Result<(), HarnessError> {
        let running: Vec<i32> = self
            .brokers
            .iter()
            .filter(|b| b.is_running())
            .map(Broker::id)
            .collect();
        self.wait_until(
            within,
            |members| running.iter().all(|id| members.contains(id)),
            &running,
        )
    }

    /// Waits until every broker that can be asked takes exactly these for alive: until a killed one has been fenced.
    ///
    /// # Errors
    ///
    /// If that takes longer than `within`, or if a broker has ended by itself.
    pub fn wait_members(&self, ids: &[i32], within: Duration) -> Result<(), HarnessError> {
        let mut ids = ids.to_vec();
        ids.sort_unstable();
        self.wait_until(within, |members| members == ids, &ids)
    }

    /// Runs the main class of a Java tool of Kafka to its end, and gives what it printed on its standard output.
    ///
    /// It costs about a second: not for loops.
    ///
    /// # Errors
    ///
    /// If it does not succeed within a minute; the error holds both its streams.
    pub fn tool(&self, main: &str, args: &[&str]) -> Result<String, HarnessError> {
        run(main, self.java(main, args), TOOL_PATIENCE)
    }

    /// As [`tool`](Self::tool), for tools that ask the cluster: `--bootstrap-server` and `--command-config` are added, so
    /// that they may do everything whatever the ACLs say.
    ///
    /// # Errors
    ///
    /// As [`tool`](Self::tool).
    pub fn admin(&self, main: &str, args: &[&str]) -> Result<String, HarnessError> {
        let config = self.admin_config().display().to_string();
        let bootstrap = self.admin_bootstrap();
        let access = [
            "--bootstrap-server",
            &bootstrap,
            "--command-config",
            &config,
        ];
        self.tool(main, &[&access[..], args].concat())
    }

    /// Starts the main class of a Java tool and leaves it running.
    ///
    /// # Errors
    ///
    /// If the system does not start it.
    pub fn spawn_tool(&self, main: &str, args: &[&str]) -> Result<RunningTool, HarnessError> {
        RunningTool::spawn(main, self.java(main, args))
    }

    /// Grants: `cluster.acl_add(&["--allow-principal", "User:mirror", "--operation", "Read", "--topic", "orders"])`.
    ///
    /// # Errors
    ///
    /// As [`tool`](Self::tool).
    pub fn acl_add(&self, args: &[&str]) -> Result<(), HarnessError> {
        self.acl("--add", args)
    }

    /// Takes back what [`acl_add`](Self::acl_add) granted with the same arguments.
    ///
    /// # Errors
    ///
    /// As [`tool`](Self::tool).
    pub fn acl_remove(&self, args: &[&str]) -> Result<(), HarnessError> {
        self.acl("--remove", args)
    }

    /// The last `lines` of every broker's log.
    #[must_use]
    pub fn log_tail(&self, lines: usize) -> String {
        let tail =
            |b: &Broker| format!("--- {} broker {}\n{}", self.name, b.id(), b.log_tail(lines));
        self.brokers.iter().map(tail).collect()
    }

    /// What tools need to connect to [`admin_bootstrap`](Self::admin_bootstrap).
    pub(crate) fn write_admin_config(&self, acls: bool) -> Result<(), HarnessError> {
        let mut config = Properties::default();
        if acls {
            config.set("security.protocol", "SASL_PLAINTEXT");
            config.set("sasl.mechanism", "PLAIN");
            config.set("sasl.jaas.config", client_login(INTERNAL_USER, &self.id));
        }
        let file = self.admin_config();
        fs::write(&file, config.text()).attempt(|| format!("write {}", file.display()))
    }

    fn admin_config(&self) -> PathBuf {
        self.folder().join("admin.properties")
    }

    /// With ACLs the listener between brokers, where the harness has a name that may do everything.
    fn admin_bootstrap(&self) -> String {
        let internal = self
            .brokers
            .iter()
            .any(|broker| broker.port(Listener::Internal).is_some());
        self.addresses(if internal {
            Listener::Internal
        } else {
            Listener::Plaintext
        })
    }

    fn acl(&self, action: &str, args: &[&str]) -> Result<(), HarnessError> {
        self.admin(
            "org.apache.kafka.tools.AclCommand",
            &[&[action, "--force"][..], args].concat(),
        )
        .map(drop)
    }

    fn java(&self, main: &str, args: &[&str]) -> std::process::Command {
        let mut options = self.kafka.options();
        options.push("-Xmx256m".to_owned());
        let mut command = self.kafka.jars.command(main, self.folder(), &options);
        command.args(args);
        command
    }

    fn addresses(&self, listener: Listener) -> String {
        let all: Vec<String> = self
            .brokers
            .iter()
            .map(|broker| broker.address(listener))
            .collect();
        all.join(",")
    }

    fn certs(&self) -> &Certs {
        let Some(certs) = &self.certs else {
            panic!("cluster {} was built without tls()", self.name)
        };
        certs
    }

    fn wait_until(
        &self,
        within: Duration,
        good: impl Fn(&[i32]) -> bool,
        wanted: &[i32],
    ) -> Result<(), HarnessError> {
        let deadline = Instant::now() + within;
        loop {
            for broker in &self.brokers {
                broker.check_alive()?;
            }
            let Err(seen) = self.all_see(&good) else {
                return Ok(());
            };
            if Instant::now() >= deadline {
                return Err(HarnessError::NotReady {
                    cluster: self.name.clone(),
                    within,
                    missing: format!("wanted brokers {wanted:?}, but {seen}"),
                    log_tail: self.log_tail(TAIL),
                });
            }
            thread::sleep(POLL);
        }
    }

    /// Asks all brokers that can be asked; the first that does not see what is `good` is described.
    fn all_see(&self, good: impl Fn(&[i32]) -> bool) -> Result<(), String> {
        let mut asked = false;
        for broker in &self.brokers {
            match broker.members() {
                None => {}
                Some(Err(error)) => {
                    return Err(format!("broker {} does not answer: {error}", broker.id()));
                }
                Some(Ok(seen)) if !good(&seen) => {
                    return Err(format!("broker {} sees {seen:?}", broker.id()));
                }
                Some(Ok(_)) => asked = true,
            }
        }
        if asked {
            Ok(())
        } else {
            Err("no broker is running".to_owned())
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("{}", self.log_tail(TAIL));
        }
        if self.folder.is_kept() {
            eprintln!("cluster {} lived in {}", self.name, self.folder().display());
        }
    }
}
