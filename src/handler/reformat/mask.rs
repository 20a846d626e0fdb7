//! `mask`: what fields say is hidden.

use super::every::{self, Change};
use crate::handler::fault::Place;
use crate::handler::json::text;
use crate::handler::limit::RecordLimit;
use crate::handler::path::{Field, Path};
use crate::handler::spec::{MaskSpec, MaskWith};
use crate::handler::{Failure, FailureCode, Reads};
use crate::record::Record;
use hmac::{Hmac, Mac};
use sha2::Sha256;
use std::fmt;

/// What hides a text as a whole.
const REDACTED: &[u8] = b"***";

/// A compiled mask.
#[derive(Clone, Debug)]
pub(crate) struct Mask {
    fields: Vec<Path>,
    method: Method,
}

/// How a field is hidden.
#[derive(Clone)]
enum Method {
    /// HMAC-SHA-256 in hexadecimal digits; the key is inside.
    Hash(Hmac<Sha256>),
    /// Stars, and the last four characters.
    Last4,
    /// Three stars.
    Redact,
    /// Null.
    Erase,
    /// Each digit is 9, each letter x or X.
    KeepFormat,
}

impl Mask {
    /// Compiles `spec`, reporting mistakes at `place`.
    pub(super) fn compile(spec: &MaskSpec, place: &Place<'_>) -> Option<Self> {
        let list = place.child("fields");
        if spec.fields.is_empty() {
            return list.fault("an empty list masks nothing");
        }
        let fields: Vec<Option<Path>> = spec
            .fields
            .iter()
            .enumerate()
            .map(|(index, text)| compile_field(text, spec.with, &list.child(index)))
            .collect();
        let method = Method::compile(spec, place);
        Some(Self {
            fields: fields.into_iter().collect::<Option<_>>()?,
            method: method?,
        })
    }

    /// What it reads of a record.
    pub(super) fn reads(&self) -> Reads {
        let reads = self.fields.iter().map(every::reads);
        reads.max().unwrap_or(Reads::Nothing)
    }

    /// Masks everything that the fields match in `record`.
    pub(super) fn apply(&self, record: &mut Record<'_>, limit: RecordLimit) -> Result<(), Failure> {
        for path in &self.fields {
            every::change(record, path, limit, &self.method)?;
        }
        Ok(())
    }
}

fn compile_field(text: &str, with: MaskWith, place: &Place<'_>) -> Option<Path> {
    let path = every::compile(text, place)?;
    let is_whole = !matches!(path, Path::Header(_)) && path.segments().is_empty();
    if is_whole && with == MaskWith::Erase {
        return place.fault_with_help(
            format!("`{text}` as a whole is not erased"),
            "`set` it to null",
        );
    }
    Some(path)
}

impl Method {
    fn compile(spec: &MaskSpec, place: &Place<'_>) -> Option<Self> {
        let key = place.child("key");
        match (spec.with, &spec.key) {
            (MaskWith::Hash, None) => place.key().fault_with_help(
                "`hash` needs a `key`",
                "whoever has the key can tell which texts a hash may stand for: `key: '${file:PATH}'`",
            ),
            (MaskWith::Hash, Some(secret)) if secret.reveal().is_empty() => {
                key.fault("an empty key hides nothing")
            }
            (MaskWith::Hash, Some(secret)) => {
                match Hmac::new_from_slice(secret.reveal().as_bytes()) {
                    Ok(keyed) => Some(Self::Hash(keyed)),
                    Err(_) => key.fault("no key for HMAC-SHA-256"),
                }
            }
            (_, Some(_)) => key.key().fault_with_help(
                "`key` belongs to `with: hash`",
                "take it away, or write `with: hash`",
            ),
            (MaskWith::Last4, None) => Some(Self::Last4),
            (MaskWith::Redact, None) => Some(Self::Redact),
            (MaskWith::Erase, None) => Some(Self::Erase),
            (MaskWith::KeepFormat, None) => Some(Self::KeepFormat),
        }
    }
}

impl Change for Method {
    fn bytes(&self, bytes: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        let text = || {
            std::str::from_utf8(bytes).map_err(|_| {
                let detail = "bytes that are not UTF-8 have no characters to mask".to_owned();
                Failure::new(FailureCode::WrongType, detail)
            })
        };
        Ok(Some(match self {
            Self::Hash(keyed) => hash(keyed, bytes).into_bytes(),
            Self::Last4 => last4(text()?).into_bytes(),
            Self::Redact => REDACTED.to_vec(),
            Self::Erase => return Ok(None),
            Self::KeepFormat => keep_format(text()?).into_bytes(),
        }))
    }

    fn json(&self, token: &[u8], _depth: usize) -> Result<Option<Vec<u8>>, Failure> {
        let masked = match self {
            Self::Redact => return Ok(Some(text::encoded("***"))),
            Self::Erase => return Ok(Some(b"null".to_vec())),
            Self::Hash(keyed) => {
                let field = Field::of_token(token)?;
                hash(keyed, &field.bytes().unwrap_or_default())
            }
            Self::Last4 => match Field::of_token(token)? {
                Field::Text(text) => last4(&text),
                Field::Number(spelled) => last4(&spelled),
                _ => return Err(no_text("last4")),
            },
            Self::KeepFormat => match Field::of_token(token)? {
                Field::Text(text) => keep_format(&text),
                Field::Number(spelled) => return Ok(Some(nines(&spelled).into_bytes())),
                _ => return Err(no_text("keep_format")),
            },
        };
        Ok(Some(text::encoded(&masked)))
    }
}

fn hash(keyed: &Hmac<Sha256>, bytes: &[u8]) -> String {
    let mac = keyed.clone().chain_update(bytes);
    hex::encode(mac.finalize().into_bytes())
}

/// The last four characters, the others as stars; a text that has no more than four is hidden
/// whole.
fn last4(text: &str) -> String {
    let count = text.chars().count();
    let hidden = match count {
        0..=4 => count,
        _ => count - 4,
    };
    let shown = text.chars().skip(hidden);
    std::iter::repeat_n('*', hidden).chain(shown).collect()
}

fn keep_format(text: &str) -> String {
    let masked = text.chars().map(|c| match c {
        _ if c.is_numeric() => '9',
        _ if c.is_uppercase() => 'X',
        _ if c.is_alphabetic() => 'x',
        _ => c,
    });
    masked.collect()
}

/// A number stays one: sign, dot and exponent are no digits.
fn nines(spelled: &str) -> String {
    let masked = spelled.chars().map(|c| match c {
        '0'..='9' => '9',
        _ => c,
    });
    masked.collect()
}

fn no_text(with: &str) -> Failure {
    let detail = format!("`{with}` takes texts and numbers");
    Failure::new(FailureCode::WrongType, detail)
}

impl fmt::Debug for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Hash(_) => "Hash(***)",
            Self::Last4 => "Last4",
            Self::Redact => "Redact",
            Self::Erase => "Erase",
            Self::KeepFormat => "KeepFormat",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_four_characters_stay() {
        let rows = [
            ("4111111111111111", "************1111"),
            ("12345", "*2345"),
            ("1234", "****"),
            ("", ""),
            ("äöüßé", "*öüßé"),
        ];
        for (text, masked) in rows {
            assert_eq!(last4(text), masked);
        }
    }

    #[test]
    fn the_format_stays() {
        let rows = [
            ("PT-1234 abc", "XX-9999 xxx"),
            ("Ünïcode ٣", "Xxxxxxx 9"),
            ("a.b@c", "x.x@x"),
        ];
        for (text, masked) in rows {
            assert_eq!(keep_format(text), masked);
        }
        assert_eq!(nines("-12.50e+3"), "-99.99e+9");
    }
}
