//! Event log: one line on standard error for each event that a person should see.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

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
    paint: Paint,
    rate: LogRate,
}

impl EventLog {
    pub(super) fn begin(reader: TraceReader, locator: FailureLocator, paint: Paint) -> EventLog {
        let reader = Arc::new(reader);
        let mut writer = LogWriter { locator, paint, rate: LogRate::default() };
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
        let mut lines: String =
            self.rate.left_out().map(|(place, count)| format!("{count} more were left out: {place}\n")).collect();
        if lost > 0 {
            lines += &format!("{lost} earlier events were lost, because they came faster than they could be written\n");
        }
        if !lines.is_empty() {
            say(&lines);
        }
    }

    /// Formats an event; `None` for events that the log leaves out.
    fn line(&mut self, kind: &EventKind) -> Option<String> {
        let (place, words) = match kind {
            EventKind::FlowFailed { flow, path, kind, message, backtrace } => {
                let kind = if *kind == "function" { String::new() } else { format!(" ({kind})") };
                let trace = self.locator.flow(*flow, path, backtrace);
                let passed = trace.passed.iter().map(|line| format!("\n    {line}"));
                (
                    format!("{} in {}{kind}", self.paint.red("failure"), trace.place),
                    Some(message.to_string() + &passed.collect::<String>()),
                )
            }
            EventKind::ElementSkipped { entry, count, message } => {
                let place = format!("{} in {}", self.paint.yellow("element skipped"), self.locator.source(*entry));
                (place, Some(format!("{message} ({count} so far)")))
            }
            EventKind::SourceRetries { entry, message } => {
                let place = format!("{} in {}", self.paint.yellow("trying again"), self.locator.source(*entry));
                (place, Some(message.to_string()))
            }
            EventKind::ConnectionsShed { entry, message } => {
                let place = format!("{} in {}", self.paint.yellow("too many connections"), self.locator.source(*entry));
                (place, Some(message.to_string()))
            }
            EventKind::Refused { reason, .. } => (format!("flow refused: {reason}"), None),
            EventKind::SourceEnded { failure: Some(message), .. } => {
                return Some(self.timed(&format!("source failed: {message}")));
            }
            EventKind::Stopping => return Some(self.timed("stopping after the flows in progress have finished")),
            _ => return None,
        };
        let left_out = match self.rate.admit(&place, Instant::now())? {
            0 => String::new(),
            count => self.timed(&format!("{count} more were left out: {place}")),
        };
        let message = words.map(|message| format!(": {message}")).unwrap_or_default();
        Some(left_out + &self.timed(&(place + &message)))
    }

    fn timed(&self, words: &str) -> String {
        format!("{} {words}\n", self.paint.faint(&clock()))
    }
}

/// Returns the time of day in UTC.
fn clock() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let (seconds, millis) = (since.as_secs() % 86_400, since.subsec_millis());
    format!("{:02}:{:02}:{:02}.{millis:03}Z", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

fn say(text: &str) {
    // If standard error is closed, the log is lost.
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}
