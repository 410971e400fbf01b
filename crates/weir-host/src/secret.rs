//! Secrets: values that programs pass on, and only functions that ask for a secret can look into.

use std::fmt;

use zeroize::Zeroizing;

/// A secret, such as a key or a password of another service. It is opaque: a program can neither show it nor put it
/// into a text, compare it, or write it as JSON. Its memory is cleared when it is dropped.
#[derive(Clone, weir_macros::Type)]
#[weir(opaque, name = "crypto.Secret")]
pub struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    /// Creates a secret.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Self {
        Secret(Zeroizing::new(bytes))
    }

    /// Returns the bytes of the secret. The caller must neither show, log nor store them.
    #[must_use]
    pub fn reveal(&self) -> &[u8] {
        &self.0
    }
}

/// Shows that this is a secret, and not its bytes.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}
