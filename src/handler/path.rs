//! Paths: what a step reads or writes of a record, and reading it.

use super::json::{Segment, scan, text};
use super::{Failure, FailureCode, Reads};
use crate::record::Record;
use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

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

/// What is wrong with a path as written, and where in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathFault {
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub help: Option<String>,
    /// The bytes of the text that are wrong.
    pub bytes: Range<usize>,
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
    /// What is wrong with it, and where.
    pub fn parse(text: &str) -> Result<Self, PathFault> {
        let root_end = text.find(['.', '[']).unwrap_or(text.len());
        let (root, rest) = text.split_at(root_end);
        let segments = || {
            Ok(parse_segments(text, root_end)?
                .into_iter()
                .unzip::<_, _, _, Vec<_>>()
                .0)
        };
        match (root, rest) {
            ("topic", "") => Ok(Self::Topic),
            ("partition", "") => Ok(Self::Partition),
            ("offset", "") => Ok(Self::Offset),
            ("timestamp", "") => Ok(Self::Timestamp),
            ("key", _) => Ok(Self::Key(segments()?)),
            ("value", _) => Ok(Self::Value(segments()?)),
            ("header", _) => match rest.strip_prefix('.') {
                Some(name) if name.ends_with('*') => {
                    let message = "`*` at the end of a header's name stands in `unset` alone";
                    let help = "write the header's whole name";
                    Err(PathFault::new(message, text.len() - 1..text.len()).help(help))
                }
                Some(name) if !name.is_empty() => Ok(Self::Header(name.to_owned())),
                _ => {
                    let fault = PathFault::new("a header has a name", 0..text.len());
                    Err(fault.help("write `header.NAME`"))
                }
            },
            ("topic" | "partition" | "offset" | "timestamp", _) => {
                let message = format!("`{root}` has no fields");
                let fault = PathFault::new(message, root_end..text.len());
                Err(fault.help(format!("write `{root}` alone")))
            }
            _ => Err(PathFault::no_root(text, root)),
        }
    }

    /// Parses the path of one value: `[*]`, which is many, is refused.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn parse_one(text: &str) -> Result<Self, PathFault> {
        let path = Self::parse(text)?;
        if !path.has_each() {
            return Ok(path);
        }
        let start = text.find(['.', '[']).unwrap_or(text.len());
        let mut segments = parse_segments(text, start)?.into_iter();
        let each = segments.find(|(segment, _)| *segment == Segment::Each);
        let bytes = each.map_or(0..text.len(), |(_, bytes)| bytes);
        let fault = PathFault::new("`[*]` is many values, and one is expected", bytes);
        Err(fault.help("write the place of one of them, such as `[0]`"))
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

impl PathFault {
    /// What is wrong with `text`; `None` if it is a path.
    pub fn of(text: &str) -> Option<Self> {
        Path::parse(text).err()
    }

    fn new(message: impl Into<String>, bytes: Range<usize>) -> Self {
        Self {
            message: message.into(),
            help: None,
            bytes,
        }
    }

    fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Of a text whose first word begins no path: a misspelt one, or a field without its `value`.
    fn no_root(text: &str, root: &str) -> Self {
        let fault = Self::new(format!("`{text}` is no path"), 0..root.len());
        match super::fault::close(root, ROOTS) {
            Some(close) => fault.help(format!("did you mean `{close}`?")),
            None if root.is_empty() => fault.help("write `value.NAME` or `header.NAME`"),
            None => fault.help(format!(
                "a field is written `value.{text}`, a header `header.{text}`"
            )),
        }
    }

    /// With its help in the same line, where there is no other place for it.
    pub(crate) fn in_one_line(self) -> String {
        match self.help {
            Some(help) => format!("{} ({help})", self.message),
            None => self.message,
        }
    }
}

/// The segments behind the first word, each with its bytes in `text`.
fn parse_segments(text: &str, start: usize) -> Result<Vec<(Segment, Range<usize>)>, PathFault> {
    let mut segments = Vec::new();
    let mut at = start;
    while let Some(first) = text[at..].chars().next() {
        let inside = at + first.len_utf8();
        let (segment, end) = match first {
            '.' => parse_name(text, inside)?,
            '[' => parse_bracket(text, inside)?,
            _ => {
                let message = format!("`{first}` is not expected in a path");
                let help = "a name with other characters is written `[\"…\"]`";
                return Err(PathFault::new(message, at..inside).help(help));
            }
        };
        segments.push((segment, at..end));
        at = end;
    }
    Ok(segments)
}

/// The name that begins at `at`, and where it ends.
fn parse_name(text: &str, at: usize) -> Result<(Segment, usize), PathFault> {
    let rest = &text[at..];
    let end = at + rest.find(['.', '[', ']', '"']).unwrap_or(rest.len());
    if end == at {
        let fault = PathFault::new("a name is missing after a dot", at - 1..at);
        return Err(fault.help("take the dot away, or write the name of the field behind it"));
    }
    Ok((Segment::Name(text[at..end].to_owned()), end))
}

/// What begins at `at`, behind a `[`: an index, `*`, or a name in JSON's quotes; and where it ends.
fn parse_bracket(text: &str, at: usize) -> Result<(Segment, usize), PathFault> {
    let rest = &text[at..];
    let unclosed =
        |end| PathFault::new("a `[` is not closed", at - 1..end).help("write `]` behind it");
    if rest.starts_with('"') {
        let mut names = serde_json::Deserializer::from_str(rest).into_iter::<String>();
        let Some(Ok(name)) = names.next() else {
            let fault = PathFault::new("the name in quotes does not end", at..text.len());
            return Err(fault.help("write `\"]` behind it"));
        };
        let end = at + names.byte_offset();
        return match text[end..].starts_with(']') {
            true => Ok((Segment::Name(name), end + 1)),
            false => Err(unclosed(end)),
        };
    }
    let length = rest.find(']').ok_or_else(|| unclosed(text.len()))?;
    let (inside, end) = (&rest[..length], at + length + 1);
    if inside == "*" {
        return Ok((Segment::Each, end));
    }
    match inside.parse() {
        Ok(index) if inside.bytes().all(|b| b.is_ascii_digit()) => Ok((Segment::Index(index), end)),
        _ => {
            let message =
                format!("`[{inside}]` is neither an index nor `[*]` nor a name in quotes");
            let fault = PathFault::new(message, at - 1..end);
            Err(fault.help("count elements from 0, or write a name as `[\"name\"]`"))
        }
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
    }

    #[test]
    fn mistakes_have_their_place_and_one_help() {
        let wrong = [
            ("valeu.x", "valeu", "did you mean `value`?"),
            (
                "user.id",
                "user",
                "a field is written `value.user.id`, a header `header.user.id`",
            ),
            (
                "value..a",
                ".",
                "take the dot away, or write the name of the field behind it",
            ),
            (
                "value.a[x].b",
                "[x]",
                "count elements from 0, or write a name as `[\"name\"]`",
            ),
            ("value.é[1", "[1", "write `]` behind it"),
            ("value[\"a\"x", "[\"a\"", "write `]` behind it"),
            ("topic.x", ".x", "write `topic` alone"),
            ("header.x-*", "*", "write the header's whole name"),
            (
                "value[\"[*]\"][*].a",
                "[*]",
                "write the place of one of them, such as `[0]`",
            ),
        ];
        for (text, part, help) in wrong {
            let fault = Path::parse_one(text).expect_err(text);
            assert_eq!(&text[fault.bytes.clone()], part, "{text}");
            assert_eq!(fault.help.as_deref(), Some(help), "{text}");
        }
        let fault = Path::parse_one("value[\"[*]\"][*].a").expect_err("many");
        assert_eq!(fault.bytes, 12..15);
    }
}
