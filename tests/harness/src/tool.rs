//! Programs that run beside a cluster: to their end, or for as long as a test wants.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::error::{Attempt, HarnessError};
use crate::process::Process;

/// How many lines may wait to be read before the tool has to wait.
const UNREAD_LINES: usize = 1 << 16;

/// Runs a program to its end and gives what it wrote on its standard output.
///
/// Ends it after `within`. Everything but success is an error that holds both streams.
pub(crate) fn run(
    name: &str,
    mut command: Command,
    within: Duration,
) -> Result<String, HarnessError> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let starting = || format!("run {name}");
    let mut process = Process::spawn(command).attempt(starting)?;
    // Both at the same time, or a program that fills one pipe would wait for us forever.
    let stdout = read_all(process.child.stdout.take());
    let stderr = read_all(process.child.stderr.take());
    let ended = process
        .wait_until(Instant::now() + within)
        .attempt(starting)?;
    drop(process);
    let (stdout, stderr) = (collect(stdout), collect(stderr));
    let output = || format!("{stdout}{stderr}");
    match ended {
        Some(status) if status.success() => Ok(stdout),
        Some(status) => Err(HarnessError::Program {
            program: name.to_owned(),
            status,
            output: output(),
        }),
        None => Err(HarnessError::ProgramTimedOut {
            program: name.to_owned(),
            within,
            output: output(),
        }),
    }
}

fn read_all(stream: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut stream) = stream {
            // What was read before an error is still worth showing.
            let _ = stream.read_to_end(&mut bytes);
        }
        bytes
    })
}

fn collect(reader: JoinHandle<Vec<u8>>) -> String {
    String::from_utf8_lossy(&reader.join().unwrap_or_default()).into_owned()
}

/// A tool that is running, such as `org.apache.kafka.tools.VerifiableProducer`; it is killed on drop.
#[derive(Debug)]
pub struct RunningTool {
    name: String,
    process: Process,
    lines: Receiver<String>,
}

impl RunningTool {
    /// What it writes on its standard error goes to ours.
    pub(crate) fn spawn(name: &str, mut command: Command) -> Result<Self, HarnessError> {
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut process = Process::spawn(command).attempt(|| format!("run {name}"))?;
        let (sender, lines) = sync_channel(UNREAD_LINES);
        if let Some(stdout) = process.child.stdout.take() {
            // It ends with the tool, or when nobody can read the lines any more.
            thread::spawn(move || pass_lines(stdout, &sender));
        }
        Ok(Self {
            name: name.to_owned(),
            process,
            lines,
        })
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// The next line of its standard output; none if there is none in time, or if the output has ended.
    ///
    /// After 65,536 lines that nobody has read, the tool has to wait.
    pub fn next_line(&mut self, within: Duration) -> Option<String> {
        self.lines.recv_timeout(within).ok()
    }

    /// Reads lines until one is `wanted`, and gives that one; none if there is none in time.
    pub fn find_line(&mut self, within: Duration, wanted: impl Fn(&str) -> bool) -> Option<String> {
        let deadline = Instant::now() + within;
        loop {
            let line = self.next_line(deadline.saturating_duration_since(Instant::now()))?;
            if wanted(&line) {
                return Some(line);
            }
        }
    }

    /// Asks it to end (SIGTERM), as Ctrl-C does, and gives the lines it still wrote and how it ended.
    ///
    /// # Errors
    ///
    /// If it does not end in time; then it is killed.
    pub fn stop(mut self, within: Duration) -> Result<(Vec<String>, ExitStatus), HarnessError> {
        self.process
            .signal(libc::SIGTERM)
            .attempt(|| format!("stop {}", self.name))?;
        self.wait(within)
    }

    /// Waits until it ends by itself, and gives the lines nobody had read and how it ended.
    ///
    /// # Errors
    ///
    /// If it does not end in time; then it is killed.
    pub fn wait(mut self, within: Duration) -> Result<(Vec<String>, ExitStatus), HarnessError> {
        let deadline = Instant::now() + within;
        let mut rest = Vec::new();
        loop {
            match self
                .lines
                .recv_timeout(deadline.saturating_duration_since(Instant::now()))
            {
                Ok(line) => rest.push(line),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => return Err(self.timed_out(within, &rest)),
            }
        }
        match self
            .process
            .wait_until(deadline)
            .attempt(|| format!("wait for {}", self.name))?
        {
            Some(status) => Ok((rest, status)),
            None => Err(self.timed_out(within, &rest)),
        }
    }

    fn timed_out(&self, within: Duration, lines: &[String]) -> HarnessError {
        HarnessError::ProgramTimedOut {
            program: self.name.clone(),
            within,
            output: lines.join("\n"),
        }
    }
}

fn pass_lines(stdout: impl Read, sender: &SyncSender<String>) {
    for line in BufReader::new(stdout).split(b'\n').map_while(Result::ok) {
        if sender
            .send(String::from_utf8_lossy(&line).into_owned())
            .is_err()
        {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_failure_shows_both_streams() {
        let error = run(
            "sh",
            shell("echo out; echo err >&2; exit 3"),
            Duration::from_secs(10),
        )
        .unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("out") && text.contains("err") && text.contains('3'),
            "{text}"
        );
    }

    #[test]
    fn a_program_that_does_not_end_is_ended() {
        let error = run(
            "sleep",
            shell("echo begun; exec sleep 60"),
            Duration::from_millis(200),
        )
        .unwrap_err();
        assert!(
            matches!(&error, HarnessError::ProgramTimedOut { output, .. } if output == "begun\n"),
            "{error}"
        );
    }

    #[test]
    fn lines_can_be_read_while_the_tool_runs() {
        let mut tool = RunningTool::spawn("sh", shell("echo a; echo b; exec sleep 60")).unwrap();
        let patience = Duration::from_secs(10);
        assert_eq!(
            tool.find_line(patience, |line| line == "b").as_deref(),
            Some("b")
        );
        let (rest, status) = tool.stop(patience).unwrap();
        assert!(rest.is_empty() && !status.success());
    }
}
