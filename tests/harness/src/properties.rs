//! The `server.properties` of one broker.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use crate::builder::ClusterBuilder;
use crate::certs::Certs;
use crate::listener::Listener;

/// The user as which brokers speak to each other, and tools to brokers, if there are ACLs.
pub(crate) const INTERNAL_USER: &str = "harness";

/// What suits a test: small, quick to notice, quick to act.
const DEFAULTS: &[(&str, &str)] = &[
    ("auto.create.topics.enable", "false"),
    // Few partitions of internal topics: each costs time at the first use of a group or a transaction.
    ("offsets.topic.num.partitions", "4"),
    ("transaction.state.log.num.partitions", "4"),
    ("share.coordinator.state.topic.num.partitions", "4"),
    ("group.initial.rebalance.delay.ms", "0"),
    // Tests lose group members on purpose and do not want to wait for it.
    ("group.min.session.timeout.ms", "1000"),
    ("group.consumer.min.session.timeout.ms", "1000"),
    ("group.consumer.session.timeout.ms", "6000"),
    ("group.consumer.min.heartbeat.interval.ms", "200"),
    ("group.consumer.heartbeat.interval.ms", "1000"),
    // The same for brokers: a killed one is fenced, and may come back, after three seconds instead of nine.
    ("broker.session.timeout.ms", "3000"),
    ("broker.heartbeat.interval.ms", "500"),
    ("replica.lag.time.max.ms", "10000"),
    (
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        "1000",
    ),
    // Retention and compaction act within a test.
    ("log.initial.task.delay.ms", "500"),
    ("log.retention.check.interval.ms", "1000"),
    ("log.cleaner.backoff.ms", "500"),
    ("log.segment.delete.delay.ms", "1000"),
    // The default would take a quarter of the heap.
    ("log.cleaner.dedupe.buffer.size", "16777216"),
    // Two or six brokers share the cores with what is tested.
    ("num.network.threads", "2"),
    ("num.io.threads", "4"),
    ("background.threads", "2"),
];

/// What one broker's file depends on.
pub(crate) struct Node<'a> {
    pub(crate) spec: &'a ClusterBuilder,
    pub(crate) id: i32,
    pub(crate) data: &'a Path,
    /// Its own listeners and their ports.
    pub(crate) listeners: &'a [(Listener, u16)],
    /// Where the proxy of its proxied listener is.
    pub(crate) proxy: Option<u16>,
    /// Every broker's id and controller port.
    pub(crate) voters: &'a [(i32, u16)],
    pub(crate) certs: Option<&'a Certs>,
    /// The password of [`INTERNAL_USER`].
    pub(crate) internal_password: &'a str,
}

impl Node<'_> {
    /// The text of the file.
    pub(crate) fn render(&self) -> String {
        let mut all = Properties::default();
        for (key, value) in DEFAULTS {
            all.set(key, *value);
        }
        self.identity(&mut all);
        self.replication(&mut all);
        self.listeners(&mut all);
        self.tls(&mut all);
        self.sasl(&mut all);
        self.acls(&mut all);
        for (key, value) in &self.spec.properties {
            all.set(key, value.as_str());
        }
        all.text()
    }

    fn identity(&self, all: &mut Properties) {
        let voters: Vec<String> = self
            .voters
            .iter()
            .map(|(id, port)| format!("{id}@127.0.0.1:{port}"))
            .collect();
        all.set("process.roles", "broker,controller");
        all.set("node.id", self.id.to_string());
        all.set("log.dirs", self.data.display().to_string());
        all.set("controller.quorum.voters", voters.join(","));
    }

    /// Three copies where there are three brokers, and then one broker may be missing.
    fn replication(&self, all: &mut Properties) {
        let copies = self.spec.brokers.min(3);
        let in_sync = if copies == 3 { 2 } else { 1 };
        for topic in [
            "offsets.topic",
            "transaction.state.log",
            "share.coordinator.state.topic",
        ] {
            all.set(&format!("{topic}.replication.factor"), copies.to_string());
        }
        for key in [
            "transaction.state.log.min.isr",
            "share.coordinator.state.topic.min.isr",
            "min.insync.replicas",
        ] {
            all.set(key, in_sync.to_string());
        }
        all.set("default.replication.factor", copies.to_string());
    }

    fn listeners(&self, all: &mut Properties) {
        let url =
            |(listener, port): &(Listener, u16)| format!("{}://127.0.0.1:{port}", listener.name());
        let urls: Vec<String> = self.listeners.iter().map(url).collect();
        let advertised: Vec<String> = self
            .listeners
            .iter()
            .filter(|(listener, _)| *listener != Listener::Controller)
            .map(|(listener, port)| match (listener, self.proxy) {
                (Listener::Proxied, Some(proxy)) => url(&(*listener, proxy)),
                _ => url(&(*listener, *port)),
            })
            .collect();
        let protocols: Vec<String> = self
            .listeners
            .iter()
            .map(|(listener, _)| format!("{}:{}", listener.name(), listener.protocol(self.spec)))
            .collect();
        let between = if self.spec.acls.is_some() {
            Listener::Internal
        } else {
            Listener::Plaintext
        };
        all.set("listeners", urls.join(","));
        all.set("advertised.listeners", advertised.join(","));
        all.set("listener.security.protocol.map", protocols.join(","));
        all.set("controller.listener.names", Listener::Controller.name());
        all.set("inter.broker.listener.name", between.name());
    }

    fn tls(&self, all: &mut Properties) {
        let Some(certs) = self.certs else { return };
        all.set("ssl.keystore.type", "PEM");
        all.set("ssl.keystore.location", certs.server.display().to_string());
        all.set("ssl.truststore.type", "PEM");
        all.set("ssl.truststore.location", certs.ca.display().to_string());
        all.set("ssl.client.auth", "requested");
    }

    fn sasl(&self, all: &mut Properties) {
        for (listener, _) in self.listeners {
            let prefix = format!("listener.name.{}", listener.name().to_lowercase());
            let mut mechanisms = Vec::new();
            if listener.takes_plain(self.spec) {
                mechanisms.push("PLAIN");
                all.set(
                    &format!("{prefix}.plain.sasl.jaas.config"),
                    self.plain_login(),
                );
            }
            if listener.takes_scram(self.spec) {
                for mechanism in ["SCRAM-SHA-256", "SCRAM-SHA-512"] {
                    mechanisms.push(mechanism);
                    let key = format!("{prefix}.{}.sasl.jaas.config", mechanism.to_lowercase());
                    all.set(
                        &key,
                        "org.apache.kafka.common.security.scram.ScramLoginModule required;",
                    );
                }
            }
            if *listener == Listener::Token {
                mechanisms.push("OAUTHBEARER");
                // Whom a token names is believed; the broker's own login wants a name as well.
                let login = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub=\"broker\";";
                all.set(&format!("{prefix}.oauthbearer.sasl.jaas.config"), login);
            }
            if !mechanisms.is_empty() {
                all.set(
                    &format!("{prefix}.sasl.enabled.mechanisms"),
                    mechanisms.join(","),
                );
            }
        }
    }

    /// Who the broker is when it connects, and who may connect to it.
    fn plain_login(&self) -> String {
        let mut login = client_login(INTERNAL_USER, self.internal_password);
        login.pop(); // the semicolon
        let internal = (INTERNAL_USER.to_owned(), self.internal_password.to_owned());
        for (user, password) in self.spec.plain_users.iter().chain([&internal]) {
            let _ = write!(login, " user_{user}={}", quote(password));
        }
        login + ";"
    }

    fn acls(&self, all: &mut Properties) {
        let Some(acls) = &self.spec.acls else { return };
        let mut super_users = vec![format!("User:{INTERNAL_USER}")];
        super_users.extend(acls.super_users.iter().cloned());
        if !acls.deny_anonymous {
            super_users.push("User:ANONYMOUS".to_owned());
        }
        all.set(
            "authorizer.class.name",
            "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        );
        all.set("super.users", super_users.join(";"));
        all.set("sasl.mechanism.inter.broker.protocol", "PLAIN");
        all.set("sasl.mechanism.controller.protocol", "PLAIN");
    }
}

/// What a client with SASL/PLAIN has in `sasl.jaas.config`.
pub(crate) fn client_login(user: &str, password: &str) -> String {
    let module = "org.apache.kafka.common.security.plain.PlainLoginModule";
    format!(
        "{module} required username={} password={};",
        quote(user),
        quote(password)
    )
}

fn quote(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Keys and values in the format of Java's `Properties`.
#[derive(Debug, Default)]
pub(crate) struct Properties(BTreeMap<String, String>);

impl Properties {
    pub(crate) fn set(&mut self, key: &str, value: impl Into<String>) {
        self.0.insert(key.to_owned(), value.into());
    }

    pub(crate) fn text(&self) -> String {
        let line =
            |(key, value): (&String, &String)| format!("{key}={}\n", value.replace('\\', "\\\\"));
        self.0.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(spec: &ClusterBuilder) -> String {
        let listeners: Vec<_> = Listener::of(spec).into_iter().zip(9000..).collect();
        let voters = [(1, 9100)];
        let data = Path::new("data");
        Node {
            spec,
            id: 1,
            data,
            listeners: &listeners,
            proxy: spec.proxied.then_some(9200),
            voters: &voters,
            certs: None,
            internal_password: "s",
        }
        .render()
    }

    #[test]
    fn a_plain_cluster_has_one_listener_for_clients() {
        let text = render(&ClusterBuilder::new("c"));
        assert!(
            text.contains("advertised.listeners=PLAINTEXT://127.0.0.1:9000\n"),
            "{text}"
        );
        assert!(
            !text.contains("authorizer") && !text.contains("sasl"),
            "{text}"
        );
    }

    #[test]
    fn a_proxied_listener_advertises_the_proxy() {
        let text = render(&ClusterBuilder::new("c").proxied());
        assert!(
            text.contains(
                "advertised.listeners=PLAINTEXT://127.0.0.1:9000,PROXIED://127.0.0.1:9200\n"
            ) && text.contains("PROXIED://127.0.0.1:9001,CONTROLLER"),
            "{text}"
        );
    }

    #[test]
    fn anonymous_is_a_super_user_until_denied() {
        let open = render(&ClusterBuilder::new("c").acls(&["User:root"]));
        assert!(
            open.contains("super.users=User:harness;User:root;User:ANONYMOUS\n"),
            "{open}"
        );
        let closed = render(&ClusterBuilder::new("c").acls(&[]).acls_deny_anonymous());
        assert!(closed.contains("super.users=User:harness\n"), "{closed}");
    }

    #[test]
    fn three_brokers_keep_three_copies_and_do_with_two() {
        let text = render(&ClusterBuilder::new("c").brokers(3));
        assert!(
            text.contains("offsets.topic.replication.factor=3\n"),
            "{text}"
        );
        assert!(text.contains("\nmin.insync.replicas=2\n"), "{text}");
    }

    #[test]
    fn a_property_of_the_test_wins() {
        let text = render(&ClusterBuilder::new("c").property("num.io.threads", "9"));
        assert!(
            text.contains("num.io.threads=9\n") && !text.contains("num.io.threads=4"),
            "{text}"
        );
    }

    #[test]
    fn passwords_survive_quoting_twice() {
        // JAAS wants \" and \\, and the file wants each backslash doubled again.
        let text = render(&ClusterBuilder::new("c").sasl_plain("u", r#"a"b\c"#));
        assert!(text.contains(r#"user_u="a\\"b\\\\c""#), "{text}");
    }
}
