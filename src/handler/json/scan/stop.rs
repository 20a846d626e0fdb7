//! Where and why a scan stopped: small enough for a register, and put into words only at the end.

use super::MAX_DEPTH;
use crate::handler::{Failure, FailureCode};

/// What was expected where a scan stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expected {
    Utf8,
    Value,
    Name,
    Colon,
    MoreMembers,
    MoreElements,
    Text,
    Escape,
    Hexadecimal,
    Quote,
    Digit,
    LessDepth,
    End,
}

/// Why a document was not taken.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stop {
    /// The byte.
    pub(super) at: usize,
    /// What should have stood there.
    pub(super) expected: Expected,
}

impl From<Stop> for Failure {
    #[cold]
    fn from(Stop { at, expected }: Stop) -> Self {
        let what = match expected {
            Expected::LessDepth => {
                let detail = format!("nested deeper than {MAX_DEPTH} at byte {at}");
                return Failure::new(FailureCode::TooDeep, detail);
            }
            Expected::Utf8 => "bytes that are not UTF-8",
            Expected::Value => "expected a value",
            Expected::Name => "expected a name in quotes",
            Expected::Colon => "expected a colon",
            Expected::MoreMembers => "expected a comma or a closing brace",
            Expected::MoreElements => "expected a comma or a closing bracket",
            Expected::Text => "expected no control character in a string",
            Expected::Escape => "expected an escape",
            Expected::Hexadecimal => "expected four hexadecimal digits",
            Expected::Quote => "expected the end of a string",
            Expected::Digit => "expected a digit",
            Expected::End => "expected the end",
        };
        Failure::new(
            FailureCode::NotJson,
            format!("not JSON at byte {at}: {what}"),
        )
    }
}
