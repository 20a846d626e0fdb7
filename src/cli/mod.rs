//! (in the making)

pub mod check;
pub mod schema;
