//! The closed sets of words that settings take.

use schemars::JsonSchema;
use serde::Deserialize;

/// A closed set of words.
macro_rules! words {
    ($($(#[$about:meta])* pub enum $name:ident { $($words:tt)* })*) => {
        $($(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum $name { $($words)* })*
    };
}

words! {
    /// Delivery guarantee.
    pub enum Delivery {
        /// Every record at least once.
        AtLeastOnce,
    }

    /// Where a flow starts.
    pub enum RawStart {
        /// At the beginning of every partition.
        Earliest,
        /// At the end of every partition that exists at the first start.
        Latest,
    }

    /// What to do about lost records.
    pub enum RawOnGap {
        /// The partition halts: never guess.
        Stop,
        /// Go on at the first record there is, reporting the exact range.
        Earliest,
        /// Go on at the end, reporting the exact range.
        Latest,
    }

    /// Membership protocol.
    pub enum RawGroupProtocol {
        /// Cooperative-sticky over the classic protocol.
        Classic,
        /// KIP-848.
        Consumer,
    }

    /// When a route is done.
    pub enum RawUntil {
        /// Never.
        Stopped,
        /// At the ends captured at start.
        End,
    }

    /// Which implementation fetches and produces.
    pub enum RawDataPlane {
        /// Whichever suits; in this version always librdkafka.
        Auto,
        /// mirror's own.
        Native,
        /// librdkafka.
        Librdkafka,
    }

    /// What may be done on a cluster.
    pub enum RawAccess {
        /// Only reading.
        Read,
        /// Anything.
        ReadWrite,
    }

    /// What a change may do.
    pub enum RawAccept {
        /// Records of one key may change their order.
        Reorder,
        /// The route may begin again.
        RestartFromStart,
        /// Records may be left out.
        Gap,
    }
}

/// SASL mechanism.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum RawMechanism {
    /// User name and password in the clear: only inside TLS.
    #[serde(rename = "PLAIN")]
    Plain,
    /// Salted challenge, SHA-256.
    #[serde(rename = "SCRAM-SHA-256")]
    ScramSha256,
    /// Salted challenge, SHA-512.
    #[serde(rename = "SCRAM-SHA-512")]
    ScramSha512,
    /// Tokens; its settings are client properties (`sasl.oauthbearer.*`).
    #[serde(rename = "OAUTHBEARER")]
    OauthBearer,
    /// Kerberos; its settings are client properties (`sasl.kerberos.*`).
    #[serde(rename = "GSSAPI")]
    Gssapi,
}

impl RawMechanism {
    /// Whether user name and password belong to it.
    pub fn takes_password(self) -> bool {
        use RawMechanism::{Plain, ScramSha256, ScramSha512};
        matches!(self, Plain | ScramSha256 | ScramSha512)
    }
}
