//! Log of a program: messages with a level and named fields, on the standard error.
//!
//! As text, a line is for people: `2026-11-23T06:50:00.123Z INFO paid order=7`. As JSON, it is for programs that collect logs:
//! `{"time":"…","level":"info","message":"paid","fields":{"order":7}}`. Neither a message nor a field can begin a new line,
//! and a secret cannot be a field, because the compiler refuses it.

use std::fmt::Write;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::time::SystemTime;

use serde_json::{Value as Tree, json};
use weir::NamedArguments;

use crate::json::encode::written;
use crate::output::Outputs;

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
    fn word(self) -> &'static str {
        match self {
            LogLevel::Debug => "debug",
            LogLevel::Info => "info",
            LogLevel::Warn => "warn",
            LogLevel::Error => "error",
        }
    }
}

impl LogSettings {
    /// Writes a line, unless its level is below that of the settings. A line that cannot be written is lost: a program does
    /// not fail because of its log.
    fn log(self, outputs: &Outputs, level: LogLevel, message: &str, fields: &NamedArguments) {
        if level < self.level {
            return;
        }
        let (message, fields) = (shortened(message), fields_of(fields));
        // In tests, lines are the same each time.
        if outputs.capture(&text(None, level, message, &fields)) {
            return;
        }
        let now = jiff::Timestamp::try_from(SystemTime::now()).unwrap_or_default();
        let now = format!("{now:.3}");
        let line = match self.format {
            LogFormat::Text => text(Some(&now), level, message, &fields),
            LogFormat::Json => json_line(&now, level, message, fields),
        };
        let open = || io::stderr().as_fd().try_clone_to_owned().map(File::from);
        if let Ok(output) = outputs.open("the standard error", open) {
            let _ = outputs.write(&output, &[line.as_bytes(), b"\n"]);
        }
    }
}

/// Returns the beginning of a message that is too long.
fn shortened(message: &str) -> &str {
    &message[..message.floor_char_boundary(PART_BYTES_MAX)]
}

/// Returns the fields, by name.
fn fields_of(NamedArguments(fields): &NamedArguments) -> serde_json::Map<String, Tree> {
    let text = written(&fields.value, &fields.of).ok().filter(|text| text.len() <= PART_BYTES_MAX);
    match text.map(|text| serde_json::from_slice(&text)) {
        Some(Ok(Tree::Object(fields))) => fields,
        // A call without fields.
        Some(Ok(Tree::Null | Tree::Array(_))) => serde_json::Map::new(),
        _ => {
            let said = format!("left out: they take more than {PART_BYTES_MAX} bytes");
            serde_json::Map::from_iter([("fields".to_owned(), Tree::from(said))])
        }
    }
}

fn text(time: Option<&str>, level: LogLevel, message: &str, fields: &serde_json::Map<String, Tree>) -> String {
    let mut line = time.map_or(String::new(), |time| format!("{time} "));
    let message = if message.contains(char::is_control) { format!("{message:?}") } else { message.to_owned() };
    _ = write!(line, "{} {message}", level.word().to_uppercase());
    for (name, value) in fields {
        match value {
            Tree::String(text) if is_plain(text) => _ = write!(line, " {name}={text}"),
            value => _ = write!(line, " {name}={value}"),
        }
    }
    line
}

/// Returns `true` for a text that needs no quotation marks.
fn is_plain(text: &str) -> bool {
    let is_plain = |char: char| !char.is_whitespace() && !char.is_control() && !matches!(char, '"' | '=' | '\\');
    !text.is_empty() && text.chars().all(is_plain)
}

fn json_line(time: &str, level: LogLevel, message: &str, fields: serde_json::Map<String, Tree>) -> String {
    let mut line = json!({ "time": time, "level": level.word(), "message": message });
    if !fields.is_empty() {
        line["fields"] = Tree::Object(fields);
    }
    line.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_stays_one_line() {
        let fields = json!({"order": 7, "by": "ada", "note": "a b\nINFO forged", "list": [1, "x"], "none": null});
        let fields = fields.as_object().unwrap();
        assert_eq!(
            text(Some("T"), LogLevel::Warn, "paid\nERROR forged", fields),
            "T WARN \"paid\\nERROR forged\" order=7 by=ada note=\"a b\\nINFO forged\" list=[1,\"x\"] none=null"
        );
        assert_eq!(
            json_line("T", LogLevel::Warn, "paid\n", fields.clone()),
            "{\"time\":\"T\",\"level\":\"warn\",\"message\":\"paid\\n\",\"fields\":{\"order\":7,\"by\":\"ada\",\
             \"note\":\"a b\\nINFO forged\",\"list\":[1,\"x\"],\"none\":null}}"
        );
        assert_eq!(text(None, LogLevel::Info, "", &serde_json::Map::new()), "INFO ");
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
