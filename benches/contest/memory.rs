//! What a backlog takes of memory: many partitions, more records than fit, and a target that is slow to take them.

use crate::contender::{Plane, Shape, Tools, mirror};
use crate::file;
use crate::job::Job;
use crate::process::Running;
use crate::stage::Stage;
use crate::workload::{Data, Length};
use serde_json::json;
use std::time::{Duration, Instant};

/// What the file allows, in MiB.
pub const LIMIT_MB: u64 = 256;
/// What the target takes in a second.
const SLOW: u64 = 20_000_000;
/// A record of the backlog.
const BYTES: usize = 1000;
/// How long the first records may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// How much is waiting, and how long it is looked at.
#[derive(Clone, Copy, Debug)]
pub struct Backlog {
    pub bytes: u64,
    pub lasts: Duration,
}

/// The peak of a plane.
pub struct Peak {
    pub plane: &'static str,
    pub rss_mb: f64,
    pub partitions: u64,
    pub backlog: Backlog,
}

/// Measures each of these planes on the same backlog.
pub fn measure(stage: &Stage, tools: &Tools, backlog: Backlog, planes: &[Plane]) -> Vec<Peak> {
    let data = Data {
        name: "backlog",
        topics: 10,
        partitions: 100,
        records: backlog.bytes / BYTES as u64,
        bytes: BYTES,
        codec: "none",
        batch_bytes: "65536",
        headers: 0,
        frame: ("", ""),
        in_a_row: 60,
    };
    println!("writing {}: {} MB", data.name, backlog.bytes / 1_000_000);
    let prepared = stage.prepare(&data, Length::Long);
    let partitions = u64::from(data.topics) * data.partitions as u64;
    let mut peaks = Vec::new();
    for plane in planes {
        stage.empty(&prepared);
        let job = Job {
            source: stage.source(),
            target: stage.slow_target(SLOW),
            topics: prepared.topics.clone(),
            records: prepared.records,
            codec: data.codec.to_owned(),
            linger_ms: 0,
        };
        let name = match plane {
            Plane::Librdkafka => "librdkafka",
            Plane::Native => "native",
            Plane::NativePassing => "native-passing",
        };
        let mut file = file::with_defaults(&job, &format!("backlog-{name}"), *plane, Shape::Worker);
        file.config["limits"] = json!({ "memory": format!("{LIMIT_MB}MiB") });
        let command = mirror(&file.write(&tools.folder));
        let mut running = Running::start(&file.name, command, &tools.folder);
        let arrival = stage.arrival(&prepared);
        while !arrival.has_begun() {
            running.look(PATIENCE);
        }
        let began = Instant::now();
        while began.elapsed() < backlog.lasts {
            running.look(PATIENCE + backlog.lasts);
        }
        let rss_mb = running.cost().rss_mb;
        println!("{name:<20} {rss_mb:>6.0} MB of {LIMIT_MB} MiB and 64 more");
        drop(running);
        stage.clear(&prepared);
        peaks.push(Peak {
            plane: name,
            rss_mb,
            partitions,
            backlog,
        });
    }
    stage.forget(&prepared);
    peaks
}
