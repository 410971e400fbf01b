//! Cookies that responses set, with the attributes that keep them safe.
//!
//! A cookie is set as `__Host-name` with `Secure`, `HttpOnly`, `SameSite=Lax` and `Path=/`: scripts cannot read it, it
//! is not sent over plain HTTP, not with requests that another site makes (other than following a link), and no other
//! host of the domain can set it (RFC 6265bis, section 4.1.3.2). Browsers treat `http://localhost` as secure, except for
//! Safari.

use std::fmt;
use std::time::Duration;

use hyper::header::{HeaderValue, SET_COOKIE};

use weir::{Failure, Typed};

use super::encrypted_cookies::{EncryptedCookie, encrypted_length};
use super::input::NamedTypes;
use super::max_age::whole_seconds;
use super::response::{Response, ResponseError};
use super::type_description::description;
use crate::json::encode::written;
use crate::units;

/// Prefix of the names of cookies that only this host can have set.
pub(super) const HOST_PREFIX: &str = "__Host-";
/// Maximum length of the name and the value of a cookie; browsers refuse longer ones.
const COOKIE_BYTES_MAX: usize = 4096;

/// Error of a cookie that cannot be set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CookieError {
    /// The name is empty, or contains a character other than letters, digits, `_` and `-`.
    Name(String),
    /// The value contains a character that cookies cannot contain.
    Value(String),
    /// The name and the value are too long.
    TooLong(String),
    /// The header fields of the response become too long.
    Response(ResponseError),
}

impl fmt::Display for CookieError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CookieError::Name(name) => write!(f, "{name:?} is not the name of a cookie"),
            CookieError::Value(name) => write!(
                f,
                "the value of the cookie `{name}` contains a character that cookies cannot contain; \
                 `base64.encode_url` encodes any value"
            ),
            CookieError::TooLong(name) => write!(
                f,
                "the cookie `{name}` has more than {COOKIE_BYTES_MAX} bytes with its name, which browsers do not keep; keep \
                 the value in a table, and its key in the cookie"
            ),
            CookieError::Response(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CookieError {}

/// Returns the response with a cookie, which a route reads as `cookie name`. It lives until the browser is closed, or
/// for `max_age`. A cookie of the same name that the response sets already is replaced; others stay.
///
/// # Errors
/// Fails if the name or the value is not that of a cookie, or if they are longer than 4,096 bytes.
#[weir::function(pure)]
pub fn with_cookie(
    mut response: Response,
    name: &str,
    value: &str,
    #[default(None)] max_age: Option<Duration>,
) -> Result<Response, CookieError> {
    check_name(name)?;
    // The octets of RFC 6265, section 4.1.1.
    let is_octet = |byte: u8| matches!(byte, 0x21 | 0x23..=0x2b | 0x2d..=0x3a | 0x3c..=0x5b | 0x5d..=0x7e);
    if !value.bytes().all(is_octet) {
        return Err(CookieError::Value(name.into()));
    }
    if length(name, value.len()) > COOKIE_BYTES_MAX {
        return Err(CookieError::TooLong(name.into()));
    }
    let cookie = set_cookie(name, value, max_age);
    response.remove_cookie(name, &format!("{HOST_PREFIX}{name}="));
    response.with_further_field(SET_COOKIE, cookie).map_err(CookieError::Response)
}

/// Returns the field that sets a cookie, whose name and value have been checked.
pub(super) fn set_cookie(name: &str, value: &str, max_age: Option<Duration>) -> HeaderValue {
    let age = max_age.map_or(String::new(), |age| format!("; Max-Age={}", whole_seconds(age)));
    let cookie = format!("{HOST_PREFIX}{name}={value}; Path=/; Secure; HttpOnly; SameSite=Lax{age}");
    HeaderValue::try_from(cookie).expect("all octets of a cookie are visible ASCII")
}

/// Returns the response with a cookie that contains any value, and that only the service can read and make: it is encrypted
/// with the first of the service's `cookie_keys`, and a route reads it as `encrypted_cookie name`. It is valid for `max_age`.
///
/// # Errors
/// Fails if the name is not that of a cookie, or if the value makes it longer than 4,096 bytes: as JSON, about 3,000 bytes.
#[weir::function(pure, units = 2 * units::to_read(value))]
pub fn with_encrypted_cookie(
    mut response: Response,
    name: &str,
    value: Typed<'a'>,
    #[default(Duration::from_secs(12 * 3_600))] max_age: Duration,
) -> Result<Response, Failure> {
    check_name(name)?;
    let ty = description(&value.of.ty, NamedTypes(&value.of.definitions));
    let value = written(&value.value, &value.of)?;
    if length(name, encrypted_length(value.len())) > COOKIE_BYTES_MAX {
        return Err(CookieError::TooLong(name.into()).into());
    }
    response.remove_cookie(name, &format!("{HOST_PREFIX}{name}="));
    let cookie = EncryptedCookie { name: name.into(), ty, value, max_age };
    response.with_encrypted(cookie).map_err(|error| CookieError::Response(error).into())
}

/// Returns the length of a cookie as browsers count it: its name, with the prefix, and its value.
fn length(name: &str, value: usize) -> usize {
    HOST_PREFIX.len() + name.len() + value
}

fn check_name(name: &str) -> Result<(), CookieError> {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let valid = !name.is_empty() && name.bytes().all(is_name);
    if valid { Ok(()) } else { Err(CookieError::Name(name.into())) }
}

/// Returns the response with the removal of a cookie that `http.with_cookie` or `http.with_encrypted_cookie` has set.
///
/// # Errors
/// Fails if the name is not that of a cookie.
#[weir::function(pure)]
pub fn without_cookie(response: Response, name: &str) -> Result<Response, CookieError> {
    with_cookie(response, name, "", Some(Duration::ZERO))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::request_fields::RequestFields;
    use crate::http::{text, with_header};

    fn cookies(mut response: Response) -> Vec<String> {
        let response = response.take_for_hyper(false, RequestFields::of(&mut hyper::HeaderMap::new()));
        response.headers().get_all(SET_COOKIE).iter().map(|cookie| cookie.to_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn cookies_are_safe_by_default_and_do_not_replace_each_other() {
        let response = with_header(text("a"), "Set-Cookie", "theme=dark").unwrap();
        let response = with_cookie(response, "session", "first", None).unwrap();
        let response = with_cookie(response, "session", "second", None).unwrap();
        let response = with_cookie(response, "user", "ada", Some(Duration::from_secs(3_600))).unwrap();
        assert_eq!(
            cookies(response),
            [
                "theme=dark",
                "__Host-session=second; Path=/; Secure; HttpOnly; SameSite=Lax",
                "__Host-user=ada; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age=3600",
            ]
        );
        let removed = cookies(without_cookie(text("a"), "session").unwrap());
        assert_eq!(removed, ["__Host-session=; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age=0"]);
    }

    #[test]
    fn nothing_can_be_injected_into_a_cookie() {
        for name in ["", "a b", "a=b", "a;b", "a\r\n", "\u{e9}"] {
            assert_eq!(with_cookie(text(""), name, "x", None).unwrap_err(), CookieError::Name(name.into()), "{name:?}");
        }
        for value in ["a b", "a;Domain=evil", "a,b", "\"a\"", "a\\b", "a\r\nX: y", "\u{e9}"] {
            let refused = with_cookie(text(""), "name", value, None).unwrap_err();
            assert_eq!(refused, CookieError::Value("name".into()), "{value:?}");
        }
        let longest = "x".repeat(COOKIE_BYTES_MAX - "__Host-n".len());
        assert!(with_cookie(text(""), "n", &longest, None).is_ok());
        let long = longest + "x";
        assert_eq!(with_cookie(text(""), "n", &long, None).unwrap_err(), CookieError::TooLong("n".into()));
    }

    #[test]
    fn a_part_of_a_second_does_not_remove_a_cookie() {
        let response = with_cookie(text(""), "n", "x", Some(Duration::from_millis(500))).unwrap();
        assert_eq!(cookies(response), ["__Host-n=x; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age=1"]);
    }
}
