//! What broken routes cost the healthy ones: records a second of two healthy routes, alone and in one process with a route to
//! an address where nothing listens and a route with a record that the target refuses. Run with `make bench`.
//!
//! Both settings run in turn, each in a process of its own, over the same stretch of the same records; medians are what counts.
//! The healthy routes come by a reload once the broken ones are known to be broken (or, alone, once a route with nothing
//! to do runs), so that a rate is of copying and not of starting.

mod admin;
mod topic;

use admin::free_port;
use kafka_harness::{Cluster, start_all};
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use topic::Fill;

const RUNS: usize = 7;
const HEALTHY: [&str; 2] = ["healthy-a", "healthy-b"];
const PARTITIONS: i32 = 6;
const BYTES: usize = 300;
/// What the target of the poisoned route takes, and what it is given in between.
const LIMIT: (&str, &str) = ("max.message.bytes", "2000");
const TOO_LARGE: usize = 50_000;

/// What runs beside the healthy routes.
#[derive(Clone, Copy, PartialEq)]
enum Beside {
    Nothing,
    BrokenRoutes,
}

/// Where a run copies from and to.
struct Stage {
    source: String,
    target: String,
    nowhere: String,
    records: u64,
}

fn main() {
    let scale = std::env::var("MIRROR_BENCH_SCALE")
        .ok()
        .and_then(|s| s.parse().ok())
        .unwrap_or(1.0);
    let c2 = |name| Cluster::builder(name).jvm_arg("-XX:TieredStopAtLevel=4");
    let [source, target] = start_all([c2("source"), c2("target")]).expect("two clusters");
    let stage = Stage {
        source: source.bootstrap(),
        target: target.bootstrap(),
        nowhere: format!("127.0.0.1:{}", free_port()),
        records: (2.5e6 * scale) as u64,
    };
    stage.write();
    let mut rates = [Vec::new(), Vec::new()];
    for run in 0..RUNS {
        // Who comes first changes, so that what slowly changes weighs on both.
        let mut order = [(0, Beside::Nothing), (1, Beside::BrokenRoutes)];
        if run % 2 == 1 {
            order.reverse();
        }
        for (index, beside) in order {
            rates[index].push(stage.rates(run, beside));
        }
    }
    show(&rates);
}

impl Stage {
    fn write(&self) {
        for topic in HEALTHY {
            topic::create(&self.source, topic, PARTITIONS, &[]);
            Fill::of(topic, PARTITIONS, self.records, BYTES).write(&self.source);
        }
        topic::create(&self.source, "idle", 1, &[]);
        topic::create(&self.source, "poison", 1, &[]);
        for bytes in [100, TOO_LARGE, 100] {
            Fill::of("poison", 1, 1, bytes).write(&self.source);
        }
    }

    /// Records a second of each healthy route, over the middle of its copy.
    fn rates(&self, run: usize, beside: Beside) -> [f64; 2] {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("mirror.yaml");
        let name = match beside {
            Beside::Nothing => format!("alone-{run}"),
            Beside::BrokenRoutes => format!("beside-{run}"),
        };
        if beside == Beside::BrokenRoutes {
            topic::create(&self.target, &format!("poison-{name}"), 1, &[LIMIT]);
        }
        let port = free_port();
        let first = self.first_routes(&name, beside);
        self.write_config(&file, port, &first);
        let mirror = Mirror::start(&file);
        admin::wait(port, &format!("first-{name}"), "/state", "running");
        if beside == Beside::BrokenRoutes {
            admin::wait(
                port,
                &format!("nowhere-{name}"),
                "/reason/code",
                "unreachable",
            );
            admin::wait(
                port,
                &format!("poison-{name}"),
                "/reason/code",
                "poison_record",
            );
        }
        let mut all = first;
        for topic in HEALTHY {
            all[format!("{topic}-{name}")] = route(topic, "target", &name);
        }
        self.write_config(&file, port, &all);
        let rates = self.watch(port, &name);
        drop(mirror);
        for topic in HEALTHY {
            topic::delete(&self.target, &format!("{topic}-{name}"));
        }
        rates
    }

    /// What runs before the healthy routes come: always one that has nothing to do.
    fn first_routes(&self, name: &str, beside: Beside) -> Value {
        let mut routes = json!({});
        routes[format!("first-{name}")] = route("idle", "target", name);
        if beside == Beside::BrokenRoutes {
            routes[format!("nowhere-{name}")] = route(HEALTHY[0], "nowhere", name);
            routes[format!("poison-{name}")] = route("poison", "target", name);
        }
        routes
    }

    fn write_config(&self, file: &Path, port: u16, routes: &Value) {
        let cluster = |at: &str| json!({ "bootstrap_servers": [at] });
        let config = json!({
            "version": 1,
            "clusters": {
                "source": cluster(&self.source),
                "target": cluster(&self.target),
                "nowhere": cluster(&self.nowhere),
            },
            "routes": routes,
            "admin": { "listen": format!("127.0.0.1:{port}") },
        });
        let text = serde_json::to_string(&config).expect("JSON is YAML");
        std::fs::write(file, text).expect("the file");
    }

    /// Looks on from the first fifth of each route's records to the last.
    fn watch(&self, port: u16, name: &str) -> [f64; 2] {
        let (from, to) = (self.records / 5, self.records * 4 / 5);
        let mut began: [Option<(Instant, u64)>; 2] = [None, None];
        let mut rates: [Option<f64>; 2] = [None, None];
        while rates.iter().any(Option::is_none) {
            std::thread::sleep(Duration::from_millis(10));
            let now = Instant::now();
            let status = admin::status(port);
            for (i, topic) in HEALTHY.iter().enumerate() {
                let delivered = delivered(&status, &format!("{topic}-{name}"));
                match began[i] {
                    None if delivered >= from => began[i] = Some((now, delivered)),
                    Some((then, first)) if delivered >= to && rates[i].is_none() => {
                        let seconds = now.duration_since(then).as_secs_f64();
                        rates[i] = Some((delivered - first) as f64 / seconds);
                    }
                    _ => {}
                }
            }
        }
        rates.map(Option::unwrap_or_default)
    }
}

fn route(topic: &str, target: &str, name: &str) -> Value {
    let rename = json!({ "rename": { "topic": format!("{{topic}}-{name}") } });
    json!({ "source": "source", "target": target, "topics": { "include": [topic] }, "handlers": [rename] })
}

fn delivered(status: &Value, route: &str) -> u64 {
    let flow = &status["routes"][route]["flows"][0];
    flow["counters"]["delivered_records"].as_u64().unwrap_or(0)
}

/// A running process; killed when it is dropped.
struct Mirror(Child);

impl Mirror {
    fn start(file: &Path) -> Self {
        let child = Command::new(env!("CARGO_BIN_EXE_mirror"))
            .args(["run", "--no-progress"])
            .arg(file)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("mirror starts");
        Self(child)
    }
}

impl Drop for Mirror {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn show(rates: &[Vec<[f64; 2]>; 2]) {
    println!(
        "{:<12} {:>16} {:>16} {:>7}",
        "route", "alone rec/s", "beside rec/s", "ratio"
    );
    for (i, topic) in HEALTHY.iter().enumerate() {
        let of = |runs: &[[f64; 2]]| median(runs.iter().map(|r| r[i]).collect());
        row(topic, of(&rates[0]), of(&rates[1]));
    }
    let both = |runs: &[[f64; 2]]| median(runs.iter().map(|r| r[0] + r[1]).collect());
    row("both", both(&rates[0]), both(&rates[1]));
}

fn row(name: &str, alone: f64, beside: f64) {
    println!(
        "{name:<12} {alone:>16.0} {beside:>16.0} {:>7.2}",
        beside / alone
    );
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}
