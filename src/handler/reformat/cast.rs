//! `cast`: a field becomes a value of another type, exactly or not at all.

use super::every::{self, Change};
use crate::handler::fault::{Place, suggest};
use crate::handler::json::{number, scan, text};
use crate::handler::limit::RecordLimit;
use crate::handler::path::{Field, Path};
use crate::handler::spec::Entries;
use crate::handler::{Failure, FailureCode, Reads};
use crate::record::Record;
use serde_json::Value;

/// The names of the types.
pub(in crate::handler) const TYPES: [&str; 4] = ["string", "int", "float", "bool"];

/// One path, and the type of everything that it matches.
#[derive(Clone, Debug)]
pub(crate) struct Cast {
    path: Path,
    to: Type,
}

#[derive(Clone, Copy, Debug)]
enum Type {
    /// A text: numbers as they are spelled.
    String,
    /// A number without dot and exponent.
    Int,
    /// A number with a dot or an exponent.
    Float,
    /// `true` or `false`.
    Bool,
}

/// Compiles the entries of `cast`, reporting mistakes at `place`.
pub(super) fn compile(entries: &Entries, place: &Place<'_>) -> Option<Vec<Cast>> {
    if entries.0.is_empty() {
        return place.fault("an empty map casts nothing");
    }
    let compiled = entries.0.iter().map(|(path, to)| {
        let place = place.child(path);
        let path = match every::compile(path, &place.key())? {
            Path::Header(_) => place.fault_with_help(
                "a header has no type: its value is bytes",
                "fields of a JSON value or key can be cast",
            ),
            path => Some(path),
        };
        let to = Type::compile(to, &place);
        Some(Cast {
            path: path?,
            to: to?,
        })
    });
    let compiled: Vec<Option<Cast>> = compiled.collect();
    compiled.into_iter().collect()
}

impl Cast {
    /// What it reads of a record.
    pub(super) fn reads(&self) -> Reads {
        every::reads(&self.path)
    }

    /// Casts everything in `record` that the path matches.
    pub(super) fn apply(&self, record: &mut Record<'_>, limit: RecordLimit) -> Result<(), Failure> {
        every::change(record, &self.path, limit, &self.to)
    }
}

impl Type {
    fn compile(written: &Value, place: &Place<'_>) -> Option<Self> {
        match written.as_str() {
            Some("string") => Some(Self::String),
            Some("int") => Some(Self::Int),
            Some("float") => Some(Self::Float),
            Some("bool") => Some(Self::Bool),
            other => {
                let other = other.unwrap_or_default();
                place.fault_with_help("the name of a type is expected", suggest(other, TYPES))
            }
        }
    }

    fn refuses(self) -> Failure {
        let what = match self {
            Self::String => "an object or array is not cast to a text; `encode` it as `json`",
            Self::Int => "no whole number: only one can be cast to `int`",
            Self::Float => "no number: only one can be cast to `float`",
            Self::Bool => "only true, false, 1 and 0 can be cast to `bool`",
        };
        Failure::new(FailureCode::WrongType, what)
    }

    fn of_number(self, spelled: &str) -> Result<Option<Vec<u8>>, Failure> {
        match self {
            Self::String => Ok(Some(text::encoded(spelled))),
            Self::Int => self.int(spelled),
            Self::Float => Ok(float(spelled)),
            Self::Bool => match number::scaled(spelled, 0) {
                Some(0) if number::is_whole(spelled) => Ok(Some(b"false".to_vec())),
                Some(1) if number::is_whole(spelled) => Ok(Some(b"true".to_vec())),
                _ => Err(self.refuses()),
            },
        }
    }

    fn of_text(self, text: &str) -> Result<Option<Vec<u8>>, Failure> {
        let is_number = || number::Decimal::parse(text).is_some();
        match self {
            Self::String => Ok(None),
            Self::Int if is_number() => Ok(self.int(text)?.or_else(|| Some(text.into()))),
            Self::Float if is_number() => Ok(float(text).or_else(|| Some(text.into()))),
            Self::Bool if text.eq_ignore_ascii_case("true") => Ok(Some(b"true".to_vec())),
            Self::Bool if text.eq_ignore_ascii_case("false") => Ok(Some(b"false".to_vec())),
            _ => Err(self.refuses()),
        }
    }

    fn of_bool(self, value: bool) -> Option<Vec<u8>> {
        let spelled = match (self, value) {
            (Self::String, true) => "\"true\"",
            (Self::String, false) => "\"false\"",
            (Self::Int, true) => "1",
            (Self::Int, false) => "0",
            (Self::Float, true) => "1.0",
            (Self::Float, false) => "0.0",
            (Self::Bool, _) => return None,
        };
        Some(spelled.into())
    }

    /// The whole number in full digits; `None` if it is spelled so already.
    fn int(self, spelled: &str) -> Result<Option<Vec<u8>>, Failure> {
        if !spelled.contains(['.', 'e', 'E']) {
            return Ok(None);
        }
        if !number::is_whole(spelled) {
            return Err(self.refuses());
        }
        match number::digits_of_whole(spelled) {
            Some(digits) => Ok(Some(digits.into_bytes())),
            None => {
                let detail = "the whole number would have more than a thousand digits";
                Err(Failure::new(FailureCode::TooLarge, detail))
            }
        }
    }
}

/// A whole number with `.0`; `None` if it has a dot or an exponent already.
fn float(spelled: &str) -> Option<Vec<u8>> {
    match spelled.contains(['.', 'e', 'E']) {
        true => None,
        false => Some(format!("{spelled}.0").into_bytes()),
    }
}

impl Change for Type {
    /// The key or the value as a whole is a JSON document.
    fn bytes(&self, bytes: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        let span = scan::root(bytes)?;
        let changed = match &bytes[span.clone()] {
            b"null" => None,
            token => self.json(token, 0)?,
        };
        Ok(Some(match changed {
            None => bytes.to_vec(),
            Some(new) => [&bytes[..span.start], &new, &bytes[span.end..]].concat(),
        }))
    }

    fn json(&self, token: &[u8], _depth: usize) -> Result<Option<Vec<u8>>, Failure> {
        // A text stays as it is spelled, whatever it says.
        if token.starts_with(b"\"") && matches!(self, Self::String) {
            return Ok(None);
        }
        match Field::of_token(token)? {
            Field::Number(spelled) => self.of_number(&spelled),
            Field::Text(text) => self.of_text(&text),
            Field::Bool(value) => Ok(self.of_bool(value)),
            _ => Err(self.refuses()),
        }
    }
}
