//! Where batches are handled: on the worker's own thread (KIP-3's Proposal 2), or on handler
//! threads behind bounded queues (Proposal 1). A source partition always goes to the same lane, so
//! its order is the lane's order (I2).

use crate::flow::lane::{Handled, Job, Lane};
use crate::flow::load::Load;
use crate::flow::sinks::spread;
use crate::flow::worker::Note;
use crate::plane::{FetchedRecord, Sink};
use crossbeam_channel::{Receiver, Sender, unbounded};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// One handler thread.
struct LaneThread<R, K> {
    jobs: Sender<Job<R, K>>,
    load: Arc<Load>,
    thread: JoinHandle<()>,
}

/// The lanes of one worker.
pub(crate) enum Stage<R, K: Sink> {
    /// The worker handles and produces by itself.
    Inline(Box<Lane<K>>),
    /// Handler threads do.
    Threads(LaneThreads<R, K>),
}

/// Handler threads with their bounds.
pub(crate) struct LaneThreads<R, K> {
    lanes: Vec<LaneThread<R, K>>,
    max_records: u64,
    max_bytes: u64,
}

/// Whether the lanes of a stage have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// None holds a record any more.
    All,
    /// A handler does not return.
    NotAll,
}

/// What became of a submitted batch.
pub(crate) enum Submitted {
    /// It was handled.
    Handled(Handled),
    /// A note will say.
    Queued,
}

impl<R: FetchedRecord, K: Sink> Stage<R, K> {
    /// Starts one thread for each of `lanes`.
    ///
    /// # Errors
    /// The system refuses a thread.
    pub(crate) fn threads(
        lanes: Vec<Lane<K>>,
        bounds: (u64, u64),
        inbox: &Sender<Note>,
    ) -> Result<Self, String> {
        let lanes = lanes
            .into_iter()
            .map(|lane| start(lane, inbox.clone()))
            .collect::<Result<_, _>>()?;
        Ok(Stage::Threads(LaneThreads {
            lanes,
            max_records: bounds.0,
            max_bytes: bounds.1,
        }))
    }

    /// Hands one batch over.
    pub(crate) fn submit(&mut self, job: Job<R, K>) -> Submitted {
        match self {
            Stage::Inline(lane) => Submitted::Handled(lane.run(&job)),
            Stage::Threads(threads) => {
                let lane = &threads.lanes[spread(job.input.partition(), threads.lanes.len())];
                lane.load.enter(job.input.records(), job.input.cost());
                // A lane that is gone has said so by a note (see `start`); its worker ends with it.
                let _ = lane.jobs.send(job);
                Submitted::Queued
            }
        }
    }

    /// Ends the lanes and waits for them, at most `within`: they may hold records, and records must
    /// not outlive the client that fetched them. Gates are closed before, so that what is queued is
    /// thrown away at once.
    pub(crate) fn end(&mut self, within: Duration) -> Ended {
        let Stage::Threads(threads) = self else {
            return Ended::All;
        };
        let until = Instant::now() + within;
        let mut ended = Ended::All;
        for lane in threads.lanes.drain(..) {
            drop(lane.jobs);
            while !lane.thread.is_finished() && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(1));
            }
            if !lane.thread.is_finished() {
                ended = Ended::NotAll;
            }
        }
        ended
    }

    /// Keeps to other bounds from the next batch on.
    pub(crate) fn keep_to(&mut self, records: u64, bytes: u64) {
        if let Stage::Threads(threads) = self {
            threads.max_records = records;
            threads.max_bytes = bytes;
        }
    }

    /// Whether some lane has as much waiting as it may.
    pub(crate) fn is_full(&self) -> bool {
        match self {
            Stage::Inline(_) => false,
            Stage::Threads(threads) => threads
                .lanes
                .iter()
                .any(|lane| lane.load.is_full(threads.max_records, threads.max_bytes)),
        }
    }
}

fn start<R: FetchedRecord, K: Sink>(
    mut lane: Lane<K>,
    inbox: Sender<Note>,
) -> Result<LaneThread<R, K>, String> {
    let (jobs, queue) = unbounded::<Job<R, K>>();
    let load = Arc::new(Load::default());
    let shared = load.clone();
    let thread = std::thread::Builder::new()
        .name("mirror-handler".into())
        .spawn(move || {
            let work = std::panic::AssertUnwindSafe(|| serve(&mut lane, &queue, &shared, &inbox));
            // Handlers' panics are caught in the chain; whatever else panics takes the worker along,
            // since its batches would never be heard of again.
            if std::panic::catch_unwind(work).is_err() {
                let _ = inbox.send(Note::LaneDied);
            }
        });
    let thread = thread.map_err(|e| format!("no handler thread: {e}"))?;
    Ok(LaneThread { jobs, load, thread })
}

fn serve<R: FetchedRecord, K: Sink>(
    lane: &mut Lane<K>,
    queue: &Receiver<Job<R, K>>,
    load: &Load,
    inbox: &Sender<Note>,
) {
    while let Ok(job) = queue.recv() {
        if inbox.send(serve_one(lane, job, load)).is_err() {
            return;
        }
    }
}

fn serve_one<R: FetchedRecord, K: Sink>(lane: &mut Lane<K>, job: Job<R, K>, load: &Load) -> Note {
    let handled = lane.run(&job);
    load.leave(job.input.records(), job.input.cost());
    let ticket = job.ticket;
    // The records go before the word: a worker that ends waits for the words only.
    drop(job);
    Note::Handled { ticket, handled }
}

/// The queue of a handler thread that a test serves by itself.
#[cfg(test)]
pub(crate) struct ByHand<R, K> {
    pub(crate) jobs: Receiver<Job<R, K>>,
    load: Arc<Load>,
}

#[cfg(test)]
impl<R: FetchedRecord, K: Sink> ByHand<R, K> {
    /// A stage with one handler thread, and its queue.
    pub(crate) fn stage(bounds: (u64, u64)) -> (Stage<R, K>, Self) {
        let (jobs, queue) = unbounded();
        let load = Arc::new(Load::default());
        let thread = std::thread::spawn(|| {});
        let lane = LaneThread {
            jobs,
            load: load.clone(),
            thread,
        };
        let stage = Stage::Threads(LaneThreads {
            lanes: vec![lane],
            max_records: bounds.0,
            max_bytes: bounds.1,
        });
        (stage, Self { jobs: queue, load })
    }

    /// What serves one job, on whatever thread.
    pub(crate) fn server(&self) -> impl Fn(&mut Lane<K>, Job<R, K>) -> Note + Send + use<R, K> {
        let load = self.load.clone();
        move |lane, job| serve_one(lane, job, &load)
    }
}
