//! The registered claims of a token (RFC 7519, section 4.1), and the rules by which they are checked.

use serde::Deserialize;
use weir::Failure;

use super::ExpectedClaims;

/// The claims that every token is checked for. A claim that occurs twice is an error.
#[derive(Deserialize)]
pub(super) struct RegisteredClaims {
    /// Seconds since 1970 from which on the token is not valid.
    exp: Option<f64>,
    /// Seconds since 1970 before which the token is not valid.
    nbf: Option<f64>,
    iss: Option<String>,
    aud: Option<Audience>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Several(Vec<String>),
}

impl RegisteredClaims {
    /// Parses the registered claims of the JSON object.
    ///
    /// # Errors
    /// Fails if it is not a JSON object, or a claim is not of its type.
    pub(super) fn parse(claims: &[u8]) -> Result<RegisteredClaims, Failure> {
        let wrong = |error| Failure::function(format!("not a token: its claims are wrong: {error}"));
        serde_json::from_slice(claims).map_err(wrong)
    }

    /// Checks the claims.
    ///
    /// # Errors
    /// Fails with the first claim that is missing or wrong.
    pub(super) fn check(&self, expected: &ExpectedClaims<'_>) -> Result<(), Failure> {
        let (now, leeway) = (expected.now.as_secs_f64(), expected.leeway.as_secs_f64());
        let Some(expiry) = self.exp else { return refused("the token does not expire: it has no `exp`") };
        if expiry + leeway <= now {
            return refused("the token has expired");
        }
        if self.nbf.is_some_and(|start| start - leeway > now) {
            return refused("the token is not valid yet");
        }
        if !expected.issuer.is_empty() && self.iss.as_deref() != Some(expected.issuer) {
            return refused("the token has another issuer");
        }
        self.check_audience(expected.audience)
    }

    /// Checks that the token is meant for the audience: one that names others must not be accepted (RFC 7519, section
    /// 4.1.3), and neither must one that names none where one is expected.
    fn check_audience(&self, audience: &str) -> Result<(), Failure> {
        match &self.aud {
            None if audience.is_empty() => Ok(()),
            None => refused("the token has no audience"),
            Some(_) if audience.is_empty() => {
                refused("the token has an audience (`aud`); say which one this program is with `audience: \"…\"`")
            }
            Some(Audience::One(one)) if one == audience => Ok(()),
            Some(Audience::Several(several)) if several.iter().any(|one| one == audience) => Ok(()),
            Some(_) => refused("the token has another audience"),
        }
    }
}

fn refused(why: &str) -> Result<(), Failure> {
    Err(Failure::function(why))
}
