//! The commit tracker of one partition: register / resolve / watermark. Pure: no client, no clock.
//!
//! - **I1** committed ≤ watermark ≤ next to fetch, and every registered offset below the watermark
//!   is resolved.
//! - Works on batches: `first ..= last` and whether all their outputs are settled.
//! - Registers the *whole* range that fetching covered: control records, aborted records and
//!   compacted holes before a batch resolve with it, and an end-of-partition moves the watermark past
//!   trailing ones ([`Tracker::cover`]).
//! - Never computes with offsets; [`Offset::next`] is the only step.

use crate::plane::Offset;
use std::collections::VecDeque;

/// Names a registered batch within its tracker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BatchId(u64);

#[derive(Debug)]
struct Entry {
    id: BatchId,
    first: Offset,
    /// The position once this batch is behind us.
    after: Offset,
    resolved: bool,
}

/// The commit tracker of one partition in one epoch.
#[derive(Debug)]
pub struct Tracker {
    /// Every offset below is resolved.
    watermark: Offset,
    /// The next offset to be fetched; everything below is registered or covered.
    position: Offset,
    open: VecDeque<Entry>,
    /// Ids are never used twice: an id that was cut away or rewound must stay unknown.
    next_id: u64,
}

impl Tracker {
    /// A tracker of a partition that will be fetched from `position`.
    pub fn new(position: Offset) -> Self {
        Self {
            watermark: position,
            position,
            open: VecDeque::new(),
            next_id: 0,
        }
    }

    /// The next commit value.
    pub fn watermark(&self) -> Offset {
        self.watermark
    }

    /// The next offset to be fetched.
    pub fn position(&self) -> Offset {
        self.position
    }

    /// Whether nothing is in flight.
    pub fn is_idle(&self) -> bool {
        self.open.is_empty()
    }

    /// A batch enters. Its first offset must not lie before the position (the caller drops what
    /// was fetched twice).
    pub fn register(&mut self, first: Offset, last: Offset) -> BatchId {
        debug_assert!(
            first >= self.position && last >= first,
            "I2: {first}..={last} at {}",
            self.position
        );
        let id = BatchId(self.next_id);
        self.next_id += 1;
        if self.open.is_empty() {
            // What lies between is covered: control records, aborted records, holes.
            self.watermark = first;
        }
        self.position = last.next();
        self.open.push_back(Entry {
            id,
            first,
            after: self.position,
            resolved: false,
        });
        id
    }

    /// Fetching passed everything below `position` without a record.
    pub fn cover(&mut self, position: Offset) {
        if position <= self.position {
            return;
        }
        self.position = position;
        match self.open.back_mut() {
            Some(last) => last.after = position,
            None => self.watermark = position,
        }
    }

    /// All outputs of a batch are settled. Resolving an unknown batch (cut away since) does nothing.
    pub fn resolve(&mut self, id: BatchId) {
        let Some(index) = self.index(id) else {
            return;
        };
        self.open[index].resolved = true;
        self.advance();
    }

    /// Ends the tracker's knowledge at `offset`, which lies in batch `id`: the part before it is
    /// settled, it and everything after it will be fetched again.
    pub fn cut(&mut self, id: BatchId, offset: Offset) {
        let Some(index) = self.index(id) else {
            return;
        };
        self.open.truncate(index + 1);
        if let Some(entry) = self.open.back_mut() {
            debug_assert!(entry.first <= offset && offset <= entry.after);
            entry.after = offset;
            entry.resolved = true;
        }
        self.position = offset;
        self.advance();
    }

    /// Ids rise along the queue.
    fn index(&self, id: BatchId) -> Option<usize> {
        self.open.binary_search_by_key(&id, |entry| entry.id).ok()
    }

    /// Forgets what is in flight and goes back to the watermark, from which is fetched again.
    pub fn rewind(&mut self) -> Offset {
        self.open.clear();
        self.position = self.watermark;
        self.watermark
    }

    fn advance(&mut self) {
        while self.open.front().is_some_and(|e| e.resolved) {
            if let Some(entry) = self.open.pop_front() {
                self.watermark = entry.after;
            }
        }
        if let Some(front) = self.open.front() {
            // Holes before the first open batch are covered.
            self.watermark = self.watermark.max(front.first);
        }
        debug_assert!(self.watermark <= self.position, "I1");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(n: i64) -> Offset {
        Offset(n)
    }

    #[test]
    fn i1_watermark_waits_for_the_first_open_batch() {
        let mut t = Tracker::new(at(0));
        let a = t.register(at(0), at(3));
        let b = t.register(at(4), at(6));
        t.resolve(b);
        assert_eq!(t.watermark(), at(0), "4 to 6 are done, 0 to 3 are not");
        t.resolve(a);
        assert_eq!(t.watermark(), at(7));
        assert!(t.is_idle());
    }

    #[test]
    fn trailing_control_records_are_covered() {
        let mut t = Tracker::new(at(0));
        let a = t.register(at(0), at(4));
        t.cover(at(1007));
        assert_eq!(t.watermark(), at(0));
        t.resolve(a);
        assert_eq!(t.watermark(), at(1007));
        t.cover(at(1008));
        assert_eq!(
            t.watermark(),
            at(1008),
            "nothing in flight: the position is the watermark"
        );
        t.cover(at(3));
        assert_eq!(t.watermark(), at(1008), "never back");
    }

    #[test]
    fn a_cut_settles_what_came_before_and_forgets_the_rest() {
        let mut t = Tracker::new(at(10));
        let a = t.register(at(10), at(19));
        let b = t.register(at(20), at(29));
        t.cut(a, at(15));
        assert_eq!(t.watermark(), at(15));
        assert_eq!(t.position(), at(15));
        t.resolve(b);
        assert_eq!(t.watermark(), at(15), "b was forgotten");
    }

    #[test]
    fn a_rewind_makes_old_ids_unknown() {
        let mut t = Tracker::new(at(0));
        let a = t.register(at(0), at(9));
        assert_eq!(t.rewind(), at(0));
        let b = t.register(at(0), at(4));
        t.resolve(a);
        assert_eq!(t.watermark(), at(0), "the ack is of the old epoch");
        t.resolve(b);
        assert_eq!(t.watermark(), at(5));
    }

    #[derive(Clone, Debug)]
    enum Op {
        Register { gap: u8, len: u8 },
        Resolve(usize),
        Cover(u8),
        Rewind,
        Cut { batch: usize, keep: u8 },
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            4 => (0u8..3, 1u8..6).prop_map(|(gap, len)| Op::Register { gap, len }),
            4 => (0usize..8).prop_map(Op::Resolve),
            1 => (0u8..4).prop_map(Op::Cover),
            1 => Just(Op::Rewind),
            1 => (0usize..8, 0u8..6).prop_map(|(batch, keep)| Op::Cut { batch, keep }),
        ]
    }

    /// Slow and obviously right: remembers every offset's fate.
    #[derive(Default)]
    struct Naive {
        position: i64,
        /// Registered and open offsets with their batch.
        open: std::collections::BTreeMap<i64, usize>,
    }

    impl Naive {
        fn watermark(&self) -> i64 {
            self.open.keys().next().copied().unwrap_or(self.position)
        }
    }

    proptest! {
        #[test]
        fn i1_agrees_with_a_naive_model(ops in prop::collection::vec(op(), 1..80)) {
            let mut tracker = Tracker::new(at(0));
            let mut naive = Naive::default();
            let mut ids: Vec<(BatchId, i64, i64, bool)> = Vec::new();
            for op in ops {
                match op {
                    Op::Register { gap, len } => {
                        let first = naive.position + i64::from(gap);
                        let last = first + i64::from(len) - 1;
                        ids.push((tracker.register(at(first), at(last)), first, last, true));
                        for o in first..=last { naive.open.insert(o, ids.len() - 1); }
                        naive.position = last + 1;
                    }
                    Op::Resolve(i) if i < ids.len() => {
                        tracker.resolve(ids[i].0);
                        if ids[i].3 { naive.open.retain(|_, b| *b != i); }
                    }
                    Op::Cover(by) => {
                        naive.position += i64::from(by);
                        tracker.cover(at(naive.position));
                    }
                    Op::Rewind => {
                        naive.position = naive.watermark();
                        naive.open.clear();
                        for id in &mut ids { id.3 = false; }
                        prop_assert_eq!(tracker.rewind(), at(naive.position));
                    }
                    Op::Cut { batch, keep } if batch < ids.len() && ids[batch].3 => {
                        let (id, first, last, _) = ids[batch];
                        if !naive.open.values().any(|b| *b == batch) { continue; }
                        let offset = (first + i64::from(keep)).min(last);
                        tracker.cut(id, at(offset));
                        naive.open.retain(|o, b| *o < offset && *b != batch);
                        naive.position = offset;
                        for id in ids.iter_mut().skip(batch) { id.3 = false; }
                    }
                    _ => {}
                }
                prop_assert!(tracker.watermark() <= tracker.position());
                // The tracker may know a hole before an open batch as covered only later; never more.
                prop_assert!(tracker.watermark().0 <= naive.watermark());
                if naive.open.is_empty() {
                    prop_assert_eq!(tracker.watermark().0, naive.position);
                }
                prop_assert_eq!(tracker.position().0, naive.position);
            }
        }
    }
}
