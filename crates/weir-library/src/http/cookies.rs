//! Cookies that responses set, with the attributes that keep them safe.
//!
//! A cookie is set as `__Host-name` with `Secure`, `HttpOnly`, `SameSite=Lax` and `Path=/`: scripts cannot read it, it
//! is not sent over plain HTTP, not with requests that another site makes (other than following a link), and no other
//! host of the domain can set it (RFC 6265bis, section 4.1.3.2). Browsers treat `http://localhost` as secure, except for
//! Safari.

use std::fmt;
use std::time::Duration;

use hyper::header::{HeaderValue, SET_COOKIE};

use super::response::{Response, ResponseError};

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
            CookieError::TooLong(name) => write!(f, "the cookie `{name}` has more than {COOKIE_BYTES_MAX} bytes"),
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
    response: Response,
    name: &str,
    value: &str,
    #[default(None)] max_age: Option<Duration>,
) -> Result<Response, CookieError> {
    if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')) {
        return Err(CookieError::Name(name.into()));
    }
    // The octets of RFC 6265, section 4.1.1.
    let is_octet = |byte: u8| matches!(byte, 0x21 | 0x23..=0x2b | 0x2d..=0x3a | 0x3c..=0x5b | 0x5d..=0x7e);
    if !value.bytes().all(is_octet) {
        return Err(CookieError::Value(name.into()));
    }
    if name.len() + value.len() > COOKIE_BYTES_MAX {
        return Err(CookieError::TooLong(name.into()));
    }
    let age = max_age.map_or(String::new(), |age| format!("; Max-Age={}", age.as_secs()));
    let cookie = format!("{HOST_PREFIX}{name}={value}; Path=/; Secure; HttpOnly; SameSite=Lax{age}");
    let cookie = HeaderValue::try_from(cookie).expect("all octets of a cookie are visible ASCII");
    let same_name = format!("{HOST_PREFIX}{name}=");
    response.with_further_field(SET_COOKIE, cookie, same_name.as_bytes()).map_err(CookieError::Response)
}

/// Returns the response with the removal of a cookie that `http.with_cookie` has set.
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

    fn cookies(response: Response) -> Vec<String> {
        let response = response.into_hyper(false, RequestFields::of(&mut hyper::HeaderMap::new()));
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
        let long = "x".repeat(COOKIE_BYTES_MAX);
        assert_eq!(with_cookie(text(""), "n", &long, None).unwrap_err(), CookieError::TooLong("n".into()));
    }
}
