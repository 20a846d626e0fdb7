//! `mirror test`: the `tests:` of a configuration.
//!
//! raw → [`Case`] → samples through a [`crate::trial::Trial`] → [`Report`]. A case is compared
//! (`compare`), counted (`coverage`), and may be written back ([`update`]).

mod compact;
mod compare;
mod coverage;
mod edit;
pub mod files;
mod gather;
pub mod machine;
pub mod raw;
mod read;
mod run;
mod spec;
pub mod text;
pub mod update;
mod yaml;

pub use compare::Difference;
pub use coverage::{Coverage, Gap, RouteCoverage, Way};
pub use read::read;
pub use run::{CaseResult, Report, Verdict, run};
pub use spec::Case;

#[cfg(test)]
mod tests;
