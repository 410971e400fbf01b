//! A call of the client: its request and its limits.

use std::time::Duration;

use bytes::Bytes;
use hyper::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue,
    TE, TRAILER, TRANSFER_ENCODING, UPGRADE, USER_AGENT,
};
use hyper::{Method, Uri};
use indexmap::IndexMap;
use weir::{Failure, Secret, Size, Text};

use super::url;
use crate::network::Reach;

/// Header fields that the client sets itself.
const OWN_FIELDS: [HeaderName; 8] =
    [ACCEPT_ENCODING, CONNECTION, CONTENT_LENGTH, HOST, TE, TRAILER, TRANSFER_ENCODING, UPGRADE];
/// Maximum total size of the header fields of a request, in bytes.
const FIELDS_BYTES_MAX: usize = 16 * 1024;
/// Maximum number of redirects that a call may permit.
const REDIRECTS_LIMIT: u8 = 20;
const AGENT: &str = concat!("weir/", env!("CARGO_PKG_VERSION"));

/// Header fields of a request, by their names.
pub type Headers = IndexMap<Text, Text>;

/// Parameters that all functions of the client have.
#[derive(weir::FunctionOptions)]
pub struct CallOptions {
    /// Header fields besides those that the client sets.
    #[default(Headers::new())]
    pub headers: Headers,
    /// Credential for the field `Authorization`.
    #[default(None)]
    pub bearer: Option<Secret>,
    /// Maximum duration of a call, from the permit to the last byte.
    #[default(Duration::from_secs(30))]
    pub timeout: Duration,
    /// Maximum length of the response's body.
    #[default(Size(8 * 1024 * 1024))]
    pub bytes_max: Size,
    /// Maximum number of redirects.
    #[default(5)]
    pub redirects_max: u8,
    /// `true` if addresses of private networks are permitted.
    #[default(false)]
    pub private: bool,
}

/// A request and its limits.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) method: Method,
    pub(super) url: Uri,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    pub(super) timeout: Duration,
    /// Maximum length of the response's body.
    pub(super) bytes_max: usize,
    pub(super) redirects_max: u8,
    pub(super) reach: Reach,
    /// `true` if the request may be sent twice.
    pub(super) may_resend: bool,
}

impl Call {
    /// Creates a call without a body.
    ///
    /// # Errors
    /// Fails if the URL or a header field is not valid.
    pub(super) fn new(method: Method, url: &str, options: CallOptions) -> Result<Call, Failure> {
        if options.redirects_max > REDIRECTS_LIMIT {
            return Err(Failure::argument(format!("`redirects_max` is at most {REDIRECTS_LIMIT}")));
        }
        Ok(Call {
            url: url::requested(url)?,
            headers: fields(&options.headers, options.bearer.as_ref())?,
            may_resend: method.is_idempotent(),
            method,
            body: Bytes::new(),
            timeout: options.timeout,
            bytes_max: usize::try_from(options.bytes_max.0).unwrap_or(usize::MAX),
            redirects_max: options.redirects_max,
            reach: Reach::of(options.private),
        })
    }

    /// Returns the call with a body; a `Content-Type` among its header fields is kept.
    ///
    /// # Errors
    /// Fails if the media type is not valid in a header.
    pub(super) fn with_body(mut self, body: Bytes, media_type: &str) -> Result<Call, Failure> {
        self.body = body;
        if !self.body.is_empty() && !self.headers.contains_key(CONTENT_TYPE) {
            self.headers.insert(CONTENT_TYPE, value("Content-Type", media_type)?);
        }
        Ok(self)
    }
}

/// Parses a method.
///
/// # Errors
/// Fails if it is not a token, and for `CONNECT`, which makes a tunnel.
pub(super) fn method(text: &str) -> Result<Method, Failure> {
    let method = Method::from_bytes(text.as_bytes()).ok().filter(|method| *method != Method::CONNECT);
    method.ok_or_else(|| Failure::argument(format!("{text:?} is not the method of a request")))
}

/// Returns the header fields of a request.
fn fields(headers: &Headers, bearer: Option<&Secret>) -> Result<HeaderMap, Failure> {
    // With room for those that are added later: the trace, the host, and the type of a body.
    let mut fields = HeaderMap::with_capacity(headers.len() + 6);
    fields.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
    fields.insert(USER_AGENT, HeaderValue::from_static(AGENT));
    for (name, text) in headers {
        let field = HeaderName::try_from(name.as_str())
            .map_err(|_| Failure::argument(format!("{name:?} is not the name of a header field")))?;
        if OWN_FIELDS.contains(&field) {
            return Err(Failure::argument(format!("the header field `{name}` is set by the client")));
        }
        fields.insert(field, value(name, text)?);
    }
    if let Some(secret) = bearer {
        fields.insert(AUTHORIZATION, bearer_value(secret)?);
    }
    let bytes: usize = fields.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    if bytes > FIELDS_BYTES_MAX {
        return Err(Failure::argument(format!("the header fields take more than {FIELDS_BYTES_MAX} bytes")));
    }
    Ok(fields)
}

fn value(name: &str, text: &str) -> Result<HeaderValue, Failure> {
    let visible = text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\t'));
    let value = HeaderValue::from_str(text).ok().filter(|_| visible);
    // The value may be a credential, and is not shown.
    value.ok_or_else(|| Failure::argument(format!("the value of `{name}` may contain only visible ASCII characters")))
}

fn bearer_value(secret: &Secret) -> Result<HeaderValue, Failure> {
    let value = HeaderValue::from_bytes(&[b"Bearer ", secret.reveal()].concat());
    let mut value = value.map_err(|_| Failure::argument("the secret is not a bearer token: it is not a text"))?;
    value.set_sensitive(true);
    Ok(value)
}
