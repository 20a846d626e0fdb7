//! The machine, and what runs on it.

use crate::jars;
use std::fs;
use std::path::Path;
use std::process::Command;

/// What figures have to be read with.
pub struct Machine {
    lines: Vec<(&'static str, String)>,
}

impl Machine {
    /// This one, now.
    pub fn here() -> Self {
        let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
        let lines = vec![
            ("CPU", format!("{}, {cores} cores", cpu())),
            ("memory", memory()),
            (
                "kernel",
                format!("Linux {}", line("/proc/sys/kernel/osrelease")),
            ),
            ("load before the run", load()),
            ("Kafka", kafka()),
            ("JDK", first_line("java", &["-version"])),
            ("librdkafka", rdkafka::util::get_rdkafka_version().1),
            ("Go", first_line("go", &["version"])),
            ("franz-go", franz()),
            ("date", first_line("date", &["-u", "+%Y-%m-%d"])),
        ];
        Self { lines }
    }

    /// As rows of a table.
    pub fn rows(&self) -> impl Iterator<Item = String> {
        self.lines
            .iter()
            .map(|(what, is)| format!("| {what} | {is} |"))
    }
}

fn cpu() -> String {
    let about = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = about.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == "model name").then(|| value.trim().to_owned())
    });
    model.unwrap_or_else(|| "of an unknown model".to_owned())
}

fn memory() -> String {
    let about = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = about
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"));
    let kb: Option<f64> = line.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    kb.map_or_else(unknown, |kb| format!("{:.0} GiB", kb / 1024.0 / 1024.0))
}

/// Of the last minute, five and fifteen; without what else the line has.
fn load() -> String {
    let all = line("/proc/loadavg");
    let words: Vec<&str> = all.split(' ').take(3).collect();
    words.join(", ")
}

/// By the name of its jar.
fn kafka() -> String {
    let version = |name: &str| {
        let version = name.strip_prefix("kafka_2.13-")?.strip_suffix(".jar")?;
        Some(format!(
            "Apache Kafka {version}, one broker each side, on the same cores"
        ))
    };
    let folder = jars::classpath().ok();
    let folder = folder.as_deref().and_then(Path::parent);
    let mut names = folder
        .into_iter()
        .flat_map(|f| fs::read_dir(f).into_iter().flatten());
    names
        .find_map(|entry| version(entry.ok()?.file_name().to_str()?))
        .unwrap_or_else(unknown)
}

/// By its module file.
fn franz() -> String {
    let module = include_str!("franz/go.mod");
    let version = module
        .lines()
        .find_map(|line| line.split_once("github.com/twmb/franz-go "));
    version.map_or_else(unknown, |(_, version)| version.to_owned())
}

fn line(file: &str) -> String {
    let text = fs::read_to_string(file);
    text.map_or_else(|_| unknown(), |text| text.trim().to_owned())
}

/// What a program says of itself first, wherever it says it.
fn first_line(program: &str, words: &[&str]) -> String {
    let Ok(output) = Command::new(program).args(words).output() else {
        return "none".to_owned();
    };
    let said = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&said);
    text.lines().next().map_or_else(unknown, str::to_owned)
}

fn unknown() -> String {
    "unknown".to_owned()
}
