//! JSON strings: reading a token, writing one.

use std::borrow::Cow;
use std::io::Write;

/// The text of a checked string token (with its quotes). `None` if it escapes half of a surrogate
/// pair, which is JSON but no text.
pub(crate) fn decode(token: &[u8]) -> Option<Cow<'_, str>> {
    if token.contains(&b'\\') {
        return serde_json::from_slice::<String>(token).ok().map(Cow::Owned);
    }
    let inner = token.get(1..token.len().checked_sub(1)?)?;
    std::str::from_utf8(inner).ok().map(Cow::Borrowed)
}

/// Whether the text of a string token is `wanted`.
pub(crate) fn token_is(token: &[u8], wanted: &str) -> bool {
    match token {
        // Without an escape the bytes are the text.
        [b'"', text @ .., b'"'] if !text.contains(&b'\\') => text == wanted.as_bytes(),
        _ => decode(token).is_some_and(|text| text == wanted),
    }
}

/// Appends `text` as a JSON string.
pub(crate) fn encode(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    for c in text.chars() {
        match c {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            '\n' => out.extend_from_slice(b"\\n"),
            '\r' => out.extend_from_slice(b"\\r"),
            '\t' => out.extend_from_slice(b"\\t"),
            // Writing to a vector cannot fail.
            '\0'..='\u{1f}' => drop(write!(out, "\\u{:04x}", u32::from(c))),
            _ => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    out.push(b'"');
}

/// `text` as a JSON string.
pub(crate) fn encoded(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 2);
    encode(text, &mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn half_a_surrogate_pair_is_no_text() {
        assert_eq!(decode(br#""\ud800""#), None);
        assert_eq!(decode(br#""\ud83d\ude00""#).as_deref(), Some("😀"));
    }

    proptest! {
        #[test]
        fn what_is_encoded_decodes(text in any::<String>()) {
            let token = encoded(&text);
            let decoded = decode(&token).map(Cow::into_owned);
            prop_assert_eq!(decoded.as_ref(), Some(&text));
            prop_assert_eq!(serde_json::from_slice::<String>(&token).ok(), Some(text));
        }
    }
}
