//! What is known of a value before there is a record.

use crate::handler::path::Path;
use std::fmt;

/// The type of a term as far as the file tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// JSON of any type, or nothing.
    Any,
    /// Bytes without a type: a topic, a header, a key or value as a whole.
    Bytes,
    /// `null`.
    Null,
    /// True or false.
    Bool,
    /// An integer or a decimal.
    Number,
    /// A text.
    Text,
    /// A list.
    List,
}

impl Kind {
    /// The kind of what stands at `path`.
    pub(super) fn of_path(path: &Path) -> Self {
        match path {
            Path::Partition | Path::Offset | Path::Timestamp => Self::Number,
            Path::Topic | Path::Header(_) => Self::Bytes,
            Path::Key(segments) | Path::Value(segments) if segments.is_empty() => Self::Bytes,
            Path::Key(_) | Path::Value(_) => Self::Any,
        }
    }

    /// Whether a value of this kind can equal one of `other`.
    pub(super) fn may_equal(self, other: Self) -> bool {
        match (self, other) {
            (Self::Any | Self::Null, _) | (_, Self::Any | Self::Null) => true,
            (Self::Bytes, other) | (other, Self::Bytes) => other != Self::List,
            _ => self == other,
        }
    }

    /// Whether it has an order at all.
    pub(super) fn has_order(self) -> bool {
        !matches!(self, Self::Null | Self::Bool | Self::List)
    }

    /// Whether it may be a number that is calculated with.
    pub(super) fn may_be_number(self) -> bool {
        matches!(self, Self::Any | Self::Number)
    }

    /// Whether it may be a text.
    pub(super) fn may_be_text(self) -> bool {
        matches!(self, Self::Any | Self::Bytes | Self::Text)
    }

    /// What both may be.
    pub(super) fn or(self, other: Self) -> Self {
        if self == other { self } else { Self::Any }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Any => "something",
            Self::Bytes | Self::Text => "a text",
            Self::Null => "null",
            Self::Bool => "true or false",
            Self::Number => "a number",
            Self::List => "a list",
        })
    }
}
