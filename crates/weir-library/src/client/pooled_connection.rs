//! A connection of the client: the sending of a request over it, and the body of the response that arrives.

use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::client::conn::{TrySendError, http2};
use hyper::header::{CONTENT_LENGTH, HOST, HeaderValue, InvalidHeaderValue};
use hyper::http::uri::{Parts, Scheme};
use hyper::{Method, Request, Response, Uri};
use hyper_rustls::MaybeHttpsStream;
use tokio::runtime;

use super::framing::ConnectionUse;
use super::http1_connection::{Http1Connection, SentBody};
use super::options::Call;
use super::stoppable_stream::StoppableStream;

/// A connection that a call uses.
pub(super) struct PooledConnection {
    pub(super) sender: HttpSender,
    pub(super) usage: ConnectionUse,
    /// The event loop of its socket.
    pub(super) event_loop: Option<runtime::Id>,
    /// `true` if an earlier call has used it.
    pub(super) is_reused: bool,
}

/// The side of a connection that sends requests.
pub(super) enum HttpSender {
    /// HTTP/1; boxed because it is large and moved often.
    Http1(Box<Http1Connection<MaybeHttpsStream<StoppableStream>>>),
    Http2(http2::SendRequest<SentBody>),
}

impl PooledConnection {
    /// Returns what is known of its use, and can end it.
    pub(super) fn usage(&self) -> &ConnectionUse {
        &self.usage
    }

    /// Sends the request of a call.
    ///
    /// # Errors
    /// Fails if there is no response. The error has the request if none of it was sent.
    pub(super) async fn send(
        &mut self,
        call: &mut Call,
    ) -> Result<Response<Incoming>, TrySendError<Request<SentBody>>> {
        // Made by a function of its own: the future has no room for it.
        let request = self.request(call);
        match &mut self.sender {
            HttpSender::Http1(connection) => connection.send(request).await,
            HttpSender::Http2(sender) => sender.try_send_request(request).await,
        }
    }

    /// Returns a request of a call over this connection.
    fn request(&self, call: &mut Call) -> Request<SentBody> {
        let mut request = Request::new(Full::new(call.body.clone()));
        *request.method_mut() = call.method.clone();
        *request.headers_mut() = call.fields.taken();
        if call.body.is_empty() && matches!(call.method, Method::POST | Method::PUT | Method::PATCH) {
            // These methods expect content; without a length, some servers refuse the request (RFC 9110, section 8.6).
            request.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
        match &self.sender {
            HttpSender::Http1(connection) => {
                *request.uri_mut() = path_of(&call.url);
                request.headers_mut().insert(HOST, connection.host.clone());
                self.usage.begin(&mut request);
            }
            HttpSender::Http2(_) => *request.uri_mut() = call.url.clone(),
        }
        request
    }

    /// Returns the body of a response, which arrives while it is polled.
    pub(super) fn arriving(&mut self, body: Incoming) -> ArrivingBody<'_> {
        ArrivingBody { body, connection: self }
    }

    /// Returns `true` if the connection can take a request.
    pub(super) fn is_ready(&self) -> bool {
        match &self.sender {
            HttpSender::Http1(connection) => connection.is_ready(),
            HttpSender::Http2(sender) => sender.is_ready(),
        }
    }

    /// Returns `true` if the server has closed the connection.
    pub(super) fn has_ended(&mut self) -> bool {
        match &mut self.sender {
            HttpSender::Http1(connection) => connection.has_ended(),
            HttpSender::Http2(sender) => sender.is_closed(),
        }
    }
}

/// The body of a response, and the connection over which it arrives.
pub(super) struct ArrivingBody<'c> {
    body: Incoming,
    connection: &'c mut PooledConnection,
}

impl Body for ArrivingBody<'_> {
    type Data = Bytes;
    type Error = Box<dyn Error + Send + Sync>;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let ArrivingBody { body, connection } = &mut *self;
        let frame = match &mut connection.sender {
            HttpSender::Http1(connection) => ready!(connection.poll_frame(body, cx)),
            HttpSender::Http2(_) => match ready!(Pin::new(&mut *body).poll_frame(cx)) {
                // hyper takes a reset without an error for the end.
                None if !body.is_end_stream() => return Poll::Ready(Some(Err("its stream was reset".into()))),
                frame => frame,
            },
        };
        Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Returns the value of the field `Host`: with the port, unless it is that of the scheme.
pub(super) fn host_field(url: &Uri) -> Result<HeaderValue, InvalidHeaderValue> {
    let host = url.host().unwrap_or_default();
    let of_scheme = if url.scheme() == Some(&Scheme::HTTPS) { 443 } else { 80 };
    match url.port_u16().filter(|port| *port != of_scheme) {
        Some(port) => HeaderValue::try_from(format!("{host}:{port}")),
        None => HeaderValue::from_str(host),
    }
}

/// Returns the path and query, which is all that a request of HTTP/1 names beside the host.
fn path_of(url: &Uri) -> Uri {
    let mut parts = Parts::default();
    parts.path_and_query = url.path_and_query().cloned();
    Uri::from_parts(parts).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_has_a_port_unless_it_is_that_of_the_scheme() {
        for (url, host) in [
            ("http://a.example/x", "a.example"),
            ("http://a.example:80/", "a.example"),
            ("http://a.example:443/", "a.example:443"),
            ("https://a.example:443/", "a.example"),
            ("https://[::1]:80/", "[::1]:80"),
        ] {
            assert_eq!(host_field(&url.parse().unwrap()).unwrap(), host, "{url}");
        }
    }

    #[test]
    fn a_request_names_its_path_and_query() {
        for (url, path) in
            [("http://a", "/"), ("http://a?b=c", "/?b=c"), ("http://a/b?c", "/b?c"), ("http://a/%20", "/%20")]
        {
            assert_eq!(path_of(&url.parse().unwrap()).to_string(), path, "{url}");
        }
    }
}
