//! A call of the client: its request and its limits.

use std::time::Duration;

use bytes::Bytes;
use hyper::{Method, Uri};
use weir::{Failure, Secret, Size};

use super::call_fields::{CallFields, Headers};
use super::url;
use crate::network::Reach;

/// Maximum number of redirects that a call may permit.
const REDIRECTS_LIMIT: u8 = 20;

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
    pub(super) fields: CallFields,
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
            fields: CallFields::new(options.headers, options.bearer)?,
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
        if !self.body.is_empty() {
            self.fields.set_content_type(media_type)?;
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
