//! Starts Kafka clusters on loopback, says where they are, and ends them on Ctrl-C.

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Instant;

use kafka_harness::{Cluster, ClusterBuilder, HarnessError, start_each};

const USAGE: &str = "\
Starts Apache Kafka clusters on free loopback ports and ends them on Ctrl-C; nothing is left behind.

Usage: kafka-up [--clusters NAME,NAME...] [--brokers N] [--property KEY=VALUE]... [--jvm-arg ARG]...

  --clusters   their names [default: source,target]
  --brokers    how many brokers each has, 1 to 9 [default: 1]
  --property   a line of every broker's server.properties
  --jvm-arg    an option of every broker's Java
  --help       this text
";

fn main() -> ExitCode {
    let wanted = match Wanted::parse(std::env::args().skip(1)) {
        Ok(Some(wanted)) => wanted,
        Ok(None) => {
            say(USAGE);
            return ExitCode::SUCCESS;
        }
        Err(mistake) => {
            eprint!("kafka-up: {mistake}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match run(&wanted) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("kafka-up: {}", with_causes(&error));
            ExitCode::FAILURE
        }
    }
}

fn run(wanted: &Wanted) -> Result<(), HarnessError> {
    // Before the first thread: they all inherit it, and the signal waits until somebody asks for it.
    let end = EndSignals::block();
    let began = Instant::now();
    let clusters = start_each(wanted.builders())?;
    say(&describe(&clusters));
    say(&format!(
        "# ready after {:.1} s; Ctrl-C ends all\n",
        began.elapsed().as_secs_f32()
    ));
    end.wait();
    say("# ending\n");
    Ok(())
}

/// The clusters stay up even if nobody listens any more, as in `kafka-up | head`.
fn say(text: &str) {
    let _ = io::stdout().write_all(text.as_bytes());
}

/// One line for each cluster, and the same as the beginning of a configuration.
fn describe(clusters: &[Cluster]) -> String {
    let lines = clusters
        .iter()
        .map(|c| format!("{} {}\n", c.name(), c.bootstrap()));
    let yaml = clusters.iter().map(|c| {
        let servers = c.bootstrap().replace(',', ", ");
        format!("  {}: {{ bootstrap_servers: [{servers}] }}\n", c.name())
    });
    lines
        .chain(["\nclusters:\n".to_owned()])
        .chain(yaml)
        .collect()
}

fn with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

/// What the command line asks for.
struct Wanted {
    clusters: Vec<String>,
    brokers: usize,
    properties: Vec<(String, String)>,
    jvm_args: Vec<String>,
}

impl Wanted {
    /// None if only the usage is wanted.
    fn parse(mut args: impl Iterator<Item = String>) -> Result<Option<Self>, String> {
        let mut wanted = Self {
            clusters: vec!["source".to_owned(), "target".to_owned()],
            brokers: 1,
            properties: Vec::new(),
            jvm_args: Vec::new(),
        };
        while let Some(flag) = args.next() {
            if matches!(flag.as_str(), "--help" | "-h") {
                return Ok(None);
            }
            let value = args
                .next()
                .ok_or_else(|| format!("{flag} is unknown or wants a value"))?;
            wanted.set(&flag, value)?;
        }
        Ok(Some(wanted))
    }

    fn set(&mut self, flag: &str, value: String) -> Result<(), String> {
        match flag {
            "--clusters" => {
                self.clusters = value
                    .split(',')
                    .map(cluster_name)
                    .collect::<Result<_, _>>()?
            }
            "--brokers" => self.brokers = broker_count(&value)?,
            "--property" => {
                let (key, value) = value
                    .split_once('=')
                    .ok_or_else(|| format!("{value} is not KEY=VALUE"))?;
                self.properties.push((key.to_owned(), value.to_owned()));
            }
            "--jvm-arg" => self.jvm_args.push(value),
            _ => return Err(format!("{flag} is unknown")),
        }
        Ok(())
    }

    fn builders(&self) -> Vec<ClusterBuilder> {
        let builder = |name: &String| {
            let builder = Cluster::builder(name).brokers(self.brokers);
            let builder = self
                .properties
                .iter()
                .fold(builder, |b, (key, value)| b.property(key, value));
            self.jvm_args.iter().fold(builder, |b, arg| b.jvm_arg(arg))
        };
        self.clusters.iter().map(builder).collect()
    }
}

/// It becomes part of a folder's name and a key in YAML.
fn cluster_name(name: &str) -> Result<String, String> {
    let fits = !name.is_empty()
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    if fits {
        Ok(name.to_owned())
    } else {
        Err(format!(
            "{name:?} is no name for a cluster: letters, digits, - and _"
        ))
    }
}

fn broker_count(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|count| (1..=9).contains(count))
        .ok_or_else(|| format!("{text} is not between 1 and 9"))
}

/// The signals that end this program: they are waited for instead of killing it, so that it can clean up.
struct EndSignals(libc::sigset_t);

impl EndSignals {
    fn block() -> Self {
        // SAFETY: the set is initialised by sigemptyset before anything reads it, and only this function has it.
        let set = unsafe {
            let mut set = std::mem::zeroed();
            libc::sigemptyset(&raw mut set);
            for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
                libc::sigaddset(&raw mut set, signal);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
            set
        };
        Self(set)
    }

    fn wait(&self) {
        let mut signal = 0;
        // SAFETY: both pointers are valid for the call.
        unsafe { libc::sigwait(&raw const self.0, &raw mut signal) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<Option<Wanted>, String> {
        Wanted::parse(args.iter().map(|arg| (*arg).to_owned()))
    }

    #[test]
    fn a_pair_is_the_default() {
        let wanted = parse(&[]).unwrap().unwrap();
        assert_eq!(
            (wanted.clusters, wanted.brokers),
            (vec!["source".to_owned(), "target".to_owned()], 1)
        );
    }

    #[test]
    fn mistakes_are_named() {
        for (args, mistake) in [
            (&["--brokers", "0"][..], "0 is not between"),
            (&["--brokers"], "wants a value"),
            (&["--clusters", "a,../b"], "no name"),
            (&["--property", "x"], "not KEY=VALUE"),
            (&["--colour", "red"], "--colour is unknown"),
        ] {
            let message = parse(args).err().unwrap();
            assert!(message.contains(mistake), "{message}");
        }
    }
}
