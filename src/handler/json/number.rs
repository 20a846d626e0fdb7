//! Decimal numbers compared by value, exactly and from their text: no float in between, so 30
//! digits stay 30 digits.

use std::cmp::Ordering;

/// A decimal number in JSON's spelling.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decimal<'t> {
    negative: bool,
    /// Digits with at most one dot; no zeros at either end that do not count.
    significant: &'t str,
    /// The value is `0.significant × 10^magnitude`. Clamped far beyond what anybody writes.
    magnitude: i64,
}

/// Orders two numbers in JSON's spelling by value, `None` if one is not a number.
pub(crate) fn compare(left: &str, right: &str) -> Option<Ordering> {
    Some(Decimal::parse(left)?.compare(Decimal::parse(right)?))
}

/// `text × 10^exponent` rounded down to an integer; `None` if `text` is no number in JSON's
/// spelling, or the integer is out of range.
pub(crate) fn scaled(text: &str, exponent: i64) -> Option<i64> {
    let decimal = Decimal::parse(text)?;
    if decimal.significant.is_empty() {
        return Some(0);
    }
    let places = decimal.magnitude.saturating_add(exponent);
    let places = usize::try_from(places.max(0)).ok().filter(|p| *p <= 19)?;
    let mut digits = decimal.digits().map(|b| i128::from(b - b'0'));
    let whole = (0..places).fold(0, |sum, _| sum * 10 + digits.next().unwrap_or(0));
    // What is left is not zero: zeros at the end do not count as digits.
    let is_exact = digits.next().is_none();
    let floor = match (decimal.negative, is_exact) {
        (false, _) => whole,
        (true, true) => -whole,
        (true, false) => -whole - 1,
    };
    i64::try_from(floor).ok()
}

/// Whether `text` is a number in JSON's spelling without a fraction, `1.0` and `1e2` among them.
pub(crate) fn is_whole(text: &str) -> bool {
    Decimal::parse(text).is_some_and(|d| d.places_after_point() == 0)
}

/// The whole number `text` in full digits; `None` if they are more than a thousand.
pub(crate) fn digits_of_whole(text: &str) -> Option<String> {
    let decimal = Decimal::parse(text)?;
    if decimal.significant.is_empty() {
        return Some("0".to_owned());
    }
    let places = usize::try_from(decimal.magnitude)
        .ok()
        .filter(|p| *p <= 1000)?;
    let sign = if decimal.negative { "-" } else { "" };
    let digits: String = decimal.digits().map(char::from).collect();
    Some(format!("{sign}{digits:0<places$}"))
}

impl<'t> Decimal<'t> {
    /// `text` as a number, `None` if it is not one in JSON's spelling.
    pub(crate) fn parse(text: &'t str) -> Option<Self> {
        let (negative, unsigned) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, parse_exponent(exponent)?),
            None => (unsigned, 0),
        };
        let (whole, fraction) = match mantissa.split_once('.') {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (mantissa, None),
        };
        let leading_zero = whole.len() > 1 && whole.starts_with('0');
        if leading_zero || !is_digits(whole) || fraction.is_some_and(|f| !is_digits(f)) {
            return None;
        }
        Some(Self::normalized(negative, mantissa, whole.len(), exponent))
    }

    fn normalized(negative: bool, mantissa: &'t str, whole: usize, exponent: i64) -> Self {
        let significant = mantissa.trim_start_matches(['0', '.']);
        let skipped = &mantissa[..mantissa.len() - significant.len()];
        let zeros = skipped.bytes().filter(|b| *b == b'0').count();
        let significant = match mantissa.contains('.') {
            true => significant.trim_end_matches(['0', '.']),
            false => significant.trim_end_matches('0'),
        };
        let point = i64::try_from(whole).unwrap_or(i64::MAX);
        let zeros = i64::try_from(zeros).unwrap_or(i64::MAX);
        Self {
            negative: negative && !significant.is_empty(),
            significant,
            magnitude: exponent.saturating_add(point).saturating_sub(zeros),
        }
    }

    /// How many digits there are behind the point, zeros at the end not counted.
    fn places_after_point(self) -> i64 {
        if self.significant.is_empty() {
            return 0;
        }
        let digits = i64::try_from(self.digits().count()).unwrap_or(i64::MAX);
        digits.saturating_sub(self.magnitude).max(0)
    }

    /// Orders by value.
    pub(crate) fn compare(self, other: Self) -> Ordering {
        match (self.negative, other.negative) {
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
            (false, false) => self.compare_size(other),
            (true, true) => other.compare_size(self),
        }
    }

    fn compare_size(self, other: Self) -> Ordering {
        match (self.significant.is_empty(), other.significant.is_empty()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (false, false) => self
                .magnitude
                .cmp(&other.magnitude)
                .then_with(|| self.digits().cmp(other.digits())),
        }
    }

    fn digits(self) -> impl Iterator<Item = u8> + 't {
        self.significant.bytes().filter(|b| *b != b'.')
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

fn parse_exponent(text: &str) -> Option<i64> {
    /// Far from where adding a position could overflow.
    const LIMIT: i64 = i64::MAX / 4;
    let (sign, digits) = match text.as_bytes().first()? {
        b'-' => (-1, &text[1..]),
        b'+' => (1, &text[1..]),
        _ => (1, text),
    };
    if !is_digits(digits) {
        return None;
    }
    Some(sign * digits.parse::<i64>().unwrap_or(LIMIT).min(LIMIT))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn compares_by_value_not_by_spelling() {
        let equal = [
            ("1", "1.0"),
            ("100", "1e2"),
            ("0.10", "1E-1"),
            ("-0", "0.0"),
            ("12.50", "125e-1"),
            ("0e5", "0"),
        ];
        for (left, right) in equal {
            assert_eq!(
                compare(left, right),
                Some(Ordering::Equal),
                "{left} {right}"
            );
        }
        let less = [
            ("-2", "-1"),
            ("9", "10"),
            ("0.09", "0.1"),
            ("1", "1.0000000000000000000000000001"),
            ("99", "1e2"),
            ("-1", "0"),
        ];
        for (left, right) in less {
            assert_eq!(compare(left, right), Some(Ordering::Less), "{left} {right}");
            assert_eq!(
                compare(right, left),
                Some(Ordering::Greater),
                "{right} {left}"
            );
        }
    }

    #[test]
    fn thirty_digits_are_exact() {
        let number = "123456789012345678901234567890";
        assert_eq!(compare(number, number), Some(Ordering::Equal));
        assert_eq!(
            compare(number, "123456789012345678901234567891"),
            Some(Ordering::Less)
        );
    }

    #[test]
    fn scales_and_rounds_down() {
        let rows = [
            ("1700000000", 3, Some(1_700_000_000_000)),
            ("1700000000.1239", 3, Some(1_700_000_000_123)),
            ("1.7e9", 3, Some(1_700_000_000_000)),
            ("1700000000123456", -3, Some(1_700_000_000_123)),
            ("1999", -6, Some(0)),
            ("-1", -3, Some(-1)),
            ("-1000", -3, Some(-1)),
            ("-1.5", 0, Some(-2)),
            ("0.0", 3, Some(0)),
            ("9223372036854775807", 0, Some(i64::MAX)),
            ("9223372036854775808", 0, None),
            ("1e999999999999", 0, None),
            ("1e-999999999999", 0, Some(0)),
            ("x", 0, None),
            ("007", 0, None),
        ];
        for (text, exponent, expected) in rows {
            assert_eq!(scaled(text, exponent), expected, "{text}");
        }
    }

    #[test]
    fn whole_numbers_are_written_in_full() {
        let rows = [
            ("1e2", Some("100")),
            ("1.50e1", Some("15")),
            ("-1.0", Some("-1")),
            ("-0.0", Some("0")),
            ("0e9", Some("0")),
            (
                "123456789012345678901234567890.0",
                Some("123456789012345678901234567890"),
            ),
            ("1.5", None),
            ("1e-1", None),
            ("15e-2", None),
        ];
        for (text, expected) in rows {
            assert_eq!(is_whole(text), expected.is_some(), "{text}");
            let digits = is_whole(text).then(|| digits_of_whole(text)).flatten();
            assert_eq!(digits.as_deref(), expected, "{text}");
        }
        assert_eq!(digits_of_whole("1e1000"), None);
        assert_eq!(digits_of_whole("1e999").map(|d| d.len()), Some(1000));
        assert!(is_whole("1e999999999999"));
    }

    #[test]
    fn other_spellings_are_no_numbers() {
        for text in [
            "", "-", "01", "1.", ".5", "1e", "+1", "0x1", "1 ", "NaN", "1e+", "--1",
        ] {
            assert!(Decimal::parse(text).is_none(), "{text:?}");
        }
        assert_eq!(
            compare("1e999999999999999999999999", "1"),
            Some(Ordering::Greater)
        );
    }

    proptest! {
        #[test]
        fn integers_compare_as_integers(left in any::<i64>(), right in any::<i64>()) {
            prop_assert_eq!(compare(&left.to_string(), &right.to_string()), Some(left.cmp(&right)));
        }

        #[test]
        fn decimals_compare_as_scaled_integers(left in -9999i64..9999, right in -9999i64..9999) {
            let spell = |n: i64| format!("{}{}.{:02}", if n < 0 { "-" } else { "" }, n.abs() / 100, n.abs() % 100);
            prop_assert_eq!(compare(&spell(left), &spell(right)), Some(left.cmp(&right)));
        }
    }
}
