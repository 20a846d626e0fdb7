//! Calculating: exact, or a failure.

use super::failed;
use crate::handler::Failure;
use crate::handler::compare::text_bytes;
use crate::handler::json::number::Decimal;
use crate::handler::path::Field;
use std::borrow::Cow;

/// What is calculated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    /// `+`, of texts too.
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%`
    Remainder,
}

/// A number that is calculated with.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Number {
    Integer(i128),
    /// `digits × 10^-scale`
    Decimal {
        digits: i128,
        scale: i32,
    },
}

impl Arithmetic {
    /// How it is written.
    pub(super) fn sign(self) -> char {
        match self {
            Self::Add => '+',
            Self::Subtract => '-',
            Self::Multiply => '*',
            Self::Divide => '/',
            Self::Remainder => '%',
        }
    }

    /// Calculates. Something absent gives something absent.
    ///
    /// # Errors
    /// A wrong type, a division by zero, or a result of more than 38 digits.
    pub(super) fn apply(
        self,
        left: &Field<'_>,
        right: &Field<'_>,
    ) -> Result<Field<'static>, Failure> {
        if let (Field::Absent, _) | (_, Field::Absent) = (left, right) {
            return Ok(Field::Absent);
        }
        if let (Field::Integer(left), Field::Integer(right)) = (left, right)
            && let Some(result) = self.small(*left, *right)
        {
            return Ok(Field::Integer(result));
        }
        if let (Self::Add, Some(left), Some(right)) = (self, text_bytes(left), text_bytes(right)) {
            return concatenate(left, right);
        }
        let (Some(left), Some(right)) = (Number::of(left)?, Number::of(right)?) else {
            let needed = match self {
                Self::Add => "numbers or texts",
                _ => "numbers",
            };
            return Err(failed(format!("`{}` takes {needed}", self.sign())));
        };
        self.calculate(left, right).map(Number::into_field)
    }

    /// The common case; `None` where it takes more than 64 bits.
    fn small(self, left: i64, right: i64) -> Option<i64> {
        match self {
            Self::Add => left.checked_add(right),
            Self::Subtract => left.checked_sub(right),
            Self::Multiply => left.checked_mul(right),
            Self::Divide => left.checked_div(right),
            Self::Remainder => left.checked_rem(right),
        }
    }

    fn calculate(self, left: Number, right: Number) -> Result<Number, Failure> {
        if let (Self::Divide | Self::Remainder, true) = (self, right.is_zero()) {
            return Err(failed("a division by zero"));
        }
        let result = match (left, right) {
            (Number::Integer(left), Number::Integer(right)) => {
                self.integers(left, right).map(Number::Integer)
            }
            _ if self == Self::Remainder => return Err(failed("`%` takes integers")),
            _ => self.decimals(left, right),
        };
        result.ok_or_else(|| failed("a result of more than 38 digits"))
    }

    fn integers(self, left: i128, right: i128) -> Option<i128> {
        match self {
            Self::Add => left.checked_add(right),
            Self::Subtract => left.checked_sub(right),
            Self::Multiply => left.checked_mul(right),
            Self::Divide => left.checked_div(right),
            Self::Remainder => left.checked_rem(right),
        }
    }

    fn decimals(self, left: Number, right: Number) -> Option<Number> {
        let ((l, l_scale), (r, r_scale)) = (left.parts(), right.parts());
        if self == Self::Divide {
            let quotient = left.double()? / right.double()?;
            return Number::parse(&format!("{quotient:e}")).map(Number::decimal);
        }
        if self == Self::Multiply {
            return Some(Number::Decimal {
                digits: l.checked_mul(r)?,
                scale: l_scale.checked_add(r_scale)?,
            });
        }
        let scale = l_scale.max(r_scale);
        let (l, r) = (shifted(l, scale, l_scale)?, shifted(r, scale, r_scale)?);
        Some(Number::Decimal {
            digits: self.integers(l, r)?,
            scale,
        })
    }
}

/// `-field`.
///
/// # Errors
/// It is no number.
pub(super) fn negate(field: &Field<'_>) -> Result<Field<'static>, Failure> {
    if let Field::Absent = field {
        return Ok(Field::Absent);
    }
    let number = Number::of(field)?.ok_or_else(|| failed("`-` takes a number"))?;
    let negated = match number {
        Number::Integer(n) => n.checked_neg().map(Number::Integer),
        Number::Decimal { digits, scale } => digits
            .checked_neg()
            .map(|digits| Number::Decimal { digits, scale }),
    };
    let negated = negated.ok_or_else(|| failed("a result of more than 38 digits"))?;
    Ok(negated.into_field())
}

/// `int(field)`: a number without its fraction, a text as the integer that it spells.
///
/// # Errors
/// It is neither, or has more than 38 digits.
pub(super) fn integer(field: &Field<'_>) -> Result<Field<'static>, Failure> {
    let number = match text_bytes(field) {
        Some(text) => parse_text(text).filter(|n| matches!(n, Number::Integer(_))),
        None => Number::of(field)?,
    };
    let whole = match number.ok_or_else(|| failed("`int` takes a number, or a text of one"))? {
        Number::Integer(n) => Some(n),
        Number::Decimal { digits, scale } if scale >= 0 => {
            let divisor = power(scale);
            Some(divisor.map_or(0, |divisor| digits / divisor))
        }
        Number::Decimal { digits, scale } => shifted(digits, 0, scale),
    };
    let whole = whole.ok_or_else(|| failed("`int` of more than 38 digits"))?;
    Ok(Number::Integer(whole).into_field())
}

/// `double(field)`: a number as a decimal, a text as the number that it spells.
///
/// # Errors
/// It is neither, or has more than 38 digits.
pub(super) fn decimal(field: &Field<'_>) -> Result<Field<'static>, Failure> {
    let number = match text_bytes(field) {
        Some(text) => parse_text(text),
        None => Number::of(field)?,
    };
    let number = number.ok_or_else(|| failed("`double` takes a number, or a text of one"))?;
    Ok(number.decimal().into_field())
}

fn parse_text(text: &[u8]) -> Option<Number> {
    let text = std::str::from_utf8(text).ok()?;
    Decimal::parse(text)?;
    Number::parse(text)
}

fn concatenate(left: &[u8], right: &[u8]) -> Result<Field<'static>, Failure> {
    match String::from_utf8([left, right].concat()) {
        Ok(text) => Ok(Field::Text(Cow::Owned(text))),
        Err(_) => Err(failed("bytes that are not UTF-8 cannot become a text")),
    }
}

impl Number {
    /// `field` as a number, `None` if it is none.
    fn of(field: &Field<'_>) -> Result<Option<Self>, Failure> {
        match field {
            Field::Integer(n) => Ok(Some(Self::Integer((*n).into()))),
            Field::Number(spelled) => match Self::parse(spelled) {
                Some(number) => Ok(Some(number)),
                None => Err(failed("a number of more than 38 digits")),
            },
            _ => Ok(None),
        }
    }

    /// A number in JSON's spelling, `None` if it is none or has too many digits.
    fn parse(spelled: &str) -> Option<Self> {
        let (mantissa, exponent) = match spelled.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, Some(exponent.parse::<i32>().ok()?)),
            None => (spelled, None),
        };
        let Some((whole, fraction)) = mantissa.split_once('.') else {
            let digits = mantissa.parse().ok()?;
            return Some(match exponent {
                None => Self::Integer(digits),
                Some(exponent) => Self::Decimal {
                    digits,
                    scale: exponent.checked_neg()?,
                },
            });
        };
        let fraction = fraction.trim_end_matches('0');
        Some(Self::Decimal {
            digits: format!("{whole}{fraction}").parse().ok()?,
            scale: i32::try_from(fraction.len())
                .ok()?
                .checked_sub(exponent.unwrap_or(0))?,
        })
    }

    fn is_zero(self) -> bool {
        self.parts().0 == 0
    }

    fn parts(self) -> (i128, i32) {
        match self {
            Self::Integer(digits) => (digits, 0),
            Self::Decimal { digits, scale } => (digits, scale),
        }
    }

    fn decimal(self) -> Self {
        let (digits, scale) = self.parts();
        Self::Decimal { digits, scale }
    }

    fn double(self) -> Option<f64> {
        let (digits, scale) = self.parts();
        let exponent = -i64::from(scale);
        let double = format!("{digits}e{exponent}").parse::<f64>().ok()?;
        double.is_finite().then_some(double)
    }

    fn into_field(self) -> Field<'static> {
        match self {
            Self::Integer(n) => match i64::try_from(n) {
                Ok(small) => Field::Integer(small),
                Err(_) => Field::Number(Cow::Owned(n.to_string())),
            },
            Self::Decimal { digits, scale } => Field::Number(Cow::Owned(spell(digits, scale))),
        }
    }
}

/// A decimal as JSON spells it: with a point, so that it stays one; far from the point with an
/// exponent.
fn spell(mut digits: i128, mut scale: i32) -> String {
    /// Zeros written out at most.
    const ZEROS: i32 = 20;
    while scale > 1 && digits % 10 == 0 && digits != 0 {
        digits /= 10;
        scale -= 1;
    }
    if digits == 0 {
        return "0.0".to_owned();
    }
    if !(-ZEROS..=38 + ZEROS).contains(&scale) {
        return format!("{digits}e{}", -i64::from(scale));
    }
    let sign = if digits < 0 { "-" } else { "" };
    let mut text = digits.unsigned_abs().to_string();
    for _ in scale..1 {
        text.push('0');
    }
    let places = scale.max(1) as usize;
    if text.len() <= places {
        text.insert_str(0, &"0".repeat(places + 1 - text.len()));
    }
    text.insert(text.len() - places, '.');
    format!("{sign}{text}")
}

fn power(exponent: i32) -> Option<i128> {
    10_i128.checked_pow(u32::try_from(exponent).ok()?)
}

/// `digits` of scale `from`, as digits of the larger `scale`.
fn shifted(digits: i128, scale: i32, from: i32) -> Option<i128> {
    match digits {
        0 => Some(0),
        _ => digits.checked_mul(power(scale.checked_sub(from)?)?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn calculated(left: &str, sign: char, right: &str) -> Result<String, String> {
        let field = |text: &str| {
            Field::of_token(text.as_bytes())
                .expect("a token")
                .into_owned()
        };
        let operation = match sign {
            '+' => Arithmetic::Add,
            '-' => Arithmetic::Subtract,
            '*' => Arithmetic::Multiply,
            '/' => Arithmetic::Divide,
            _ => Arithmetic::Remainder,
        };
        match operation.apply(&field(left), &field(right)) {
            Ok(result) => {
                Ok(String::from_utf8(result.bytes().expect("some").into_owned()).unwrap())
            }
            Err(failure) => Err(failure.detail),
        }
    }

    #[test]
    fn integers_stay_integers_and_decimals_exact() {
        for (left, sign, right, result) in [
            ("1", '+', "2", "3"),
            ("7", '/', "2", "3"),
            ("-7", '/', "2", "-3"),
            ("-7", '%', "3", "-1"),
            ("9223372036854775807", '+', "1", "9223372036854775808"),
            ("18446744073709551615", '-', "1", "18446744073709551614"),
            ("0.1", '+', "0.2", "0.3"),
            ("19.99", '*', "3", "59.97"),
            ("2.50", '*', "2", "5.0"),
            ("1e2", '+', "1", "101.0"),
            ("1e300", '*', "2", "2e300"),
            ("-0.5", '-', "0.25", "-0.75"),
            ("7.0", '/', "2", "3.5"),
            ("1", '/', "3.0", "0.3333333333333333"),
            ("1.5", '*', "0", "0.0"),
            ("\"a\"", '+', "\"b\"", "ab"),
        ] {
            let calculated = calculated(left, sign, right);
            assert_eq!(calculated.as_deref(), Ok(result), "{left} {sign} {right}");
        }
    }

    #[test]
    fn what_cannot_be_calculated_fails() {
        for (left, sign, right, detail) in [
            ("1", '/', "0", "a division by zero"),
            ("1.5", '/', "0.0", "a division by zero"),
            ("1.5", '%', "1", "`%` takes integers"),
            ("1", '+', "\"1\"", "`+` takes numbers or texts"),
            ("\"a\"", '-', "\"a\"", "`-` takes numbers"),
            ("true", '+', "1", "`+` takes numbers or texts"),
            ("null", '*', "1", "`*` takes numbers"),
            ("1e300", '+', "1", "a result of more than 38 digits"),
        ] {
            let calculated = calculated(left, sign, right);
            assert_eq!(calculated, Err(detail.to_owned()), "{left} {sign} {right}");
        }
        let digits = "9".repeat(39);
        assert!(calculated(&digits, '+', "1").is_err());
    }

    proptest! {
        #[test]
        fn decimals_calculate_as_scaled_integers(left in -99_999i64..99_999, right in -99_999i64..99_999) {
            let cents = |n: i64| format!("{}{}.{:02}", if n < 0 { "-" } else { "" }, n.abs() / 100, n.abs() % 100);
            let sum = calculated(&cents(left), '+', &cents(right)).expect("a sum");
            prop_assert_eq!(crate::handler::json::number::compare(&sum, &cents(left + right)), Some(std::cmp::Ordering::Equal));
        }
    }
}
