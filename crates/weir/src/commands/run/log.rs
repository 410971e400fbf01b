//! Event log: one line on standard error for each event that a person should see.

use std::io::Write as _;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};

use weir_trace::{EventKind, TraceEvent, TraceReader};

use super::failure_location::FailureLocator;
use crate::terminal::Paint;

/// Writes the log on a thread of its own.
pub(super) struct EventLog {
    reader: Arc<TraceReader>,
    writer: LogWriter,
    thread: JoinHandle<()>,
}

/// Formats and writes events.
#[derive(Clone)]
struct LogWriter {
    locator: Arc<FailureLocator>,
    paint: Paint,
}

impl EventLog {
    pub(super) fn begin(reader: TraceReader, locator: FailureLocator, paint: Paint) -> EventLog {
        let (reader, writer) = (Arc::new(reader), LogWriter { locator: Arc::new(locator), paint });
        let (events, lines) = (Arc::clone(&reader), writer.clone());
        let thread = std::thread::spawn(move || {
            while let Some(events) = events.next() {
                lines.write(&events);
            }
        });
        EventLog { reader, writer, thread }
    }

    /// Writes the remaining events.
    pub(super) fn end(self) {
        self.reader.end();
        // Events taken by the thread must be written before the process ends. If the thread panicked, it has written
        // what it could.
        let _ = self.thread.join();
        self.writer.write(&self.reader.take());
        match self.reader.lost() {
            0 => {}
            lost => {
                say(&format!("{lost} earlier events were lost, because they came faster than they could be written\n"))
            }
        }
    }
}

impl LogWriter {
    fn write(&self, events: &[TraceEvent]) {
        let lines: String = events.iter().filter_map(|event| self.line(&event.kind)).collect();
        if !lines.is_empty() {
            say(&lines);
        }
    }

    /// Formats an event; `None` for events that the log leaves out.
    fn line(&self, kind: &EventKind) -> Option<String> {
        let failure = self.paint.red("failure");
        let words = match kind {
            EventKind::FlowFailed { flow, path, kind, message } => {
                let kind = if *kind == "function" { String::new() } else { format!(" ({kind})") };
                format!("{failure} in {}{kind}: {message}", self.locator.describe(*flow, path))
            }
            EventKind::SourceEnded { failure: Some(message), .. } => format!("source failed: {message}"),
            EventKind::Refused { .. } => "flow refused: the limit of flows is reached".to_owned(),
            EventKind::Stopping => "stopping after the flows in progress have finished".to_owned(),
            _ => return None,
        };
        Some(format!("{} {words}\n", self.paint.faint(&clock())))
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
