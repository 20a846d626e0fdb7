//! `dedupe`: drops a record whose id was seen before in its partition.
//!
//! The one filter with a memory. It belongs to one source partition of one flow
//! ([`BoundChain::for_partition`]): it lives from the assignment to the release, over batches and
//! rewinds, and no other lane sees it. It holds the last `max` ids, each by a digest with the
//! offset and the timestamp of the record that was let through, so that its size is known.
//!
//! A record is dropped only if its id is held *from a smaller offset*: after a rewind the record
//! that was let through before is let through again, and so are those that are not known to follow
//! it. Something may come twice then, nothing is lost. The window is between the timestamps of the
//! two records, whichever is later; where one of them has none only `max` ends it. No clock is
//! read.
//!
//! Where a change of handlers leaves the step and all before it as they were, the new chain goes on
//! with the memory ([`BoundChain::taking_over`]).
//!
//! [`BoundChain::for_partition`]: super::BoundChain::for_partition
//! [`BoundChain::taking_over`]: super::BoundChain::taking_over

use super::fault::Place;
use super::path::Path;
use super::spec::FilterSpec;
use super::{Failure, Reads};
use crate::config::units;
use crate::record::Record;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The window if none is given.
const WINDOW: Duration = Duration::from_secs(600);
/// Ids held if nothing is given, and at most.
const MAX: u32 = 100_000;
pub(super) const MOST: u32 = 10_000_000;

/// A compiled `dedupe`.
#[derive(Debug)]
pub(crate) struct Dedupe {
    id: Path,
    window_ms: u64,
    max: usize,
    /// Only the thread that owns the partition asks; the lock is never waited for. Shared with the
    /// chain that took it over.
    memory: Arc<Mutex<Memory>>,
}

/// The ids of one partition.
#[derive(Debug, Default)]
struct Memory {
    seen: HashMap<Id, Seen, foldhash::fast::RandomState>,
    /// The ids by their turn: the first makes way for a new one.
    turns: BTreeMap<u64, Id>,
    next_turn: u64,
}

/// A digest of an id: whoever writes the records cannot make two of them alike.
type Id = [u8; 16];

/// The record that was let through.
#[derive(Clone, Copy, Debug)]
struct Seen {
    offset: i64,
    timestamp: Option<i64>,
    turn: u64,
}

/// A copy is for another partition: it begins with an empty memory.
impl Clone for Dedupe {
    fn clone(&self) -> Self {
        Self {
            id: self.id.clone(),
            window_ms: self.window_ms,
            max: self.max,
            memory: Arc::default(),
        }
    }
}

impl Dedupe {
    /// Compiles the `dedupe` at `id` and what `spec` says beside it.
    pub(super) fn compile(id: &str, spec: &FilterSpec, place: &Place<'_>) -> Option<Self> {
        let id = match Path::parse_one(id) {
            Ok(path) => Some(path),
            Err(fault) => place.child("dedupe").fault_path(id, fault),
        };
        let window = match spec.window.as_deref().map(units::duration) {
            None => Some(WINDOW),
            Some(Ok(window)) => Some(window),
            Some(Err(error)) => place
                .child("window")
                .fault_with_help(error.message, error.help),
        };
        let max = spec.max.unwrap_or(MAX);
        if max == 0 || max > MOST {
            let message = format!("from 1 to {MOST} ids can be held");
            return place.child("max").fault(message);
        }
        Some(Self {
            id: id?,
            window_ms: u64::try_from(window?.as_millis()).unwrap_or(u64::MAX),
            max: max as usize,
            memory: Arc::default(),
        })
    }

    /// Goes on with what `before` holds, the same step of a chain that this one's takes over from.
    pub(super) fn take_over(&mut self, before: &Self) {
        self.memory = Arc::clone(&before.memory);
    }

    /// What it reads of a record.
    pub(super) fn reads(&self) -> Reads {
        self.id.reads()
    }

    /// The path of the id.
    pub(super) fn path(&self) -> &Path {
        &self.id
    }

    /// Whether `record` is the first with its id; one without an id is.
    pub(super) fn keeps(&self, record: &Record<'_>) -> Result<bool, Failure> {
        let field = self.id.read(record)?;
        let Some(id) = field.bytes() else {
            return Ok(true);
        };
        let id = digest(record.origin.partition, &id);
        let mut memory = self.memory();
        if let Some(seen) = memory.seen.get(&id)
            && self.repeats(seen, record)
        {
            return Ok(false);
        }
        memory.hold(id, record, self.max);
        Ok(true)
    }

    /// Whether `record` follows the one that was seen, within the window.
    fn repeats(&self, seen: &Seen, record: &Record<'_>) -> bool {
        let is_within = match (seen.timestamp, record.origin.timestamp) {
            (Some(seen), Some(here)) => here.abs_diff(seen) <= self.window_ms,
            _ => true,
        };
        seen.offset < record.origin.offset && is_within
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        // What a panic left behind is a memory like any other: each entry is whole.
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Memory {
    fn hold(&mut self, id: Id, record: &Record<'_>, max: usize) {
        let turn = self.next_turn;
        self.next_turn += 1;
        let seen = Seen {
            offset: record.origin.offset,
            timestamp: record.origin.timestamp,
            turn,
        };
        if let Some(before) = self.seen.insert(id, seen) {
            self.turns.remove(&before.turn);
        }
        self.turns.insert(turn, id);
        if self.seen.len() > max
            && let Some((_, oldest)) = self.turns.pop_first()
        {
            self.seen.remove(&oldest);
        }
    }
}

/// The partition is part of it, for those who use one chain for several.
fn digest(partition: i32, id: &[u8]) -> Id {
    let digest = Sha256::new()
        .chain_update(partition.to_be_bytes())
        .chain_update(id)
        .finalize();
    let mut id = Id::default();
    id.copy_from_slice(&digest[..16]);
    id
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handler::sample::record;
    use proptest::prelude::*;
    use serde_json::json;
    use std::cell::RefCell;

    fn compile(spec: serde_json::Value) -> Dedupe {
        let spec: FilterSpec = serde_json::from_value(spec).expect("a filter");
        let faults = RefCell::new(Vec::new());
        let id = spec.dedupe.clone().expect("dedupe");
        Dedupe::compile(&id, &spec, &Place::root(&faults)).expect("sound")
    }

    fn keeps(dedupe: &Dedupe, offset: i64, timestamp: Option<i64>, id: &str) -> bool {
        let mut record = record(Some(id), Some("{}"));
        record.origin.offset = offset;
        record.origin.timestamp = timestamp;
        dedupe.keeps(&record).expect("a key")
    }

    #[test]
    fn the_second_within_the_window_is_dropped() {
        let dedupe = compile(json!({"dedupe": "key", "window": "1s"}));
        assert!(keeps(&dedupe, 0, Some(0), "a"));
        assert!(!keeps(&dedupe, 1, Some(1000), "a"));
        assert!(keeps(&dedupe, 2, Some(1000), "b"));
        assert!(keeps(&dedupe, 3, Some(1001), "a"), "the window is over");
        assert!(!keeps(&dedupe, 4, Some(1), "a"), "times may go back");
        assert!(!keeps(&dedupe, 5, None, "a"), "no time, no end");
    }

    #[test]
    fn after_a_rewind_the_first_passes_again_and_the_second_does_not() {
        let dedupe = compile(json!({"dedupe": "key"}));
        for _ in 0..2 {
            assert!(keeps(&dedupe, 5, Some(0), "a"));
            assert!(!keeps(&dedupe, 7, Some(0), "a"));
        }
        assert!(keeps(&dedupe, 3, Some(0), "a"), "from before what was seen");
        assert!(!keeps(&dedupe, 5, Some(0), "a"));
    }

    #[test]
    fn what_has_no_id_passes() {
        let dedupe = compile(json!({"dedupe": "value.id"}));
        for value in [None, Some("{}"), Some(r#"{"id":null}"#)] {
            for offset in 0..2 {
                let mut record = record(None, value);
                record.origin.offset = offset;
                assert_eq!(dedupe.keeps(&record), Ok(true));
            }
        }
    }

    #[test]
    fn the_oldest_of_max_makes_way_and_copies_begin_empty() {
        let dedupe = compile(json!({"dedupe": "key", "max": 2}));
        for (offset, id) in [(0, "a"), (1, "b"), (2, "c")] {
            assert!(keeps(&dedupe, offset, None, id));
        }
        assert!(!keeps(&dedupe, 3, None, "b"));
        assert!(keeps(&dedupe, 4, None, "a"), "made way for c");
        assert!(keeps(&dedupe.clone(), 5, None, "a"));
        let memory = dedupe.memory();
        assert_eq!((memory.seen.len(), memory.turns.len()), (2, 2));
    }

    /// Slowly and obviously: a list of what was let through, the oldest first.
    #[derive(Default)]
    struct Model(Vec<(u8, i64, Option<i64>)>);

    impl Model {
        fn keeps(&mut self, (id, offset, time): (u8, i64, Option<i64>), max: usize) -> bool {
            let held = self.0.iter().position(|(i, ..)| *i == id);
            if let Some(at) = held {
                let (_, first, then) = self.0[at];
                let apart = time.zip(then).map_or(0, |(a, b)| a.abs_diff(b));
                if first < offset && apart <= 50 {
                    return false;
                }
                self.0.remove(at);
            }
            self.0.push((id, offset, time));
            if self.0.len() > max {
                self.0.remove(0);
            }
            true
        }
    }

    proptest! {
        /// Records come in order of their offsets, with rewinds; each time the model agrees, and
        /// of each id at least one was let through when its first record had come by.
        #[test]
        fn it_does_as_the_model_does(
            records in prop::collection::vec((0u8..4, prop::option::of(0i64..200)), 1..40),
            rewinds in prop::collection::vec((0usize..40, 0usize..40), 0..4),
            max in 1usize..5,
        ) {
            let dedupe = compile(json!({"dedupe": "key", "window": "50ms", "max": max}));
            let mut model = Model::default();
            let mut rewinds = rewinds.into_iter();
            let (mut at, mut rewind) = (0, rewinds.next());
            let mut passed = std::collections::BTreeSet::new();
            while at < records.len() {
                let (id, time) = records[at];
                let offset = at as i64;
                let kept = keeps(&dedupe, offset, time, &id.to_string());
                prop_assert_eq!(kept, model.keeps((id, offset, time), max), "offset {}", at);
                passed.extend(kept.then_some(id));
                prop_assert!(passed.contains(&id), "id {} was never let through", id);
                at += 1;
                if let Some((when, to)) = rewind && at == when && to < at {
                    at = to;
                    rewind = rewinds.next();
                }
            }
        }
    }
}
