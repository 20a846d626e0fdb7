//! Fenced writes: who writes a partition's records at the target, and how a zombie is shut out.
//!
//! Where the data plane leaves the numbers to the flow ([`Numbers::OfWriters`]), each source partition has a *writer*: a
//! producer id with an epoch. Whoever writes to a target partition with a higher epoch of an id shuts out whoever still
//! writes there with a lower one: the broker says so, and what it says is as good as a loss. So a new owner goes on with the
//! id that stands beside the committed offset, and with a higher epoch. Of an id it claims [`RESERVE`] epochs at a time: the
//! highest is committed, the offset as it was, and acknowledged *before* anything is written with one of them. Within
//! what is claimed a failed delivery takes the next epoch without a commit.
//!
//! **No epoch is used twice to the harm of a record.** What a broker has under an id, an epoch and a sequence number it
//! takes for the same batch whoever sends it, and answers with success. Two lives of a partition with the same numbers would
//! therefore lose records, and the commits alone do not keep them apart: one that a former owner's client held back may land
//! over a newer one (`engine.md` rule 13), and a third owner then reads a claim that is too low. What keeps them apart:
//!
//! 1. The epochs that an id is committed with first are its taker's: a broker gives an id once, and whoever reads of it reads
//!    of all these epochs as claimed ([`Claim::Sole`]).
//! 2. Any other epoch may have been claimed twice ([`Claim::Shared`]). Then the first batch to each target partition goes
//!    alone, and has arrived only if the broker says that it was appended for this request (`native::sink::queue`, which says
//!    how). Of two lives that is one; the other hears that there is a batch, a gap or a higher epoch, and nothing of it
//!    counts: it takes an id that nobody has had, commits it, and begins again at its watermark.
//!
//! So it comes to repeats at worst. What such a commit can do is to leave a zombie unfenced by a successor's successor.
//!
//! Where a target topic writes its own time (LogAppendTime), that proof cannot be had: an id is not gone on with, and each
//! owner takes a new one. The broker forgets an id that is silent for a day (`producer.id.expiration.ms`), and takes whatever
//! comes first of it; one of which the numbers do not fit is the drain, the next epoch, and the watermark. After the last
//! epoch another id is taken.

use super::Worker;
use super::owned::{Owned, Phase, RetryHow};
use crate::flow::position::WriterMark;
use crate::flow::target::Times;
use crate::observe::{Counters, Reason};
use crate::plane::{Claim, Numbers, Sink, Source, Writer};
use crate::record::TopicPartition;
use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// Epochs that are claimed by one commit.
const RESERVE: i16 = 16;
/// A commit that is due anyway claims more where fewer are left.
const FEW: i16 = 8;
/// In which time the target mostly gives ids.
const SOON: Duration = Duration::from_secs(2);
/// A partition that somebody else has written in the place of: how long the group has to say that it is somebody else's, before
/// the member joins anew to hear it.
const GROUP_SAYS: Duration = Duration::from_secs(10);

/// Who writes for one partition.
#[derive(Debug)]
pub(super) struct Fence<K> {
    /// What stands beside the committed offset, as far as was read and acknowledged. Carried on where there is nothing else
    /// to say.
    stands: Option<WriterMark>,
    hold: Hold<K>,
}

/// What a partition has to write with.
#[derive(Debug)]
enum Hold<K> {
    /// Nothing is needed: the plane numbers by itself.
    OfPlane,
    /// It depends on topics that are not known yet.
    Undecided,
    /// An id that nobody had: it is asked for. The target's words, where it refuses.
    Lacks(Option<String>),
    /// This, as far as it is claimed.
    Has(Pen<K>),
    /// Nothing any more: somebody else writes in its place. The target's words.
    Fenced(String),
}

/// An id, and the epoch to write with.
#[derive(Debug)]
struct Pen<K> {
    id: i64,
    epoch: i16,
    /// Up to this epoch the id is nobody else's.
    sole: Option<i16>,
    /// The producer that something was handed to with this epoch.
    used_on: Option<Weak<K>>,
    /// Something that was handed over did not arrive: its numbers are gone.
    is_spoilt: bool,
}

/// Partitions that lack an id.
#[derive(Debug, Default)]
pub(super) struct Lacking {
    partitions: BTreeSet<TopicPartition>,
    /// When one was added last.
    since: Option<Instant>,
}

impl Lacking {
    fn add(&mut self, tp: &TopicPartition) {
        if self.partitions.insert(tp.clone()) {
            self.since = Some(Instant::now());
        }
    }

    /// Whether an answer may come any moment. A target that does not answer is none of that.
    pub(super) fn is_expecting(&self) -> bool {
        let fresh = |since: Instant| since.elapsed() < SOON;
        !self.partitions.is_empty() && self.since.is_some_and(fresh)
    }
}

/// Whether a new owner may go on with the id that the one before had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heritage {
    /// It may.
    Taken,
    /// A repeat under it could not be told.
    Refused,
}

impl<K> Default for Fence<K> {
    fn default() -> Self {
        Self {
            stands: None,
            hold: Hold::Undecided,
        }
    }
}

impl<K> Fence<K> {
    /// That of a partition beside whose offset this stands.
    pub(super) fn read(numbers: Numbers, stands: Option<WriterMark>) -> Self {
        let hold = match numbers {
            Numbers::OfPlane => Hold::OfPlane,
            Numbers::OfWriters => Hold::Undecided,
        };
        Self { stands, hold }
    }

    /// What the next commit says.
    pub(super) fn mark(&self) -> Option<WriterMark> {
        let Hold::Has(pen) = &self.hold else {
            return self.stands;
        };
        let claimed = self.claimed(pen);
        let epoch = match claimed.checked_sub(pen.epoch) {
            Some(left) if left >= FEW => claimed,
            _ => claimed.max(pen.epoch.saturating_add(RESERVE - 1)),
        };
        Some(WriterMark { id: pen.id, epoch })
    }

    /// The highest epoch of an id that is claimed for sure; -1 for none.
    fn claimed(&self, pen: &Pen<K>) -> i16 {
        let of_it = self.stands.filter(|stands| stands.id == pen.id);
        of_it.map_or(-1, |stands| stands.epoch)
    }

    /// A commit was acknowledged that says this.
    pub(super) fn stands(&mut self, mark: Option<WriterMark>) {
        self.stands = mark;
    }

    /// Whether nothing may be written before a commit.
    pub(super) fn wants_commit(&self) -> bool {
        matches!(&self.hold, Hold::Has(pen) if pen.epoch > self.claimed(pen))
    }

    /// Whether nothing may be committed any more.
    pub(super) fn is_fenced(&self) -> bool {
        matches!(self.hold, Hold::Fenced(_))
    }

    fn lacks_id(&self) -> bool {
        matches!(self.hold, Hold::Lacks(_))
    }

    /// Why nothing may be written now.
    pub(super) fn unready(&self) -> Option<Reason> {
        match &self.hold {
            Hold::OfPlane => None,
            Hold::Has(_) if !self.wants_commit() => None,
            Hold::Has(_) | Hold::Undecided | Hold::Lacks(None) => Some(Reason::AwaitingWriter),
            Hold::Lacks(Some(detail)) => Some(Reason::TargetRefuses {
                detail: detail.clone(),
            }),
            Hold::Fenced(detail) => Some(Reason::Fenced {
                detail: detail.clone(),
            }),
        }
    }

    /// Takes up the id that stands there, if it may be taken and has epochs left; otherwise one is lacking.
    fn decide(&mut self, heritage: Heritage) {
        if !matches!(self.hold, Hold::Undecided) {
            return;
        }
        let stands = self.stands.filter(|_| heritage == Heritage::Taken);
        let stands = stands.filter(|stands| stands.epoch <= i16::MAX - RESERVE);
        self.hold = match stands {
            Some(WriterMark { id, epoch }) => Hold::Has(Pen::new(id, epoch + 1, None)),
            None => Hold::Lacks(None),
        };
    }

    /// Something that was handed over did not arrive.
    pub(super) fn spoil(&mut self) {
        if let Hold::Has(pen) = &mut self.hold {
            pen.is_spoilt = true;
        }
    }
}

impl<K> Pen<K> {
    fn new(id: i64, epoch: i16, sole: Option<i16>) -> Self {
        Self {
            id,
            epoch,
            sole,
            used_on: None,
            is_spoilt: false,
        }
    }

    fn is_used_elsewhere(&self, than: &Arc<K>) -> bool {
        let on = self.used_on.as_ref();
        on.is_some_and(|on| !std::ptr::eq(on.as_ptr(), Arc::as_ptr(than)))
    }

    fn claim(&self) -> Claim {
        match self.sole {
            Some(sole) if self.epoch <= sole => Claim::Sole,
            _ => Claim::Shared,
        }
    }
}

impl<K: Sink> Fence<K> {
    /// Who writes what is handed to this producer now; `None` where nobody may before a commit. Nothing may be in flight if
    /// it is another producer than before, or if something did not arrive: numbers begin anew there.
    pub(super) fn writer(&mut self, on: &Arc<K>) -> Option<Writer> {
        if let Hold::OfPlane = self.hold {
            return Some(Writer::ANYBODY);
        }
        let is_over = |pen: &Pen<K>| pen.is_spoilt || pen.is_used_elsewhere(on);
        if matches!(&self.hold, Hold::Has(pen) if is_over(pen)) {
            self.raise();
        }
        if self.wants_commit() {
            return None;
        }
        let Hold::Has(pen) = &mut self.hold else {
            return None;
        };
        pen.used_on = Some(Arc::downgrade(on));
        Some(Writer {
            id: pen.id,
            epoch: pen.epoch,
            claim: pen.claim(),
        })
    }

    /// What was handed over has an outcome: where some of it did not arrive, the next epoch begins.
    pub(super) fn settle(&mut self) {
        if matches!(&self.hold, Hold::Has(pen) if pen.is_spoilt) {
            self.raise();
        }
    }

    /// Takes the next epoch; after the last one, an id is lacking.
    fn raise(&mut self) {
        self.let_go();
        let Hold::Has(pen) = &mut self.hold else {
            return;
        };
        pen.is_spoilt = false;
        match pen.epoch.checked_add(1) {
            Some(next) => pen.epoch = next,
            None => self.hold = Hold::Lacks(None),
        }
    }

    /// Nothing is written under this id any more: somebody else may have had its numbers.
    pub(super) fn doubt(&mut self) {
        self.let_go();
        if let Hold::Has(_) = self.hold {
            self.hold = Hold::Lacks(None);
        }
    }

    /// Somebody else writes in its place.
    pub(super) fn be_fenced(&mut self, detail: String) {
        self.let_go();
        self.hold = Hold::Fenced(detail);
    }

    /// The producer that something was handed to may forget about it.
    pub(super) fn let_go(&mut self) {
        if let Hold::Has(pen) = &mut self.hold
            && let Some(on) = pen.used_on.take().and_then(|on| on.upgrade())
        {
            on.retire(pen.id);
        }
    }
}

impl<S: Source, K: Sink> Worker<S, K> {
    /// Decides who writes for a partition whose target topics are there.
    pub(super) fn decide_writer(&mut self, tp: &TopicPartition) {
        let is_undecided = |o: &&mut Owned<S::Record, K>| matches!(o.fence.hold, Hold::Undecided);
        let Some(owned) = self.owned.get_mut(tp).filter(is_undecided) else {
            return;
        };
        let chain = owned.chain.iter();
        let mut targets = chain.flat_map(|chain| &chain.targets().known);
        let times = |target: &String| self.targets.get(target).map(|t| t.times);
        let heritage = match targets.all(|target| times(target) == Some(Times::OfRecords)) {
            true => Heritage::Taken,
            false => Heritage::Refused,
        };
        owned.fence.decide(heritage);
        self.want_writer(tp);
    }

    /// Sees to it that a partition gets to write: a commit, or an id before that.
    pub(super) fn want_writer(&mut self, tp: &TopicPartition) {
        let Some(owned) = self.owned.get(tp) else {
            return;
        };
        if owned.fence.lacks_id() {
            self.lacking.add(tp);
        } else if owned.fence.wants_commit() {
            self.committer.hurry(Instant::now());
        }
    }

    /// Partitions that lack an id get one, as far as there are some. What is lacking is asked for.
    pub(super) fn look_for_ids(&mut self) {
        let is_lacking = |o: &Owned<S::Record, K>| {
            o.fence.lacks_id() && !o.has_vanished() && !matches!(o.phase, Phase::Releasing)
        };
        let lacking = &mut self.lacking.partitions;
        lacking.retain(|tp| self.owned.get(tp).is_some_and(is_lacking));
        let Some(first) = lacking.first() else {
            return;
        };
        let count = lacking.len();
        let given = self.sinks.of(first).and_then(|sink| {
            let ids = sink.fresh_ids(count);
            ids.map_err(|fault| fault.detail)
        });
        match given {
            Ok(ids) => ids.into_iter().for_each(|id| self.give(id)),
            Err(detail) => {
                for tp in &self.lacking.partitions {
                    if let Some(owned) = self.owned.get_mut(tp) {
                        owned.fence.hold = Hold::Lacks(Some(detail.clone()));
                    }
                }
            }
        }
    }

    fn give(&mut self, id: i64) {
        let first = self.lacking.partitions.pop_first();
        if let Some(owned) = first.and_then(|tp| self.owned.get_mut(&tp)) {
            owned.fence.hold = Hold::Has(Pen::new(id, 0, Some(RESERVE - 1)));
            self.committer.hurry(Instant::now());
        }
    }

    /// Claims were acknowledged: whoever waited for that goes on.
    pub(super) fn claimed(&mut self) {
        let now = Instant::now();
        for owned in self.owned.values_mut() {
            if let Phase::Halted { reason, retry } = &mut owned.phase
                && *reason == Reason::AwaitingWriter
                && owned.fence.unready().is_none()
            {
                retry.at = now;
                self.next_retry_look = now;
            }
        }
        self.place_ready();
    }

    /// The target refuses a record since somebody else has written in the place of its writer.
    pub(super) fn fenced(&mut self, tp: &TopicPartition, life: u64, detail: String) {
        let owned = self.owned.get_mut(tp).filter(|o| o.life == life);
        match owned.map(|o| &o.phase) {
            // It leaves, without the commit of what has arrived.
            Some(Phase::Releasing) => self.note_fenced(tp, detail),
            _ => self.barrier(tp, life, |t| t.fenced = Some(detail)),
        }
    }

    fn note_fenced(&mut self, tp: &TopicPartition, detail: String) {
        let Some(owned) = self.owned.get_mut(tp).filter(|o| !o.fence.is_fenced()) else {
            return;
        };
        tracing::error!(event = "partition_fenced", subject = %self.subject, topic = %tp.topic, partition = tp.partition,
            watermark = owned.tracker.watermark().0, detail,
            "another instance writes in its place: nothing more is written or committed here");
        Counters::add(&self.view.counters.fenced_partitions, 1);
        owned.fence.be_fenced(detail);
    }

    /// Somebody else has written in the place of this partition's writer, so it is somebody else's: nothing more is written or
    /// committed. The group says so soon; if it does not, it is asked.
    pub(super) fn be_fenced(&mut self, tp: &TopicPartition, detail: String) {
        self.note_fenced(tp, detail.clone());
        let Some(owned) = self.owned.get_mut(tp) else {
            return;
        };
        let reason = Reason::Fenced { detail };
        owned.halt(reason, RetryHow::Rejoin, Instant::now());
        if let Phase::Halted { retry, .. } = &mut owned.phase {
            retry.at = Instant::now() + GROUP_SAYS;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plane::{ProduceFault, Token};
    use crate::record::Record;
    use std::sync::Mutex;

    /// Notes what it is told to forget.
    #[derive(Default)]
    struct Forgetful(Mutex<Vec<i64>>);

    impl Sink for Forgetful {
        type Topic = ();

        fn topic(&self, _: &str) -> Result<(), ProduceFault> {
            Ok(())
        }
        fn enqueue(
            &self,
            (): &(),
            _: i32,
            _: &Record<'_>,
            _: Writer,
            _: Token,
        ) -> Result<(), ProduceFault> {
            Ok(())
        }
        fn is_usable(&self) -> bool {
            true
        }
        fn purge(&self) {}
        fn retire(&self, id: i64) {
            self.0.lock().unwrap().push(id);
        }
    }

    fn mark(id: i64, epoch: i16) -> Option<WriterMark> {
        Some(WriterMark { id, epoch })
    }

    fn heir(of: Option<WriterMark>) -> Fence<Forgetful> {
        let mut fence = Fence::read(Numbers::OfWriters, of);
        fence.decide(Heritage::Taken);
        fence
    }

    fn with_new_id(id: i64) -> Fence<Forgetful> {
        let mut fence = heir(None);
        assert!(fence.lacks_id());
        fence.hold = Hold::Has(Pen::new(id, 0, Some(RESERVE - 1)));
        fence
    }

    fn commit(fence: &mut Fence<Forgetful>) {
        fence.stands(fence.mark());
    }

    #[test]
    fn nothing_is_written_before_its_epoch_is_acknowledged() {
        let sink = Arc::default();
        let mut fence = heir(mark(7, 15));
        assert_eq!(fence.writer(&sink), None);
        assert_eq!(fence.unready(), Some(Reason::AwaitingWriter));
        assert_eq!(fence.mark(), mark(7, 31));
        commit(&mut fence);
        let writer = Writer {
            id: 7,
            epoch: 16,
            claim: Claim::Shared,
        };
        assert_eq!(fence.writer(&sink), Some(writer));
        assert_eq!(fence.unready(), None);
        assert_eq!(fence.mark(), mark(7, 31), "as long as enough are left");
    }

    #[test]
    fn what_an_id_is_committed_with_first_is_its_takers_alone() {
        let sink = Arc::default();
        let mut fence = with_new_id(9);
        commit(&mut fence);
        let mut claims = Vec::new();
        for _ in 0..RESERVE {
            claims.push(fence.writer(&sink).map(|w| (w.epoch, w.claim)));
            fence.spoil();
        }
        let all = (0..RESERVE).map(|epoch| Some((epoch, Claim::Sole)));
        assert_eq!(claims, all.collect::<Vec<_>>());
        assert_eq!(fence.writer(&sink), None, "more are to be claimed first");
        commit(&mut fence);
        let next = fence.writer(&sink).map(|w| (w.epoch, w.claim));
        assert_eq!(next, Some((RESERVE, Claim::Shared)));
    }

    #[test]
    fn an_epoch_is_of_one_producer_and_of_what_arrives() {
        let (one, other) = (Arc::default(), Arc::default());
        let mut fence = with_new_id(9);
        commit(&mut fence);
        let epoch = |fence: &mut Fence<Forgetful>, on| fence.writer(on).map(|w| w.epoch);
        assert_eq!(epoch(&mut fence, &one), Some(0));
        fence.settle();
        assert_eq!(epoch(&mut fence, &one), Some(0), "everything has arrived");
        fence.spoil();
        fence.settle();
        assert_eq!(epoch(&mut fence, &one), Some(1));
        assert_eq!(epoch(&mut fence, &other), Some(2));
        assert_eq!(epoch(&mut fence, &one), Some(3), "and back");
        let told = |sink: &Arc<Forgetful>| sink.0.lock().unwrap().len();
        assert_eq!((told(&one), told(&other)), (2, 1));
    }

    #[test]
    fn a_commit_that_is_due_anyway_claims_in_advance() {
        let sink = Arc::default();
        let mut fence = with_new_id(9);
        commit(&mut fence);
        for _ in 0..RESERVE - FEW {
            let _ = fence.writer(&sink);
            fence.spoil();
            fence.settle();
        }
        assert_eq!(fence.unready(), None);
        assert_eq!(fence.mark(), mark(9, RESERVE - FEW + RESERVE - 1));
    }

    #[test]
    fn another_id_is_taken_in_doubt_after_the_last_epoch_and_where_no_proof_can_be_had() {
        let sink = Arc::default();
        let mut fence = heir(mark(7, 15));
        commit(&mut fence);
        let _ = fence.writer(&sink);
        fence.doubt();
        assert!(fence.lacks_id());
        assert_eq!(fence.mark(), mark(7, 31), "carried on until there is one");
        assert!(heir(mark(7, i16::MAX - RESERVE + 1)).lacks_id());
        let mut last = heir(mark(7, i16::MAX - RESERVE));
        commit(&mut last);
        assert_eq!(last.mark(), mark(7, i16::MAX));
        for _ in 0..RESERVE {
            assert!(last.writer(&sink).is_some());
            last.spoil();
        }
        assert_eq!(last.writer(&sink), None);
        assert!(last.lacks_id());
        let mut own_time = Fence::<Forgetful>::read(Numbers::OfWriters, mark(7, 15));
        own_time.decide(Heritage::Refused);
        assert!(own_time.lacks_id());
    }

    #[test]
    fn a_plane_that_numbers_by_itself_carries_on_what_stands_there() {
        let mut fence = Fence::<Forgetful>::read(Numbers::OfPlane, mark(7, 15));
        assert_eq!(fence.unready(), None);
        assert_eq!(fence.writer(&Arc::default()), Some(Writer::ANYBODY));
        fence.spoil();
        fence.settle();
        assert_eq!(fence.mark(), mark(7, 15));
        assert!(!fence.wants_commit());
    }

    #[test]
    fn who_is_fenced_writes_and_commits_nothing_more() {
        let sink = Arc::default();
        let mut fence = with_new_id(9);
        commit(&mut fence);
        let _ = fence.writer(&sink);
        fence.be_fenced("no".into());
        assert!(fence.is_fenced());
        assert_eq!(fence.writer(&sink), None);
    }
}
