//! Parameters of `http(…)`: the address to listen on, and the server's limits.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hyper::header::{HeaderName, HeaderValue};
use indexmap::IndexMap;
use weir::{Entries, Failure, HostType, ListenAddress, Parameter, Passing, Secret, SourceSignature, Text, Type, Value};

use super::client_address::TrustedProxies;
use super::cross_origin::{CrossOriginArguments, CrossOriginPolicy};
use super::encrypted_cookies::CookieKeys;
use super::health::HealthRoute;
use super::response::checked_field;
use super::server::{Limits, TlsFiles};

/// A limit that a program may set, as an accessor of its field.
#[derive(Clone, Copy)]
enum Limit {
    Size(fn(&mut Limits) -> &mut usize),
    Count(fn(&mut Limits) -> &mut usize),
    Time(fn(&mut Limits) -> &mut Duration),
}

/// The limits by name, in the order of the parameters.
const LIMITS: [(&str, Limit); 10] = [
    ("header_bytes_max", Limit::Size(|limits| &mut limits.header_bytes_max)),
    ("header_timeout", Limit::Time(|limits| &mut limits.header_timeout)),
    ("body_bytes_max", Limit::Size(|limits| &mut limits.body_bytes_max)),
    ("body_timeout", Limit::Time(|limits| &mut limits.body_timeout)),
    ("body_idle_timeout", Limit::Time(|limits| &mut limits.body_idle_timeout)),
    ("answer_timeout", Limit::Time(|limits| &mut limits.answer_timeout)),
    ("idle_timeout", Limit::Time(|limits| &mut limits.idle_timeout)),
    ("write_timeout", Limit::Time(|limits| &mut limits.write_timeout)),
    ("shutdown_grace", Limit::Time(|limits| &mut limits.shutdown_grace)),
    ("connections_max", Limit::Count(|limits| &mut limits.connections_max)),
];

/// The names of the limits, in the order of the parameters.
pub(super) const LIMIT_NAMES: [&str; LIMITS.len()] = {
    let (mut names, mut index) = ([""; LIMITS.len()], 0);
    while index < names.len() {
        names[index] = LIMITS[index].0;
        index += 1;
    }
    names
};

/// Name of the parameter that permits requests of other sites' pages.
const CROSS_SITE_WRITES: &str = "cross_site_writes";
/// Name of the parameter that gives half-closed clients their responses.
const HALF_CLOSE: &str = "half_close";
/// Names of the parameters with the files of TLS.
const TLS_FILES: [&str; 3] = ["certificate", "key", "client_authorities"];
/// Names of the parameters on pages of other origins (CORS).
const ALLOWED_ORIGINS: &str = "allowed_origins";
const ALLOWED_CREDENTIALS: &str = "allowed_credentials";
const ALLOWED_HEADERS: &str = "allowed_headers";
const EXPOSED_HEADERS: &str = "exposed_headers";
const PREFLIGHT_MAX_AGE: &str = "preflight_max_age";
/// Name of the parameter with the addresses of proxies whose header fields are used.
const TRUSTED_PROXIES: &str = "trusted_proxies";
/// Names of the parameters on what all answers have in common.
const HEADERS: &str = "headers";
const COMPRESSED: &str = "compressed";
const LOG_REQUESTS: &str = "log_requests";
const HEALTH: &str = "health";
const SHUTDOWN_DELAY: &str = "shutdown_delay";
/// Name of the parameter with the keys of encrypted cookies.
const COOKIE_KEYS: &str = "cookie_keys";
/// Number of parameters before those on what all answers have in common.
const BEFORE_ANSWERS: usize = BEFORE_ORIGINS + 6;
/// Number of parameters before those of other origins.
const BEFORE_ORIGINS: usize = 2 + LIMITS.len() + 2 + TLS_FILES.len();
/// Time for which a browser uses the answer to a preflight, by default.
const PREFLIGHT_MAX_AGE_NS: i64 = 600_000_000_000;
/// Minimum value of `header_bytes_max`; below it no browser's request is accepted.
const HEADER_BYTES_LEAST: usize = 1024;

/// Returns the signature of `http(…)`.
pub(super) fn signature() -> SourceSignature {
    let parameter = |name: &str, ty, default| Parameter { name: name.into(), ty, passing: Passing::Value, default };
    let limits = LIMITS.iter().map(|(name, limit)| {
        let default = limit.get(&mut Limits::default());
        parameter(name, limit.ty(), Some(default))
    });
    let switch = |name| parameter(name, Type::Bool, Some(Value::Bool(false)));
    let switches = [switch(CROSS_SITE_WRITES), switch(HALF_CLOSE)];
    let files = TLS_FILES.map(|name| parameter(name, Type::Text, Some(Value::text(""))));
    let texts = |name, default: &[&str]| {
        let default = default.iter().copied().map(Value::text).collect();
        parameter(name, Type::List(Arc::new(Type::Text)), Some(Value::list(default)))
    };
    let origins = [
        texts(ALLOWED_ORIGINS, &[]),
        switch(ALLOWED_CREDENTIALS),
        texts(ALLOWED_HEADERS, &["Content-Type", "Authorization"]),
        texts(EXPOSED_HEADERS, &[]),
        parameter(PREFLIGHT_MAX_AGE, Type::Duration, Some(Value::Duration(PREFLIGHT_MAX_AGE_NS))),
        texts(TRUSTED_PROXIES, &[]),
    ];
    let answers = [
        parameter(HEADERS, Type::map(Type::Text, Type::Text), Some(Value::Map(Entries::default()))),
        switch(COMPRESSED),
        switch(LOG_REQUESTS),
        parameter(HEALTH, Type::Text, Some(Value::text(""))),
        parameter(SHUTDOWN_DELAY, Type::Duration, Some(Value::Duration(0))),
        parameter(COOKIE_KEYS, Type::List(Arc::new(Secret::ty())), Some(Value::list(Vec::new()))),
    ];
    let place = [parameter("port", Type::Int, None), parameter("address", Type::Text, Some(Value::text("127.0.0.1")))];
    SourceSignature {
        module: "http".into(),
        name: "http".into(),
        doc: "Serves HTTP/1.1 and HTTP/2 at a port of this machine. `address: \"0.0.0.0\"` accepts \
             connections from other machines; port 0 lets the operating system choose a port. With the files of a \
             `certificate` and its `key`, connections use TLS."
            .into(),
        parameters: place
            .into_iter()
            .chain(limits)
            .chain(switches)
            .chain(files)
            .chain(origins)
            .chain(answers)
            .collect(),
        element: None,
        answer: Some(Type::named("http.Response")),
        ordered: false,
    }
}

/// Returns the address to listen on.
///
/// # Errors
/// Fails if the port or the address is invalid.
pub(super) fn address(arguments: &[Value]) -> Result<SocketAddr, Failure> {
    let [Value::Int(port), Value::Text(text), ..] = arguments else {
        return Err(Failure::argument("`http` takes a port and an address"));
    };
    let port = ListenAddress::port(*port).map_err(Failure::argument)?;
    let address = ListenAddress::ip(text).map_err(Failure::argument)?;
    Ok(SocketAddr::new(address, port))
}

/// Returns the rules for pages of other origins.
///
/// # Errors
/// Fails if an argument is not an origin or the name of a header field.
pub(super) fn cross_origin(arguments: &[Value]) -> Result<CrossOriginPolicy, Failure> {
    let texts = |index| texts(arguments.get(BEFORE_ORIGINS + index));
    let max_age = match arguments.get(BEFORE_ORIGINS + 4) {
        Some(Value::Duration(nanos)) => {
            let negative = || Failure::argument(format!("`{PREFLIGHT_MAX_AGE}` must not be negative"));
            Duration::from_nanos(u64::try_from(*nanos).map_err(|_| negative())?)
        }
        _ => Duration::ZERO,
    };
    CrossOriginPolicy::new(&CrossOriginArguments {
        writes: is_on(arguments, 0),
        origins: texts(0),
        credentials: matches!(arguments.get(BEFORE_ORIGINS + 1), Some(Value::Bool(true))),
        headers: texts(2),
        exposed: texts(3),
        max_age,
    })
}

/// Returns the proxies whose header fields are used.
///
/// # Errors
/// Fails if an argument is neither an address nor a block of addresses.
pub(super) fn trusted_proxies(arguments: &[Value]) -> Result<TrustedProxies, Failure> {
    TrustedProxies::new(texts(arguments.get(BEFORE_ORIGINS + 5)).iter().map(Text::as_str))
}

/// Returns the header fields that all answers have.
///
/// # Errors
/// Fails if one is not valid in a header, or frames the message.
pub(super) fn headers(arguments: &[Value]) -> Result<Vec<(HeaderName, HeaderValue)>, Failure> {
    let fields = arguments.get(BEFORE_ANSWERS).cloned().map(IndexMap::<Text, Text>::from_value);
    let fields = fields.and_then(Result::ok).unwrap_or_default();
    fields.iter().map(|(name, value)| checked_field(name, value).map_err(Failure::from)).collect()
}

/// Returns `true` if answers are compressed.
pub(super) fn compressed(arguments: &[Value]) -> bool {
    matches!(arguments.get(BEFORE_ANSWERS + 1), Some(Value::Bool(true)))
}

/// Returns `true` if requests are logged.
pub(super) fn log_requests(arguments: &[Value]) -> bool {
    matches!(arguments.get(BEFORE_ANSWERS + 2), Some(Value::Bool(true)))
}

/// Returns the health route.
///
/// # Errors
/// Fails if it is not a path.
pub(super) fn health(arguments: &[Value]) -> Result<HealthRoute, Failure> {
    match arguments.get(BEFORE_ANSWERS + 3) {
        Some(Value::Text(path)) => HealthRoute::new(path),
        _ => Ok(HealthRoute::default()),
    }
}

/// Returns the time for which a service goes on after it has been told to stop.
///
/// # Errors
/// Fails if it is negative.
pub(super) fn shutdown_delay(arguments: &[Value]) -> Result<Duration, Failure> {
    let Some(Value::Duration(nanos)) = arguments.get(BEFORE_ANSWERS + 4) else { return Ok(Duration::ZERO) };
    let negative = |_| Failure::argument(format!("`{SHUTDOWN_DELAY}` must not be negative"));
    u64::try_from(*nanos).map(Duration::from_nanos).map_err(negative)
}

/// Returns the keys of encrypted cookies.
///
/// # Errors
/// Fails if one is too short.
pub(super) fn cookie_keys(arguments: &[Value]) -> Result<CookieKeys, Failure> {
    let secrets = arguments.get(BEFORE_ANSWERS + 5).cloned().and_then(|list| Vec::<Secret>::from_value(list).ok());
    CookieKeys::new(&secrets.unwrap_or_default())
}

/// Returns the elements of a list of texts.
fn texts(list: Option<&Value>) -> Vec<Text> {
    list.and_then(|list| Vec::from_value(list.clone()).ok()).unwrap_or_default()
}

/// Returns `true` if the switch of this index, behind the limits, is on.
fn is_on(arguments: &[Value], index: usize) -> bool {
    matches!(arguments.get(2 + LIMITS.len() + index), Some(Value::Bool(true)))
}

/// Returns the files of TLS, if the arguments name any. Relative paths begin at `folder`.
///
/// # Errors
/// Fails if there is a certificate without a key, or a key without a certificate.
pub(super) fn tls_files(arguments: &[Value], folder: &Path) -> Result<Option<TlsFiles>, Failure> {
    let given = arguments.iter().skip(2 + LIMITS.len() + 2).take(TLS_FILES.len());
    let mut paths = given.map(|path| match path {
        Value::Text(path) if !path.is_empty() => Some(folder.join(&**path)),
        _ => None,
    });
    match (paths.next().flatten(), paths.next().flatten(), paths.next().flatten()) {
        (None, None, None) => Ok(None),
        (Some(certificate), Some(key), client_authorities) => {
            Ok(Some(TlsFiles { certificate, key, client_authorities }))
        }
        _ => Err(Failure::argument("TLS needs both a `certificate` and its `key`")),
    }
}

/// Returns the limits that the arguments set.
///
/// # Errors
/// Fails if no client could be served under them.
pub(super) fn limits(arguments: &[Value]) -> Result<Limits, Failure> {
    let mut limits = Limits::default();
    for ((name, limit), argument) in LIMITS.iter().zip(arguments.iter().skip(2)) {
        limit.set(&mut limits, argument).ok_or_else(|| Failure::argument(format!("`{name}` cannot be {argument}")))?;
    }
    limits.half_close = is_on(arguments, 1);
    if limits.connections_max == 0 {
        return Err(Failure::argument("`connections_max` must be at least 1"));
    }
    if limits.header_bytes_max < HEADER_BYTES_LEAST {
        return Err(Failure::argument(format!("`header_bytes_max` must be at least {HEADER_BYTES_LEAST}b")));
    }
    Ok(limits)
}

impl Limit {
    fn ty(self) -> Type {
        match self {
            Limit::Size(_) => Type::Size,
            Limit::Count(_) => Type::Int,
            Limit::Time(_) => Type::Duration,
        }
    }

    fn get(self, limits: &mut Limits) -> Value {
        match self {
            Limit::Size(field) => Value::Size(*field(limits) as u64),
            Limit::Count(field) => Value::Int(i64::try_from(*field(limits)).unwrap_or(i64::MAX)),
            Limit::Time(field) => Value::Duration(i64::try_from(field(limits).as_nanos()).unwrap_or(i64::MAX)),
        }
    }

    /// Sets the limit; `None` if the value has another type or is negative.
    fn set(self, limits: &mut Limits, value: &Value) -> Option<()> {
        match (self, value) {
            (Limit::Size(field), Value::Size(size)) => *field(limits) = usize::try_from(*size).unwrap_or(usize::MAX),
            (Limit::Count(field), Value::Int(count)) => *field(limits) = usize::try_from(*count).ok()?,
            (Limit::Time(field), Value::Duration(nanos)) => {
                *field(limits) = Duration::from_nanos(u64::try_from(*nanos).ok()?);
            }
            _ => return None,
        }
        Some(())
    }
}
