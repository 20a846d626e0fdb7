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

// --- twenty of each kind -------------------------------------------------------------------------

const TIMES: u32 = 20;

/// Quiet for a moment is enough: what is tested is that nothing is missed.
fn quick() -> Pace {
    Pace {
        settle: Duration::from_millis(5),
        ..by_events()
    }
}

impl Bench {
    /// Makes each of twenty changes, and sees each.
    fn twenty(&self, mut change: impl FnMut(&Path, u32)) {
        for n in 0..TIMES {
            change(self.folder.path(), n);
            self.changed();
            let now = Sample::take(&[self.file()], &BTreeSet::new());
            assert!(
                matches!(now, Sample::Settled(_)),
                "reported half-way: {now:?}"
            );
        }
        self.quiet();
    }

    /// Nothing more is seen: a report is never repeated.
    fn quiet(&self) {
        let more = self.seen.recv_timeout(Duration::from_millis(50));
        assert!(more.is_err(), "{more:?}");
    }
}

#[test]
fn twenty_renames() {
    let bench = Bench::new(quick(), plain);
    bench.twenty(|_, n| bench.replace(&format!("version {n}")));
}

#[test]
fn twenty_slow_writes_in_place() {
    let bench = Bench::new(quick(), plain);
    for n in 0..TIMES {
        let mut file = fs::File::create(bench.file()).unwrap();
        assert!(
            matches!(bench.next(), Seen::Unsettled { .. }),
            "an empty file is not a change"
        );
        std::io::Write::write_all(&mut file, format!("version {n}").as_bytes()).unwrap();
        bench.changed();
    }
}

#[test]
fn twenty_config_map_swaps() {
    let version = |folder: &Path, n: u32| {
        let dated = folder.join(format!("..2026_{n}"));
        fs::create_dir(&dated).unwrap();
        fs::write(dated.join("mirror.yaml"), format!("version {n}")).unwrap();
        symlink(format!("..2026_{n}"), folder.join("..data_tmp")).unwrap();
        fs::rename(folder.join("..data_tmp"), folder.join("..data")).unwrap();
        let old = n.checked_sub(1).map(|n| folder.join(format!("..2026_{n}")));
        old.map(fs::remove_dir_all).transpose().unwrap();
    };
    let bench = Bench::new(quick(), |folder| {
        version(folder, 0);
        symlink("..data/mirror.yaml", folder.join("mirror.yaml")).unwrap();
    });
    bench.twenty(|folder, n| version(folder, n + 1));
}

/// Watches a file in a folder that the test may take away.
fn inside(pace: Pace, prepare: impl Fn(&Path)) -> (Bench, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    prepare(folder.path());
    let file = folder.path().join("config/mirror.yaml");
    let (sender, seen) = channel();
    let watch = FileWatch::start(pace, move |s| drop(sender.send(s))).unwrap();
    watch.follow(vec![file.clone()], None);
    let bench = Bench {
        watch,
        seen,
        folder,
    };
    bench.changed();
    (bench, file)
}

#[test]
fn twenty_times_the_folder_is_deleted_and_made_again() {
    let make = |folder: &Path, n: u32| {
        fs::create_dir(folder.join("config")).unwrap();
        fs::write(folder.join("config/mirror.yaml"), format!("version {n}")).unwrap();
    };
    let (bench, _) = inside(quick(), |folder| make(folder, 0));
    for n in 0..TIMES {
        fs::remove_dir_all(bench.folder.path().join("config")).unwrap();
        assert!(
            matches!(bench.next(), Seen::Unsettled { .. }),
            "gone is not changed"
        );
        make(bench.folder.path(), n + 1);
        bench.changed();
    }
    bench.quiet();
}

#[test]
fn twenty_swaps_of_a_link_to_the_folder() {
    // config -> current -> v1: the link in the middle is what a deployment swaps.
    let version = |folder: &Path, n: u32| {
        let named = format!("v{n}");
        fs::create_dir(folder.join(&named)).unwrap();
        fs::write(folder.join(&named).join("mirror.yaml"), &named).unwrap();
        symlink(&named, folder.join("new")).unwrap();
        fs::rename(folder.join("new"), folder.join("current")).unwrap();
    };
    let (bench, file) = inside(quick(), |folder| {
        version(folder, 0);
        symlink("current", folder.join("config")).unwrap();
    });
    for n in 1..=TIMES {
        version(bench.folder.path(), n);
        bench.changed();
        assert_eq!(fs::read_to_string(&file).unwrap(), format!("v{n}"));
    }
    bench.quiet();
}

#[test]
fn twenty_changes_that_send_no_event() {
    let pace = Pace {
        poll: Duration::from_millis(5),
        ..quick()
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mirror.yaml");
    fs::write(&file, "one").unwrap();
    let mut deaf = bench_without_watcher(pace, file.clone());
    for n in 0..TIMES {
        let change = || fs::write(folder.path().join("next"), n.to_string()).unwrap();
        let put = || fs::rename(folder.path().join("next"), &file).unwrap();
        assert_eq!(deaf.next_after(|| (change(), put()).1), Seen::Changed);
    }
}

#[test]
fn a_thousand_quick_saves_end_with_the_last_one() {
    let pace = Pace {
        longest: Duration::from_millis(50),
        ..quick()
    };
    let bench = Bench::new(pace, plain);
    let begun = Instant::now();
    for n in 0..1000 {
        bench.replace(&format!("version {n}"));
    }
    let last = Sample::take(&[bench.file()], &BTreeSet::new());
    // However many were seen on the way, there is one after the last save, and then no more.
    let mut seen = 0;
    while bench.seen.recv_timeout(Duration::from_millis(200)).is_ok() {
        seen += 1;
        assert!(begun.elapsed() < PATIENCE);
    }
    assert!((1..=1000).contains(&seen), "{seen}");
    assert_eq!(Sample::take(&[bench.file()], &BTreeSet::new()), last);
    bench.replace("after");
    bench.changed();
}

#[test]
fn a_watcher_that_fails_is_said_and_the_poll_goes_on() {
    let pace = Pace {
        poll: Duration::from_millis(5),
        ..quick()
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mirror.yaml");
    fs::write(&file, "one").unwrap();
    let mut deaf = bench_without_watcher(pace, file.clone());
    let failed = Message::WatcherFailed("no space left on device".into());
    deaf._messages.send(failed).unwrap();
    let Ok(Seen::OnlyPolling { why }) = deaf.seen.recv_timeout(PATIENCE) else {
        panic!("it is not said");
    };
    assert_eq!(why, "no space left on device");
    assert_eq!(
        deaf.next_after(|| fs::write(&file, "two").unwrap()),
        Seen::Changed
    );
}
