//! Values of `config` and `secret` declarations, as texts of the environment, of a file or of the command line.

use data_encoding::{BASE64, BASE64URL_NOPAD};
use weir::{Secret, Type, Value};

use crate::input::{NamedTypes, scalar_or_error};

/// Parses the value of a `config`. The text is written as in the path or the query of a request.
///
/// # Errors
/// Fails if the text is not of the type; the message says what was expected and found.
pub fn value(ty: &Type, text: &str) -> Result<Value, String> {
    scalar_or_error(ty, text, NamedTypes(&[]))
}

/// Parses a `secret`: a text is taken as it is, bytes are written in base64, in either alphabet.
///
/// # Errors
/// Fails if the secret is empty or not base64. The message does not show it.
pub fn secret(ty: &Type, text: &str) -> Result<Secret, String> {
    let bytes = match ty {
        Type::Bytes => {
            let decoded = BASE64.decode(text.as_bytes()).or_else(|_| BASE64URL_NOPAD.decode(text.as_bytes()));
            decoded.map_err(|_| "expected base64".to_owned())?
        }
        _ => text.as_bytes().to_vec(),
    };
    if bytes.is_empty() { Err("a secret is not empty".to_owned()) } else { Ok(Secret::new(bytes)) }
}
