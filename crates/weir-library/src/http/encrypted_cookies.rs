//! Cookies whose values only the service can read and make.
//!
//! 1. A service has keys, which are secrets. HKDF-SHA-256 derives a key of this module from each, so that a secret which also
//!    signs something else does no harm.
//! 2. Each cookie is encrypted with AES-256-GCM under a key of its own, which is derived from that of the service, 24 random
//!    bytes, and the name of the cookie. So no number of cookies uses up a key, and a cookie means nothing under another name.
//! 3. The content is the time at which the cookie expires, and the value as JSON.
//! 4. The first key encrypts, and all of them decrypt, so that a key can be replaced: the new one is put before the old one,
//!    which is left out once the cookies that it has encrypted have expired.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use data_encoding::BASE64URL_NOPAD;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, Prk, Salt};
use weir::{Failure, Secret};

use crate::random::system_bytes;

/// Context of the derivation from a secret.
const CONTEXT: &[u8] = b"weir: encrypted cookie";
/// Minimum length of a key: less could be guessed.
const KEY_BYTES_MIN: usize = 32;
/// Maximum number of keys: each is tried on a cookie that none has encrypted.
const KEYS_MAX: usize = 8;
/// Number of the random bytes of each cookie.
const SALT_BYTES: usize = 24;
/// Number of the bytes that tell when a cookie expires, in seconds since 1970.
const EXPIRY_BYTES: usize = 8;
/// Number of the bytes by which AES-GCM recognises that the content is unchanged.
const TAG_BYTES: usize = 16;

/// A cookie that a response sets once its service, which has the keys, sends it.
#[derive(Clone, Debug)]
pub(super) struct EncryptedCookie {
    pub(super) name: String,
    /// The value as JSON.
    pub(super) value: Vec<u8>,
    pub(super) max_age: Duration,
}

/// The keys of a service.
#[derive(Debug, Default)]
pub(super) struct CookieKeys(Vec<Prk>);

impl CookieKeys {
    /// Returns the keys that are derived from these secrets.
    ///
    /// # Errors
    /// Fails if a secret is too short, or if there are too many.
    pub(super) fn new(secrets: &[Secret]) -> Result<Self, Failure> {
        if secrets.len() > KEYS_MAX {
            return Err(Failure::argument(format!("`cookie_keys` has at most {KEYS_MAX} keys, not {}", secrets.len())));
        }
        let derived = secrets.iter().map(|secret| match secret.reveal() {
            short if short.len() < KEY_BYTES_MIN => Err(Failure::argument(format!(
                "a key of `cookie_keys` has {} bytes, and needs {KEY_BYTES_MIN} or more; `openssl rand -base64 32` makes one",
                short.len()
            ))),
            bytes => Ok(Salt::new(HKDF_SHA256, CONTEXT).extract(bytes)),
        });
        derived.collect::<Result<_, _>>().map(CookieKeys)
    }

    /// Returns `true` if there is no key.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the text of a cookie with this content.
    ///
    /// # Errors
    /// Fails without a key, or if the system has no random numbers.
    pub(super) fn encrypt(&self, cookie: &EncryptedCookie) -> Result<String, Failure> {
        self.encrypt_at(cookie, seconds_now())
    }

    fn encrypt_at(&self, cookie: &EncryptedCookie, now: u64) -> Result<String, Failure> {
        let key = self.0.first().ok_or_else(|| {
            Failure::argument(
                "the service has no `cookie_keys`, with which it could encrypt the cookie that the response sets",
            )
        })?;
        let mut salt = [0; SALT_BYTES];
        system_bytes(&mut salt)?;
        let expiry = now.saturating_add(cookie.max_age.as_secs());
        let mut content = [&expiry.to_be_bytes()[..], &cookie.value].concat();
        let failed = |_| Failure::function("the cookie could not be encrypted");
        key_of(key, &salt, &cookie.name)
            .and_then(|key| key.seal_in_place_append_tag(only_nonce(), Aad::empty(), &mut content))
            .map_err(failed)?;
        Ok(BASE64URL_NOPAD.encode(&[&salt[..], &content].concat()))
    }

    /// Returns the JSON of the value that a cookie of this name contains; `None` if it has expired, or if none of the keys has
    /// encrypted it.
    pub(super) fn decrypt(&self, name: &str, text: &str) -> Option<Vec<u8>> {
        self.decrypt_at(name, text, seconds_now())
    }

    fn decrypt_at(&self, name: &str, text: &str, now: u64) -> Option<Vec<u8>> {
        let bytes = BASE64URL_NOPAD.decode(text.as_bytes()).ok()?;
        let (salt, encrypted) = bytes.split_first_chunk::<SALT_BYTES>()?;
        let content = self.0.iter().find_map(|key| {
            let mut content = encrypted.to_vec();
            let key = key_of(key, salt, name).ok()?;
            Some(key.open_in_place(only_nonce(), Aad::empty(), &mut content).ok()?.to_vec())
        })?;
        let (expiry, value) = content.split_first_chunk::<EXPIRY_BYTES>()?;
        (u64::from_be_bytes(*expiry) > now).then(|| value.to_vec())
    }
}

/// Returns the length of the text of a cookie whose value has so many bytes.
pub(super) fn encrypted_length(value: usize) -> usize {
    BASE64URL_NOPAD.encode_len(SALT_BYTES + EXPIRY_BYTES + value + TAG_BYTES)
}

/// Returns the key of one cookie.
fn key_of(key: &Prk, salt: &[u8; SALT_BYTES], name: &str) -> Result<LessSafeKey, ring::error::Unspecified> {
    let info = [&salt[..], name.as_bytes()];
    Ok(LessSafeKey::new(UnboundKey::from(key.expand(&info, &AES_256_GCM)?)))
}

/// Returns the nonce of the only message under the key of a cookie.
fn only_nonce() -> Nonce {
    Nonce::assume_unique_for_key([0; ring::aead::NONCE_LEN])
}

fn seconds_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(bytes: &[u8]) -> CookieKeys {
        let secrets: Vec<Secret> = bytes.iter().map(|byte| Secret::new(vec![*byte; KEY_BYTES_MIN])).collect();
        CookieKeys::new(&secrets).unwrap()
    }

    fn cookie(value: &str) -> EncryptedCookie {
        EncryptedCookie { name: "user".into(), value: value.into(), max_age: Duration::from_secs(60) }
    }

    #[test]
    fn a_cookie_is_read_under_its_name_until_it_expires() {
        let keys = keys(&[1]);
        for value in ["", "\"ada\"", &"x".repeat(3_000)] {
            let text = keys.encrypt_at(&cookie(value), 100).unwrap();
            assert_eq!(text.len(), encrypted_length(value.len()));
            assert_eq!(keys.decrypt_at("user", &text, 159).as_deref(), Some(value.as_bytes()));
            assert_eq!((keys.decrypt_at("user", &text, 160), keys.decrypt_at("users", &text, 100)), (None, None));
            assert_ne!(keys.encrypt_at(&cookie(value), 100).unwrap(), text, "two cookies of one value differ");
        }
    }

    #[test]
    fn a_changed_cookie_and_one_of_another_key_are_not_read() {
        let keys_1 = keys(&[1]);
        let text = keys_1.encrypt(&cookie("\"ada\"")).unwrap();
        for at in 0..text.len() {
            let mut changed = text.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert_eq!(keys_1.decrypt("user", &changed), None, "byte {at}");
            assert_eq!(keys_1.decrypt("user", &text[..at]), None, "{at} bytes");
        }
        assert_eq!(keys(&[2]).decrypt("user", &text), None);
        assert_eq!(keys_1.decrypt("user", "not base64!"), None);
    }

    #[test]
    fn keys_can_be_replaced() {
        let (old, both, new) = (keys(&[1]), keys(&[2, 1]), keys(&[2]));
        let of_old = old.encrypt(&cookie("1")).unwrap();
        assert!(both.decrypt("user", &of_old).is_some() && new.decrypt("user", &of_old).is_none());
        let of_both = both.encrypt(&cookie("1")).unwrap();
        assert!(new.decrypt("user", &of_both).is_some() && old.decrypt("user", &of_both).is_none());
    }

    #[test]
    fn wrong_keys_are_refused_with_a_reason() {
        let short = CookieKeys::new(&[Secret::new(vec![1; 31])]).unwrap_err();
        assert_eq!(
            short.message.as_str(),
            "a key of `cookie_keys` has 31 bytes, and needs 32 or more; `openssl rand -base64 32` makes one"
        );
        let many = CookieKeys::new(&vec![Secret::new(vec![1; 32]); 9]).unwrap_err();
        assert_eq!(many.message.as_str(), "`cookie_keys` has at most 8 keys, not 9");
        assert!(CookieKeys::default().encrypt(&cookie("1")).unwrap_err().message.contains("no `cookie_keys`"));
    }
}
