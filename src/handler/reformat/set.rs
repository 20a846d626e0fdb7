//! `set`: the key, the value, headers and fields are written.

use crate::handler::cel::Expression;
use crate::handler::fault::{Place, Unbound, suggest};
use crate::handler::json::splice::Site;
use crate::handler::json::{scan, text};
use crate::handler::path::{Field, Path};
use crate::handler::spec::Entries;
use crate::handler::template::{Template, absent};
use crate::handler::{Binding, Failure, FailureCode, Reads};
use crate::record::{Header, Record};
use serde_json::Value;
use std::borrow::Cow;

/// One path and what is written there.
#[derive(Clone, Debug)]
pub(crate) struct Assignment {
    target: Path,
    source: Source,
}

/// What is written.
#[derive(Clone, Debug)]
enum Source {
    /// A literal: its bytes outside JSON (`None` is null), and as JSON.
    Literal(Option<Vec<u8>>, Vec<u8>),
    /// A text.
    Template(Template),
    /// What stands at a path.
    From(Path),
    /// What an expression gives.
    Expression(Expression),
}

/// Compiles the entries of `set`, reporting mistakes at `place`.
pub(super) fn compile(entries: &Entries, place: &Place<'_>) -> Option<Vec<Assignment>> {
    if entries.0.is_empty() {
        return place.fault("an empty map sets nothing");
    }
    let compiled: Vec<Option<Assignment>> = entries
        .0
        .iter()
        .map(|(path, value)| Assignment::compile(path, value, &place.child(path)))
        .collect();
    compiled.into_iter().collect()
}

impl Assignment {
    fn compile(path: &str, value: &Value, place: &Place<'_>) -> Option<Self> {
        let target = compile_target(path, place);
        let source = Source::compile(value, place);
        let (target, source) = (target?, source?);
        Some(Self { target, source })
    }

    /// Resolves what is constant for the bound topic.
    pub(super) fn bind(&self, binding: &Binding<'_>) -> Result<Self, Unbound> {
        let source = match &self.source {
            Source::Template(template) => Source::Template(template.bind(binding)?),
            other => other.clone(),
        };
        Ok(Self {
            target: self.target.clone(),
            source,
        })
    }

    /// The template that it is made of, if it is.
    pub(super) fn template(&self) -> Option<&Template> {
        match &self.source {
            Source::Template(template) => Some(template),
            _ => None,
        }
    }

    /// What it reads of a record. A field is written into the whole document.
    pub(super) fn reads(&self) -> Reads {
        let written = match &self.target {
            Path::Header(_) => Reads::Headers,
            Path::Value(segments) if !segments.is_empty() => Reads::Value,
            Path::Key(segments) if !segments.is_empty() => Reads::Fields,
            _ => Reads::Nothing,
        };
        let paths = self.source.paths().map(Path::reads);
        written.max(paths.max().unwrap_or(Reads::Nothing))
    }

    /// Writes to `record`. A null value lets everything pass that is on the value, a null key
    /// everything that is on fields of the key.
    pub(super) fn apply<'a>(&'a self, record: &mut Record<'a>) -> Result<(), Failure> {
        let of_value = self.target.is_of_value() || self.source.paths().any(Path::is_of_value);
        if of_value && record.value.is_none() {
            return Ok(());
        }
        match &self.target {
            Path::Header(name) => {
                let value = self.source.bytes(record)?;
                set_header(record, name, value);
            }
            Path::Key(segments) if segments.is_empty() => record.key = self.source.bytes(record)?,
            Path::Value(segments) if segments.is_empty() => {
                record.value = self.source.bytes(record)?;
            }
            Path::Key(segments) => {
                if let Some(key) = record.key.as_deref() {
                    let json = self.source.json_at(record, segments.len())?;
                    let changed = Site::find(key, segments)?.write(key, &json);
                    record.key = Some(Cow::Owned(changed));
                }
            }
            path => {
                if let Some(value) = record.value.as_deref() {
                    let json = self.source.json_at(record, path.segments().len())?;
                    let changed = Site::find(value, path.segments())?.write(value, &json);
                    record.value = Some(Cow::Owned(changed));
                }
            }
        }
        Ok(())
    }
}

/// Replaces all headers called `name` by one, at the place of the first.
pub(super) fn set_header<'a>(record: &mut Record<'a>, name: &'a str, value: Option<Cow<'a, [u8]>>) {
    let list = record.headers.make_mut();
    let header = Header {
        name: Cow::Borrowed(name.as_bytes()),
        value,
    };
    match list.iter().position(|h| *h.name == *name.as_bytes()) {
        None => list.push(header),
        Some(first) => {
            list[first] = header;
            let mut index = 0;
            list.retain(|h| {
                index += 1;
                index <= first + 1 || *h.name != *name.as_bytes()
            });
        }
    }
}

fn compile_target(path: &str, place: &Place<'_>) -> Option<Path> {
    let place = &place.key();
    match Path::parse_one(path) {
        Ok(path) if path.segments().len() > scan::MAX_DEPTH => {
            place.fault(format!("nested deeper than {}", scan::MAX_DEPTH))
        }
        Ok(path @ (Path::Header(_) | Path::Key(_) | Path::Value(_))) => Some(path),
        Ok(Path::Topic) => {
            place.fault_with_help("`set` writes no topic", "use `rename: { topic: … }`")
        }
        Ok(path) => place.fault(format!(
            "`set` writes key, value, headers and fields, not `{path}`"
        )),
        Err(fault) => place.fault_path(path, fault),
    }
}

/// What is said of any other map.
const A_MAP: &str = "a map is `{ from: PATH }` or `{ expr: EXPRESSION }` here";

impl Source {
    fn compile(value: &Value, place: &Place<'_>) -> Option<Self> {
        let json = value.to_string().into_bytes();
        match value {
            Value::String(text) => Template::compile(text, place).map(Self::Template),
            Value::Null => Some(Self::Literal(None, json)),
            Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
                Some(Self::Literal(Some(json.clone()), json))
            }
            Value::Object(map) => {
                let mut entries = map.iter();
                match (entries.next(), entries.next()) {
                    (Some((name, Value::String(path))), None) if name == "from" => {
                        compile_from(path, &place.child("from"))
                    }
                    (Some((name, Value::String(expression))), None) if name == "expr" => {
                        Expression::compile(expression, &place.child("expr")).map(Self::Expression)
                    }
                    (Some((name, _)), None) => {
                        place.fault_with_help(A_MAP, suggest(name, ["from", "expr"]))
                    }
                    _ => place.fault(A_MAP),
                }
            }
        }
    }

    /// The paths that it reads.
    fn paths(&self) -> impl Iterator<Item = &Path> {
        let (template, others) = match self {
            Self::Literal(..) => (None, &[][..]),
            Self::Template(template) => (Some(template.paths()), &[][..]),
            Self::From(path) => (None, std::slice::from_ref(path)),
            Self::Expression(expression) => (None, expression.paths()),
        };
        template.into_iter().flatten().chain(others)
    }

    /// As bytes outside JSON; `None` is null.
    fn bytes<'a>(&'a self, record: &Record<'_>) -> Result<Option<Cow<'a, [u8]>>, Failure> {
        match self {
            Self::Literal(bytes, _) => Ok(bytes.as_deref().map(Cow::Borrowed)),
            Self::Template(template) => template.render(record).map(Some),
            Self::From(path) => match path.read(record)? {
                Field::Absent => Err(absent(path)),
                field => Ok(field.bytes().map(|bytes| Cow::Owned(bytes.into_owned()))),
            },
            Self::Expression(expression) => {
                let value = expression.value(record)?;
                Ok(value.bytes().map(|bytes| Cow::Owned(bytes.into_owned())))
            }
        }
    }

    /// As JSON that will stand `depth` arrays and objects deep.
    fn json_at(&self, record: &Record<'_>, depth: usize) -> Result<Cow<'_, [u8]>, Failure> {
        let json = self.json(record)?;
        if let Some(b'{' | b'[') = json.first() {
            scan::root_at(&json, depth)?;
        }
        Ok(json)
    }

    /// As JSON.
    fn json(&self, record: &Record<'_>) -> Result<Cow<'_, [u8]>, Failure> {
        match self {
            Self::Literal(_, json) => Ok(Cow::Borrowed(json)),
            Self::Template(template) => {
                let bytes = template.render(record)?;
                let text = std::str::from_utf8(&bytes).map_err(|_| {
                    let detail = "bytes that are not UTF-8 cannot become a JSON text".to_owned();
                    Failure::new(FailureCode::WrongType, detail)
                })?;
                Ok(Cow::Owned(text::encoded(text)))
            }
            Self::From(path) => match json_of(path, record)? {
                Some(json) => Ok(Cow::Owned(json)),
                None => Err(absent(path)),
            },
            Self::Expression(expression) => {
                let json = expression.value(record)?.json()?;
                Ok(Cow::Owned(json.unwrap_or_default()))
            }
        }
    }
}

/// What stands at `path` as JSON, `None` if it is absent. The value as a whole is JSON already.
pub(super) fn json_of(path: &Path, record: &Record<'_>) -> Result<Option<Vec<u8>>, Failure> {
    match (path, record.value.as_deref()) {
        (Path::Value(segments), Some(document)) => {
            let span = scan::find(document, segments)?;
            Ok(span.map(|span| document[span].to_vec()))
        }
        _ => path.read(record)?.json(),
    }
}

fn compile_from(path: &str, place: &Place<'_>) -> Option<Source> {
    match Path::parse_one(path) {
        Ok(path) => Some(Source::From(path)),
        Err(fault) => place.fault_path(path, fault),
    }
}
