//! What is said on the socket: one JSON object on a line.

use serde::{Deserialize, Serialize};
use weir_trace::{Durations, EventKind, TraceEvent};

/// The version of the form of the messages. A reader of another version goes on where it can: events that it does not
/// know are passed over, and fields that it does not know too.
pub(crate) const VERSION: u32 = 1;

/// One line.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct TraceLine {
    /// When, in nanoseconds since the program began.
    #[serde(default)]
    pub(crate) at_ns: u64,
    /// What.
    #[serde(flatten)]
    pub(crate) message: Message,
}

/// What one line says.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum Message {
    /// Who speaks; the first line.
    Hello(Hello),
    /// No more readers may be connected; the only line.
    Full {
        /// How many may be.
        readers_max: usize,
    },
    /// Events were lost, because the reader was slow.
    Lost {
        /// How many since this was last said.
        count: u64,
    },
    /// A source is open.
    SourceOpened {
        /// The entry point.
        entry: u32,
        /// Where it listens or what it reads.
        description: String,
    },
    /// A source has ended.
    SourceEnded {
        /// The entry point.
        entry: u32,
        /// Why, where it was not its input's end or the program's stop.
        failure: Option<String>,
    },
    /// A flow has failed, and nothing in the program handled it.
    FlowFailed {
        /// Where: the route, and the path of the node.
        path: String,
        /// The sort of the failure.
        kind: String,
        /// What went wrong.
        message: String,
    },
    /// A flow was refused.
    Refused {
        /// The entry point.
        entry: u32,
    },
    /// What one section is doing.
    Section(SectionSample),
    /// What one route is doing.
    Route(RouteSample),
    /// The program has been told to stop.
    Stopping,
    /// The program has come to its end; the last line.
    End,
    /// Something of a later version.
    #[serde(other)]
    Unknown,
}

/// Who speaks.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Hello {
    /// The version of the messages.
    pub(crate) version: u32,
    /// The program's name.
    pub(crate) program: String,
    /// Its file.
    pub(crate) file: String,
    /// Its process.
    pub(crate) pid: u32,
    /// The engine of what names none.
    pub(crate) engine: String,
    /// The plan's file.
    pub(crate) plan: Option<String>,
    /// Where it listens or what it reads, by entry point.
    pub(crate) sources: Vec<String>,
}

/// What one section is doing: [`What::SectionSample`].
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

/// What one route is doing: [`What::RouteSample`].
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

impl RouteSample {
    /// How long flows took.
    pub(crate) fn durations(&self) -> Durations {
        Durations::new(self.took.clone(), self.took_sum_ns)
    }
}

impl TraceLine {
    /// An event as a line; nothing for what readers of sections are not told.
    pub(crate) fn of(event: &TraceEvent) -> Option<TraceLine> {
        Message::of(&event.kind).map(|message| TraceLine { at_ns: event.at_ns, message })
    }

    /// The text, with its end of line.
    pub(crate) fn text(&self) -> String {
        let text = serde_json::to_string(self);
        text.expect("a line has no maps but those with texts as keys, which is all that JSON asks for") + "\n"
    }

    /// Reads a line.
    ///
    /// # Errors
    /// Fails where it is none.
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
            EventKind::Refused { entry } => Message::Refused { entry: *entry },
            EventKind::Section { .. } => Message::Section(SectionSample::of(kind)),
            EventKind::Route { .. } => Message::Route(RouteSample::of(kind)),
            EventKind::Stopping => Message::Stopping,
            EventKind::FlowBegan { .. }
            | EventKind::FlowEnded { .. }
            | EventKind::FlowGivenUp { .. }
            | EventKind::NodeRan { .. }
            | EventKind::NodeWaits { .. }
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
