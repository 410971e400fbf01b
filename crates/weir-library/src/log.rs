//! Log of a program: messages with a level and named fields, on the standard error.
//!
//! As text, a line is for people; as JSON, it is for programs that collect logs (`line`). A secret cannot be a field, because
//! the compiler refuses it.

mod line;

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use serde_json::{Map, Value as Tree};
use weir::{FlowTrace, NamedArguments};

use crate::json::encode::written;
use crate::output::{Outputs, STANDARD_ERROR};
use crate::trace_context;
pub use line::{LogLine, escaped, now};

/// Maximum length of a message, and of its fields as JSON, in bytes.
const PART_BYTES_MAX: usize = 16 * 1024;

/// Importance of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// Details for the search for a fault.
    Debug,
    /// Normal events.
    #[default]
    Info,
    /// Signs of a coming fault.
    Warn,
    /// Faults.
    Error,
}

/// Format of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// Text for people.
    #[default]
    Text,
    /// An object of JSON.
    Json,
}

/// Settings of the log.
#[derive(Clone, Copy, Debug, Default)]
pub struct LogSettings {
    /// Level of the least important messages that are written.
    pub level: LogLevel,
    /// Format of the lines.
    pub format: LogFormat,
}

/// Builds the module `log`.
pub(crate) fn log() -> weir::Module {
    functions::log()
}

mod functions {
    //! The module's functions, in a submodule because `library!` generates a function named like the module.

    weir::library! {
        /// Messages with a level and named fields, on the standard error: `log.info("paid", order: id)`.
        pub(crate) log: super::debug, super::info, super::warn, super::error
    }
}

/// Logs a message for whoever looks for a fault; `weir run --log-level debug` shows it. All further arguments are named,
/// and become fields: `log.debug("asked", url: url, status: 200)`.
#[weir::function]
pub fn debug(
    #[environment] outputs: &Outputs,
    #[environment] settings: &LogSettings,
    message: &str,
    #[default(NamedArguments::default())] fields: NamedArguments,
) {
    settings.log(outputs, LogLevel::Debug, message, &fields);
}

/// Logs a message about what happens. All further arguments are named, and become fields.
#[weir::function]
pub fn info(
    #[environment] outputs: &Outputs,
    #[environment] settings: &LogSettings,
    message: &str,
    #[default(NamedArguments::default())] fields: NamedArguments,
) {
    settings.log(outputs, LogLevel::Info, message, &fields);
}

/// Logs a message about what may become a fault. All further arguments are named, and become fields.
#[weir::function]
pub fn warn(
    #[environment] outputs: &Outputs,
    #[environment] settings: &LogSettings,
    message: &str,
    #[default(NamedArguments::default())] fields: NamedArguments,
) {
    settings.log(outputs, LogLevel::Warn, message, &fields);
}

/// Logs a message about a fault. All further arguments are named, and become fields.
#[weir::function]
pub fn error(
    #[environment] outputs: &Outputs,
    #[environment] settings: &LogSettings,
    message: &str,
    #[default(NamedArguments::default())] fields: NamedArguments,
) {
    settings.log(outputs, LogLevel::Error, message, &fields);
}

impl LogLevel {
    pub(crate) fn word(self) -> &'static str {
        match self {
            LogLevel::Debug => "debug",
            LogLevel::Info => "info",
            LogLevel::Warn => "warn",
            LogLevel::Error => "error",
        }
    }
}

impl LogFormat {
    /// Returns the identity of the trace that a line names. People read one only if the flow has a trace; lines for programs
    /// always say which of them belong to one flow.
    fn trace_id(self) -> Option<String> {
        let context = match self {
            LogFormat::Text => FlowTrace::current(),
            LogFormat::Json => trace_context::current_or_begun(),
        };
        context.map(|context| context.trace_id())
    }
}

impl LogSettings {
    /// Writes a line, unless its level is below that of the settings. A line that cannot be written is lost: a program does
    /// not fail because of its log.
    fn log(self, outputs: &Outputs, level: LogLevel, message: &str, fields: &NamedArguments) {
        if level < self.level {
            return;
        }
        let line = LogLine { level, message: shortened(message).to_owned(), fields: fields_of(fields), trace_id: None };
        // In tests, lines are the same each time.
        if outputs.capture(&line.text(None)) {
            return;
        }
        self.write(outputs, &LogLine { trace_id: self.format.trace_id(), ..line });
    }

    /// Writes a line as it is, unless its level is below that of the settings.
    pub(crate) fn write(self, outputs: &Outputs, line: &LogLine) {
        if line.level < self.level {
            return;
        }
        let open = || io::stderr().as_fd().try_clone_to_owned().map(File::from);
        if let Ok(output) = outputs.open(STANDARD_ERROR, open) {
            outputs.write_log(&output, &self.shown(line), |count| self.of_lost(count));
        }
    }

    /// Returns a line in the format of the settings.
    fn shown(self, line: &LogLine) -> String {
        let line = match self.format {
            LogFormat::Text => line.text(Some(&now())),
            LogFormat::Json => line.json(&now()),
        };
        line + "\n"
    }

    /// Returns the line that tells how many lines were lost.
    fn of_lost(self, count: u64) -> String {
        let message = format!("{count} earlier lines were lost, because the reader of standard error does not keep up");
        self.shown(&LogLine { level: LogLevel::Warn, message, fields: Map::new(), trace_id: None })
    }
}

/// Returns the beginning of a message that is too long.
fn shortened(message: &str) -> &str {
    &message[..message.floor_char_boundary(PART_BYTES_MAX)]
}

/// Returns the fields, by name.
fn fields_of(NamedArguments(fields): &NamedArguments) -> Map<String, Tree> {
    let text = written(&fields.value, &fields.of);
    match text.map(|text| serde_json::from_slice(&text)) {
        Ok(Ok(Tree::Object(fields))) => bounded(fields),
        // A call without fields.
        Ok(Ok(_)) => Map::new(),
        Ok(Err(error)) => left_out(&error.to_string()),
        Err(failure) => left_out(failure.message.as_str()),
    }
}

/// Returns the field that stands for fields that JSON cannot represent.
fn left_out(why: &str) -> Map<String, Tree> {
    Map::from_iter([("fields_left_out".to_owned(), Tree::from(shortened(why)))])
}

/// Returns the fields, without the values of the longest ones if all together are too long.
fn bounded(mut fields: Map<String, Tree>) -> Map<String, Tree> {
    let mut sizes: Vec<(usize, String)> =
        fields.iter().map(|(name, value)| (name.len() + value.to_string().len(), name.clone())).collect();
    let mut size: usize = sizes.iter().map(|(size, _)| size).sum();
    sizes.sort();
    while size > PART_BYTES_MAX
        && let Some((longest, name)) = sizes.pop()
    {
        size -= longest;
        fields[&name] = Tree::from(format!("left out: it takes {longest} bytes"));
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_fields_that_are_too_long_only_the_longest_is_left_out() {
        let fields = Map::from_iter([
            ("order".to_owned(), Tree::from(7)),
            ("body".to_owned(), Tree::from("x".repeat(PART_BYTES_MAX))),
            ("by".to_owned(), Tree::from("y".repeat(PART_BYTES_MAX - 100))),
        ]);
        let kept = bounded(fields.clone());
        assert_eq!((&kept["order"], &kept["by"]), (&fields["order"], &fields["by"]));
        assert_eq!(kept["body"], "left out: it takes 16390 bytes");
        assert_eq!(kept.keys().collect::<Vec<_>>(), fields.keys().collect::<Vec<_>>());
    }

    #[test]
    fn long_messages_are_cut_at_a_character() {
        let long = "é".repeat(PART_BYTES_MAX);
        assert_eq!(shortened(&long).len(), PART_BYTES_MAX);
        assert_eq!(shortened(&format!("a{long}")).len(), PART_BYTES_MAX - 1);
        assert_eq!(shortened("short"), "short");
    }

    #[test]
    fn levels_below_that_of_the_settings_are_left_out() {
        let outputs = Outputs::capturing();
        let settings = LogSettings { level: LogLevel::Warn, ..LogSettings::default() };
        for level in [LogLevel::Debug, LogLevel::Info, LogLevel::Warn, LogLevel::Error] {
            settings.log(&outputs, level, level.word(), &NamedArguments::default());
        }
        assert_eq!(outputs.captured().unwrap(), "WARN warn\nERROR error\n");
    }
}
