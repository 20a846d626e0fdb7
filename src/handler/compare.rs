//! Comparing two fields: by type and value, numbers exactly.
//!
//! Bytes without a type (headers, keys, topics, values as a whole) are compared as what the other
//! side is: `header.version == 2` holds for the text `2`. What is absent equals nothing.

use super::Failure;
use super::json::{number, scan, text};
use super::path::Field;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::io::Write;

/// Whether `left` and `right` are the same.
///
/// # Errors
/// A text inside an object or array that escapes half of a surrogate pair.
#[inline]
pub(crate) fn equals(left: &Field<'_>, right: &Field<'_>) -> Result<bool, Failure> {
    Ok(match (left, right) {
        (Field::Null, Field::Null) => true,
        (Field::Bool(left), Field::Bool(right)) => left == right,
        (Field::Text(_) | Field::Bytes(_), Field::Text(_) | Field::Bytes(_)) => {
            text_bytes(left) == text_bytes(right)
        }
        (Field::Bool(wanted), Field::Bytes(bytes)) | (Field::Bytes(bytes), Field::Bool(wanted)) => {
            *bytes == if *wanted { "true" } else { "false" }.as_bytes()
        }
        (Field::Composite(left), Field::Composite(right)) => return same_json(left, right),
        _ => order(left, right) == Some(Ordering::Equal),
    })
}

/// How `left` is ordered towards `right`; `None` where they cannot be.
pub(crate) fn order(left: &Field<'_>, right: &Field<'_>) -> Option<Ordering> {
    match (left, right) {
        (Field::Integer(left), Field::Integer(right)) => Some(left.cmp(right)),
        (Field::Integer(left), Field::Number(right)) => order_integer(*left, right),
        (Field::Number(left), Field::Integer(right)) => {
            order_integer(*right, left).map(Ordering::reverse)
        }
        (Field::Number(left), Field::Number(right)) => number::compare(left, right),
        (Field::Integer(left), Field::Bytes(right)) => order_integer(*left, utf8(right)?),
        (Field::Bytes(left), Field::Integer(right)) => {
            order_integer(*right, utf8(left)?).map(Ordering::reverse)
        }
        (Field::Number(left), Field::Bytes(right)) => number::compare(left, utf8(right)?),
        (Field::Bytes(left), Field::Number(right)) => number::compare(utf8(left)?, right),
        (Field::Text(_) | Field::Bytes(_), Field::Text(_) | Field::Bytes(_)) => {
            Some(text_bytes(left)?.cmp(text_bytes(right)?))
        }
        _ => None,
    }
}

/// The bytes of a text or of bytes without a type.
#[inline]
pub(crate) fn text_bytes<'f>(field: &'f Field<'_>) -> Option<&'f [u8]> {
    match field {
        Field::Text(text) => Some(text.as_bytes()),
        Field::Bytes(bytes) => Some(bytes),
        _ => None,
    }
}

fn utf8(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

/// Orders an integer towards a number in JSON's spelling, `None` if that is none.
fn order_integer(left: i64, right: &str) -> Option<Ordering> {
    if let Some((digits, scale)) = small_decimal(right.as_bytes()) {
        // 64 bits times 10^18 stay within 128.
        let left = i128::from(left) * i128::from(10_i64.pow(scale));
        return Some(left.cmp(&digits.into()));
    }
    let mut buffer = [0; 20];
    let mut rest = &mut buffer[..];
    // Twenty bytes take every 64-bit integer with its sign.
    write!(rest, "{left}").ok()?;
    let length = 20 - rest.len();
    number::compare(utf8(&buffer[..length])?, right)
}

/// A number of up to 18 digits and no exponent, the common case: its digits, and how many of them
/// stand behind the point. `None` for others, and for what is no number in JSON's spelling.
fn small_decimal(spelled: &[u8]) -> Option<(i64, u32)> {
    let (negative, unsigned) = match spelled {
        [b'-', unsigned @ ..] => (true, unsigned),
        unsigned => (false, unsigned),
    };
    if let [] | [b'.', ..] | [.., b'.'] | [b'0', b'0'..=b'9', ..] = unsigned {
        return None;
    }
    let (mut digits, mut count, mut point) = (0_i64, 0_u32, None);
    for byte in unsigned {
        match byte {
            b'0'..=b'9' if count < 18 => {
                digits = digits * 10 + i64::from(byte - b'0');
                count += 1;
            }
            b'.' if point.is_none() => point = Some(count),
            _ => return None,
        }
    }
    let scale = point.map_or(0, |point| count - point);
    Some((if negative { -digits } else { digits }, scale))
}

/// Whether two objects or arrays are the same: elements in order, members by name, the last one
/// of a repeated name.
fn same_json(left: &[u8], right: &[u8]) -> Result<bool, Failure> {
    match (left.first(), right.first()) {
        (Some(b'['), Some(b'[')) => same_elements(left, right),
        (Some(b'{'), Some(b'{')) => same_members(left, right),
        _ => Ok(false),
    }
}

fn same_elements(left: &[u8], right: &[u8]) -> Result<bool, Failure> {
    let lefts = scan::elements(left, &(0..left.len()))?.unwrap_or_default();
    let rights = scan::elements(right, &(0..right.len()))?.unwrap_or_default();
    if lefts.len() != rights.len() {
        return Ok(false);
    }
    for (l, r) in lefts.into_iter().zip(rights) {
        if !equals(&Field::of_token(&left[l])?, &Field::of_token(&right[r])?)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn same_members(left: &[u8], right: &[u8]) -> Result<bool, Failure> {
    let (lefts, rights) = (by_name(left)?, by_name(right)?);
    if lefts.len() != rights.len() {
        return Ok(false);
    }
    for (name, left) in lefts {
        let Some(right) = rights.get(&name) else {
            return Ok(false);
        };
        if !equals(&Field::of_token(left)?, &Field::of_token(right)?)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The values of an object by name.
fn by_name(object: &[u8]) -> Result<BTreeMap<Cow<'_, str>, &[u8]>, Failure> {
    let members = scan::members(object, &(0..object.len()))?.unwrap_or_default();
    let named = members.into_iter().filter_map(|member| {
        let name = text::decode(&object[member.name])?;
        Some((name, &object[member.value]))
    });
    Ok(named.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(token: &str) -> Field<'_> {
        match token.strip_prefix("bytes ") {
            Some(bytes) => Field::Bytes(bytes.as_bytes()),
            None => match token.strip_prefix("int ") {
                Some(number) => Field::Integer(number.parse().expect("an integer")),
                None => Field::of_token(token.as_bytes()).expect("a token"),
            },
        }
    }

    #[test]
    fn equality_is_by_type_and_value() {
        let same = [
            ("1", "1.0"),
            ("int 1", "1"),
            ("int 1", "10e-1"),
            ("int -5", "bytes -5"),
            ("18446744073709551615", "18446744073709551615.0"),
            (r#""a""#, r#""\u0061""#),
            (r#""a""#, "bytes a"),
            ("bytes a", "bytes a"),
            ("true", "bytes true"),
            ("null", "null"),
            ("[1, [2]]", "[1.0,[2]]"),
            (r#"{"a":1,"b":[]}"#, r#"{"b":[],"a":0,"a":1}"#),
        ];
        for (left, right) in same {
            assert_eq!(
                equals(&field(left), &field(right)),
                Ok(true),
                "{left} {right}"
            );
            assert_eq!(
                equals(&field(right), &field(left)),
                Ok(true),
                "{right} {left}"
            );
        }
        let other = [
            ("1", r#""1""#),
            ("true", r#""true""#),
            ("null", "0"),
            ("int 9007199254740992", "9007199254740993"),
            ("bytes 01", "1"),
            ("bytes 1.", "int 1"),
            ("bytes .5", "0.5"),
            ("bytes -", "int 0"),
            ("bytes 1.0.0", "int 1"),
            ("int 1", "1.000000000000000001"),
            ("[1]", "[1,2]"),
            ("[]", "{}"),
            (r#"{"a":1}"#, r#"{"a":1,"b":2}"#),
            (r#"{"a":1}"#, r#"{"b":1}"#),
        ];
        for (left, right) in other {
            assert_eq!(
                equals(&field(left), &field(right)),
                Ok(false),
                "{left} {right}"
            );
            assert_eq!(
                equals(&field(right), &field(left)),
                Ok(false),
                "{right} {left}"
            );
        }
        assert_eq!(equals(&Field::Absent, &Field::Absent), Ok(false));
    }

    #[test]
    fn orders_are_exact_and_need_one_type() {
        let less = [
            ("int 100", "100.01"),
            ("int -1", "-0.5"),
            ("int 9007199254740992", "9007199254740993"),
            ("9223372036854775807", "18446744073709551615"),
            ("int 9223372036854775807", "123456789012345678901234567890"),
            ("bytes 9", "int 10"),
            (r#""a""#, r#""b""#),
        ];
        for (left, right) in less {
            assert_eq!(
                order(&field(left), &field(right)),
                Some(Ordering::Less),
                "{left} {right}"
            );
            assert_eq!(
                order(&field(right), &field(left)),
                Some(Ordering::Greater),
                "{right} {left}"
            );
        }
        for (left, right) in [
            ("1", r#""1""#),
            ("true", "false"),
            ("null", "1"),
            ("[1]", "1"),
        ] {
            assert_eq!(order(&field(left), &field(right)), None, "{left} {right}");
        }
    }
}
