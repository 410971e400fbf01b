//! HTTP client: requests to other services.
//!
//! A call takes the steps of `exchange`: 1. it acquires a permit, so that a program has a bounded number of calls under
//! way, in all and to each host (`permits`); 2. it sends the request over a kept connection, or a new one whose address is checked after the name has been
//! resolved (`pool`, `connector`); 3. it follows redirects (`redirect`), each of which is a request of its own with its own
//! check, without the credentials if it leads to another origin; 4. it reads the body within its limits (`body`). A
//! response that violates the protocol ends its connection (`framing`), and too many informational ones stop the reading from
//! it (`stoppable_stream`, and over HTTP/2 `informational_frames`). A call that is given up is dropped where it waits, which ends its exchange.
//!
//! Addresses of private networks are refused unless the call says `private: true`, because a URL that comes from a
//! request could otherwise reach what only this machine is meant to reach.

mod body;
mod call_fields;
mod connector;
mod exchange;
mod framing;
mod http1_connection;
mod informational_frames;
mod options;
mod permits;
mod pool;
mod pooled_connection;
mod redirect;
mod response;
mod stoppable_stream;
mod url;

pub use call_fields::Headers;
pub use exchange::Client;
pub use options::CallOptions;
pub use response::{ClientResponse, body, cookie, decode_json, header, json, response, status, text, url};

use std::borrow::Cow;

use bytes::Bytes;
use hyper::Method;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use weir::{Failure, Text, Typed};

use crate::json::encode::written;
use crate::units;
use options::Call;

/// Characters that `encode` encodes: all but those that RFC 3986 calls unreserved.
pub(crate) const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Builds the module `client`.
pub(crate) fn client() -> weir::Module {
    functions::client()
}

mod functions {
    //! The module's functions, in a submodule because `library!` generates a function named like the module.

    weir::library! {
        /// HTTP client: requests to other services.
        pub(crate) client: super::get, super::post, super::put, super::patch, super::delete, super::send,
            super::encode, super::response::status, super::response::body, super::response::text,
            super::response::json, super::response::decode_json, super::response::cookie, super::response::header, super::response::url, super::response::response
    }
}

/// Requests a resource with `GET`, which must have no effect on the other service: calls of `get` may overlap.
///
/// # Errors
/// Fails if there is no response within the limits; a response with any status is one.
#[weir::function(reads, awaits_peer)]
pub async fn get(
    #[environment] client: &Client,
    url: Text,
    #[options] options: CallOptions,
) -> Result<ClientResponse, Failure> {
    client.run(Call::new(Method::GET, &url, options)?).await
}

/// Sends a value as JSON with `POST`.
///
/// # Errors
/// Fails if there is no response within the limits; a response with any status is one.
#[weir::function(awaits_peer)]
pub async fn post(
    #[environment] client: &Client,
    url: Text,
    value: Typed<'a'>,
    #[options] options: CallOptions,
) -> Result<ClientResponse, Failure> {
    client.run(json_call(Method::POST, &url, &value, options)?).await
}

/// Sends a value as JSON with `PUT`.
///
/// # Errors
/// Fails if there is no response within the limits; a response with any status is one.
#[weir::function(idempotent, awaits_peer)]
pub async fn put(
    #[environment] client: &Client,
    url: Text,
    value: Typed<'a'>,
    #[options] options: CallOptions,
) -> Result<ClientResponse, Failure> {
    client.run(json_call(Method::PUT, &url, &value, options)?).await
}

/// Sends a value as JSON with `PATCH`.
///
/// # Errors
/// Fails if there is no response within the limits; a response with any status is one.
#[weir::function(awaits_peer)]
pub async fn patch(
    #[environment] client: &Client,
    url: Text,
    value: Typed<'a'>,
    #[options] options: CallOptions,
) -> Result<ClientResponse, Failure> {
    client.run(json_call(Method::PATCH, &url, &value, options)?).await
}

/// Sends a request with `DELETE`.
///
/// # Errors
/// Fails if there is no response within the limits; a response with any status is one.
#[weir::function(idempotent, awaits_peer)]
pub async fn delete(
    #[environment] client: &Client,
    url: Text,
    #[options] options: CallOptions,
) -> Result<ClientResponse, Failure> {
    client.run(Call::new(Method::DELETE, &url, options)?).await
}

/// Sends bytes with any method. A `GET` that has effects is sent by this function: it keeps its place among the calls
/// of this module.
///
/// # Errors
/// Fails if there is no response within the limits; a response with any status is one.
#[weir::function(awaits_peer)]
pub async fn send(
    #[environment] client: &Client,
    method: Text,
    url: Text,
    #[default(Bytes::new())] body: Bytes,
    #[default("application/octet-stream")] r#type: Text,
    #[options] options: CallOptions,
) -> Result<ClientResponse, Failure> {
    let method = options::method(&method)?;
    let call = Call::new(method, &url, options)?.with_body(body, &r#type)?;
    client.run(Call { may_resend: false, ..call }).await
}

/// Encodes a text for a part of a URL, such as a segment of its path or a value of its query, so that it stays this one
/// part: `"https://a.example/users/{client.encode(name)}"`. A URL whose path contains the segment
/// `.` or `..` is refused, because no encoding keeps servers from resolving it.
#[weir::function(pure, units = units::to_transform(part))]
pub fn encode(part: &str) -> String {
    Cow::from(utf8_percent_encode(part, RESERVED)).into_owned()
}

fn json_call(method: Method, url: &str, value: &Typed<'a'>, options: CallOptions) -> Result<Call, Failure> {
    let body = written(&value.value, &value.of)?;
    Call::new(method, url, options)?.with_body(body.into(), "application/json")
}
