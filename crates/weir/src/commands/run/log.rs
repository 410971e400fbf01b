//! The log: what a person should hear of while the program runs, one line each on standard error.

use std::io::Write as _;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use weir_trace::{Event, Reader, What};

use crate::terminal::Paint;

/// How long the reader sleeps where nothing happens; it wakes as soon as something does.
const NAP: Duration = Duration::from_secs(60);

/// Writes the log on a thread of its own.
pub(super) struct Log {
    reader: Arc<Reader>,
    paint: Paint,
}

impl Log {
    pub(super) fn begin(reader: Arc<Reader>, paint: Paint) -> Log {
        let log = Log { reader: Arc::clone(&reader), paint };
        // The thread ends with the process: it only waits and writes.
        std::thread::spawn(move || {
            loop {
                write(&reader.wait(NAP), paint);
            }
        });
        log
    }

    /// Writes what is left.
    pub(super) fn end(&self) {
        write(&self.reader.take(), self.paint);
        match self.reader.lost() {
            0 => {}
            lost => {
                say(&format!("{lost} earlier events were lost, because they came faster than they could be written\n"))
            }
        }
    }
}

fn write(events: &[Event], paint: Paint) {
    let lines: String = events.iter().filter_map(|event| line(&event.what, paint)).collect();
    if !lines.is_empty() {
        say(&lines);
    }
}

/// One event as a line; nothing for what the greeting said already.
fn line(what: &What, paint: Paint) -> Option<String> {
    let words = match what {
        What::FlowFailed { path, kind, message, .. } => {
            format!("{} in {path} ({kind}): {message}", paint.red("failure"))
        }
        What::SourceEnded { failure: Some(failure), .. } => format!("{}: {failure}", paint.red("a source has failed")),
        What::Refused { .. } => format!("{}: as many flows wait as may", paint.red("refused")),
        What::Stopping => "stopping; what has begun is finished first".to_owned(),
        _ => return None,
    };
    Some(format!("{} {words}\n", paint.faint(&clock())))
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
