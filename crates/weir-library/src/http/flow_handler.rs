//! Answers requests: finds the route of each, begins a flow, and responds with its result.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::net::IpAddr;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use hyper::body::{Body as _, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderMap};
use hyper::http::request::Parts;
use hyper::{Method, Request, StatusCode, Uri};
use weir::{Begun, Failure, FlowTrace, Flows, HostType, LocalFuture, SourceProblem, Value, memory};
use weir_events::{choose, until};

use crate::time_limit::{TimeIsUp, TimeLimit};
use crate::trace_context;

use super::http2_fields;
use super::request_body::{BodyHead, RequestBody, refused, without_room};
use super::request_fields::RequestFields;
use super::request_log::RequestLog;
use super::request_policy::{RequestPolicy, RoutedRequest, refusal};
use super::request_rules;
use super::response::Response;
use super::routes::{BodyInput, Routes};
use super::server::{BodyRest, Handler, HandlerResponse, RepeatedHeader, RequestDeadlines, read_body};

/// Handler that responds to requests with the results of flows.
pub(super) struct FlowHandler {
    pub routes: Arc<Routes>,
    pub policy: Arc<RequestPolicy>,
    pub body_bytes_max: usize,
    pub deadlines: RequestDeadlines,
    pub flows: Arc<dyn Flows>,
    pub log: Option<RequestLog>,
    /// An empty list for the inputs of the next flow, to reuse its allocation.
    pub spare: Cell<Vec<Value>>,
    /// Set at the end of the grace period of a server that stops: flows are given up, and their requests answered 503.
    pub answers_all: Cell<bool>,
}

impl Handler for FlowHandler {
    fn source_retries(&self, error: &std::io::Error) {
        self.flows
            .report(SourceProblem::Retries(Failure::function(format!("a connection cannot be accepted: {error}"))));
    }

    fn certificate_stays(&self, error: &std::io::Error) {
        self.flows.report(SourceProblem::Retries(Failure::function(format!(
            "the certificate that was read before stays in use: {error}"
        ))));
    }

    fn answer_all(&self) {
        self.answers_all.set(true);
    }

    fn connections_shed(&self, closed: u64, refused: u64, limit: usize) {
        let message = format!("{closed} closed and {refused} refused at the limit of {limit}");
        self.flows.report(SourceProblem::ShedsConnections(Failure::function(message)));
    }

    fn holders_closed(&self, closed: u64) {
        let message = format!("{closed} closed because of the memory that they held for their clients");
        self.flows.report(SourceProblem::ShedsConnections(Failure::function(message)));
    }

    fn handle(
        &self,
        request: &mut Option<Request<Incoming>>,
        repeated: Option<Rc<RepeatedHeader>>,
        peer: IpAddr,
    ) -> HandlerResponse<'_> {
        let arrived = request.as_mut().expect(HANDLED_ONCE);
        http2_fields::normalize(arrived);
        let fields = fields_of(repeated.as_ref()).unwrap_or(arrived.headers());
        let grant = self.policy.grant(arrived.method(), fields);
        let has_trace = repeated.as_ref().is_none_or(|repeated| repeated.has_trace);
        let mut trace = if has_trace { trace_context::received(fields) } else { FlowTrace::default() };
        let logged = self.log.as_ref().map(|log| log.request(arrived, &mut trace));
        if grant.is_none() && logged.is_none() && !self.policy.has_headers() {
            return self.respond(request, repeated, (peer, trace));
        }
        let response = self.respond(request, repeated, (peer, trace));
        let policy = &self.policy;
        let finish = move |mut response: hyper::Response<Bytes>| {
            policy.add_headers(&mut response);
            grant.into_iter().for_each(|grant| grant.apply(&mut response));
            logged.into_iter().for_each(|logged| logged.answered(response.status()));
            response
        };
        match response {
            HandlerResponse::Now(response) => HandlerResponse::Now(finish(response)),
            HandlerResponse::Later(response) => HandlerResponse::Later(Box::pin(async move { finish(response.await) })),
        }
    }
}

/// A handler gets each request once, and takes it out of its place at most once.
const HANDLED_ONCE: &str = "a request is handled once";

impl FlowHandler {
    /// Returns a later response to a request with this URL and these fields: its own, and those that it repeats. `unread` is
    /// dropped when the response is there.
    #[inline(never)]
    fn later<'a>(
        &'a self,
        answer: impl Future<Output = Response> + 'a,
        method: Method,
        (uri, mut parsed, repeated): (Uri, HeaderMap, Option<Rc<RepeatedHeader>>),
        unread: Option<BodyRest>,
    ) -> HandlerResponse<'a> {
        // One future, and not several around each other: each would keep a copy of the one inside.
        HandlerResponse::Later(Box::pin(async move {
            let mut answer = pin!(answer);
            let answered = poll_fn(|cx| match answer.as_mut().poll(cx) {
                Poll::Pending if self.answers_all.get() => Poll::Ready(None),
                answered => answered.map(Some),
            });
            let mut answer = answered.await.unwrap_or_else(|| Response::given_up(&method).closing());
            answer.complete_at_path(uri.path());
            let to_head = method == Method::HEAD;
            unread.into_iter().for_each(|rest| rest.leave(&self.deadlines.rest));
            let fields = RequestFields { parsed: &mut parsed, repeated: fields_of(repeated.as_ref()) };
            self.policy.answer(&mut answer, to_head, fields, |failure| self.report(failure))
        }))
    }

    fn respond(
        &self,
        request: &mut Option<Request<Incoming>>,
        repeated: Option<Rc<RepeatedHeader>>,
        (peer, trace): (IpAddr, FlowTrace),
    ) -> HandlerResponse<'_> {
        let arrived = request.as_mut().expect(HANDLED_ONCE);
        let method = arrived.method().clone();
        let mut inputs = self.spare.take();
        inputs.clear();
        let mut response = match self.beginning(arrived, repeated.as_deref(), peer, &mut inputs) {
            Ok((route, None)) => match self.begin((route, trace), inputs) {
                Begun::Done(result) => response_of(result),
                Begun::Pending(flow) => {
                    let answer = self.within_time(flow, method.clone());
                    let (head, unread) = BodyRest::split(request.take().expect(HANDLED_ONCE));
                    return self.later(answer, method, (head.uri, head.headers, repeated), Some(unread));
                }
                Begun::Full => Response::overloaded(),
            },
            Ok((route, Some(input))) if input.is_unread => {
                let request = request.take().expect(HANDLED_ONCE);
                let (head, unread) = self.unread_body(route, &input, (request, fields_of(repeated.as_ref())));
                inputs[input.parameter] = unread.clone().into_value().unwrap_or(Value::Absent);
                let answer = self.with_unread_body((route, trace, method.clone()), inputs, unread);
                return self.later(answer, method, (head.uri, head.headers, repeated), None);
            }
            Ok((route, Some(input))) if self.flows.admits(route) => {
                let (head, body) = BodyRest::split(request.take().expect(HANDLED_ONCE));
                let answer = self.after_body((route, trace, method.clone()), input, inputs, body);
                return self.later(answer, method, (head.uri, head.headers, repeated), None);
            }
            Ok(_) => Response::overloaded().closing(),
            Err(refusal) => *refusal,
        };
        response.complete_at_path(arrived.uri().path());
        let fields = RequestFields { parsed: arrived.headers_mut(), repeated: fields_of(repeated.as_ref()) };
        let to_head = method == Method::HEAD;
        HandlerResponse::Now(self.policy.answer(&mut response, to_head, fields, |failure| self.report(failure)))
    }

    /// Reports why a request is not answered as its client expects, although no flow has failed.
    #[cold]
    fn report(&self, failure: Failure) {
        self.flows.report(SourceProblem::RequestFailed(failure));
    }

    /// Begins a flow of a route, which inherits the trace.
    #[inline]
    fn begin(&self, (route, mut trace): (usize, FlowTrace), mut inputs: Vec<Value>) -> Begun {
        let _entered = trace.enter();
        let begun = self.flows.begin(route, &mut inputs);
        self.spare.set(inputs);
        begun
    }

    /// Awaits the result of a flow, within the response deadline.
    async fn within_time(&self, mut flow: LocalFuture<Result<Value, Failure>>, method: Method) -> Response {
        let mut limit = TimeLimit::new(self.deadlines.answer);
        let result = poll_fn(|cx| limit.poll(flow.as_mut(), cx)).await;
        // At the deadline the flow is dropped with its future: it is cancelled where it waits, and releases what it
        // holds.
        result.map_or_else(|TimeIsUp| Response::given_up(&method), response_of)
    }

    /// Reads the body of a request, which is one of the inputs, and responds.
    async fn after_body(
        &self,
        (route, mut trace, method): (usize, FlowTrace, Method),
        input: BodyInput,
        mut inputs: Vec<Value>,
        mut arriving: BodyRest,
    ) -> Response {
        let body = match read_body(&mut arriving, self.body_bytes_max, &self.deadlines).await {
            Ok(body) => body,
            Err(error) => {
                arriving.leave(&self.deadlines.rest);
                return *refused(error);
            }
        };
        inputs[input.parameter] = match self.flow_input(route, &input, body) {
            Ok(input) => input,
            Err(refusal) => return *refusal,
        };
        let entered = trace.enter();
        let begun = self.flows.begin_admitted(route, &mut inputs);
        drop(entered);
        self.spare.set(inputs);
        // A flow that was refused has not taken it.
        _ = memory::take_opening_balance();
        match begun {
            Begun::Done(result) => response_of(result),
            Begun::Pending(flow) => self.within_time(flow, method).await,
            Begun::Full => Response::overloaded(),
        }
    }

    /// Returns the head of a request, and its body as the flow receives it.
    fn unread_body(
        &self,
        route: usize,
        input: &BodyInput,
        (request, repeated): (Request<Incoming>, Option<&HeaderMap>),
    ) -> (Parts, RequestBody) {
        let (head, arriving) = BodyRest::split(request);
        let head_of_body = BodyHead {
            parameter: self.routes.parameter(route, input.parameter).clone(),
            media_type: repeated.unwrap_or(&head.headers).get(CONTENT_TYPE).cloned(),
            has_body: arriving.is_there(),
        };
        let limits = (self.deadlines.clone(), Arc::clone(&self.flows));
        (head, RequestBody::incoming((arriving, self.body_bytes_max), head_of_body, limits))
    }

    /// Responds with the result of a flow that reads the body of its request, and leaves what it has not read: with the response,
    /// and not before.
    async fn with_unread_body(
        &self,
        flow: (usize, FlowTrace, Method),
        inputs: Vec<Value>,
        unread: RequestBody,
    ) -> Response {
        let response = self.reading_body(flow, inputs, &unread).await;
        unread.take_rest().into_iter().for_each(|rest| rest.leave(&self.deadlines.rest));
        response
    }

    async fn reading_body(
        &self,
        (route, trace, method): (usize, FlowTrace, Method),
        inputs: Vec<Value>,
        unread: &RequestBody,
    ) -> Response {
        match self.begin((route, trace), inputs) {
            Begun::Done(result) => response_of(result),
            Begun::Pending(mut flow) => {
                let read_or_late = choose([unread.read(), self.deadlines.body_and_answer.clone()]);
                match until(&mut flow, &read_or_late).await {
                    Ok(result) => response_of(result),
                    Err(()) if unread.is_read() => self.within_time(flow, method).await,
                    Err(()) => Response::given_up(&method).closing(),
                }
            }
            Begun::Full => Response::overloaded().closing(),
        }
    }

    /// Converts a body into an input, on the account of the flow that is about to begin.
    fn flow_input(&self, route: usize, input: &BodyInput, body: Bytes) -> Result<Value, Box<Response>> {
        let length = body.len();
        let entered = memory::enter(i64::try_from(length).unwrap_or(i64::MAX));
        _ = memory::take_refusal();
        let input = self.routes.body_input(route, input, body);
        if let Some((error, reason)) = without_room(length) {
            self.report(reason);
            return Err(refused(error));
        }
        memory::set_opening_balance(entered.leave());
        input.map_err(|problem| refusal(&[problem]))
    }

    /// Finds the route of a request and fills in its inputs, except for the body, which has not been read.
    fn beginning(
        &self,
        request: &Request<Incoming>,
        repeated: Option<&RepeatedHeader>,
        peer: IpAddr,
        inputs: &mut Vec<Value>,
    ) -> Result<(usize, Option<BodyInput>), Box<Response>> {
        let fields = repeated.map_or(request.headers(), |repeated| repeated);
        if let Some(violation) = request_rules::violation(request, fields) {
            return Err(Box::new(Response::plain(StatusCode::BAD_REQUEST, violation)));
        }
        let head = RoutedRequest {
            method: request.method(),
            uri: request.uri(),
            fields,
            may_be_of_page: repeated.is_none_or(|repeated| repeated.names_page),
            peer,
            has_body: request.body().size_hint().exact() != Some(0),
        };
        head.matched(&self.routes, &self.policy, inputs)
    }
}

/// Returns the fields that a request repeats.
fn fields_of(repeated: Option<&Rc<RepeatedHeader>>) -> Option<&HeaderMap> {
    repeated.map(|repeated| &***repeated)
}

/// Returns the response of a flow. The runtime has logged a failure; its reason is not disclosed to the client.
#[inline]
fn response_of(result: Result<Value, Failure>) -> Response {
    let Ok(Value::Host(value)) = result else { return Response::of_status(StatusCode::INTERNAL_SERVER_ERROR) };
    match value.into_any().downcast::<Response>() {
        Ok(response) => Arc::unwrap_or_clone(response),
        Err(_) => Response::of_status(StatusCode::INTERNAL_SERVER_ERROR),
    }
}
