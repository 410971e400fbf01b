//! Messages on the trace socket: one JSON object per line.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
#[cfg(feature = "tools")]
use weir_trace::Durations;
use weir_trace::{BatchDeparture, EventKind, TraceEvent};

/// Version of the message format. Readers of another version ignore unknown events and fields.
pub(crate) const VERSION: u32 = 1;

/// One line.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct TraceLine {
    /// Time in nanoseconds since the program started.
    #[serde(default)]
    pub(crate) at_ns: u64,
    /// The message.
    #[serde(flatten)]
    pub(crate) message: Message,
}

/// The messages.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum Message {
    /// Description of the program; the first line.
    Hello(Hello),
    /// Too many readers; the only line.
    Full {
        /// Maximum number of readers.
        readers_max: usize,
    },
    /// Events were lost because the reader was slow.
    Lost {
        /// Number of events since the previous such message.
        count: u64,
    },
    /// A source has opened.
    SourceOpened {
        /// Index of the entry point.
        entry: u32,
        /// Address or input of the source.
        description: String,
    },
    /// A source has ended.
    SourceEnded {
        /// Index of the entry point.
        entry: u32,
        /// Failure, if the source did not end regularly.
        failure: Option<String>,
    },
    /// A flow has failed, and the program did not handle the failure.
    FlowFailed {
        /// Route and node path.
        path: String,
        /// Kind of the failure.
        kind: String,
        /// Message of the failure.
        message: String,
    },
    /// A source has skipped a malformed element.
    ElementSkipped {
        /// Index of the entry point.
        entry: u32,
        /// Number of elements that the source has skipped so far.
        count: u64,
        /// Reason.
        message: String,
    },
    /// A source could not accept a connection.
    SourceRetries {
        /// Index of the entry point.
        entry: u32,
        /// Reason.
        message: String,
    },
    /// A request could not be answered as its client expects, although no flow has failed.
    RequestFailed {
        /// Index of the entry point.
        entry: u32,
        /// Reason.
        message: String,
    },
    /// A source has closed or refused connections.
    ConnectionsShed {
        /// Index of the entry point.
        entry: u32,
        /// Numbers of connections, and the limit.
        message: String,
    },
    /// A flow was refused.
    Refused {
        /// Index of the entry point.
        entry: u32,
    },
    /// State of one section.
    Section(SectionSample),
    /// State of one route.
    Route(RouteSample),
    /// State of one function whose calls are gathered into batches.
    Batches(BatchesSample),
    /// The program is stopping.
    Stopping,
    /// The drain timeout has passed.
    OutOfTime {
        /// Number of flows that were given up.
        flows: u64,
    },
    /// The program has ended; the last line.
    End,
    /// A message of a later version.
    #[serde(other)]
    Unknown,
}

/// Description of a program.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Hello {
    /// Version of the message format.
    pub(crate) version: u32,
    /// Name of the program.
    pub(crate) program: String,
    /// Source file.
    pub(crate) file: String,
    /// Process id.
    pub(crate) pid: u32,
    /// Default engine.
    pub(crate) engine: String,
    /// Plan file.
    pub(crate) plan: Option<String>,
    /// Address or input of each entry point.
    pub(crate) sources: Vec<String>,
}

/// A sample of one section: [`EventKind::Section`].
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub(crate) struct SectionSample {
    pub(crate) section: String,
    pub(crate) engine: String,
    pub(crate) crew: String,
    pub(crate) threads: u64,
    pub(crate) threads_max: u64,
    pub(crate) waiting: u64,
    pub(crate) waiting_max: u64,
    pub(crate) passed: u64,
}

/// A sample of one route: [`EventKind::Route`].
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub(crate) struct RouteSample {
    pub(crate) entry: u32,
    pub(crate) route: String,
    pub(crate) begun: u64,
    pub(crate) ended: u64,
    pub(crate) failed: u64,
    pub(crate) given_up: u64,
    /// Durations in eighths of octaves: see [`Durations::buckets`].
    pub(crate) took: Vec<(u16, u64)>,
    pub(crate) took_sum_ns: u64,
}

/// A sample of one function whose calls are gathered into batches: [`EventKind::Batches`].
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub(crate) struct BatchesSample {
    pub(crate) function: String,
    /// The number of batches for each reason for which they were sent; 0 is left out.
    pub(crate) sent_because: BTreeMap<String, u64>,
    pub(crate) batches: u64,
    pub(crate) calls: u64,
    pub(crate) requests: u64,
    pub(crate) in_flight: u64,
    pub(crate) in_flight_max: u64,
    pub(crate) queued: u64,
    /// Durations in eighths of octaves, as those of [`RouteSample`].
    pub(crate) waited: Vec<(u16, u64)>,
    pub(crate) waited_sum_ns: u64,
    pub(crate) took: Vec<(u16, u64)>,
    pub(crate) took_sum_ns: u64,
}

impl RouteSample {
    /// Returns the durations of the flows.
    #[cfg(feature = "tools")]
    pub(crate) fn durations(&self) -> Durations {
        Durations::new(self.took.clone(), self.took_sum_ns)
    }
}

impl TraceLine {
    /// Converts an event; `None` for events that are not sent.
    pub(crate) fn of(event: &TraceEvent) -> Option<TraceLine> {
        Message::of(&event.kind).map(|message| TraceLine { at_ns: event.at_ns, message })
    }

    /// Returns the line as text, with its line end.
    pub(crate) fn text(&self) -> String {
        let text = serde_json::to_string(self);
        text.expect("a line has no maps but those with texts as keys, which is all that JSON asks for") + "\n"
    }

    /// Parses a line.
    ///
    /// # Errors
    /// Fails if the text is not a message.
    #[cfg(feature = "tools")]
    pub(crate) fn read(text: &str) -> Result<TraceLine, serde_json::Error> {
        serde_json::from_str(text)
    }
}

impl From<Message> for TraceLine {
    fn from(message: Message) -> TraceLine {
        TraceLine { at_ns: 0, message }
    }
}

impl Message {
    fn of(kind: &EventKind) -> Option<Message> {
        Some(match kind {
            EventKind::SourceOpened { entry, description } => {
                Message::SourceOpened { entry: *entry, description: description.to_string() }
            }
            EventKind::SourceEnded { entry, failure } => {
                Message::SourceEnded { entry: *entry, failure: failure.as_ref().map(ToString::to_string) }
            }
            EventKind::FlowFailed { path, kind, message, .. } => {
                Message::FlowFailed { path: path.to_string(), kind: (*kind).to_owned(), message: message.to_string() }
            }
            EventKind::ElementSkipped { entry, count, message } => {
                Message::ElementSkipped { entry: *entry, count: *count, message: message.to_string() }
            }
            EventKind::SourceRetries { entry, message } => {
                Message::SourceRetries { entry: *entry, message: message.to_string() }
            }
            EventKind::RequestFailed { entry, message } => {
                Message::RequestFailed { entry: *entry, message: message.to_string() }
            }
            EventKind::ConnectionsShed { entry, message } => {
                Message::ConnectionsShed { entry: *entry, message: message.to_string() }
            }
            EventKind::Refused { entry, .. } => Message::Refused { entry: *entry },
            EventKind::Section { .. } => Message::Section(SectionSample::of(kind)),
            EventKind::Route { .. } => Message::Route(RouteSample::of(kind)),
            EventKind::Batches { .. } => Message::Batches(BatchesSample::of(kind)),
            EventKind::Stopping => Message::Stopping,
            EventKind::OutOfTime { flows } => Message::OutOfTime { flows: *flows },
            EventKind::FlowBegan { .. }
            | EventKind::FlowEnded { .. }
            | EventKind::FlowGivenUp { .. }
            | EventKind::NodeRan { .. }
            | EventKind::NodeWaits { .. }
            | EventKind::BatchAnswered { .. }
            | EventKind::BodyGivenUp { .. } => return None,
        })
    }
}

impl SectionSample {
    fn of(kind: &EventKind) -> SectionSample {
        let EventKind::Section { section, engine, pool, threads, threads_max, waiting, waiting_max, passed } = kind
        else {
            return SectionSample::default();
        };
        SectionSample {
            section: section.to_string(),
            engine: (*engine).to_owned(),
            crew: pool.to_string(),
            threads: *threads,
            threads_max: *threads_max,
            waiting: *waiting,
            waiting_max: *waiting_max,
            passed: *passed,
        }
    }
}

impl RouteSample {
    fn of(kind: &EventKind) -> RouteSample {
        let EventKind::Route { entry, route, begun, ended, failed, given_up, took } = kind else {
            return RouteSample::default();
        };
        RouteSample {
            entry: *entry,
            route: route.to_string(),
            begun: *begun,
            ended: *ended,
            failed: *failed,
            given_up: *given_up,
            took: took.buckets().to_vec(),
            took_sum_ns: took.sum_ns(),
        }
    }
}

impl BatchesSample {
    fn of(kind: &EventKind) -> BatchesSample {
        let EventKind::Batches {
            function,
            sent_because,
            calls,
            requests,
            in_flight,
            in_flight_max,
            queued,
            waited,
            took,
        } = kind
        else {
            return BatchesSample::default();
        };
        let sent = sent_because.iter().filter(|(_, batches)| *batches > 0);
        BatchesSample {
            function: function.to_string(),
            batches: sent.clone().map(|(_, batches)| batches).sum(),
            sent_because: sent.map(|(because, batches)| (name_of(*because).to_owned(), *batches)).collect(),
            calls: *calls,
            requests: *requests,
            in_flight: *in_flight,
            in_flight_max: *in_flight_max,
            queued: *queued,
            waited: waited.buckets().to_vec(),
            waited_sum_ns: waited.sum_ns(),
            took: took.buckets().to_vec(),
            took_sum_ns: took.sum_ns(),
        }
    }
}

/// Returns the name of a reason in messages.
fn name_of(because: BatchDeparture) -> &'static str {
    match because {
        BatchDeparture::Full => "full",
        BatchDeparture::NothingMore => "nothing_more",
        BatchDeparture::Due => "due",
        BatchDeparture::EarlierAnswered => "earlier_answered",
        BatchDeparture::OtherBatch => "other_batch",
        BatchDeparture::InPlace => "in_place",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_it_was_written() {
        let took = Durations::new(vec![(40, 2)], 90);
        let kind = EventKind::Route {
            entry: 1,
            route: "get /".into(),
            begun: 3,
            ended: 2,
            failed: 0,
            given_up: 0,
            took: took.clone(),
        };
        let line = TraceLine::of(&TraceEvent { at_ns: 7, kind }).unwrap();
        let text = line.text();
        assert_eq!(
            text.trim_end(),
            r#"{"at_ns":7,"event":"route","entry":1,"route":"get /","begun":3,"ended":2,"failed":0,"given_up":0,"took":[[40,2]],"took_sum_ns":90}"#
        );
        assert_eq!(TraceLine::read(&text).unwrap(), line);
        let Message::Route(route) = line.message else { panic!("{text}") };
        assert_eq!(route.durations(), took);
    }

    #[test]
    fn what_a_later_version_says_is_passed_over() {
        let known = r#"{"at_ns":1,"event":"section","section":"s","temperature":3}"#;
        assert!(matches!(TraceLine::read(known).unwrap().message, Message::Section(section) if section.section == "s"));
        assert_eq!(TraceLine::read(r#"{"event":"weather","rain":true}"#).unwrap().message, Message::Unknown);
        assert!(TraceLine::read("nonsense").is_err());
    }
}
