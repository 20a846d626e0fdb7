//! `mirror try ROUTE`: real records through a route's handlers, step by step. Nothing is produced or
//! committed, and no group is joined.

use super::program::TryRequest;
use super::{ColorChoice, OutputFormat, Program, TryArgs, files, text};
use crate::config::render::Colour;
use crate::config::spec::{ClusterSpec, CreationMode, Name, RouteSpec, group_name};
use crate::config::{self, LoadOptions, Loaded};
use crate::exit::Exit;
use crate::handler::Clock;
use crate::record::TopicPartition;
use crate::trial::live::{self, LiveError, Source, Topics, Wanted};
use crate::trial::{Fate, Sample, Steps, Trace, Trial, Tried, parse_line, print};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Records where nobody says how many.
const NEWEST: usize = 5;

/// Partitions of a target topic where nobody can be asked.
const ASSUMED_PARTITIONS: i32 = 12;

pub(super) fn try_route(
    args: TryArgs,
    config: Vec<PathBuf>,
    color: ColorChoice,
    program: &Program,
) -> Exit {
    match files::find(Vec::new(), config) {
        Ok(files) => (program.try_route)(&TryRequest {
            files,
            variables: program.variables.clone(),
            args,
            colour: text::colour_of_stdout(color),
        }),
        Err(missing) => text::fail(&missing, Exit::No),
    }
}

/// Loads, reads, lets the records through and prints.
pub(super) fn run(request: &TryRequest, options: &LoadOptions<'_>, colour: Colour) -> Exit {
    let loaded = match config::load(&request.files, options) {
        Ok(loaded) => loaded,
        Err(rejected) => {
            text::err(rejected.render(colour).trim_end());
            return Exit::No;
        }
    };
    match attempt(&request.args, &loaded, colour) {
        Ok(exit) => exit,
        Err(Stop::Unasked(words)) => text::fail(&words, Exit::Unreachable),
        Err(Stop::No(words)) => text::fail(&words, Exit::No),
        Err(Stop::Usage(words)) => text::fail(&words, Exit::Usage),
    }
}

/// Why there is no result.
enum Stop {
    Unasked(String),
    No(String),
    Usage(String),
}

impl From<LiveError> for Stop {
    fn from(error: LiveError) -> Self {
        match error {
            LiveError::Unasked { .. } => Self::Unasked(format!("could not ask: {error}")),
            LiveError::Refused(words) => Self::No(words),
        }
    }
}

fn attempt(args: &TryArgs, loaded: &Loaded, colour: Colour) -> Result<Exit, Stop> {
    let route = route(args, loaded)?;
    let target = one_of("target", args.target.as_deref(), &route.targets)?;
    let (samples, counts) = match &args.input {
        Some(file) => (of_file(args, file, &route)?, Counts::Assumed),
        None => of_clusters(args, loaded, &route, target)?,
    };
    if samples.is_empty() {
        return Err(Stop::No("there are no records".to_owned()));
    }
    let partitions = |topic: &str, sample: &Sample| counts.of(topic, sample, &route);
    let trial = Trial::new(&route, &target.name, &partitions, Clock::System);
    let mut trial = trial.map_err(Stop::No)?;
    let tried: Vec<Tried> = samples
        .into_iter()
        .map(|sample| {
            let mut trace = Trace::default();
            let outcome = trial.pass(&sample, &mut trace);
            Tried {
                sample,
                passages: trace.passages,
                outcome,
            }
        })
        .collect();
    let steps = Steps::of(&route, &loaded.document);
    show(args, &target.name, &tried, &steps, colour);
    if let Counts::Assumed = counts {
        text::err(&format!(
            "no cluster was asked: target topics are taken to have {ASSUMED_PARTITIONS} partitions"
        ));
    }
    let fine = |t: &Tried| matches!(t.outcome.fate, Fate::Forwarded | Fate::Dropped { .. });
    match tried.iter().all(fine) {
        true => Ok(Exit::Done),
        false => Ok(Exit::No),
    }
}

fn show(args: &TryArgs, target: &Name, tried: &[Tried], steps: &Steps, colour: Colour) {
    let json = || print::json(&args.route, target, tried, steps);
    match args.format {
        OutputFormat::Text => text::out(&print::text(target, tried, steps, colour)),
        OutputFormat::Json => text::out(&format!("{:#}", json())),
        OutputFormat::Yaml => text::out(&text::as_yaml(&json().to_string())),
    }
}

fn route(args: &TryArgs, loaded: &Loaded) -> Result<Arc<RouteSpec>, Stop> {
    let routes = &loaded.spec.routes;
    let found = Name::new(&args.route).and_then(|name| routes.get(&name).cloned());
    found.ok_or_else(|| {
        let known: Vec<&str> = routes.keys().map(Name::as_str).collect();
        Stop::No(format!(
            "no route {}; the file has: {}",
            args.route,
            known.join(", ")
        ))
    })
}

/// The cluster of that name, the first where there is none.
fn one_of<'c>(
    end: &str,
    name: Option<&str>,
    clusters: &'c [Arc<ClusterSpec>],
) -> Result<&'c Arc<ClusterSpec>, Stop> {
    let found = match name {
        Some(name) => clusters.iter().find(|c| c.name.as_str() == name),
        None => clusters.first(),
    };
    found.ok_or_else(|| {
        let known: Vec<&str> = clusters.iter().map(|c| c.name.as_str()).collect();
        let name = name.unwrap_or_default();
        Stop::Usage(format!(
            "--{end} {name}: the route has {}",
            known.join(", ")
        ))
    })
}

/// Records of lines of `kcat -J`.
fn of_file(args: &TryArgs, file: &Path, route: &RouteSpec) -> Result<Vec<Sample>, Stop> {
    let source = one_of("source", args.source.as_deref(), &route.sources)?;
    let text = std::fs::read_to_string(file)
        .map_err(|error| Stop::No(format!("{}: {error}", file.display())))?;
    let mut samples = Vec::new();
    let lines = text.lines().enumerate();
    for (index, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
        let sample = parse_line(line, &source.name)
            .map_err(|error| Stop::No(format!("{}:{}: {error}", file.display(), index + 1)))?;
        samples.push(sample);
    }
    samples.truncate(args.records.unwrap_or(usize::MAX));
    Ok(samples)
}

fn of_clusters(
    args: &TryArgs,
    loaded: &Loaded,
    route: &RouteSpec,
    target: &ClusterSpec,
) -> Result<(Vec<Sample>, Counts), Stop> {
    let deadline = Instant::now() + Duration::from_secs(args.timeout.max(1));
    let wanted = match &args.at {
        Some(at) => place(at)?,
        None => Wanted::Newest,
    };
    // With a place, one cluster is meant: the first, unless another one is named.
    let sources = match (&args.at, args.source.as_deref()) {
        (None, None) => route.sources.iter().collect(),
        (_, name) => vec![one_of("source", name, &route.sources)?],
    };
    let group = |cluster: &ClusterSpec| {
        group_name(&loaded.spec.group, &route.name, &cluster.name, &target.name)
    };
    let sources: Vec<Source<'_>> = sources
        .into_iter()
        .map(|cluster| Source::connect(cluster, &group(cluster), deadline))
        .collect::<Result<_, _>>()?;
    let default = match wanted {
        Wanted::Newest => NEWEST,
        Wanted::From(..) => 1,
    };
    let count = args.records.unwrap_or(default);
    let samples = live::read(route, &sources, &wanted, count)?;
    let mut counts = BTreeMap::new();
    for source in &sources {
        counts.insert(source.name().clone(), source.topics()?);
    }
    let there = Source::connect(target, &group(target), deadline)?;
    let target = there.topics()?;
    Ok((
        samples,
        Counts::Asked {
            target,
            sources: counts,
        },
    ))
}

/// `TOPIC:PARTITION:OFFSET`.
fn place(at: &str) -> Result<Wanted, Stop> {
    let mut parts = at.rsplitn(3, ':');
    let offset = parts.next().and_then(|offset| offset.parse().ok());
    let partition = parts.next().and_then(|p| p.parse::<i32>().ok());
    match (parts.next(), partition, offset) {
        (Some(topic), Some(partition), Some(offset)) if partition >= 0 => {
            Ok(Wanted::From(TopicPartition::new(topic, partition), offset))
        }
        _ => Err(Stop::Usage(format!(
            "--at {at}: write TOPIC:PARTITION:OFFSET"
        ))),
    }
}

/// What is known of partition counts.
enum Counts {
    /// The clusters were asked.
    Asked {
        target: Topics,
        sources: BTreeMap<Name, Topics>,
    },
    /// Nobody was.
    Assumed,
}

impl Counts {
    /// The partitions of a target topic. One that is not there yet would be made like its source.
    fn of(&self, topic: &str, sample: &Sample, route: &RouteSpec) -> i32 {
        let Self::Asked { target, sources } = self else {
            return ASSUMED_PARTITIONS.max(sample.partition.saturating_add(1));
        };
        if let Some(count) = target.get(topic) {
            return *count;
        }
        let created = route.topic_creation.mode == CreationMode::Enabled;
        let source = sources
            .get(&sample.source)
            .and_then(|t| t.get(&sample.topic));
        match source {
            Some(count) if created => *count,
            _ => 0,
        }
    }
}
