//! A handler thread's lane, let on record by record.

use super::log::Played;
use super::target::{FakeSink, GATEKEEPER};
use crate::flow::lane::{Job, Lane};
use crate::flow::stage::ByHand;
use crate::flow::worker::Note;
use crossbeam_channel::{Receiver, Sender, bounded, unbounded};

/// What a lane on a thread of its own says before each record, and when it is done.
enum Said {
    AtRecord,
    Done(Note),
}

/// The lane of a handler thread, let on record by record.
pub(super) struct Hand {
    jobs: Receiver<Job<Played, FakeSink>>,
    work: Sender<Job<Played, FakeSink>>,
    says: Receiver<Said>,
    may: Sender<()>,
    is_at_record: bool,
}

impl Hand {
    pub(super) fn new(by_hand: ByHand<Played, FakeSink>, mut lane: Lane<FakeSink>) -> Self {
        let (work, queue) = unbounded::<Job<Played, FakeSink>>();
        let (tells, says) = unbounded();
        let (may, permits) = bounded(1);
        let serve = by_hand.server();
        let at_record = tells.clone();
        std::thread::spawn(move || {
            let (asks, asked) = unbounded::<()>();
            std::thread::spawn(move || {
                for () in asked {
                    let _ = at_record.send(Said::AtRecord);
                }
            });
            GATEKEEPER.set(Some((asks, permits)));
            for job in queue {
                let _ = tells.send(Said::Done(serve(&mut lane, job)));
            }
        });
        Self {
            jobs: by_hand.jobs,
            work,
            says,
            may,
            is_at_record: false,
        }
    }

    /// One record further; the lane's word on a batch when that is done.
    pub(super) fn go_on(&mut self) -> Option<Note> {
        if self.is_at_record {
            self.may.send(()).ok()?;
        } else {
            self.work.send(self.jobs.try_recv().ok()?).ok()?;
        }
        let said = self.says.recv().ok()?;
        self.is_at_record = matches!(said, Said::AtRecord);
        match said {
            Said::AtRecord => None,
            Said::Done(note) => Some(note),
        }
    }
}
