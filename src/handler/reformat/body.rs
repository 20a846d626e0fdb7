//! `rekey`, `hoist` and `extract`: the key or the value as a whole is made anew.

use super::set::json_of;
use crate::handler::fault::Place;
use crate::handler::json::{scan, text};
use crate::handler::path::{Field, Path};
use crate::handler::spec::{KeyForm, ReformatSpec, RekeySpec};
use crate::handler::template::absent;
use crate::handler::{Failure, Reads};
use crate::record::Record;
use serde_json::Value;
use std::borrow::Cow;

/// A key or a value made anew.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    /// The key is the text at a path.
    TextKey(Path),
    /// The key is the JSON at a path.
    JsonKey(Path),
    /// The key is a JSON array of paths.
    ArrayKey(Vec<Path>),
    /// The value goes into an object under this name, which is encoded.
    Hoist(Vec<u8>),
    /// The field becomes the value.
    Extract(Path),
}

impl Body {
    /// Compiles the one of them that `spec` has, reporting mistakes at `place`.
    pub(super) fn compile(spec: &ReformatSpec, place: &Place<'_>) -> Option<Self> {
        if let Some(rekey) = &spec.rekey {
            return compile_rekey(rekey, &place.child("from"));
        }
        if let Some(name) = &spec.hoist {
            return Some(Self::Hoist(text::encoded(name)));
        }
        let path = spec.extract.as_deref().unwrap_or_default();
        match single(path, place)? {
            path @ Path::Value(_) if !path.segments().is_empty() => Some(Self::Extract(path)),
            _ => place.fault("a field of the value is expected, such as `value.after`"),
        }
    }

    /// What it reads of a record.
    pub(super) fn reads(&self) -> Reads {
        match self {
            Self::TextKey(path) | Self::JsonKey(path) => path.reads(),
            Self::ArrayKey(paths) => {
                let reads = paths.iter().map(Path::reads);
                reads.max().unwrap_or(Reads::Nothing)
            }
            Self::Hoist(_) | Self::Extract(_) => Reads::Value,
        }
    }

    /// Changes `record`. A null value lets everything pass that is on the value.
    pub(super) fn apply(&self, record: &mut Record<'_>) -> Result<(), Failure> {
        if record.value.is_none() && self.is_on_value() {
            return Ok(());
        }
        match self {
            Self::TextKey(path) => match path.read(record)? {
                Field::Absent => return Err(absent(path)),
                field => {
                    let key = field.bytes().map(Cow::into_owned);
                    record.key = key.map(Cow::Owned);
                }
            },
            Self::JsonKey(path) => record.key = Some(Cow::Owned(json(path, record)?)),
            Self::ArrayKey(paths) => record.key = Some(Cow::Owned(array(paths, record)?)),
            Self::Hoist(name) => {
                if let Some(value) = record.value.as_deref() {
                    let span = scan::root_at(value, 1)?;
                    let hoisted = [b"{", name.as_slice(), b":", &value[span], b"}"].concat();
                    record.value = Some(Cow::Owned(hoisted));
                }
            }
            Self::Extract(path) => record.value = Some(Cow::Owned(json(path, record)?)),
        }
        Ok(())
    }

    fn is_on_value(&self) -> bool {
        match self {
            Self::TextKey(path) | Self::JsonKey(path) => path.is_of_value(),
            Self::ArrayKey(paths) => paths.iter().any(Path::is_of_value),
            Self::Hoist(_) | Self::Extract(_) => true,
        }
    }
}

fn json(path: &Path, record: &Record<'_>) -> Result<Vec<u8>, Failure> {
    json_of(path, record)?.ok_or_else(|| absent(path))
}

fn array(paths: &[Path], record: &Record<'_>) -> Result<Vec<u8>, Failure> {
    let mut key = b"[".to_vec();
    for (index, path) in paths.iter().enumerate() {
        if index > 0 {
            key.push(b',');
        }
        key.extend_from_slice(&json(path, record)?);
    }
    key.push(b']');
    Ok(key)
}

fn compile_rekey(spec: &RekeySpec, place: &Place<'_>) -> Option<Body> {
    match &spec.from {
        Value::String(path) => single(path, place).map(|path| match spec.as_ {
            KeyForm::String => Body::TextKey(path),
            KeyForm::Json => Body::JsonKey(path),
        }),
        Value::Array(list) if !list.is_empty() => {
            let paths: Vec<Option<Path>> = list
                .iter()
                .enumerate()
                .map(|(index, path)| match path {
                    Value::String(path) => single(path, &place.child(index)),
                    _ => place.child(index).fault("a path is a text"),
                })
                .collect();
            let paths: Option<Vec<Path>> = paths.into_iter().collect();
            paths.map(Body::ArrayKey)
        }
        _ => place.fault("a path or a list of paths is expected"),
    }
}

fn single(path: &str, place: &Place<'_>) -> Option<Path> {
    match Path::parse_one(path) {
        Ok(path) => Some(path),
        Err(fault) => place.fault_path(path, fault),
    }
}
