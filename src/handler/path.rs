//! Paths: what a step reads or writes of a record, and reading it.

use super::json::{Segment, scan, text};
use super::{Failure, FailureCode, Reads};
use crate::record::Record;
use std::borrow::Cow;
use std::fmt;

/// A parsed path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Path {
    /// The target topic as named so far.
    Topic,
    /// The source partition.
    Partition,
    /// The source offset.
    Offset,
    /// The timestamp in milliseconds.
    Timestamp,
    /// The last header of that name.
    Header(String),
    /// The key, or a field of a key that is JSON.
    Key(Vec<Segment>),
    /// The value, or a field of a value that is JSON.
    Value(Vec<Segment>),
}

/// What stands at a path in one record.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Field<'r> {
    /// Nothing.
    Absent,
    /// Kafka's or JSON's null.
    Null,
    /// JSON's `true` or `false`.
    Bool(bool),
    /// A coordinate or the timestamp.
    Integer(i64),
    /// A number as JSON spells it.
    Number(Cow<'r, str>),
    /// The text of a JSON string.
    Text(Cow<'r, str>),
    /// Bytes without a type: a topic, a header, a key, a value that is not JSON.
    Bytes(&'r [u8]),
    /// A JSON object or array as it is spelled.
    Composite(Cow<'r, [u8]>),
}

/// The first words of paths; captures may not be called like them.
pub(crate) const ROOTS: [&str; 7] = [
    "topic",
    "partition",
    "offset",
    "timestamp",
    "key",
    "value",
    "header",
];

impl Path {
    /// Parses a path as written.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn parse(text: &str) -> Result<Self, String> {
        let root_end = text.find(['.', '[']).unwrap_or(text.len());
        let (root, rest) = text.split_at(root_end);
        match (root, rest) {
            ("topic", "") => Ok(Self::Topic),
            ("partition", "") => Ok(Self::Partition),
            ("offset", "") => Ok(Self::Offset),
            ("timestamp", "") => Ok(Self::Timestamp),
            ("key", _) => Ok(Self::Key(parse_segments(rest)?)),
            ("value", _) => Ok(Self::Value(parse_segments(rest)?)),
            ("header", _) => match rest.strip_prefix('.') {
                Some(name) if name.ends_with('*') => {
                    Err("`*` at the end of a header's name stands in `unset` alone".to_owned())
                }
                Some(name) if !name.is_empty() => Ok(Self::Header(name.to_owned())),
                _ => Err("a header is written `header.NAME`".to_owned()),
            },
            ("topic" | "partition" | "offset" | "timestamp", _) => {
                Err(format!("`{root}` has no fields"))
            }
            _ => {
                let help = super::fault::suggest(root, ROOTS);
                Err(format!("`{text}` is no path ({help})"))
            }
        }
    }

    /// What reading it reads.
    pub fn reads(&self) -> Reads {
        match self {
            Self::Topic | Self::Partition | Self::Offset | Self::Timestamp => Reads::Nothing,
            Self::Header(_) => Reads::Headers,
            Self::Value(segments) if segments.is_empty() => Reads::Value,
            Self::Key(_) | Self::Value(_) => Reads::Fields,
        }
    }

    /// The segments below `key` or `value`; none for the other paths.
    pub(crate) fn segments(&self) -> &[Segment] {
        match self {
            Self::Key(segments) | Self::Value(segments) => segments,
            _ => &[],
        }
    }

    /// Whether it has `[*]`, which only steps that edit every match take.
    pub(crate) fn has_each(&self) -> bool {
        self.segments().contains(&Segment::Each)
    }

    /// Whether it is the value or a field of it.
    pub(crate) fn is_of_value(&self) -> bool {
        matches!(self, Self::Value(_))
    }

    /// Reads it from `record`.
    ///
    /// # Errors
    /// A path into a key or value that is not JSON.
    pub(crate) fn read<'r>(&self, record: &'r Record<'_>) -> Result<Field<'r>, Failure> {
        Ok(match self {
            Self::Topic => Field::Bytes(record.topic.as_bytes()),
            Self::Partition => Field::Integer(record.origin.partition.into()),
            Self::Offset => Field::Integer(record.origin.offset),
            Self::Timestamp => record.timestamp.map_or(Field::Absent, Field::Integer),
            Self::Header(name) => match record.headers.last(name.as_bytes()) {
                None => Field::Absent,
                Some(value) => value.map_or(Field::Null, Field::Bytes),
            },
            Self::Key(segments) => return read_within(record.key.as_deref(), segments),
            Self::Value(segments) => return read_within(record.value.as_deref(), segments),
        })
    }
}

fn read_within<'r>(document: Option<&'r [u8]>, path: &[Segment]) -> Result<Field<'r>, Failure> {
    match document {
        None if path.is_empty() => Ok(Field::Null),
        None => Ok(Field::Absent),
        Some(bytes) if path.is_empty() => Ok(Field::Bytes(bytes)),
        Some(bytes) => match scan::find(bytes, path)? {
            Some(span) => Field::of_token(&bytes[span]),
            None => Ok(Field::Absent),
        },
    }
}

impl<'r> Field<'r> {
    /// The field of a checked JSON value.
    pub(crate) fn of_token(token: &'r [u8]) -> Result<Self, Failure> {
        Ok(match token.first() {
            Some(b'n') => Self::Null,
            Some(b't') => Self::Bool(true),
            Some(b'f') => Self::Bool(false),
            Some(b'{' | b'[') => Self::Composite(Cow::Borrowed(token)),
            Some(b'"') => Self::Text(text::decode(token).ok_or_else(|| {
                let detail = "a text with half of a surrogate pair".to_owned();
                Failure::new(FailureCode::WrongType, detail)
            })?),
            _ => Self::Number(Cow::Borrowed(
                std::str::from_utf8(token).unwrap_or_default(),
            )),
        })
    }

    /// Its bytes as text is written outside JSON: strings without quotes, numbers as spelled,
    /// objects and arrays as they are. `None` for absent and null.
    pub(crate) fn bytes(&self) -> Option<Cow<'_, [u8]>> {
        match self {
            Self::Absent | Self::Null => None,
            Self::Bool(true) => Some(Cow::Borrowed(b"true")),
            Self::Bool(false) => Some(Cow::Borrowed(b"false")),
            Self::Integer(n) => Some(Cow::Owned(n.to_string().into_bytes())),
            Self::Number(spelled) => Some(Cow::Borrowed(spelled.as_bytes())),
            Self::Text(text) => Some(Cow::Borrowed(text.as_bytes())),
            Self::Bytes(bytes) => Some(Cow::Borrowed(bytes)),
            Self::Composite(json) => Some(Cow::Borrowed(json)),
        }
    }

    /// The same, borrowed from here.
    pub(crate) fn borrowed(&self) -> Field<'_> {
        match self {
            Self::Absent => Field::Absent,
            Self::Null => Field::Null,
            Self::Bool(b) => Field::Bool(*b),
            Self::Integer(n) => Field::Integer(*n),
            Self::Number(spelled) => Field::Number(Cow::Borrowed(spelled)),
            Self::Text(text) => Field::Text(Cow::Borrowed(text)),
            Self::Bytes(bytes) => Field::Bytes(bytes),
            Self::Composite(json) => Field::Composite(Cow::Borrowed(json)),
        }
    }

    /// It with its own copy of what it borrowed; bytes without a type become a text, as far as
    /// they are one.
    pub(crate) fn into_owned(self) -> Field<'static> {
        match self {
            Self::Absent => Field::Absent,
            Self::Null => Field::Null,
            Self::Bool(b) => Field::Bool(b),
            Self::Integer(n) => Field::Integer(n),
            Self::Number(spelled) => Field::Number(Cow::Owned(spelled.into_owned())),
            Self::Text(text) => Field::Text(Cow::Owned(text.into_owned())),
            Self::Bytes(bytes) => {
                Field::Text(Cow::Owned(String::from_utf8_lossy(bytes).into_owned()))
            }
            Self::Composite(json) => Field::Composite(Cow::Owned(json.into_owned())),
        }
    }

    /// It as JSON: bytes without a type become a string, the rest stays as spelled. `None` if it
    /// is absent.
    ///
    /// # Errors
    /// Bytes that are not UTF-8.
    pub(crate) fn json(&self) -> Result<Option<Vec<u8>>, Failure> {
        Ok(Some(match self {
            Self::Absent => return Ok(None),
            Self::Null => b"null".to_vec(),
            Self::Text(text) => text::encoded(text),
            Self::Bytes(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => text::encoded(text),
                Err(_) => {
                    let detail = "bytes that are not UTF-8 cannot become a JSON text".to_owned();
                    return Err(Failure::new(FailureCode::WrongType, detail));
                }
            },
            Self::Bool(_) | Self::Integer(_) | Self::Number(_) | Self::Composite(_) => {
                self.bytes().unwrap_or_default().into_owned()
            }
        }))
    }
}

fn parse_segments(text: &str) -> Result<Vec<Segment>, String> {
    let mut segments = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        rest = &rest[first.len_utf8()..];
        if first == '.' {
            let end = rest.find(['.', '[', ']', '"']).unwrap_or(rest.len());
            if end == 0 {
                return Err("a name is missing after a dot".to_owned());
            }
            segments.push(Segment::Name(rest[..end].to_owned()));
            rest = &rest[end..];
        } else if first == '[' {
            let (segment, after) = parse_bracket(rest)?;
            segments.push(segment);
            rest = after;
        } else {
            return Err(format!("`{first}` is not expected in a path"));
        }
    }
    Ok(segments)
}

/// Parses what stands after `[`: an index, `*`, or a name in JSON's quotes.
fn parse_bracket(text: &str) -> Result<(Segment, &str), String> {
    if text.starts_with('"') {
        let mut names = serde_json::Deserializer::from_str(text).into_iter::<String>();
        let name = match names.next() {
            Some(Ok(name)) => name,
            _ => return Err("the name in quotes does not end".to_owned()),
        };
        let rest = &text[names.byte_offset()..];
        let rest = rest.strip_prefix(']').ok_or("a `]` is missing")?;
        return Ok((Segment::Name(name), rest));
    }
    let (inside, rest) = text.split_once(']').ok_or("a `]` is missing")?;
    if inside == "*" {
        return Ok((Segment::Each, rest));
    }
    match inside.parse() {
        Ok(index) if inside.bytes().all(|b| b.is_ascii_digit()) => {
            Ok((Segment::Index(index), rest))
        }
        _ => Err(format!(
            "`[{inside}]` is neither an index nor `[*]` nor a name in quotes"
        )),
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let root = match self {
            Self::Topic => "topic",
            Self::Partition => "partition",
            Self::Offset => "offset",
            Self::Timestamp => "timestamp",
            Self::Header(name) => return write!(f, "header.{name}"),
            Self::Key(_) => "key",
            Self::Value(_) => "value",
        };
        f.write_str(root)?;
        for segment in self.segments() {
            match segment {
                Segment::Name(name) if name.is_empty() || name.contains(['.', '[', ']', '"']) => {
                    let quoted = text::encoded(name);
                    write!(f, "[{}]", String::from_utf8_lossy(&quoted))?;
                }
                Segment::Name(name) => write!(f, ".{name}")?,
                Segment::Index(index) => write!(f, "[{index}]")?,
                Segment::Each => f.write_str("[*]")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_parsed_and_written_back() {
        let paths = [
            "topic",
            "partition",
            "offset",
            "timestamp",
            "key",
            "value",
            "header.x.y",
            "key.a",
            "value.a.b",
            "value.items[0]",
            "value.items[*].serial",
            r#"value["odd.name"].x"#,
            r#"value["q\"]"][1][2]"#,
        ];
        for path in paths {
            let parsed = Path::parse(path).expect(path);
            assert_eq!(parsed.to_string(), path);
        }
        assert_eq!(
            Path::parse("header.a.b"),
            Ok(Path::Header("a.b".to_owned()))
        );
    }

    #[test]
    fn mistakes_are_told() {
        let wrong = [
            "",
            "valu.x",
            "value.",
            "value..a",
            "value[",
            "value[x]",
            "value[-1]",
            "value[\"a]",
            "value[\"a\"",
            "topic.x",
            "header",
            "header.",
            "header.x-*",
            "valuex",
            "value.a]",
            "value[0]x",
        ];
        for path in wrong {
            assert!(Path::parse(path).is_err(), "{path:?}");
        }
        let error = Path::parse("valeu.x").expect_err("a typo");
        assert!(error.contains("did you mean `value`"), "{error}");
    }
}
