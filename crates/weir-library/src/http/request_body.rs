//! Bodies of requests that flows read themselves, after `before` has seen the header.
//!
//! A flow begins with a [`RequestBody`], of which nothing has been read: a client that waits for `100 Continue` has sent none of
//! it, and of others the server reads no more than its buffers hold. The compiler calls [`read_body`] behind `before`. A request
//! that `before` refuses is answered without its body, of which nothing is checked.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use hyper::header::HeaderValue;
use parking_lot::Mutex;
use weir::memory::ReachedLimit;
use weir::{
    Failure, FailureKind, Flows, Generic, ParameterFrom, RouteParameter, SourceProblem, TypeArgument, TypeOf, Value,
    memory,
};
use weir_events::{Event, Signal};

use super::input::NamedTypes;
use super::request_policy::{body_encoding, refusal};
use super::response::Response;
use super::routes::{BodyKind, decoded_body};
use super::server::{self, BodyError, BodyRest, RequestDeadlines};
use crate::Limited;

/// The body of a request, before it is read.
#[derive(Clone, weir::Type)]
#[weir(opaque, name = "http.RequestBody")]
pub struct RequestBody(Arc<PendingBody>);

struct PendingBody {
    /// `None` once it is read.
    content: Mutex<Option<Content>>,
    /// The body after it was read, or its reading has failed: it counts as held until the answer is there.
    rest: Mutex<Option<BodyRest>>,
    head: BodyHead,
    bytes_max: usize,
    /// Fires when the body has been read or refused.
    read: Signal,
}

/// The properties of a body that the header of its request and the route state.
pub(super) struct BodyHead {
    /// The parameter of the route. Its type is known where the body is read.
    pub(super) parameter: RouteParameter,
    pub(super) media_type: Option<HeaderValue>,
    pub(super) has_body: bool,
}

enum Content {
    /// It arrives at a server, whose flows report why a body is refused.
    Incoming(Box<BodyRest>, RequestDeadlines, Arc<dyn Flows>),
    /// A test has sent it.
    Whole(Bytes),
}

impl fmt::Debug for RequestBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RequestBody")
    }
}

impl RequestBody {
    /// Creates the body of a request that a server receives.
    pub(super) fn incoming(
        (body, bytes_max): (BodyRest, usize),
        head: BodyHead,
        (deadlines, flows): (RequestDeadlines, Arc<dyn Flows>),
    ) -> Self {
        Self::new(Content::Incoming(Box::new(body), deadlines, flows), head, bytes_max)
    }

    /// Creates the body of a request that a test sends.
    pub(super) fn whole((body, bytes_max): (Bytes, usize), head: BodyHead) -> Self {
        Self::new(Content::Whole(body), head, bytes_max)
    }

    fn new(content: Content, head: BodyHead, bytes_max: usize) -> Self {
        let (content, rest) = (Mutex::new(Some(content)), Mutex::default());
        RequestBody(Arc::new(PendingBody { content, rest, head, bytes_max, read: Signal::new() }))
    }

    /// Returns an event that takes effect once the body has been read or refused.
    pub(super) fn read(&self) -> Event<()> {
        self.0.read.fired()
    }

    /// Returns `true` once the body has been read or refused.
    pub(super) fn is_read(&self) -> bool {
        self.0.read.is_fired()
    }

    /// Takes what is left of a body that was not read to its end.
    pub(super) fn take_rest(&self) -> Option<BodyRest> {
        match self.0.content.lock().take() {
            Some(Content::Incoming(body, ..)) => Some(*body),
            _ => self.0.rest.lock().take(),
        }
    }

    async fn value(&self, of: &TypeOf) -> Result<Value, Box<Response>> {
        let PendingBody { content, rest, head, bytes_max, .. } = &*self.0;
        let parameter = RouteParameter { ty: of.ty.clone(), ..head.parameter.clone() };
        let kind = BodyKind::of(parameter.from == ParameterFrom::Form, &parameter.ty);
        let form = body_encoding(kind, head.media_type.as_ref().filter(|_| head.has_body), head.has_body)?;
        let Some(content) = content.lock().take() else { return Err(Box::new(Response::closed_body())) };
        let (body, flows) = match content {
            Content::Whole(body) if body.len() > *bytes_max => return Err(refused(BodyError::TooLarge)),
            Content::Whole(body) => (body, None),
            Content::Incoming(mut arriving, deadlines, flows) => {
                let read = server::read_body(&mut arriving, *bytes_max, &deadlines).await;
                rest.lock().replace(*arriving);
                (read.map_err(refused)?, Some(flows))
            }
        };
        // The connection has allocated it.
        let length = body.len();
        memory::charge(i64::try_from(length).unwrap_or(i64::MAX));
        _ = memory::take_refusal();
        let value = decoded_body(&parameter, NamedTypes(&of.definitions), form.as_ref(), body);
        if let Some((error, reason)) = without_room(length) {
            flows.into_iter().for_each(|flows| flows.report(SourceProblem::RequestFailed(reason.clone())));
            return Err(refused(error));
        }
        value.map_err(|problem| refusal(&[problem]))
    }
}

/// Returns the error of a body of this length, and its reason, if the flow that has it holds more than it may, or was refused
/// something since [`memory::take_refusal`].
pub(super) fn without_room(length: usize) -> Option<(BodyError, Failure)> {
    // The refusal names the limit.
    _ = memory::is_over();
    let (error, reason) = match memory::take_refusal()? {
        ReachedLimit::Flow => {
            let limit = memory::flow_limit();
            let reason = format!("a body takes more than the {limit} bytes that a flow may hold (`memory_per_flow`)");
            (BodyError::TooLarge, reason)
        }
        ReachedLimit::Program => {
            let (used, limit) = (memory::used(), memory::program_limit().unwrap_or(u64::MAX));
            let program = format!("the program holds {used} bytes of its {limit} (`--memory`)");
            (BodyError::NoMemory, format!("there is no memory for a body of {length} bytes: {program}"))
        }
    };
    Some((error, Failure::new(FailureKind::Limit, reason)))
}

/// Returns the answer to a request whose body cannot be read, after which the connection ends.
pub(super) fn refused(error: BodyError) -> Box<Response> {
    let response = match error {
        BodyError::NoMemory => Response::overloaded(),
        error => Response::of_status(error.status()),
    };
    Box::new(response.closing())
}

/// Reads the body of a request as the parameter of its route, or returns the answer that refuses it. The compiler calls it
/// behind the bodies of `before`.
#[weir::function(internal, reads, awaits_peer)]
pub async fn read_body(body: &RequestBody, of: TypeArgument<'a'>) -> Limited<Result<Generic<'a'>, Response>> {
    let value = body.value(&of.0).await;
    body.0.read.fire();
    Limited(Ok(value.map(Generic).map_err(|refusal| *refusal)))
}
