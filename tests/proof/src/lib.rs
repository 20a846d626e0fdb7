//! Decides whether a copy is right: pure, so that it can itself be tested against copies that are wrong.
//!
//! Who writes to a source notes each record in [`expected`] and gives it a [`stamp`]; who reads the target
//! makes [`checker::Sights`] of it; [`checker::check`] says what became of every record. [`plan`] makes, from one number,
//! the faults that a mirror has to live through meanwhile.

pub mod checker;
pub mod expected;
#[cfg(test)]
mod mirrors;
pub mod plan;
pub mod random;
pub mod record;
pub mod stamp;
