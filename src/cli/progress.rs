//! The progress line of `mirror run` on a terminal, while there is something to catch up.

use super::text;
use crate::logging::Screen;
use crate::observe::Counters;
use crate::supervisor::Board;
use crate::supervisor::board::{FlowEntry, Phase, Snapshot};
use std::sync::Arc;
use std::time::Duration;

/// Below this many records behind, the source is followed, not caught up with.
const WORTH_SHOWING: i64 = 10_000;

/// Rewrites the line every second until the returned guard is dropped.
pub(super) fn start(board: Arc<Board>, screen: Arc<Screen>) -> Progress {
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let shown = Arc::clone(&screen);
    let spawned = std::thread::Builder::new()
        .name("mirror-progress".into())
        .spawn(move || {
            let second = Duration::from_secs(1);
            while stopped.recv_timeout(second) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                match line(&board.snapshot()) {
                    Some(line) => shown.show(line),
                    None => shown.clear(),
                }
            }
            shown.clear();
        });
    if let Err(error) = spawned {
        tracing::warn!(event = "no_progress_line", %error, "no thread for the progress line");
    }
    Progress {
        _stop: stop,
        screen,
    }
}

/// Takes the line away when dropped.
pub(super) struct Progress {
    _stop: std::sync::mpsc::Sender<()>,
    screen: Arc<Screen>,
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.screen.clear();
    }
}

/// The line, `None` while there is nothing to catch up with.
fn line(snapshot: &Snapshot) -> Option<String> {
    let flows: Vec<&FlowEntry> = snapshot.routes.values().flat_map(|r| &r.flows).collect();
    let lag: i64 = flows.iter().map(|flow| flow.view.lag().0).sum();
    let draining = matches!(snapshot.process.phase, Phase::Draining | Phase::Aborting);
    let sum = |read: fn(&Counters) -> &std::sync::atomic::AtomicU64| -> u64 {
        flows
            .iter()
            .map(|flow| Counters::get(read(&flow.view.counters)))
            .sum()
    };
    let in_flight = sum(|counters| &counters.in_flight_records);
    if draining {
        return Some(format!(
            "draining  in flight {}",
            text::count(in_flight as f64)
        ));
    }
    if lag < WORTH_SHOWING {
        return None;
    }
    let records: f64 = flows.iter().map(|flow| flow.rate.records_per_second).sum();
    let bytes: f64 = flows.iter().map(|flow| flow.rate.bytes_per_second).sum();
    let eta = if records >= 1.0 {
        text::duration(Duration::from_secs_f64(lag as f64 / records))
    } else {
        "?".to_owned()
    };
    Some(format!(
        "{} rec/s  {:.1} MB/s  lag {}  in flight {}  ETA {eta}",
        text::count(records),
        bytes / 1e6,
        text::count(lag as f64),
        text::count(in_flight as f64),
    ))
}
