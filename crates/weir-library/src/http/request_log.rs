//! Log of the requests of a service: a line for each answer, also for those that no flow gives.

use std::sync::Arc;
use std::time::Instant;

use hyper::{Method, Request, StatusCode};
use serde_json::{Map, Value as Tree};
use weir::{Environment, FlowTrace};

use crate::log::{LogLevel, LogLine, LogSettings};
use crate::output::Outputs;
use crate::trace_context;

/// Maximum length of the path in a line.
const PATH_BYTES_MAX: usize = 1024;

/// The log of the requests of a service.
#[derive(Clone)]
pub(super) struct RequestLog {
    outputs: Arc<Outputs>,
    settings: LogSettings,
}

/// A request that has no answer yet. If it is dropped, its client has gone.
pub(super) struct LoggedRequest {
    log: RequestLog,
    method: Method,
    path: String,
    begun: Instant,
    trace: FlowTrace,
    status: Option<StatusCode>,
}

impl RequestLog {
    /// Returns the log of a program in this environment; `None` if it has no log.
    pub(super) fn of(environment: &Environment) -> Option<RequestLog> {
        let settings = environment.get::<LogSettings>()?;
        Some(RequestLog { outputs: environment.get::<Outputs>()?, settings: *settings })
    }

    /// Notes that a request has arrived, whose flow has this trace; a trace begins if it has none. The query is not logged,
    /// because it may contain credentials.
    pub(super) fn request<B>(&self, request: &Request<B>, trace: &mut FlowTrace) -> LoggedRequest {
        {
            let _entered = trace.enter();
            trace_context::current_or_begun();
        }
        let path = request.uri().path();
        let path = path[..path.floor_char_boundary(PATH_BYTES_MAX)].to_owned();
        let (log, method, begun) = (self.clone(), request.method().clone(), Instant::now());
        LoggedRequest { log, method, path, begun, trace: trace.clone(), status: None }
    }
}

impl LoggedRequest {
    /// Writes the line.
    pub(super) fn answered(mut self, status: StatusCode) {
        self.status = Some(status);
    }

    fn line(&self) -> LogLine {
        let milliseconds = self.begun.elapsed().as_micros() as f64 / 1000.0;
        let status = self.status.map_or(Tree::from("given up"), |status| Tree::from(status.as_u16()));
        let fields = [
            ("method", Tree::from(self.method.as_str())),
            ("path", Tree::from(self.path.as_str())),
            ("status", status),
            ("milliseconds", Tree::from(milliseconds)),
        ];
        let fields = Map::from_iter(fields.map(|(name, value)| (name.to_owned(), value)));
        let trace_id = self.trace.context().map(|context| context.trace_id());
        LogLine { level: LogLevel::Info, message: "request".to_owned(), fields, trace_id }
    }
}

impl Drop for LoggedRequest {
    fn drop(&mut self) {
        self.log.settings.write(&self.log.outputs, &self.line());
    }
}
