//! The log: what a person should hear of while the program runs, one line each on standard error.

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

/// How events become lines.
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

    /// Writes what is left.
    pub(super) fn end(self) {
        self.reader.end();
        // What was taken out must be written before the process ends. A thread that panicked has written what it could.
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

    /// One event as a line; nothing for what the greeting said already.
    fn line(&self, kind: &EventKind) -> Option<String> {
        let failure = self.paint.red("failure");
        let words = match kind {
            EventKind::FlowFailed { flow, path, kind, message } => {
                let kind = if *kind == "function" { String::new() } else { format!(" ({kind})") };
                format!("{failure} in {}{kind}: {message}", self.locator.describe(*flow, path))
            }
            EventKind::SourceEnded { failure: Some(message), .. } => format!("{failure} of a source: {message}"),
            EventKind::Refused { .. } => "refused a flow: as many wait as may".to_owned(),
            EventKind::Stopping => "stopping; what has begun is finished first".to_owned(),
            _ => return None,
        };
        Some(format!("{} {words}\n", self.paint.faint(&clock())))
    }
}

/// The time of day, in UTC.
fn clock() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let (seconds, millis) = (since.as_secs() % 86_400, since.subsec_millis());
    format!("{:02}:{:02}:{:02}.{millis:03}Z", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

fn say(text: &str) {
    // Where the log cannot be written there is nobody to tell.
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}
