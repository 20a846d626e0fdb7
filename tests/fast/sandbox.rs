//! `mirror sandbox`, as a user starts it.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Much longer than it takes.
const PATIENCE: Duration = Duration::from_secs(60);

fn sandbox(folder: &Path, seconds: &str) -> Child {
    Command::new(env!("CARGO_BIN_EXE_mirror"))
        .args(["sandbox", "--rate", "600", "--seconds", seconds])
        .env("TMPDIR", folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("started")
}

/// Its exit code and what it wrote.
fn end_of(child: Child) -> (Option<i32>, String) {
    let output = child.wait_with_output().expect("ended");
    let text = String::from_utf8(output.stdout).expect("text");
    let errors = String::from_utf8(output.stderr).expect("text");
    (output.status.code(), text + &errors)
}

fn is_empty(folder: &Path) -> bool {
    folder.read_dir().expect("a folder").next().is_none()
}

#[test]
fn it_copies_reloads_counts_and_leaves_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let (code, text) = end_of(sandbox(folder.path(), "4"));
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("catalogue-out: untouched"), "{text}");
    assert!(
        text.contains("all there, byte for byte, in order"),
        "{text}"
    );
    assert!(!text.contains('\x1b'), "no codes in a pipe: {text}");
    assert!(is_empty(folder.path()));
}

#[test]
fn an_interrupt_ends_it_early_and_well() {
    let folder = tempfile::tempdir().expect("a folder");
    let begun = Instant::now();
    let child = sandbox(folder.path(), "600");
    // The file is written when the clusters run; the routes follow at once.
    while is_empty(folder.path()) {
        assert!(begun.elapsed() < PATIENCE, "no file");
        std::thread::sleep(Duration::from_millis(20));
    }
    let socket = || {
        let mut folders = folder.path().read_dir().expect("a folder").flatten();
        folders.any(|f| f.path().join("mirror.sock").exists())
    };
    while !socket() {
        assert!(begun.elapsed() < PATIENCE, "no socket");
        std::thread::sleep(Duration::from_millis(20));
    }
    let pid = child.id().to_string();
    let sent = Command::new("kill").args(["-INT", &pid]).status();
    assert!(sent.expect("sent").success());
    let (code, text) = end_of(child);
    assert_eq!(code, Some(0), "{text}");
    assert!(begun.elapsed() < PATIENCE, "{text}");
    assert!(text.contains("copies arrived"), "{text}");
    assert!(is_empty(folder.path()), "{text}");
}
