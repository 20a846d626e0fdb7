//! What a cluster wants before it talks, and why some of it is left to librdkafka.

use super::token::Tokens;
use crate::config::secret::Secret;
use crate::config::spec::{ClusterSpec, SaslMechanism, SaslSpec, TlsSpec};
use std::sync::Arc;

/// How connections to a cluster are secured.
#[derive(Clone, Debug, PartialEq)]
pub struct Security {
    /// TLS, if the listener wants it.
    pub tls: Option<TlsSpec>,
    /// Who we are, if the listener wants to know.
    pub sasl: Option<Credentials>,
}

/// Who we are.
#[derive(Clone, Debug, PartialEq)]
pub enum Credentials {
    /// A name and a password.
    Login(Login),
    /// Somebody else says so: OAUTHBEARER.
    Tokens(Arc<Tokens>),
}

/// A name and a password.
#[derive(Clone, Debug, PartialEq)]
pub struct Login {
    /// How they are shown.
    pub mechanism: Mechanism,
    /// The name.
    pub username: String,
    /// The password.
    pub password: Secret,
}

impl Credentials {
    /// The name of the mechanism that they are shown by.
    pub fn mechanism(&self) -> &'static str {
        match self {
            Credentials::Login(login) => login.mechanism.as_str(),
            Credentials::Tokens(_) => SaslMechanism::OauthBearer.as_str(),
        }
    }
}

/// The mechanisms for a name and a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// The password as it is.
    Plain,
    /// RFC 5802 and 7677.
    ScramSha256,
    /// RFC 5802 and 7677.
    ScramSha512,
}

impl Mechanism {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Mechanism::Plain => SaslMechanism::Plain.as_str(),
            Mechanism::ScramSha256 => SaslMechanism::ScramSha256.as_str(),
            Mechanism::ScramSha512 => SaslMechanism::ScramSha512.as_str(),
        }
    }
}

/// Why connections to a cluster are left to librdkafka.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsuited {
    /// A mechanism that is not spoken here.
    #[error("SASL {0} is spoken by librdkafka only")]
    Mechanism(&'static str),
    /// A private key with a password.
    #[error("a private key with a password is read by librdkafka only")]
    KeyPassword,
    /// Something is missing that says who we are.
    #[error("SASL {0} needs to know who we are")]
    Incomplete(&'static str),
    /// A setting of librdkafka that changes how it connects.
    #[error("the property {0} is librdkafka's own")]
    Property(String),
}

/// Properties of librdkafka that change how it connects or who it is.
const CONNECTING: [&str; 7] = [
    "ssl.",
    "https.",
    "sasl.",
    "security.protocol",
    "socket.",
    "broker.address.",
    "client.dns.lookup",
];

impl Security {
    /// How connections to `cluster` are secured.
    ///
    /// # Errors
    /// Why they are left to librdkafka.
    pub fn of(cluster: &ClusterSpec) -> Result<Self, Unsuited> {
        let is_connecting = |key: &&String| {
            // Those of tokens are looked at by whoever fetches them.
            !key.starts_with("sasl.oauthbearer.")
                && CONNECTING.iter().any(|start| key.starts_with(start))
        };
        if let Some(property) = cluster.properties.keys().find(is_connecting) {
            return Err(Unsuited::Property(property.clone()));
        }
        if cluster
            .tls
            .as_ref()
            .is_some_and(|tls| tls.key_password.is_some())
        {
            return Err(Unsuited::KeyPassword);
        }
        Ok(Self {
            tls: cluster.tls.clone(),
            sasl: match &cluster.sasl {
                None => None,
                Some(sasl) if sasl.mechanism == SaslMechanism::OauthBearer => {
                    Some(Credentials::Tokens(Arc::new(Tokens::of(cluster)?)))
                }
                Some(sasl) => Some(Credentials::Login(login(sasl)?)),
            },
        })
    }
}

fn login(sasl: &SaslSpec) -> Result<Login, Unsuited> {
    let name = sasl.mechanism.as_str();
    let mechanism = match sasl.mechanism {
        SaslMechanism::Plain => Mechanism::Plain,
        SaslMechanism::ScramSha256 => Mechanism::ScramSha256,
        SaslMechanism::ScramSha512 => Mechanism::ScramSha512,
        SaslMechanism::OauthBearer | SaslMechanism::Gssapi => {
            return Err(Unsuited::Mechanism(name));
        }
    };
    let (Some(username), Some(password)) = (&sasl.username, &sasl.password) else {
        return Err(Unsuited::Incomplete(name));
    };
    Ok(Login {
        mechanism,
        username: username.clone(),
        password: password.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::spec::{Access, DataPlane, Name};

    fn cluster() -> ClusterSpec {
        ClusterSpec {
            name: Name::new("lisbon").expect("a name"),
            bootstrap_servers: vec!["127.0.0.1:9092".into()],
            properties: Default::default(),
            tls: None,
            sasl: None,
            access: Access::ReadWrite,
            expect_cluster_id: None,
            data_plane: DataPlane::Auto,
        }
    }

    fn sasl(mechanism: SaslMechanism) -> SaslSpec {
        SaslSpec {
            mechanism,
            username: Some("alice".into()),
            password: Some(Secret::new("a password")),
        }
    }

    #[test]
    fn what_is_left_to_librdkafka_says_why() {
        assert_eq!(
            Security::of(&cluster()),
            Ok(Security {
                tls: None,
                sasl: None
            })
        );
        let mut with_tickets = cluster();
        with_tickets.sasl = Some(sasl(SaslMechanism::Gssapi));
        let why = Security::of(&with_tickets);
        assert_eq!(why, Err(Unsuited::Mechanism("GSSAPI")));
        let mut with_key = cluster();
        with_key.tls = Some(TlsSpec {
            key_password: Some(Secret::new("a password")),
            ..TlsSpec::default()
        });
        assert_eq!(Security::of(&with_key), Err(Unsuited::KeyPassword));
        let mut with_property = cluster();
        let property = "ssl.cipher.suites".to_owned();
        with_property
            .properties
            .insert(property.clone(), Secret::new("ALL"));
        assert_eq!(
            Security::of(&with_property),
            Err(Unsuited::Property(property))
        );
        let mut without_name = cluster();
        without_name.sasl = Some(SaslSpec {
            username: None,
            ..sasl(SaslMechanism::Plain)
        });
        assert_eq!(
            Security::of(&without_name),
            Err(Unsuited::Incomplete("PLAIN"))
        );
    }
}
