//! Event log: one line on standard error for each event that a person should see, in the format of `--log-format`.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use weir_library::log::{LogFormat, LogLevel, LogLine, escaped, now};
use weir_trace::{EventKind, TraceEvent, TraceReader};

use super::failure_location::FailureLocator;
use super::log_rate::LogRate;
use crate::terminal::Paint;

/// Time for which the end of the program waits for the log: a reader of standard error that does not read holds up
/// nothing else.
const END_MAX: Duration = Duration::from_secs(2);

/// Writes the log on a thread of its own.
pub(super) struct EventLog {
    reader: Arc<TraceReader>,
    /// Closed when everything is written.
    written: Receiver<()>,
}

/// Formats and writes events.
struct LogWriter {
    locator: FailureLocator,
    style: LogStyle,
    rate: LogRate,
}

/// Appearance of lines.
#[derive(Clone, Copy)]
pub(super) struct LogStyle {
    pub(super) format: LogFormat,
    pub(super) paint: Paint,
}

/// A line about an event.
#[derive(Default)]
pub(super) struct EventLine {
    pub(super) level: LogLevel,
    /// The kind of the event, such as `failure`.
    pub(super) event: &'static str,
    /// Place of the event in the program.
    pub(super) place: Option<String>,
    pub(super) message: Option<String>,
    /// The places that a failure has passed, innermost first.
    pub(super) passed: Vec<String>,
    /// Identity of the distributed trace that the event belongs to.
    pub(super) trace_id: Option<String>,
}

impl EventLog {
    pub(super) fn begin(reader: TraceReader, locator: FailureLocator, style: LogStyle) -> EventLog {
        let reader = Arc::new(reader);
        let mut writer = LogWriter { locator, style, rate: LogRate::default() };
        let (events, (writing, written)) = (Arc::clone(&reader), channel());
        std::thread::spawn(move || {
            while let Some(some) = events.next() {
                writer.write(&some);
            }
            writer.write(&events.take());
            writer.end(events.lost());
            drop(writing);
        });
        EventLog { reader, written }
    }

    /// Writes the remaining events. Returns false if standard error takes nothing, and must not be written to any more.
    pub(super) fn end(self) -> bool {
        self.reader.end();
        self.written.recv_timeout(END_MAX) != Err(RecvTimeoutError::Timeout)
    }
}

impl LogWriter {
    fn write(&mut self, events: &[TraceEvent]) {
        let lines: String = events.iter().filter_map(|event| self.line(&event.kind)).collect();
        if !lines.is_empty() {
            say(&lines);
        }
    }

    /// Reports what was left out.
    fn end(self, lost: u64) {
        let style = self.style;
        let mut lines: String = self.rate.left_out().map(|(place, count)| style.left_out(&place, count)).collect();
        if lost > 0 {
            let message =
                format!("{lost} earlier events were lost, because they came faster than they could be written");
            lines += &style.notice(LogLevel::Warn, &message);
        }
        if !lines.is_empty() {
            say(&lines);
        }
    }

    /// Formats an event; `None` for events that the log leaves out.
    fn line(&mut self, kind: &EventKind) -> Option<String> {
        let line = event_line(kind, &self.locator)?;
        let place = line.rate_key();
        let left_out = match self.rate.admit(&place, Instant::now())? {
            0 => String::new(),
            count => self.style.left_out(&place, count),
        };
        Some(left_out + &self.style.line(line))
    }
}

/// Describes an event; `None` for events that the log leaves out.
fn event_line(kind: &EventKind, locator: &FailureLocator) -> Option<EventLine> {
    let warning = |event, entry: u32, message: String| EventLine {
        level: LogLevel::Warn,
        event,
        place: Some(locator.source(entry).to_owned()),
        message: Some(message),
        ..EventLine::default()
    };
    let plain = |level, event, message: Option<String>| EventLine { level, event, message, ..EventLine::default() };
    Some(match kind {
        EventKind::FlowFailed { flow, path, kind, message, backtrace, position, trace_id } => {
            let kind = if *kind == "function" { String::new() } else { format!(" ({kind})") };
            let trace = locator.flow(*flow, path, backtrace, *position);
            EventLine {
                level: LogLevel::Error,
                event: "failure",
                place: Some(trace.place + &kind),
                message: Some(message.to_string()),
                passed: trace.passed,
                trace_id: trace_id.as_deref().map(str::to_owned),
            }
        }
        EventKind::ElementSkipped { entry, count, message } => {
            warning("element skipped", *entry, format!("{message} ({count} so far)"))
        }
        EventKind::SourceRetries { entry, message } => warning("trying again", *entry, message.to_string()),
        EventKind::RequestFailed { entry, message } => {
            EventLine { level: LogLevel::Error, ..warning("request failed", *entry, message.to_string()) }
        }
        EventKind::ConnectionsShed { entry, message } => warning("too many connections", *entry, message.to_string()),
        EventKind::Refused { reason, .. } => plain(LogLevel::Warn, "flow refused", Some(reason.to_string())),
        EventKind::SourceEnded { failure: Some(message), .. } => {
            plain(LogLevel::Error, "source failed", Some(message.to_string()))
        }
        EventKind::Stopping => plain(LogLevel::Info, "stopping after the flows in progress have finished", None),
        EventKind::OutOfTime { flows } => {
            let message = format!("{flows} in progress when the time to stop was over (`drain_timeout` of the plan)");
            plain(LogLevel::Warn, "flows given up", Some(message))
        }
        _ => return None,
    })
}

impl EventLine {
    /// Returns what lines of the same place have in common.
    fn rate_key(&self) -> String {
        match (&self.place, &self.message) {
            (Some(place), _) => format!("{} in {place}", self.event),
            (None, Some(message)) => format!("{}: {message}", self.event),
            (None, None) => self.event.to_owned(),
        }
    }
}

impl LogStyle {
    /// Formats a line, with the end of the line.
    pub(super) fn line(self, line: EventLine) -> String {
        match self.format {
            LogFormat::Text => self.text(&line),
            LogFormat::Json => json(line),
        }
    }

    /// Formats a message of the program itself.
    pub(super) fn notice(self, level: LogLevel, message: &str) -> String {
        match self.format {
            LogFormat::Text => format!("{}\n", escaped(message)),
            LogFormat::Json => {
                let line = LogLine { level, message: message.to_owned(), ..LogLine::default() };
                line.json(&now()) + "\n"
            }
        }
    }

    fn left_out(self, place: &str, count: u64) -> String {
        self.notice(LogLevel::Warn, &format!("{count} more were left out: {place}"))
    }

    fn text(self, line: &EventLine) -> String {
        let event = match line.level {
            LogLevel::Error if line.place.is_some() => self.paint.red(line.event),
            LogLevel::Warn if line.place.is_some() => self.paint.yellow(line.event),
            _ => line.event.to_owned(),
        };
        let place = line.place.as_ref().map(|place| format!(" in {}", escaped(place))).unwrap_or_default();
        let message = line.message.as_ref().map(|message| format!(": {}", escaped(message))).unwrap_or_default();
        let passed: String = line.passed.iter().map(|passed| format!("\n    {}", escaped(passed))).collect();
        let trace = line.trace_id.as_ref().map(|id| format!("\n    trace_id={id}")).unwrap_or_default();
        format!("{} {event}{place}{message}{passed}{trace}\n", self.paint.faint(&now()))
    }
}

fn json(line: EventLine) -> String {
    let EventLine { level, event, place, message, passed, trace_id } = line;
    let mut fields = Map::new();
    if message.is_some() {
        fields.insert("event".to_owned(), event.into());
    }
    if let Some(place) = place {
        fields.insert("place".to_owned(), place.into());
    }
    if !passed.is_empty() {
        fields.insert("passed".to_owned(), Value::from(passed));
    }
    let message = message.unwrap_or_else(|| event.to_owned());
    LogLine { level, message, fields, trace_id }.json(&now()) + "\n"
}

fn say(text: &str) {
    // If standard error is closed, the log is lost.
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}
