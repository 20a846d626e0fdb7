//! A copy through TLS, SASL/PLAIN, SCRAM and OAUTHBEARER.

use crate::support::checker::check;
use crate::support::cluster::{Admin, pair, settings};
use crate::support::process::{Setup, cluster, route};
use crate::support::reader::read;
use crate::support::wait::PATIENCE;
use crate::support::workload::{field, fill};
use kafka_harness::Cluster;
use serde_json::{Value, json};

fn secured(bootstrap: &str, tls: Option<Value>, sasl: Option<Value>) -> Value {
    let mut cluster = cluster(bootstrap);
    if let Some(tls) = tls {
        cluster["tls"] = tls;
    }
    if let Some(sasl) = sasl {
        cluster["sasl"] = sasl;
    }
    cluster
}

/// Unsecured tokens, each for a minute.
fn with_tokens(bootstrap: &str) -> Value {
    let mut cluster = secured(bootstrap, None, Some(json!({ "mechanism": "OAUTHBEARER" })));
    cluster["properties"] = json!({
        "sasl.oauthbearer.method": "default",
        "enable.sasl.oauthbearer.unsecure.jwt": "true",
        "sasl.oauthbearer.config": "principal=carol lifeSeconds=60",
    });
    cluster
}

#[test]
fn every_mechanism_copies() {
    let secure = settings(
        Cluster::builder("secure")
            .tls()
            .sasl_plain("alice", "plain \"secret\"")
            .scram("bob", "scram-secret")
            .tokens()
            // A connection is made anew while the other one still copies.
            .property(
                "listener.name.token.oauthbearer.connections.max.reauth.ms",
                "12000",
            ),
    );
    let (pair, secure) = (pair(), secure.start().unwrap());
    let ca = json!({ "ca": secure.ca_pem() });
    let mutual = json!({ "ca": secure.ca_pem(), "certificate": secure.client_cert_pem(), "key": secure.client_key_pem() });
    let alice =
        json!({ "mechanism": "PLAIN", "username": "alice", "password": "plain \"secret\"" });
    let bob = |mechanism: &str| json!({ "mechanism": mechanism, "username": "bob", "password": "scram-secret" });
    let clusters = json!({
        "plain": cluster(&pair.source.bootstrap()),
        "tls": secured(&secure.bootstrap_tls(), Some(ca.clone()), None),
        "mutual": secured(&secure.bootstrap_tls(), Some(mutual), None),
        "sasl-plain": secured(&secure.bootstrap_sasl_plain(), None, Some(alice.clone())),
        "sasl-plain-tls": secured(&secure.bootstrap_sasl_tls(), Some(ca.clone()), Some(alice)),
        "scram-256": secured(&secure.bootstrap_scram(), None, Some(bob("SCRAM-SHA-256"))),
        "token": with_tokens(&secure.bootstrap_tokens()),
        "scram-512-tls": secured(&secure.bootstrap_sasl_tls(), Some(ca), Some(bob("SCRAM-SHA-512"))),
    });
    // In through one listener and out through the same: both ends of each are secured.
    let names: Vec<String> = clusters
        .as_object()
        .unwrap()
        .keys()
        .filter(|n| *n != "plain")
        .cloned()
        .collect();
    let mut routes = json!({});
    for name in &names {
        let mut copy = route(name, name, "secured");
        copy["handlers"] = json!([{ "rename": { "topic": "{route}.{topic}" } }]);
        routes[name] = copy;
    }
    Admin::new(&secure.bootstrap()).create("secured", 3, &[]);
    let expected = fill(&secure.bootstrap(), &[field("secured", 3)], 1000);
    let setup = Setup::new(clusters, routes);
    let mut mirror = setup.run(&["--until-caught-up"]);
    assert_eq!(mirror.wait(PATIENCE).code(), Some(0));
    for name in names {
        let topic = format!("{name}.secured");
        let verdict = check(&expected, &read(&secure.bootstrap(), [&topic]), |_| {
            topic.clone()
        });
        println!("{name}: {verdict}");
        verdict.assert_perfect();
    }
}
