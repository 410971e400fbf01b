//! Keys that verify tokens. Each has one algorithm.

use std::fmt;
use std::sync::Arc;

use data_encoding::BASE64URL_NOPAD;
use ring::{hmac, signature};
use serde::Deserialize;
use weir::{Failure, FailureKind, Secret};

use super::der;
use crate::units;

/// Minimum length of a key of HS256 in bytes: that of its digest (RFC 7518, section 3.2).
const HS256_BYTES_MIN: usize = 32;
/// Maximum number of keys of a set.
const KEYS_MAX: usize = 100;
/// Length of a point of P-256, uncompressed, and of a key of Ed25519, in bytes.
const P256_BYTES: usize = 65;
const ED25519_BYTES: usize = 32;

/// Keys of which one must have signed a token.
#[derive(Clone, Debug, weir::Type)]
#[weir(opaque, name = "jwt.Keys")]
pub struct Keys(Arc<[VerificationKey]>);

struct VerificationKey {
    /// Its name in a set; a token names the key by which it was signed.
    id: Option<String>,
    material: KeyMaterial,
}

/// A key of one algorithm.
enum KeyMaterial {
    Hs256(hmac::Key),
    /// The modulus and the exponent.
    Rs256(signature::RsaPublicKeyComponents<Vec<u8>>),
    /// The point, uncompressed.
    Es256(Vec<u8>),
    Ed25519(Vec<u8>),
}

/// Shows the algorithm and the name of the key only.
impl fmt::Debug for VerificationKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} key {:?}", self.material.algorithm(), self.id)
    }
}

impl KeyMaterial {
    /// Returns the name of the algorithm in the header of a token.
    fn algorithm(&self) -> &'static str {
        match self {
            KeyMaterial::Hs256(_) => "HS256",
            KeyMaterial::Rs256(_) => "RS256",
            KeyMaterial::Es256(_) => "ES256",
            KeyMaterial::Ed25519(_) => "EdDSA",
        }
    }

    fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        let verified = match self {
            KeyMaterial::Hs256(key) => hmac::verify(key, message, signature),
            KeyMaterial::Rs256(key) => key.verify(&signature::RSA_PKCS1_2048_8192_SHA256, message, signature),
            KeyMaterial::Es256(key) => {
                signature::UnparsedPublicKey::new(&signature::ECDSA_P256_SHA256_FIXED, key).verify(message, signature)
            }
            KeyMaterial::Ed25519(key) => {
                signature::UnparsedPublicKey::new(&signature::ED25519, key).verify(message, signature)
            }
        };
        verified.is_ok()
    }
}

impl Keys {
    fn one(material: KeyMaterial) -> Keys {
        Keys(Arc::new([VerificationKey { id: None, material }]))
    }

    /// Verifies a signature with the keys of this algorithm, and, if both the token and a key have a name, of this name.
    ///
    /// # Errors
    /// Fails if no key has the algorithm and the name, or if the signature is by none of them.
    pub(super) fn verify(
        &self,
        algorithm: &str,
        id: Option<&str>,
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), Failure> {
        let named = |key: &&VerificationKey| id.is_none() || key.id.is_none() || key.id.as_deref() == id;
        let mut candidates = self.0.iter().filter(|key| key.material.algorithm() == algorithm).filter(named).peekable();
        if candidates.peek().is_none() {
            return Err(Failure::function("no key has the algorithm and the name of the token's"));
        }
        match candidates.any(|key| key.material.verifies(message, signature)) {
            true => Ok(()),
            false => Err(Failure::function("the signature of the token is wrong")),
        }
    }
}

/// Returns the key of tokens that are signed with HMAC and SHA-256 by whoever has the secret.
///
/// # Errors
/// Fails if the secret has less than 32 bytes.
#[weir::function(pure)]
pub fn hs256(secret: &Secret) -> Result<Keys, Failure> {
    let bytes = secret.reveal();
    if bytes.len() < HS256_BYTES_MIN {
        return Err(Failure::argument(format!("a key of HS256 has at least {HS256_BYTES_MIN} bytes")));
    }
    Ok(Keys::one(KeyMaterial::Hs256(hmac::Key::new(hmac::HMAC_SHA256, bytes))))
}

/// Returns the key of tokens that are signed with RSA and SHA-256, from a public key in PEM (`-----BEGIN PUBLIC
/// KEY-----`) of at least 2048 bits.
///
/// # Errors
/// Fails if the text is not such a key.
#[weir::function(pure, units = units::to_transform(pem))]
pub fn rs256(pem: &str) -> Result<Keys, Failure> {
    let key = der::public_key(pem, der::RSA).and_then(|key| der::rsa_components(&key));
    key.and_then(|(n, e)| rsa(n, e)).map(Keys::one).ok_or_else(|| not_a_key("RSA of at least 2048 bits"))
}

/// Returns the key of tokens that are signed with ECDSA on P-256 and SHA-256, from a public key in PEM.
///
/// # Errors
/// Fails if the text is not such a key.
#[weir::function(pure, units = units::to_transform(pem))]
pub fn es256(pem: &str) -> Result<Keys, Failure> {
    let key = der::public_key(pem, der::P256).filter(|key| key.len() == P256_BYTES);
    key.map(|key| Keys::one(KeyMaterial::Es256(key))).ok_or_else(|| not_a_key("the curve P-256"))
}

/// Returns the key of tokens that are signed with Ed25519, from a public key in PEM.
///
/// # Errors
/// Fails if the text is not such a key.
#[weir::function(pure, units = units::to_transform(pem))]
pub fn ed25519(pem: &str) -> Result<Keys, Failure> {
    let key = der::public_key(pem, der::ED25519).filter(|key| key.len() == ED25519_BYTES);
    key.map(|key| Keys::one(KeyMaterial::Ed25519(key))).ok_or_else(|| not_a_key("Ed25519"))
}

fn not_a_key(of: &str) -> Failure {
    Failure::argument(format!("not a public key of {of} in PEM"))
}

fn rsa(modulus: Vec<u8>, exponent: Vec<u8>) -> Option<KeyMaterial> {
    const MODULUS_BYTES_MIN: usize = 2048 / 8;
    let (n, e) = (der::without_zeros(&modulus), der::without_zeros(&exponent));
    (n.len() >= MODULUS_BYTES_MIN).then_some(KeyMaterial::Rs256(signature::RsaPublicKeyComponents { n, e }))
}

/// A JSON Web Key (RFC 7517) with the members that the supported algorithms need.
#[derive(Deserialize)]
struct Jwk {
    kty: String,
    kid: Option<String>,
    alg: Option<String>,
    r#use: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

#[derive(Deserialize)]
struct JwkSet {
    keys: Vec<Jwk>,
}

impl Jwk {
    /// Returns the key, if it is a public key for signatures of a supported algorithm.
    fn key(self) -> Option<VerificationKey> {
        let of = |value: &Option<String>| BASE64URL_NOPAD.decode(value.as_deref()?.as_bytes()).ok();
        let material = match (self.kty.as_str(), self.crv.as_deref()) {
            ("RSA", _) => rsa(of(&self.n)?, of(&self.e)?)?,
            ("EC", Some("P-256")) => {
                let point = [vec![4], of(&self.x)?, of(&self.y)?].concat();
                (point.len() == P256_BYTES).then_some(KeyMaterial::Es256(point))?
            }
            ("OKP", Some("Ed25519")) => {
                of(&self.x).filter(|key| key.len() == ED25519_BYTES).map(KeyMaterial::Ed25519)?
            }
            _ => return None,
        };
        let fits = self.alg.is_none_or(|alg| alg == material.algorithm());
        let signs = self.r#use.is_none_or(|purpose| purpose == "sig");
        (fits && signs).then_some(VerificationKey { id: self.kid, material })
    }
}

/// Returns the public keys of a JSON Web Key Set, as identity providers publish them: those of RS256, ES256 and Ed25519.
/// Keys of other algorithms and secret keys are left out.
///
/// # Errors
/// Fails if the text is not a key set, if it has more than 100 keys, or no key that can be used.
#[weir::function(pure, units = units::to_divide(text))]
pub fn jwks(text: &str) -> Result<Keys, Failure> {
    let set: JwkSet =
        serde_json::from_str(text).map_err(|error| Failure::argument(format!("not a JSON Web Key Set: {error}")))?;
    if set.keys.len() > KEYS_MAX {
        return Err(Failure::new(FailureKind::Limit, format!("the key set has more than {KEYS_MAX} keys")));
    }
    let keys: Vec<VerificationKey> = set.keys.into_iter().filter_map(Jwk::key).collect();
    if keys.is_empty() {
        return Err(Failure::argument("the key set has no key of RS256, ES256 or Ed25519"));
    }
    Ok(Keys(keys.into()))
}
