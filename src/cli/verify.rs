//! `mirror verify`: compares source and target, record by record.

use super::{
    ColorChoice, LoadRequest, NoDataLoss, OutputFormat, Program, VerifyArgs, files, follow, text,
};
use crate::config::spec::{ClusterSpec, Name, Spec};
use crate::exit::Exit;
use crate::logging::{Colour, Screen};
use crate::verify::audit::Audit;
use crate::verify::report::{Report, line};
use crate::verify::{self, From, Options, Progress, Unasked, Until};
use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

pub(super) fn verify(
    args: &VerifyArgs,
    config: Vec<PathBuf>,
    color: ColorChoice,
    program: &Program,
) -> Exit {
    let options = match options(args) {
        Ok(options) => options,
        Err(words) => return text::fail(&words, Exit::Usage),
    };
    let spec = match load(config, color, program) {
        Ok(spec) => spec,
        Err(exit) => return exit,
    };
    let name = Name::new(&args.route);
    let Some(route) = name.and_then(|name| spec.routes.get(&name)) else {
        let known: Vec<&str> = spec.routes.keys().map(Name::as_str).collect();
        let words = format!(
            "no route {}; the file has: {}",
            args.route,
            known.join(", ")
        );
        return text::fail(&words, Exit::No);
    };
    let is_meant = |target: &&Arc<ClusterSpec>| {
        let wanted = args.target.as_ref();
        wanted.is_none_or(|wanted| *wanted == target.name.as_str())
    };
    let targets: Vec<&Arc<ClusterSpec>> = route.targets.iter().filter(is_meant).collect();
    if targets.is_empty() {
        let known: Vec<&str> = route.targets.iter().map(|t| t.name.as_str()).collect();
        let words = format!(
            "route {} has no such target; its targets: {}",
            args.route,
            known.join(", ")
        );
        return text::fail(&words, Exit::No);
    }
    if args.follow {
        let audit = |target: &Arc<ClusterSpec>| {
            Audit::new(&spec.group, route, &target.name, options.clone())
        };
        return follow::follow(targets.into_iter().map(audit).collect(), args);
    }
    let mut exit = Exit::Done;
    for target in targets {
        let progress = Arc::new(Progress::default());
        let shown = show(&progress);
        let result = verify::verify(&spec.group, route, &target.name, &options, &progress);
        drop(shown);
        match result {
            Ok(report) => {
                print(&report, args.format, color);
                if !report.is_equal() && exit == Exit::Done {
                    exit = Exit::No;
                }
            }
            Err(unasked) => exit = cannot_ask(&unasked),
        }
    }
    exit
}

fn cannot_ask(unasked: &Unasked) -> Exit {
    let words = format!("nothing can be said: cluster {unasked}");
    text::fail(&words, Exit::Unreachable)
}

fn load(config: Vec<PathBuf>, color: ColorChoice, program: &Program) -> Result<Arc<Spec>, Exit> {
    let files =
        files::find(Vec::new(), config).map_err(|missing| text::fail(&missing, Exit::No))?;
    let request = LoadRequest {
        files,
        variables: program.variables.clone(),
        no_data_loss: NoDataLoss::AsWritten,
        colour: text::colour_of_stderr(color),
        running: None,
    };
    (program.load)(&request)
        .map(|config| config.spec)
        .map_err(|rejected| {
            text::err(rejected.words());
            Exit::No
        })
}

fn options(args: &VerifyArgs) -> Result<Options, String> {
    let from = match args.from.as_str() {
        "beginning" => From::Beginning,
        time => From::Time(moment(time).map_err(|words| format!("--from: {words}"))?),
    };
    let until = match args.until.as_str() {
        "committed" => Until::Committed,
        "end" => Until::End,
        time => Until::Time(moment(time).map_err(|words| format!("--until: {words}"))?),
    };
    let sample = crate::config::units::ratio(&args.sample)
        .map_err(|error| format!("--sample: {error}: {}", error.help))?;
    Ok(Options {
        from,
        until,
        sample,
        seed: args.seed,
        window: args.window,
        parallel: args.parallel,
        patience: Duration::from_secs(args.timeout.max(1)),
        told: args.show,
    })
}

/// `1h` ago, or a moment such as `2026-11-29T08:00:00Z`; in milliseconds.
fn moment(text: &str) -> Result<i64, String> {
    if let Ok(ago) = crate::config::units::duration(text) {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        return Ok(i64::try_from(now.saturating_sub(ago).as_millis()).unwrap_or(i64::MAX));
    }
    text.parse::<jiff::Timestamp>().map(|at| at.as_millisecond()).map_err(|_| {
        format!("`{text}` is no moment: write how long ago, such as 1h, or a time such as 2026-11-29T08:00:00Z")
    })
}

fn print(report: &Report, format: OutputFormat, color: ColorChoice) {
    match format {
        OutputFormat::Json => text::out(&format!("{:#}", report.json())),
        OutputFormat::Yaml => text::out(&text::as_yaml(&report.json().to_string())),
        OutputFormat::Text => text::out(&page(report, text::colour_of_stdout(color))),
    }
}

fn page(report: &Report, colour: Colour) -> String {
    let mut page = format!(
        "{}: {} -> {}\n",
        report.route,
        report.sources.join(", "),
        report.target
    );
    if report.topics.is_empty() {
        page += "no topic of the sources matches, or nothing of them goes anywhere\n";
    } else {
        page += &text::columns(&report.rows());
    }
    for note in report.notes() {
        page += &format!("{note}\n");
    }
    for told in &report.differences {
        page += &format!("{}\n", line(told, &report.target));
    }
    let untold = report
        .total()
        .tally
        .differences()
        .saturating_sub(report.differences.len() as u64);
    if untold > 0 {
        page += &format!("and {untold} more (--show)\n");
    }
    let code = match report.is_equal() {
        true => 32,
        false => 31,
    };
    match colour {
        Colour::On => page + &format!("\x1b[{code}m{}\x1b[0m\n", report.verdict()),
        Colour::Off => page + &format!("{}\n", report.verdict()),
    }
}

/// A line on the terminal while it works; nothing anywhere else.
fn show(progress: &Arc<Progress>) -> Option<Shown> {
    if !std::io::stderr().is_terminal() {
        return None;
    }
    let screen = Arc::new(Screen::default());
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let (progress, lines) = (progress.clone(), screen.clone());
    let began = Instant::now();
    let spawned = std::thread::Builder::new()
        .name("mirror-progress".into())
        .spawn(move || {
            let tick = Duration::from_millis(500);
            while stopped.recv_timeout(tick) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                lines.show(progress_line(&progress, began.elapsed()));
            }
        });
    spawned.ok().map(|thread| Shown {
        stop: Some(stop),
        thread: Some(thread),
        screen,
    })
}

/// Takes the line away when dropped.
struct Shown {
    stop: Option<std::sync::mpsc::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
    screen: Arc<Screen>,
}

impl Drop for Shown {
    fn drop(&mut self) {
        self.stop.take();
        // A line that is shown after the last one is taken away would stay.
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        self.screen.clear();
    }
}

fn progress_line(progress: &Progress, elapsed: Duration) -> String {
    let of = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
    let (read, total) = (of(&progress.target_read), of(&progress.target_total));
    let eta = match read {
        0 => "?".to_owned(),
        _ => {
            let left = total.saturating_sub(read) as f64 / read as f64;
            text::duration(elapsed.mul_f64(left))
        }
    };
    format!(
        "target {} of {}  source {}  differences {}  ETA {eta}",
        text::count(read as f64),
        text::count(total as f64),
        text::count(of(&progress.source_read) as f64),
        of(&progress.differences),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_times_or_how_long_ago() {
        assert_eq!(moment("2026-11-29T08:00:00Z"), Ok(1_795_939_200_000));
        let hour = moment("1h").expect("an hour ago");
        let day = moment("1d").expect("a day ago");
        assert!((82_799_000..82_801_000).contains(&(hour - day)));
        let words = moment("yesterday").expect_err("no moment");
        assert!(words.contains("`yesterday` is no moment"), "{words}");
    }

    #[test]
    fn the_line_says_how_far_it_is() {
        let progress = Progress::default();
        assert!(progress_line(&progress, Duration::ZERO).ends_with("ETA ?"));
        progress.target_read.store(50_000, Ordering::Relaxed);
        progress.target_total.store(150_000, Ordering::Relaxed);
        assert_eq!(
            progress_line(&progress, Duration::from_secs(10)),
            "target 50.0k of 150k  source 0  differences 0  ETA 20s"
        );
    }
}
