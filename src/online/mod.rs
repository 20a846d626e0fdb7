//! Questions to the clusters of a configuration, and what the answers mean: `mirror check --online`,
//! `mirror plan --online`.
//!
//! [`ask()`] asks; nothing is created, joined or committed by it. What it heard ([`facts`]) is judged by
//! pure functions.

pub mod ahead;
pub mod arrivals;
pub mod ask;
pub mod facts;
pub mod judge;
pub mod needs;
pub mod outlook;
mod pending;
pub mod position;
pub mod trouble;

pub use ahead::Ahead;
pub use ask::{Answers, ask, longest};
pub use judge::{Finding, judge};

use crate::config::diagnostic::Code;

/// Whether a code says that somebody could not be asked, rather than what he answered.
pub fn could_not_ask(code: Code) -> bool {
    matches!(
        code,
        Code::UnknownHost | Code::ConnectionRefused | Code::NoAnswer
    )
}
