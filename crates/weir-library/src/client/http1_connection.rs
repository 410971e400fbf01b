//! Connections of HTTP/1, which the calls that use them drive.
//!
//! hyper divides a connection into a sender of requests and a future that reads and writes. As a task of its own, that future
//! would be woken by each request, and would wake the task of the call for each response. Instead the call polls it while it
//! waits, so that a response wakes the task of its call and nothing else. Nobody polls the future of an idle connection: whether
//! its server has closed it shows when it is used again, or when the pool looks for connections that are idle for too long.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Body, Frame, Incoming};
use hyper::client::conn::{TrySendError, http1};
use hyper::header::HeaderValue;
use hyper::rt::{Read, Write};
use hyper::{Request, Response};

use super::framing::FIELDS_BYTES_MAX;

/// Body of a request.
pub(super) type SentBody = Full<Bytes>;

/// A connection of HTTP/1.
pub(super) struct Http1Connection<S: Read + Write> {
    sender: http1::SendRequest<SentBody>,
    /// `None` after the end of the connection.
    driver: Option<http1::Connection<S, SentBody>>,
    /// The value of the field `Host`.
    pub(super) host: HeaderValue,
}

impl<S: Read + Write + Unpin> Http1Connection<S> {
    /// Returns a connection over this stream to a server with this `Host`.
    pub(super) async fn new(stream: S, host: HeaderValue) -> hyper::Result<Self> {
        let mut builder = http1::Builder::new();
        let (sender, driver) = builder.max_buf_size(FIELDS_BYTES_MAX).handshake(stream).await?;
        Ok(Http1Connection { sender, driver: Some(driver), host })
    }

    /// Sends a request, and returns its response, whose body arrives while the connection is driven.
    ///
    /// # Errors
    /// Fails if there is no response. The error has the request if none of it was sent.
    pub(super) async fn send(
        &mut self,
        request: Request<SentBody>,
    ) -> Result<Response<Incoming>, TrySendError<Request<SentBody>>> {
        let mut response = pin!(self.sender.try_send_request(request));
        let mut is_sent = false;
        poll_fn(|cx| {
            if std::mem::replace(&mut is_sent, true) {
                return driven(&mut self.driver, cx, |passive| response.as_mut().poll(passive));
            }
            // The response cannot have arrived before the request is sent.
            drive(&mut self.driver, cx);
            response.as_mut().poll(&mut passive())
        })
        .await
    }

    /// Polls for a piece of the body of the response.
    pub(super) fn poll_frame(
        &mut self,
        body: &mut Incoming,
        cx: &mut Context<'_>,
    ) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        let mut poll = |passive: &mut Context<'_>| Pin::new(&mut *body).poll_frame(passive);
        // A connection that is ready for the next request has read all of the body.
        if self.is_ready() { poll(&mut passive()) } else { driven(&mut self.driver, cx, poll) }
    }

    /// Returns `true` if it can take a request now, as far as is known.
    pub(super) fn is_ready(&self) -> bool {
        self.driver.is_some() && self.sender.is_ready()
    }

    /// Returns `true` if an idle connection has ended.
    pub(super) fn has_ended(&mut self) -> bool {
        drive(&mut self.driver, &mut passive());
        self.driver.is_none()
    }
}

/// Drives a connection until a part of it that advances only by that is ready.
///
/// The first look registers nobody to be woken. If all has arrived, as it mostly has, the idle connection then keeps no task;
/// and a part that is ready does not wake the task that is polling it, which it could not tell from another one.
fn driven<S: Read + Write + Unpin, T>(
    driver: &mut Option<http1::Connection<S, SentBody>>,
    cx: &mut Context<'_>,
    mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>,
) -> Poll<T> {
    drive(driver, &mut passive());
    let polled = poll(&mut passive());
    if polled.is_ready() {
        return polled;
    }
    drive(driver, cx);
    poll(&mut passive())
}

/// Returns a context that wakes nobody.
fn passive() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

/// Drives a connection, and drops it at its end: a call that waits for a response is told so by that.
fn drive<S: Read + Write + Unpin>(driver: &mut Option<http1::Connection<S, SentBody>>, cx: &mut Context<'_>) {
    // The error is that of the call, if there is one.
    driver.take_if(|driver| Pin::new(driver).poll(cx).is_ready());
}
