//! Who writes at the target, as its brokers see it: of each partition the highest epoch of each producer id, and whose it is.
//!
//! Batches and their numbers are `native::sink::tests`' business. Here an epoch stands for all of its numbers: what a broker has
//! of one holder it takes what another one sends under it for, and says so.

use super::rare::Rare;
use super::target::Sent;
use super::world::World;
use crate::flow::position::{CommitMetadata, WriterMark};
use crate::plane::{Claim, FaultKind, Numbers, Writer};
use std::collections::{BTreeMap, BTreeSet};

/// Who writes under an epoch: a producer of a flow, or whoever copies elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holder {
    Here { flow: u32, handle: usize },
    Elsewhere,
}

/// A partition of a target topic: the chain that leads to it (`None`: dead letters), the partition, and a producer id.
type At = (Option<u32>, i32, i64);

/// What is known of writers.
pub(super) struct Fences {
    pub(super) numbers: Numbers,
    last_id: i64,
    /// The highest epoch that a commit claimed which has landed, by source partition and id.
    claimed: BTreeMap<(i32, i64), i16>,
    /// Who has enqueued under an epoch last, and with which claim.
    holders: BTreeMap<(i64, i16), (Holder, Claim)>,
    /// Epochs of which something did not arrive: their numbers are gone.
    broken: BTreeSet<(i64, i16)>,
    /// What brokers have seen.
    written: BTreeMap<At, (i16, Holder)>,
}

impl Fences {
    pub(super) fn new(numbers: Numbers) -> Self {
        Self {
            numbers,
            last_id: 0,
            claimed: BTreeMap::new(),
            holders: BTreeMap::new(),
            broken: BTreeSet::new(),
            written: BTreeMap::new(),
        }
    }

    fn is_on(&self) -> bool {
        self.numbers == Numbers::OfWriters
    }

    pub(super) fn fresh_id(&mut self) -> i64 {
        self.last_id += 1;
        self.last_id
    }

    /// A commit that says this has landed.
    pub(super) fn claim(&mut self, partition: i32, metadata: &str) {
        let mark = CommitMetadata::decode(metadata.as_bytes()).writer;
        if let Some(WriterMark { id, epoch }) = mark {
            let claimed = self.claimed.entry((partition, id)).or_insert(epoch);
            *claimed = (*claimed).max(epoch);
        }
    }

    /// Nothing more is taken under an epoch of which something was not.
    pub(super) fn is_broken(&self, writer: Writer) -> bool {
        self.is_on() && self.broken.contains(&(writer.id, writer.epoch))
    }

    pub(super) fn spoil(&mut self, writer: Writer) {
        self.broken.insert((writer.id, writer.epoch));
    }

    /// What a broker says of something that arrives; `None` if it takes it.
    fn meet(&mut self, at: At, writer: Writer, holder: Holder) -> Option<FaultKind> {
        match self.written.get(&at) {
            Some((epoch, _)) if writer.epoch < *epoch => Some(FaultKind::Fenced),
            Some((epoch, of)) if writer.epoch == *epoch && *of != holder => {
                Some(FaultKind::Doubtful)
            }
            _ => {
                self.written.insert(at, (writer.epoch, holder));
                None
            }
        }
    }
}

impl World {
    /// Something is enqueued: its epoch is claimed, and nobody's who does not share it.
    pub(super) fn check_writer(&mut self, sent: &Sent) {
        let (writer, holder) = (sent.writer, sent.holder);
        let fences = &mut self.fences;
        if !fences.is_on() {
            return;
        }
        let claimed = fences.claimed.get(&(sent.partition, writer.id)).copied();
        self.holds(
            claimed.is_some_and(|claimed| claimed >= writer.epoch),
            || format!("{} by {writer:?}, claimed is {claimed:?}", sent.partition),
        );
        self.hold(writer, holder);
    }

    /// An epoch that is called somebody's alone is, and within a flow it is one producer's.
    fn hold(&mut self, writer: Writer, holder: Holder) {
        let holders = &mut self.fences.holders;
        let of = holders.insert((writer.id, writer.epoch), (holder, writer.claim));
        let Some((of, claim)) = of.filter(|(of, _)| *of != holder) else {
            return;
        };
        let may_share = match (of, holder) {
            (Holder::Here { flow, .. }, Holder::Here { flow: now, .. }) if flow == now => false,
            _ => (claim, writer.claim) == (Claim::Shared, Claim::Shared),
        };
        self.holds(may_share, || {
            format!("{writer:?} is {holder:?}'s and, {claim:?}, {of:?}'s")
        });
    }

    /// What the target says of a record that arrives; `None` if it takes it.
    pub(super) fn turn_away(&mut self, sent: &Sent) -> Option<FaultKind> {
        if !self.fences.is_on() {
            return None;
        }
        let at = (sent.chain, sent.partition, sent.writer.id);
        let met = self.fences.meet(at, sent.writer, sent.holder);
        match met {
            Some(FaultKind::Fenced) => self.seen.note(Rare::ZombieFenced),
            Some(FaultKind::Doubtful) => self.seen.note(Rare::EpochTwice),
            _ => {}
        }
        met
    }

    /// Whoever copies elsewhere writes on, with a higher epoch than the commit says, or with an id of its own; what stands
    /// beside its commits then.
    pub(super) fn write_elsewhere(&mut self, partition: i32, metadata: &str) -> String {
        if !self.fences.is_on() {
            return metadata.to_owned();
        }
        let mut said = CommitMetadata::decode(metadata.as_bytes());
        let chain = Some(self.settings().chain);
        let fences = &mut self.fences;
        let mut mark = match said.writer {
            Some(WriterMark { id, epoch }) => WriterMark {
                id,
                epoch: epoch + 1,
            },
            None => WriterMark {
                id: fences.fresh_id(),
                epoch: 0,
            },
        };
        let writer = |mark: WriterMark| Writer {
            id: mark.id,
            epoch: mark.epoch,
            claim: Claim::Shared,
        };
        let mut meets = |mark: WriterMark| {
            let at = (chain, partition, mark.id);
            fences.meet(at, writer(mark), Holder::Elsewhere).is_some()
        };
        if meets(mark) {
            mark = WriterMark {
                id: self.fences.fresh_id(),
                epoch: 0,
            };
            let at = (chain, partition, mark.id);
            self.fences.meet(at, writer(mark), Holder::Elsewhere);
        }
        self.hold(writer(mark), Holder::Elsewhere);
        mark.epoch += 15;
        said.writer = Some(mark);
        let text = said.encode();
        self.fences.claim(partition, &text);
        text
    }
}
