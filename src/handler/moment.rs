//! Moments as text: the patterns of `strftime`, always UTC.

use jiff::Timestamp;
use jiff::fmt::strtime;
use jiff::tz::TimeZone;

/// A pattern such as `%Y%m%d`, checked when it is compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pattern(String);

impl Pattern {
    /// Compiles `text`.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub(crate) fn compile(text: &str) -> Result<Self, String> {
        if !text.contains('%') {
            return Err(format!(
                "`{text}` is no pattern of a time, such as `%Y-%m-%d`"
            ));
        }
        match strtime::format(
            text,
            &Timestamp::UNIX_EPOCH.to_zoned_datetime(TimeZone::UTC),
        ) {
            Ok(_) => Ok(Self(text.to_owned())),
            Err(error) => Err(format!("`{text}` is no pattern of a time: {error}")),
        }
    }

    /// The moment `ms` (milliseconds since 1970) in this pattern, `None` if it is out of the
    /// calendar's range.
    pub(crate) fn format(&self, ms: i64) -> Option<String> {
        let moment = Timestamp::from_millisecond(ms).ok()?;
        strtime::format(&self.0, &moment.to_zoned_datetime(TimeZone::UTC)).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_in_utc() {
        let pattern = Pattern::compile("%Y%m%d-%H%M%S").expect("a pattern");
        assert_eq!(
            pattern.format(1_700_000_000_999).as_deref(),
            Some("20231114-221320")
        );
        assert_eq!(pattern.format(-1).as_deref(), Some("19691231-235959"));
        assert_eq!(pattern.format(i64::MAX), None);
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        for text in ["", "yyyy-MM-dd", "%", "%J", "%Y-%"] {
            assert!(Pattern::compile(text).is_err(), "{text}");
        }
    }
}
