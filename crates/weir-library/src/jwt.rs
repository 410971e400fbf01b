//! JSON Web Tokens: verification of signed claims (RFC 7515, 7519, 8725).
//!
//! A key knows its algorithm, and a token is accepted only if its header names that algorithm: neither `none` nor an
//! algorithm for which a public key would be a shared secret can be chosen by whoever made the token. A token has to
//! expire, and an audience that it names has to be the program's.

mod claims;
mod der;
mod keys;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use data_encoding::BASE64URL_NOPAD;
use serde::Deserialize;
use weir::{Failure, FailureKind};

pub use keys::{Keys, ed25519, es256, hs256, jwks, rs256};

use crate::json::{Json, parse_bytes};
use crate::units;
use claims::RegisteredClaims;

/// Maximum length of a token in bytes; clients send at most 32 KiB of header fields.
const TOKEN_BYTES_MAX: usize = 16 * 1024;

/// Builds the module `jwt`.
pub(crate) fn jwt() -> weir::Module {
    functions::jwt()
}

mod functions {
    //! The module's functions, in a submodule because `library!` generates a function named like the module.

    weir::library! {
        /// JSON Web Tokens: verification of signed claims.
        pub(crate) jwt: super::verify, super::keys::hs256, super::keys::rs256, super::keys::es256,
            super::keys::ed25519, super::keys::jwks
    }
}

/// Header of a token. A member that occurs twice is an error.
#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    crit: Option<serde_json::Value>,
}

/// Verifies the signature and the claims of a token, and returns its claims. The token must be signed with one of the
/// keys, and have an expiry time (`exp`) that has not passed; if it has a start (`nbf`), that must have come, if it has
/// an audience (`aud`), it must contain `audience`, and if `issuer` is not empty, `iss` must be equal to it. Clocks may
/// differ by `leeway`.
///
/// # Errors
/// Fails with the reason if the token is not valid.
#[weir::function(reads, units = units::to_verify(token))]
pub fn verify(
    token: &str,
    keys: &Keys,
    #[default("")] issuer: &str,
    #[default("")] audience: &str,
    #[default(Duration::from_secs(60))] leeway: Duration,
) -> Result<Json, Failure> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    verify_at(token, keys, &ExpectedClaims { issuer, audience, leeway, now })
}

/// Expectations about the claims of a token.
pub(crate) struct ExpectedClaims<'a> {
    pub(crate) issuer: &'a str,
    pub(crate) audience: &'a str,
    pub(crate) leeway: Duration,
    /// The time since 1970.
    pub(crate) now: Duration,
}

/// Verifies a token as [`verify`] does, at a given time.
fn verify_at(token: &str, keys: &Keys, expected: &ExpectedClaims<'_>) -> Result<Json, Failure> {
    if token.len() > TOKEN_BYTES_MAX {
        return Err(Failure::new(FailureKind::Limit, format!("the token has more than {TOKEN_BYTES_MAX} bytes")));
    }
    let malformed = || Failure::function("not a token: it has not the form `header.claims.signature`");
    let (signed, signature) = token.rsplit_once('.').ok_or_else(malformed)?;
    let (header, claims) = signed.split_once('.').filter(|(_, claims)| !claims.contains('.')).ok_or_else(malformed)?;
    let (header, claims) = (object("header", header)?, object("claims", claims)?);
    let header: Header = serde_json::from_slice(&header)
        .map_err(|error| Failure::function(format!("not a token: its header is wrong: {error}")))?;
    if header.crit.is_some() {
        return Err(Failure::function("the token demands an extension (`crit`), and none is supported"));
    }
    keys.verify(&header.alg, header.kid.as_deref(), signed.as_bytes(), &decoded("signature", signature)?)?;
    RegisteredClaims::parse(&claims)?.check(expected)?;
    parse_bytes(&claims)
}

/// Decodes a part that must be a JSON object: a list would be read as the members of the object in their order.
fn object(part: &str, text: &str) -> Result<Vec<u8>, Failure> {
    let bytes = decoded(part, text)?;
    match bytes.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'{') => Ok(bytes),
        _ => Err(Failure::function(format!("not a token: its {part} is not a JSON object"))),
    }
}

fn decoded(part: &str, text: &str) -> Result<Vec<u8>, Failure> {
    let refused = |_| Failure::function(format!("not a token: its {part} is not base64 of URLs"));
    BASE64URL_NOPAD.decode(text.as_bytes()).map_err(refused)
}

#[cfg(test)]
mod tests;
