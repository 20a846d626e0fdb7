//! Waiting for states, each wait with a deadline.

use std::time::{Duration, Instant};

/// Between two looks.
const LOOK: Duration = Duration::from_millis(25);

/// What most waits are given: far more than they need, on a machine that does other things as well.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Looks until `found` gives something.
///
/// # Panics
/// If it gives nothing within `within`; the message is `what`.
pub fn find<T>(what: &str, within: Duration, found: impl FnMut() -> Option<T>) -> T {
    try_find(within, found).unwrap_or_else(|| panic!("not within {within:?}: {what}"))
}

/// Looks until `found` gives something, or `within` is over.
pub fn try_find<T>(within: Duration, mut found: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + within;
    loop {
        let found = found();
        if found.is_some() || Instant::now() >= deadline {
            return found;
        }
        std::thread::sleep(LOOK);
    }
}

/// Looks until it is so.
///
/// # Panics
/// As [`find`].
pub fn until(what: &str, within: Duration, mut so: impl FnMut() -> bool) {
    find(what, within, || so().then_some(()));
}

/// A number from the environment: how much of something a test does, where the full number is too slow for every day.
///
/// # Panics
/// If it is set and no number.
pub fn count(variable: &str, otherwise: u64) -> u64 {
    match std::env::var(variable) {
        Ok(text) => text
            .parse()
            .unwrap_or_else(|e| panic!("{variable}={text}: {e}")),
        Err(_) => otherwise,
    }
}
