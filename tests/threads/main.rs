//! Where threads share more than a channel, under interleavings that shuttle picks. The modules are the mirror's own, compiled
//! here with shuttle's primitives; around them stand the fewest lines that use them as the mirror does.

#[path = "../../src/client/door.rs"]
mod door;
#[path = "../../src/flow/gate.rs"]
mod gate;
#[path = "../../src/client/introduction.rs"]
mod introduction;
#[path = "../../src/flow/load.rs"]
mod load;

/// What the modules take for their primitives.
mod sync {
    pub(crate) use shuttle::sync::atomic::{
        AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering,
    };
    pub(crate) use shuttle::sync::{Mutex, MutexGuard, PoisonError, RwLock};
}

use door::Door;
use gate::Gate;
use introduction::Introductions;
use load::Load;
use shuttle::sync::mpsc::{Receiver, Sender, channel};
use shuttle::sync::{Arc, Mutex};
use shuttle::thread;

/// Schedules of each kind.
const SCHEDULES: usize = 2000;

fn every_way(run: impl Fn() + Send + Sync + Copy + 'static) {
    shuttle::check_random(run, SCHEDULES);
    // The kind that finds what needs few, but certain, changes of thread.
    shuttle::check_pct(run, SCHEDULES, 3);
}

/// A batch on its way to the lane: records from one to before another.
struct Job {
    from: u32,
    to: u32,
    epoch: u32,
}

/// The lane's word: where it stopped within the batch.
struct Word {
    to: u32,
    stopped: Option<u32>,
}

const RECORDS: u32 = 6;
const BATCH: u32 = 2;
/// What may wait for the lane; a batch more can.
const WAITING: u64 = 3;
/// The record that the target refuses the first time.
const REFUSED: u32 = 2;

struct Lane {
    gate: Arc<Gate>,
    load: Arc<Load>,
    arrived: Arc<Mutex<Vec<u32>>>,
}

impl Lane {
    fn serve(&self, queue: &Receiver<Job>, words: &Sender<Word>) {
        let mut refuses = true;
        while let Ok(job) = queue.recv() {
            let stopped = (job.from..job.to).find(|record| {
                let is_refused = *record == REFUSED && std::mem::take(&mut refuses);
                let passes = self.gate.is_open(job.epoch) && !is_refused;
                if passes {
                    self.arrived.lock().unwrap().push(*record);
                }
                !passes
            });
            if stopped.is_some() {
                self.gate.stop(job.epoch);
            }
            self.load.leave(u64::from(job.to - job.from), 0);
            let to = job.to;
            words.send(Word { to, stopped }).unwrap();
        }
    }
}

/// A worker hands batches over, hears of a stop or begins a barrier by itself, waits for every word, and goes back.
fn a_partition_on_a_handler_thread() {
    let (gate, load) = (Arc::new(Gate::default()), Arc::new(Load::default()));
    let arrived = Arc::new(Mutex::new(Vec::new()));
    let lane = Lane {
        gate: gate.clone(),
        load: load.clone(),
        arrived: arrived.clone(),
    };
    let (jobs, queue) = channel();
    let (tells, words) = channel();
    let serving = thread::spawn(move || lane.serve(&queue, &tells));
    let (mut watermark, mut position, mut in_flight) = (0, 0, 0);
    let mut stop = None;
    let mut is_barrier = false;
    let mut barriers_of_its_own = 1;
    while watermark < RECORDS {
        if position < RECORDS && !is_barrier && !load.is_full(WAITING, u64::MAX) {
            let (from, to) = (position, position + BATCH);
            let epoch = gate.epoch();
            load.enter(u64::from(BATCH), 0);
            jobs.send(Job { from, to, epoch }).unwrap();
            (position, in_flight) = (to, in_flight + 1);
            continue;
        }
        if position == RECORDS && barriers_of_its_own > 0 && !is_barrier {
            barriers_of_its_own -= 1;
            is_barrier = true;
            gate.close();
        }
        let word: Word = words.recv().unwrap();
        in_flight -= 1;
        match word.stopped {
            // What was behind a stop is fetched again, whatever became of it.
            None if stop.is_none() => watermark = word.to,
            None => {}
            Some(at) => {
                stop = Some(stop.map_or(at, |before: u32| before.min(at)));
                if !std::mem::replace(&mut is_barrier, true) {
                    gate.close();
                }
            }
        }
        if is_barrier && in_flight == 0 {
            watermark = stop.take().map_or(watermark, |at| at.max(watermark));
            (is_barrier, position) = (false, watermark);
        }
    }
    drop(jobs);
    serving.join().unwrap();
    let mut first = arrived.lock().unwrap().clone();
    let mut seen = std::collections::BTreeSet::new();
    first.retain(|record| seen.insert(*record));
    assert_eq!(first, (0..RECORDS).collect::<Vec<_>>());
    assert!(!load.is_full(1, 1), "a load that leaks");
}

#[test]
fn i2_nothing_overtakes_the_record_that_a_lane_stopped_at() {
    every_way(a_partition_on_a_handler_thread);
}

/// Threads of a flow share a producer: one brings records, another throws all of them out, the client sends.
fn a_producer_that_is_purged() {
    let door = Arc::new(Door::new());
    let (queue, sent) = (
        Arc::new(Mutex::new(Vec::new())),
        Arc::new(Mutex::new(Vec::new())),
    );
    let bringing = {
        let (door, queue) = (door.clone(), queue.clone());
        thread::spawn(move || {
            for record in 0..4 {
                let enter = || queue.lock().unwrap().push(record);
                if door.pass(enter).is_none() {
                    return;
                }
            }
        })
    };
    let sending = {
        let (queue, sent) = (queue.clone(), sent.clone());
        thread::spawn(move || {
            for _ in 0..4 {
                let mut queue = queue.lock().unwrap();
                if !queue.is_empty() {
                    sent.lock().unwrap().push(queue.remove(0));
                }
                drop(queue);
                thread::yield_now();
            }
        })
    };
    door.shut_and(|| queue.lock().unwrap().clear());
    bringing.join().unwrap();
    sending.join().unwrap();
    let left = queue.lock().unwrap().clone();
    assert_eq!(left, Vec::<u32>::new(), "it came in when the door was shut");
    let sent = sent.lock().unwrap().clone();
    assert_eq!(
        sent,
        (0..sent.len() as u32).collect::<Vec<_>>(),
        "a later record was sent in the place of one that was thrown out"
    );
}

#[test]
fn i2_no_record_is_sent_in_the_place_of_one_that_was_thrown_out() {
    every_way(a_producer_that_is_purged);
}

/// Threads of a flow write to one partition; the client says what became of the first record, and sends in the order in which
/// it is given.
fn a_producer_is_introduced(arrives: bool) {
    let introductions = Arc::new(Introductions::default());
    let sent = Arc::new(Mutex::new(Vec::new()));
    let writing = {
        let (introductions, sent) = (introductions.clone(), sent.clone());
        thread::spawn(move || {
            let at = introductions.of("orders", 0);
            for record in 0..4 {
                let send = || {
                    sent.lock().unwrap().push(record);
                    Ok::<_, ()>(())
                };
                if introductions.enter(&at, send, || record).is_none() {
                    return;
                }
            }
        })
    };
    let reporting = {
        let (introductions, sent) = (introductions.clone(), sent.clone());
        thread::spawn(move || {
            while sent.lock().unwrap().is_empty() {
                thread::yield_now();
            }
            assert_eq!(
                *sent.lock().unwrap(),
                [0],
                "one has gone before it was known"
            );
            match arrives {
                true => {
                    let at = introductions.pending("orders", 0).expect("a first record");
                    let send = |record: &u32| {
                        sent.lock().unwrap().push(*record);
                        Ok::<_, ()>(())
                    };
                    introductions.arrived(&at, send).unwrap();
                }
                false => drop(introductions.all_failed()),
            }
        })
    };
    writing.join().unwrap();
    reporting.join().unwrap();
    let sent = sent.lock().unwrap().clone();
    let all: &[u32] = if arrives { &[0, 1, 2, 3] } else { &[0] };
    assert_eq!(sent, all, "nothing is lost, and nothing overtakes");
    assert!(!introductions.are_pending());
}

#[test]
fn i2_nothing_overtakes_the_first_record_of_a_producer() {
    every_way(|| a_producer_is_introduced(true));
    every_way(|| a_producer_is_introduced(false));
}

/// A producer that dies is shut by whoever finds out first, and that is one.
#[test]
fn a_producer_dies_once() {
    every_way(|| {
        let door = Arc::new(Door::new());
        let finds_out = |door: Arc<Door>| thread::spawn(move || u32::from(door.shut()));
        let finders = [finds_out(door.clone()), finds_out(door.clone())];
        let found: u32 = finders.into_iter().map(|f| f.join().unwrap()).sum();
        assert_eq!((found, door.is_open()), (1, false));
    });
}
