//! What goes wrong between us and a broker.

use super::address::Address;
use super::message::Api;
use super::message::read::Malformed;
use std::time::Duration;

/// A fault, with the broker that it concerns.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("broker {broker}: {trouble}")]
pub struct Fault {
    /// The broker.
    pub broker: Address,
    /// What it is.
    pub trouble: Trouble,
}

/// What it is. After any of these the connection is of no use any more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// No connection came about.
    #[error("no connection: {0}")]
    Unreachable(String),
    /// The TLS handshake failed.
    #[error(
        "no TLS: {0}; compare the cluster's tls.ca, certificate and key with what the broker has"
    )]
    Tls(String),
    /// It does not take who we say we are.
    #[error("{mechanism} was refused: {detail}; look at the cluster's sasl.username and password")]
    Refused {
        /// The SASL mechanism.
        mechanism: &'static str,
        /// Its words.
        detail: String,
    },
    /// It speaks no version of a message that we speak.
    #[error("it speaks {} in versions {} to {}, mirror in {} to {}", api.as_str(), theirs.0, theirs.1, api.speaks().0, api.speaks().1)]
    Version {
        /// The message.
        api: Api,
        /// Its versions.
        theirs: (i16, i16),
    },
    /// It did not answer in time.
    #[error("no answer to {} within {} ms", api.as_str(), after.as_millis())]
    Silent {
        /// What was asked.
        api: Api,
        /// How long.
        after: Duration,
    },
    /// The connection ended.
    #[error("the connection ended: {0}")]
    Closed(String),
    /// What it sent is no answer.
    #[error("what it sent is no answer to {}: {detail}", api.as_str())]
    Malformed {
        /// What was asked.
        api: Api,
        /// What is wrong.
        detail: Malformed,
    },
}

impl Trouble {
    /// With the broker's address.
    pub fn at(self, broker: &Address) -> Fault {
        Fault {
            broker: broker.clone(),
            trouble: self,
        }
    }
}
