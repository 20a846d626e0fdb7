//! Which rare situations a property test has been in: one that it never was in, it proves nothing about.

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Debug;

/// Names rare situations, and lists them all.
macro_rules! situations {
    ($(#[$head:meta])* $vis:vis enum $of:ident { $($(#[$doc:meta])* $name:ident,)* }) => {
        $(#[$head])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        $vis enum $of { $($(#[$doc])* $name,)* }

        impl $of {
            $vis const ALL: &[$of] = &[$($of::$name,)*];
        }
    };
}

pub(crate) use situations;

/// How often each was met.
#[derive(Clone, Debug)]
pub(crate) struct Seen<R>(BTreeMap<R, usize>);

impl<R> Default for Seen<R> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<R: Copy + Debug + Ord> Seen<R> {
    pub(crate) fn note(&mut self, rare: R) {
        *self.0.entry(rare).or_default() += 1;
    }

    /// Adds what another case has met.
    pub(crate) fn add(&mut self, other: &Self) {
        for (rare, times) in &other.0 {
            *self.0.entry(*rare).or_default() += times;
        }
    }

    fn missing(&self, of: &[R]) -> Vec<R> {
        let is_missing = |rare: &R| !self.0.contains_key(rare);
        of.iter().copied().filter(is_missing).collect()
    }

    /// Panics if one of these was never met.
    fn demand(&self, all: &[R]) {
        let missing = self.missing(all);
        assert!(
            missing.is_empty(),
            "never met: {missing:?} of {:#?}",
            self.0
        );
    }
}

/// Cases of one round.
const CASES: u32 = 64;
/// Chance may leave a situation out of one round, and not of so many.
const ROUNDS: u8 = 5;
/// Set, each run tries cases of its own. Otherwise they are the same ones, so that a run says something of the change that was
/// made, and not of chance.
const RANDOM: &str = "MIRROR_TEST_RANDOM";

/// Runs a property whose cases say what they have met, until that is everything of `must_meet`. A seed that fails is kept for
/// the tests in `file`.
pub(crate) fn prove<S: Strategy, R: Copy + Debug + Ord>(
    file: &'static str,
    of: &S,
    must_meet: &[R],
    simulate: impl Fn(S::Value) -> Seen<R>,
) {
    let seen = RefCell::new(Seen::default());
    for round in 0..ROUNDS {
        let config = Config {
            cases: CASES,
            max_shrink_iters: 512,
            ..Config::with_source_file(file)
        };
        let mut runner = match std::env::var_os(RANDOM) {
            Some(_) => TestRunner::new(config),
            None => TestRunner::new_with_rng(
                config,
                TestRng::from_seed(RngAlgorithm::ChaCha, &[round; 32]),
            ),
        };
        let ran = runner.run(of, |case| {
            let of_case = simulate(case);
            seen.borrow_mut().add(&of_case);
            Ok(())
        });
        ran.unwrap_or_else(|failure| panic!("{failure}"));
        if seen.borrow().missing(must_meet).is_empty() {
            break;
        }
    }
    seen.into_inner().demand(must_meet);
}

#[cfg(test)]
mod tests {
    use super::*;

    situations! {
        enum Rare {
            Often,
            Never,
        }
    }

    #[test]
    #[should_panic(expected = "never met: [Never] of")]
    fn a_situation_that_was_never_met_fails_the_run() {
        let (mut run, mut case) = (Seen::default(), Seen::default());
        case.note(Rare::Often);
        run.add(&case);
        run.demand(Rare::ALL);
    }
}
