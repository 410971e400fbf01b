//! Encodings of bytes as text: the modules `base64` and `hex`.
//!
//! Decoding is strict: a character outside the alphabet, missing padding, or bits that no encoder writes are failures,
//! so that two different texts never decode to the same bytes.

pub use base64_functions::base64;
pub use hex_functions::hex;

use data_encoding::{DecodeError, DecodeKind};
use weir::Failure;

/// Converts an error of a decoder.
fn refused(name: &str, error: &DecodeError) -> Failure {
    let position = error.position;
    Failure::function(match error.kind {
        DecodeKind::Length => format!("not {name}: its length is wrong"),
        DecodeKind::Symbol => format!("not {name}: the character at position {position} is not part of it"),
        DecodeKind::Trailing => format!("not {name}: unused bits at position {position} are not zero"),
        DecodeKind::Padding => format!("not {name}: the padding at position {position} is wrong"),
    })
}

/// The module `base64` (RFC 4648).
pub mod base64_functions {
    use bytes::Bytes;
    use data_encoding::{BASE64, BASE64URL_NOPAD};
    use weir::Failure;

    use crate::units;

    weir::library! {
        /// Base64 (RFC 4648): bytes as text, also in the alphabet for URLs.
        pub base64: encode, decode, encode_url, decode_url
    }

    /// Returns the bytes in base64, with padding.
    #[weir::function(pure, room = 3 * bytes.len(), units = units::to_transform(bytes))]
    pub fn encode(bytes: &[u8]) -> String {
        BASE64.encode(bytes)
    }

    /// Decodes base64 with padding.
    ///
    /// # Errors
    /// Fails if the text is not base64; the message gives the position.
    #[weir::function(pure, room = text.len(), units = units::to_transform(text))]
    pub fn decode(text: &str) -> Result<Bytes, Failure> {
        // The decoder accepts several padded texts in a row, which would make two texts of the same bytes.
        if let Some(inside) = text.trim_end_matches('=').find('=') {
            return Err(Failure::argument(format!("not base64: padding inside the text, at position {inside}")));
        }
        BASE64.decode(text.as_bytes()).map(Bytes::from).map_err(|error| super::refused("base64", &error))
    }

    /// Returns the bytes in the base64 of URLs and JSON Web Tokens: with `-` and `_`, without padding.
    #[weir::function(pure, room = 3 * bytes.len(), units = units::to_transform(bytes))]
    pub fn encode_url(bytes: &[u8]) -> String {
        BASE64URL_NOPAD.encode(bytes)
    }

    /// Decodes base64 with `-` and `_`, without padding.
    ///
    /// # Errors
    /// Fails if the text is not such base64; the message gives the position.
    #[weir::function(pure, room = text.len(), units = units::to_transform(text))]
    pub fn decode_url(text: &str) -> Result<Bytes, Failure> {
        BASE64URL_NOPAD.decode(text.as_bytes()).map(Bytes::from).map_err(|error| super::refused("base64", &error))
    }
}

/// The module `hex`.
pub mod hex_functions {
    use bytes::Bytes;
    use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
    use weir::Failure;

    use crate::units;

    weir::library! {
        /// Hexadecimal: bytes as text, two digits each.
        pub hex: encode, decode
    }

    /// Returns the bytes in hexadecimal, with lower-case digits.
    #[weir::function(pure, room = 4 * bytes.len(), units = units::to_transform(bytes))]
    pub fn encode(bytes: &[u8]) -> String {
        HEXLOWER.encode(bytes)
    }

    /// Decodes hexadecimal with digits of either case.
    ///
    /// # Errors
    /// Fails if the text is not hexadecimal; the message gives the position.
    #[weir::function(pure, room = text.len(), units = units::to_transform(text))]
    pub fn decode(text: &str) -> Result<Bytes, Failure> {
        let decoded = HEXLOWER_PERMISSIVE.decode(text.as_bytes());
        decoded.map(Bytes::from).map_err(|error| super::refused("hexadecimal", &error))
    }
}
