//! `%XX`, to and fro.

use std::fmt::Write;

use crate::error::{Error, ErrorKind, Result};

/// Replaces every `%XX` by its byte.
///
/// # Errors
/// [`ErrorKind::Usage`] where a `%` is not followed by two hexadecimal digits. The text is not shown: it may be a password.
pub fn percent_decode(text: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        if *first != b'%' {
            bytes.push(*first);
            rest = tail;
            continue;
        }
        let digits = tail.first().zip(tail.get(1));
        let Some((high, low)) = digits.and_then(|(high, low)| Some((digit(*high)?, digit(*low)?)))
        else {
            let error = Error::new(
                ErrorKind::Usage,
                "a % is not followed by two hexadecimal digits",
            );
            return Err(error
                .during("open")
                .hint("after a scheme a % itself is written %25"));
        };
        bytes.push(high << 4 | low);
        rest = &tail[2..];
    }
    Ok(bytes)
}

/// Writes every byte as `%XX` that is no letter, digit or one of `-._~/`: fit for a whole path behind a scheme.
pub fn percent_encode(bytes: &[u8]) -> String {
    encode(bytes, b"-._~/")
}

/// Like [`percent_encode`], the `/` too: fit for one component.
pub fn percent_encode_component(bytes: &[u8]) -> String {
    encode(bytes, b"-._~")
}

fn encode(bytes: &[u8], plain: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for &byte in bytes {
        if byte.is_ascii_alphanumeric() || plain.contains(&byte) {
            text.push(char::from(byte));
        } else {
            write!(text, "%{byte:02X}").expect("a string takes all that is written to it");
        }
    }
    text
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte)
        .to_digit(16)
        .and_then(|digit| u8::try_from(digit).ok())
}
