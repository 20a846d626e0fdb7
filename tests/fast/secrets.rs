//! A loaded secret is in no log line, no answer and no result, also where an error repeats it.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

/// The password is the name of the host as well: whatever is said about the host would repeat it.
const CANARY: &str = "canary-7f3a.invalid";

fn write(folder: &Path) -> std::path::PathBuf {
    let path = folder.join("mirror.yaml");
    std::fs::write(folder.join("password"), format!("{CANARY}\n")).unwrap();
    let text = format!(
        "version: 1\n\
         clusters:\n\
         \x20 a: {{ bootstrap_servers: ['{CANARY}:9092'], sasl: {{ mechanism: PLAIN, username: u, password: '${{file:password}}' }} }}\n\
         \x20 b: {{ bootstrap_servers: ['127.0.0.1:1'] }}\n\
         routes:\n\
         \x20 r: {{ source: a, target: b, topics: {{ include: [orders] }} }}\n\
         admin: {{ listen: 'off', socket: {} }}\n",
        folder.join("s").display()
    );
    std::fs::write(&path, text).unwrap();
    path
}

fn mirror(args: &[&str], file: &Path) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mirror"));
    let output = command.args(args).arg("-c").arg(file).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    (output.status.code().unwrap(), text)
}

#[test]
fn logs_and_answers_hold_no_secret() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path());
    let mut run = Command::new(env!("CARGO_BIN_EXE_mirror"))
        .args(["run", "--log-level", "trace", "--log-format", "json", "-c"])
        .arg(&file)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let stderr = BufReader::new(run.stderr.take().unwrap());
    let (said, hosts) = std::sync::mpsc::channel();
    let log = std::thread::spawn(move || {
        let mut log = Vec::new();
        for line in stderr.lines().map_while(Result::ok) {
            // The client says that it cannot find the host, by its name.
            if line.contains("***") && line.contains("resolve") {
                let _ = said.send(());
            }
            log.push(line);
        }
        log
    });
    hosts.recv().unwrap();
    let (code, status) = mirror(&["status", "--format", "json"], &file);
    run.kill().unwrap();
    run.wait().unwrap();
    let log = log.join().unwrap();
    assert!(log.iter().all(|line| !line.contains(CANARY)), "{log:#?}");
    assert!(code <= 1 && !status.contains(CANARY), "{code} {status}");
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    assert!(status["routes"].is_array() || status["routes"].is_object());
}

#[test]
fn diagnostics_hold_no_secret_in_any_format() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path());
    let text = std::fs::read_to_string(&file).unwrap();
    let broken = text.replace("target: b", &format!("target: {CANARY}, about: 5"));
    std::fs::write(&file, broken).unwrap();
    for format in ["text", "json", "yaml", "sarif", "github"] {
        let (code, out) = mirror(&["check", "--format", format], &file);
        assert_eq!(code, 1, "{format}: {out}");
        assert!(
            out.contains("E0402") && !out.contains(CANARY),
            "{format}: {out}"
        );
    }
}

#[test]
fn variables_are_taken_as_the_command_line_says() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path());
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("[orders]", "['${TOPIC_X}']")).unwrap();
    let check = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mirror"));
        let command = command.arg("check").arg(&file).args(args);
        let output = command.env("TOPIC_X", "orders").output().unwrap();
        output.status.code().unwrap()
    };
    assert_eq!(check(&[]), 0);
    assert_eq!(check(&["--no-env"]), 1);
    assert_eq!(check(&["--env-allow", "OTHER_*"]), 1);
    assert_eq!(
        check(&["--env-allow", "OTHER_*", "--env-allow", "TOPIC_?"]),
        0
    );
    assert_eq!(check(&["--no-env", "--env-allow", "TOPIC_X"]), 2);
}

#[test]
fn tests_that_are_updated_take_no_secret_into_their_file() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("word"), "canary-in-a-header\n").unwrap();
    let path = folder.path().join("mirror.yaml");
    let text = "version: 1\n\
        clusters:\n\
        \x20 a: { bootstrap_servers: ['a:1'] }\n\
        \x20 b: { bootstrap_servers: ['b:1'] }\n\
        routes:\n\
        \x20 r:\n\
        \x20   source: a\n\
        \x20   target: b\n\
        \x20   topics: { include: [t] }\n\
        \x20   handlers: [{ reformat: { set: { header.x: '${file:word}' } } }]\n\
        tests: [{ name: n, route: r, in: [{ topic: t }], out: [{ headers: { x: y } }] }]\n";
    std::fs::write(&path, text).unwrap();
    let (code, said) = mirror(&["test", "--update"], &path);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("not changed: a loaded secret"), "{said}");
    assert!(!said.contains("canary-in-a-header"), "{said}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
}
