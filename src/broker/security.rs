//! What a cluster wants before it talks, and why some of it is left to librdkafka.

use crate::config::secret::Secret;
use crate::config::spec::{ClusterSpec, SaslMechanism, SaslSpec, TlsSpec};

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
pub struct Credentials {
    /// How it is shown.
    pub mechanism: Mechanism,
    /// The name.
    pub username: String,
    /// The password.
    pub password: Secret,
}

/// The mechanisms that are spoken here.
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
    /// A name or a password is missing.
    #[error("SASL {0} needs a username and a password")]
    Incomplete(&'static str),
    /// A setting of librdkafka that changes how it connects.
    #[error("the property {0} is librdkafka's own")]
    Property(String),
}

/// Properties of librdkafka that change how it connects or who it is.
const CONNECTING: [&str; 6] = [
    "ssl.",
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
        let is_connecting = |key: &&String| CONNECTING.iter().any(|start| key.starts_with(start));
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
            sasl: cluster.sasl.as_ref().map(credentials).transpose()?,
        })
    }
}

fn credentials(sasl: &SaslSpec) -> Result<Credentials, Unsuited> {
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
    Ok(Credentials {
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
        for mechanism in [SaslMechanism::Gssapi, SaslMechanism::OauthBearer] {
            let mut cluster = cluster();
            cluster.sasl = Some(sasl(mechanism));
            let why = Security::of(&cluster);
            assert_eq!(why, Err(Unsuited::Mechanism(mechanism.as_str())));
        }
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
