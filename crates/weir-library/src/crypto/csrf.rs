//! Tokens for forms against cross-site request forgery (CSRF), for one session and a limited time.
//!
//! A token is 16 random bytes, the time of its making, and an HMAC-SHA-256 of both and of the session. The random bytes make
//! each token another one, so that the length of a compressed page tells nothing about it (the attack BREACH). Nothing has to
//! be stored.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use data_encoding::BASE64URL_NOPAD;
use ring::hmac;
use weir::{Failure, Secret};

use crate::random::system_bytes;
use crate::units;

/// Context of the HMAC, so that no other signature with the key is a token.
const CONTEXT: &[u8] = b"weir: csrf token\0";
const RANDOM_BYTES: usize = 16;
/// Number of the bytes of the time, in seconds since 1970.
const TIME_BYTES: usize = 8;

/// Returns a token for the forms of this session, such as the name of the user who is logged in: `let token =
/// crypto.csrf_token(user, key: cookie_key)?`, and in the form `<input type='hidden' name='csrf_token' value='{token}'>`. A page
/// of another site cannot read it, and so cannot send the form. To replace the key, make tokens with the new one, and pass both to
/// `csrf_token_matches` until the forms that are open have been sent.
///
/// # Errors
/// Fails if the operating system has no random numbers.
#[weir::function(reads, units = units::to_transform(session))]
pub fn csrf_token(session: &str, key: &Secret) -> Result<String, Failure> {
    let mut token = [0; RANDOM_BYTES + TIME_BYTES];
    let (random, time) = token.split_at_mut(RANDOM_BYTES);
    system_bytes(random)?;
    time.copy_from_slice(&seconds_now().to_be_bytes());
    let tag = hmac::sign(&hmac_key(key), &signed(&token, session));
    Ok(BASE64URL_NOPAD.encode(&[&token[..], tag.as_ref()].concat()))
}

/// Returns `true` if the token is one of `csrf_token` for this session and one of these keys, and not older than `max_age`. With
/// an empty list of keys no token matches.
#[weir::function(reads, units = units::to_transform(session))]
pub fn csrf_token_matches(
    token: &str,
    session: &str,
    keys: Vec<Secret>,
    #[default(Duration::from_secs(12 * 3_600))] max_age: Duration,
) -> bool {
    let times = (seconds_now(), max_age.as_secs());
    keys.iter().any(|key| is_valid(token, session, key, times) == Some(true))
}

fn is_valid(token: &str, session: &str, key: &Secret, (now, max_age): (u64, u64)) -> Option<bool> {
    let bytes = BASE64URL_NOPAD.decode(token.as_bytes()).ok()?;
    let (token, tag) = bytes.split_at_checked(RANDOM_BYTES + TIME_BYTES)?;
    hmac::verify(&hmac_key(key), &signed(token, session), tag).ok()?;
    let made = u64::from_be_bytes(*token.last_chunk()?);
    Some(now.saturating_sub(made) <= max_age)
}

/// Returns the bytes that a token with this beginning authenticates.
fn signed(token: &[u8], session: &str) -> Vec<u8> {
    [CONTEXT, token, session.as_bytes()].concat()
}

fn hmac_key(key: &Secret) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, key.reveal())
}

fn seconds_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_of_one_session_one_key_and_a_limited_time() {
        let (key, other) = (Secret::new(vec![1; 32]), Secret::new(vec![2; 32]));
        let token = csrf_token("ada", &key).unwrap();
        let now = seconds_now();
        let valid =
            |token: &str, session: &str, key: &Secret, now| is_valid(token, session, key, (now, 60)) == Some(true);
        assert!(valid(&token, "ada", &key, now) && valid(&token, "ada", &key, now + 50));
        assert!(!valid(&token, "eve", &key, now) && !valid(&token, "ada", &other, now));
        assert!(!valid(&token, "ada", &key, now + 61));
        assert_ne!(csrf_token("ada", &key).unwrap(), token, "two tokens differ");
        for at in 0..token.len() {
            let mut changed = token.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            assert!(!valid(std::str::from_utf8(&changed).unwrap(), "ada", &key, now), "byte {at}");
            assert!(!valid(&token[..at], "ada", &key, now), "{at} bytes");
        }
    }

    #[test]
    fn a_token_of_any_of_the_keys_matches() {
        let (old, new, other) = (Secret::new(vec![1; 32]), Secret::new(vec![2; 32]), Secret::new(vec![3; 32]));
        let minute = Duration::from_secs(60);
        for key in [&old, &new] {
            let token = csrf_token("ada", key).unwrap();
            assert!(csrf_token_matches(&token, "ada", vec![new.clone(), old.clone()], minute));
            assert!(!csrf_token_matches(&token, "eve", vec![new.clone(), old.clone()], minute));
            assert!(!csrf_token_matches(&token, "ada", vec![other.clone()], minute));
            assert!(!csrf_token_matches(&token, "ada", Vec::new(), minute));
        }
    }
}
