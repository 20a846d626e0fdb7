//! The place a new cluster lives in: ports, settings and formatted data folders for each broker.

use std::fs;
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

impl Site<'_> {
    /// Brokers that only have to be started.
    pub(crate) fn brokers(&self) -> Result<Vec<Broker>, HarnessError> {
        let ports = self.claim_ports()?;
        let settings = self.settings(&ports);
        let work = self.folder.join("format");
        let checkpoint = first_metadata(self.kafka, &work, &settings[0], &self.spec.scram_users)?;
        for (id, settings) in (1..).zip(&settings) {
            self.write(id, settings, &checkpoint)?;
        }
        let broker =
            |(id, ports)| Broker::new(self.spec, id, self.dir(id), ports, self.kafka.clone());
        Ok((1..).zip(ports).map(broker).collect())
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

    fn settings(&self, ports: &[Ports]) -> Vec<String> {
        let numbers: Vec<Vec<(Listener, u16)>> = ports
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
        let node = |(id, listeners): (i32, &Vec<(Listener, u16)>)| {
            let data = data_dir(&self.dir(id));
            Node {
                spec: self.spec,
                id,
                data: &data,
                listeners,
                voters: &voters,
                certs: self.certs,
                // It keeps nobody out who could read the folder; it only has to be known to the brokers.
                internal_password: self.cluster_id,
            }
            .render()
        };
        (1..).zip(&numbers).map(node).collect()
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
