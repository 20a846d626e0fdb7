//! The listeners a broker can have.

use crate::builder::ClusterBuilder;

/// Who may connect, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listener {
    /// Always there: for tests, for tools, and for seeing whether the broker is ready.
    Plaintext,
    /// TLS; a client certificate is accepted, not required.
    Tls,
    /// SASL/PLAIN without TLS.
    SaslPlain,
    /// SASL/SCRAM without TLS.
    Scram,
    /// SASL/OAUTHBEARER without TLS.
    Token,
    /// Every mechanism with passwords the cluster has, over TLS.
    SaslTls,
    /// Behind the broker's proxy; with SASL/PLAIN if the cluster has users for it.
    Proxied,
    /// Between brokers, if there are ACLs: then the brokers need a name that may do everything.
    Internal,
    /// To the controllers.
    Controller,
}

impl Listener {
    /// The listeners that each broker of such a cluster has.
    pub(crate) fn of(spec: &ClusterBuilder) -> Vec<Self> {
        let sasl = !spec.plain_users.is_empty() || !spec.scram_users.is_empty();
        let wanted = [
            (Self::Plaintext, true),
            (Self::Tls, spec.tls),
            (Self::SaslPlain, !spec.plain_users.is_empty()),
            (Self::Scram, !spec.scram_users.is_empty()),
            (Self::Token, spec.tokens),
            (Self::SaslTls, spec.tls && sasl),
            (Self::Proxied, spec.proxied),
            (Self::Internal, spec.acls.is_some()),
            (Self::Controller, true),
        ];
        wanted
            .into_iter()
            .filter_map(|(listener, wanted)| wanted.then_some(listener))
            .collect()
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Plaintext => "PLAINTEXT",
            Self::Tls => "TLS",
            Self::SaslPlain => "SASL_PLAIN",
            Self::Scram => "SCRAM",
            Self::Token => "TOKEN",
            Self::SaslTls => "SASL_TLS",
            Self::Proxied => "PROXIED",
            Self::Internal => "INTERNAL",
            Self::Controller => "CONTROLLER",
        }
    }

    /// The security protocol, in Kafka's words.
    pub(crate) fn protocol(self, spec: &ClusterBuilder) -> &'static str {
        match self {
            Self::Plaintext => "PLAINTEXT",
            Self::Tls => "SSL",
            Self::SaslTls => "SASL_SSL",
            Self::SaslPlain | Self::Scram | Self::Token | Self::Internal => "SASL_PLAINTEXT",
            Self::Proxied if !spec.plain_users.is_empty() => "SASL_PLAINTEXT",
            Self::Proxied => "PLAINTEXT",
            Self::Controller if spec.acls.is_some() => "SASL_PLAINTEXT",
            Self::Controller => "PLAINTEXT",
        }
    }

    /// Whether it takes users and passwords as they are.
    pub(crate) fn takes_plain(self, spec: &ClusterBuilder) -> bool {
        match self {
            Self::SaslPlain | Self::Internal => true,
            Self::SaslTls | Self::Proxied => !spec.plain_users.is_empty(),
            Self::Controller => spec.acls.is_some(),
            Self::Plaintext | Self::Tls | Self::Scram | Self::Token => false,
        }
    }

    /// Whether it takes SCRAM.
    pub(crate) fn takes_scram(self, spec: &ClusterBuilder) -> bool {
        match self {
            Self::Scram => true,
            Self::SaslTls => !spec.scram_users.is_empty(),
            Self::Plaintext
            | Self::Tls
            | Self::SaslPlain
            | Self::Token
            | Self::Proxied
            | Self::Internal
            | Self::Controller => false,
        }
    }
}
