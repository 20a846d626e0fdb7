//! `mirror` as its users run it: a file, a process, signals, and what it says of itself over HTTP.

use super::cluster::Admin;
use super::route::Shape;
use super::wait::{self, PATIENCE};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// The program under test.
const MIRROR: &str = env!("CARGO_BIN_EXE_mirror");
/// How long one question may take.
const ASK: Duration = Duration::from_secs(10);
/// A crashed member would block the group for librdkafka's 45 seconds.
const SESSION_MS: u64 = 6000;

/// A cluster of the file, without security.
pub fn cluster(bootstrap: &str) -> Value {
    let servers: Vec<&str> = bootstrap.split(',').collect();
    json!({
        "bootstrap_servers": servers,
        "properties": { "session.timeout.ms": SESSION_MS, "heartbeat.interval.ms": 1000 },
        "data_plane": std::env::var("MIRROR_TEST_DATA_PLANE").unwrap_or_else(|_| "auto".to_owned()),
    })
}

/// A route of the file: `topics` is a regex.
pub fn route(source: &str, target: &str, topics: &str) -> Value {
    json!({
        "source": source,
        "target": target,
        "topics": { "include": [topics] },
        "commit_interval": "1s",
        "discovery_interval": "1s",
    })
}

/// The same with threads in this shape.
pub fn in_shape(mut route: Value, shape: Shape) -> Value {
    match shape.handlers {
        Some(threads) => route["handler_threads"] = json!(threads),
        None => route["workers"] = json!(shape.workers),
    }
    route
}

/// A folder with a configuration file, and the address where its process can be asked.
pub struct Setup {
    folder: tempfile::TempDir,
    port: u16,
}

impl Setup {
    /// Writes a file with these clusters and routes.
    pub fn new(clusters: Value, routes: Value) -> Self {
        // Taken and let go: mirror takes it again.
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("its address").port();
        let setup = Self {
            folder: tempfile::tempdir().expect("a folder"),
            port,
        };
        setup.write(clusters, routes);
        setup
    }

    /// Replaces the file.
    pub fn write(&self, clusters: Value, routes: Value) {
        self.put(json!({ "clusters": clusters, "routes": routes }));
    }

    /// Replaces the file by one with these sections, and with what makes its process reachable.
    pub fn put(&self, mut file: Value) {
        file["version"] = json!(1);
        file["reload"] = json!({ "watch": false });
        file["admin"] = json!({ "listen": format!("127.0.0.1:{}", self.port), "socket": self.folder.path().join("sock") });
        let text = serde_yaml::to_string(&file).expect("YAML");
        fs::write(self.file(), text).expect("the file is written");
    }

    /// The text of such a file whose changes are followed by themselves. No part of it is valid.
    pub fn followed(&self, clusters: Value, routes: Value) -> String {
        let file = json!({
            "version": 1,
            "clusters": clusters,
            "routes": routes,
            "reload": { "watch": true, "settle": "50ms" },
            "admin": { "listen": format!("127.0.0.1:{}", self.port), "socket": self.folder.path().join("sock") },
        });
        file.to_string()
    }

    /// Where its mirror listens.
    #[allow(dead_code, reason = "the torture's: this file is in both programs")]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn file(&self) -> PathBuf {
        self.folder.path().join("mirror.yaml")
    }

    /// What all its processes logged of one kind of event.
    pub fn logged(&self, event: &str) -> Vec<Value> {
        let log = self.folder.path().join("log");
        let text = fs::read_to_string(log).unwrap_or_default();
        text.lines()
            .filter(|line| line.contains(event))
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .filter(|line| line["event"] == event)
            .collect()
    }

    /// Starts `mirror run` with further arguments.
    pub fn run(&self, args: &[&str]) -> Mirror {
        self.run_on(&self.file(), args)
    }

    /// Starts `mirror run` on another file.
    pub fn run_on(&self, file: &Path, args: &[&str]) -> Mirror {
        let log = self.folder.path().join("log");
        let open = || {
            File::options()
                .create(true)
                .append(true)
                .open(&log)
                .expect("the log")
        };
        let child = Command::new(MIRROR)
            .arg("run")
            .arg(file)
            .args(args)
            .stdin(Stdio::null())
            .stdout(open())
            .stderr(open())
            .spawn()
            .expect("mirror starts");
        Mirror {
            child,
            port: self.port,
            log,
        }
    }

    /// Runs another command of `mirror` on the file to its end.
    pub fn ask(&self, args: &[&str]) -> std::process::Output {
        let mut command = Command::new(MIRROR);
        command
            .args(args)
            .arg("-c")
            .arg(self.file())
            .stdin(Stdio::null());
        command.output().expect("mirror runs")
    }
}

/// A running `mirror`; it is killed on drop, and its log is shown if the test failed.
pub struct Mirror {
    child: Child,
    port: u16,
    log: PathBuf,
}

impl Mirror {
    /// Its process id.
    #[allow(dead_code, reason = "the torture's: this file is in both programs")]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// `GET path`, `None` while nobody answers.
    pub fn get(&self, path: &str) -> Option<String> {
        get(self.port, path)
    }

    /// The status, `None` while nobody answers.
    pub fn status(&self) -> Option<Value> {
        serde_json::from_str(&self.get("/api/v1/status")?).ok()
    }

    /// A number of a route, summed over its flows; 0 while there is none.
    pub fn number(&self, route: &str, name: &str) -> u64 {
        let status = self.status().unwrap_or_default();
        let flows = status["routes"][route]["flows"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let of = |flow: &Value| {
            flow[name]
                .as_u64()
                .or_else(|| flow["counters"][name].as_u64())
        };
        flows.iter().filter_map(of).sum()
    }

    /// Records that are fetched and not resolved, once there are any.
    pub fn wait_in_flight(&self, route: &str) -> u64 {
        wait::find("records in flight", PATIENCE, || {
            Some(self.number(route, "in_flight_records")).filter(|n| *n > 0)
        })
    }

    /// Waits until the process has delivered so many records of a route.
    pub fn wait_delivered(&mut self, route: &str, records: u64) {
        wait::until(
            &format!("{records} records of {route} are delivered"),
            PATIENCE,
            || {
                self.assert_running();
                self.number(route, "delivered_records") >= records
            },
        );
    }

    /// Waits until a route from `source` to `target` has committed all that these topics have. Its lag does not say that: it
    /// is as old as the last look at the ends, and what was written since is not in it.
    pub fn wait_copied(&mut self, source: &Admin, route: &str, topics: &[&str]) {
        let group = format!("mirror.default.{route}.source.target");
        for topic in topics {
            wait::until(&format!("{route} has copied {topic}"), PATIENCE, || {
                self.assert_running();
                let committed = source.committed(&group, topic);
                committed.values().sum::<i64>() == source.end_sum(topic)
            });
        }
    }

    /// Waits until a route has nothing more to copy, as far as it knows.
    pub fn wait_no_lag(&mut self, route: &str) {
        wait::until(&format!("{route} has no lag"), PATIENCE, || {
            self.assert_running();
            self.status()
                .is_some_and(|s| s["routes"][route]["lag"].as_i64() == Some(0))
        });
    }

    /// # Panics
    /// If it has ended.
    pub fn assert_running(&mut self) {
        let ended = self.child.try_wait().expect("the child can be asked");
        assert!(ended.is_none(), "mirror ended with {ended:?}");
    }

    /// Sends a signal.
    pub fn signal(&self, signal: i32) {
        let pid = libc::pid_t::try_from(self.child.id()).expect("a pid");
        // SAFETY: kill takes two integers; the child is not waited for yet, so the pid is its own.
        assert_eq!(unsafe { libc::kill(pid, signal) }, 0, "the signal is sent");
    }

    /// `kill -9`, and waits until it is gone.
    pub fn kill(mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("gone");
    }

    /// SIGTERM, and how it ended.
    pub fn terminate(mut self) -> ExitStatus {
        self.signal(libc::SIGTERM);
        self.wait(Duration::from_secs(40))
    }

    /// Waits for its end.
    pub fn wait(&mut self, within: Duration) -> ExitStatus {
        wait::find("mirror ends", within, || {
            self.child.try_wait().expect("the child can be asked")
        })
    }
}

impl Drop for Mirror {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("--- mirror's log\n{}", tail(&self.log));
        }
    }
}

/// `GET path` of whoever listens there, `None` while nobody answers.
pub fn get(port: u16, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(ASK)).ok()?;
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
    )
    .ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    head.starts_with("HTTP/1.1 200")
        .then(|| unchunked(head, body))
}

fn unchunked(head: &str, body: &str) -> String {
    if !head
        .to_ascii_lowercase()
        .contains("transfer-encoding: chunked")
    {
        return body.to_owned();
    }
    let (mut whole, mut rest) = (String::new(), body);
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
        let Some(chunk) = after.get(..size).filter(|c| !c.is_empty()) else {
            break;
        };
        whole.push_str(chunk);
        rest = after.get(size + 2..).unwrap_or("");
    }
    whole
}

fn tail(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(60)..].join("\n")
}
