//! `timestamp`: the record's time is moved, read from the record, or now.

use crate::config::units;
use crate::handler::clock::Clock;
use crate::handler::fault::{Place, suggest};
use crate::handler::json::number;
use crate::handler::moment::{self, Pattern};
use crate::handler::path::{Field, Path};
use crate::handler::template::absent;
use crate::handler::{Binding, Failure, FailureCode, Reads};
use crate::record::Record;
use serde_json::{Map, Value};

/// The words for how a time is written.
pub(in crate::handler) const UNITS: [&str; 5] = ["s", "ms", "us", "ns", "rfc3339"];

/// A compiled change of the timestamp.
#[derive(Clone, Debug)]
pub(crate) enum Retime {
    /// It becomes what the clock says.
    Now(Clock),
    /// It is moved by so many milliseconds.
    Shift(i64),
    /// It is read from the record.
    From(Path, Unit, IfAbsent),
}

/// How a time is written in the record.
#[derive(Clone, Debug)]
pub(crate) enum Unit {
    /// A number that is milliseconds since 1970 once multiplied by ten to this power.
    Scaled(i64),
    /// RFC 3339.
    Rfc3339,
    /// A pattern.
    Pattern(Pattern),
}

/// What a record without the time does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum IfAbsent {
    /// The step fails.
    Fail,
    /// The timestamp stays.
    Keep,
}

impl Retime {
    /// Compiles what stands behind `timestamp:`, reporting mistakes at `place`.
    pub(super) fn compile(written: &Value, place: &Place<'_>) -> Option<Self> {
        let map = match written {
            Value::String(word) if word == "now" => return Some(Self::Now(Clock::default())),
            Value::Object(map) => map,
            _ => {
                return place.fault("`now`, `{ shift: DURATION }` or `{ from: PATH }` is expected");
            }
        };
        let known = ["shift", "from", "unit", "if_absent"];
        if let Some(name) = map.keys().find(|name| !known.contains(&name.as_str())) {
            let help = suggest(name, known);
            return place
                .child(name)
                .fault_with_help(format!("unknown key `{name}`"), help);
        }
        match (text_of(map, "shift"), text_of(map, "from")) {
            (Some(shift), _) => match map.keys().find(|name| *name != "shift") {
                None => compile_shift(shift, &place.child("shift")),
                Some(beside) => place.child(beside).key().fault_with_help(
                    format!("`{beside}` cannot stand beside `shift`"),
                    "exactly one of `shift` and `from`; `unit` and `if_absent` belong to `from`",
                ),
            },
            (None, Some(path)) => compile_from(path, map, place),
            (None, None) => place.key().fault_with_help(
                "`timestamp` must have exactly one of `shift` and `from`",
                "write `{ shift: -1h }` or `{ from: value.created_at, unit: ms }`",
            ),
        }
    }

    /// Takes the clock that the chain is given.
    pub(super) fn bind(&self, binding: &Binding<'_>) -> Self {
        match self {
            Self::Now(_) => Self::Now(binding.clock),
            other => other.clone(),
        }
    }

    /// What it reads of a record.
    pub(super) fn reads(&self) -> Reads {
        match self {
            Self::Now(_) | Self::Shift(_) => Reads::Nothing,
            Self::From(path, ..) => path.reads(),
        }
    }

    /// Changes the timestamp of `record`. One that has none is not moved.
    pub(super) fn apply(&self, record: &mut Record<'_>) -> Result<(), Failure> {
        let moment = match self {
            Self::Now(clock) => Some(clock.now_ms()),
            Self::Shift(by) => match record.timestamp {
                Some(moment) => Some(moment.checked_add(*by).ok_or_else(impossible)?),
                None => None,
            },
            Self::From(path, ..) if path.is_of_value() && record.value.is_none() => None,
            Self::From(path, unit, if_absent) => match (path.read(record)?, if_absent) {
                (Field::Absent | Field::Null, IfAbsent::Keep) => None,
                (Field::Absent | Field::Null, IfAbsent::Fail) => return Err(absent(path)),
                (field, _) => Some(unit.read(&field, path)?),
            },
        };
        match moment {
            None => Ok(()),
            Some(moment) if moment >= 0 => {
                record.timestamp = Some(moment);
                Ok(())
            }
            Some(_) => Err(impossible()),
        }
    }
}

impl Unit {
    fn compile(word: &str, place: &Place<'_>) -> Option<Self> {
        match word {
            "s" => Some(Self::Scaled(3)),
            "ms" => Some(Self::Scaled(0)),
            "us" => Some(Self::Scaled(-3)),
            "ns" => Some(Self::Scaled(-6)),
            "rfc3339" => Some(Self::Rfc3339),
            pattern if pattern.contains('%') => match Pattern::compile(pattern) {
                Ok(pattern) => Some(Self::Pattern(pattern)),
                Err(message) => place.fault(message),
            },
            other => place.fault_with_help(
                format!("`{other}` is no unit and no pattern of a time"),
                suggest(other, UNITS),
            ),
        }
    }

    /// The milliseconds since 1970 that stand in `field`; what is finer is cut off.
    fn read(&self, field: &Field<'_>, path: &Path) -> Result<i64, Failure> {
        let wrong = || {
            let detail = format!("`{path}` is no time in this unit");
            Failure::new(FailureCode::WrongType, detail)
        };
        if matches!(field, Field::Bool(_) | Field::Composite(_)) {
            return Err(wrong());
        }
        let bytes = field.bytes().unwrap_or_default();
        let text = std::str::from_utf8(&bytes).map_err(|_| wrong())?;
        let moment = match self {
            Self::Scaled(exponent) => number::scaled(text, *exponent),
            Self::Rfc3339 => moment::parse_rfc3339(text),
            Self::Pattern(pattern) => pattern.parse(text),
        };
        moment.ok_or_else(wrong)
    }
}

fn compile_shift(text: &str, place: &Place<'_>) -> Option<Retime> {
    match units::shift(text) {
        Ok(by) => Some(Retime::Shift(by)),
        Err(error) => place.fault_with_help(error.message, error.help),
    }
}

fn compile_from(text: &str, map: &Map<String, Value>, place: &Place<'_>) -> Option<Retime> {
    let path = match Path::parse_one(text) {
        Ok(path) => Some(path),
        Err(fault) => place.child("from").fault_path(text, fault),
    };
    let unit = match map.get("unit") {
        None => Some(Unit::Scaled(0)),
        Some(Value::String(word)) => Unit::compile(word, &place.child("unit")),
        Some(_) => place.child("unit").fault("a unit is a text"),
    };
    let if_absent = match map.get("if_absent").map(Value::as_str) {
        None | Some(Some("fail")) => Some(IfAbsent::Fail),
        Some(Some("keep")) => Some(IfAbsent::Keep),
        Some(_) => place
            .child("if_absent")
            .fault("`fail` or `keep` is expected"),
    };
    Some(Retime::From(path?, unit?, if_absent?))
}

fn text_of<'m>(map: &'m Map<String, Value>, name: &str) -> Option<&'m str> {
    map.get(name).and_then(Value::as_str)
}

fn impossible() -> Failure {
    let detail = "the timestamp would be before 1970, or beyond what a record can say".to_owned();
    Failure::new(FailureCode::InvalidTimestamp, detail)
}
