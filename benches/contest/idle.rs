//! What routes cost that have nothing to do, and whether `check` said rightly what they take.

use crate::admin;
use crate::contender::{Plane, Shape, Tools, mirror};
use crate::file;
use crate::job::Job;
use crate::process::Running;
use crate::stage::Stage;
use crate::topic;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Routes, each with an empty topic of one partition.
pub const ROUTES: usize = 200;
/// Until all of them have long begun.
const PATIENCE: Duration = Duration::from_secs(600);

/// What they took.
pub struct Idle {
    pub plane: &'static str,
    /// Of a core, for each route, in percent.
    pub core_percent: f64,
    pub threads: Taken,
    pub descriptors: Taken,
}

/// What was taken, and what `check` had said.
#[derive(Clone, Copy, Debug)]
pub struct Taken {
    pub got: u64,
    pub said: u64,
}

/// Measures a plane over so long a time.
pub fn measure(stage: &Stage, tools: &Tools, plane: Plane, lasts: Duration) -> Idle {
    let name = match plane {
        Plane::Librdkafka => "librdkafka",
        Plane::Native | Plane::NativePassing => "native",
    };
    let topics: Vec<String> = (0..ROUTES).map(|i| format!("idle-{name}-{i}")).collect();
    let names: Vec<&str> = topics.iter().map(String::as_str).collect();
    topic::create_all(&stage.source(), &names, 1, &[]);
    topic::create_all(&stage.target(), &names, 1, &[]);
    let port = admin::free_port();
    let file = routes(stage, name, plane, &topics, port).write(&tools.folder);
    let (threads, descriptors) = estimate(&file);
    let mut running = Running::start(&format!("idle-{name}"), mirror(&file), &tools.folder);
    for topic in &topics {
        admin::wait(port, topic, "/state", "running");
    }
    let (began, before) = (Instant::now(), running.cost().cpu_s);
    while began.elapsed() < lasts {
        running.look(PATIENCE);
    }
    let cpu_s = running.cost().cpu_s - before;
    let idle = Idle {
        plane: name,
        core_percent: cpu_s / began.elapsed().as_secs_f64() / ROUTES as f64 * 100.0,
        threads: Taken {
            got: running.threads(),
            said: threads,
        },
        descriptors: Taken {
            got: running.descriptors(),
            said: descriptors,
        },
    };
    println!(
        "{name:<20} {ROUTES} idle routes: {:.3} % of a core each",
        idle.core_percent
    );
    drop(running);
    topic::delete_all(&stage.source(), &names);
    topic::delete_all(&stage.target(), &names);
    idle
}

/// A file with a route for each topic, named as the topic is.
fn routes(stage: &Stage, name: &str, plane: Plane, topics: &[String], port: u16) -> file::File {
    let job = |topic: &String| Job {
        source: stage.source(),
        target: stage.target(),
        topics: vec![topic.clone()],
        records: 0,
        codec: "none".to_owned(),
        linger_ms: 0,
    };
    let one = |topic| file::with_defaults(&job(topic), topic, plane, Shape::Worker);
    let mut all = one(&topics[0]);
    for topic in topics {
        all.config["routes"][topic] = one(topic).config["routes"][topic].take();
    }
    all.config["admin"] = json!({ "listen": format!("127.0.0.1:{port}") });
    all.name = format!("idle-{name}");
    all
}

/// Threads and descriptors that `check` announces.
fn estimate(file: &Path) -> (u64, u64) {
    let output = Command::new(env!("CARGO_BIN_EXE_mirror"))
        .args(["check", "--format", "json"])
        .arg(file)
        .output()
        .expect("mirror starts");
    let said: Value = serde_json::from_slice(&output.stdout).expect("check answers in JSON");
    let number = |name: &str| said["estimate"][name].as_u64().expect("a number");
    (number("threads"), number("descriptors"))
}
