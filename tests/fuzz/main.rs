//! A fuzzer for the reading of the file: parser, interpolation, schema, validator, rendering.
//!
//! `make fuzz` runs it for half an hour, `cargo test --test fuzz -- --seconds 60 --seed 7` for a
//! minute. Without arguments it replays the corpus.
//!
//! Inputs are mutations of the corpus, the examples and the broken files. An input is kept when the
//! set of codes that it is answered with was not seen before. A panic, an input that takes more than
//! two minutes of a processor or half an hour, and more than 2 GiB of memory end it with the input
//! written to a file.

mod giants;
mod mutate;
mod random;

use mirror::config::interpolate::Variables;
use mirror::config::render::Colour;
use mirror::config::{LoadOptions, load};
use mirror::flow::listener::Listeners;
use mirror::handler::Registry;
use mutate::Mutator;
use random::Random;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// No input takes more of a processor, also one of 50 MB in a debug build.
const WORK: Duration = Duration::from_secs(120);
/// No input takes longer, also on a machine that is busy with other things.
const PATIENCE: Duration = Duration::from_secs(1800);
/// Memory of the process at most, in KiB.
const MEMORY: u64 = 2 << 20;
/// Larger inputs find nothing that smaller ones do not, and are not kept.
const KEPT_BYTES: usize = 4096;

/// How many inputs were begun and ended: odd while one is at hand.
static INPUTS: AtomicU64 = AtomicU64::new(0);

struct Arguments {
    seconds: u64,
    seed: u64,
    keep: Option<PathBuf>,
}

fn main() -> ExitCode {
    let arguments = match arguments() {
        Ok(arguments) => arguments,
        Err(message) => {
            eprintln!("fuzz: {message}; use --seconds N, --seed N, --keep FOLDER");
            return ExitCode::from(2);
        }
    };
    let folder = std::env::temp_dir().join(format!("mirror-fuzz-{}", std::process::id()));
    if let Err(error) = std::fs::create_dir_all(&folder) {
        eprintln!("fuzz: {}: {error}", folder.display());
        return ExitCode::FAILURE;
    }
    let mut fuzzer = Fuzzer::new(folder.clone());
    watch(folder.join("mirror.yaml"));
    fuzzer.replay();
    if arguments.seconds > 0 {
        giants::all().iter().for_each(|giant| fuzzer.try_one(giant));
        fuzzer.run(&arguments);
    }
    println!("{}", fuzzer.summary());
    let failed = fuzzer.failures > 0;
    let _ = std::fs::remove_dir_all(folder);
    match failed {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    }
}

fn arguments() -> Result<Arguments, String> {
    let mut read = Arguments {
        seconds: 0,
        seed: 1,
        keep: None,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        let number = |text: String| text.parse::<u64>().map_err(|e| format!("{text}: {e}"));
        match word.as_str() {
            "--seconds" => read.seconds = number(value()?)?,
            "--seed" => read.seed = number(value()?)?,
            "--keep" => read.keep = Some(PathBuf::from(value()?)),
            other => return Err(format!("{other} is no argument")),
        }
    }
    Ok(read)
}

/// Ends the process when an input takes too long: a loop without an end can be ended by nobody else.
fn watch(input: PathBuf) {
    std::thread::spawn(move || {
        let (mut at_hand, mut since, mut work_before) = (0, Instant::now(), work());
        loop {
            std::thread::sleep(Duration::from_millis(500));
            let inputs = INPUTS.load(Ordering::Relaxed);
            if inputs != at_hand || inputs.is_multiple_of(2) {
                (at_hand, since, work_before) = (inputs, Instant::now(), work());
                continue;
            }
            let worked = work().saturating_sub(work_before);
            if worked > WORK || since.elapsed() > PATIENCE {
                let kept = format!("fuzz-hang-{inputs}.yaml");
                let _ = std::fs::copy(&input, &kept);
                eprintln!("fuzz: an input took {worked:?} of a processor: {kept}");
                std::process::exit(1);
            }
        }
    });
}

/// How long this process has had a processor.
fn work() -> Duration {
    let clock = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(
        u64::try_from(clock.tv_sec).unwrap_or(0),
        u32::try_from(clock.tv_nsec).unwrap_or(0),
    )
}

struct Fuzzer {
    folder: PathBuf,
    corpus: Vec<Vec<u8>>,
    /// The answers that were seen, each the set of its codes.
    answers: BTreeSet<BTreeSet<&'static str>>,
    tried: u64,
    kept: u64,
    failures: u64,
    slowest: Duration,
}

impl Fuzzer {
    fn new(folder: PathBuf) -> Self {
        std::panic::set_hook(Box::new(|panic| eprintln!("fuzz: {panic}")));
        Self {
            folder,
            corpus: seeds(),
            answers: BTreeSet::new(),
            tried: 0,
            kept: 0,
            failures: 0,
            slowest: Duration::ZERO,
        }
    }

    fn replay(&mut self) {
        for input in self.corpus.clone() {
            self.try_one(&input);
        }
    }

    fn run(&mut self, arguments: &Arguments) {
        let mut random = Random::new(arguments.seed);
        let end = Instant::now() + Duration::from_secs(arguments.seconds);
        while Instant::now() < end && self.failures == 0 {
            let input = Mutator::new(&mut random, &self.corpus).mutate();
            let before = self.answers.len();
            self.try_one(&input);
            if self.answers.len() > before && input.len() <= KEPT_BYTES {
                self.keep(&input, arguments);
            }
        }
    }

    fn keep(&mut self, input: &[u8], arguments: &Arguments) {
        self.kept += 1;
        self.corpus.push(input.to_vec());
        if let Some(folder) = &arguments.keep {
            let name = format!("{}-{}.yaml", arguments.seed, self.kept);
            let _ = std::fs::write(folder.join(name), input);
        }
    }

    /// Loads one input and renders what is said about it.
    fn try_one(&mut self, input: &[u8]) {
        let path = self.folder.join("mirror.yaml");
        if let Err(error) = std::fs::write(&path, input) {
            eprintln!("fuzz: {}: {error}", path.display());
            self.failures += 1;
            return;
        }
        let begun = Instant::now();
        INPUTS.fetch_add(1, Ordering::Relaxed);
        let answer = std::panic::catch_unwind(|| answer(&path));
        INPUTS.fetch_add(1, Ordering::Relaxed);
        self.slowest = self.slowest.max(begun.elapsed());
        self.tried += 1;
        let grown = self.tried.is_multiple_of(1000) && memory() > MEMORY;
        match answer {
            Ok(codes) if !grown => {
                self.answers.insert(codes);
            }
            _ => {
                self.failures += 1;
                let kept = format!("fuzz-failure-{}.yaml", self.tried);
                let _ = std::fs::write(&kept, input);
                eprintln!("fuzz: the input is in {kept}; {} KiB of memory", memory());
            }
        }
    }

    fn summary(&self) -> String {
        format!(
            "fuzz: {} inputs, {} different answers, {} kept, slowest {:?}, {} KiB of memory at most, {} failures",
            self.tried,
            self.answers.len(),
            self.kept,
            self.slowest,
            memory(),
            self.failures
        )
    }
}

/// The codes that a file is answered with.
fn answer(path: &Path) -> BTreeSet<&'static str> {
    let (registry, listeners) = (Registry::default(), Listeners::default());
    let options = LoadOptions {
        environment: &|name| (name.len() % 2 == 0).then(|| format!("value-of-{name}")),
        variables: &Variables::default(),
        registry: &registry,
        listeners: &listeners,
        running: None,
    };
    match load(&[path.to_path_buf()], &options) {
        Ok(loaded) => {
            loaded.render(Colour::Never);
            loaded.warnings.iter().map(|d| d.code.as_str()).collect()
        }
        Err(rejected) => {
            rejected.render(Colour::Never);
            assert!(!rejected.first_error().is_empty(), "a rejection says why");
            rejected
                .diagnostics
                .iter()
                .map(|d| d.code.as_str())
                .collect()
        }
    }
}

/// The corpus, the examples and the broken files.
fn seeds() -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths = Vec::new();
    for folder in ["tests/corpus", "tests/broken", "examples"] {
        let entries = std::fs::read_dir(root.join(folder)).into_iter().flatten();
        let files = entries.flatten().map(|entry| entry.path());
        paths.extend(files.filter(|path| path.extension().is_some_and(|e| e == "yaml")));
    }
    paths.sort();
    paths
        .iter()
        .filter_map(|path| std::fs::read(path).ok())
        .collect()
}

/// The most memory that this process has had, in KiB.
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}
