//! The log of a program, for what its tables have to say without a flow that could fail.

use std::fmt;

use crate::log::{LogLevel, LogLine, LogSettings};
use crate::output::Outputs;

/// The log of a program.
#[derive(Clone)]
pub struct TableLog {
    /// The outputs of the program.
    pub outputs: Outputs,
    /// The format of its log, and the level of what it shows.
    pub settings: LogSettings,
}

impl TableLog {
    pub(super) fn error(&self, message: String) {
        self.write(LogLevel::Error, message);
    }

    pub(super) fn warn(&self, message: String) {
        self.write(LogLevel::Warn, message);
    }

    pub(super) fn info(&self, message: String) {
        self.write(LogLevel::Info, message);
    }

    fn write(&self, level: LogLevel, message: String) {
        let line = LogLine { level, message, ..LogLine::default() };
        if !self.outputs.capture(&line.text(None)) {
            self.settings.write(&self.outputs, &line);
        }
    }
}

impl fmt::Debug for TableLog {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("TableLog").field(&self.settings).finish()
    }
}
