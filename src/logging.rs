//! Log lines and the progress line, which share standard error.

use crate::redact;
use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

/// How a log line looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For people.
    Text,
    /// One JSON object per line.
    Json,
}

impl Format {
    /// Text where a person looks on, JSON elsewhere.
    pub fn fitting_stderr() -> Self {
        if io::stderr().is_terminal() {
            Format::Text
        } else {
            Format::Json
        }
    }
}

/// Whether colour may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// It may.
    On,
    /// It may not.
    Off,
}

/// A level or filter that is not understood.
#[derive(Debug, thiserror::Error)]
#[error("--log-level {given}: {why}; use error, warn, info, debug, trace or target=level,…")]
pub struct BadLevel {
    given: String,
    why: String,
}

/// Sends everything that is logged from now on to standard error.
///
/// # Errors
/// `level` is not a level or filter.
pub fn init(
    format: Format,
    level: &str,
    colour: Colour,
    screen: &Arc<Screen>,
) -> Result<(), BadLevel> {
    let filter = EnvFilter::try_new(level).map_err(|why| BadLevel {
        given: level.to_owned(),
        why: why.to_string(),
    })?;
    // The crate's own lines say nothing that the client's lines and our states do not, and call an
    // error that a client closed once is closed (`client::consumer` closes it with a deadline).
    let filter = match "rdkafka=off".parse() {
        Ok(quiet) => filter.add_directive(quiet),
        Err(_) => filter,
    };
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(colour == Colour::On)
        .with_writer(Lines(Arc::clone(screen)));
    // A second call in one process (tests, embedding) keeps the first subscriber.
    let _ = match format {
        Format::Text => builder.with_target(false).try_init(),
        Format::Json => builder
            .json()
            .flatten_event(true)
            .with_current_span(false)
            .try_init(),
    };
    Ok(())
}

/// Standard error, where at most one unfinished line stands: the progress.
#[derive(Default)]
pub struct Screen {
    progress: Mutex<Option<String>>,
}

/// To the start of the line, and clear it.
const CLEAR: &str = "\r\x1b[2K";

impl Screen {
    /// Shows `line` in the place of the one before. The terminal cuts it off at its right edge: a
    /// line that wraps could not be written over.
    pub fn show(&self, line: String) {
        let mut progress = self.lock();
        let line = redact::text(&line).into_owned();
        let _ = write!(io::stderr(), "{}", Shown(&line));
        *progress = Some(line);
    }

    /// Takes the progress line away.
    pub fn clear(&self) {
        if self.lock().take().is_some() {
            let _ = write!(io::stderr(), "{CLEAR}");
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<String>> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Shown<'a>(&'a str);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{CLEAR}\x1b[?7l{}\x1b[?7h", self.0)
    }
}

/// Writes log lines above the progress line.
struct Lines(Arc<Screen>);

/// One log line. Held for its whole length, so that progress cannot come in between.
struct Line<'a> {
    progress: MutexGuard<'a, Option<String>>,
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Line<'a>;

    fn make_writer(&'a self) -> Line<'a> {
        let progress = self.0.lock();
        if progress.is_some() {
            let _ = write!(io::stderr(), "{CLEAR}");
        }
        Line { progress }
    }
}

/// A line comes in one write.
impl Write for Line<'_> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        redact::Clean(io::stderr()).write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        if let Some(line) = &*self.progress {
            let _ = write!(io::stderr(), "{}", Shown(line));
        }
    }
}
