//! Trace events: everything that can happen in a running program.

use std::fmt;
use std::sync::Arc;

use crate::durations::Durations;

/// One event.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceEvent {
    /// The time of the event, in nanoseconds of the program's clock.
    pub at_ns: u64,
    /// The kind of the event.
    pub kind: EventKind,
}

/// Level of detail. Each level includes the ones before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    /// No events.
    Off,
    /// Events for a person to read: sources, failures, refusals.
    Log,
    /// The state of each section and route, once per period.
    Sections,
    /// The beginning and the end of each flow.
    Flows,
    /// Each node.
    Nodes,
}

/// Identity of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowKey {
    /// The index of the entry point in the program.
    pub entry: u32,
    /// The index of the route in the entry point; 0 for a stream.
    pub route: u32,
    /// The number of the flow in its route, from 0.
    pub sequence: u64,
}

/// The kinds of events.
#[derive(Clone, Debug, PartialEq)]
pub enum EventKind {
    /// A source has been opened.
    SourceOpened {
        /// The index of the entry point.
        entry: u32,
        /// The address it listens at or the input it reads.
        description: Arc<str>,
    },
    /// A source has ended.
    SourceEnded {
        /// The index of the entry point.
        entry: u32,
        /// The failure that ended it; `None` at the end of its input or of the program.
        failure: Option<Arc<str>>,
    },
    /// A flow has begun.
    FlowBegan {
        /// The flow.
        flow: FlowKey,
    },
    /// A flow has ended with an answer.
    FlowEnded {
        /// The flow.
        flow: FlowKey,
    },
    /// A flow has ended with a failure that the program does not handle.
    FlowFailed {
        /// The flow.
        flow: FlowKey,
        /// The route and the path of the node that failed: `get /{name}: thumbnail/image.scale`.
        path: Arc<str>,
        /// The kind of the failure.
        kind: &'static str,
        /// The message of the failure.
        message: Arc<str>,
        /// The places where a `fn` has given the failure to its caller, innermost first.
        backtrace: Vec<BacktraceEntry>,
        /// The position in the source, in bytes, if the failure belongs to another operation than the node, which has learned of it
        /// later.
        position: Option<u32>,
        /// The identity of the distributed trace that the flow belongs to, if it has one.
        trace_id: Option<Arc<str>>,
    },
    /// A flow was cancelled before its end: its client disconnected, or the program stopped.
    FlowGivenUp {
        /// The flow.
        flow: FlowKey,
    },
    /// A node has finished.
    NodeRan {
        /// The flow.
        flow: FlowKey,
        /// The name of the node.
        node: Arc<str>,
        /// The time it took, waiting included.
        took_ns: u64,
    },
    /// A node waits: for a lock, at a ticket gate, or in its function.
    NodeWaits {
        /// The flow.
        flow: FlowKey,
        /// The name of the node.
        node: Arc<str>,
    },
    /// A body of a `within` or `race` was cancelled while it waited: the time limit expired, or another body won.
    BodyGivenUp {
        /// The flow.
        flow: FlowKey,
        /// The name of the `within` or `race`.
        node: Arc<str>,
        /// The index of the body in the order of the text, from 0.
        body: u64,
    },
    /// A source has skipped a malformed element, and goes on.
    ElementSkipped {
        /// The index of the entry point.
        entry: u32,
        /// The number of elements that the source has skipped so far.
        count: u64,
        /// The reason.
        message: Arc<str>,
    },
    /// A source could accept no connection, or read no input, and tries again.
    SourceRetries {
        /// The index of the entry point.
        entry: u32,
        /// The reason.
        message: Arc<str>,
    },
    /// A source could not answer a request as its client expects, although no flow has failed.
    RequestFailed {
        /// The index of the entry point.
        entry: u32,
        /// The reason.
        message: Arc<str>,
    },
    /// A source has reached its limit of connections, and has closed or refused some; at most once a second for each event
    /// loop.
    ConnectionsShed {
        /// The index of the entry point.
        entry: u32,
        /// The numbers of connections, and the limit.
        message: Arc<str>,
    },
    /// A flow was refused.
    Refused {
        /// The index of the entry point.
        entry: u32,
        /// The reason.
        reason: RefusalReason,
    },
    /// State of a section, once per period.
    Section {
        /// The name of the section.
        section: Arc<str>,
        /// The name of its engine.
        engine: &'static str,
        /// The name of the thread pool that serves it. Sections with the same pool share its threads.
        pool: Arc<str>,
        /// The number of threads of the pool.
        threads: u64,
        /// The largest number of threads of the pool.
        threads_max: u64,
        /// The number of flows that wait for the section.
        waiting: u64,
        /// The number of flows that may wait for it.
        waiting_max: u64,
        /// The number of flows that passed it and began while a reader was attached.
        passed: u64,
    },
    /// State of a route, once per period.
    Route {
        /// The index of the entry point.
        entry: u32,
        /// The name of the route or stream.
        route: Arc<str>,
        /// The number of flows that have begun since the start.
        begun: u64,
        /// The number of flows that have ended with an answer.
        ended: u64,
        /// The number of flows that have ended with a failure that the program does not handle.
        failed: u64,
        /// The number of flows that were cancelled.
        given_up: u64,
        /// The durations, from the beginning to the answer or failure, of the flows that began and ended while a reader
        /// was attached.
        took: Durations,
    },
    /// A batch was answered: calls of one function, of any flows, that were gathered into one call of Rust.
    BatchAnswered {
        /// The path of the function; of reads of a table `us[key]`.
        function: Arc<str>,
        /// The number of calls in the batch.
        calls: u64,
        /// The number of requests that were sent: equal calls of a function that does not write share one.
        requests: u64,
        /// The time from the first call to the moment at which the batch was sent.
        waited_ns: u64,
        /// The time that the function took.
        took_ns: u64,
        /// The reason for which it was sent then.
        sent_because: BatchDeparture,
    },
    /// State of a function whose calls are gathered into batches, once per period.
    Batches {
        /// The path of the function; of reads of a table `us[key]`.
        function: Arc<str>,
        /// The number of batches that were answered since the start, for each reason for which they were sent.
        sent_because: [(BatchDeparture, u64); BatchDeparture::ALL.len()],
        /// The number of calls in them.
        calls: u64,
        /// The number of requests in them.
        requests: u64,
        /// The number of batches that gather or are with the function.
        in_flight: u64,
        /// The largest number of batches that may be with the function.
        in_flight_max: u64,
        /// The number of further batches, which wait for one of these to be answered.
        queued: u64,
        /// The times from the first call of a batch to the moment at which it was sent.
        waited: Durations,
        /// The times that the function took.
        took: Durations,
    },
    /// The program has been told to stop.
    Stopping,
    /// The drain timeout has passed, and what still runs is given up.
    OutOfTime {
        /// The number of flows that were in progress.
        flows: u64,
    },
}

impl EventKind {
    /// Returns the level of detail from which on the event is recorded.
    #[must_use]
    pub fn detail(&self) -> Detail {
        match self {
            EventKind::SourceOpened { .. }
            | EventKind::SourceEnded { .. }
            | EventKind::FlowFailed { .. }
            | EventKind::ElementSkipped { .. }
            | EventKind::SourceRetries { .. }
            | EventKind::RequestFailed { .. }
            | EventKind::ConnectionsShed { .. }
            | EventKind::Refused { .. }
            | EventKind::Stopping
            | EventKind::OutOfTime { .. } => Detail::Log,
            EventKind::Section { .. } | EventKind::Route { .. } | EventKind::Batches { .. } => Detail::Sections,
            EventKind::FlowBegan { .. }
            | EventKind::FlowEnded { .. }
            | EventKind::FlowGivenUp { .. }
            | EventKind::BatchAnswered { .. } => Detail::Flows,
            EventKind::NodeRan { .. } | EventKind::NodeWaits { .. } | EventKind::BodyGivenUp { .. } => Detail::Nodes,
        }
    }
}

impl fmt::Display for FlowKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}#{}", self.entry, self.route, self.sequence)
    }
}

/// A place where a `fn` has given a failure to its caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BacktraceEntry {
    /// The function that failed there; empty if it was no call.
    pub failed: Arc<str>,
    /// The `fn` with that place.
    pub function: Arc<str>,
    /// The place in the source, in bytes.
    pub position: u32,
}

/// The reason for which a batch is sent at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchDeparture {
    /// It has as many calls as it may have.
    Full,
    /// Nothing that could run at that moment had a further call for it.
    NothingMore,
    /// It waited for further calls, and one of its calls could wait no longer.
    Due,
    /// As many batches of the function were out as may be, and one of them was answered.
    EarlierAnswered,
    /// It waited for further calls, and another batch of the function could not be sent because of that.
    OtherBatch,
    /// The flow of its calls was alone, and has sent it itself, because the function answers at once.
    InPlace,
}

impl BatchDeparture {
    /// All reasons, in the order of their declaration.
    pub const ALL: [BatchDeparture; 6] = [
        BatchDeparture::Full,
        BatchDeparture::NothingMore,
        BatchDeparture::Due,
        BatchDeparture::EarlierAnswered,
        BatchDeparture::OtherBatch,
        BatchDeparture::InPlace,
    ];
}

impl fmt::Display for BatchDeparture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BatchDeparture::Full => "it was full",
            BatchDeparture::NothingMore => "no further call could join then",
            BatchDeparture::Due => "a call in it could wait no longer",
            BatchDeparture::EarlierAnswered => "an earlier batch was answered",
            BatchDeparture::OtherBatch => "another batch could not be sent while it waited",
            BatchDeparture::InPlace => "its function answers at once, and no other flow had a call in a batch",
        })
    }
}

/// The reason why a flow was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalReason {
    /// The limit of flows is reached, or the queue of a section is full.
    Full,
    /// The memory of the program is full.
    Memory,
    /// Flows that have begun wait too long for a thread.
    Overloaded,
}

impl fmt::Display for RefusalReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RefusalReason::Full => {
                "the limit of flows is reached (`flows_max`), or the queue of a section is full (`queue_length_max`)"
            }
            RefusalReason::Memory => "the memory of the program is full",
            RefusalReason::Overloaded => "overloaded, because the flows in progress wait too long for a thread",
        })
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EventKind::SourceOpened { entry, description } => write!(f, "source {entry} opened: {description}"),
            EventKind::SourceEnded { entry, failure: None } => write!(f, "source {entry} ended"),
            EventKind::SourceEnded { entry, failure: Some(failure) } => write!(f, "source {entry} failed: {failure}"),
            EventKind::FlowBegan { flow } => write!(f, "flow {flow} began"),
            EventKind::FlowEnded { flow } => write!(f, "flow {flow} ended"),
            EventKind::FlowFailed { flow, path, kind, message, .. } => {
                write!(f, "flow {flow} failed in {path} ({kind}): {message}")
            }
            EventKind::FlowGivenUp { flow } => write!(f, "flow {flow} given up"),
            EventKind::NodeRan { flow, node, took_ns } => write!(f, "flow {flow} ran {node} in {took_ns} ns"),
            EventKind::NodeWaits { flow, node } => write!(f, "flow {flow} waits in {node}"),
            EventKind::BodyGivenUp { flow, node, body } => write!(f, "flow {flow} gave up body {body} of {node}"),
            EventKind::ElementSkipped { entry, count, message } => {
                write!(f, "source {entry} skipped element {count}: {message}")
            }
            EventKind::SourceRetries { entry, message } => {
                write!(f, "source {entry} tries again: {message}")
            }
            EventKind::RequestFailed { entry, message } => write!(f, "request of source {entry} failed: {message}"),
            EventKind::ConnectionsShed { entry, message } => write!(f, "source {entry}: {message}"),
            EventKind::Refused { entry, reason } => write!(f, "flow of source {entry} refused: {reason}"),
            EventKind::Section { section, threads, waiting, passed, .. } => {
                write!(f, "section {section}: {threads} threads, {waiting} waiting, {passed} passed")
            }
            EventKind::Route { route, begun, ended, failed, .. } => {
                write!(f, "route {route}: {begun} begun, {ended} ended, {failed} failed")
            }
            EventKind::BatchAnswered { function, calls, requests, waited_ns, took_ns, sent_because } => {
                write!(
                    f,
                    "batch of {function}: {calls} calls, {requests} requests, sent after {waited_ns} ns because \
                     {sent_because}, took {took_ns} ns"
                )
            }
            EventKind::Batches { function, sent_because, calls, in_flight, queued, .. } => {
                let batches: u64 = sent_because.iter().map(|(_, batches)| batches).sum();
                write!(f, "batches of {function}: {batches} of {calls} calls, {in_flight} in flight, {queued} queued")
            }
            EventKind::Stopping => f.write_str("stopping"),
            EventKind::OutOfTime { flows } => write!(f, "out of time with {flows} flows"),
        }
    }
}
