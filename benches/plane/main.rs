//! What a record costs: CPU of the replicating process, `mirror` on either data plane against a bare consume→produce loop
//! of the same client version, on the same brokers, in turn. Run with `make bench`.
//!
//! Ratios in one run and medians are what counts; absolute figures depend on the machine. Each
//! contender is a process of its own, measured by the operating system when it ends.

mod bare;
mod load;
#[path = "../topic.rs"]
mod topic;

use kafka_harness::{Cluster, start_all};
use load::Load;
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs of each contender per load.
const RUNS: usize = 3;
/// The data planes of `mirror`.
const PLANES: [&str; 2] = ["librdkafka", "native"];

fn main() {
    let args: Vec<String> = std::env::args().collect();
    if args.get(1).is_some_and(|a| a == "bare") {
        return bare::run(&args[2..]);
    }
    let scale = std::env::var("MIRROR_BENCH_SCALE")
        .ok()
        .and_then(|s| s.parse().ok())
        .unwrap_or(1.0);
    let c2 = |name| Cluster::builder(name).jvm_arg("-XX:TieredStopAtLevel=4");
    let [source, target] = start_all([c2("source"), c2("target")]).expect("two clusters");
    println!(
        "{:<34} {:<10} {:>6} {:>8} {:>9} {:>8} {:>7}",
        "load", "who", "cpu s", "µs/rec", "MB/s wall", "RSS MB", "ratio"
    );
    for load in Load::all(scale) {
        load.write(&source.bootstrap());
        compare(&load, &source.bootstrap(), &target.bootstrap());
    }
}

fn compare(load: &Load, source: &str, target: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut bare, mut ours) = (Vec::new(), PLANES.map(|_| Vec::new()));
    for run in 0..RUNS {
        load.empty_target(target, &format!("{}-bare-{run}", load.topic));
        bare.push(measure(
            Command::new(std::env::current_exe().expect("own path")).args([
                "bare",
                source,
                target,
                &load.topic,
                &format!("{}-bare-{run}", load.topic),
                &load.records.to_string(),
                load.codec,
            ]),
        ));
        for (plane, costs) in PLANES.into_iter().zip(&mut ours) {
            let file = folder.path().join(format!("{plane}-{run}.yaml"));
            std::fs::write(&file, load.route(source, target, plane, run)).expect("the file");
            costs.push(measure(mirror(&file)));
        }
        for who in ["bare"].into_iter().chain(PLANES) {
            load.delete_target(target, &format!("{}-{who}-{run}", load.topic));
        }
    }
    let median_bare = median(&bare);
    show(load, "bare", &bare, median_bare);
    for (plane, costs) in PLANES.into_iter().zip(&ours) {
        show(load, plane, costs, median_bare);
    }
}

fn mirror(file: &Path) -> &'static mut Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mirror"));
    command
        .args(["run", "--until-caught-up", "--no-progress"])
        .arg(file);
    command.stderr(Stdio::null());
    Box::leak(Box::new(command))
}

/// CPU, wall time and memory of one process.
struct Cost {
    cpu_s: f64,
    wall_s: f64,
    rss_mb: i64,
}

/// Runs a process to its end. CPU is the system's own account of ended children; memory is the peak
/// that the process itself shows (an account by `wait4` would begin with this program's).
fn measure(command: &mut Command) -> Cost {
    let before = children();
    let started = std::time::Instant::now();
    let mut child = command
        .stdout(Stdio::null())
        .spawn()
        .expect("the contender starts");
    let mut rss_mb = 0;
    let status = loop {
        rss_mb = rss_mb.max(peak_mb(child.id()));
        if let Some(status) = child.try_wait().expect("the contender is ours") {
            break status;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    };
    assert!(status.success(), "the contender failed: {command:?}");
    Cost {
        cpu_s: children() - before,
        wall_s: started.elapsed().as_secs_f64(),
        rss_mb,
    }
}

/// CPU seconds of all children that have ended. The brokers run on: they are not among them.
#[allow(unsafe_code)]
fn children() -> f64 {
    let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 / 1e6;
    // SAFETY: a plain out parameter.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &mut usage);
        seconds(usage.ru_utime) + seconds(usage.ru_stime)
    }
}

/// The peak of a process's resident memory so far.
fn peak_mb(process: u32) -> i64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    let kb: Option<i64> = line.and_then(|l| l.split_whitespace().next()?.parse().ok());
    kb.unwrap_or(0) / 1024
}

fn median(costs: &[Cost]) -> f64 {
    let mut cpu: Vec<f64> = costs.iter().map(|c| c.cpu_s).collect();
    cpu.sort_by(f64::total_cmp);
    cpu[cpu.len() / 2]
}

fn show(load: &Load, who: &str, costs: &[Cost], against: f64) {
    let cpu = median(costs);
    let wall = costs.iter().map(|c| c.wall_s).fold(f64::MAX, f64::min);
    let rss = costs.iter().map(|c| c.rss_mb).max().unwrap_or(0);
    let megabytes = load.records as f64 * load.bytes as f64 / 1e6;
    println!(
        "{:<34} {:<10} {:>6.2} {:>8.2} {:>9.0} {:>8} {:>7.2}",
        load.name,
        who,
        cpu,
        cpu / load.records as f64 * 1e6,
        megabytes / wall,
        rss,
        cpu / against
    );
}
