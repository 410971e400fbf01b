//! Random tokens that the process recognises: random bytes, and a part of their HMAC under a key of the process.

use std::sync::LazyLock;

use data_encoding::BASE64URL_NOPAD;
use ring::hmac;
use subtle::ConstantTimeEq;
use weir::Failure;

use crate::Limited;
use crate::random::{filled, system_bytes};

/// The number of bytes of the HMAC in a token. An identifier that is made up is taken for a token once in 2⁶⁴ attempts, and
/// gains nothing but a place among the sessions that are kept.
const TAG_BYTES: usize = 8;

/// A key of the process: the sessions that tokens name end with it, too. `None` if the system has no random numbers.
static KEY: LazyLock<Option<hmac::Key>> = LazyLock::new(|| {
    let mut key = [0; 32];
    system_bytes(&mut key).ok()?;
    Some(hmac::Key::new(hmac::HMAC_SHA256, &key))
});

/// Returns a random text that nobody can guess, for session identifiers, password resets and the like: this many bytes of
/// the operating system, and 8 bytes by which the program recognises the sessions that it has given away, in the base64 of
/// URLs. The default of 16 bytes gives 32 characters. Fewer than 16 bytes can be guessed; they, and more than 1,024, end the
/// flow.
#[weir::function(reads)]
pub fn token(#[default(16)] bytes: i64) -> Limited<String> {
    if !(16..=1024).contains(&bytes) {
        return Limited(Err(Failure::argument(format!("a token has 16 to 1024 bytes, not {bytes}"))));
    }
    Limited(filled(bytes, system_bytes).map(|random| {
        let mut token = random.to_vec();
        token.extend(tag(&random));
        BASE64URL_NOPAD.encode(&token)
    }))
}

/// Returns `true` if this process has made the token.
pub(crate) fn is_issued(token: &str) -> bool {
    let Ok(bytes) = BASE64URL_NOPAD.decode(token.as_bytes()) else { return false };
    let Some((random, given)) = bytes.split_last_chunk::<TAG_BYTES>() else { return false };
    KEY.is_some() && tag(random).ct_eq(given).into()
}

fn tag(random: &[u8]) -> [u8; TAG_BYTES] {
    let signed = KEY.as_ref().map(|key| hmac::sign(key, random));
    let mut tag = [0; TAG_BYTES];
    for (byte, signed) in tag.iter_mut().zip(signed.iter().flat_map(hmac::Tag::as_ref)) {
        *byte = *signed;
    }
    tag
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_recognised_and_nothing_else_is() {
        let issued = token(16).0.unwrap();
        assert!(is_issued(&issued) && issued.len() == 32, "{issued}");
        assert!(is_issued(&token(1_024).0.unwrap()));
        let mut changed = issued.clone().into_bytes();
        for at in 0..changed.len() {
            let before = changed[at];
            changed[at] = if before == b'A' { b'B' } else { b'A' };
            assert!(!is_issued(std::str::from_utf8(&changed).unwrap()), "byte {at}");
            changed[at] = before;
        }
        for made_up in ["", "visitor-1", "AAAAAAAAAAA", &issued[..31], &format!("{issued}="), &"A".repeat(32)] {
            assert!(!is_issued(made_up), "{made_up}");
        }
    }
}
