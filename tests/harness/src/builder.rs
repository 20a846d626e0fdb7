//! What a cluster shall be like, and its start.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::certs::Certs;
use crate::cluster::Cluster;
use crate::error::HarnessError;
use crate::folder::Folder;
use crate::format::new_id;
use crate::prepared::Kafka;
use crate::site::Site;

/// A stranger's program may take a port between our look and the broker's start; hardly three times.
const PORT_ATTEMPTS: usize = 3;

/// Describes a cluster. Everything is off at first: one broker, one plaintext listener, no ACLs.
#[derive(Debug, Clone)]
pub struct ClusterBuilder {
    pub(crate) name: String,
    pub(crate) brokers: usize,
    pub(crate) tls: bool,
    pub(crate) plain_users: Vec<(String, String)>,
    pub(crate) scram_users: Vec<(String, String)>,
    pub(crate) tokens: bool,
    pub(crate) acls: Option<Acls>,
    pub(crate) proxied: bool,
    pub(crate) properties: Vec<(String, String)>,
    pub(crate) jvm_args: Vec<String>,
    pub(crate) start_timeout: Duration,
}

/// Who may do everything.
#[derive(Debug, Clone)]
pub(crate) struct Acls {
    pub(crate) super_users: Vec<String>,
    pub(crate) deny_anonymous: bool,
}

impl ClusterBuilder {
    pub(crate) fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            brokers: 1,
            tls: false,
            plain_users: Vec::new(),
            scram_users: Vec::new(),
            tokens: false,
            acls: None,
            proxied: false,
            properties: Vec::new(),
            jvm_args: Vec::new(),
            start_timeout: Duration::from_secs(60),
        }
    }

    /// How many brokers; each is a controller as well. Three keep three copies of internal topics and need two in sync.
    ///
    /// # Panics
    ///
    /// If there are fewer than 1 or more than 9.
    #[must_use]
    pub fn brokers(mut self, count: usize) -> Self {
        assert!(
            (1..=9).contains(&count),
            "a cluster has 1 to 9 brokers, not {count}"
        );
        self.brokers = count;
        self
    }

    /// A listener with TLS: [`Cluster::bootstrap_tls`].
    #[must_use]
    pub fn tls(mut self) -> Self {
        self.tls = true;
        self
    }

    /// A user with SASL/PLAIN: [`Cluster::bootstrap_sasl_plain`], and with TLS [`Cluster::bootstrap_sasl_tls`].
    #[must_use]
    pub fn sasl_plain(mut self, user: &str, password: &str) -> Self {
        self.plain_users
            .push((user.to_owned(), password.to_owned()));
        self
    }

    /// A user with SCRAM-SHA-256 and SCRAM-SHA-512: [`Cluster::bootstrap_scram`], and with TLS
    /// [`Cluster::bootstrap_sasl_tls`]. Costs a second at the start.
    #[must_use]
    pub fn scram(mut self, user: &str, password: &str) -> Self {
        self.scram_users
            .push((user.to_owned(), password.to_owned()));
        self
    }

    /// Users with SASL/OAUTHBEARER and unsecured tokens: [`Cluster::bootstrap_tokens`].
    #[must_use]
    pub fn tokens(mut self) -> Self {
        self.tokens = true;
        self
    }

    /// Turns on ACLs. Whoever is not a super user may do nothing until [`Cluster::acl_add`] grants it.
    ///
    /// Super users are written as principals, `User:alice`. Clients without a name are super users as well, until
    /// [`acls_deny_anonymous`](Self::acls_deny_anonymous).
    #[must_use]
    pub fn acls(mut self, super_users: &[&str]) -> Self {
        let super_users = super_users.iter().map(|user| (*user).to_owned()).collect();
        let deny_anonymous = self.acls.is_some_and(|acls| acls.deny_anonymous);
        self.acls = Some(Acls {
            super_users,
            deny_anonymous,
        });
        self
    }

    /// Turns on ACLs, also for clients without a name: those on the plaintext listener, and on the TLS listener those
    /// without a certificate.
    #[must_use]
    pub fn acls_deny_anonymous(mut self) -> Self {
        self.acls
            .get_or_insert(Acls {
                super_users: Vec::new(),
                deny_anonymous: true,
            })
            .deny_anonymous = true;
        self
    }

    /// A listener behind a proxy in front of each broker, whose network can be made bad: [`Cluster::bootstrap_proxied`] and
    /// [`Broker::proxy`](crate::Broker::proxy). It takes SASL/PLAIN if there are users for it. Brokers do not speak to each other through it.
    #[must_use]
    pub fn proxied(mut self) -> Self {
        self.proxied = true;
        self
    }

    /// A line of every broker's `server.properties`; it wins over the harness's own.
    #[must_use]
    pub fn property(mut self, key: &str, value: impl Into<String>) -> Self {
        self.properties.push((key.to_owned(), value.into()));
        self
    }

    /// An option for every broker's Java; it wins over the harness's own.
    ///
    /// For measurements `-XX:TieredStopAtLevel=4` brings back the optimising compiler, and `-Xmx2g` a larger heap.
    #[must_use]
    pub fn jvm_arg(mut self, arg: impl Into<String>) -> Self {
        self.jvm_args.push(arg.into());
        self
    }

    /// How long the start may take; a minute at first.
    #[must_use]
    pub fn start_timeout(mut self, timeout: Duration) -> Self {
        self.start_timeout = timeout;
        self
    }

    /// Starts the cluster and waits until it is ready.
    ///
    /// The very first start on a machine prepares Kafka, which takes ten to thirty seconds more.
    ///
    /// # Errors
    ///
    /// If Java, the jars or `openssl` are missing, or if a broker does not come up; the error holds the end of its log.
    pub fn start(self) -> Result<Cluster, HarnessError> {
        self.start_with(&Kafka::prepared()?)
    }

    pub(crate) fn start_with(self, kafka: &Arc<Kafka>) -> Result<Cluster, HarnessError> {
        for _ in 1..PORT_ATTEMPTS {
            match self.start_once(kafka) {
                Err(HarnessError::BrokerEnded { log_tail, .. })
                    if log_tail.contains("Address already in use") => {}
                started_or_not => return started_or_not,
            }
        }
        self.start_once(kafka)
    }

    fn start_once(&self, kafka: &Arc<Kafka>) -> Result<Cluster, HarnessError> {
        let folder = Folder::create(&self.name)?;
        let certs = self
            .tls
            .then(|| Certs::create(&folder.path().join("tls")))
            .transpose()?;
        let id = new_id()?;
        let site = Site {
            spec: self,
            kafka,
            folder: folder.path(),
            certs: certs.as_ref(),
            cluster_id: &id,
        };
        let brokers = site.brokers()?;
        let cluster = Cluster {
            name: self.name.clone(),
            id,
            brokers,
            certs,
            kafka: kafka.clone(),
            folder,
        };
        cluster.write_admin_config(self.acls.is_some())?;
        for broker in &cluster.brokers {
            broker.restart()?;
        }
        cluster.wait_ready(self.start_timeout)?;
        Ok(cluster)
    }
}

/// Starts several clusters side by side, and waits until all are ready.
///
/// # Errors
///
/// As [`ClusterBuilder::start`]; those that did start are ended again.
pub fn start_all<const N: usize>(
    builders: [ClusterBuilder; N],
) -> Result<[Cluster; N], HarnessError> {
    let clusters = start_each(builders)?;
    Ok(clusters
        .try_into()
        .unwrap_or_else(|_| unreachable!("each builder starts one cluster")))
}

/// Like [`start_all`], for a number of clusters that is not known beforehand.
///
/// # Errors
///
/// As [`ClusterBuilder::start`]; those that did start are ended again.
pub fn start_each(
    builders: impl IntoIterator<Item = ClusterBuilder>,
) -> Result<Vec<Cluster>, HarnessError> {
    thread::scope(|scope| {
        let starts: Vec<_> = builders
            .into_iter()
            .map(|builder| scope.spawn(move || builder.start()))
            .collect();
        let join = |start: thread::ScopedJoinHandle<'_, _>| {
            start
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        starts.into_iter().map(join).collect()
    })
}
