//! The place a new cluster lives in: ports, settings and formatted data folders for each broker.

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::broker::{Broker, PROPERTIES, data_dir};
use crate::builder::ClusterBuilder;
use crate::certs::Certs;
use crate::error::{Attempt, HarnessError};
use crate::format::{first_metadata, format_broker};
use crate::listener::Listener;
use crate::ports::{self, Port};
use crate::prepared::Kafka;
use crate::properties::Node;
use crate::proxy::Proxy;

/// What all brokers of a cluster have in common.
pub(crate) struct Site<'a> {
    pub(crate) spec: &'a ClusterBuilder,
    pub(crate) kafka: &'a Arc<Kafka>,
    pub(crate) folder: &'a Path,
    pub(crate) certs: Option<&'a Certs>,
    pub(crate) cluster_id: &'a str,
}

/// The ports of one broker.
type Ports = Vec<(Listener, Port)>;
/// The same as numbers.
type Numbers = Vec<(Listener, u16)>;

impl Site<'_> {
    /// Brokers that only have to be started.
    pub(crate) fn brokers(&self) -> Result<Vec<Broker>, HarnessError> {
        let ports = self.claim_ports()?;
        let proxies = ports
            .iter()
            .map(|own| self.proxy(own))
            .collect::<Result<Vec<_>, _>>()?;
        let settings = self.settings(&ports, &proxies);
        let work = self.folder.join("format");
        let checkpoint = first_metadata(self.kafka, &work, &settings[0], &self.spec.scram_users)?;
        for (id, settings) in (1..).zip(&settings) {
            self.write(id, settings, &checkpoint)?;
        }
        let broker = |(id, (ports, proxy))| {
            Broker::new(
                self.spec,
                id,
                self.dir(id),
                ports,
                proxy,
                self.kafka.clone(),
            )
        };
        Ok((1..)
            .zip(ports.into_iter().zip(proxies))
            .map(broker)
            .collect())
    }

    /// The proxy in front of the broker with these ports, if it is to have one.
    fn proxy(&self, ports: &Ports) -> Result<Option<Proxy>, HarnessError> {
        let proxied = ports.iter().find(|(l, _)| *l == Listener::Proxied);
        proxied
            .map(|(_, port)| Proxy::start((Ipv4Addr::LOCALHOST, port.number()).into()))
            .transpose()
    }

    fn claim_ports(&self) -> Result<Vec<Ports>, HarnessError> {
        let listeners = Listener::of(self.spec);
        let brokers = self.spec.brokers;
        let mut ports = ports::claim(listeners.len() * brokers)?.into_iter();
        // `zip` asks the listeners first: asking the ports first, it would lose one port at the end of each broker.
        Ok((0..brokers)
            .map(|_| listeners.iter().copied().zip(ports.by_ref()).collect())
            .collect())
    }

    fn settings(&self, ports: &[Ports], proxies: &[Option<Proxy>]) -> Vec<String> {
        let numbers: Vec<Numbers> = ports
            .iter()
            .map(|own| {
                own.iter()
                    .map(|(listener, port)| (*listener, port.number()))
                    .collect()
            })
            .collect();
        let controllers = numbers
            .iter()
            .flatten()
            .filter(|(listener, _)| *listener == Listener::Controller);
        let voters: Vec<(i32, u16)> = (1..).zip(controllers.map(|(_, port)| *port)).collect();
        let node = |(id, (listeners, proxy)): (i32, (&Numbers, &Option<Proxy>))| {
            let data = data_dir(&self.dir(id));
            Node {
                spec: self.spec,
                id,
                data: &data,
                listeners,
                proxy: proxy.as_ref().map(|proxy| proxy.address().port()),
                voters: &voters,
                certs: self.certs,
                // It keeps nobody out who could read the folder; it only has to be known to the brokers.
                internal_password: self.cluster_id,
            }
            .render()
        };
        (1..).zip(numbers.iter().zip(proxies)).map(node).collect()
    }

    fn write(&self, id: i32, settings: &str, checkpoint: &Path) -> Result<(), HarnessError> {
        let dir = self.dir(id);
        let file = dir.join(PROPERTIES);
        fs::create_dir_all(&dir)
            .and_then(|()| fs::write(&file, settings))
            .attempt(|| format!("write {}", file.display()))?;
        format_broker(&data_dir(&dir), id, self.cluster_id, checkpoint)
    }

    fn dir(&self, id: i32) -> PathBuf {
        self.folder.join(format!("broker-{id}"))
    }
}
