//! Where batches are handled: on the worker's own thread (KIP-3's Proposal 2), or on handler
//! threads behind bounded queues (Proposal 1). A source partition always goes to the same lane, so
//! its order is the lane's order (I2).

use crate::flow::lane::{Handled, Job, Lane};
use crate::flow::sinks::spread;
use crate::flow::worker::Note;
use crate::plane::{FetchedRecord, Sink};
use crossbeam_channel::{Receiver, Sender, unbounded};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What waits for one handler thread. The channel itself is unbounded; this is its bound: the
/// worker takes no batch while a lane is full, so a queue exceeds it by one batch at most.
#[derive(Debug, Default)]
struct Load {
    records: AtomicU64,
    bytes: AtomicU64,
}

/// One handler thread.
struct LaneThread<R, K> {
    jobs: Sender<Job<R, K>>,
    load: Arc<Load>,
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
                let lane = &threads.lanes[spread(&job.batch.partition, threads.lanes.len())];
                lane.load
                    .records
                    .fetch_add(job.batch.records.len() as u64, Ordering::AcqRel);
                lane.load
                    .bytes
                    .fetch_add(job.batch.cost(), Ordering::AcqRel);
                // A lane that is gone panicked outside a handler; its worker ends with it.
                let _ = lane.jobs.send(job);
                Submitted::Queued
            }
        }
    }

    /// Whether some lane has as much waiting as it may.
    pub(crate) fn is_full(&self) -> bool {
        match self {
            Stage::Inline(_) => false,
            Stage::Threads(threads) => threads.lanes.iter().any(|lane| {
                lane.load.records.load(Ordering::Acquire) >= threads.max_records
                    || lane.load.bytes.load(Ordering::Acquire) >= threads.max_bytes
            }),
        }
    }
}

fn start<R: FetchedRecord, K: Sink>(
    mut lane: Lane<K>,
    inbox: Sender<Note>,
) -> Result<LaneThread<R, K>, String> {
    let (jobs, queue): (Sender<Job<R, K>>, Receiver<Job<R, K>>) = unbounded();
    let load = Arc::new(Load::default());
    let shared = load.clone();
    std::thread::Builder::new()
        .name("mirror-handler".into())
        .spawn(move || {
            while let Ok(job) = queue.recv() {
                let handled = lane.run(&job);
                shared
                    .records
                    .fetch_sub(job.batch.records.len() as u64, Ordering::AcqRel);
                shared.bytes.fetch_sub(job.batch.cost(), Ordering::AcqRel);
                let note = Note::Handled {
                    ticket: job.ticket,
                    handled,
                };
                if inbox.send(note).is_err() {
                    return;
                }
            }
        })
        .map_err(|e| format!("no handler thread: {e}"))?;
    Ok(LaneThread { jobs, load })
}
