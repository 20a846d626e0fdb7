//! Client properties: protected ones are refused with the reason, the others are shown to
//! librdkafka's own table, offline.

use super::Check;
use crate::client::properties::{self, Reader};
use crate::client::settings::PROTECTED;
use crate::config::diagnostic::Code;
use crate::config::mask;
use crate::config::pointer;
use crate::config::raw::RawCluster;
use crate::config::secret::Secret;
use crate::config::suggest;
use rdkafka::ClientConfig;
use rdkafka::error::KafkaError;
use rdkafka::types::RDKafkaConfRes;
use serde_json::Value;
use std::collections::{BTreeMap, HashSet};

/// Properties that `tls:` sets.
const TLS: &[&str] = &[
    "security.protocol",
    "ssl.ca.location",
    "ssl.certificate.location",
    "ssl.key.location",
    "ssl.key.password",
    "ssl.endpoint.identification.algorithm",
];

/// Properties that `sasl:` sets.
const SASL: &[&str] = &[
    "security.protocol",
    "sasl.mechanism",
    "sasl.mechanisms",
    "sasl.username",
    "sasl.password",
];

/// Reads `properties:`.
pub fn read(raw: &RawCluster, at: &str, check: &mut Check<'_>) -> BTreeMap<String, Secret> {
    let at = pointer::child(at, "properties");
    let mut sound = BTreeMap::new();
    for (name, value) in raw.properties.iter().flatten() {
        let at = pointer::child(&at, name);
        if let Some(reason) = refusal(name, raw) {
            let message = format!("`{name}` cannot be set here");
            check.say_of_key(Code::ProtectedProperty, &at, message).help = Some(reason);
            continue;
        }
        ask_client(name, &value.0, &at, check);
        sound.insert(name.clone(), Secret::new(value.0.clone()));
    }
    sound
}

/// Why a property may not be set, if so.
fn refusal(name: &str, raw: &RawCluster) -> Option<String> {
    let protected = PROTECTED.iter().find(|(protected, _)| *protected == name);
    if let Some((_, reason)) = protected {
        return Some((*reason).to_owned());
    }
    if raw.tls.is_some() && TLS.contains(&name) {
        return Some("`tls:` of this cluster sets it".to_owned());
    }
    (raw.sasl.is_some() && SASL.contains(&name))
        .then(|| "`sasl:` of this cluster sets it".to_owned())
}

/// Warns of properties that are for the other end: of a cluster that is only written, what consumers
/// read, and the other way round. A cluster that no route uses is none of both.
pub fn for_the_other_end(check: &mut Check<'_>) {
    let sources: HashSet<&str> = check.named_as("source").collect();
    let targets: HashSet<&str> = check.named_as("target").collect();
    for (name, cluster) in check.section("clusters") {
        let (source, target) = (sources.contains(&**name), targets.contains(&**name));
        let written = cluster.get("properties").and_then(Value::as_object);
        for (property, _) in written.into_iter().flatten() {
            // A protected one is refused already.
            if PROTECTED.iter().any(|(name, _)| name == property) {
                continue;
            }
            let (end, client) = match properties::reader(property) {
                Some(Reader::Consumer) if target && !source => ("copies from", "consumers"),
                Some(Reader::Producer) if source && !target => ("copies to", "producers"),
                _ => continue,
            };
            let at = pointer::child(&pointer::child("/clusters", name), "properties");
            let at = pointer::child(&at, property);
            let message = format!(
                "`{property}` has no effect: only {client} read it, and no route {end} `{name}`"
            );
            check.say_of_key(Code::WrongClient, &at, message).help =
                Some("write it at the cluster of the other end, or remove it".to_owned());
        }
    }
}

/// Asks librdkafka's table whether it knows the property and takes the value. Makes no client.
fn ask_client(name: &str, value: &str, at: &str, check: &mut Check<'_>) {
    let answer = ClientConfig::new().set(name, value).create_native_config();
    match answer {
        Ok(_) => {}
        Err(KafkaError::ClientConfig(RDKafkaConfRes::RD_KAFKA_CONF_UNKNOWN, ..)) => {
            let message = format!("librdkafka has no property `{name}`");
            let near = suggest::nearest(name, properties::names());
            let help = near.map_or_else(
                || "the names are those of librdkafka's CONFIGURATION.md".to_owned(),
                |near| format!("did you mean `{near}`?"),
            );
            check.say_of_key(Code::UnknownProperty, at, message).help = Some(help);
        }
        Err(KafkaError::ClientConfig(_, words, ..)) => {
            // The client's words may repeat the value.
            let shown = check.document.may_be_shown(at) && !mask::is_secret(name);
            let diagnostic = check.say(
                Code::BadProperty,
                at,
                format!("`{name}` does not take this value"),
            );
            diagnostic.help = shown.then(|| format!("librdkafka says: {words}"));
        }
        Err(_) => {
            check.say(
                Code::BadProperty,
                at,
                format!("`{name}` does not take this value"),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protected_properties_are_ones_that_librdkafka_knows() {
        for (name, reason) in PROTECTED {
            let answer = ClientConfig::new().set(*name, "x").create_native_config();
            let unknown = RDKafkaConfRes::RD_KAFKA_CONF_UNKNOWN;
            let known = !matches!(answer, Err(KafkaError::ClientConfig(r, ..)) if r == unknown);
            assert!(known, "{name}");
            assert!(!reason.is_empty());
        }
    }
}
