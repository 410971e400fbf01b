//! The log: one thread that writes lines for all modules.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use weir_events::Channel;

use crate::server::Style;

/// A handle of the log.
#[derive(Clone)]
pub(crate) struct Log {
    lines: Channel<Line>,
    written: Arc<AtomicUsize>,
    style: Style,
}

/// A log entry, which the log's thread formats.
#[derive(Clone, Debug)]
pub(crate) enum Line {
    ConnectionStart,
    RequestStart(String),
    RequestEnd(u16),
}

impl fmt::Display for Line {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Line::ConnectionStart => formatter.write_str("connection start\n"),
            Line::RequestStart(path) => writeln!(formatter, "request start {path}"),
            Line::RequestEnd(status) => writeln!(formatter, "request end {status}"),
        }
    }
}

/// Number of bytes of the log that are kept; a real log would rotate files, see `rolling_log` of weir-events.
const KEPT_BYTES: usize = 64 * 1024;

impl Log {
    pub(crate) fn start(style: Style) -> Self {
        let log = Log { lines: Channel::rendezvous(), written: Arc::default(), style };
        let (lines, written) = (log.lines.clone(), log.written.clone());
        std::thread::spawn(move || {
            let mut kept = String::new();
            while let Ok(line) = lines.receive().sync() {
                if kept.len() > KEPT_BYTES {
                    kept.clear();
                }
                kept.push_str(&line.to_string());
                written.fetch_add(1, Relaxed);
            }
        });
        log
    }

    pub(crate) fn write(&self, line: Line) {
        match self.style {
            Style::Synchronous => drop(self.lines.blocking_send(line)),
            Style::Asynchronous => self.lines.send_and_go(line),
        }
    }

    pub(crate) fn lines_written(&self) -> usize {
        self.written.load(Relaxed)
    }

    pub(crate) fn close(&self) {
        self.lines.close();
    }
}
