//! Who takes part, and how each is started.

use crate::file;
use crate::job::Job;
use crate::maker::{self, Tuning};
use crate::relay;
use crate::stage::{Prepared, Stage};
use crate::workload::{Chain, Workload};
use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A contender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contender {
    /// A loop of librdkafka that tracks nothing: what the others are compared with.
    Bare,
    /// `mirror`.
    Mirror(Plane, Shape),
    /// MirrorMaker 2 of the brokers' version.
    Maker(Tuning),
    /// A loop of franz-go.
    Franz,
    /// Batches passed by a probe of our own.
    Probe,
    /// A TCP relay of the same bytes.
    Relay,
}

/// The data plane of `mirror`, and what it has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plane {
    /// An empty chain.
    Librdkafka,
    /// Every record is decoded and written anew: its timestamp is changed.
    Native,
    /// An empty chain: batches may pass.
    NativePassing,
}

/// Its threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A worker fetches, handles and produces.
    Worker,
    /// Two threads behind the worker handle and produce.
    HandlerThreads,
}

/// How a contender's work ends.
pub enum Ending {
    /// By itself.
    ByItself,
    /// It would go on: it is done when all records are there.
    WhenAllIsThere,
    /// By itself, when the bytes between these ends are through.
    WhenRelayed(relay::Ends),
}

/// What contenders are built of beside the bench itself.
pub struct Tools {
    /// The loop of franz-go, if it takes part.
    pub franz: Option<PathBuf>,
    /// For files of one run.
    pub folder: PathBuf,
    /// The last number that was given to a process.
    pub serial: Cell<usize>,
}

impl Tools {
    /// A number that no other process of this run has: positions are kept under names that have it in them.
    pub fn number(&self) -> usize {
        self.serial.set(self.serial.get() + 1);
        self.serial.get()
    }
}

impl Contender {
    /// All, in the order of the tables.
    pub const ALL: [Self; 11] = [
        Self::Bare,
        Self::Mirror(Plane::Librdkafka, Shape::Worker),
        Self::Mirror(Plane::Librdkafka, Shape::HandlerThreads),
        Self::Mirror(Plane::Native, Shape::Worker),
        Self::Mirror(Plane::Native, Shape::HandlerThreads),
        Self::Mirror(Plane::NativePassing, Shape::Worker),
        Self::Maker(Tuning::Defaults),
        Self::Maker(Tuning::Tuned),
        Self::Franz,
        Self::Probe,
        Self::Relay,
    ];

    /// Its name in tables and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bare => "bare",
            Self::Mirror(Plane::Librdkafka, Shape::Worker) => "librdkafka",
            Self::Mirror(Plane::Librdkafka, Shape::HandlerThreads) => "librdkafka-threads",
            Self::Mirror(Plane::Native, Shape::Worker) => "native",
            Self::Mirror(Plane::Native, Shape::HandlerThreads) => "native-threads",
            Self::Mirror(Plane::NativePassing, Shape::Worker) => "native-passing",
            Self::Mirror(Plane::NativePassing, Shape::HandlerThreads) => "native-passing-threads",
            Self::Maker(Tuning::Defaults) => "mm2",
            Self::Maker(Tuning::Tuned) => "mm2-tuned",
            Self::Franz => "franz",
            Self::Probe => "probe",
            Self::Relay => "relay",
        }
    }

    /// Who it is, for a reader of the tables.
    pub fn about(self) -> &'static str {
        match self {
            Self::Bare => "librdkafka, consume→produce, tuned, nothing tracked",
            Self::Mirror(Plane::Librdkafka, Shape::Worker) => {
                "`mirror`, librdkafka plane, one worker, empty chain"
            }
            Self::Mirror(Plane::Librdkafka, Shape::HandlerThreads) => {
                "the same with two handler threads"
            }
            Self::Mirror(Plane::Native, Shape::Worker) => {
                "`mirror`, native plane, one worker, every record decoded and written anew (timestamp + 1 ms)"
            }
            Self::Mirror(Plane::Native, Shape::HandlerThreads) => {
                "the same with two handler threads"
            }
            Self::Mirror(Plane::NativePassing, Shape::Worker) => {
                "`mirror`, native plane, one worker, empty chain: batches may pass"
            }
            Self::Mirror(Plane::NativePassing, Shape::HandlerThreads) => {
                "the same with two handler threads"
            }
            Self::Maker(Tuning::Defaults) => "MirrorMaker 2, defaults",
            Self::Maker(Tuning::Tuned) => "MirrorMaker 2, tuned",
            Self::Franz => "franz-go, consume→produce, nothing tracked",
            Self::Probe => "batches passed by a probe: no idempotence, no group, no tracker",
            Self::Relay => "a TCP relay of the same bytes: the floor",
        }
    }

    /// Whether it can do this: only `mirror` has routes and handlers, and the plain loop is what it is compared with.
    pub fn takes(self, workload: &Workload) -> bool {
        let plain = workload.chain == Chain::Empty && workload.routes == 1;
        match self {
            Self::Bare | Self::Mirror(Plane::Librdkafka | Plane::Native, Shape::Worker) => true,
            Self::Mirror(Plane::NativePassing, Shape::Worker) => workload.chain == Chain::Empty,
            _ => plain,
        }
    }

    /// A process that copies what is prepared.
    pub fn command(
        self,
        stage: &Stage,
        workload: &Workload,
        prepared: &Prepared,
        tools: &Tools,
    ) -> (Command, Ending) {
        let job = Job {
            source: stage.source(),
            target: stage.target(),
            topics: prepared.topics.clone(),
            records: prepared.records,
            codec: workload.data.codec.to_owned(),
            linger_ms: 50,
        };
        match self {
            Self::Mirror(plane, shape) => {
                let task = file::Task {
                    job: &job,
                    name: format!("{}-{}", self.name(), tools.number()),
                    routes: workload.routes,
                    chain: workload.chain,
                    plane,
                    shape,
                };
                let file = task.write(&tools.folder);
                let mut command = mirror(&file);
                command.arg("--until-caught-up");
                (command, Ending::ByItself)
            }
            Self::Maker(tuning) => {
                let file = maker::write(&job, tuning, tools);
                (maker::command(&file), Ending::WhenAllIsThere)
            }
            Self::Relay => {
                let ends = relay::Ends::open(prepared.wire_bytes);
                let words = [ends.from.to_string(), ends.to.to_string()];
                (own("relay", &words), Ending::WhenRelayed(ends))
            }
            Self::Bare | Self::Franz | Self::Probe => (self.a_loop(&job, tools), Ending::ByItself),
        }
    }

    /// A process that goes on copying, with settings for little delay.
    pub fn endless(self, job: &Job, tools: &Tools) -> Command {
        match self {
            Self::Mirror(plane, shape) => {
                let name = format!("{}-live-{}", self.name(), tools.number());
                mirror(&file::with_defaults(job, &name, plane, shape).write(&tools.folder))
            }
            Self::Maker(tuning) => maker::command(&maker::write(job, tuning, tools)),
            Self::Bare | Self::Franz | Self::Probe | Self::Relay => self.a_loop(job, tools),
        }
    }

    fn a_loop(self, job: &Job, tools: &Tools) -> Command {
        match (self, &tools.franz) {
            (Self::Franz, Some(program)) => {
                let mut command = Command::new(program);
                command.args(job.words());
                command
            }
            _ => own(self.name(), &job.words()),
        }
    }
}

/// `mirror run` with a file.
pub fn mirror(file: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mirror"));
    command
        .args(["run", "--no-progress", "--log-level", "warn"])
        .arg(file);
    command
}

/// This program again, as one of its loops.
fn own(name: &str, words: &[String]) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("own path"));
    command.arg(name).args(words);
    command
}
