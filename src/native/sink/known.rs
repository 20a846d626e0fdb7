//! The strands of one topic as one thread knows them: looked up once, then found for each record.

use super::strand::Strand;
use crate::plane::Writer;
use std::collections::HashMap;
use std::sync::Arc;

/// Strands by target partition and producer id.
#[derive(Debug)]
pub(super) struct Known {
    strands: Vec<Arc<Strand>>,
    by: HashMap<(i32, i64), usize, foldhash::fast::FixedState>,
    /// The one used last: the next record is mostly for the same.
    last: usize,
    /// How many there may be before those of writers that write no more are let go of.
    most: usize,
}

/// Fewer are not worth the trouble.
const FEW: usize = 64;

impl Default for Known {
    fn default() -> Self {
        Self {
            strands: Vec::new(),
            by: HashMap::default(),
            last: 0,
            most: FEW,
        }
    }
}

impl Known {
    /// The strand of a writer to a partition, by `look_up` if it is not known.
    pub(super) fn get(
        &mut self,
        partition: i32,
        writer: Writer,
        look_up: impl FnOnce() -> Option<Arc<Strand>>,
    ) -> Option<&Arc<Strand>> {
        let is_it = |strand: &Arc<Strand>| {
            strand.target.partition.partition == partition && strand.pen.writer == writer
        };
        if !self.strands.get(self.last).is_some_and(is_it) {
            let place = (partition, writer.id);
            let found = self.by.get(&place).copied();
            self.last = match found.filter(|at| self.strands.get(*at).is_some_and(is_it)) {
                Some(at) => at,
                None => self.put(place, look_up()?),
            };
        }
        self.strands.get(self.last)
    }

    fn put(&mut self, place: (i32, i64), strand: Arc<Strand>) -> usize {
        if let Some(at) = self.by.get(&place)
            && let Some(former) = self.strands.get_mut(*at)
        {
            *former = strand;
            return *at;
        }
        if self.strands.len() >= self.most {
            self.let_go();
        }
        self.by.insert(place, self.strands.len());
        self.strands.push(strand);
        self.strands.len() - 1
    }

    fn let_go(&mut self) {
        self.strands.retain(|strand| strand.pen.is_open());
        let place = |strand: &Arc<Strand>| {
            let partition = strand.target.partition.partition;
            (partition, strand.pen.writer.id)
        };
        self.by = self.strands.iter().map(place).zip(0..).collect();
        self.most = FEW.max(2 * self.strands.len());
    }
}
