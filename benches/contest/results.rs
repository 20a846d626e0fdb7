//! All that a run found out.

use crate::asked::{self, Asked};
use crate::cost::Round;
use crate::idle::Idle;
use crate::lab;
use crate::latency::Delay;
use crate::machine::Machine;
use crate::memory::Peak;

/// What was measured; what was not asked for is empty.
pub struct Results {
    pub machine: Machine,
    pub runs: usize,
    pub scale: f64,
    pub rounds: Vec<Round>,
    /// At a fifth of what each contender can do.
    pub at_a_fifth: Vec<Delay>,
    /// At a thousand records a second.
    pub at_a_thousand: Vec<Delay>,
    pub peaks: Vec<Peak>,
    pub idles: Vec<Idle>,
}

impl Results {
    /// What is asked of them.
    pub fn asked(&self) -> Vec<Asked> {
        let mut all = asked::of_rounds(&self.rounds);
        all.extend(asked::of_peaks(&self.peaks));
        all.extend(asked::of_idles(&self.idles));
        all.extend(asked::of_delays(&self.at_a_thousand));
        all
    }

    /// Contenders that cost more than they should.
    pub fn warnings(&self) -> Vec<String> {
        lab::warnings(&self.rounds)
    }
}
