//! MirrorMaker 2 of the brokers' version, as it is and tuned.

use crate::contender::Tools;
use crate::jars;
use crate::job::Job;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Its settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tuning {
    /// As it comes, with two tasks.
    Defaults,
    /// Larger fetches and batches, a linger, the codec of the source.
    Tuned,
}

/// Writes its file. The source has another name for each process, since positions are kept under that.
pub fn write(job: &Job, tuning: Tuning, tools: &Tools) -> PathBuf {
    let number = tools.number();
    let source = format!("a{number}");
    let mut text = format!(
        "clusters = {source}, b\n\
         {source}.bootstrap.servers = {}\n\
         b.bootstrap.servers = {}\n\
         {source}->b.enabled = true\n\
         {source}->b.topics = {}\n\
         b->{source}.enabled = false\n\
         replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy\n\
         tasks.max = 2\n",
        job.source,
        job.target,
        job.topics.join(",")
    );
    for off in [
        "emit.heartbeats.enabled",
        "emit.checkpoints.enabled",
        "sync.topic.acls.enabled",
        // It would give the target's topics the source's settings, while a run looks at append times.
        "sync.topic.configs.enabled",
    ] {
        line(&mut text, off, "false");
    }
    for one in [
        "replication.factor",
        "checkpoints.topic.replication.factor",
        "heartbeats.topic.replication.factor",
        "offset-syncs.topic.replication.factor",
        "offset.storage.replication.factor",
        "status.storage.replication.factor",
        "config.storage.replication.factor",
        // Many runs leave many of them behind.
        "offset.storage.partitions",
        "status.storage.partitions",
    ] {
        line(&mut text, one, "1");
    }
    if tuning == Tuning::Tuned {
        tune(&mut text, &source, job);
    }
    let file = tools.folder.join(format!("mm2-{number}.properties"));
    std::fs::write(&file, text).expect("the file is written");
    file
}

fn tune(text: &mut String, source: &str, job: &Job) {
    for (key, value) in [
        ("fetch.min.bytes", "1000000"),
        ("fetch.max.wait.ms", "200"),
        ("max.partition.fetch.bytes", "4194304"),
        ("max.poll.records", "5000"),
        ("receive.buffer.bytes", "1048576"),
    ] {
        line(text, &format!("{source}.consumer.{key}"), value);
    }
    for (key, value) in [
        ("batch.size", "262144"),
        ("linger.ms", "50"),
        ("buffer.memory", "134217728"),
        ("compression.type", job.codec.as_str()),
    ] {
        line(text, &format!("b.producer.{key}"), value);
    }
}

fn line(text: &mut String, key: &str, value: &str) {
    let _ = writeln!(text, "{key} = {value}");
}

/// The program with that file, on a JVM with the heap that the lab gave it.
pub fn command(file: &Path) -> Command {
    let mut command = Command::new("java");
    command
        .args(["-Xmx2g", "-cp"])
        .arg(jars::classpath().unwrap_or_else(|reason| panic!("MirrorMaker 2: {reason}")))
        .arg("org.apache.kafka.connect.mirror.MirrorMaker")
        .arg(file)
        .current_dir(file.parent().expect("a folder"));
    command
}
