//! The secrets that a program declares with `secret name: Bytes`.

use indexmap::IndexMap;
use ring::digest;
use weir::{Failure, Secret, Text};

use crate::Limited;

/// The values of a program's `secret` declarations.
#[derive(Clone, Debug, Default)]
pub struct Secrets {
    named: IndexMap<Text, Secret>,
    of_tests: bool,
}

impl Secrets {
    /// Returns secrets with these names.
    #[must_use]
    pub fn new(named: IndexMap<Text, Secret>) -> Self {
        Secrets { named, of_tests: false }
    }

    /// Returns secrets for tests: one of 32 bytes for every name, always the same, and known to everybody.
    #[must_use]
    pub fn of_tests() -> Self {
        Secrets { named: IndexMap::new(), of_tests: true }
    }
}

/// Returns the secret that the program declares under this name; the name of the secret alone is short for this.
#[weir::function(pure)]
pub fn configured(#[environment] secrets: &Secrets, name: &str) -> Limited<Secret> {
    if secrets.of_tests {
        let known = digest::digest(&digest::SHA256, format!("weir test {name}").as_bytes());
        return Limited(Ok(Secret::new(known.as_ref().to_vec())));
    }
    let secret = secrets.named.get(name).cloned();
    Limited(secret.ok_or_else(|| Failure::function(format!("the secret `{name}` is not set"))))
}
