//! What a service manager hears of a process, from its start to its end.

use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

fn write(file: &Path, target: &str) {
    let text = format!(
        "version: 1\n\
         clusters:\n\
         \x20 a: {{ bootstrap_servers: ['127.0.0.1:1'] }}\n\
         \x20 b: {{ bootstrap_servers: ['127.0.0.1:2'] }}\n\
         routes:\n\
         \x20 r: {{ source: a, target: {target}, topics: {{ include: [orders] }} }}\n\
         reload: {{ settle: 50ms }}\n\
         admin: {{ listen: 'off', socket: {} }}\n",
        file.with_extension("sock").display()
    );
    // At once: a half-written file is another mistake.
    std::fs::write(file.with_extension("new"), text).unwrap();
    std::fs::rename(file.with_extension("new"), file).unwrap();
}

/// Ends with the test, whatever becomes of that.
struct Run(Child);

impl Drop for Run {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits for a message that has all of these.
fn hears(manager: &UnixDatagram, words: &[&str]) {
    let mut bytes = [0; 4096];
    loop {
        let length = manager
            .recv(&mut bytes)
            .unwrap_or_else(|_| panic!("{words:?} is not said"));
        let said = String::from_utf8_lossy(&bytes[..length]).into_owned();
        if words.iter().all(|word| said.contains(word)) {
            return;
        }
    }
}

#[test]
fn a_service_manager_hears_of_start_reload_rejection_and_stop() {
    let folder = tempfile::tempdir().unwrap();
    let manager = UnixDatagram::bind(folder.path().join("notify")).unwrap();
    manager.set_read_timeout(Some(PATIENCE)).unwrap();
    let file = folder.path().join("mirror.yaml");
    write(&file, "b");
    let run = Command::new(env!("CARGO_BIN_EXE_mirror"))
        .args(["run", "--log-level", "error"])
        .arg(&file)
        .env("NOTIFY_SOCKET", folder.path().join("notify"))
        .spawn();
    let mut run = Run(run.unwrap());
    hears(&manager, &["READY=1", "STATUS=generation 1 ", ": 1 route"]);
    write(&file, "c");
    hears(&manager, &["RELOADING=1", "MONOTONIC_USEC="]);
    hears(
        &manager,
        &[
            "READY=1",
            "STATUS=generation 1 ",
            "was rejected at",
            "mirror.yaml:6:27: error[E0402]",
        ],
    );
    let pid = rustix::process::Pid::from_child(&run.0);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    hears(&manager, &["STOPPING=1"]);
    assert!(run.0.wait().unwrap().code().is_some());
}
