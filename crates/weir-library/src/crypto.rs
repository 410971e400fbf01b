//! Cryptography: digests, message authentication, random tokens, comparison in constant time, and passwords.
//!
//! Keys are [`Secret`]s, which a program can pass on but not show. Random bytes come from the operating system, whatever
//! the generator of the module `random`.

mod configured;
mod csrf;
mod password;
mod token;

use bytes::Bytes;
use data_encoding::BASE64URL_NOPAD;
use ring::{digest, hmac};
use subtle::ConstantTimeEq;
use weir::{Failure, Secret};

pub use configured::{Secrets, configured};
pub use csrf::{csrf_token, csrf_token_matches};
pub use password::{PasswordHashing, hash_password, password_matches};
pub(crate) use token::is_issued;
pub use token::token;

use crate::Limited;
use crate::random::{filled, system_bytes};
use crate::units;

/// Builds the module `crypto`.
pub(crate) fn crypto() -> weir::Module {
    functions::crypto()
}

mod functions {
    //! The module's functions, in a submodule because `library!` generates a function named like the module.

    weir::library! {
        /// Cryptography: digests, message authentication, random tokens, comparison in constant time, and passwords.
        pub(crate) crypto: super::sha1, super::sha256, super::sha384, super::sha512, super::hmac_sha256, super::hmac_sha512,
            super::equal, super::sign_text, super::signed_text, super::csrf::csrf_token, super::csrf::csrf_token_matches, super::token::token, super::random_bytes, super::secret, super::configured::configured, super::password::hash_password,
            super::password::password_matches
    }
}

/// Returns the SHA-1 digest of the bytes (20 bytes), for protocols and formats that are defined with it, such as Git and
/// BitTorrent. It protects from nobody: different bytes with one digest are known. Use `sha256` for everything else.
#[weir::function(pure, units = units::to_transform(bytes))]
pub fn sha1(bytes: &[u8]) -> Bytes {
    digested(&digest::SHA1_FOR_LEGACY_USE_ONLY, bytes)
}

/// Returns the SHA-256 digest of the bytes (32 bytes). It identifies contents; passwords need `hash_password`.
#[weir::function(pure, units = units::to_transform(bytes))]
pub fn sha256(bytes: &[u8]) -> Bytes {
    digested(&digest::SHA256, bytes)
}

/// Returns the SHA-384 digest of the bytes (48 bytes).
#[weir::function(pure, units = units::to_transform(bytes))]
pub fn sha384(bytes: &[u8]) -> Bytes {
    digested(&digest::SHA384, bytes)
}

/// Returns the SHA-512 digest of the bytes (64 bytes).
#[weir::function(pure, units = units::to_transform(bytes))]
pub fn sha512(bytes: &[u8]) -> Bytes {
    digested(&digest::SHA512, bytes)
}

fn digested(algorithm: &'static digest::Algorithm, bytes: &[u8]) -> Bytes {
    Bytes::copy_from_slice(digest::digest(algorithm, bytes).as_ref())
}

/// Returns the HMAC of a message with SHA-256 (32 bytes), by which whoever has the key recognises that the message is
/// unchanged. Compare it with `crypto.equal`.
#[weir::function(pure, units = units::to_transform(message))]
pub fn hmac_sha256(message: &[u8], key: &Secret) -> Bytes {
    authenticated(hmac::HMAC_SHA256, message, key)
}

/// Returns the HMAC of a message with SHA-512 (64 bytes).
#[weir::function(pure, units = units::to_transform(message))]
pub fn hmac_sha512(message: &[u8], key: &Secret) -> Bytes {
    authenticated(hmac::HMAC_SHA512, message, key)
}

fn authenticated(algorithm: hmac::Algorithm, message: &[u8], key: &Secret) -> Bytes {
    let key = hmac::Key::new(algorithm, key.reveal());
    Bytes::copy_from_slice(hmac::sign(&key, message).as_ref())
}

/// Prefix of all that `sign_text` signs, so that no other signature with the key is one of a text.
const SIGNED_TEXT: &[u8] = b"weir: signed text\0";

/// Returns the text with a signature (HMAC-SHA256), as `signed_text` reads it. A client can keep it, for example in a cookie,
/// and can read it, but not change it. A text that must not be valid forever contains a time.
#[weir::function(pure, units = units::to_transform(text))]
pub fn sign_text(text: &str, key: &Secret) -> String {
    let signature = authenticated(hmac::HMAC_SHA256, &[SIGNED_TEXT, text.as_bytes()].concat(), key);
    format!("{}.{}", BASE64URL_NOPAD.encode(text.as_bytes()), BASE64URL_NOPAD.encode(&signature))
}

/// Returns the text that `sign_text` has signed with this key; `None` if the signature is of another text or key.
#[weir::function(pure, units = units::to_transform(signed))]
pub fn signed_text(signed: &str, key: &Secret) -> Option<String> {
    let (text, signature) = signed.split_once('.')?;
    let text = BASE64URL_NOPAD.decode(text.as_bytes()).ok()?;
    let signature = BASE64URL_NOPAD.decode(signature.as_bytes()).ok()?;
    let key = hmac::Key::new(hmac::HMAC_SHA256, key.reveal());
    hmac::verify(&key, &[SIGNED_TEXT, &text].concat(), &signature).ok()?;
    String::from_utf8(text).ok()
}

/// Returns `true` if the bytes are equal. It takes the same time wherever they differ, so that the time of an answer
/// does not disclose how much of a signature or a token was right; `==` stops at the first difference.
#[weir::function(pure, units = units::to_transform(bytes))]
pub fn equal(bytes: &[u8], other: &[u8]) -> bool {
    bytes.ct_eq(other).into()
}

/// Returns this many random bytes of the operating system. A count below 0 or above 1 MiB ends the flow.
#[weir::function(reads, units = units::to_make(count))]
pub fn random_bytes(count: i64) -> Limited<Bytes> {
    Limited(filled(count, system_bytes))
}

/// Makes a secret of bytes, such as a key for a test. Secrets of a program in operation do not belong into its text.
///
/// # Errors
/// Fails if there are no bytes: an empty key protects nothing.
#[weir::function(pure)]
pub fn secret(bytes: &[u8]) -> Result<Secret, Failure> {
    if bytes.is_empty() { Err(Failure::argument("a secret is not empty")) } else { Ok(Secret::new(bytes.to_vec())) }
}
