//! Moments as text: the patterns of `strftime` and `strptime`, RFC 3339, always UTC.

use jiff::Timestamp;
use jiff::fmt::strtime::{self, BrokenDownTime};
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

    /// The moment that `text` spells in this pattern, in milliseconds since 1970. A pattern
    /// without a zone is UTC, one without a time midnight.
    pub(crate) fn parse(&self, text: &str) -> Option<i64> {
        let parts = BrokenDownTime::parse(&self.0, text).ok()?;
        if let Ok(moment) = parts.to_timestamp() {
            return Some(floor_ms(moment));
        }
        let zoned = match parts.to_datetime() {
            Ok(moment) => moment.to_zoned_datetime(TimeZone::UTC).ok()?,
            Err(_) => parts
                .to_date()
                .ok()?
                .to_zoned_datetime(TimeZone::UTC)
                .ok()?,
        };
        Some(floor_ms(zoned.timestamp()))
    }
}

/// The moment that `text` spells as RFC 3339, in milliseconds since 1970.
pub(crate) fn parse_rfc3339(text: &str) -> Option<i64> {
    text.parse().ok().map(floor_ms)
}

/// Milliseconds since 1970; what is finer is cut off towards the past.
fn floor_ms(moment: Timestamp) -> i64 {
    moment.as_nanosecond().div_euclid(1_000_000) as i64
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
    fn parses_with_and_without_zone_and_time() {
        let rows = [
            ("%Y-%m-%d", "2023-11-14", Some(1_699_920_000_000)),
            (
                "%d/%m/%Y %H:%M:%S",
                "14/11/2023 22:13:20",
                Some(1_700_000_000_000),
            ),
            (
                "%Y-%m-%d %H:%M %z",
                "2023-11-14 23:13 +0100",
                Some(1_699_999_980_000),
            ),
            ("%Y-%m-%d", "2023-02-30", None),
            ("%Y-%m-%d", "yesterday", None),
            ("%s", "1700000000", Some(1_700_000_000_000)),
        ];
        for (pattern, text, expected) in rows {
            let pattern = Pattern::compile(pattern).expect("a pattern");
            assert_eq!(pattern.parse(text), expected, "{text}");
        }
        assert_eq!(
            parse_rfc3339("2023-11-14T22:13:20.1239Z"),
            Some(1_700_000_000_123)
        );
        assert_eq!(parse_rfc3339("1969-12-31T23:59:59.9999Z"), Some(-1));
        assert_eq!(
            parse_rfc3339("2023-11-14T23:13:20+01:00"),
            Some(1_700_000_000_000)
        );
        for text in ["2023-11-14", "2023-11-14T22:13:20", "", "now"] {
            assert_eq!(parse_rfc3339(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        for text in ["", "yyyy-MM-dd", "%", "%J", "%Y-%"] {
            assert!(Pattern::compile(text).is_err(), "{text}");
        }
    }
}
