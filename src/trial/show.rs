//! Bytes as people read them.

/// Null, which is not a text.
pub const NULL: &str = "(null)";

/// Bytes as a text where they are one, else in hexadecimal.
pub fn bytes(bytes: Option<&[u8]>) -> String {
    let Some(bytes) = bytes else {
        return NULL.to_owned();
    };
    match std::str::from_utf8(bytes) {
        Ok("") => "(empty)".to_owned(),
        Ok(text) if text.chars().all(is_shown) => text.to_owned(),
        _ => format!("0x{}", hex::encode(bytes)),
    }
}

/// Whether a terminal shows the character as it is.
fn is_shown(character: char) -> bool {
    !character.is_control() || matches!(character, '\n' | '\t')
}

#[cfg(test)]
mod tests {
    use super::bytes;

    #[test]
    fn null_empty_text_and_bytes_look_different() {
        assert_eq!(bytes(None), "(null)");
        assert_eq!(bytes(Some(b"")), "(empty)");
        assert_eq!(bytes(Some("é\n".as_bytes())), "é\n");
        assert_eq!(bytes(Some(b"\x1b[31m")), "0x1b5b33316d");
        assert_eq!(bytes(Some(b"\xff\x00")), "0xff00");
    }
}
