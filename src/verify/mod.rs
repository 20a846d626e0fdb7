//! `mirror verify`: whether the target holds what the route makes of the source.
//!
//! Both sides are read without a group: nothing is joined, committed or written. The route's own handlers and
//! partition policy run again on what the source holds; the result is compared with what stands at the target, by
//! partition and in order, repeats after kills and compaction understood.
//!
//! - [`survey`]: asks both clusters which partitions feed which, and how far they go
//! - [`mod@unit`]: reads one set of target partitions and every source partition that feeds it
//! - [`compare`]: the comparison itself, pure
//! - [`mod@print`]: what makes two records the same
//! - [`report`]: what came out
//! - [`audit`]: the same again and again, from where it stood
//! - [`ledger`]: what audits have found, as metrics

pub mod audit;
pub mod compare;
pub mod ledger;
pub mod print;
pub mod report;
pub mod survey;
pub mod unit;

use crate::config::spec::{Name, RouteSpec};
use report::Report;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use survey::{Survey, Unit};
use unit::{Readers, Standing};

/// What is compared, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where the comparison begins.
    pub from: From,
    /// How far the target has to be.
    pub until: Until,
    /// The part of the target partitions that is compared, from 0 to 1; at least one of each topic.
    pub sample: f64,
    /// Which part that is.
    pub seed: u64,
    /// Records of each kind that one comparison remembers.
    pub window: usize,
    /// Comparisons at a time.
    pub parallel: usize,
    /// How long a cluster may be silent.
    pub patience: Duration,
    /// Differences that are told one by one.
    pub told: usize,
}

/// Where a comparison begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// At the first record that each log still has.
    Beginning,
    /// At the first record that is not older than this, in milliseconds.
    Time(i64),
}

/// How far the target has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// As far as the route has committed: every record before was acknowledged.
    Committed,
    /// As far as the source reaches now: after a migration nothing may be left.
    End,
    /// As far as this time, in milliseconds, at the source.
    Time(i64),
}

/// Why nothing can be said.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{cluster}: {detail}")]
pub struct Unasked {
    /// The cluster that was asked.
    pub cluster: Name,
    /// What it said, or that it was silent.
    pub detail: String,
}

/// How far a comparison is.
#[derive(Debug, Default)]
pub struct Progress {
    /// Records read at the source.
    pub source_read: AtomicU64,
    /// Records read at the target.
    pub target_read: AtomicU64,
    /// Offsets at the target that are to be passed in all.
    pub target_total: AtomicU64,
    /// Differences found.
    pub differences: AtomicU64,
}

/// Compares what `route` made at `target` with its sources.
///
/// # Errors
/// A cluster that cannot be asked, or is silent for too long.
pub fn verify(
    group: &Name,
    route: &Arc<RouteSpec>,
    target: &Name,
    options: &Options,
    progress: &Progress,
) -> Result<Report, Unasked> {
    let survey = Survey::ask(group, route, target, options)?;
    progress
        .target_total
        .fetch_add(survey.target_offsets(), Ordering::Relaxed);
    let mut report = Report::new(&survey, options);
    let units = survey.units.iter().collect();
    let results = each_of(&survey, units, options, |readers, unit: &Unit| {
        let mut standing = Standing::new(unit, options.window);
        unit::compare(&survey, unit, readers, options, progress, &mut standing)
    });
    for result in results {
        report.add(&survey, result?);
    }
    Ok(report)
}

/// Takes all of `work` in turn, so much of it at a time as the options say, each thread with readers of its own. After
/// the first failure nothing more is begun.
fn each_of<W: Send, R: Send>(
    survey: &Survey,
    work: Vec<W>,
    options: &Options,
    take: impl Fn(&Readers, W) -> Result<R, Unasked> + Sync,
) -> Vec<Result<R, Unasked>> {
    let threads = options.parallel.clamp(1, work.len().max(1));
    let work = Mutex::new(VecDeque::from(work));
    let results = Mutex::new(Vec::new());
    let go_on = || -> Result<(), Unasked> {
        let readers = Readers::connect(survey)?;
        loop {
            let Some(next) = lock(&work).pop_front() else {
                return Ok(());
            };
            let result = take(&readers, next)?;
            lock(&results).push(Ok(result));
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                if let Err(unasked) = go_on() {
                    lock(&results).push(Err(unasked));
                    lock(&work).clear();
                }
            });
        }
    });
    results.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
