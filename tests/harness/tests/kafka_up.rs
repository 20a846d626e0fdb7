//! The program `kafka-up`, and what is left when it is killed.

mod support;

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use support::{children, exists, folder_of, wait_until};

/// Starts it with one cluster, and waits until it says that it is ready.
fn kafka_up() -> (Child, Vec<String>) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_kafka-up"))
        .args(["--clusters", "lonely"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = Vec::new();
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        lines.push(line.unwrap());
        if lines.last().unwrap().starts_with("# ready") {
            return (child, lines);
        }
    }
    panic!("kafka-up ended: {:?}", child.wait());
}

fn only_broker(of: &Child) -> (u32, PathBuf) {
    let brokers = children(of.id());
    assert_eq!(brokers.len(), 1);
    (brokers[0], folder_of(brokers[0]))
}

#[test]
fn nothing_is_left_when_it_is_killed_or_asked_to_end() {
    let (mut killed, lines) = kafka_up();
    let address = lines[0].strip_prefix("lonely ").unwrap();
    assert!(
        lines.contains(&format!("  lonely: {{ bootstrap_servers: [{address}] }}")),
        "{lines:?}"
    );
    let (broker, folder) = only_broker(&killed);
    killed.kill().unwrap();
    killed.wait().unwrap();
    wait_until("the broker has followed", || !exists(broker));

    let (mut asked, _) = kafka_up();
    assert!(
        !folder.exists(),
        "the next start should have removed {}",
        folder.display()
    );
    let (broker, folder) = only_broker(&asked);
    Command::new("kill")
        .args(["-TERM", &asked.id().to_string()])
        .status()
        .unwrap();
    assert!(asked.wait().unwrap().success());
    assert!(!exists(broker) && !folder.exists());
}
