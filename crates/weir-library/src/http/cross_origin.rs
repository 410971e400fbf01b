//! Pages of other origins: which of them may read answers (CORS, <https://fetch.spec.whatwg.org/#http-cors-protocol>), and
//! which may send requests that change something.
//!
//! 1. A browser sends a preflight, an `OPTIONS` request, before a request that a form could not make. Its answer names the
//!    methods of the path and the permitted header fields.
//! 2. The answer to each request names the origin, if its pages may read answers.
//! 3. A request that may change something is refused if a page of another origin has sent it (`cross_site`). Pages of a
//!    permitted origin may send it; with cookies, only if `allowed_credentials` is on.

use std::time::Duration;

use bytes::Bytes;
use hyper::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD,
    ALLOW, COOKIE, HeaderMap, HeaderName, HeaderValue, ORIGIN, VARY,
};
use hyper::{Method, Response, Uri};
use weir::{Failure, ReachableHosts, Text};

use super::cross_site::is_cross_site_write;

/// Origins whose pages may read answers.
#[derive(Debug)]
enum AllowedOrigins {
    /// All (`*`). Answers never depend on cookies then.
    All,
    /// These; none, unless the program says so.
    Listed(Vec<String>),
}

/// The rules of a service for pages of other origins.
#[derive(Debug)]
pub(super) struct CrossOriginPolicy {
    /// `true` if pages of all sites may send requests that change something.
    writes: bool,
    origins: AllowedOrigins,
    credentials: bool,
    headers: HeaderValue,
    exposed: HeaderValue,
    max_age: HeaderValue,
}

/// The arguments of a service from which its policy is made.
pub(super) struct CrossOriginArguments {
    pub(super) writes: bool,
    pub(super) origins: Vec<Text>,
    pub(super) credentials: bool,
    pub(super) headers: Vec<Text>,
    pub(super) exposed: Vec<Text>,
    pub(super) max_age: Duration,
}

/// The header fields that one answer gets.
#[derive(Debug)]
pub(super) struct OriginGrant {
    /// The origin that may read the answer; `None` if it may not.
    origin: Option<HeaderValue>,
    credentials: bool,
    exposed: HeaderValue,
    /// The permitted header fields and the age of an answer to a preflight.
    preflight: Option<(HeaderValue, HeaderValue)>,
}

impl CrossOriginPolicy {
    /// Returns the policy that the arguments describe.
    ///
    /// # Errors
    /// Fails if one is not an origin or the name of a header field, and if all origins were to get credentials.
    pub(super) fn new(arguments: &CrossOriginArguments) -> Result<Self, Failure> {
        let origins: Vec<&str> = arguments.origins.iter().map(Text::as_str).collect();
        let origins = match &origins[..] {
            ["*"] if arguments.credentials => {
                let message = "`allowed_credentials` needs `allowed_origins` by name: with \"*\", a page of any site could \
                               act as its visitor";
                return Err(Failure::argument(message));
            }
            [] if arguments.credentials => {
                return Err(Failure::argument(
                    "`allowed_credentials` needs `allowed_origins`: pages of no other origin read answers",
                ));
            }
            ["*"] => AllowedOrigins::All,
            listed => {
                AllowedOrigins::Listed(listed.iter().map(|origin| checked_origin(origin)).collect::<Result<_, _>>()?)
            }
        };
        Ok(CrossOriginPolicy {
            writes: arguments.writes,
            origins,
            credentials: arguments.credentials,
            headers: names("allowed_headers", &arguments.headers)?,
            exposed: names("exposed_headers", &arguments.exposed)?,
            max_age: HeaderValue::from(arguments.max_age.as_secs()),
        })
    }

    /// Returns `true` if a page sends this request that changes something, and may not.
    pub(super) fn refuses(&self, method: &Method, uri: &Uri, fields: &HeaderMap) -> bool {
        if self.writes || !is_cross_site_write(method, uri, fields) {
            return false;
        }
        let is_permitted = only_origin(fields).is_some_and(|origin| self.permits(origin));
        !is_permitted || (!self.credentials && fields.contains_key(COOKIE))
    }

    fn permits(&self, origin: &HeaderValue) -> bool {
        match &self.origins {
            AllowedOrigins::All => true,
            AllowedOrigins::Listed(origins) => origins.iter().any(|listed| listed.as_bytes() == origin.as_bytes()),
        }
    }

    /// Returns the header fields that the answer to this request gets; `None` if no other origin may read answers.
    pub(super) fn grant(&self, method: &Method, fields: &HeaderMap) -> Option<OriginGrant> {
        let origin = match &self.origins {
            AllowedOrigins::Listed(origins) if origins.is_empty() => return None,
            AllowedOrigins::All => Some(HeaderValue::from_static("*")),
            AllowedOrigins::Listed(_) => only_origin(fields).filter(|origin| self.permits(origin)).cloned(),
        };
        let preflight = is_preflight(method, fields).then(|| (self.headers.clone(), self.max_age.clone()));
        Some(OriginGrant { origin, credentials: self.credentials, exposed: self.exposed.clone(), preflight })
    }

    /// Returns `true` if the server answers this request itself, as a preflight.
    pub(super) fn answers_preflight(&self, method: &Method, fields: &HeaderMap) -> bool {
        let shares = !matches!(&self.origins, AllowedOrigins::Listed(origins) if origins.is_empty());
        shares && is_preflight(method, fields)
    }
}

impl OriginGrant {
    /// Adds the header fields to an answer.
    pub(super) fn apply(self, response: &mut Response<Bytes>) {
        let methods = response.headers().get(ALLOW).cloned();
        let fields = response.headers_mut();
        if self.origin.as_ref().is_none_or(|origin| origin != "*") {
            fields.append(VARY, HeaderValue::from_static("Origin"));
        }
        let Some(origin) = self.origin else { return };
        fields.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        if self.credentials {
            fields.insert(ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
        }
        match self.preflight {
            Some((headers, max_age)) => {
                methods.into_iter().for_each(|methods| _ = fields.insert(ACCESS_CONTROL_ALLOW_METHODS, methods));
                fields.insert(ACCESS_CONTROL_ALLOW_HEADERS, headers);
                fields.insert(ACCESS_CONTROL_MAX_AGE, max_age);
            }
            None if !self.exposed.is_empty() => _ = fields.insert(ACCESS_CONTROL_EXPOSE_HEADERS, self.exposed),
            None => {}
        }
    }
}

/// Returns the origin of the page that sends a request; `None` if there are several.
fn only_origin(fields: &HeaderMap) -> Option<&HeaderValue> {
    let mut origins = fields.get_all(ORIGIN).iter();
    origins.next().filter(|_| origins.next().is_none())
}

fn is_preflight(method: &Method, fields: &HeaderMap) -> bool {
    method == Method::OPTIONS && fields.contains_key(ORIGIN) && fields.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// Checks that a text is an origin as browsers write it.
fn checked_origin(text: &str) -> Result<String, Failure> {
    let is_origin = |url: &Uri| {
        let authority = url.authority().map_or("", |authority| authority.as_str());
        matches!(url.scheme_str(), Some("http" | "https"))
            && !authority.contains('@')
            && is_host(url.host().unwrap_or_default())
            && has_port_or_none(authority)
            && text == format!("{}://{}", url.scheme_str().unwrap_or_default(), authority.to_ascii_lowercase())
            && !matches!((url.scheme_str(), url.port_u16()), (Some("https"), Some(443)) | (Some("http"), Some(80)))
    };
    if text.parse::<Uri>().is_ok_and(|url| is_origin(&url)) {
        return Ok(text.to_owned());
    }
    let said = format!(
        "`allowed_origins`: {text:?} is not an origin; write the scheme, the host in lower case and a port that is not the \
         usual one, such as \"https://app.example\", or only \"*\" for all; a part of a name cannot be \"*\""
    );
    Err(Failure::argument(said))
}

/// Returns `true` unless a colon follows the host without a port from 1 to 65,535.
fn has_port_or_none(authority: &str) -> bool {
    match authority.rsplit_once(':') {
        Some((_, port)) if !port.ends_with(']') => {
            port.parse::<u16>().is_ok_and(|number| number.to_string() == port && number > 0)
        }
        _ => true,
    }
}

/// Returns `true` for the host of an origin: an address, or a name, which has no `*`.
fn is_host(host: &str) -> bool {
    !host.contains('*') && ReachableHosts::only([host]).is_ok()
}

fn names(parameter: &str, names: &[Text]) -> Result<HeaderValue, Failure> {
    if let Some(wrong) = names.iter().find(|name| HeaderName::try_from(name.as_str()).is_err()) {
        return Err(Failure::argument(format!(
            "`{parameter}`: {:?} is not the name of a header field",
            wrong.as_str()
        )));
    }
    let names: Vec<&str> = names.iter().map(Text::as_str).collect();
    Ok(HeaderValue::try_from(names.join(", ")).expect("names of header fields are tokens"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(origins: &[&str], credentials: bool) -> Result<CrossOriginPolicy, Failure> {
        CrossOriginPolicy::new(&CrossOriginArguments {
            writes: false,
            origins: origins.iter().map(|origin| Text::from(*origin)).collect(),
            credentials,
            headers: vec!["Content-Type".into()],
            exposed: vec!["ETag".into()],
            max_age: Duration::from_mins(10),
        })
    }

    fn fields(given: &[(&'static str, &'static str)]) -> HeaderMap {
        given.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).collect()
    }

    /// Returns the fields that an answer to this request gets, except for `Allow`.
    fn granted(policy: &CrossOriginPolicy, method: &str, given: &[(&'static str, &'static str)]) -> Vec<String> {
        let mut response = Response::new(Bytes::new());
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, PUT"));
        if let Some(grant) = policy.grant(&method.parse().unwrap(), &fields(given)) {
            grant.apply(&mut response);
        }
        let shown = response.headers().iter().filter(|(name, _)| *name != ALLOW);
        shown.map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect()
    }

    const PREFLIGHT: [(&str, &str); 2] = [("origin", "https://app.example"), ("access-control-request-method", "PUT")];

    #[test]
    fn pages_of_listed_origins_may_read_answers() {
        let listed = policy(&["https://app.example", "http://localhost:3000"], true).unwrap();
        let from = |origin| granted(&listed, "GET", &[("origin", origin)]);
        assert_eq!(
            from("http://localhost:3000"),
            [
                "vary: Origin",
                "access-control-allow-origin: http://localhost:3000",
                "access-control-allow-credentials: true",
                "access-control-expose-headers: ETag"
            ]
        );
        for other in ["https://app.example.evil", "https://APP.example", "http://app.example", "null", ""] {
            assert_eq!(from(other), ["vary: Origin"], "{other}");
        }
        assert_eq!(granted(&listed, "GET", &[]), ["vary: Origin"]);
        assert!(granted(&policy(&[], false).unwrap(), "GET", &PREFLIGHT).is_empty());
        let all = granted(&policy(&["*"], false).unwrap(), "GET", &PREFLIGHT);
        assert_eq!(all, ["access-control-allow-origin: *", "access-control-expose-headers: ETag"]);
    }

    #[test]
    fn two_origins_are_none() {
        let listed = policy(&["https://app.example"], false).unwrap();
        let (ours, other) = (("origin", "https://app.example"), ("origin", "https://b.example"));
        for given in [[ours, other], [ours, ours], [other, ours]] {
            let mut fields = HeaderMap::new();
            given.iter().for_each(|(name, value)| _ = fields.append(*name, HeaderValue::from_static(value)));
            assert!(listed.refuses(&Method::POST, &Uri::from_static("/"), &fields), "{given:?}");
            assert!(listed.grant(&Method::GET, &fields).unwrap().origin.is_none(), "{given:?}");
        }
    }

    #[test]
    fn a_preflight_learns_methods_and_fields() {
        let listed = policy(&["https://app.example"], false).unwrap();
        assert_eq!(
            granted(&listed, "OPTIONS", &PREFLIGHT),
            [
                "vary: Origin",
                "access-control-allow-origin: https://app.example",
                "access-control-allow-methods: GET, PUT",
                "access-control-allow-headers: Content-Type",
                "access-control-max-age: 600"
            ]
        );
    }

    #[test]
    fn cookies_of_visitors_need_credentials() {
        let refused = |policy: &CrossOriginPolicy, given: &[(&'static str, &'static str)]| {
            policy.refuses(&Method::POST, &Uri::from_static("/"), &fields(given))
        };
        let from = [("sec-fetch-site", "cross-site"), ("origin", "https://app.example"), ("cookie", "a=b")];
        for (origins, credentials, without, with) in [
            (&["https://app.example"][..], true, false, false),
            (&["https://app.example"], false, false, true),
            (&["*"], false, false, true),
            (&["https://b.example"], true, true, true),
            (&[], false, true, true),
        ] {
            let policy = policy(origins, credentials).unwrap();
            assert_eq!((refused(&policy, &from[..2]), refused(&policy, &from)), (without, with), "{origins:?}");
        }
    }

    #[test]
    fn what_is_no_origin_is_refused() {
        let texts =
            ["", "null", "app.example", "https://app.example/", "https://APP.example", "ftp://a", "https://u@a"];
        let further = ["https://a:443", "http://a:80", "https://a/b", "https://*.example", "a b", "https://a:99999"];
        for text in texts.iter().chain(&further).chain(&["https://a:0", "https://a:", "https://127.1"]) {
            assert!(policy(&[text], false).is_err(), "{text}");
        }
        for text in ["https://a_b.example", "http://10.0.0.7:8080", "http://[::1]:3000", "https://a:65535"] {
            assert!(policy(&[text], false).is_ok(), "{text}");
        }
        assert!(policy(&[], true).unwrap_err().message.contains("needs `allowed_origins`"));
        assert!(policy(&["*"], true).unwrap_err().message.contains("by name"));
        assert!(policy(&["*", "https://a.example"], false).is_err());
    }
}
