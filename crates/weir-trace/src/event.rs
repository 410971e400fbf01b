//! What can happen in a running program.

use std::fmt;
use std::sync::Arc;

use crate::durations::Durations;

/// One thing that happened.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceEvent {
    /// When, in nanoseconds of the clock of the machine that the program runs on.
    pub at_ns: u64,
    /// What.
    pub kind: EventKind,
}

/// How much is recorded; each includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    /// Nothing.
    Off,
    /// What a person should hear of: sources, failures, refusals.
    Log,
    /// Once in a period, what each section and each route is doing.
    Sections,
    /// Every flow's beginning and end.
    Flows,
    /// Every node.
    Nodes,
}

/// Which flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowKey {
    /// The entry point, by its index in the program.
    pub entry: u32,
    /// The route within the entry point; 0 for a stream.
    pub route: u32,
    /// Its place among the flows of this route, from 0.
    pub sequence: u64,
}

/// Everything that can happen.
#[derive(Clone, Debug, PartialEq)]
pub enum EventKind {
    /// A source is open: where it listens or what it reads.
    SourceOpened {
        /// The entry point.
        entry: u32,
        /// Where it listens or what it reads.
        description: Arc<str>,
    },
    /// A source has ended; `failure` says why, where it was not its input's end or the program's stop.
    SourceEnded {
        /// The entry point.
        entry: u32,
        /// What ended it.
        failure: Option<Arc<str>>,
    },
    /// A flow has begun.
    FlowBegan {
        /// Which.
        flow: FlowKey,
    },
    /// A flow has ended with an answer.
    FlowEnded {
        /// Which.
        flow: FlowKey,
    },
    /// A flow has ended with a failure that nothing in the program handled.
    FlowFailed {
        /// Which.
        flow: FlowKey,
        /// The route's name, and below it the path of the node that failed: `get /{name}: thumbnail/image.scale`.
        path: Arc<str>,
        /// The sort of the failure.
        kind: &'static str,
        /// What went wrong.
        message: Arc<str>,
    },
    /// A flow was given up before its end: its client has gone, or the program stopped.
    FlowGivenUp {
        /// Which.
        flow: FlowKey,
    },
    /// A node has run to its end.
    NodeRan {
        /// The flow.
        flow: FlowKey,
        /// The node's name.
        node: Arc<str>,
        /// How long it took, waiting included.
        took_ns: u64,
    },
    /// A node has to wait: for a constraint, for its turn, or in its function.
    NodeWaits {
        /// The flow.
        flow: FlowKey,
        /// The node's name.
        node: Arc<str>,
    },
    /// A body of a `within` or `race` was given up where it waited: the time was up, or another was there first.
    BodyGivenUp {
        /// The flow.
        flow: FlowKey,
        /// The name of the `within` or `race`.
        node: Arc<str>,
        /// Which of its bodies, from 0 in the order of the text.
        body: u64,
    },
    /// A flow was refused, because as many as may be are there already.
    Refused {
        /// The entry point.
        entry: u32,
    },
    /// What one section is doing; once in a period.
    Section {
        /// Its name.
        section: Arc<str>,
        /// Its engine.
        engine: &'static str,
        /// Whose threads serve it; sections with the same crew share them.
        pool: Arc<str>,
        /// How many threads its crew has.
        threads: u64,
        /// The most threads that its crew may have.
        threads_max: u64,
        /// How many flows wait before it.
        waiting: u64,
        /// How many may wait before it.
        waiting_max: u64,
        /// How many flows have passed it that began while somebody watched.
        passed: u64,
    },
    /// What the flows of one route are doing; once in a period.
    Route {
        /// The entry point.
        entry: u32,
        /// The route's name, or that of the stream.
        route: Arc<str>,
        /// How many flows have begun since the start.
        begun: u64,
        /// How many have ended with an answer.
        ended: u64,
        /// How many have ended with a failure that nothing handled.
        failed: u64,
        /// How many were given up before their end.
        given_up: u64,
        /// How long those took that began and ended while somebody watched, from beginning to answer or failure.
        took: Durations,
    },
    /// The program has been told to stop.
    Stopping,
}

impl EventKind {
    /// From which detail on it is recorded.
    #[must_use]
    pub fn detail(&self) -> Detail {
        match self {
            EventKind::SourceOpened { .. }
            | EventKind::SourceEnded { .. }
            | EventKind::FlowFailed { .. }
            | EventKind::Refused { .. }
            | EventKind::Stopping => Detail::Log,
            EventKind::Section { .. } | EventKind::Route { .. } => Detail::Sections,
            EventKind::FlowBegan { .. } | EventKind::FlowEnded { .. } | EventKind::FlowGivenUp { .. } => Detail::Flows,
            EventKind::NodeRan { .. } | EventKind::NodeWaits { .. } | EventKind::BodyGivenUp { .. } => Detail::Nodes,
        }
    }
}

impl fmt::Display for FlowKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}#{}", self.entry, self.route, self.sequence)
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
            EventKind::FlowFailed { flow, path, kind, message } => {
                write!(f, "flow {flow} failed in {path} ({kind}): {message}")
            }
            EventKind::FlowGivenUp { flow } => write!(f, "flow {flow} given up"),
            EventKind::NodeRan { flow, node, took_ns } => write!(f, "flow {flow} ran {node} in {took_ns} ns"),
            EventKind::NodeWaits { flow, node } => write!(f, "flow {flow} waits in {node}"),
            EventKind::BodyGivenUp { flow, node, body } => write!(f, "flow {flow} gave up body {body} of {node}"),
            EventKind::Refused { entry } => write!(f, "flow of source {entry} refused"),
            EventKind::Section { section, threads, waiting, passed, .. } => {
                write!(f, "section {section}: {threads} threads, {waiting} waiting, {passed} passed")
            }
            EventKind::Route { route, begun, ended, failed, .. } => {
                write!(f, "route {route}: {begun} begun, {ended} ended, {failed} failed")
            }
            EventKind::Stopping => f.write_str("stopping"),
        }
    }
}
