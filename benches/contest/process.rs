//! A contender's process, and what it has taken of the machine: all its threads, and nobody else's.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Between two looks.
const LOOK: Duration = Duration::from_millis(10);
/// Linux counts CPU time for `/proc` in hundredths of a second on every machine.
const TICKS_PER_SECOND: f64 = 100.0;
/// How much of what it said is shown when it fails.
const LAST_WORDS: usize = 2000;

/// What a process has taken from its start to its end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// User and system time of all its threads.
    pub cpu_s: f64,
    pub wall_s: f64,
    /// The peak of its resident memory.
    pub rss_mb: f64,
}

/// A process that runs; killed when it is dropped, and when the bench is gone.
pub struct Running {
    child: Child,
    name: String,
    began: Instant,
    rss_mb: f64,
    words: PathBuf,
}

impl Running {
    /// Starts it; what it says goes to a file in `folder`.
    pub fn start(name: &str, mut command: Command, folder: &Path) -> Self {
        let words = folder.join(format!("{name}.log"));
        let said = File::create(&words).expect("a file for its words");
        let again = said.try_clone().expect("the same file");
        command.stdin(Stdio::null()).stdout(said).stderr(again);
        Self {
            child: kafka_harness::spawn(command)
                .unwrap_or_else(|error| panic!("{name} does not start: {error}")),
            name: name.to_owned(),
            began: Instant::now(),
            rss_mb: 0.0,
            words,
        }
    }

    /// Waits until it has ended by itself.
    ///
    /// # Panics
    /// If it fails, or does not end within `patience`.
    pub fn until_it_ends(mut self, patience: Duration) -> Cost {
        while !self.has_ended() {
            self.look(patience);
        }
        // Until it is waited for, an ended process still shows what it took.
        let cost = self.cost();
        let status = self.child.wait().expect("it is ours");
        assert!(
            status.success(),
            "{} failed ({status}):\n{}",
            self.name,
            self.last_words()
        );
        cost
    }

    /// Waits until the work is done, and kills it.
    ///
    /// # Panics
    /// If it ends before, or the work is not done within `patience`.
    pub fn until(mut self, patience: Duration, mut done: impl FnMut() -> bool) -> Cost {
        while !done() {
            assert!(
                !self.has_ended(),
                "{} ended:\n{}",
                self.name,
                self.last_words()
            );
            self.look(patience);
        }
        self.cost()
    }

    /// One look at its memory, and a rest.
    ///
    /// # Panics
    /// If its time is over.
    pub fn look(&mut self, patience: Duration) {
        let peak = field(self.child.id(), "VmHWM:").unwrap_or(0.0) / 1024.0;
        self.rss_mb = self.rss_mb.max(peak);
        assert!(
            self.began.elapsed() < patience,
            "{} was to be ready after {patience:?}:\n{}",
            self.name,
            self.last_words()
        );
        std::thread::sleep(LOOK);
    }

    /// What it has taken so far.
    pub fn cost(&self) -> Cost {
        Cost {
            cpu_s: self.ticks().unwrap_or(0.0) / TICKS_PER_SECOND,
            wall_s: self.began.elapsed().as_secs_f64(),
            rss_mb: self.rss_mb,
        }
    }

    /// Its threads now.
    pub fn threads(&self) -> u64 {
        field(self.child.id(), "Threads:").unwrap_or(0.0) as u64
    }

    /// Its open descriptors now.
    pub fn descriptors(&self) -> u64 {
        let folder = fs::read_dir(format!("/proc/{}/fd", self.child.id()));
        folder.map_or(0, Iterator::count) as u64
    }

    fn has_ended(&self) -> bool {
        self.stat().is_none_or(|words| words[0] == "Z")
    }

    fn ticks(&self) -> Option<f64> {
        let words = self.stat()?;
        Some(words.get(11)?.parse::<f64>().ok()? + words.get(12)?.parse::<f64>().ok()?)
    }

    /// What stands behind its name in `/proc/PID/stat`: the state, then numbers.
    fn stat(&self) -> Option<Vec<String>> {
        let text = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).ok()?;
        let (_, rest) = text.rsplit_once(')')?;
        Some(rest.split_whitespace().map(str::to_owned).collect())
    }

    fn last_words(&self) -> String {
        let mut text = Vec::new();
        if let Ok(mut file) = File::open(&self.words) {
            // What could be read is worth showing.
            let _ = file.read_to_end(&mut text);
        }
        let from = text.len().saturating_sub(LAST_WORDS);
        String::from_utf8_lossy(&text[from..]).into_owned()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn field(process: u32, name: &str) -> Option<f64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}
