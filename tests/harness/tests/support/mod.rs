//! What several tests of the harness need.

// Each test binary uses a part of it.
#![allow(dead_code)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use kafka_harness::{Cluster, HarnessError};

/// Whether there is such a process that has not ended; one that nobody has waited for yet has ended.
pub fn exists(pid: u32) -> bool {
    stat(pid).is_some_and(|(state, _)| state != "Z")
}

/// The processes that `parent` has started.
pub fn children(parent: u32) -> Vec<u32> {
    let pids = fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| stat(*pid).is_some_and(|(_, of)| of == parent))
        .collect()
}

/// State and parent.
fn stat(pid: u32) -> Option<(String, u32)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before it is in parentheses and may hold anything.
    let mut fields = text.rsplit_once(')')?.1.split_whitespace();
    Some((fields.next()?.to_owned(), fields.next()?.parse().ok()?))
}

/// The temporary folder of the cluster that this broker belongs to.
pub fn folder_of(broker: u32) -> PathBuf {
    fs::read_link(format!("/proc/{broker}/cwd"))
        .unwrap()
        .parent()
        .unwrap()
        .to_owned()
}

/// Waits for a state of the world.
pub fn wait_until(what: &str, state: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !state() {
        assert!(Instant::now() < deadline, "still waiting until {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Verifies the broker's certificate as a client does.
pub fn tls_handshake(cluster: &Cluster, address: &str) {
    let openssl = Command::new("openssl")
        .args([
            "s_client",
            "-brief",
            "-verify_return_error",
            "-verify_ip",
            "127.0.0.1",
            "-connect",
            address,
            "-CAfile",
        ])
        .arg(cluster.ca_pem())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&openssl.stderr);
    assert!(
        openssl.status.success() && said.contains("Verification: OK"),
        "{said}"
    );
}

/// Lists topics with Kafka's own client as (mechanism, user, password).
pub fn list_topics(
    cluster: &Cluster,
    bootstrap: &str,
    protocol: &str,
    (mechanism, user, password): (&str, &str, &str),
) -> Result<String, HarnessError> {
    let module = match mechanism {
        "PLAIN" => "plain.PlainLoginModule",
        _ => "scram.ScramLoginModule",
    };
    let password = password.replace('"', "\\\\\"");
    let mut config = format!("security.protocol={protocol}\nsasl.mechanism={mechanism}\n");
    config += &format!(
        "sasl.jaas.config=org.apache.kafka.common.security.{module} required username=\"{user}\" password=\"{password}\";\n"
    );
    if protocol == "SASL_SSL" {
        config += &format!(
            "ssl.truststore.type=PEM\nssl.truststore.location={}\n",
            cluster.ca_pem().display()
        );
    }
    let file = write(
        cluster.folder(),
        &format!("{user}-{protocol}.properties"),
        &config,
    );
    let args = [
        "--list",
        "--bootstrap-server",
        bootstrap,
        "--command-config",
        &file,
    ];
    cluster.tool("org.apache.kafka.tools.TopicCommand", &args)
}

fn write(folder: &Path, name: &str, text: &str) -> String {
    let file = folder.join(name);
    fs::write(&file, text).unwrap();
    file.display().to_string()
}
