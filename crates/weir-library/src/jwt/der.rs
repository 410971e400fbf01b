//! Public keys in PEM: the `SubjectPublicKeyInfo` of RFC 5280, as far as the supported algorithms need it.

use data_encoding::BASE64_MIME;

/// Contents of the `AlgorithmIdentifier` of each kind of key.
pub(super) const RSA: &[u8] = &[6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1, 5, 0];
pub(super) const P256: &[u8] = &[6, 7, 0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1, 6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];
pub(super) const ED25519: &[u8] = &[6, 3, 0x2b, 0x65, 0x70];

const INTEGER: u8 = 2;
const BIT_STRING: u8 = 3;
const SEQUENCE: u8 = 0x30;

/// Returns the key of a PEM text with the label `PUBLIC KEY`, if it is of this algorithm.
pub(super) fn public_key(pem: &str, algorithm: &[u8]) -> Option<Vec<u8>> {
    let (_, body) = pem.split_once("-----BEGIN PUBLIC KEY-----")?;
    let (body, _) = body.split_once("-----END PUBLIC KEY-----")?;
    let body: String = body.split_whitespace().collect();
    let info = BASE64_MIME.decode(body.as_bytes()).ok()?;
    let (info, rest) = part(&info, SEQUENCE)?;
    let (found, key) = part(info, SEQUENCE)?;
    // The first byte of a bit string is the number of unused bits.
    let (key, after) = part(key, BIT_STRING)?;
    let (unused, key) = key.split_first()?;
    (found == algorithm && *unused == 0 && rest.is_empty() && after.is_empty()).then(|| key.to_vec())
}

/// Returns the modulus and the exponent of an RSA key (`RSAPublicKey` of RFC 8017), without leading zeros.
pub(super) fn rsa_components(key: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let (key, _) = part(key, SEQUENCE)?;
    let (modulus, rest) = part(key, INTEGER)?;
    let (exponent, _) = part(rest, INTEGER)?;
    Some((without_zeros(modulus), without_zeros(exponent)))
}

/// Returns the number without leading zero bytes.
pub(super) fn without_zeros(number: &[u8]) -> Vec<u8> {
    number.iter().copied().skip_while(|byte| *byte == 0).collect()
}

/// Returns the contents of the element at the start, if it has this tag, and the bytes behind it.
fn part(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (first, rest) = bytes.split_first()?;
    let (length, rest) = length(rest)?;
    (*first == tag).then_some(())?;
    rest.split_at_checked(length)
}

/// Returns the length at the start, of at most two bytes, and the bytes behind it.
fn length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    match bytes {
        [short @ 0..=0x7f, rest @ ..] => Some(((*short).into(), rest)),
        [0x81, long, rest @ ..] => Some(((*long).into(), rest)),
        [0x82, high, low, rest @ ..] => Some((usize::from(*high) << 8 | usize::from(*low), rest)),
        _ => None,
    }
}
