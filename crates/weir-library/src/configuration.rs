//! Values of `config` and `secret` declarations, as texts of the environment, of a file or of the command line.

use data_encoding::{BASE64_NOPAD, BASE64URL_NOPAD};
use weir::{Secret, Type, Value};

use crate::input::{NamedTypes, scalar_or_error};

/// Parses the value of a `config`. The text is written as in the path or the query of a request.
///
/// # Errors
/// Fails if the text is not of the type; the message says what was expected and found.
pub fn value(ty: &Type, text: &str) -> Result<Value, String> {
    scalar_or_error(ty, text, NamedTypes(&[]))
}

/// Parses a `secret`: a text is taken as it is, bytes are written in base64, in either alphabet, with or without padding and
/// breaks of lines.
///
/// # Errors
/// Fails if the secret is empty or not base64. The message does not show it.
pub fn secret(ty: &Type, text: &str) -> Result<Secret, String> {
    let bytes = match ty {
        Type::Bytes => {
            let joined: String = text.split_ascii_whitespace().collect();
            let digits = joined.trim_end_matches('=').as_bytes();
            let decoded = BASE64_NOPAD.decode(digits).or_else(|_| BASE64URL_NOPAD.decode(digits));
            decoded.map_err(|_| "expected base64, such as `openssl rand -base64 32` writes".to_owned())?
        }
        _ => text.as_bytes().to_vec(),
    };
    if bytes.is_empty() { Err("a secret is not empty".to_owned()) } else { Ok(Secret::new(bytes)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_read_as_tools_write_base64() {
        for text in ["-_-_", "+/+/", "+/+/\n", "YWI=", "YWI", "YW\nI=\n"] {
            assert!(secret(&Type::Bytes, text).is_ok(), "{text:?}");
        }
        for text in ["", "=", "a b", "+_+_", "YWI=YWI=", "\u{e9}"] {
            assert!(secret(&Type::Bytes, text).is_err(), "{text:?}");
        }
    }
}
