//! file → parse with positions → schema → validate (pure, all errors at once) → [`spec::Spec`].

pub mod secret;
pub mod spec;
pub mod watch;
