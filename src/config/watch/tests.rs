use super::*;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};

/// Nothing should take this long; a failing test says so instead of hanging.
const PATIENCE: Duration = Duration::from_secs(20);

struct Bench {
    watch: FileWatch,
    seen: Receiver<Seen>,
    folder: tempfile::TempDir,
}

impl Bench {
    /// Watches `mirror.yaml` in a new folder that `prepare` has filled, past the first report.
    fn new(pace: Pace, prepare: impl Fn(&Path)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        prepare(folder.path());
        let (sender, seen) = channel();
        let watch = FileWatch::start(pace, move |s| drop(sender.send(s))).unwrap();
        watch.follow(vec![folder.path().join("mirror.yaml")], None);
        let bench = Self {
            watch,
            seen,
            folder,
        };
        bench.changed();
        bench
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("mirror.yaml")
    }

    /// Waits for the next report.
    fn next(&self) -> Seen {
        self.seen.recv_timeout(PATIENCE).expect("something is seen")
    }

    /// Waits for a change, past notes of unsettled files.
    fn changed(&self) {
        while self.next() != Seen::Changed {}
    }

    fn replace(&self, content: &str) {
        let temporary = self.folder.path().join(".mirror.yaml.tmp");
        fs::write(&temporary, content).unwrap();
        fs::rename(&temporary, self.file()).unwrap();
    }
}

/// Fast, and without polls, so that it is the events that are tested.
fn by_events() -> Pace {
    Pace {
        settle: Duration::from_millis(30),
        longest: Duration::from_secs(3600),
        poll: Duration::from_secs(3600),
    }
}

fn plain(folder: &Path) {
    fs::write(folder.join("mirror.yaml"), "one").unwrap();
}

#[test]
fn b119_three_renames_over_the_file_are_three_changes() {
    let bench = Bench::new(by_events(), plain);
    for content in ["two", "three", "four"] {
        bench.replace(content);
        bench.changed();
    }
}

#[test]
fn b121_a_slow_writer_is_waited_for() {
    let bench = Bench::new(by_events(), plain);
    fs::write(bench.file(), "").unwrap();
    let Seen::Unsettled { why, .. } = bench.next() else {
        panic!("an empty file is not a change");
    };
    assert_eq!(why, "it is empty");
    fs::write(bench.file(), "two").unwrap();
    assert_eq!(bench.next(), Seen::Changed);
}

#[test]
fn a_file_that_is_deleted_and_made_again_is_one_change() {
    let bench = Bench::new(by_events(), plain);
    fs::remove_file(bench.file()).unwrap();
    assert!(matches!(bench.next(), Seen::Unsettled { .. }));
    fs::write(bench.file(), "two").unwrap();
    assert_eq!(bench.next(), Seen::Changed);
}

#[test]
fn a_file_that_stays_away_is_reported_in_the_end() {
    let pace = Pace {
        longest: Duration::from_millis(200),
        ..by_events()
    };
    let bench = Bench::new(pace, plain);
    fs::remove_file(bench.file()).unwrap();
    // The loader rejects it, and the status shows that; what runs goes on.
    bench.changed();
}

#[test]
fn b120_a_config_map_swap_is_a_change_each_time() {
    let version = |folder: &Path, n: u32| {
        let dated = folder.join(format!("..2026_{n}"));
        fs::create_dir(&dated).unwrap();
        fs::write(dated.join("mirror.yaml"), format!("version {n}")).unwrap();
        symlink(format!("..2026_{n}"), folder.join("..data_tmp")).unwrap();
        fs::rename(folder.join("..data_tmp"), folder.join("..data")).unwrap();
    };
    let bench = Bench::new(by_events(), |folder| {
        version(folder, 1);
        symlink("..data/mirror.yaml", folder.join("mirror.yaml")).unwrap();
    });
    for n in 2..5 {
        version(bench.folder.path(), n);
        fs::remove_dir_all(bench.folder.path().join(format!("..2026_{}", n - 1))).unwrap();
        bench.changed();
    }
}

#[test]
fn a_file_behind_a_link_in_another_folder_is_watched_there() {
    let elsewhere = tempfile::tempdir().unwrap();
    let real = elsewhere.path().join("real.yaml");
    fs::write(&real, "one").unwrap();
    let bench = Bench::new(by_events(), |folder| {
        symlink(&real, folder.join("mirror.yaml")).unwrap();
    });
    fs::write(&real, "two").unwrap();
    bench.changed();
}

#[test]
fn a_new_file_beside_the_known_ones_is_a_change() {
    let bench = Bench::new(by_events(), plain);
    fs::write(bench.folder.path().join("more.yaml"), "new").unwrap();
    bench.changed();
}

#[test]
fn b122_a_busy_folder_delays_a_change_but_not_without_end() {
    let pace = Pace {
        longest: Duration::from_millis(300),
        settle: Duration::from_millis(200),
        poll: Duration::from_secs(3600),
    };
    let bench = Bench::new(pace, plain);
    bench.replace("two");
    let busy = bench.folder.path().join("sibling.log");
    let begun = Instant::now();
    loop {
        // Events come faster than `settle` for as long as nothing is reported.
        fs::write(&busy, format!("{:?}", begun.elapsed())).unwrap();
        match bench.seen.recv_timeout(Duration::from_millis(10)) {
            Ok(Seen::Changed) => break,
            _ => assert!(begun.elapsed() < PATIENCE),
        }
    }
}

#[test]
fn without_events_the_poll_sees_it() {
    let pace = Pace {
        poll: Duration::from_millis(20),
        settle: Duration::from_millis(20),
        longest: Duration::from_secs(3600),
    };
    let bench = Bench::new(pace, plain);
    // The file moves to a folder that is not watched by events for the time of one write.
    let mut watching = bench_without_watcher(pace, bench.file());
    assert_eq!(watching.next_after(|| bench.replace("two")), Seen::Changed);
    drop(bench.watch);
}

/// A watch whose operating system sends no events.
struct Deaf {
    seen: Receiver<Seen>,
    _messages: SyncSender<Message>,
}

fn bench_without_watcher(pace: Pace, file: PathBuf) -> Deaf {
    let (messages, inbox) = sync_channel(BACKLOG);
    let (sender, seen) = channel();
    let watching = Watching {
        inbox,
        pace,
        seen: Box::new(move |s| drop(sender.send(s))),
        watcher: None,
        directories: BTreeSet::new(),
        files: Vec::new(),
        last: None,
        pending: None,
        next_poll: Instant::now(),
    };
    std::thread::spawn(move || watching.run());
    messages.send(Message::Follow(vec![file], None)).unwrap();
    let deaf = Deaf {
        seen,
        _messages: messages,
    };
    assert_eq!(deaf.seen.recv_timeout(PATIENCE), Ok(Seen::Changed));
    deaf
}

impl Deaf {
    fn next_after(&mut self, change: impl FnOnce()) -> Seen {
        change();
        self.seen.recv_timeout(PATIENCE).expect("the poll sees it")
    }
}
