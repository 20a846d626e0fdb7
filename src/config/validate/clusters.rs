//! Clusters: addresses, TLS, SASL, client properties.

use super::Check;
use super::properties;
use crate::broker::security::Security;
use crate::config::chains::read_raw;
use crate::config::defaults;
use crate::config::diagnostic::Code;
use crate::config::laid::Laid;
use crate::config::pointer;
use crate::config::raw::{RawCluster, RawSasl, RawTls};
use crate::config::secret::Secret;
use crate::config::spec::{
    Access, ClusterSpec, DataPlane, Name, SaslMechanism, SaslSpec, TlsSpec, VerifyHostname,
    held_once,
};
use crate::config::words::{RawAccess, RawDataPlane, RawMechanism};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The clusters of the file.
pub struct Clusters {
    /// Those that are sound.
    pub built: BTreeMap<Name, Arc<ClusterSpec>>,
    /// The names of all, sound or not.
    pub names: BTreeSet<String>,
}

/// Reads every cluster.
pub fn read(check: &mut Check<'_>) -> Clusters {
    let mut clusters = Clusters {
        built: BTreeMap::new(),
        names: BTreeSet::new(),
    };
    let running = check.options.running.map(|running| &running.clusters);
    for (name, written) in check.section("clusters") {
        clusters.names.insert(name.clone());
        if let Some(cluster) = cluster(name, written, check) {
            let name = cluster.name.clone();
            let cluster = held_once(&name, cluster, running);
            clusters.built.insert(name, cluster);
        }
    }
    clusters
}

fn cluster(name: &str, written: &Value, check: &mut Check<'_>) -> Option<ClusterSpec> {
    let at = pointer::child("/clusters", name);
    let name = check.name_of_key(&at, name);
    let built_in = defaults::of_cluster();
    let raw: RawCluster = read_raw(Laid::over(&built_in, written), &at, check)?;
    let properties = properties::read(&raw, &at, check);
    let servers = raw.bootstrap_servers.map(|s| servers(&s, &at, check));
    let tls = raw.tls.map(|tls| self::tls(tls, &at, check));
    let sasl = raw.sasl.map(|sasl| self::sasl(sasl, &at, check));
    let access = match raw.access? {
        RawAccess::Read => Access::Read,
        RawAccess::ReadWrite => Access::ReadWrite,
    };
    let spec = ClusterSpec {
        name: name?,
        bootstrap_servers: servers?,
        properties,
        tls: required(tls)?,
        sasl: required(sasl)?,
        access,
        expect_cluster_id: raw.expect_cluster_id,
        data_plane: data_plane(raw.data_plane?),
    };
    if spec.data_plane == DataPlane::Native {
        suits(&spec, &at, check);
    }
    Some(spec)
}

/// What is absent is fine, what is there must be sound.
fn required<T>(part: Option<Option<T>>) -> Option<Option<T>> {
    match part {
        None => Some(None),
        Some(part) => part.map(Some),
    }
}

/// Which data plane is wanted.
pub fn data_plane(raw: RawDataPlane) -> DataPlane {
    match raw {
        RawDataPlane::Auto => DataPlane::Auto,
        RawDataPlane::Native => DataPlane::Native,
        RawDataPlane::Librdkafka => DataPlane::Librdkafka,
    }
}

/// A cluster that the native plane is to serve, and cannot: `at` is where it was asked for.
pub fn suits(cluster: &ClusterSpec, at: &str, check: &mut Check<'_>) {
    if let Err(unsuited) = Security::of(cluster) {
        let at = pointer::child(at, "data_plane");
        let message = format!(
            "`data_plane: native` cannot serve cluster `{}`: {unsuited}",
            cluster.name
        );
        check.say(Code::NotYet, &at, message).help =
            Some("write `librdkafka`, which speaks everything".to_owned());
    }
}

/// The addresses; one text may hold several, parted by commas, as variables often do.
fn servers(texts: &[String], at: &str, check: &mut Check<'_>) -> Vec<String> {
    let at = pointer::child(at, "bootstrap_servers");
    let mut servers = Vec::new();
    for (index, text) in texts.iter().enumerate() {
        let at = pointer::item(&at, index);
        let mut begin = 0;
        for part in text.split(',') {
            let server = part.trim();
            let before = begin + part.len() - part.trim_start().len();
            if let Err(fault) = address(server) {
                fault.report((text, before), server, &at, check);
            }
            servers.push(server.to_owned());
            begin += part.len() + 1;
        }
    }
    servers
}

/// Why a text is no address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AddressFault {
    /// It is none at all.
    Whole,
    /// What stands behind this byte is no port.
    Port(usize),
}

impl AddressFault {
    /// Reports it of `server`, which stands in `text` from the byte `before` on.
    fn report(self, (text, before): (&str, usize), server: &str, at: &str, check: &mut Check<'_>) {
        let end = before + server.len();
        let (part, what, help) = match self {
            Self::Port(from) => (
                before + from..end,
                "a port",
                "a port is a number from 1 to 65535",
            ),
            Self::Whole => (before..end, "an address", "write `host:port`"),
        };
        let said = check.quoted(at, &text[part.clone()]);
        let message = format!("{said} is not {what}");
        // The whole text is marked with its quotes.
        let diagnostic = match part.len() == text.len() || part.is_empty() {
            true => check.say(Code::BadAddress, at, message),
            false => check.say_inside(Code::BadAddress, at, (text, part), message),
        };
        diagnostic.help = Some(help.to_owned());
    }
}

fn address(text: &str) -> Result<(), AddressFault> {
    let (host, port) = text.rsplit_once(':').ok_or(AddressFault::Whole)?;
    let bracketed = host.starts_with('[') && host.ends_with(']');
    let host_is_sound = !host.is_empty()
        && !host.contains(|c: char| c.is_whitespace() || c == '/')
        && (bracketed || !host.contains(':'));
    match port.parse::<u16>() {
        _ if !host_is_sound => Err(AddressFault::Whole),
        Ok(1..) => Ok(()),
        // Without one there is nothing to point at.
        _ if port.is_empty() => Err(AddressFault::Whole),
        Ok(0) | Err(_) => Err(AddressFault::Port(host.len() + 1)),
    }
}

fn tls(raw: RawTls, at: &str, check: &mut Check<'_>) -> Option<TlsSpec> {
    let at = pointer::child(at, "tls");
    let laid = raw.verify_hostname.unwrap_or(true);
    let path = |name: &str, text: Option<String>| {
        let folder = check.document.folder(&pointer::child(&at, name));
        text.map(|t| folder.join(t))
    };
    let tls = TlsSpec {
        ca: path("ca", raw.ca),
        certificate: path("certificate", raw.certificate),
        key: path("key", raw.key),
        key_password: raw.key_password.map(Secret::new),
        verify_hostname: match laid {
            true => VerifyHostname::Yes,
            false => VerifyHostname::No,
        },
    };
    if tls.certificate.is_some() != tls.key.is_some() && !check.is_wrong_below(&at) {
        let message = "a client certificate needs its key, and a key its certificate";
        check.say(Code::Conflict, &at, message);
        return None;
    }
    Some(tls)
}

fn sasl(raw: RawSasl, at: &str, check: &mut Check<'_>) -> Option<SaslSpec> {
    let at = pointer::child(at, "sasl");
    let mechanism = raw.mechanism?;
    let whole = !check.is_wrong_below(&at);
    for (name, given) in [("username", &raw.username), ("password", &raw.password)] {
        if mechanism.takes_password() && given.is_none() && whole {
            let message = format!("this mechanism needs `{name}`");
            check.say_of_key(Code::Conflict, &at, message);
        }
        if !mechanism.takes_password() && given.is_some() {
            let message = format!("this mechanism takes no `{name}`");
            check
                .say_of_key(Code::Conflict, &pointer::child(&at, name), message)
                .help = Some(
                "its settings are client properties: `sasl.oauthbearer.*`, `sasl.kerberos.*`"
                    .to_owned(),
            );
        }
    }
    Some(SaslSpec {
        mechanism: mechanism_of(mechanism),
        username: raw.username,
        password: raw.password.map(Secret::new),
    })
}

fn mechanism_of(raw: RawMechanism) -> SaslMechanism {
    match raw {
        RawMechanism::Plain => SaslMechanism::Plain,
        RawMechanism::ScramSha256 => SaslMechanism::ScramSha256,
        RawMechanism::ScramSha512 => SaslMechanism::ScramSha512,
        RawMechanism::OauthBearer => SaslMechanism::OauthBearer,
        RawMechanism::Gssapi => SaslMechanism::Gssapi,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for good in ["hub:9092", "10.0.0.1:1", "[::1]:9092", "a-b.c:65535"] {
            assert_eq!(address(good), Ok(()), "{good}");
        }
        for bad in [
            "",
            "hub",
            "hub:",
            ":9092",
            "http://hub:1",
            "::1:9",
            "a b:1",
            "http://hub:x",
        ] {
            assert_eq!(address(bad), Err(AddressFault::Whole), "{bad}");
        }
        for bad in ["hub:0", "hub:99999", "hub:port", "hub:-1"] {
            assert_eq!(address(bad), Err(AddressFault::Port(4)), "{bad}");
        }
    }
}
