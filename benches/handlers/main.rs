//! What handlers cost: one thread, one JSON record of 380 bytes, against `serde_json::Value`
//! parsing of the same record in the same run; and the same jobs as Kafka Connect's transforms on
//! the JVM. Run with `make bench`.
//!
//! Times are CPU times of the thread, so that what else runs on the machine counts little. The
//! contenders take turns, and medians count.

#[path = "../jars.rs"]
mod jars;
mod jobs;
mod jvm;

use jobs::{Job, RECORD};
use mirror::handler::BoundChain;
use mirror::record::{HeaderSource, Headers, Origin, Record};
use std::borrow::Cow;
use std::hint::black_box;

/// Turns of each contender.
const TURNS: usize = 15;
/// Records in a turn.
const RECORDS: usize = 40_000;

fn main() {
    assert_eq!(RECORD.len(), 380, "the record that is spoken of");
    let jobs = Job::all();
    let chains: Vec<BoundChain> = jobs.iter().map(Job::bound).collect();
    let headers = jobs::headers();
    let mut parse = Vec::new();
    let mut ours: Vec<Vec<f64>> = vec![Vec::new(); jobs.len()];
    for _ in 0..TURNS {
        parse.push(timed(parse_once));
        for (times, chain) in ours.iter_mut().zip(&chains) {
            times.push(handle(chain, &headers));
        }
    }
    let parse = median(&mut parse);
    println!("serde_json::Value, parse: {parse:.0} ns");
    println!(
        "\n{:<44} {:>7} {:>7} {:>7}",
        "chain", "ns", "ratio", "limit"
    );
    let mut named = Vec::new();
    for (job, times) in jobs.iter().zip(&mut ours) {
        let ours = median(times);
        let ratio = ours / parse;
        let verdict = if ratio <= job.limit { "" } else { "  over" };
        println!(
            "{:<44} {ours:>7.0} {ratio:>7.3} {:>7.3}{verdict}",
            job.name, job.limit
        );
        named.push((job, ours));
    }
    jvm::compare(&named);
}

fn parse_once() {
    let value: serde_json::Value = serde_json::from_str(black_box(RECORD)).expect("JSON");
    black_box(value);
}

/// What the lane does with a record: the chain, or only the topic's name where it passes.
fn handle(chain: &BoundChain, headers: &dyn HeaderSource) -> f64 {
    let mut outputs = Vec::new();
    timed(|| {
        let mut record = record(headers);
        if let Some(topic) = chain.pass_through() {
            record.topic = Cow::Borrowed(topic);
            black_box(&record);
            return;
        }
        outputs.clear();
        black_box(chain.apply(record, &mut outputs).is_ok());
        black_box(&outputs);
    })
}

fn record(headers: &dyn HeaderSource) -> Record<'_> {
    Record {
        origin: Origin {
            source: "eu",
            topic: "orders",
            partition: 3,
            offset: 42,
            timestamp: Some(1_764_500_000_000),
        },
        topic: Cow::Borrowed("orders"),
        key: Some(Cow::Borrowed(b"1001")),
        value: Some(Cow::Borrowed(black_box(RECORD).as_bytes())),
        headers: Headers::Untouched(headers),
        timestamp: Some(1_764_500_000_000),
    }
}

/// CPU nanoseconds for one record.
fn timed(mut once: impl FnMut()) -> f64 {
    let before = cpu();
    for _ in 0..RECORDS {
        once();
    }
    (cpu() - before) as f64 / RECORDS as f64
}

/// CPU time of this thread in nanoseconds.
fn cpu() -> i128 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec)
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
