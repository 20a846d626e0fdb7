//! The one clock that handlers read: given to a chain when it is bound.

use std::time::{SystemTime, UNIX_EPOCH};

/// What tells a chain the time. Tests give a fixed one, so that what a chain does depends on its
/// records alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Clock {
    /// The system's clock.
    #[default]
    System,
    /// Always this moment, in milliseconds since 1970.
    Fixed(i64),
}

impl Clock {
    /// The time in milliseconds since 1970.
    pub fn now_ms(self) -> i64 {
        match self {
            Self::Fixed(moment) => moment,
            Self::System => {
                let since = SystemTime::now().duration_since(UNIX_EPOCH);
                since.map_or(0, |s| i64::try_from(s.as_millis()).unwrap_or(i64::MAX))
            }
        }
    }
}
