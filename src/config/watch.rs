//! Notices that a file of the configuration has changed, whoever changes it in whatever way.
//!
//! Directories are watched, never files: a watch on a file is deaf after the first rename over it
//! (B119), and Kubernetes swaps a symlink beside it (B120). The kind of an event says nothing that
//! can be relied on; any event makes us look at the content. A slow look without events covers
//! file systems that send none. What is looked at must have been quiet first (B121), and quiet is
//! not waited for without end (B122).

use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use sample::{Directory, Sample};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

mod mounts;
mod sample;
#[cfg(test)]
mod tests;

/// Messages that wait for the watching thread at most; events beyond it say nothing new.
const BACKLOG: usize = 64;

/// Times that the watch keeps to.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Quiet time after the last event.
    pub settle: Duration,
    /// Without quiet, look after this long.
    pub longest: Duration,
    /// Look this often without any event.
    pub poll: Duration,
}

impl Pace {
    /// The usual pace with the file's own `settle`.
    pub fn settling(settle: Duration) -> Self {
        Self {
            settle,
            longest: settle.max(Duration::from_secs(5)),
            poll: Duration::from_secs(3),
        }
    }
}

/// What the watch has to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// The content differs from the last time, or could not be compared: load it.
    Changed,
    /// A file is missing, empty or being written: nothing is loaded yet.
    Unsettled {
        /// The file.
        file: PathBuf,
        /// What is the matter with it.
        why: &'static str,
    },
    /// The operating system's events are not to be had: the files are looked at every few seconds.
    OnlyPolling {
        /// The watcher's words.
        why: String,
    },
    /// A file stands where changes of it may never arrive.
    Undelivered {
        /// The file.
        file: PathBuf,
        /// Why, and what to do.
        why: &'static str,
    },
}

/// Watches files until it is dropped.
pub struct FileWatch {
    messages: SyncSender<Message>,
}

enum Message {
    Event,
    WatcherFailed(String),
    Follow(Vec<PathBuf>, Option<Duration>),
    Stop,
}

impl FileWatch {
    /// Starts a thread that watches nothing until [`follow`](Self::follow) says what.
    ///
    /// # Errors
    /// The operating system gives no thread.
    pub fn start(pace: Pace, seen: impl Fn(Seen) + Send + 'static) -> std::io::Result<Self> {
        let (messages, inbox) = sync_channel(BACKLOG);
        let mut watching = Watching {
            inbox,
            pace,
            seen: Box::new(seen),
            watcher: None,
            directories: BTreeSet::new(),
            files: Vec::new(),
            last: None,
            pending: None,
            next_poll: Instant::now() + pace.poll,
        };
        watching.open_watcher(messages.clone());
        std::thread::Builder::new()
            .name("mirror-watch".into())
            .spawn(move || watching.run())?;
        Ok(Self { messages })
    }

    /// Watches `files` from now on. If they are others than before, one [`Seen::Changed`] follows
    /// in any case: the files were read before they were watched, and a change in between would
    /// otherwise never be seen.
    ///
    /// With a full inbox this waits for the thread's present look, some milliseconds.
    pub fn follow(&self, files: Vec<PathBuf>, settle: Option<Duration>) {
        let _ = self.messages.send(Message::Follow(files, settle));
    }
}

impl Drop for FileWatch {
    fn drop(&mut self) {
        let _ = self.messages.try_send(Message::Stop);
    }
}

/// A change that has not been reported yet.
struct Pending {
    first: Instant,
    quiet_since: Instant,
    /// What the last look without an event has found: the next one must find the same.
    candidate: Option<Sample>,
    why: Why,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Why {
    /// Reported if the content differs.
    Event,
    /// Reported in any case.
    NewFiles,
}

struct Watching {
    inbox: Receiver<Message>,
    pace: Pace,
    seen: Box<dyn Fn(Seen) + Send>,
    watcher: Option<RecommendedWatcher>,
    directories: BTreeSet<Directory>,
    files: Vec<PathBuf>,
    last: Option<Sample>,
    pending: Option<Pending>,
    next_poll: Instant,
}

impl Watching {
    fn open_watcher(&mut self, messages: SyncSender<Message>) {
        let opened = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            let message = match event {
                // Reading a file is an event as well; our own looks must not keep us looking.
                Ok(event) if matches!(event.kind, notify::EventKind::Access(_)) => return,
                Ok(_) => Message::Event,
                Err(error) => Message::WatcherFailed(error.to_string()),
            };
            // A full inbox holds an event already, which will make us look after this one, too.
            let _ = messages.try_send(message);
        });
        match opened {
            Ok(watcher) => self.watcher = Some(watcher),
            Err(error) => self.fall_back(error.to_string()),
        }
    }

    fn run(mut self) {
        loop {
            let wait = self.due().saturating_duration_since(Instant::now());
            match self.inbox.recv_timeout(wait) {
                Ok(Message::Event) => self.touched(Why::Event, Instant::now()),
                Ok(Message::WatcherFailed(why)) => self.fall_back(why),
                Ok(Message::Follow(files, settle)) => self.follow(files, settle),
                Ok(Message::Stop) | Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => self.look(Instant::now()),
            }
        }
    }

    fn due(&self) -> Instant {
        self.pending.as_ref().map_or(self.next_poll, |pending| {
            let quiet = pending.quiet_since + self.pace.settle;
            quiet.min(pending.first + self.pace.longest)
        })
    }

    fn follow(&mut self, files: Vec<PathBuf>, settle: Option<Duration>) {
        if let Some(settle) = settle {
            self.pace = Pace {
                poll: self.pace.poll,
                ..Pace::settling(settle)
            };
        }
        if files == self.files || files.is_empty() {
            return;
        }
        self.files = files;
        self.watch_directories();
        for trouble in mounts::troubles(&self.files, &mounts::table()) {
            (self.seen)(trouble);
        }
        self.touched(Why::NewFiles, Instant::now());
    }

    fn touched(&mut self, why: Why, now: Instant) {
        let pending = self.pending.get_or_insert(Pending {
            first: now,
            quiet_since: now,
            candidate: None,
            why,
        });
        pending.quiet_since = now;
        if why == Why::NewFiles {
            pending.why = why;
        }
    }

    /// Looks at the content and reports it if it is new and quiet.
    fn look(&mut self, now: Instant) {
        self.next_poll = now + self.pace.poll;
        self.watch_directories();
        let sample = Sample::take(&self.files, &self.directories);
        let is_news = self.last.as_ref() != Some(&sample);
        let Some(pending) = &mut self.pending else {
            if is_news && self.last.is_some() {
                // No event told us: on such a file system a writer may be half-way. Look again.
                self.pending = Some(Pending {
                    first: now,
                    quiet_since: now,
                    candidate: Some(sample),
                    why: Why::Event,
                });
            }
            return;
        };
        let may_wait = now < pending.first + self.pace.longest;
        if let Sample::Unsettled { file, why } = &sample
            && may_wait
        {
            if pending.candidate.as_ref() != Some(&sample) {
                (self.seen)(Seen::Unsettled {
                    file: file.clone(),
                    why,
                });
            }
            pending.candidate = Some(sample);
            pending.quiet_since = now;
            return;
        }
        let moved = pending.candidate.as_ref().is_some_and(|c| *c != sample);
        if moved && may_wait {
            pending.candidate = Some(sample);
            pending.quiet_since = now;
            return;
        }
        let report = is_news || pending.why == Why::NewFiles;
        self.pending = None;
        self.last = Some(sample);
        if report {
            (self.seen)(Seen::Changed);
        }
    }

    /// Watches what has to be watched now. Directories come and go (a ConfigMap's dated folder,
    /// an editor that renames a whole folder), so this is asked again before each look; the inode
    /// tells a directory from its successor of the same name.
    fn watch_directories(&mut self) {
        let wanted = sample::directories(&self.files);
        let Some(watcher) = &mut self.watcher else {
            self.directories = wanted;
            return;
        };
        for gone in self.directories.difference(&wanted) {
            let _ = watcher.unwatch(&gone.path);
        }
        let mut failed = None;
        for new in wanted.difference(&self.directories) {
            if let Err(error) = watcher.watch(&new.path, RecursiveMode::NonRecursive) {
                failed = Some(format!("{}: {error}", new.path.display()));
            }
        }
        self.directories = wanted;
        if let Some(why) = failed {
            self.fall_back(why);
        }
    }

    /// Events that do not come are replaced by looking; those that come are still welcome.
    fn fall_back(&mut self, why: String) {
        (self.seen)(Seen::OnlyPolling { why });
        self.touched(Why::Event, Instant::now());
    }
}
