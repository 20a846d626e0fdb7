//! The command line: types of the arguments, and one module for each command's work.
//!
//! Results go to standard output, everything else to standard error.

use crate::config::interpolate::{Allowed, Unset, Variables};
use crate::exit::Exit;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

mod answers;
mod ask;
pub mod check;
mod explain;
mod file_manual;
mod files;
mod follow;
mod graph;
mod init;
pub mod link;
pub mod manual;
mod plan;
pub mod program;
mod progress;
mod reload;
mod run;
mod sandbox;
pub mod schema;
mod status;
mod steer;
mod test;
mod text;
mod try_route;
mod verify;
mod version;

pub use program::{CheckRequest, LoadRequest, NoDataLoss, Program};
#[cfg(feature = "sandbox")]
pub(crate) use run::watch;

/// Copies topics between Kafka clusters.
#[derive(Debug, Parser)]
#[command(
    name = "mirror",
    version,
    max_term_width = 100,
    disable_help_subcommand = true
)]
#[command(
    after_help = "Exit codes: 0 done, 1 the answer is no, 2 wrong usage, 3 warnings denied, \
    4 changes pending,\n5 could not ask, 6 stopped before everything was confirmed, 70 a bug.\n\n\
    First steps: `mirror init`, `mirror check`, then `mirror run`."
)]
pub struct Cli {
    /// Configuration file or folder; may be repeated [default: mirror.yaml, then
    /// /etc/mirror/mirror.yaml]
    #[arg(short, long = "config", value_name = "FILE", global = true)]
    pub config: Vec<PathBuf>,
    /// When to use colour; NO_COLOR turns it off as well
    #[arg(long, value_enum, default_value_t = ColorChoice::Auto, global = true)]
    pub color: ColorChoice,
    /// Which variables `${NAME}` may take.
    #[command(flatten)]
    pub variables: VariableArgs,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Which variables `${NAME}` may take.
#[derive(Debug, Args)]
#[command(next_help_heading = "Variables")]
pub struct VariableArgs {
    /// Take no environment variable: `${NAME:-default}` is its default, others are errors
    #[arg(long, global = true, conflicts_with = "env_allow")]
    pub no_env: bool,
    /// Take only environment variables of such names, `*` and `?` for any; may be repeated
    #[arg(long, value_name = "PATTERN", global = true)]
    pub env_allow: Vec<String>,
    /// Take a variable that is not set as an empty text, with a warning
    #[arg(long, global = true)]
    pub allow_unset: bool,
}

impl From<&VariableArgs> for Variables {
    fn from(args: &VariableArgs) -> Self {
        Self {
            allowed: match (args.no_env, args.env_allow.as_slice()) {
                (true, _) => Allowed::None,
                (false, []) => Allowed::All,
                (false, patterns) => Allowed::matching(patterns),
            },
            unset: match args.allow_unset {
                true => Unset::Empty,
                false => Unset::Refused,
            },
        }
    }
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Write a first configuration, with the words that explain it
    Init(InitArgs),
    /// Run every route in the foreground and follow changes of the file
    Run(RunArgs),
    /// Check the file and report every mistake at once; with --online, ask the clusters as well
    Check(CheckArgs),
    /// Show what a file would change about the running process
    Plan(PlanArgs),
    /// Run the tests of the file, without Kafka
    Test(TestArgs),
    /// Let real records through a route's handlers, step by step; produces and commits nothing
    Try(TryArgs),
    /// Make the running process load its file again, and wait for the verdict
    Reload(AskArgs),
    /// Show what the running process is doing
    Status(StatusArgs),
    /// Compare source and target record by record, through the route's handlers; changes nothing
    Verify(VerifyArgs),
    /// Hold a route of the running process; it stays held over reloads
    Pause(SteerArgs),
    /// Let a held route go on
    Resume(SteerArgs),
    /// Try it without Kafka: clusters, routes and records in this process, and a count at the end
    Sandbox(sandbox::SandboxArgs),
    /// Draw clusters and routes, as text, Mermaid, Graphviz or SVG
    Graph(GraphArgs),
    /// Print the JSON schema of the file
    Schema,
    /// Tell what a code or a reason means, or what a setting is for
    Explain(explain::ExplainArgs),
    /// Print a completion script
    Completions {
        /// For this shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page, or write one page per command into a folder
    Man {
        /// The folder
        folder: Option<PathBuf>,
        /// Print this page instead, such as mirror-plan or mirror.yaml
        #[arg(long, value_name = "NAME", conflicts_with = "folder")]
        page: Option<String>,
    },
    /// Print versions and built-in features
    Version {
        /// How the result looks
        #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
        format: OutputFormat,
    },
}

/// Arguments of `init`.
#[derive(Debug, Args)]
pub struct InitArgs {
    /// The file to write; one that is there stays as it is
    #[arg(default_value = "mirror.yaml")]
    pub file: PathBuf,
    /// Address of the cluster to copy from; several parted by commas
    #[arg(long, value_name = "HOST:PORT", value_delimiter = ',', value_parser = init::server)]
    pub from: Vec<String>,
    /// Address of the cluster to copy to; several parted by commas
    #[arg(long, value_name = "HOST:PORT", value_delimiter = ',', value_parser = init::server)]
    pub to: Vec<String>,
    /// Topics to copy, a regular expression on the whole name; may be repeated
    #[arg(long, value_name = "REGEX", default_value = ".+")]
    pub topics: Vec<String>,
    /// Print it instead
    #[arg(long)]
    pub stdout: bool,
}

/// Arguments of `graph`.
#[derive(Debug, Args)]
pub struct GraphArgs {
    /// Configuration files or folders
    pub files: Vec<PathBuf>,
    /// The picture's language
    #[arg(long, value_enum, default_value_t = crate::graph::Language::Text)]
    pub format: crate::graph::Language,
}

/// Arguments of `run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Configuration files or folders
    pub files: Vec<PathBuf>,
    /// Copy up to the ends as they are now, then stop
    #[arg(long)]
    pub until_caught_up: bool,
    /// Run only this route; may be repeated
    #[arg(long, value_name = "ROUTE")]
    pub only: Vec<String>,
    /// Refuse every setting that gives up on a record on purpose
    #[arg(long)]
    pub no_data_loss: bool,
    /// How log lines look [default: text on a terminal, else json]
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub log_format: Option<crate::logging::Format>,
    /// Level, or target=level,…
    #[arg(long, value_name = "LEVEL", default_value = "info", env = "MIRROR_LOG")]
    pub log_level: String,
    /// No progress line while catching up
    #[arg(long)]
    pub no_progress: bool,
}

/// Arguments of `check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Configuration files or folders
    pub files: Vec<PathBuf>,
    /// How the result looks
    #[arg(long, value_enum, default_value_t = CheckFormat::Text)]
    pub format: CheckFormat,
    /// Print the file as it is understood: one document, with every default; secrets as `${…}`
    /// or `***`
    #[arg(long, conflicts_with = "format")]
    pub effective: bool,
    /// Exit 3 if there are warnings
    #[arg(long)]
    pub deny_warnings: bool,
    /// Refuse every setting that gives up on a record on purpose
    #[arg(long)]
    pub no_data_loss: bool,
    /// Ask the clusters as well: who answers, rights, topics, positions; changes nothing there
    #[arg(long)]
    pub online: bool,
    /// Seconds that each question to a cluster may take
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=600), requires = "online")]
    pub timeout: u64,
}

/// Arguments of `plan`.
#[derive(Debug, Args)]
pub struct PlanArgs {
    /// Configuration files or folders
    pub files: Vec<PathBuf>,
    /// Compare with this configuration instead of with the running process; may be repeated
    #[arg(long, value_name = "FILE")]
    pub against: Vec<PathBuf>,
    /// Ask the clusters as well: topics to create, partitions to add, records to catch up
    #[arg(long)]
    pub online: bool,
    /// Seconds that each question to a cluster may take
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=600), requires = "online")]
    pub question_timeout: u64,
    /// Exit 4 if something would change
    #[arg(long)]
    pub exit_code: bool,
    /// Whom to ask.
    #[command(flatten)]
    pub ask: AskArgs,
}

/// Arguments of `test`.
#[derive(Debug, Args)]
pub struct TestArgs {
    /// Configuration files or folders, and test files (*.test.yaml) [default: the test files
    /// beside the configuration]
    pub files: Vec<PathBuf>,
    /// Run only the tests whose name contains this, or matches it as a regular expression
    #[arg(long, value_name = "NAME")]
    pub only: Option<String>,
    /// Show the steps, and the ways through them, that no test reached
    #[arg(long)]
    pub coverage: bool,
    /// Make the tests that do not pass say what comes out, in their files
    #[arg(long)]
    pub update: bool,
    /// How the result looks
    #[arg(long, value_enum, default_value_t = TestFormat::Text)]
    pub format: TestFormat,
}

/// Arguments of `try`.
#[derive(Clone, Debug, Args)]
pub struct TryArgs {
    /// The route
    pub route: String,
    /// How many records: the newest, spread over topics and partitions, or those from --at on
    /// [default: 5; 1 with --at; all with --in]
    #[arg(short = 'n', long = "last", value_name = "N")]
    pub records: Option<usize>,
    /// The record at this place, written TOPIC:PARTITION:OFFSET
    #[arg(long, value_name = "PLACE")]
    pub at: Option<String>,
    /// Records from a file of `kcat -J` lines; no cluster is asked
    #[arg(long = "in", value_name = "FILE", conflicts_with = "at")]
    pub input: Option<PathBuf>,
    /// Only from this source [default: all; with --at and --in the route's first]
    #[arg(long, value_name = "CLUSTER")]
    pub source: Option<String>,
    /// As if for this target [default: the route's first]
    #[arg(long, value_name = "CLUSTER")]
    pub target: Option<String>,
    /// Seconds to wait for the clusters' answers, in all
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    pub timeout: u64,
    /// How the result looks
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    pub format: OutputFormat,
}

/// Whom to ask.
#[derive(Clone, Debug, Args)]
pub struct AskArgs {
    /// The process's admin socket [default: as in the file]
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// The process's group, where no file says it
    #[arg(long, value_name = "NAME")]
    pub group: Option<String>,
    /// Seconds to wait for the answer
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub timeout: u64,
    /// How the result looks
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    pub format: OutputFormat,
}

/// Arguments of `status`.
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// Only this route, with every partition
    pub route: Option<String>,
    /// Show it again every two seconds
    #[arg(long)]
    pub watch: bool,
    /// Whom to ask.
    #[command(flatten)]
    pub ask: AskArgs,
}

/// Arguments of `verify`.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// The route
    pub route: String,
    /// Only this target of the route
    #[arg(long, value_name = "CLUSTER")]
    pub target: Option<String>,
    /// Where to begin: beginning, how long ago (1h), or a time (2026-11-29T08:00:00Z)
    #[arg(long, value_name = "WHEN", default_value = "beginning")]
    pub from: String,
    /// How far the target has to be: committed, end, how long ago, or a time
    #[arg(long, value_name = "WHEN", default_value = "committed")]
    pub until: String,
    /// The part of the target partitions to compare; at least one of each topic
    #[arg(long, value_name = "PART", default_value = "100%")]
    pub sample: String,
    /// Which part that is
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub seed: u64,
    /// Differences to print one by one
    #[arg(long, value_name = "COUNT", default_value_t = 20)]
    pub show: usize,
    /// Records that one comparison remembers, of each kind: bounds its memory, at about 300 bytes each
    #[arg(long, value_name = "RECORDS", default_value_t = 250_000)]
    pub window: usize,
    /// Comparisons at a time
    #[arg(long, value_name = "COUNT", default_value_t = 2)]
    pub parallel: usize,
    /// Seconds for which a cluster may be silent
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    pub timeout: u64,
    /// How the result looks
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    pub format: OutputFormat,
    /// Go on until it is stopped: again and again what was committed since the last time, a line for each
    #[arg(long, conflicts_with = "until")]
    pub follow: bool,
    /// How often, with --follow
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = every, requires = "follow")]
    pub every: Duration,
    /// Serve /metrics at this address, with --follow
    #[arg(long, value_name = "HOST:PORT", requires = "follow")]
    pub listen: Option<SocketAddr>,
}

fn every(text: &str) -> Result<Duration, String> {
    match crate::config::units::duration(text) {
        Ok(every) if every.is_zero() => Err("it is longer than nothing".to_owned()),
        Ok(every) => Ok(every),
        Err(error) => Err(format!("{error}: {}", error.help)),
    }
}

/// Arguments of `pause` and `resume`.
#[derive(Debug, Args)]
pub struct SteerArgs {
    /// The route
    pub route: String,
    /// Whom to ask.
    #[command(flatten)]
    pub ask: AskArgs,
}

/// How a result looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// For people.
    Text,
    /// For programs.
    Json,
    /// The same as JSON, easier to read.
    Yaml,
}

/// How the result of tests looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TestFormat {
    /// For people.
    Text,
    /// For programs.
    Json,
    /// JUnit's XML, for CI.
    Junit,
}

/// How the result of `check` looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CheckFormat {
    /// For people.
    Text,
    /// For programs.
    Json,
    /// The same as JSON, easier to read.
    Yaml,
    /// SARIF 2.1.0, for code scanning.
    Sarif,
    /// Annotations of GitHub Actions.
    Github,
}

/// When to use colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ColorChoice {
    /// On a terminal.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl From<ColorChoice> for clap::ColorChoice {
    fn from(choice: ColorChoice) -> Self {
        match choice {
            ColorChoice::Auto => clap::ColorChoice::Auto,
            ColorChoice::Always => clap::ColorChoice::Always,
            ColorChoice::Never => clap::ColorChoice::Never,
        }
    }
}

/// Runs the command that `args` (the program's name first) ask for.
///
/// A panic on this thread is a bug, exit 70. Panics of flow threads are their flows' exits and
/// end nothing else.
pub fn main(args: Vec<std::ffi::OsString>, program: Program) -> Exit {
    std::panic::set_hook(Box::new(|panic| {
        tracing::error!(event = "panic", "{panic}");
        if !tracing::dispatcher::has_been_set() {
            text::err(&format!("mirror: panic: {panic}"));
        }
    }));
    let work = std::panic::AssertUnwindSafe(|| match Cli::try_parse_from(args) {
        Ok(cli) => {
            let variables = Variables::from(&cli.variables);
            dispatch(
                cli,
                &Program {
                    variables,
                    ..program
                },
            )
        }
        Err(error) => {
            let _ = error.print();
            if error.use_stderr() {
                Exit::Usage
            } else {
                Exit::Done
            }
        }
    });
    std::panic::catch_unwind(work).unwrap_or_else(|_| {
        text::err("mirror: this is a bug; please report it with the lines above");
        Exit::Bug
    })
}

fn dispatch(cli: Cli, program: &Program) -> Exit {
    let config = cli.config;
    match cli.command {
        Command::Init(args) => init::init(&args),
        Command::Run(args) => run::run(args, config, cli.color, program),
        Command::Check(args) => check(args, config, cli.color, program),
        Command::Plan(args) => plan::plan(&args, config, cli.color, program),
        Command::Test(args) => test::test(args, config, cli.color, program),
        Command::Try(args) => try_route::try_route(args, config, cli.color, program),
        Command::Reload(args) => reload::reload(&args, config, program),
        Command::Status(args) => status::status(&args, config, cli.color, program),
        Command::Verify(args) => verify::verify(&args, config, cli.color, program),
        Command::Pause(args) => steer::steer(&args, steer::Verb::Pause, config, program),
        Command::Resume(args) => steer::steer(&args, steer::Verb::Resume, config, program),
        Command::Sandbox(args) => sandbox::sandbox(&args, cli.color, program),
        Command::Graph(args) => graph::graph(args, config, cli.color, program),
        Command::Schema => {
            text::out(&(program.schema)());
            Exit::Done
        }
        Command::Explain(args) => explain::explain(&args),
        Command::Completions { shell } => manual::completions(shell),
        Command::Man { folder, page } => manual::man(folder.as_deref(), page.as_deref()),
        Command::Version { format } => version::version(format),
    }
}

fn check(args: CheckArgs, config: Vec<PathBuf>, color: ColorChoice, program: &Program) -> Exit {
    let named = [args.files, config].concat();
    let files = match named.is_empty() {
        true => files::find(named, Vec::new()),
        // One that is missing is a diagnostic like any other, in the format that is asked for.
        false => Ok(named),
    };
    match files {
        Ok(files) => (program.check)(&CheckRequest {
            files,
            variables: program.variables.clone(),
            format: args.format,
            printed: match args.effective {
                true => program::Printed::Effective,
                false => program::Printed::Routes,
            },
            warnings: match args.deny_warnings {
                true => program::Warnings::Deny,
                false => program::Warnings::Allow,
            },
            no_data_loss: args.no_data_loss.into(),
            ask: match args.online {
                true => check::Ask::Clusters(Duration::from_secs(args.timeout)),
                false => check::Ask::Nobody,
            },
            colour: text::colour_of_stdout(color),
        }),
        Err(missing) => text::fail(&missing, Exit::No),
    }
}

#[cfg(test)]
mod tests;
