//! Durations `500ms 10s 1h30m`, sizes `64KiB 10MB`, ratios `1%`.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, de};
use std::borrow::Cow;
use std::time::Duration;

/// A text that is no duration, size or ratio.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct UnitError {
    /// What is wrong.
    pub message: &'static str,
    /// What to write.
    pub help: String,
}

/// The kinds of values with a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A length of time.
    Duration,
    /// A length of time, forth or back.
    Shift,
    /// A number of bytes.
    Size,
    /// A part of a whole.
    Ratio,
}

impl Unit {
    /// Each of them.
    pub const ALL: [Unit; 4] = [Unit::Duration, Unit::Shift, Unit::Size, Unit::Ratio];

    /// Its word in the schema (`x-mirror-unit`).
    pub fn as_str(self) -> &'static str {
        match self {
            Unit::Duration => "duration",
            Unit::Shift => "shift",
            Unit::Size => "size",
            Unit::Ratio => "ratio",
        }
    }

    /// What is written there, in words.
    pub fn in_words(self) -> &'static str {
        match self {
            Unit::Duration => "a duration such as `500ms`, `10s` or `1h30m`",
            Unit::Shift => "a duration such as `1h30m`, or `-1h` for earlier",
            Unit::Size => "a size such as `64KiB`, `1GiB` or `10MB`",
            Unit::Ratio => "a ratio such as `1%`",
        }
    }

    /// The unit of that word.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|u| u.as_str() == name)
    }

    /// Why `text` is none, if so.
    pub fn check(self, text: &str) -> Result<(), UnitError> {
        match self {
            Unit::Duration => duration(text).map(drop),
            Unit::Shift => shift(text).map(drop),
            Unit::Size => size(text).map(drop),
            Unit::Ratio => ratio(text).map(drop),
        }
    }

    fn pattern(self) -> &'static str {
        match self {
            Unit::Duration => {
                "^([0-9]{1,9}d)?([0-9]{1,9}h)?([0-9]{1,9}m)?([0-9]{1,9}s)?([0-9]{1,9}ms)?$"
            }
            Unit::Shift => {
                "^[+-]?([0-9]{1,9}d)?([0-9]{1,9}h)?([0-9]{1,9}m)?([0-9]{1,9}s)?([0-9]{1,9}ms)?$"
            }
            Unit::Size => {
                "^([0-9]{1,15}(B|kB|KB|KiB)|[0-9]{1,12}(MB|MiB)|[0-9]{1,9}(GB|GiB)|[0-9]{1,6}(TB|TiB))$"
            }
            Unit::Ratio => r"^(100(\.0+)?|[0-9]{1,2}(\.[0-9]+)?)%$",
        }
    }

    /// The schema of a text with this unit.
    pub fn schema(self, description: &str, examples: &[&str]) -> Schema {
        json_schema!({
            "type": "string",
            "minLength": 2,
            "pattern": self.pattern(),
            "x-mirror-unit": self.as_str(),
            "description": description,
            "examples": examples,
        })
    }
}

/// The schema of a quantity that is nothing, for settings in which nothing makes no sense.
pub fn zero() -> serde_json::Value {
    serde_json::json!({ "type": "string", "pattern": "^(0+[a-zA-Z]+)+$" })
}

/// A duration: parts in falling order, such as `1h30m`.
///
/// # Errors
/// Any other text, with what to write.
pub fn duration(text: &str) -> Result<Duration, UnitError> {
    const UNITS: [(&str, u64); 5] = [
        ("d", 86_400_000),
        ("h", 3_600_000),
        ("m", 60_000),
        ("s", 1_000),
        ("ms", 1),
    ];
    let wrong = |message| UnitError {
        message,
        help: help_for(
            text,
            ["s", "ms"],
            "a duration is written `500ms`, `10s` or `1h30m`",
        ),
    };
    if is_bare(text) {
        return Err(wrong("a duration without a unit"));
    }
    let mut millis: u64 = 0;
    let mut rest = text;
    let mut before = u64::MAX;
    while !rest.is_empty() {
        let (number, after) = split_at_unit(rest);
        let digits = number.len();
        let end = after
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(after.len());
        let unit = UNITS.iter().find(|(name, _)| *name == &after[..end]);
        let (Ok(number), Some((_, factor))) = (number.parse::<u64>(), unit) else {
            return Err(wrong("not a duration"));
        };
        if *factor >= before {
            return Err(wrong("the parts of a duration stand in falling order"));
        }
        before = *factor;
        let part = number.checked_mul(*factor).filter(|_| digits <= 9);
        millis = part
            .and_then(|p| millis.checked_add(p))
            .ok_or_else(|| wrong("a duration longer than time itself"))?;
        rest = &after[end..];
    }
    if before == u64::MAX {
        return Err(wrong("not a duration"));
    }
    Ok(Duration::from_millis(millis))
}

/// A duration forth (`1h`, `+1h`) or back (`-1h`), in milliseconds.
///
/// # Errors
/// Any other text, with what to write.
pub fn shift(text: &str) -> Result<i64, UnitError> {
    let length = text.strip_prefix(['+', '-']).unwrap_or(text);
    let sign = if text.starts_with('-') { -1 } else { 1 };
    let wrong = |error: UnitError| UnitError {
        message: error.message,
        help: match is_bare(length) {
            true => format!("write `{text}s` or `{text}ms`"),
            false => "it is written `1h30m`, or `-1h` for earlier".to_owned(),
        },
    };
    let millis = duration(length).map_err(wrong)?.as_millis();
    Ok(sign * i64::try_from(millis).unwrap_or(i64::MAX))
}

/// A number of bytes: `KiB MiB GiB TiB` by 1024, `kB MB GB TB` by 1000.
///
/// # Errors
/// Any other text, with what to write.
pub fn size(text: &str) -> Result<u64, UnitError> {
    let wrong = |message| UnitError {
        message,
        help: help_for(
            text,
            ["KiB", "MiB"],
            "a size is written `64KiB`, `64MiB`, `1GiB` or `10MB`",
        ),
    };
    if is_bare(text) {
        return Err(wrong("a size without a unit"));
    }
    let (number, unit) = split_at_unit(text);
    let (factor, digits): (u64, usize) = match unit {
        "B" => (1, 15),
        "kB" | "KB" => (1000, 15),
        "MB" => (1_000_000, 12),
        "GB" => (1_000_000_000, 9),
        "TB" => (1_000_000_000_000, 6),
        "KiB" => (1 << 10, 15),
        "MiB" => (1 << 20, 12),
        "GiB" => (1 << 30, 9),
        "TiB" => (1 << 40, 6),
        _ => return Err(wrong("not a size")),
    };
    if number.len() > digits {
        return Err(wrong("a size larger than any memory"));
    }
    let bytes = number.parse::<u64>().ok();
    let bytes = bytes.and_then(|number| number.checked_mul(factor));
    bytes.ok_or_else(|| wrong("not a size"))
}

/// A part of a whole, `0%` to `100%`, as 0 to 1.
///
/// # Errors
/// Any other text, with what to write.
pub fn ratio(text: &str) -> Result<f64, UnitError> {
    let wrong = |message| UnitError {
        message,
        help: help_for(text, ["%"; 2], "a ratio is written `1%` or `0.5%`"),
    };
    if is_bare(text) {
        return Err(wrong("a ratio without `%`"));
    }
    let number = text.strip_suffix('%').ok_or_else(|| wrong("not a ratio"))?;
    let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
    let plain = |digits: &str| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    if !plain(whole) || !plain(part) {
        return Err(wrong("not a ratio"));
    }
    let percent: f64 = number.parse().map_err(|_| wrong("not a ratio"))?;
    if whole.len() > 3 || (whole.len() == 3 && !whole.starts_with('1')) || percent > 100.0 {
        return Err(wrong("a ratio is at least 0% and at most 100%"));
    }
    Ok(percent / 100.0)
}

fn is_bare(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

fn split_at_unit(text: &str) -> (&str, &str) {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    text.split_at(end)
}

fn help_for(text: &str, units: [&str; 2], general: &str) -> String {
    match units {
        _ if !is_bare(text) => general.to_owned(),
        [one, other] if one == other => format!("write `{text}{one}`"),
        [one, other] => format!("write `{text}{one}` or `{text}{other}`"),
    }
}

/// A duration as a field of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DurationText(pub Duration);

/// A size as a field of the file, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeText(pub u64);

impl<'de> Deserialize<'de> for DurationText {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(from)?;
        duration(&text).map(Self).map_err(de::Error::custom)
    }
}

impl<'de> Deserialize<'de> for SizeText {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(from)?;
        size(&text).map(Self).map_err(de::Error::custom)
    }
}

impl JsonSchema for DurationText {
    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        Unit::Duration.schema(
            "A length of time: `d`, `h`, `m`, `s`, `ms`, in this order.",
            &["500ms", "10s", "1h30m"],
        )
    }
}

impl JsonSchema for SizeText {
    fn schema_name() -> Cow<'static, str> {
        "Size".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        Unit::Size.schema(
            "A number of bytes: `KiB` `MiB` `GiB` `TiB` by 1024, `kB` `MB` `GB` `TB` by 1000.",
            &["64KiB", "64MiB", "1GiB", "10MB"],
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        for (text, millis) in [
            ("500ms", 500),
            ("10s", 10_000),
            ("1h30m", 5_400_000),
            ("1d", 86_400_000),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in [
            "",
            "s",
            "10",
            "1.5s",
            "10 s",
            "-1s",
            "1m1h",
            "1s1s",
            "99999999999999999h",
        ] {
            assert!(duration(text).is_err(), "{text}");
        }
        assert_eq!(duration("10").unwrap_err().help, "write `10s` or `10ms`");
    }

    #[test]
    fn shifts() {
        for (text, millis) in [("1h", 3_600_000), ("+1s", 1000), ("-1m30s", -90_000)] {
            assert_eq!(shift(text), Ok(millis), "{text}");
        }
        for text in ["", "-", "--1h", "an hour", "-1", "1h-1s"] {
            assert!(shift(text).is_err(), "{text}");
        }
        assert_eq!(shift("1").unwrap_err().help, "write `1s` or `1ms`");
        assert_eq!(shift("-1").unwrap_err().help, "write `-1s` or `-1ms`");
    }

    #[test]
    fn sizes() {
        for (text, bytes) in [
            ("64KiB", 65_536),
            ("10MB", 10_000_000),
            ("1GiB", 1 << 30),
            ("0B", 0),
        ] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in [
            "",
            "64",
            "64 MiB",
            "1.5GiB",
            "64mb",
            "MiB",
            "99999999999999TiB",
        ] {
            assert!(size(text).is_err(), "{text}");
        }
        assert_eq!(size("64").unwrap_err().help, "write `64KiB` or `64MiB`");
    }

    #[test]
    fn ratios() {
        assert_eq!(ratio("1%"), Ok(0.01));
        assert_eq!(ratio("0.5%"), Ok(0.005));
        for text in [
            "1", "101%", "-1%", "%", "nan%", "1e1%", "1.%", ".5%", "007%", "100.5%", "1 %",
        ] {
            assert!(ratio(text).is_err(), "{text}");
        }
        assert_eq!(ratio("1").unwrap_err().help, "write `1%`");
    }
}
